package arrowio

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/schema"
)

// reads counts the bytes that are read of each part of a file.
type reads struct {
	io.ReaderAt
	n int64
}

func (r *reads) ReadAt(p []byte, off int64) (int, error) {
	n, err := r.ReaderAt.ReadAt(p, off)
	r.n += int64(n)
	return n, err
}

// Row groups whose statistics exclude all rows are not read; a row group with a row that matches
// always is.
func TestRowGroupsAreSkipped(t *testing.T) {
	store := openStore(t)
	table := everyTable(t, store, "t", 6000, 9)
	data := exported(t, "parquet", table.Scan(context.Background()), nil)
	counted := &reads{ReaderAt: bytes.NewReader(data)}
	f := must.Get(OpenParquet(counted, int64(len(data)), OpenOptions{}))(t)
	defer f.Close()
	read := func(p oribi.Predicate) (rows []string, n int64) {
		t.Helper()
		counted.n = 0
		r := must.Get(f.Read(context.Background(), ReadOptions{Where: []oribi.Predicate{p}}))(t)
		defer r.Release()
		for b, err := range r.Batches() {
			must.Do(t, err)
			rows = selectedRows(rows, b)
		}
		return rows, counted.n
	}
	_, all := read(oribi.NotNull("k"))
	for name, p := range map[string]oribi.Predicate{
		"low keys": oribi.Lt("k", -2_000_000_000), "high keys": oribi.Ge("k", 2_000_000_000),
		"one key": oribi.Eq("k", 7), "none": oribi.IsNull("set"),
	} {
		rows, n := read(p)
		same(t, name, rows, rowsOf(t, table, oribi.Where(p)))
		if n > all/2 {
			t.Errorf("%s: %d of %d bytes were read", name, n, all)
		}
	}
	for name, p := range map[string]oribi.Predicate{ // statistics do not exclude these
		"NaNs": oribi.Not(oribi.Ge("double", -1e300)), "not equal": oribi.Ne("string", ""),
		"NULLs": oribi.IsNull("uint64"), "unsigned": oribi.Gt("uint64", uint64(1<<63)),
		"strings": oribi.HasPrefix("varchar(7)", "a"), "wide": oribi.Lt("decimal(38,38)", 0),
		"dates": oribi.Ge("date", oribi.Cell{0, 0, 0, 0}),
	} {
		rows, _ := read(p)
		same(t, name, rows, rowsOf(t, table, oribi.Where(p)))
	}
}

// Statistics without one of the bounds, since it is too long, do not exclude rows.
func TestLongBoundsAreNotStored(t *testing.T) {
	columns := []schema.Column{{Name: "s", Type: schema.String}}
	long := strings.Repeat("x", 5000)
	for _, words := range [][]string{{"", long}, {long, "y"}, {"a", long}} {
		b := batch.New(columns, len(words))
		for i, w := range words {
			b.Columns[0].Bytes[i] = []byte(w)
		}
		_, data := writeBatches(t, columns, ParquetOptions{}, []*batch.RecordBatch{b})
		for _, p := range []oribi.Predicate{oribi.Gt("s", "w"), oribi.Le("s", long),
			oribi.Eq("s", long), oribi.Eq("s", words[0])} {
			f, rows := opened(t, "parquet", data, checked(t), ReadOptions{Where: []oribi.Predicate{p}})
			if got := recordRows(t, rows); len(got) == 0 {
				t.Errorf("%.10q, %.40v: no rows", words, p)
			}
			rows.Release()
			f.Close()
		}
	}
}

// A canceled context and errors of the underlying reader and writer are returned as they are.
func TestErrorsOfCallers(t *testing.T) {
	store := openStore(t)
	table := everyTable(t, store, "t", 2000, 9)
	broken := errors.New("broken")
	for format := range formats {
		data := exported(t, format, table.Scan(context.Background()), nil)
		if format != "stream" {
			f := must.Get(formats[format].open(data, nil))(t)
			ctx, cancel := context.WithCancel(context.Background())
			cancel()
			r := must.Get(f.Read(ctx, ReadOptions{}))(t)
			if r.Next() || !errors.Is(r.Err(), context.Canceled) {
				t.Errorf("%s: %v", format, r.Err())
			}
			r.Release()
			f.Close()
		}
		for _, n := range []int{0, 4, 100, len(data) / 2, len(data) - 3} {
			r, err := NewReader(table.Scan(context.Background()), ReaderOptions{})
			must.Do(t, err)
			w := &brokenWriter{left: n, err: broken}
			switch format {
			case "parquet":
				_, err = WriteParquet(w, r, ParquetOptions{RowGroupRows: 700})
			case "arrow":
				_, err = WriteFile(w, r, ArrowOptions{})
			default:
				_, err = WriteStream(w, r, ArrowOptions{})
			}
			must.Fail(t, err, broken, format, n)
			r.Release()
		}
	}
	data := exported(t, "parquet", table.Scan(context.Background()), nil)
	for n := range 6 {
		in := &brokenReader{ReaderAt: bytes.NewReader(data), left: n, err: broken}
		f, err := OpenParquet(in, int64(len(data)), OpenOptions{})
		if err == nil {
			var r *Rows
			if r, err = f.Read(context.Background(), ReadOptions{}); err == nil {
				for r.Next() {
				}
				err = r.Err()
				r.Release()
			}
			f.Close()
		}
		if !errors.Is(err, broken) || errors.Is(err, ErrCorrupt) {
			t.Errorf("read %d: %v", n, err)
		}
	}
}

// brokenWriter fails after some bytes.
type brokenWriter struct {
	left int
	err  error
}

func (w *brokenWriter) Write(p []byte) (int, error) {
	if w.left -= len(p); w.left < 0 {
		return 0, w.err
	}
	return len(p), nil
}

// brokenReader fails after some reads.
type brokenReader struct {
	io.ReaderAt
	left int
	err  error
}

func (r *brokenReader) ReadAt(p []byte, off int64) (int, error) {
	if r.left--; r.left < 0 {
		return 0, r.err
	}
	return r.ReaderAt.ReadAt(p, off)
}
