package change

import (
	"bytes"
	"errors"
	"testing"

	"pgregory.net/rapid"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/internal/seedtest"
	"github.com/oribi-db/oribi/keyenc"
	"github.com/oribi-db/oribi/schema"
)

func TestRowImageMatchesTheWorkedExample(t *testing.T) {
	l := NewRowFormat(makeSchema(t, 1,
		schema.Column{ID: 0, Name: "k", Type: schema.Int32},
		schema.Column{ID: 1, Name: "a", Type: schema.Int32, Nullable: true},
		schema.Column{ID: 2, Name: "b", Type: schema.String, Nullable: true}))
	got := l.AppendRow(nil, [][]byte{{7, 0, 0, 0}, nil, []byte("hi")})
	must.Equal(t, got, must.Hex(t, "02 07 00 00 00 00 00 00 00 02 00 00 00 68 69"))
	must.Do(t, l.Check(got))
}

func TestRowImageRoundTrip(t *testing.T) {
	seedtest.Check(t, func(rt *rapid.T) {
		s := drawSchema(rt, t)
		l := NewRowFormat(s)
		cells := drawRow(rt, s)
		row := l.AppendRow([]byte("before"), cells)[len("before"):]
		must.Do(rt, l.Check(row))
		for i, want := range cells {
			if got := l.Cell(row, i); !sameCell(got, want) {
				rt.Fatalf("column %d: got %x, want %x", i, got, want)
			}
		}
		if again := l.AppendRow(nil, l.AppendCells(nil, row)); !bytes.Equal(again, row) {
			rt.Fatalf("% x written again is % x", row, again)
		}
	})
}

func TestCheckRefusesMalformedImages(t *testing.T) {
	seedtest.Check(t, func(rt *rapid.T) {
		s := drawSchema(rt, t)
		l := NewRowFormat(s)
		row := l.AppendRow(nil, drawRow(rt, s))
		switch rapid.IntRange(0, 2).Draw(rt, "damage") {
		case 0:
			row = row[:rapid.IntRange(0, len(row)-1).Draw(rt, "cut")]
		case 1:
			row = append(row, rapid.Byte().Draw(rt, "more"))
		default:
			row[rapid.IntRange(0, len(row)-1).Draw(rt, "byte")] ^= 1 << rapid.IntRange(0, 7).Draw(rt, "bit")
		}
		if err := l.Check(row); err != nil {
			if !errors.Is(err, fault.ErrCorrupt) {
				rt.Fatalf("%v is not ErrCorrupt", err)
			}
			return
		}
		if again := l.AppendRow(nil, l.AppendCells(nil, row)); !bytes.Equal(again, row) {
			rt.Fatalf("% x passes, but written again is % x", row, again)
		}
	})
}

func TestGatherReadsOneColumnOfManyImages(t *testing.T) {
	seedtest.Check(t, func(rt *rapid.T) {
		s := drawSchema(rt, t)
		l := NewRowFormat(s)
		var rows [][][]byte
		var images [][]byte
		for range rapid.IntRange(0, 10).Draw(rt, "rows") {
			rows = append(rows, drawRow(rt, s))
			images = append(images, l.AppendRow(nil, rows[len(rows)-1]))
		}
		v := batch.NewVector(schema.Int8, 3) // reused: another type and length
		for c := range s.Columns {
			l.Gather(images, c, v)
			if v.Len != len(rows) || v.Type != s.Columns[c].Type {
				rt.Fatalf("column %d: %d cells of %s", c, v.Len, v.Type)
			}
			for i := range rows {
				if got := v.Cell(i); !sameCell(got, rows[i][c]) {
					rt.Fatalf("row %d column %d: got %x, want %x", i, c, got, rows[i][c])
				}
			}
		}
	})
}

func TestAppendVectorRowsMatchesAppendRow(t *testing.T) {
	seedtest.Check(t, func(rt *rapid.T) {
		s := drawSchema(rt, t)
		l := NewRowFormat(s)
		rows := make([][][]byte, rapid.IntRange(0, 8).Draw(rt, "rows"))
		for i := range rows {
			rows[i] = drawRow(rt, s)
		}
		vectors := vectorsOf(rt, s, rows)
		for c := s.Keys; c < len(s.Columns); c++ {
			col := &s.Columns[c]
			if (col.Default != nil || col.Nullable) && rapid.IntRange(0, 2).Draw(rt, "unset") == 0 {
				vectors[c] = nil
				for i := range rows {
					rows[i][c] = col.Default
				}
			}
		}
		from := rapid.IntRange(0, len(rows)).Draw(rt, "from")
		to := rapid.IntRange(from, len(rows)).Draw(rt, "to")
		used := append(bytes.Repeat([]byte{0xee}, 300), "head"...) // nonzero memory after the bytes that are kept
		buf, ends := l.AppendVectorRows(used[300:304:304], nil, vectors, from, to)
		if rapid.Bool().Draw(rt, "reuse") {
			copy(used, "head")
			buf, ends = l.AppendVectorRows(used[:4], ends[:0], vectors, from, to)
		}
		if len(ends) != to-from || !bytes.HasPrefix(buf, []byte("head")) {
			rt.Fatalf("%d ends, %q", len(ends), buf)
		}
		start := 4
		for i, end := range ends {
			if want := l.AppendRow(nil, rows[from+i]); !bytes.Equal(buf[start:end], want) {
				rt.Fatalf("row %d: got % x, want % x", from+i, buf[start:end], want)
			}
			start = end
		}
		if start != len(buf) {
			rt.Fatalf("%d bytes after the last row", len(buf)-start)
		}
	})
}

func TestAppendVectorKeysMatchesKeysOfRows(t *testing.T) {
	seedtest.Check(t, func(rt *rapid.T) {
		s := drawSchema(rt, t)
		e := keyenc.NewEncoder(s)
		rows := make([][][]byte, rapid.IntRange(0, 8).Draw(rt, "rows"))
		for i := range rows {
			rows[i] = drawRow(rt, s)
		}
		from := rapid.IntRange(0, len(rows)).Draw(rt, "from")
		keys := AppendVectorKeys(nil, e, vectorsOf(rt, s, rows), from, len(rows))
		if len(keys) != len(rows)-from {
			rt.Fatalf("%d keys, want %d", len(keys), len(rows)-from)
		}
		for i, key := range keys {
			if want := e.AppendKey(nil, rows[from+i]); !bytes.Equal(key, want) {
				rt.Fatalf("row %d: got %x, want %x", from+i, key, want)
			}
		}
	})
}

func TestAppendRowPanicsOnInvalidCells(t *testing.T) {
	l := NewRowFormat(specSchema(t))
	for name, cells := range map[string][][]byte{
		"NULL":  {{7, 0, 0, 0}, nil, nil, {0}},
		"width": {{7, 0, 0, 0}, {1, 2}, nil, {0}},
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: no panic", name)
				}
			}()
			l.AppendRow(nil, cells)
		}()
	}
}

func TestReinsertRestoresAllCells(t *testing.T) {
	seedtest.Check(t, func(rt *rapid.T) {
		s := drawSchema(rt, t)
		l := NewRowFormat(s)
		old, cells := drawRow(rt, s), drawRow(rt, s)
		copy(cells[:s.Keys], old[:s.Keys])
		row := l.AppendRow(nil, cells)
		list := List(l.AppendReinsert(nil, row))
		must.Do(rt, list.Check(s))
		if got := l.Apply(nil, l.AppendRow(nil, old), list); !bytes.Equal(got, row) {
			rt.Fatalf("%s: got % x, want % x", list, got, row)
		}
	})
}

func TestReinsertSetsAddedColumnsToDefaults(t *testing.T) {
	s := makeSchema(t, 1,
		schema.Column{ID: 0, Name: "k", Type: schema.Int8},
		schema.Column{ID: 1, Name: "a", Type: schema.Int8},
		schema.Column{ID: 2, Name: "b", Type: schema.String, Default: []byte("of new rows"), ReadDefault: []byte("d")},
		schema.Column{ID: 3, Name: "c", Type: schema.Int8, Nullable: true})
	l := NewRowFormat(s)
	row := l.AppendRow(nil, [][]byte{{1}, {2}, []byte("old"), {3}})
	got := l.Apply(nil, row, AppendColumn(AppendUpdateHeader(nil, Reinsert), 1, []byte{9}))
	must.Equal(t, got, l.AppendRow(nil, [][]byte{{1}, {9}, []byte("d"), nil}))
}

func TestApplySetsListedColumns(t *testing.T) {
	seedtest.Check(t, func(rt *rapid.T) {
		s := drawSchema(rt, t)
		l := NewRowFormat(s)
		cells := drawRow(rt, s)
		row := l.AppendRow(nil, cells)
		before := bytes.Clone(row)
		var lists []List
		for range rapid.IntRange(0, 4).Draw(rt, "lists") {
			list := List(AppendUpdateHeader(nil, Update))
			for range rapid.IntRange(1, 4).Draw(rt, "columns") {
				c := rapid.IntRange(s.Keys, len(s.Columns)).Draw(rt, "column")
				if c == len(s.Columns) {
					list = AppendColumn(list, 9999, []byte("a dropped column"))
					continue
				}
				cells[c] = drawCell(rt, &s.Columns[c])
				list = AppendColumn(list, s.Columns[c].ID, cells[c])
			}
			lists = append(lists, list)
		}
		want := l.AppendRow(nil, cells)
		if got := l.Apply([]byte("x"), row, lists...); !bytes.Equal(got[1:], want) || got[0] != 'x' {
			rt.Fatalf("%v on % x: got % x, want % x", lists, row, got, want)
		}
		if !bytes.Equal(row, before) {
			rt.Fatal("Apply changed the row")
		}
	})
}

func TestApplyDoesNotAllocate(t *testing.T) {
	l := NewRowFormat(specSchema(t))
	row := l.AppendRow(nil, [][]byte{{7, 0, 0, 0}, {1, 0, 0, 0}, []byte("s"), {1}})
	dst := make([]byte, 0, 100)
	for _, list := range []List{update(11, []byte{5, 0, 0, 0}), update(12, []byte("longer"), 11, []byte{5, 0, 0, 0})} {
		must.Equal(t, testing.AllocsPerRun(100, func() { dst = l.Apply(dst[:0], row, list) }), 0, list, "allocations")
	}
}

func BenchmarkRowFormat(b *testing.B) {
	const n = 4096
	s := makeSchema(b, 1, schema.Column{ID: 0, Name: "k", Type: schema.Int64},
		schema.Column{ID: 1, Name: "a", Type: schema.Int64},
		schema.Column{ID: 2, Name: "s", Type: schema.String, Nullable: true},
		schema.Column{ID: 3, Name: "d", Type: schema.Double})
	l := NewRowFormat(s)
	rows := make([][]byte, n)
	vectors := make([]*batch.Vector, len(s.Columns))
	for i := range rows {
		rows[i] = l.AppendRow(nil, [][]byte{make([]byte, 8), make([]byte, 8), []byte("some words"), make([]byte, 8)})
	}
	perRow := func(b *testing.B) {
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/n, "ns/row")
	}
	for c := range vectors {
		vectors[c] = batch.NewVector(s.Columns[c].Type, 0)
		b.Run("gather/type="+s.Columns[c].Type.String(), func(b *testing.B) {
			for b.Loop() {
				l.Gather(rows, c, vectors[c])
			}
			perRow(b)
		})
	}
	b.Run("vector-rows", func(b *testing.B) {
		var buf []byte
		var ends []int
		for b.Loop() {
			buf, ends = l.AppendVectorRows(buf[:0], ends[:0], vectors, 0, n)
		}
		perRow(b)
	})
	b.Run("rows", func(b *testing.B) {
		var buf []byte
		cells := l.AppendCells(nil, rows[0])
		for b.Loop() {
			buf = buf[:0]
			for range n {
				buf = l.AppendRow(buf, cells)
			}
		}
		perRow(b)
	})
}
