package rewrite

import (
	"bytes"
	"cmp"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/change"
	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/internal/seedtest"
	"github.com/oribi-db/oribi/mvcc"
	"github.com/oribi-db/oribi/schema"
)

// copyOfRow is one copy of a row in one input.
type copyOfRow struct {
	key        []byte
	cells      [][]byte
	undo, redo []change.Delta
}

// wide has a key of two columns, and all types, most of them nullable.
var wide = func() *schema.Schema {
	columns := []schema.Column{{ID: 1, Name: "k", Type: schema.String}, {ID: 2, Name: "l", Type: schema.Int16}}
	for t := schema.Uint8; t <= schema.Array; t++ {
		if !t.Valid() {
			continue
		}
		c := schema.Column{ID: schema.ColumnID(10 + t), Name: fmt.Sprint("c", int(t)), Type: t, Nullable: t%4 != 0}
		switch {
		case t.Decimal():
			c.Precision = 9 * int(1+t-schema.Decimal32) // 9, 18, 27
		case t == schema.Varchar:
			c.Length = 100
		case t == schema.Array:
			c.Element = schema.Int32
		}
		columns = append(columns, c)
	}
	return mustSchema(columns, 2)
}()

func wideCell(r *rand.Rand, c *schema.Column) []byte {
	switch {
	case c.Nullable && r.IntN(4) == 0:
		return nil
	case c.Type == schema.Array:
		return schema.AppendArray([]byte{}, schema.Int32, make([][]byte, r.IntN(3)))
	case c.Type.Variable():
		return fmt.Append([]byte{}, "text "[:r.IntN(6)], r.IntN(20))
	case c.Type == schema.Bool:
		return []byte{byte(r.IntN(2))}
	}
	return append([]byte{byte(r.IntN(200))}, make([]byte, c.Type.Width()-1)...)
}

// wideKey returns key cells, of which many have encodings with the same first 8 bytes, and some
// have none of the string.
func wideKey(r *rand.Rand, keys int) [][]byte {
	n := r.IntN(keys)
	return [][]byte{[]byte("the same letters")[:r.IntN(17)], {byte(n), byte(n >> 8)}}
}

// randomCopies returns the copies of one key, oldest first: all but the last are deleted.
func randomCopies(r *rand.Rand, s *schema.Schema, key [][]byte, n int) (out []copyOfRow) {
	ts := mvcc.Timestamp(1 + r.IntN(3))
	next := func() mvcc.Timestamp { ts += mvcc.Timestamp(1 + r.IntN(3)); return ts }
	update := func() change.List {
		l := change.AppendUpdateHeader(nil, change.Update)
		for c := s.Keys; c < len(s.Columns); c++ {
			if r.IntN(5) == 0 || c == len(s.Columns)-1 && len(l) == 1 {
				l = change.AppendColumn(l, s.Columns[c].ID, wideCell(r, &s.Columns[c]))
			}
		}
		return l
	}
	for i := range n {
		c := copyOfRow{key: encodeKey(s, key), cells: slices.Clone(key), undo: []change.Delta{deletion(next())}}
		for k := s.Keys; k < len(s.Columns); k++ {
			c.cells = append(c.cells, wideCell(r, &s.Columns[k]))
		}
		for range max(0, r.IntN(6)-3) {
			c.undo = slices.Insert(c.undo, 0, changed(next(), update()))
		}
		for range max(0, r.IntN(6)-3) {
			c.redo = append(c.redo, changed(next(), update()))
		}
		if i < n-1 || r.IntN(10) == 0 {
			c.redo = append(c.redo, deletion(next()))
		}
		out = append(out, c)
	}
	return out
}

// copiesInput returns the copies in windows of random sizes, with byte strings as codes in some,
// and overwrites each window at the next call.
type copiesInput struct {
	r      *rand.Rand
	schema *schema.Schema
	copies []copyOfRow
	coded  []*batch.Dictionary // by column; nil for a column of byte strings
	last   *change.Rows
}

func (in *copiesInput) Next() (*change.Rows, error) {
	if in.last != nil {
		for _, v := range in.last.Batch.Columns {
			clear(v.Codes)
		}
		spoil(in.last)
		in.last = nil
	}
	n := min(len(in.copies), 1+in.r.IntN(1+in.r.IntN(2*batch.WindowRows)))
	if n == 0 {
		return nil, nil
	}
	rows := &change.Rows{Batch: batch.New(in.schema.Columns, 0)}
	for i, c := range in.copies[:n] {
		for k, v := range rows.Batch.Columns {
			v.AppendCell(bytes.Clone(c.cells[k]))
		}
		rows.Keys = append(rows.Keys, bytes.Clone(c.key))
		for _, d := range c.undo {
			rows.Undo = append(rows.Undo, change.Delta{Row: uint32(i), TS: d.TS, List: bytes.Clone(d.List)})
		}
		for _, d := range c.redo {
			rows.Redo = append(rows.Redo, change.Delta{Row: uint32(i), TS: d.TS, List: bytes.Clone(d.List)})
		}
	}
	rows.Batch.Len = n
	for k, v := range rows.Batch.Columns {
		if in.coded[k] != nil && in.r.IntN(8) > 0 {
			encode(v, in.coded[k])
		}
	}
	in.last, in.copies = rows, in.copies[n:]
	return rows, nil
}

// encode gives v the codes of d, which has all of its cells.
func encode(v *batch.Vector, d *batch.Dictionary) {
	cells := v.Bytes
	v.UseCodes(d, v.Len)
	for i, cell := range cells {
		v.Codes[i] = 0
		if !v.IsNull(i) {
			v.Codes[i] = uint32(slices.IndexFunc(d.Words, func(w []byte) bool { return bytes.Equal(w, cell) }))
		}
	}
	v.Bytes = nil
}

// newCopiesInput returns an input of copies, in the order of their keys.
func newCopiesInput(r *rand.Rand, s *schema.Schema, copies []copyOfRow) *copiesInput {
	slices.SortFunc(copies, func(a, b copyOfRow) int { return bytes.Compare(a.key, b.key) })
	in := &copiesInput{r: r, schema: s, copies: copies, coded: make([]*batch.Dictionary, len(s.Columns))}
	for k := range s.Columns {
		if c := &s.Columns[k]; !c.Type.Variable() || c.Type == schema.Array || r.IntN(3) == 0 {
			continue
		}
		words := [][]byte{{}}
		for _, c := range copies {
			words = append(words, c.cells[k])
		}
		slices.SortFunc(words, bytes.Compare)
		words = slices.CompactFunc(words, bytes.Equal)
		r.Shuffle(len(words), func(i, j int) { words[i], words[j] = words[j], words[i] })
		in.coded[k] = &batch.Dictionary{Words: words}
	}
	return in
}

// mergedByRow is the merge of all copies, one row after another.
func mergedByRow(s *schema.Schema, floor mvcc.Timestamp, copies []copyOfRow) (out []copyOfRow, err error) {
	slices.SortStableFunc(copies, func(a, b copyOfRow) int { return bytes.Compare(a.key, b.key) })
	for len(copies) > 0 {
		n := 1
		for n < len(copies) && bytes.Equal(copies[n].key, copies[0].key) {
			n++
		}
		f := newFolder(s)
		var versions []version
		for _, c := range copies[:n] {
			v := version{cells: slices.Clone(c.cells), undo: c.undo}
			if err := f.fold(&v, c.redo); err != nil {
				return nil, err
			}
			versions = append(versions, v)
		}
		newest, err := f.chain(versions)
		if err != nil {
			return nil, err
		}
		if newest.deleted == nil || newest.deleted.TS > floor {
			row := copyOfRow{key: copies[0].key, cells: newest.cells}
			for _, d := range newest.undo {
				if d.TS > floor {
					row.undo = append(row.undo, d)
				}
			}
			if newest.deleted != nil {
				row.redo = []change.Delta{deletion(newest.deleted.TS)}
			}
			out = append(out, row)
		}
		copies = copies[n:]
	}
	return out, nil
}

// compareRow compares row i of a result with the expected one.
func compareRow(want *copyOfRow, rows *change.Rows, i int, undo, redo []change.Delta) error {
	if !bytes.Equal(rows.Keys[i], want.key) {
		return fmt.Errorf("key %x, want %x", rows.Keys[i], want.key)
	}
	var cells [][]byte
	for _, v := range rows.Batch.Columns {
		cells = append(cells, v.Cell(i))
	}
	if !sameCells(cells, want.cells) {
		return fmt.Errorf("key %x: cells\n%x, want\n%x", want.key, cells, want.cells)
	}
	same := func(a, b change.Delta) bool { return a.TS == b.TS && bytes.Equal(a.List, b.List) }
	if !slices.EqualFunc(undo, want.undo, same) || !slices.EqualFunc(redo, want.redo, same) {
		return fmt.Errorf("key %x: changes\n%v %v, want\n%v %v", want.key, undo, redo, want.undo, want.redo)
	}
	return nil
}

// Plan: rows of all types, with NULLs, with changes, with several copies of a key in different
// inputs, and with keys that differ only after their first 8 bytes. The result equals the result of
// a merge of one row after another.
func TestMergeMatchesMergeByRow(t *testing.T) {
	r := seedtest.Rand(t)
	rounds := seedtest.Rounds(40, 8)
	for round := range rounds {
		keys := 1 + r.IntN(40)
		if round%8 == 6 {
			keys = 500 // several windows of output
		}
		k := 1 + r.IntN(5)
		floor := mvcc.Timestamp(cmp.Or(r.IntN(3), 1) * r.IntN(15))
		parts := make([][]copyOfRow, k)
		var all []copyOfRow
		seen := map[string]bool{}
		for range keys * 10 {
			key := wideKey(r, keys)
			if enc := string(encodeKey(wide, key)); seen[enc] {
				continue
			} else {
				seen[enc] = true
			}
			n := 1
			if round%2 == 0 || r.IntN(30) == 0 {
				n += r.IntN(1 + r.IntN(k))
			}
			copies := randomCopies(r, wide, key, n)
			all = append(all, copies...)
			places := r.Perm(k)
			if r.IntN(4) > 0 { // a run of keys in one input
				places[0], places[slices.Index(places, len(seen)/50%k)] = len(seen)/50%k, places[0]
			}
			for i, c := range copies {
				parts[places[i]] = append(parts[places[i]], c)
			}
		}
		var inputs []Input
		for _, p := range parts {
			inputs = append(inputs, newCopiesInput(r, wide, p))
		}
		want := must.Get(mergedByRow(wide, floor, all))(t)
		res, err := run(wide, floor, int64(r.IntN(2)*20000), inputs...)
		must.Do(t, err, "round", round)
		n := 0
		err = res.histories(func(rows *change.Rows, i int, undo, redo []change.Delta) error {
			if n++; n > len(want) {
				return fmt.Errorf("more than %d rows", len(want))
			}
			return compareRow(&want[n-1], rows, i, undo, redo)
		})
		if err == nil && n != len(want) {
			err = fmt.Errorf("%d rows, want %d", n, len(want))
		}
		must.Do(t, err, "round", round, k, "inputs, floor", floor, "row", n)
	}
}

// An input whose keys do not ascend is refused: within a window, if a key that needs a look at its
// changes follows itself, and from one window to the next.
func TestMergeRefusesKeysTwice(t *testing.T) {
	once := func(key string, undo, deleted mvcc.Timestamp) *change.Rows {
		return oneRow(key, 1, 1, []change.Delta{deletion(undo)}, []change.Delta{deletion(deleted)}).rows[0]
	}
	twice := once("a", 1, 5)
	next := once("a", 11, 15)
	twice.Keys = append(twice.Keys, next.Keys...)
	for i, col := range twice.Batch.Columns {
		col.AppendCell(next.Batch.Columns[i].Cell(0))
	}
	twice.Batch.Len = 2
	for _, list := range [2]struct{ dst, src *[]change.Delta }{{&twice.Undo, &next.Undo}, {&twice.Redo, &next.Redo}} {
		d := (*list.src)[0]
		d.Row = 1
		*list.dst = append(*list.dst, d)
	}
	for name, in := range map[string]*listInput{
		"one window":  {rows: []*change.Rows{twice}},
		"two windows": {rows: []*change.Rows{once("a", 1, 5), once("a", 11, 15)}},
		"descending":  {rows: []*change.Rows{once("b", 1, 5), once("a", 11, 15)}},
	} {
		must.Fail(t, must.Err(run(testSchema, mvcc.Min, 0, in)), fault.ErrCorrupt, name)
	}
}

// No goroutine is left after an input has panicked.
func TestPanicOfAnInputEndsTheMerge(t *testing.T) {
	before := runtime.NumGoroutine()
	for range 10 {
		func() {
			defer func() {
				if recover() == nil {
					t.Error("no panic")
				}
			}()
			run(testSchema, mvcc.Min, 0, oneRow("a", 1, 1, nil, nil), panicInput{})
		}()
	}
	if n := runtime.NumGoroutine(); n >= before+10 {
		t.Errorf("%d goroutines, %d before", n, before)
	}
}

type panicInput struct{}

func (panicInput) Next() (*change.Rows, error) { panic("an input") }
