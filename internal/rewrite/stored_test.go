package rewrite

import (
	"bytes"
	"errors"
	"fmt"
	"hash/maphash"
	"math/rand/v2"
	"testing"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/cfile"
	"github.com/oribi-db/oribi/change"
	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/internal/seedtest"
	"github.com/oribi-db/oribi/mvcc"
	"github.com/oribi-db/oribi/rowset"
	"github.com/oribi-db/oribi/schema"
)

// storedSchema has columns whose cblocks can be written as they are stored, and one in which they
// cannot.
var storedSchema = func() *schema.Schema {
	columns := []schema.Column{
		{ID: 10, Name: "a", Type: schema.Int32},
		{ID: 11, Name: "b", Type: schema.Int32},
		{ID: 12, Name: "n", Type: schema.Int64},
		{ID: 13, Name: "word", Type: schema.String},
		{ID: 14, Name: "text", Type: schema.String, Encoding: schema.Plain},
		{ID: 15, Name: "prefix", Type: schema.String, Encoding: schema.Prefix},
		{ID: 16, Name: "f", Type: schema.Double, Nullable: true},
		{ID: 17, Name: "flag", Type: schema.Bool, Encoding: schema.Plain},
		{ID: 18, Name: "list", Type: schema.Array, Element: schema.Int32},
	}
	for i := range columns {
		columns[i].BlockBytes = 8 << 10
	}
	columns[7].BlockBytes = 512
	return mustSchema(columns, 2)
}()

// storedRows returns rows of storedSchema with the given keys. Each of their cells depends on its
// key; words come in another order from one rowset to the next.
func storedRows(keys []int, set int) *change.Rows {
	rows := &change.Rows{Batch: batch.New(storedSchema.Columns, 0)}
	for i, k := range keys {
		f := int32Cell(k)
		cells := [][]byte{int32Cell(k / 10), int32Cell(k % 10), append(int32Cell(k*7919), 0, 0, 0, 0),
			fmt.Append(nil, "word ", (k/100+set%4)%5),
			fmt.Append(nil, "a text of ", k*k), fmt.Append(nil, "prefix ", k), append(f, f...), {byte(k >> 8 & 1)},
			schema.AppendArray([]byte{}, schema.Int32, [][]byte{f, nil}[:k%3])}
		if k%11 < 3 {
			cells[6] = nil
		}
		for c, v := range rows.Batch.Columns {
			v.AppendCell(cells[c])
		}
		rows.Keys = append(rows.Keys, encodeKey(storedSchema, cells[:2]))
		rows.Undo = append(rows.Undo, deletion(mvcc.Timestamp(1+k/1000)))
		rows.Undo[len(rows.Undo)-1].Row = uint32(i)
	}
	rows.Batch.Len = len(keys)
	return rows
}

// storedSet returns a rowset of every step-th key in [from, to), of which those in [low, high) have
// a redo.
func storedSet(t *testing.T, d *disk, set, from, to, step, low, high int) *rowset.DiskRowSet {
	w := must.Get(rowset.NewWriter(d, storedSchema, uint64(set)))(t)
	for from < to {
		var keys []int
		for ; from < to && len(keys) < batch.WindowRows; from += step {
			keys = append(keys, from)
		}
		rows := storedRows(keys, set)
		for i, k := range keys {
			if k >= low && k < high {
				l := change.AppendColumn(change.AppendUpdateHeader(nil, change.Update), 14, fmt.Append(nil, "new ", k))
				rows.Redo = append(rows.Redo, change.Delta{Row: uint32(i), TS: 50, List: l})
			}
		}
		must.Do(t, w.Append(rows))
	}
	row := must.Get(w.Finish())(t)
	return reopen(t, d, storedSchema, row)
}

// storedSets returns rowsets that overlap in some stretches: the ends of the first two, few rows in
// the midst of the third, and those in the fourth that have redos.
//
//	0 |-------------|             |----------------------|
//	1           |-------|                     |-|
//	2                                                        |------rr------|
func storedSets(t *testing.T, d *disk) []*rowset.DiskRowSet {
	return []*rowset.DiskRowSet{
		storedSet(t, d, 1, 0, 9000, 2, 0, 0),
		storedSet(t, d, 2, 8001, 20_001, 2, 0, 0),
		storedSet(t, d, 3, 20_002, 36_002, 2, 0, 0),
		storedSet(t, d, 4, 28_001, 28_021, 2, 0, 0),
		storedSet(t, d, 5, 40_000, 50_000, 1, 48_000, 48_100),
	}
}

func historiesOf(t *testing.T, sets []*rowset.DiskRowSet) (inputs []Input) {
	for _, d := range sets {
		h := must.Get(d.Histories(mvcc.Everything))(t)
		inputs = append(inputs, h)
	}
	return inputs
}

// rowHashes returns a hash of each row of a result with all its versions.
func rowHashes(t *testing.T, res *result, seed maphash.Seed) (hashes []uint64) {
	var h maphash.Hash
	h.SetSeed(seed)
	must.Do(t, res.histories(func(rows *change.Rows, i int, undo, redo []change.Delta) error {
		h.Reset()
		h.Write(rows.Keys[i])
		for _, v := range rows.Batch.Columns {
			cell := v.Cell(i)
			h.Write([]byte{byte(len(cell))})
			if cell != nil {
				h.WriteByte(1)
				h.Write(cell)
			}
		}
		for _, list := range [2][]change.Delta{undo, redo} {
			for _, d := range list {
				h.Write([]byte{byte(d.TS), byte(len(d.List))})
				h.Write(d.List)
			}
		}
		hashes = append(hashes, h.Sum64())
		return nil
	}))
	return hashes
}

// notStored is an input whose rows must be decoded.
type notStored struct{ Input }

// A merge that writes stretches of its inputs as they are stored has the same rows, with the same
// versions, as a merge that decodes all rows. Where the stretch begins with a whole cblock, so does
// a cblock of the output.
func TestStoredStretchesHaveTheSameRows(t *testing.T) {
	d := newDisk()
	sets, seed := storedSets(t, d), maphash.MakeSeed()
	for _, test := range []struct {
		target int64
		floor  mvcc.Timestamp
	}{{0, mvcc.Min}, {100_000, 30}} {
		var decoded []Input
		for _, in := range historiesOf(t, sets) {
			decoded = append(decoded, notStored{in})
		}
		want := must.Get(run(storedSchema, test.floor, test.target, decoded...))(t)
		got := must.Get(run(storedSchema, test.floor, test.target, historiesOf(t, sets)...))(t)
		must.Equal(t, got.stats, want.stats, test)
		a, b := rowHashes(t, got, seed), rowHashes(t, want, seed)
		for i := range b {
			if len(a) != len(b) || a[i] != b[i] {
				t.Fatalf("%+v: %d rows, want %d; row %d differs", test, len(a), len(b), i)
			}
		}
		if test.target == 0 {
			checkBlockBegins(t, got.sets[0], 4500+6000+8000+10)
		}
	}
}

// checkBlockBegins checks that a cblock of each column that can have stored ones begins at a row.
func checkBlockBegins(t *testing.T, d *rowset.DiskRowSet, row batch.Ordinal) {
	t.Helper()
	for col := range storedSchema.Columns {
		f := must.Get(d.File(col))(t)
		i := f.Info()
		if _, first, _, err := f.BlockOf(row); err != nil || first != row && !i.Array && i.Encoding != schema.Prefix {
			t.Errorf("column %d: the cblock of row %d begins at row %d, %v", col, row, first, err)
		}
	}
}

// Damage in a cblock is found by the merge that would copy it, which names the rowset. (The input
// reads the columns of the key.)
func TestStoredStretchWithDamage(t *testing.T) {
	r := rand.New(rand.NewPCG(seedtest.Seed(t), 3))
	for range 10 {
		d := newDisk()
		sets := []*rowset.DiskRowSet{storedSet(t, d, 1, 0, 3000, 1, 0, 0), storedSet(t, d, 2, 3000, 6000, 1, 0, 0)}
		m := sets[1].Metadata()
		b := d.blocks[m.Columns[storedSchema.Keys+r.IntN(len(m.Columns)-storedSchema.Keys)].Block]
		f, err := cfile.Open(b, cfile.ReaderOptions{Arrays: true})
		must.Do(t, err)
		blocks := must.Get(f.BlockPointers())(t)
		p := blocks[r.IntN(len(blocks))]
		b.Bytes = bytes.Clone(b.Bytes)
		b.Bytes[p.Offset+int64(r.IntN(int(p.Size)))] ^= 1 << r.IntN(8)
		_, err = run(storedSchema, mvcc.Min, 0, historiesOf(t, sets)...)
		var read *rowset.ReadError
		must.Fail(t, err, fault.ErrCorrupt)
		if !errors.As(err, &read) || read.ID != 2 {
			t.Errorf("%v, want rowset 2", err)
		}
	}
}
