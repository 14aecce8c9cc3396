package tablet

import (
	"bytes"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"testing"

	"github.com/oribi-db/oribi/block"
	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/internal/meta"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/internal/prooftest/files"
	"github.com/oribi-db/oribi/rowset"
	"github.com/oribi-db/oribi/schema"
)

// flip changes a byte of a text, which is in one file of the store.
func (w *testStore) flip(text string) {
	w.t.Helper()
	names := must.Get(w.fs.List(worldDir + "/data"))(w.t)
	flipped := 0
	for _, name := range names {
		name = filepath.Join(worldDir, "data", name)
		data, err := files.ReadFile(w.fs, name)
		at := bytes.Index(data, []byte(text))
		if err != nil || at < 0 {
			continue // a directory
		}
		f, err := w.fs.Open(name, true)
		if err == nil {
			_, err = f.WriteAt([]byte{data[at] ^ 1}, int64(at))
			err = errors.Join(err, f.Close())
		}
		must.Do(w.t, err)
		flipped++
	}
	if flipped != 1 {
		w.t.Fatalf("%d files contain %q", flipped, text)
	}
}

// An error that does not name a rowset blames those inputs in which there is damage, and no others.
func TestDamageOfAnUnnamedRowSetIsFound(t *testing.T) {
	columns := slices.Clone(testSchema.Columns)
	columns[2].Encoding, columns[2].Compression = schema.Plain, schema.NoCompression
	s := must.Get(schema.New(columns, 1))(t)
	w := newTestStore(t, s)
	var all []uint64
	for i := range 4 {
		w.mustCommit(w.op(Insert, i, i, fmt.Sprintf("text of rowset %d", i)))
		w.flush()
		all = append(all, w.tab.Info().RowSets[i].ID)
	}
	w.flip("text of rowset 1")
	w.flip("text of rowset 3")
	w = w.reopened(0)
	nameless := fmt.Errorf("merge: %w", fault.ErrCorrupt)
	for _, test := range []struct {
		err       error
		ids, want []uint64
	}{
		{nameless, all[:3], all[1:2]},
		{nameless, all, []uint64{all[1], all[3]}},
		{nameless, []uint64{all[0], all[2], 1 << 40}, nil},
		{fmt.Errorf("merge: %w", inRowSet(all[2], fault.ErrCorrupt)), all, all[2:3]},
		{errors.New("merge: the disk is full"), all, nil},
	} {
		if got := w.tab.Damaged(t.Context(), test.err, test.ids); !slices.Equal(got, test.want) {
			t.Errorf("%v: %v of %v, want %v", test.err, got, test.ids, test.want)
		}
	}
}

// A damaged row file is a finding of its own. Extract does not need it, a rewrite that failed is not
// to blame on it, and Compact writes it anew once it is known.
func TestDamagedRowFile(t *testing.T) {
	columns := slices.Clone(testSchema.Columns)
	columns[2].Encoding, columns[2].Compression = schema.Plain, schema.NoCompression
	s := must.Get(schema.New(columns, 1))(t)
	w := newTestStore(t, s, func(row *meta.Table) { row.RowFile = schema.FullRowFile })
	w.mustCommit(w.op(Insert, 1, 1, "one"), w.op(Insert, 2, 2, "two"))
	w.flush()
	w.flip("oribi.row_words")
	both := w.reopened(0)
	both.flip("onetwo")
	w = w.reopened(0)
	m := w.tab.RowSetMetadata()[0]
	if got := w.tab.Damaged(t.Context(), fault.ErrCorrupt, []uint64{m.ID}); got != nil {
		t.Errorf("damaged: %v", got)
	}
	must.Do(t, w.tab.Extract(t.Context(), filepath.Join(t.TempDir(), "out")), "Extract")
	w.checkFound(m.RowFile)
	if _, err := w.tab.Compact(t.Context()); err != nil || w.tab.RowSetMetadata()[0].ID == m.ID {
		t.Errorf("Compact: %v, the same rowset", err)
	}
	w.checkFound()
	both.checkFound(m.Columns[2].Block, m.RowFile)
}

// checkFound checks which blocks are damaged.
func (w *testStore) checkFound(want ...block.ID) {
	w.t.Helper()
	var got []block.ID
	err := w.tab.Check(w.t.Context(), func(_ *rowset.Metadata, id block.ID, _ error) { got = append(got, id) }, nil)
	if err != nil || !slices.Equal(got, want) {
		w.t.Errorf("damaged blocks %v, %v, want %v", got, err, want)
	}
}
