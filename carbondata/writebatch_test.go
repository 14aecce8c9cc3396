package carbondata

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/carbondata/internal/codec"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/internal/seedtest"
	"github.com/oribi-db/oribi/schema"
)

// randomTableRows makes rows whose columns have types of tables.
func randomTableRows(seed uint64) *randomRows {
	r := newRandomRows(seed)
	var columns []Column
	for _, c := range r.columns {
		if _, ok := c.TableType(); ok {
			columns = append(columns, c)
		}
	}
	r.columns = append(columns, column("last", Int))
	r.narrow = make([]int, len(r.columns))
	for i := range r.narrow {
		r.narrow[i] = r.IntN(6)
	}
	return r
}

// TestBatchesAreWrittenAsRows writes the same rows by batches, with rows that are not selected, and
// one by one: the files have the same bytes.
func TestBatchesAreWrittenAsRows(t *testing.T) {
	seeds := seedtest.Rounds(uint64(15), 5)
	for seed := range seeds {
		r := randomTableRows(seed)
		o := r.options()
		o.Task, o.Time = "1", time.UnixMilli(1)
		if seed%2 == 0 {
			o.SortColumns = []string{"last"} // in any order
		}
		dir := filepath.Join(t.TempDir(), "batches")
		w := must.Get(Create(dir, r.columns, o))(t)
		defer w.Abort()
		var rows [][]any
		for range 3 {
			var all [][]any
			for range r.IntN(400) {
				all = append(all, r.row())
			}
			b := recordBatch(t, r.columns, all)
			for i, row := range all {
				if r.IntN(5) == 0 {
					b.Selection.Clear(i)
				} else {
					rows = append(rows, row)
				}
			}
			must.Do(t, w.AppendBatch(b), seed)
		}
		must.Do(t, w.Close())
		other := writeFolder(t, r.columns, o, rows)
		must.Equal(t, differentFile(t, dir, other), "", seed)
	}
}

// differentFile returns the name of a file of which two folders have different ones, or "".
func differentFile(t *testing.T, dir, other string) string {
	t.Helper()
	names := namesIn(t, dir)
	must.Equal(t, strings.Join(names, " "), strings.Join(namesIn(t, other), " "), names)
	for _, name := range names {
		a := must.Get(os.ReadFile(filepath.Join(dir, name)))(t)
		b := must.Get(os.ReadFile(filepath.Join(other, name)))(t)
		if !bytes.Equal(a, b) {
			return name
		}
	}
	return ""
}

// TestProcessorsDoNotChangeFiles writes the same rows with one and with more processors. Then it
// adds rows of which two columns have values that are refused: the error names the first.
func TestProcessorsDoNotChangeFiles(t *testing.T) {
	for seed, compressor := range []string{codec.Snappy, codec.Zstd, codec.Gzip} {
		r := randomTableRows(uint64(seed))
		columns := append([]Column{column("a", Timestamp), column("b", String)}, r.columns...)
		rows := make([][]any, manyCells/len(columns)+100)
		for i := range rows {
			rows[i] = append([]any{Micros(1000 * i), "text"}, r.row()...)
		}
		b := recordBatch(t, columns, rows)
		bad := recordBatch(t, columns, rows)
		bad.Columns[0].SetCell(7, []byte{1, 0, 0, 0, 0, 0, 0, 0})
		bad.Columns[1].SetCell(3, []byte(nullText))
		first := ""
		withProcs(func(procs int) {
			dir := filepath.Join(t.TempDir(), "out")
			w := must.Get(Create(dir, columns,
				WriterOptions{Compressor: compressor, BlockletBytes: 100_000, Task: "1", Time: time.UnixMilli(1)}))(t)
			defer w.Abort()
			for range 3 {
				must.Do(t, w.AppendBatch(b))
			}
			must.Do(t, w.Close())
			if first == "" {
				first = dir
			} else if differ := differentFile(t, dir, first); differ != "" {
				t.Errorf("%s, %d processors: %s differs", compressor, procs, differ)
			}
			w = must.Get(Create(dir+"2", columns, WriterOptions{Compressor: compressor}))(t)
			defer w.Abort()
			if err := w.AppendBatch(b); err != nil { // from now on, b has more text than a
				t.Fatal(err)
			}
			if refused, ok := errors.AsType[*RowError](w.AppendBatch(bad)); !ok ||
				refused.Column != "a" || refused.Row != 7 {
				t.Errorf("%d processors: %v", procs, refused)
			}
		})
	}
}

// TestBatchesOfNarrowerIntegers writes integers of tables as the next larger signed ones.
func TestBatchesOfNarrowerIntegers(t *testing.T) {
	types := []schema.Type{schema.Uint8, schema.Int8, schema.Uint16, schema.Uint32, schema.Uint64}
	columns := []Column{column("a", Short), column("b", Short), column("c", Int), column("d", Long), column("e", Long)}
	var in []schema.Column
	for i, typ := range types {
		in = append(in, schema.Column{Name: columns[i].Name, Type: typ, Nullable: true})
	}
	b := batch.New(in, 2)
	for i, v := range b.Columns {
		v.SetCell(0, []byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f}[:types[i].Width()])
		v.SetCell(1, nil)
	}
	b.Columns[3].SetCell(0, []byte{0xff, 0xff, 0xff, 0xff})
	dir := filepath.Join(t.TempDir(), "out")
	w := must.Get(Create(dir, columns, WriterOptions{}))(t)
	defer w.Abort()
	must.Do(t, w.AppendBatch(b))
	must.Do(t, w.Close())
	wantRows(t, readFolder(t, dir),
		[][]any{{int16(255), int16(-1), int32(65535), int64(1<<32 - 1), int64(1<<63 - 1)}, {nil, nil, nil, nil, nil}})
}

func TestAppendBatchRefuses(t *testing.T) {
	array := func(t schema.Type) schema.Column {
		return schema.Column{Type: schema.Array, Element: t, Nullable: true}
	}
	scalar := func(t schema.Type) schema.Column { return schema.Column{Type: t, Nullable: true} }
	for _, c := range []struct {
		column Column
		typ    schema.Column
		cell   []byte
		want   string
	}{
		{column("c", Int), scalar(schema.Int64), nil, "values of type int64 for INT"},
		{column("c", Long), scalar(schema.Int128), nil, "values of type int128 for LONG"},
		{column("c", Long), scalar(schema.Uint64), []byte{0, 0, 0, 0, 0, 0, 0, 0x80},
			"9223372036854775808 is out of the range of LONG"},
		{column("c", Timestamp), scalar(schema.Timestamp), []byte{1, 0, 0, 0, 0, 0, 0, 0}, "1 microseconds"},
		{column("c", Date), scalar(schema.Date), []byte{0, 0, 0, 0x80},
			"CarbonData has the dates from 0001-01-01 to 9999-12-31"},
		{column("c", Varchar), scalar(schema.String), nil, "empty VARCHAR"},
		{column("c", String), scalar(schema.String), []byte(nullText), "reads it as NULL"},
		{column("c", Binary), scalar(schema.Binary), []byte{}, "reads them as NULL"},
		{column("c", Varchar), scalar(schema.String), bytes.Repeat([]byte("a"), maxRowBytes+1), "bytes of text"},
		{column("c", Array, column("", Int)), array(schema.Int64), nil, "elements: values of type int64 for INT"},
		{column("c", Array, column("", Int)), array(schema.Int32), nil, "exactly one NULL"},
		{column("c", Struct, column("f", Int)), array(schema.Int32), nil, "for STRUCT"},
	} {
		parent := t.TempDir()
		w := must.Get(Create(filepath.Join(parent, "out"), []Column{c.column}, WriterOptions{}))(t)
		b := batch.New([]schema.Column{c.typ}, 1)
		if c.typ.Type == schema.Array {
			b.Columns[0] = batch.NewArrays(c.typ.Element)
			b.Columns[0].AppendArray([][]byte{nil})
		} else {
			b.Columns[0].SetCell(0, c.cell)
		}
		err := w.AppendBatch(b)
		must.Contain(t, fmt.Sprint(err), c.want, c.column.TypeName())
		must.Contain(t, fmt.Sprint(err), `column "c": `, c.column.TypeName())
		must.Equal(t, fmt.Sprint(w.Close()), fmt.Sprint(err))
		must.Equal(t, len(namesIn(t, parent)), 0)
	}
}
