package rowset

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/block"
	"github.com/oribi-db/oribi/bloom"
	"github.com/oribi-db/oribi/change"
	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/internal/seedtest"
	"github.com/oribi-db/oribi/mvcc"
	"github.com/oribi-db/oribi/scan"
	"github.com/oribi-db/oribi/schema"
)

// rewritten writes the rowset again with its existing redos and an empty delta mem store.
func (w *testRowSet) rewritten(t *testing.T, r *rand.Rand) *Metadata {
	t.Helper()
	w.disk = newDisk()
	return w.write(t, r, w.end)
}

func TestMetadataRowCountsWhatWasWritten(t *testing.T) {
	withTestRowSets(t, func(t *testing.T, r *rand.Rand, w *testRowSet) {
		row := w.rewritten(t, r)
		live, newest, bytesWritten := int64(0), mvcc.Min, int64(0)
		undos, redos := false, false
		for i := range w.rows {
			m := &w.rows[i]
			if _, there := m.at(len(m.events)); there {
				live++
			}
			newest = max(newest, m.events[len(m.events)-1].ts)
			undos, redos = true, redos || m.base < len(m.events)
		}
		for _, b := range w.disk.blocks {
			bytesWritten += b.Size()
		}
		first, last := w.rows[0].key, w.rows[len(w.rows)-1].key
		switch {
		case row.ID != 17 || row.Rows != int64(len(w.rows)) || row.LiveRows != live:
			t.Errorf("rowset %d: %d rows, %d live, want %d, %d", row.ID, row.Rows, row.LiveRows, len(w.rows), live)
		case !bytes.Equal(row.MinKey, first) || !bytes.Equal(row.MaxKey, last):
			t.Errorf("bounds %x, %x, want %x, %x", row.MinKey, row.MaxKey, first, last)
		case row.MaxTimestamp != newest:
			t.Errorf("newest timestamp %d, want %d", row.MaxTimestamp, newest)
		case row.Bytes != bytesWritten || len(row.Blocks(nil)) != len(w.disk.blocks):
			t.Errorf("%d bytes in %d blocks, want %d in %d", row.Bytes, len(row.Blocks(nil)), bytesWritten,
				len(w.disk.blocks))
		case (len(row.Undo) == 1) != undos || (len(row.Redo) == 1) != redos ||
			(row.KeyIndex != 0) == w.schema.SingleKey():
			t.Errorf("undo %v, redo %v, key index %d", row.Undo, row.Redo, row.KeyIndex)
		case (row.LastDurableDMS == 0) != redos || !redos && row.LastDurableDMS != -1:
			t.Errorf("last durable DMS %d", row.LastDurableDMS)
		}
		must.Do(t, must.Err(DecodeMetadata(row.Encode())))
		set := must.Get(Open(w.schema, row, Options{Blocks: w.disk}))(t)
		if id, err := set.CheckFiles(); err != nil {
			t.Errorf("block %d: %v", id, err)
		}
		must.Do(t, set.CheckRowFile())
		must.Do(t, set.CheckBounds())
		set.Unref()
		must.Equal(t, w.disk.open.Load(), 0, "blocks are open after the last reference was released")
	})
}

func TestRollingWriterRollsAtTheSize(t *testing.T) {
	r := seedtest.Rand(t)
	s := mustSchema([]schema.Column{{ID: 1, Name: "k", Type: schema.Int64},
		{ID: 2, Name: "v", Type: schema.Binary, BlockBytes: 512}}, 1)
	const target = 40 << 10
	d := newDisk()
	next := uint64(30)
	w := NewRollingWriter(d, s, func() uint64 { next++; return next - 1 }, target)
	must.Do(t, w.Append(&change.Rows{Batch: batch.New(s.Columns, 0)}))
	must.Equal(t, next, 30, "next rowset")
	var keys [][]byte
	var largest int64 // of one Append, about
	for i := 0; i < 3000; {
		rows := &change.Rows{Batch: batch.New(s.Columns, 0)}
		size := int64(0)
		for range 1 + r.IntN(100) {
			cells := [][]byte{{byte(i), byte(i >> 8), 0, 0, 0, 0, 0, 0}, make([]byte, r.IntN(200))}
			for k := range cells[1] {
				cells[1][k] = byte(r.Uint32())
			}
			for c, v := range rows.Batch.Columns {
				v.AppendCell(cells[c])
				size += int64(len(cells[c])) + 10
			}
			key := []byte{0x80, 0, 0, 0, 0, 0, byte(i >> 8), byte(i)}
			rows.Keys = append(rows.Keys, key)
			rows.Undo = append(rows.Undo,
				change.Delta{Row: uint32(len(rows.Keys) - 1), TS: 5, List: change.AppendDelete(nil)})
			keys = append(keys, key)
			i++
		}
		rows.Batch.Len = len(rows.Keys)
		largest = max(largest, size)
		must.Do(t, w.Append(rows))
	}
	out := must.Get(w.Finish())(t)
	if len(out) < 5 || next != 30+uint64(len(out)) {
		t.Fatalf("%d rowsets, next %d", len(out), next)
	}
	at := 0
	for i, row := range out {
		// A file reports its size up to its open cblock, so a rowset may become larger by the
		// cblocks of its files and their ends.
		if slack := largest + 32<<10; row.Bytes > target+slack || i < len(out)-1 && row.Bytes < target {
			t.Errorf("rowset %d of %d has %d bytes, target %d", i, len(out), row.Bytes, target)
		}
		if row.ID != 30+uint64(i) || !bytes.Equal(row.MinKey, keys[at]) ||
			!bytes.Equal(row.MaxKey, keys[at+int(row.Rows)-1]) {
			t.Fatalf("rowset %d: number %d, bounds %x, %x", i, row.ID, row.MinKey, row.MaxKey)
		}
		at += int(row.Rows)
		set := must.Get(Open(s, row, Options{Blocks: d}))(t)
		if id, err := set.CheckFiles(); err != nil {
			t.Errorf("rowset %d: block %d: %v", i, id, err)
		}
		set.Unref()
	}
	must.Equal(t, at, len(keys), "rows")
}

func TestRollingWriterWithoutRowsMakesNothing(t *testing.T) {
	s := mustSchema([]schema.Column{{Name: "k", Type: schema.Int64}}, 1)
	d := newDisk()
	out, err := NewRollingWriter(d, s, func() uint64 { t.Error("a rowset ID was assigned"); return 0 }, 0).Finish()
	must.Do(t, err)
	must.Equal(t, len(out), 0, "rowsets")
	must.Equal(t, len(d.blocks), 0, "blocks")
}

// fullDisk refuses writes after a number of bytes. Sinks are written in parallel.
type fullDisk struct {
	*disk
	left atomic.Int64
}

type fullSink struct {
	*block.Memory
	d *fullDisk
}

var errFull = errors.New("full")

func (s *fullSink) Write(p []byte) (int, error) {
	if s.d.left.Add(-int64(len(p))) < 0 {
		return 0, errFull
	}
	return s.Memory.Write(p)
}

func (d *fullDisk) Create() (block.Sink, error) {
	s, err := d.disk.Create()
	return &fullSink{s.(*block.Memory), d}, err
}

func (d *fullDisk) Finish(s block.Sink) error { return d.disk.Finish(s.(*fullSink).Memory) }

func TestWriterReturnsNoSpaceErrors(t *testing.T) {
	r := seedtest.Rand(t)
	w := newTestRowSet(t, r, randomSchema(r, schema.Int32, schema.String), 200)
	written := 0
	for _, b := range w.disk.blocks {
		written += len(b.Bytes)
	}
	for left := 0; left < written/2; left += 1 + written/40 {
		d := &fullDisk{disk: newDisk()}
		d.left.Store(int64(left))
		out, err := NewWriter(d, w.schema, 1)
		if err == nil {
			err = out.Append(w.chunk(0, len(w.rows), w.end))
		}
		if err == nil {
			_, err = out.Finish()
		}
		must.Fail(t, err, errFull, left, "bytes of", written)
	}
}

// The rowset was written before columns were added and dropped. The other columns are found by ID,
// independent of their names and positions.
func TestReadingASchemaThatHasChanged(t *testing.T) {
	r := seedtest.Rand(t)
	w := newTestRowSet(t, r,
		mustSchema([]schema.Column{{ID: 1, Name: "k", Type: schema.Int32}, {ID: 2, Name: "gone", Type: schema.Int64},
			{ID: 3, Name: "stays", Type: schema.String, Nullable: true}}, 1), 500)
	row := w.rewritten(t, r)
	def := []byte("default")
	now := mustSchema([]schema.Column{{ID: 1, Name: "k", Type: schema.Int32},
		{ID: 7, Name: "nullable", Type: schema.Int64, Nullable: true},
		{ID: 3, Name: "renamed", Type: schema.String, Nullable: true},
		{ID: 8, Name: "defaulted", Type: schema.String, Default: []byte("of new rows"), ReadDefault: def},
		{ID: 9, Name: "both", Type: schema.Int8, Nullable: true, ReadDefault: []byte{5}},
		{ID: 10, Name: "gone", Type: schema.Int64, Nullable: true}}, 1)
	set := must.Get(Open(now, row, Options{Blocks: w.disk}))(t)
	all := []int{0, 1, 2, 3, 4, 5}
	wantOf := func(old [][]byte) [][]byte { return [][]byte{old[0], nil, old[2], def, {5}, nil} }
	filter := batch.And(test(batch.Predicate{Column: "defaulted", ID: 8, Type: schema.String, Op: batch.Eq,
		Values: [][]byte{def}}),
		test(batch.Predicate{Column: "nullable", ID: 7, Type: schema.Int64, Op: batch.IsNull}))

	for _, snap := range []mvcc.Snapshot{0, 5, 20, 40, mvcc.Everything} {
		it := must.Get(newIterator(set, scan.Options{Schema: now, Columns: all, Snapshot: snap, Filter: filter}))(t)
		var got [][][]byte
		for it.Next() {
			b := it.Batch()
			for i := b.Selection.Next(0); i >= 0; i = b.Selection.Next(i + 1) {
				var cells [][]byte
				for _, v := range b.Columns {
					cells = append(cells, bytes.Clone(v.Cell(i)))
				}
				got = append(got, cells)
			}
		}
		must.Do(t, it.Close())
		for i := range w.rows {
			m := &w.rows[i]
			old, live := m.at(m.before(snap))
			cells, there := must.Get2(set.Get(bloom.MakeProbe(m.key), snap, all, nil))(t)
			must.Equal(t, there, live, "row", i, "at", snap)
			if !live {
				continue
			}
			if want := wantOf(old); len(got) == 0 || !slices.EqualFunc(cells, want, sameCell) ||
				!slices.EqualFunc(got[0], want, sameCell) {
				t.Fatalf("row %d at %d: read %x, scanned %x, want %x", i, snap, cells, got[:min(1, len(got))], want)
			}
			got = got[1:]
		}
		must.Equal(t, len(got), 0, "rows too many at", snap)
	}
	h := must.Get(set.Histories(mvcc.Everything))(t)
	rows, err := h.Next()
	if err != nil || rows == nil {
		t.Fatal(rows, err)
	}
	for i := range rows.Keys {
		old, _ := w.rows[i].at(w.rows[i].base)
		for c, want := range wantOf(old) {
			if got := rows.Batch.Columns[c].Cell(i); !sameCell(got, want) {
				t.Fatalf("row %d: base of column %d is %x, want %x", i, c, got, want)
			}
		}
	}
}

func TestOpenRefusesMissingBaseColumn(t *testing.T) {
	r := seedtest.Rand(t)
	w := newTestRowSet(t, r,
		mustSchema([]schema.Column{{ID: 1, Name: "k", Type: schema.Int32},
			{ID: 2, Name: "v", Type: schema.Int32}}, 1), 20)
	for _, columns := range [][]schema.Column{
		{{ID: 1, Name: "k", Type: schema.Int32}, {ID: 3, Name: "new", Type: schema.Int32}},
		{{ID: 3, Name: "new", Type: schema.Int32}, {ID: 1, Name: "k", Type: schema.Int32}},
	} {
		must.Fail(t, must.Err(Open(mustSchema(columns, 1), w.set.Metadata(),
			Options{Blocks: w.disk})), fault.ErrCorrupt, columns)
	}
	compound := mustSchema([]schema.Column{{ID: 1, Name: "k", Type: schema.Int32},
		{ID: 2, Name: "v", Type: schema.Int32}}, 2)
	must.Fail(t, must.Err(Open(compound, w.set.Metadata(), Options{Blocks: w.disk})), fault.ErrCorrupt,
		"without a key index")
}

func TestFileRefusesAnotherColumnsFile(t *testing.T) {
	r := seedtest.Rand(t)
	w := newTestRowSet(t, r,
		mustSchema([]schema.Column{{ID: 1, Name: "k", Type: schema.Int32},
			{ID: 2, Name: "v", Type: schema.Int64, Nullable: true}}, 1), 20)
	for name, change := range map[string]func(c *schema.Column){
		"type":     func(c *schema.Column) { c.Type = schema.Timestamp },
		"nullable": func(c *schema.Column) { c.Nullable = false },
	} {
		columns := slices.Clone(w.schema.Columns)
		change(&columns[1])
		set := must.Get(Open(mustSchema(columns, 1), w.set.Metadata(), Options{Blocks: w.disk}))(t)
		before := w.disk.open.Load()
		for range 3 {
			must.Fail(t, must.Err(set.File(1)), fault.ErrCorrupt, name)
		}
		must.Equal(t, w.disk.open.Load(), before, name, w.disk.open.Load()-before, "blocks stay open after failures")
		set.Unref()
	}
	short := *w.set.Metadata()
	short.Rows--
	set := must.Get(Open(w.schema, &short, Options{Blocks: w.disk}))(t)
	must.Fail(t, must.Err(set.File(0)), fault.ErrCorrupt, "rows")
}

func TestWriterRefusesMalformedBatches(t *testing.T) {
	s := mustSchema([]schema.Column{{ID: 1, Name: "k", Type: schema.Int64},
		{ID: 2, Name: "v", Type: schema.String},
		{ID: 3, Name: "a", Type: schema.Array, Element: schema.Int64, Nullable: true}}, 1)
	for name, bend := range map[string]func(*change.Rows){
		"no batch":               func(r *change.Rows) { r.Batch = nil },
		"too few columns":        func(r *change.Rows) { r.Batch.Columns = r.Batch.Columns[:2] },
		"no vector":              func(r *change.Rows) { r.Batch.Columns[1] = nil },
		"fewer cells than keys":  func(r *change.Rows) { r.Batch.Columns[1].Reset(1) },
		"short data":             func(r *change.Rows) { r.Batch.Columns[0].Data = r.Batch.Columns[0].Data[:8] },
		"short strings":          func(r *change.Rows) { r.Batch.Columns[1].Bytes = nil },
		"another type":           func(r *change.Rows) { r.Batch.Columns[0] = batch.NewVector(schema.Int32, 2) },
		"arrays of short cells":  func(r *change.Rows) { r.Batch.Columns[2].Bytes = r.Batch.Columns[2].Bytes[:1] },
		"arrays with a bad cell": func(r *change.Rows) { r.Batch.Columns[2].SetCell(0, []byte{1}) },
		"arrays in array form": func(r *change.Rows) {
			v := batch.NewArrays(schema.Int64)
			v.AppendArray(nil)
			v.AppendArray(nil)
			r.Batch.Columns[2] = v
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := must.Get(NewWriter(newDisk(), s, 1))(t)
			rows := &change.Rows{Batch: batch.New(s.Columns, 0)}
			for i := range 2 {
				rows.Batch.Columns[0].AppendCell([]byte{byte(i), 0, 0, 0, 0, 0, 0, 0})
				rows.Batch.Columns[1].AppendCell([]byte("text"))
				rows.Batch.Columns[2].AppendCell(schema.AppendArray(nil, schema.Int64, nil))
				rows.Keys = append(rows.Keys, []byte{0x80, 0, 0, 0, 0, 0, 0, byte(i)})
			}
			rows.Batch.Len = 2
			bend(rows)
			want := fault.ErrSchema
			if name == "arrays with a bad cell" {
				want = fault.ErrCorrupt
			}
			must.Fail(t, w.Append(rows), want, "Append")
		})
	}
}
