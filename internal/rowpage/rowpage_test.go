package rowpage

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/internal/coding"
	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/internal/fuzztest"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/internal/seedtest"
	"github.com/oribi-db/oribi/schema"
)

// The examples above kindOut and Words.
func TestWorkedExamples(t *testing.T) {
	unhex := func(s string) []byte { return must.Get(hex.DecodeString(strings.ReplaceAll(s, " ", "")))(t) }
	f := NewFormat([]schema.Column{{Type: schema.Int32}, {Type: schema.String}})
	numbers, texts := batch.NewVector(schema.Int32, 2), batch.NewVector(schema.String, 2)
	numbers.SetCell(0, []byte{7, 0, 0, 0})
	numbers.SetCell(1, []byte{9, 0, 0, 0})
	texts.Bytes[0], texts.Bytes[1] = []byte("a"), []byte("b")
	b := NewBuilder(f, false, 1)
	b.tables[1] = nil // as after many words
	want := unhex("02 00 01 02 07 00 00 00 00 00 00 00 08 00 00 00 00 00 00 00 00 00")
	if got := Finish(b.Append(nil, []*batch.Vector{numbers, texts}, 0, 2)); !bytes.Equal(got, want) {
		t.Errorf("page % x, want % x", got, want)
	}
	words := Words{nil, nil, {[]byte("a"), []byte("bc")}}
	if got, want := words.Append(nil), unhex("02 02 01 61 02 62 63"); !bytes.Equal(got, want) {
		t.Errorf("words % x, want % x", got, want)
	}
}

var types = []schema.Type{schema.Bool, schema.Int8, schema.Int16, schema.Int32, schema.Int64, schema.Float,
	schema.Double, schema.Timestamp, schema.String, schema.Binary, schema.Decimal32, schema.Decimal64,
	schema.Decimal128, schema.Date, schema.Varchar}

// randomVectors returns n rows of random columns: constant, near, far, decimal, few words, and
// long strings, some with NULLs.
func randomVectors(r *rand.Rand, n int) (columns []schema.Column, vectors []*batch.Vector) {
	for range 1 + r.IntN(12) {
		c := schema.Column{Type: types[r.IntN(len(types))], Nullable: r.IntN(3) == 0}
		v := batch.NewVector(c.Type, n)
		span, start, scale := uint64(1)<<r.IntN(64), r.Uint64(), powers[r.IntN(6)]
		constant, long := r.IntN(4) == 0, r.IntN(2) == 0
		for i := range n {
			x := start + r.Uint64N(span)
			if constant {
				x = start
			}
			var cell [16]byte
			binary.LittleEndian.PutUint64(cell[:], x)
			switch w := c.Type.Width(); {
			case c.Nullable && r.IntN(3) == 0:
				v.SetCell(i, nil)
			case w == 0 && long:
				v.SetCell(i, bytes.Repeat([]byte{byte(x)}, int(x%100)))
			case w == 0:
				v.SetCell(i, []byte(strings.Repeat("w", int(x%5))))
			case c.Type == schema.Bool:
				v.SetCell(i, []byte{byte(x) & 1})
			case c.Type == schema.Double && r.IntN(50) > 0:
				binary.LittleEndian.PutUint64(cell[:], math.Float64bits(float64(int64(x%100000))/scale))
				v.SetCell(i, cell[:8])
			default:
				binary.LittleEndian.PutUint64(cell[8:], uint64(int64(x)>>63))
				if span > 1<<60 {
					binary.LittleEndian.PutUint64(cell[8:], x*3)
				}
				v.SetCell(i, cell[:w])
			}
		}
		columns, vectors = append(columns, c), append(vectors, v)
	}
	return columns, vectors
}

func same(a, b []byte) bool { return (a == nil) == (b == nil) && bytes.Equal(a, b) }

// Pages return the cells of their rows, each alone and many together.
func TestRoundTrip(t *testing.T) {
	r := seedtest.Rand(t)
	gathered := 0
	for range 300 {
		n := 1 + r.IntN(300)
		columns, vectors := randomVectors(r, n)
		f := NewFormat(columns)
		b := NewBuilder(f, r.IntN(2) == 0, r.IntN(len(columns)+1))
		for i := range columns {
			if r.IntN(2) == 0 {
				b.SetFar(i, true)
			}
		}
		var pages [][]byte
		var first []int
		var far farBytes
		for from := 0; from < n; {
			to := min(n, from+1+r.IntN(130))
			page := b.Append(nil, vectors, from, to)
			for _, col := range b.Pieces() {
				page = AppendPieces(page, far.pieces(r, vectors[col], from, to))
			}
			pages, first = append(pages, Finish(page)), append(first, from)
			from = to
		}
		words := must.Get(ParseWords(b.Words().Append(nil), len(columns)))(t)
		var p Page
		for k, page := range pages {
			must.Do(t, f.Parse(&p, page, words))
			for col, v := range vectors {
				if !p.Has(col) {
					if b.Wants(col) && p.columns[col].kind != kindFar {
						t.Fatalf("column %d of %s is not in the page", col, columns[col].Type)
					}
					for i := range p.Rows() {
						far.check(t, &p, col, i, v.Cell(first[k]+i))
					}
					gathered += far.gather(t, r, &p, col, columns[col].Type, func(i int) []byte { return v.Cell(first[k] + i) })
					continue
				}
				from := r.IntN(p.Rows())
				to := from + r.IntN(p.Rows()-from+1)
				all := batch.NewVector(columns[col].Type, 3+to-from)
				must.Do(t, p.Gather(all, 3, col, from, to))
				for i := range p.Rows() {
					_, cell, err := p.Cell(nil, col, i)
					if want := v.Cell(first[k] + i); err != nil || !same(cell, want) {
						t.Fatalf("%s: row %d is %x, %v, want %x", columns[col].Type, first[k]+i, cell, err, want)
					}
					if from <= i && i < to && !same(all.Cell(3+i-from), cell) {
						t.Fatalf("%s: row %d is gathered as %x, want %x", columns[col].Type, i, all.Cell(3+i-from), cell)
					}
				}
			}
		}
	}
	if gathered < 300 {
		t.Errorf("only %d rows were read from pieces together", gathered)
	}
}

// farBytes are the files of columns, in one.
type farBytes []byte

// pieces adds the byte strings of rows [from, to), in some pieces, of which some are not stored.
func (f *farBytes) pieces(r *rand.Rand, v *batch.Vector, from, to int) (list []Piece) {
	for from < to {
		end := from + 1 + r.IntN(to-from)
		p := Piece{Rows: end - from, Offset: int64(len(*f))}
		for i := from; i < end; i++ {
			*f = append(*f, v.Cell(i)...)
		}
		if p.CRC = coding.CRC32C((*f)[p.Offset:]); r.IntN(5) == 0 {
			p.Offset = -1
		}
		list, from = append(list, p), end
	}
	return list
}

// check compares a cell of a column that the page does not have.
func (f *farBytes) check(t *testing.T, p *Page, col, row int, want []byte) {
	t.Helper()
	piece, size, from, to, ok, err := p.Far(col, row)
	if err != nil || ok && want == nil || p.IsNull(col, row) && want != nil {
		t.Fatalf("column %d, row %d: %v, %t, want %x", col, row, err, ok, want)
	}
	if !ok {
		return
	}
	b := (*f)[piece.Offset:][:size]
	if coding.CRC32C(b) != piece.CRC || !bytes.Equal(b[from:to], want) {
		t.Fatalf("column %d, row %d: bytes [%d, %d) of %x, want %x", col, row, from, to, b, want)
	}
}

// gather compares some rows of a column that the page does not have, read together. It returns how
// many.
func (f *farBytes) gather(t *testing.T, r *rand.Rand, p *Page, col int, typ schema.Type,
	want func(row int) []byte) int {
	t.Helper()
	from := r.IntN(p.Rows())
	to := from + 1 + r.IntN(p.Rows()-from)
	all := batch.NewVector(typ, 2+to-from)
	pieces, ok, err := p.AppendFar(nil, col, from, to)
	must.Do(t, err)
	if !ok {
		return 0
	}
	for i := range pieces {
		b := (*f)[pieces[i].Offset:][:pieces[i].Size]
		must.Equal(t, coding.CRC32C(b), pieces[i].CRC)
		must.Do(t, p.GatherFar(all, 2, col, from, to, &pieces[i], b))
	}
	for i := from; i < to; i++ {
		if got := all.Cell(2 + i - from); !same(got, want(i)) {
			t.Fatalf("column %d: row %d is gathered as %x, want %x", col, i, got, want(i))
		}
	}
	return to - from
}

// A column with many words is left out from then on, also if another column takes the memory.
func TestWordsAreBounded(t *testing.T) {
	f := NewFormat([]schema.Column{{Type: schema.Int32}, {Type: schema.String}})
	b := NewBuilder(f, false, 1)
	v := []*batch.Vector{batch.NewVector(schema.Int32, 1), batch.NewVector(schema.String, 1)}
	n := 0
	for ; b.Wants(1); n++ {
		v[1].Bytes[0] = binary.BigEndian.AppendUint32(nil, uint32(n))
		b.Append(nil, v, 0, 1)
	}
	if size := len(b.Words().Append(nil)); n < 200 || size > maxWordBytes {
		t.Errorf("%d words of %d bytes", n, size)
	}
}

// readAll reads all cells of a page.
func readAll(f *Format, page []byte, words Words) error {
	var p Page
	if err := f.Parse(&p, page, words); err != nil {
		return err
	}
	for col := range f.columns {
		if !p.Has(col) {
			for i := range p.Rows() {
				if _, _, _, _, _, err := p.Far(col, i); err != nil {
					return err
				}
			}
			pieces, _, err := p.AppendFar(nil, col, 0, p.Rows())
			if err != nil {
				return err
			}
			v := batch.NewVector(f.columns[col].typ, p.Rows())
			for i := range pieces {
				if err := p.GatherFar(v, 0, col, 0, p.Rows(), &pieces[i], make([]byte, pieces[i].Size)); err != nil {
					return err
				}
			}
			continue
		}
		v := batch.NewVector(f.columns[col].typ, p.Rows())
		if err := p.Gather(v, 0, col, 0, p.Rows()); err != nil {
			return err
		}
		for i := range p.Rows() {
			if _, _, err := p.Cell(nil, col, i); err != nil {
				return err
			}
		}
	}
	return nil
}

// Damaged pages and words are errors of damage, or have other cells; nothing panics.
func TestDamage(t *testing.T) {
	r := seedtest.Rand(t)
	found := 0
	for range 200 {
		columns, vectors := randomVectors(r, 40)
		f := NewFormat(columns)
		b := NewBuilder(f, r.IntN(2) == 0, 0)
		for i := range columns {
			if r.IntN(2) == 0 {
				b.SetFar(i, true)
			}
		}
		page := b.Append(nil, vectors, 0, 40)
		for range b.Pieces() {
			page = AppendPieces(page, []Piece{{Rows: 13}, {Rows: 27, Offset: 100}})
		}
		page = Finish(page)
		words := b.Words().Append(nil)
		for range 40 {
			damaged, list := bytes.Clone(page), bytes.Clone(words)
			damaged[r.IntN(min(len(damaged), 60))] ^= 1 << r.IntN(8)
			if r.IntN(4) == 0 {
				damaged = damaged[:r.IntN(len(damaged))]
			}
			if len(list) > 0 {
				list[r.IntN(len(list))] ^= 1 << r.IntN(8)
			}
			w, err := ParseWords(list, len(columns))
			if err == nil {
				err = readAll(f, damaged, w)
			}
			if err != nil {
				if found++; !errors.Is(err, fault.ErrCorrupt) {
					t.Fatal(err)
				}
			}
		}
	}
	if found < 1000 {
		t.Errorf("only %d of 8000 were found", found)
	}
}

func FuzzParse(f *testing.F) {
	r := rand.New(rand.NewPCG(1, 1))
	for range 10 {
		columns, vectors := randomVectors(r, 20)
		b := NewBuilder(NewFormat(columns), true, 0)
		kinds := make([]byte, len(columns))
		for i := range columns {
			kinds[i] = byte(columns[i].Type)
		}
		f.Add(kinds, Finish(b.Append(nil, vectors, 0, 20)), b.Words().Append(nil))
	}
	fuzztest.Run(f, func(t *testing.T, kinds, page, words []byte) {
		var columns []schema.Column
		for _, k := range kinds {
			columns = append(columns, schema.Column{Type: types[int(k)%len(types)]})
		}
		w, err := ParseWords(words, len(columns))
		if err == nil {
			readAll(NewFormat(columns), page, w)
		}
	})
}

// BenchmarkAppend packs rows like TPC-H's lineitem.
func BenchmarkAppend(b *testing.B) {
	r := rand.New(rand.NewPCG(1, 1))
	var columns []schema.Column
	var vectors []*batch.Vector
	add := func(t schema.Type, cell func(i int) []byte) {
		v := batch.NewVector(t, 4096)
		for i := range v.Len {
			c := cell(i)
			if w := t.Width(); w > 0 {
				c = c[:w]
			}
			v.SetCell(i, c)
		}
		columns, vectors = append(columns, schema.Column{Type: t}), append(vectors, v)
	}
	number := func(x uint64) []byte { return binary.LittleEndian.AppendUint64(nil, x) }
	add(schema.Int64, func(i int) []byte { return number(uint64(i / 4)) })
	add(schema.Int32, func(i int) []byte { return number(uint64(i % 4)) })
	for _, most := range []uint64{200000, 10000, 5000, 10000000, 11, 9} {
		add(schema.Int64, func(int) []byte { return number(r.Uint64N(most)) })
	}
	for range 3 {
		add(schema.Date, func(int) []byte { return number(8000 + r.Uint64N(2500)) })
	}
	add(schema.Double, func(int) []byte { return number(math.Float64bits(float64(r.IntN(1e6)) / 100)) })
	for _, most := range []int{3, 2, 4, 7} {
		add(schema.String, func(int) []byte { return []byte("DELIVER IN PERSON " + string(rune('A'+r.IntN(most)))) })
	}
	add(schema.String, func(int) []byte { return bytes.Repeat([]byte("comment "), 2+r.IntN(3)) })
	builder := NewBuilder(NewFormat(columns), false, 2)
	builder.tables[len(columns)-1] = nil
	builder.SetFar(len(columns)-1, true)
	var page []byte
	for i := 0; b.Loop(); i++ {
		page = builder.Append(page[:0], vectors, i%32*128, i%32*128+128)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/128, "ns/row")
	b.ReportMetric(float64(len(page))/128, "bytes/row")
}

// Search finds the first of ascending integers that is at or after any.
func TestSearch(t *testing.T) {
	r := seedtest.Rand(t)
	f := NewFormat([]schema.Column{{Type: schema.Int64}})
	for range 300 {
		values := make([]int64, 1+r.IntN(130))
		first, span := int64(r.Uint64()), uint64(1)<<r.IntN(64)
		for i := range values {
			values[i] = first + int64(r.Uint64N(span))
		}
		slices.Sort(values)
		v := batch.NewVector(schema.Int64, len(values))
		copy(batch.Values[int64](v), values)
		var p Page
		must.Do(t, f.Parse(&p, Finish(NewBuilder(f, false, 1).Append(nil, []*batch.Vector{v}, 0, len(values))), nil))
		probes := []int64{math.MinInt64, math.MaxInt64, 0}
		for _, x := range values {
			probes = append(probes, x-1, x, x+1)
		}
		for _, x := range probes {
			want, found := slices.BinarySearch(values, x)
			if row, exact, ok := p.Search(0, x); row != want || exact != found || !ok {
				t.Fatalf("%d in %v: got row %d, %t, %t, want %d, %t", x, values, row, exact, ok, want, found)
			}
		}
	}
}
