package batch

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/internal/seedtest"
	"github.com/oribi-db/oribi/schema"
)

var allOps = []Operator{Eq, Ne, Lt, Le, Gt, Ge, In, IsNull, NotNull}

var allTypes = []schema.Type{schema.Uint8, schema.Int8, schema.Uint16, schema.Int16, schema.Uint32, schema.Int32,
	schema.Uint64, schema.Int64, schema.String, schema.Bool, schema.Float, schema.Double, schema.Binary,
	schema.Timestamp, schema.Int128, schema.Decimal32, schema.Decimal64, schema.Decimal128, schema.Varchar, schema.Date}

// randomCell makes a cell from a small domain, so that equal cells and all orders occur.
func randomCell(r *rand.Rand, t schema.Type) []byte {
	small := int64(r.IntN(9)) - 4
	switch t.Physical() {
	case schema.Bool:
		return []byte{byte(r.IntN(2))}
	case schema.Binary:
		return [][]byte{{}, {0}, {0, 0}, []byte("a"), []byte("ab"), []byte("b"), {0xff}, {0xff, 0}}[r.IntN(8)]
	case schema.Float:
		f := []float32{0, float32(math.Copysign(0, -1)), 1, -1, float32(math.NaN()), float32(math.Inf(1)),
			float32(math.Inf(-1))}[r.IntN(7)]
		return binary.LittleEndian.AppendUint32(nil, math.Float32bits(f))
	case schema.Double:
		f := []float64{0, math.Copysign(0, -1), 1, -1, math.NaN(), math.Inf(1), math.Inf(-1)}[r.IntN(7)]
		return binary.LittleEndian.AppendUint64(nil, math.Float64bits(f))
	case schema.Int128:
		c := binary.LittleEndian.AppendUint64(nil, []uint64{0, 1, math.MaxUint64, 1 << 63}[r.IntN(4)])
		return binary.LittleEndian.AppendUint64(c, uint64(small))
	}
	if r.IntN(3) == 0 {
		small = int64(r.Uint64())
	}
	return binary.LittleEndian.AppendUint64(nil, uint64(small))[:t.Width()]
}

// number returns the value of a cell as a big.Float, nil for NaN.
func number(t schema.Type, c []byte) *big.Float {
	var x *big.Float
	switch t.Physical() {
	case schema.Float, schema.Double:
		f := math.Float64frombits(binary.LittleEndian.Uint64(append(bytes.Clone(c), make([]byte, 8)...)))
		if len(c) == 4 {
			f = float64(math.Float32frombits(binary.LittleEndian.Uint32(c)))
		}
		if math.IsNaN(f) {
			return nil
		}
		x = big.NewFloat(f)
	default:
		be := bytes.Clone(c)
		for i, j := 0, len(be)-1; i < j; i, j = i+1, j-1 {
			be[i], be[j] = be[j], be[i]
		}
		n := new(big.Int).SetBytes(be)
		switch t.Physical() {
		case schema.Int8, schema.Int16, schema.Int32, schema.Int64, schema.Int128:
			if be[0] >= 0x80 {
				n.Sub(n, new(big.Int).Lsh(big.NewInt(1), uint(8*len(be))))
			}
		}
		x = new(big.Float).SetPrec(200).SetInt(n)
	}
	return x
}

// naive evaluates a predicate on one cell in the simplest way.
func naive(p *Predicate, cell []byte) bool {
	if cell == nil || p.Op == IsNull || p.Op == NotNull {
		return (cell == nil) == (p.Op == IsNull) && (p.Op == IsNull || p.Op == NotNull)
	}
	holds := func(op Operator, v []byte) bool {
		var order int
		if p.Type.Variable() {
			order = bytes.Compare(cell, v)
		} else {
			a, b := number(p.Type, cell), number(p.Type, v)
			if a == nil || b == nil {
				return op == Ne
			}
			order = a.Cmp(b)
		}
		return map[Operator]bool{Eq: order == 0, Ne: order != 0, Lt: order < 0, Le: order <= 0, Gt: order > 0,
			Ge: order >= 0}[op]
	}
	if p.Op == Like {
		parts := make([]string, len(p.Values))
		for i, v := range p.Values {
			parts[i] = regexp.QuoteMeta(latin1(v))
		}
		return regexp.MustCompile(`(?s)\A` + strings.Join(parts, ".*") + `\z`).MatchString(latin1(cell))
	}
	if p.Op != In {
		return holds(p.Op, p.Values[0])
	}
	for _, v := range p.Values {
		if v != nil && holds(Eq, v) {
			return true
		}
	}
	return false
}

// latin1 returns text with a character for each byte.
func latin1(b []byte) string {
	var s strings.Builder
	for _, c := range b {
		s.WriteRune(rune(c))
	}
	return s.String()
}

func randomPredicate(r *rand.Rand, t schema.Type, op Operator) *Predicate {
	p := &Predicate{Column: "c", Type: t, Op: op}
	switch {
	case op == In:
		for range r.IntN(2) * r.IntN(20) {
			p.Values = append(p.Values, randomCell(r, t))
		}
		if r.IntN(4) == 0 {
			p.Values = append(p.Values, nil)
		}
	case op <= Ge:
		p.Values = [][]byte{randomCell(r, t)}
	case op == Like:
		for range 2 + r.IntN(3) {
			p.Values = append(p.Values,
				[][]byte{{}, {}, {0}, []byte("a"), []byte("b"), []byte("ab"), {0xff}}[r.IntN(7)])
		}
	}
	return p
}

func randomVector(r *rand.Rand, t schema.Type, n int, nulls, dict bool) *Vector {
	v := NewVector(t, n)
	if dict {
		d := &Dictionary{}
		for range 1 + r.IntN(2*n+2) {
			d.Words = append(d.Words, randomCell(r, t))
		}
		v.UseCodes(d, n)
		for i := range v.Codes {
			v.Codes[i] = uint32(r.IntN(len(d.Words)))
		}
	} else {
		for i := range n {
			v.SetCell(i, randomCell(r, t))
		}
	}
	if nulls {
		v.NeedPresent()
		for i := range n {
			if r.IntN(3) == 0 {
				v.Present.Clear(i)
				if !dict && t.Variable() {
					v.Bytes[i] = nil
				}
			}
		}
	}
	return v
}

func TestEvalMatchesEvalCell(t *testing.T) {
	r := seedtest.Rand(t)
	for _, typ := range allTypes {
		ops := allOps
		if typ.Variable() {
			ops = append(slices.Clip(ops), Like)
		}
		for _, op := range ops {
			for round := range 12 {
				n := r.IntN(200)
				v := randomVector(r, typ, n, round%2 == 0, typ.Variable() && round%3 == 0)
				p := randomPredicate(r, typ, op)
				unprepared := *p
				if round%4 != 1 {
					must.Do(t, p.Prepare())
				}
				sel := MakeBitmap(n)
				for i := range n {
					if r.IntN(4) != 0 {
						sel.Set(i)
					}
				}
				before := append(Bitmap(nil), sel...)
				p.Eval(v, sel)
				for i := range n {
					cell := v.Cell(i)
					want := naive(&unprepared, cell)
					if got := p.EvalCell(cell); got != want {
						t.Fatalf("%s: EvalCell(%x) %s %x = %v", typ, cell, op, p.Values, got)
					}
					if got := sel.Get(i); got != (want && before.Get(i)) {
						t.Fatalf("%s: cell %d of %d, %x %s %x: selected %v, before %v", typ, i, n, cell, op,
							p.Values, got, before.Get(i))
					}
				}
			}
		}
	}
}

func TestPreparedPredicateCachesEvalWords(t *testing.T) {
	d := &Dictionary{Words: [][]byte{[]byte("a"), nil, []byte("b"), []byte("a")}}
	p := &Predicate{Type: schema.String, Op: Ge, Values: [][]byte{[]byte("a")}}
	must.Do(t, p.Prepare())
	m := p.EvalWords(d)
	must.Equal(t, m[0], 0b1101, "words")
	copied := *p
	must.Equal(t, &copied.EvalWords(d)[0] == &m[0], true, "a copy evaluated the dictionary again")
	must.Equal(t, p.EvalWords(&Dictionary{Words: [][]byte{[]byte("z")}})[0], 1, "words of another dictionary")
}

func TestFilterCodesAtAnyOffset(t *testing.T) {
	r := seedtest.Rand(t)
	for range 200 {
		at, n := r.IntN(130), r.IntN(200)
		match, codes := MakeBitmap(100), make([]uint32, n)
		for i := range 100 {
			if r.IntN(2) == 0 {
				match.Set(i)
			}
		}
		for i := range codes {
			codes[i] = uint32(r.IntN(100))
		}
		sel := MakeBitmap(at + n + 70)
		sel.SetRange(0, at+n+70)
		FilterCodes(codes, match, sel, at)
		for i := range at + n + 70 {
			want := i < at || i >= at+n || match.Get(int(codes[i-at]))
			must.Equal(t, sel.Get(i), want, "at", at, n, "codes: bit", i)
		}
	}
}

func TestPrepareRefusesInvalidPredicates(t *testing.T) {
	for name, p := range map[string]Predicate{
		"no test":            {Type: schema.Int32},
		"unknown test":       {Type: schema.Int32, Op: Like + 1},
		"unknown type":       {Type: 18, Op: IsNull},
		"no value":           {Type: schema.Int32, Op: Eq},
		"two values":         {Type: schema.String, Op: Lt, Values: [][]byte{{}, {}}},
		"one value too many": {Type: schema.String, Op: IsNull, Values: [][]byte{{}}},
		"short value":        {Type: schema.Int32, Op: Eq, Values: [][]byte{{1, 2, 3}}},
		"NULL":               {Type: schema.String, Op: Eq, Values: [][]byte{nil}},
		"one part":           {Type: schema.String, Op: Like, Values: [][]byte{{}}},
		"NULL part":          {Type: schema.String, Op: Like, Values: [][]byte{{}, nil}},
		"parts of a number":  {Type: schema.Int32, Op: Like, Values: [][]byte{make([]byte, 4), make([]byte, 4)}},
		"short in list":      {Type: schema.Int64, Op: In, Values: [][]byte{make([]byte, 8), make([]byte, 4)}},
	} {
		must.Fail(t, p.Prepare(), fault.ErrSchema, name)
	}
}

func TestPrepareSortsCopyOfValues(t *testing.T) {
	one, two := []byte("1"), []byte("2")
	mine := [][]byte{two, nil, one, two}
	p := Predicate{Type: schema.String, Op: In, Values: mine}
	must.Do(t, p.Prepare())
	must.Equal(t, fmt.Sprintf("%s", p.Values), "[1 2]", "values")
	if mine[0][0] != '2' || mine[1] != nil {
		t.Error("the caller's list was changed")
	}
}

func BenchmarkEval(b *testing.B) {
	r := rand.New(rand.NewPCG(1, 1))
	for _, typ := range []schema.Type{schema.Int32, schema.Int64, schema.Double} {
		v := NewVector(typ, WindowRows)
		for i := range v.Data {
			v.Data[i] = byte(r.Uint32())
		}
		p := &Predicate{Type: typ, Op: Lt, Values: [][]byte{make([]byte, typ.Width())}}
		must.Do(b, p.Prepare())
		sel := MakeBitmap(WindowRows)
		b.Run(fmt.Sprintf("type=%s/op=lt", typ), func(b *testing.B) {
			for b.Loop() {
				sel.SetRange(0, WindowRows)
				p.Eval(v, sel)
			}
			b.ReportMetric(float64(b.N)*WindowRows/b.Elapsed().Seconds(), "rows/s")
		})
	}
}
