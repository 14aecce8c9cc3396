package kudu

import (
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/oribi-db/oribi/internal/kudufs"
	"github.com/oribi-db/oribi/internal/kudupb"
	"github.com/oribi-db/oribi/internal/must"
)

// Verify finds superblocks whose checksums are right and that do not fit the blocks.
func TestVerifyFindsWhatDoesNotFit(t *testing.T) {
	c := readCase(t, "redo-files")
	base, tablet := c.unpack(t), c.Tablets[0].ID
	for _, test := range []struct {
		name    string
		damage  func(m *kudupb.TabletSuperBlockPB)
		finding string
	}{
		{"unknown block", func(m *kudupb.TabletSuperBlockPB) {
			m.Rowsets[0].Columns[1].Block.Id = proto.Uint64(77)
		}, "block 77 is missing"},
		{"no bloom file", func(m *kudupb.TabletSuperBlockPB) { m.Rowsets[0].BloomBlock = nil }, "names no block"},
		{"a block named twice", func(m *kudupb.TabletSuperBlockPB) {
			m.Rowsets[0].Columns[1].Block = m.Rowsets[0].Columns[2].Block
		}, "names the block of"},
		{"columns exchanged", func(m *kudupb.TabletSuperBlockPB) {
			a, b := m.Rowsets[0].Columns[0], m.Rowsets[0].Columns[1]
			a.Block, b.Block = b.Block, a.Block
		}, "rowset"},
		{"bloom file instead of a column", func(m *kudupb.TabletSuperBlockPB) {
			r := m.Rowsets[0]
			r.Columns[1].Block, r.BloomBlock = r.BloomBlock, r.Columns[1].Block
		}, "bloom file"},
		{"undos as redos", func(m *kudupb.TabletSuperBlockPB) {
			r := m.Rowsets[0]
			r.UndoDeltas, r.RedoDeltas = r.RedoDeltas, r.UndoDeltas
		}, "delta file"},
		{"redos forgotten", func(m *kudupb.TabletSuperBlockPB) {
			m.Rowsets[0].RedoDeltas = m.Rowsets[0].RedoDeltas[:0]
		}, "comes after key"},
		{"wrong lower bound", func(m *kudupb.TabletSuperBlockPB) {
			m.Rowsets[0].MinEncodedKey = []byte{0}
		}, "bounds in the superblock"},
		{"wrong upper bound", func(m *kudupb.TabletSuperBlockPB) {
			m.Rowsets[0].MaxEncodedKey = []byte{0xff}
		}, "bounds in the superblock"},
		{"wrong count", func(m *kudupb.TabletSuperBlockPB) { *m.Rowsets[0].LiveRowCount++ }, "the counts say"},
		{"key column forgotten", func(m *kudupb.TabletSuperBlockPB) {
			m.Rowsets[0].Columns = m.Rowsets[0].Columns[1:]
		}, "rowset"},
		{"copy that was not finished", func(m *kudupb.TabletSuperBlockPB) {
			m.TabletDataState = proto.Int32(int32(kudupb.TabletDataState_TABLET_DATA_COPYING))
		}, "not copied completely"},
		{"no partition", func(m *kudupb.TabletSuperBlockPB) { m.Partition = nil }, "no partition"},
		{"schema with two keys in the wrong order", func(m *kudupb.TabletSuperBlockPB) {
			m.Schema.Columns[1].IsKey, m.Schema.Columns[0].IsKey = proto.Bool(true), nil
		}, "schema"},
	} {
		t.Run(test.name, func(t *testing.T) {
			fsys := base.Clone()
			d := must.Get(kudufs.Open(fsys, "/fs"))(t)
			m := must.Get(d.Superblock(tablet))(t)
			test.damage(m)
			overwrite(t, fsys, d.SuperblockPath(tablet),
				kudufs.AppendContainer(nil, "kudu.tablet.TabletSuperBlockPB", m))
			dir := must.Get(Open("/fs", Options{FS: fsys}))(t)
			findings := verify(t, dir)
			if found := strings.Join(findings, "\n"); !strings.Contains(found, test.finding) || found == "" {
				t.Errorf("findings %q, want %q", findings, test.finding)
			}
		})
	}
}
