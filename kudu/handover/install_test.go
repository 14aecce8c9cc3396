package handover

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/internal/kudufs"
	"github.com/oribi-db/oribi/internal/kudupb"
	"github.com/oribi-db/oribi/internal/kuduschema"
	"github.com/oribi-db/oribi/internal/kudutest"
	"github.com/oribi-db/oribi/internal/kuduwal"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/internal/prooftest/history"
	"github.com/oribi-db/oribi/internal/seedtest"
	"github.com/oribi-db/oribi/keyenc"
	"github.com/oribi-db/oribi/kudu"
	"github.com/oribi-db/oribi/mvcc"
	"github.com/oribi-db/oribi/scan"
	"github.com/oribi-db/oribi/schema"
	"github.com/oribi-db/oribi/vfs"
	"github.com/oribi-db/oribi/vfs/crashfs"
)

// Each row of a tablet of the golden tables is in the partition of that tablet, and in no other.
func TestPartitionsOfServersTablets(t *testing.T) {
	c := kudutest.Read(t, "keys")
	fsys := c.Unpack(t)
	d := openDirectory(t, fsys)
	files := must.Get(kudufs.Open(fsys, "/fs"))(t)
	partitions := map[string]*partition{}
	rows := 0
	for _, from := range c.Tablets {
		m := must.Get(files.Superblock(from.ID))(t)
		p := must.Get(newPartition(m))(t)
		partitions[from.ID] = p
	}
	for _, from := range c.Tablets {
		table := openKudu(t, d, from.ID)
		it, err := table.Scan(scan.Options{Columns: columnsOf(table)[:table.Schema.Keys], Snapshot: mvcc.Everything},
			true)
		must.Do(t, err)
		encoder := keyenc.NewEncoder(table.Schema)
		for it.Next() {
			for i := range it.Batch().Rows() {
				var cells [][]byte
				for _, v := range it.Batch().Columns {
					cells = append(cells, v.Cell(i))
				}
				key := encoder.AppendKey(nil, cells)
				for _, to := range c.Tablets {
					p := partitions[to.ID]
					if to.Table != from.Table {
						continue
					}
					must.Equal(t, must.Get(p.has(key))(t), to.ID == from.ID, key, from.ID, to.ID)
				}
				rows++
			}
		}
		must.Do(t, it.Close())
	}
	if rows < 100 {
		t.Errorf("%d rows", rows)
	}
}

// emptyTablets makes a server with empty tablets of a table, whose columns have other IDs. change
// changes their superblocks.
func emptyTablets(
	t *testing.T, fsys vfs.FS, table *oribi.Table, s *schema.Schema, n int,
	change func(i int, m *kudupb.TabletSuperBlockPB),
) (ids []string) {
	t.Helper()
	d := must.Get(kudufs.Format(fsys, "/ts"))(t)
	for i := range n {
		m := newSuperblock(table, s)
		m.Schema = kuduschema.Message(s)
		for i, c := range m.Schema.Columns {
			c.Id = proto.Uint32(uint32(100 - i))
		}
		change(i, m)
		id := string(m.TabletId)
		must.Do(t, d.CreateTablet(m, kuduwal.FirstSegment,
			kuduwal.NewSegment(id, m.Schema, m.GetSchemaVersion())))
		ids = append(ids, id)
	}
	return ids
}

func unchanged(int, *kudupb.TabletSuperBlockPB) {}

// buckets gives each of n tablets a bucket of the first key column.
func buckets(n int32) func(int, *kudupb.TabletSuperBlockPB) {
	return func(i int, m *kudupb.TabletSuperBlockPB) {
		column := &kudupb.PartitionSchemaPB_ColumnIdentifierPB{}
		column.Identifier = &kudupb.PartitionSchemaPB_ColumnIdentifierPB_Id{Id: int32(m.Schema.Columns[0].GetId())}
		m.PartitionSchema.HashSchema = []*kudupb.PartitionSchemaPB_HashBucketSchemaPB{{
			Columns: []*kudupb.PartitionSchemaPB_ColumnIdentifierPB{column}, NumBuckets: proto.Int32(n),
			Seed: proto.Uint32(3)}}
		m.Partition.HashBuckets = []int32{int32(i)}
	}
}

// Tables that random histories wrote are read as from the store after they were installed into a
// tablet with other column IDs, and into two tablets by partition.
func TestInstalledTablesAreReadAsTheirTables(t *testing.T) {
	tables := 2
	for seed := seedtest.Seed(t); tables > 0; seed++ {
		r := randomHistory(t, seed, 120)
		for _, table := range r.Store.Tables() {
			if tables > 0 && transferable(table) && !ahead(r) {
				rnd := rand.New(rand.NewPCG(seed, 2))
				installEquals(t, rnd, r, table, 1, unchanged)
				installEquals(t, rnd, r, table, 2, buckets(2))
				tables--
			}
		}
		r.Close()
		if t.Failed() {
			t.Fatalf("-seed=%d", seed)
		}
	}
}

// ahead reports whether the clock of a history was ahead of the machine's clock.
func ahead(r *history.Runner) bool {
	last := r.Model.Commits[len(r.Model.Commits)-1].TS
	return last > mvcc.EndOf(time.Now())
}

func installEquals(
	t *testing.T, rnd *rand.Rand, r *history.Runner, table *oribi.Table, n int,
	change func(int, *kudupb.TabletSuperBlockPB),
) {
	t.Helper()
	fsys := vfs.NewMem()
	var total Result
	for _, id := range emptyTablets(t, fsys, table, table.Schema(), n, change) {
		result := must.Get(Install(t.Context(), table, "/ts", id, InstallOptions{FS: fsys, PartitionOnly: n > 1}))(t)
		total.Rows += result.Rows
	}
	d := must.Get(kudu.Open("/ts", kudu.Options{FS: fsys}))(t)
	verified(t, d)
	must.Equal(t, total.Rows, int64(len(tableRows(t, table))))
	equal(t, rnd, table, r.Model.Commits, d, table.Name())
}

// contents returns all files of a file system.
func contents(t *testing.T, fsys vfs.FS, dir string) map[string]string {
	t.Helper()
	out := map[string]string{}
	names := must.Get(fsys.List(dir))(t)
	for _, name := range names {
		path := filepath.Join(dir, name)
		info := must.Get(fsys.Stat(path))(t)
		if info.IsDir() {
			out[path] = "directory"
			maps.Copy(out, contents(t, fsys, path))
			continue
		}
		f := must.Get(fsys.Open(path, false))(t)
		b := make([]byte, info.Size())
		if _, err := f.ReadAt(b, 0); err != nil && len(b) > 0 {
			t.Fatal(err)
		}
		f.Close()
		out[path] = string(b)
	}
	return out
}

// Targets that cannot take a table are refused, and nothing of them is changed.
func TestInstallRefusals(t *testing.T) {
	table := filledTable(t)
	s := table.Schema()
	for _, test := range []struct {
		name, want string
		change     func(int, *kudupb.TabletSuperBlockPB)
		options    InstallOptions
	}{
		{"rowsets", "it has rows", func(_ int, m *kudupb.TabletSuperBlockPB) {
			m.Rowsets = []*kudupb.RowSetDataPB{{Id: proto.Uint64(1), LastDurableDmsId: proto.Int64(-1)}}
		}, InstallOptions{}},
		{"name", "another schema", func(_ int, m *kudupb.TabletSuperBlockPB) {
			m.Schema.Columns[1].Name = proto.String("x")
		}, InstallOptions{}},
		{"type", "another schema", func(_ int, m *kudupb.TabletSuperBlockPB) {
			m.Schema.Columns[1].Type = proto.Int32(int32(schema.Binary))
		}, InstallOptions{}},
		{"nullable", "another schema", func(_ int, m *kudupb.TabletSuperBlockPB) {
			m.Schema.Columns[1].IsNullable = proto.Bool(false)
		}, InstallOptions{}},
		{"fewer", "another schema", func(_ int, m *kudupb.TabletSuperBlockPB) {
			m.Schema.Columns = m.Schema.Columns[:1]
		}, InstallOptions{}},
		{"tombstone", "not a complete tablet", func(_ int, m *kudupb.TabletSuperBlockPB) {
			m.TabletDataState = proto.Int32(int32(kudupb.TabletDataState_TABLET_DATA_TOMBSTONED))
		}, InstallOptions{}},
		{"partition", "not in the tablet's partition", buckets(2), InstallOptions{}},
		{"bucket", "with 0 buckets", buckets(0), InstallOptions{PartitionOnly: true}},
		{"group", "data directories", func(_ int, m *kudupb.TabletSuperBlockPB) {
			m.DataDirGroup = &kudupb.DataDirGroupPB{Uuids: [][]byte{[]byte("other")}}
		}, InstallOptions{}},
	} {
		t.Run(test.name, func(t *testing.T) {
			fsys := vfs.NewMem()
			ids := emptyTablets(t, fsys, table, s, 1, test.change)
			before := contents(t, fsys, "/")
			test.options.FS = fsys
			_, err := Install(t.Context(), table, "/ts", ids[0], test.options)
			must.Contain(t, fmt.Sprint(err), test.want)
			must.Equal(t, before, contents(t, fsys, "/"), "the directory was changed")
		})
	}
	fsys := vfs.NewMem()
	emptyTablets(t, fsys, table, s, 1, unchanged)
	if _, err := Install(t.Context(), table, "/ts", "none",
		InstallOptions{FS: fsys}); !errors.Is(err, fault.ErrNotFound) {
		t.Errorf("no such tablet: %v", err)
	}
}

// A tablet with writes in its log is not empty.
func TestInstallRefusesTabletsWithWrites(t *testing.T) {
	c := kudutest.Read(t, "wal-only")
	fsys := c.Unpack(t)
	table := filledTable(t)
	before := contents(t, fsys, "/")
	refused := 0
	for _, tablet := range c.Tablets {
		_, err := Install(t.Context(), table, "/fs", tablet.ID, InstallOptions{FS: fsys})
		if err == nil {
			t.Errorf("tablet %s: no error", tablet.ID)
		} else if strings.Contains(err.Error(), "its log has writes") {
			refused++
		}
	}
	if refused == 0 || refused == len(c.Tablets) || !maps.Equal(before, contents(t, fsys, "/")) {
		t.Errorf("%d of %d tablets have writes, or the directory was changed", refused, len(c.Tablets))
	}
}

// The retention of a tablet that is shorter than the table's gives a warning.
func TestInstallWarnsOfRetention(t *testing.T) {
	table := filledTable(t)
	for keep, want := range map[int32]int{-1: 0, 60: 1} {
		fsys := vfs.NewMem()
		ids := emptyTablets(t, fsys, table, table.Schema(), 1, func(_ int, m *kudupb.TabletSuperBlockPB) {
			m.ExtraConfig.HistoryMaxAgeSec = &keep
		})
		warned := 0
		if _, err := Install(t.Context(), table, "/ts", ids[0], InstallOptions{FS: fsys, Warn: func(string) {
			warned++
		}}); err != nil || warned != want {
			t.Errorf("retention of %d s: %d warnings, %v", keep, warned, err)
		}
	}
}

// Replicas of the tablet on other servers, and entries missing in its log, give a warning.
func TestInstallWarnsOfReplicasAndLog(t *testing.T) {
	table := filledTable(t)
	fsys := vfs.NewMem()
	must.Get(kudufs.Format(fsys, "/fs"))(t)
	id := emptyTabletIn(t, fsys, "/fs", table, unchanged)
	d := must.Get(kudufs.Open(fsys, "/fs"))(t)
	m := must.Get(d.Consensus(id))(t)
	voter := m.CommittedConfig.Peers[0]
	m.CommittedConfig.Peers = append(m.CommittedConfig.Peers, voter, voter)
	logs, _ := d.LogDirs(id)
	other := kuduwal.NewSegment(strings.Repeat("0", 32), kuduschema.Message(table.Schema()), 0)
	err := errors.Join(kudufs.Replace(fsys, d.ConsensusPath(id), kudufs.AppendContainer(nil, kudufs.ConsensusKind, m)),
		kudufs.Replace(fsys, filepath.Join(logs, kuduwal.FirstSegment), other))
	must.Do(t, err)
	var warnings []string
	must.Get(Install(t.Context(), table, "/fs", id, InstallOptions{FS: fsys, Warn: func(text string) {
		warnings = append(warnings, text)
	}}))(t)
	if all := strings.Join(warnings, "\n"); len(warnings) != 2 || !strings.Contains(all, "3 voters") ||
		!strings.Contains(all, "the header names tablet") {
		t.Errorf("warnings %q", warnings)
	}
}

// The retention of an export is not shorter than the table's.
func TestRetentionIsRoundedUp(t *testing.T) {
	for history, want := range map[time.Duration]int32{oribi.HistoryForever: -1, 0: 0, 1: 1, time.Second: 1,
		1500 * time.Millisecond: 2, 1<<63 - 1: 1<<31 - 1} {
		must.Equal(t, seconds(history), want, history)
	}
}

// filledTable has rows, changes of them in files, and a dropped column with changes.
func filledTable(t *testing.T) *oribi.Table {
	t.Helper()
	s := openStore(t, vfs.NewMem())
	columns := must.Get(schema.New([]schema.Column{{Name: "k", Type: schema.Int64},
		{Name: "s", Type: schema.String, Nullable: true},
		{Name: "gone", Type: schema.Int32, Nullable: true}}, 1))(t)
	table := must.Get(s.CreateTable("t", columns))(t)
	write := func(n int, row func(i int) oribi.Row) {
		t.Helper()
		b := s.NewBatch()
		for i := range n {
			b.Upsert(table, row(i))
		}
		must.Get(b.Commit(t.Context()))(t)
		must.Do(t, table.Flush(t.Context()))
	}
	write(50, func(i int) oribi.Row { return oribi.Row{"k": int64(i), "s": fmt.Sprint(i), "gone": int32(i)} })
	write(10, func(i int) oribi.Row { return oribi.Row{"k": int64(5 * i), "s": nil, "gone": int32(-i)} })
	must.Do(t, table.Alter(t.Context(), oribi.DropColumn("gone")))
	return table
}

// A kill or a power cut at any operation of an installation leaves the tablet as it was or
// complete, and the other tablets as they were, in a directory without defects: with both block
// managers, in one and in several data directories, and for the rows of a partition.
func TestInstallSurvivesCrashes(t *testing.T) {
	table := filledTable(t)
	for _, test := range []struct {
		name   string // of the directories of a server; "": a new one
		change func(int, *kudupb.TabletSuperBlockPB)
		parts  bool
	}{
		{"", unchanged, false},
		{"", buckets(2), true},
		{"multi-dir", unchanged, false},
		{"multi-dir", buckets(2), true},
		{"file-blocks", unchanged, false},
		{"file-blocks", buckets(2), true},
	} {
		t.Run(fmt.Sprintf("%s %v", test.name, test.parts), func(t *testing.T) {
			t.Parallel()
			installCrashes(t, table, test.name, test.change, InstallOptions{PartitionOnly: test.parts})
		})
	}
}

// emptyTabletIn adds an empty tablet to the directories of a server, in the data directories of its
// first tablet.
func emptyTabletIn(
	t *testing.T, fsys vfs.FS, dir string, table *oribi.Table, change func(int, *kudupb.TabletSuperBlockPB),
) (id string) {
	t.Helper()
	d := must.Get(kudufs.Open(fsys, dir))(t)
	tablets, _ := must.Get2(d.Tablets())(t)
	m := newSuperblock(table, table.Schema())
	if len(tablets) > 0 {
		other := must.Get(d.Superblock(tablets[0]))(t)
		m.DataDirGroup = other.DataDirGroup
	}
	for i, c := range m.Schema.Columns {
		c.Id = proto.Uint32(uint32(100 - i))
	}
	change(0, m)
	if id = string(m.TabletId); d.CreateTablet(m, kuduwal.FirstSegment,
		kuduwal.NewSegment(id, m.Schema, m.GetSchemaVersion())) != nil {
		t.Fatal("no tablet was made")
	}
	return id
}

func installCrashes(
	t *testing.T, table *oribi.Table, name string, change func(int, *kudupb.TabletSuperBlockPB), o InstallOptions,
) {
	mem, dir := vfs.NewMem(), "/fs"
	if name != "" {
		mem = kudutest.Read(t, name).Unpack(t)
	} else if _, err := kudufs.Format(mem, dir); err != nil {
		t.Fatal(err)
	}
	id := emptyTabletIn(t, mem, dir, table, change)
	others := func(d *kudu.Directory) (rows []string) {
		for _, other := range d.Tablets() {
			if other.ID != id && other.Readable() {
				rows = append(rows, kuduRows(t, openKudu(t, d, other.ID), mvcc.Max-1)...)
			}
		}
		return rows
	}
	before := others(openDirectory(t, mem))
	done := mem.Clone()
	o.FS = done
	result := must.Get(Install(t.Context(), table, dir, id, o))(t)
	want := kuduRows(t, openKudu(t, openDirectory(t, done), id), mvcc.Max-1)
	if all := len(tableRows(t, table)); int64(len(want)) != result.Rows || (len(want) == all) == o.PartitionOnly ||
		len(want) == 0 {
		t.Errorf("%d rows of %d, the result has %d", len(want), all, result.Rows)
	}
	disk := crashfs.New(mem)
	seen := map[int]int{} // states, by rows
	r, every := rand.New(rand.NewPCG(1, 1)), 1
	if name != "" {
		every = seedtest.Stride(5)
	}
	check := func(at string, state *vfs.Mem) {
		d, err := kudu.Open(dir, kudu.Options{FS: state})
		must.Do(t, err, at)
		verified(t, d)
		rows := kuduRows(t, openKudu(t, d, id), mvcc.Max-1)
		if len(rows) != 0 && !slices.Equal(rows, want) {
			t.Errorf("%s: %d rows", at, len(rows))
		}
		must.Equal(t, others(d), before, at)
		seen[len(rows)]++
	}
	disk.OnOperation(func(op crashfs.Operation) error {
		if p := op.Point(); op.N%every == 0 || strings.Contains(op.Name, "tablet-meta") {
			for _, state := range []*vfs.Mem{p.Kill(), p.Cut(), p.Random(r)} {
				check(fmt.Sprintf("%s %s", op.Op, op.Name), state)
			}
		}
		return nil
	})
	o.FS = disk
	must.Get(Install(t.Context(), table, dir, id, o))(t)
	disk.OnOperation(nil)
	check("the end", disk.Point().Cut())
	if seen[0] < 10 || seen[len(want)] < 2 {
		t.Errorf("states by rows: %v", seen)
	}
}

// Compactions of single columns leave undo files that overlap in time. A server would merge them in
// a wrong order, so a tablet gets files that do not.
func TestHandedOverDeltasAreOrderedByTime(t *testing.T) {
	s := openStore(t, vfs.NewMem())
	columns := must.Get(schema.New([]schema.Column{{Name: "k", Type: schema.Int64}, {Name: "b", Type: schema.Int64},
		{Name: "c", Type: schema.Int64}}, 1))(t)
	table := must.Get(s.CreateTable("t", columns))(t)
	var times []mvcc.Timestamp
	for i := range int64(3) {
		b := s.NewBatch()
		b.Upsert(table, oribi.Row{"k": int64(7), "b": i, "c": -i})
		ts, err := b.Commit(t.Context())
		if err == nil {
			err = table.Flush(t.Context())
		}
		if err == nil {
			_, err = table.FlushDeltas(t.Context())
		}
		must.Do(t, err)
		times = append(times, ts)
	}
	for _, column := range []string{"b", "c"} {
		must.Get(table.CompactMajor(t.Context(), column))(t)
	}
	_, d, result := exported(t, table)
	about := must.Get(d.Describe(result.Tablet))(t)
	if set := about.Tablets[0].RowSets[0]; len(set.Undo) != 1 || len(set.Redo) != 0 {
		t.Errorf("%d undo files and %d redo files, want one undo file", len(set.Undo), len(set.Redo))
	}
	from := openKudu(t, d, result.Tablet)
	for _, ts := range times {
		must.Equal(t, kuduRows(t, from, ts), tableRows(t, table, oribi.AsOf(ts)), uint64(ts))
	}
}
