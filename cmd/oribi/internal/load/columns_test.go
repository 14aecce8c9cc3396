package load

import (
	"bytes"
	"context"
	"fmt"
	"iter"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/cmd/oribi/internal/output"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/internal/seedtest"
	"github.com/oribi-db/oribi/schema"
)

// wideRows creates a table and fills it with random rows. In some of them a column is NULL, too
// large, too long, or no text.
func wideRows(t *testing.T, store *oribi.Store, r *rand.Rand, name string, rows int, bad map[int]string) *oribi.Table {
	t.Helper()
	table := createTable(t, store, name,
		typedColumns(t, 1, "id int64", "n int64", "m int32", "d date", "f float", "p decimal(9,2)", "text string",
			"raw binary", "tags array(int16)"))
	var lines strings.Builder
	for i := range rows {
		fmt.Fprintf(&lines, `{"id":%d`, i)
		for _, c := range [][2]string{{"n", fmt.Sprint(r.IntN(200))}, {"m", fmt.Sprint(r.Int32())},
			{"d", `"2026-11-27"`}, {"f", "1.5"},
			{"p", fmt.Sprintf(`"%d.25"`, r.IntN(1000))}, {"text", `"` + strings.Repeat("ö", r.IntN(8)) + `"`},
			{"raw", `"0xff"`}, {"tags", "[1,null]"}} {
			name, value := c[0], c[1]
			if v, ok := strings.CutPrefix(bad[i], name+"="); ok {
				fmt.Fprintf(&lines, `,%q:%s`, name, v)
			} else if name == "n" || r.IntN(4) > 0 {
				fmt.Fprintf(&lines, `,%q:%s`, name, value)
			}
		}
		lines.WriteString("}\n")
	}
	loadText(t, store, table, lines.String())
	return table
}

// Rows that are appended column by column are those that are read one by one, and so is the error
// of a bad row. A load with SkipBad reads them one by one.
func TestRowsAreReadByColumnsAsOneByOne(t *testing.T) {
	store := openStore(t)
	r := seedtest.Rand(t)
	target := func() *schema.Schema {
		s := typedColumns(t, 1, "id int32", "n uint8", "extra string", "m int32", "d date", "f double",
			"p decimal(18,4)", "text varchar(8)", "raw binary", "tags array(int64)")
		s.Columns[1].Nullable = false
		s.Columns[2].Default = []byte("none")
		s = must.Get(schema.New(s.Columns, 1))(t)
		return s
	}
	for i, bad := range []map[int]string{nil, {1500: "n=null"}, {0: "n=256"}, {2499: "n=-1"},
		{777: `text="123456789"`, 900: "n=300"}, {1000: `text="` + strings.Repeat("x", 50000) + `"`}} {
		from := wideRows(t, store, r, fmt.Sprint("from", i), 2500, bad)
		for j, where := range []oribi.ScanOption{nil, oribi.Where(oribi.Lt("m", int32(1<<30))), nil,
			oribi.Where(oribi.Lt("m", int32(1<<30)))} {
			byColumn := createTable(t, store, fmt.Sprint("columns", i, j), target())
			asColumns := batchOptions(store, from, byColumn, where)
			if j >= 2 {
				asColumns.Batches = inCodes(r, asColumns.Batches)
			}
			result, err := Run(context.Background(), nil, asColumns)
			byRow := createTable(t, store, fmt.Sprint("rows", i, j), target())
			o := batchOptions(store, from, byRow, where)
			var skipped bytes.Buffer
			o.SkipBad = &skipped
			want := must.Get(Run(context.Background(), nil, o))(t)
			switch {
			case want.FirstBad != nil && (err == nil || err.Error() != want.FirstBad.Error()):
				t.Errorf("bad %v: %v, want %v", bad, err, want.FirstBad)
			case want.FirstBad == nil &&
				(err != nil || result != want || printed(t, byColumn, output.JSONL) != printed(t, byRow, output.JSONL)):
				t.Errorf("bad %v: %+v, %v, want %+v, or other rows", bad, result, err, want)
			case bad == nil && result.Rows == 0:
				t.Error("no rows: the test sees nothing")
			}
		}
	}
}

// inCodes returns batches whose byte strings are in dictionary form. Dictionaries are overwritten
// after each step; some have a word that is too long or no text, but no cell has it.
func inCodes(r *rand.Rand, batches iter.Seq2[*batch.RecordBatch, error]) iter.Seq2[*batch.RecordBatch, error] {
	return func(yield func(*batch.RecordBatch, error) bool) {
		for b, err := range batches {
			var words []*batch.Dictionary
			for i, v := range b.Columns {
				if !v.Type.Variable() {
					continue
				}
				coded, d := &batch.Vector{Type: v.Type}, &batch.Dictionary{Words: [][]byte{{}}}
				if i%2 == r.IntN(2) {
					d.Words = append(d.Words, bytes.Repeat([]byte{0xff}, 9))
				}
				coded.UseCodes(d, v.Len)
				known := map[string]uint32{}
				for k := range v.Len {
					cell := v.Cell(k)
					if coded.Codes[k] = 0; cell == nil {
						coded.NeedPresent().Clear(k)
						continue
					}
					code, ok := known[string(cell)]
					if !ok {
						code = uint32(len(d.Words))
						known[string(cell)], d.Words = code, append(d.Words, bytes.Clone(cell))
					}
					coded.Codes[k] = code
				}
				b.Columns[i], words = coded, append(words, d)
			}
			more := yield(b, err)
			for _, d := range words {
				for _, w := range d.Words {
					for k := range w {
						w[k] = 'X'
					}
				}
			}
			if !more {
				return
			}
		}
	}
}

// The codes of a dictionary stay codes, of its converted words, as long as they are fewer than the
// cells.
func TestDictionariesAreKept(t *testing.T) {
	store := openStore(t)
	s := typedColumns(t, 1, "id int64", "text varchar(3)")
	d := &batch.Dictionary{Words: [][]byte{[]byte("abc"), []byte("d")}}
	for name, c := range map[string]struct {
		words [][]byte
		want  bool
	}{"fitting": {d.Words, true}, "too long": {[][]byte{[]byte("a"), []byte("abcd")},
		false}, "more than rows": {make([][]byte, 30), false}} {
		b := batch.New(s.Columns, 20)
		for i := range b.Len {
			batch.Values[int64](b.Columns[0])[i] = int64(i)
		}
		b.Columns[1].Reset(0)
		b.Columns[1].UseCodes(&batch.Dictionary{Words: c.words}, b.Len)
		clear(b.Columns[1].Codes)
		o := batchOptions(store, nil, createTable(t, store, name, s))
		o.Batches = func(yield func(*batch.RecordBatch, error) bool) { _ = yield(b, nil) && yield(b, nil) }
		in := must.Get(batchRows(newMaker(s, &o), &o))(t)
		dst := newRows(s)
		(&loader{o: &o}).fill(dst, in)
		in.close()
		if got := dst.vectors[1].Dict != nil; dst.len() != 40 || got != c.want {
			t.Errorf("%s: %d rows, a dictionary: %t", name, dst.len(), got)
		}
	}
}

// Each batch may have a dictionary of its own.
func TestDictionariesMayChange(t *testing.T) {
	store := openStore(t)
	s := typedColumns(t, 1, "id int64", "text string")
	o := batchOptions(store, nil, createTable(t, store, "t", s))
	o.Batches = func(yield func(*batch.RecordBatch, error) bool) {
		for i := range 4 {
			b := batch.New(s.Columns, 2)
			batch.Values[int64](b.Columns[0])[0], batch.Values[int64](b.Columns[0])[1] = int64(2*i), int64(2*i+1)
			b.Columns[1].Reset(0)
			b.Columns[1].UseCodes(&batch.Dictionary{Words: [][]byte{fmt.Append(nil, "a", i), fmt.Append(nil, "b", i)}},
				2)
			b.Columns[1].Codes[0], b.Columns[1].Codes[1] = 1, 0
			if !yield(b, nil) {
				return
			}
		}
	}
	in := must.Get(batchRows(newMaker(s, &o), &o))(t)
	defer in.close()
	dst := newRows(s)
	(&loader{o: &o}).fill(dst, in)
	var got []byte
	for i := range dst.len() {
		got = append(append(got, dst.vectors[1].Cell(i)...), ' ')
	}
	must.Equal(t, string(got), "b0 a0 b1 a1 b2 a2 b3 a3 ")
}

// A write batch that is filled by columns ends where one of single rows does.
func TestBatchesByColumnsAreBounded(t *testing.T) {
	store := openStore(t)
	from := createTable(t, store, "from", typedColumns(t, 1, "id int64", "text string"))
	var lines strings.Builder
	for i := range 300 {
		fmt.Fprintf(&lines, `{"id":%d,"text":%q}`+"\n", i, strings.Repeat("x", 60000))
	}
	loadText(t, store, from, lines.String())
	o := batchOptions(store, from, from)
	m := newMaker(from.Schema(), &Options{Mode: oribi.OpInsert})
	s := must.Get(batchRows(m, &o))(t)
	defer s.close()
	l := &loader{o: &o}
	for total := 0; total < 300; {
		dst := newRows(from.Schema())
		l.fill(dst, s)
		if last := dst.bytes - dst.largest; last >= maxBatchBytes || dst.len() == 0 {
			t.Fatalf("%d rows of %d bytes", dst.len(), dst.bytes)
		}
		total += dst.len()
	}
}

// A NULL that the table refuses ends the rows before it, and is not left to the store.
func TestNullsAreFoundByColumns(t *testing.T) {
	store := openStore(t)
	from := createTable(t, store, "from", typedColumns(t, 1, "id int64", "n int64"))
	loadText(t, store, from, `[{"id":1,"n":1},{"id":2,"n":null},{"id":3,"n":3}]`)
	s := typedColumns(t, 2, "id int64", "n int64")
	to := createTable(t, store, "to", s)
	o := batchOptions(store, from, to)
	b := must.Get(batchRows(newMaker(s, &o), &o))(t)
	defer b.close()
	dst := newRows(s)
	(&loader{o: &o}).fill(dst, b)
	if want := `in: row 2: column "n": NULL in a column that is not nullable`; dst.len() != 1 ||
		dst.err == nil || dst.err.Error() != want {
		t.Errorf("%d rows, %v, want %s", dst.len(), dst.err, want)
	}
}

// A date beyond the years 1 to 9999 is an error, unless it is the value of a NULL, which is
// undefined.
func TestDatesAreCheckedByColumns(t *testing.T) {
	store := openStore(t)
	s := typedColumns(t, 1, "id int64", "d date")
	for row, want := range map[int]string{1: `in: row 2: column "d": the date is 99999999 days after 1970-01-01, and not in the years 1 to 9999`, 2: ""} {
		b := batch.New(s.Columns, 3)
		for i := range b.Len {
			batch.Values[int64](b.Columns[0])[i], batch.Values[int32](b.Columns[1])[i] = int64(i), 20_000
		}
		batch.Values[int32](b.Columns[1])[row] = 99_999_999
		b.Columns[1].NeedPresent().Clear(2)
		o := batchOptions(store, nil, createTable(t, store, fmt.Sprint("t", row), s))
		o.Batches = func(yield func(*batch.RecordBatch, error) bool) { yield(b, nil) }
		_, err := Run(context.Background(), nil, o)
		if got := fmt.Sprint(err); err == nil && want != "" || err != nil && got != want {
			t.Errorf("a date in row %d: %v, want %s", row, err, want)
		}
	}
}
