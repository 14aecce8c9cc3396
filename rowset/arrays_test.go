package rowset

import (
	"bytes"
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/block"
	"github.com/oribi-db/oribi/cfile"
	"github.com/oribi-db/oribi/internal/celltext"
	"github.com/oribi-db/oribi/internal/corpustest"
	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/internal/seedtest"
	"github.com/oribi-db/oribi/mvcc"
	"github.com/oribi-db/oribi/scan"
	"github.com/oribi-db/oribi/schema"
)

// goldenColumn is the column whose cells print as in the corpus: decimals unscaled, dates as days.
func goldenColumn(element schema.Type) *schema.Column {
	if element.Width() > 0 {
		element = element.Physical()
	}
	return &schema.Column{Name: "a", Type: schema.Array, Element: element, Nullable: true}
}

// Array files written by Kudu become cells that print as Kudu's reader printed them. Files written
// from those cells read the same.
func TestKuduArraysRoundTripAsCells(t *testing.T) {
	t.Run("from=corpus", func(t *testing.T) {
		checkGoldenArrays(t, filepath.Join(corpustest.Dir(t), "golden", "cfile", "arrays"))
	})
	t.Run("from=testdata", func(t *testing.T) {
		checkGoldenArrays(t, filepath.Join("..", "cfile", "testdata", "golden", "arrays"))
	})
}

func checkGoldenArrays(t *testing.T, dir string) {
	names, err := filepath.Glob(filepath.Join(dir, "*.cfile"))
	if err != nil || len(names) == 0 {
		t.Fatalf("no files in %s: %v", dir, err)
	}
	for _, name := range names {
		t.Run(strings.TrimSuffix(filepath.Base(name), ".cfile"), func(t *testing.T) {
			want := corpustest.Lines(t, strings.TrimSuffix(name, "cfile")+"jsonl")
			f := must.Get(
				cfile.Open(&block.Memory{Bytes: corpustest.Read(t, name)}, cfile.ReaderOptions{Arrays: true}))(t)
			info := f.Info()
			c := goldenColumn(info.Type)
			cells := readCells(t, f, c, want)
			again := new(block.Memory)
			w := must.Get(cfile.NewWriter(again,
				cfile.WriterOptions{Type: info.Type, Encoding: info.Encoding, Compression: info.Compression,
					Nullable: info.Nullable, Array: true, PositionalIndex: true}))(t)
			must.Do(t, appendColumn(w, c, cells))
			must.Do(t, w.Finish())
			f = must.Get(cfile.Open(again, cfile.ReaderOptions{Arrays: true}))(t)
			readCells(t, f, c, want)
		})
	}
}

// readCells reads all of a file and compares it, cell by cell, with the lines that it should print.
func readCells(t *testing.T, f *cfile.Reader, c *schema.Column, want []string) *batch.Vector {
	t.Helper()
	must.Equal(t, f.Rows(), int64(len(want)), "rows")
	v := &batch.Vector{Type: schema.Array}
	must.Do(t, readArrays(f.NewColumnReader(), nil, c, 0, len(want), v))
	for i, line := range want {
		if cell := v.Cell(i); cell != nil {
			must.Do(t, schema.CheckArray(c.Element, cell), "row", i)
		}
		must.Equal(t, string(celltext.AppendJSON(nil, c, v.Cell(i))), line, "row", i)
		if i%53 == 0 {
			if cell, err := arrayCell(f, nil, c, batch.Ordinal(i)); err != nil ||
				!bytes.Equal(cell, v.Cell(i)) || (cell == nil) != v.IsNull(i) {
				t.Fatalf("row %d read alone: % x, %v", i, cell, err)
			}
		}
	}
	return v
}

// A window of arrays is read in full even if the file returns only a few at a time because they
// have many elements.
func TestWindowOfLongArraysIsReadInFull(t *testing.T) {
	const rows = 20
	c := &schema.Column{Name: "a", Type: schema.Array, Element: schema.Int8, Nullable: true}
	want := batch.NewVector(schema.Array, rows)
	for i := range rows {
		if i%7 != 3 {
			want.SetCell(i, schema.AppendArray(nil, schema.Int8, make([][]byte, schema.MaxElements-i)))
		} else {
			want.SetCell(i, nil)
		}
	}
	file := new(block.Memory)
	w := must.Get(cfile.NewWriter(file,
		cfile.WriterOptions{Type: schema.Int8, Array: true, Nullable: true, PositionalIndex: true}))(t)
	must.Do(t, appendColumn(w, c, want))
	must.Do(t, w.Finish())
	f := must.Get(cfile.Open(file, cfile.ReaderOptions{Arrays: true}))(t)
	some := batch.NewArrays(schema.Int8)
	if n, err := f.NewColumnReader().ReadVector(0, rows, some); err != nil || n >= rows {
		t.Fatalf("%d of %d cells at once, %v: too few for the test", n, rows, err)
	}
	got := &batch.Vector{Type: schema.Array}
	must.Do(t, readFull(f.NewColumnReader(), nil, c, 0, rows, got))
	must.Equal(t, got.Len, rows, "cells")
	for i := range rows {
		must.Equal(t, got.Cell(i), want.Cell(i), "row", i)
		must.Equal(t, got.IsNull(i), want.IsNull(i), "row", i)
	}
}

// Opening detects a file of arrays for a column of single values, the reverse, or other element
// types.
func TestArrayAndScalarFilesAreNotInterchangeable(t *testing.T) {
	write := func(t *testing.T, second schema.Column) (*disk, *Metadata) {
		second.ID, second.Name, second.Nullable = 2, "v", true
		w := newTestRowSet(t, seedtest.Rand(t),
			mustSchema([]schema.Column{{ID: 1, Name: "k", Type: schema.Int32}, second}, 1), 20)
		return w.disk, w.write(t, seedtest.Rand(t), mvcc.Min)
	}
	shapes := map[string]schema.Column{"int32": {Type: schema.Int32},
		"array(int32)": {Type: schema.Array, Element: schema.Int32},
		"array(int64)": {Type: schema.Array, Element: schema.Int64}, "binary": {Type: schema.Binary}}
	for stored, column := range shapes {
		d, row := write(t, column)
		for asked, other := range shapes {
			other.ID, other.Name, other.Nullable = 2, "v", true
			s := mustSchema([]schema.Column{{ID: 1, Name: "k", Type: schema.Int32}, other}, 1)
			set := must.Get(Open(s, row, Options{Blocks: d}))(t)
			it := must.Get(
				newIterator(set, scan.Options{Schema: s, Columns: []int{0, 1}, Snapshot: mvcc.Everything}))(t)
			it.Next()
			if err := it.Close(); (err == nil) != (asked == stored) || err != nil && !errors.Is(err, fault.ErrCorrupt) {
				t.Errorf("%s read as %s: %v", stored, asked, err)
			}
			if _, err := set.cell(0, 1); (err == nil) != (asked == stored) ||
				err != nil && !errors.Is(err, fault.ErrCorrupt) {
				t.Errorf("%s read as %s, one cell: %v", stored, asked, err)
			}
			set.Unref()
		}
	}
}
