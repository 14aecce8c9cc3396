package compaction

import (
	"bytes"
	"math"
	"math/big"
	"testing"

	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/internal/seedtest"
)

func depth(spans []Span) (d float64) {
	for _, s := range spans {
		d += s.Width()
	}
	return d
}

// The average heights of the specification.
func TestDepthIsTheSumOfWidths(t *testing.T) {
	for layout, want := range map[string]float64{
		"":                           0,
		"1:A-B=10":                   1,
		"1:A-B=10 2:B-C=10":          1,
		"1:A-B=10 2:C-D=10":          1,
		"1:A-B=10 2:A-B=10":          2,
		"1:A-B=10 2:A-B=30":          2,
		"1:A-C=10 2:B-D=10":          1.5,
		"1:A-C=10 2:B-D=10 3:C-E=10": 5 / 3.,
		"1:A-A=10":                   0,
		"1:A-B=10 2:A-A=10 3:B-B=10": 1,
		"1:A-B=10 2:A-B=0":           2,
		"1:A-B=10 2:B-A=10":          1, // rowset 2 is not well-formed
	} {
		if got := depth(Spans(layoutOf(layout))); math.Abs(got-want) > 1e-12 {
			t.Errorf("%s: depth %v, want %v", layout, got, want)
		}
	}
}

func TestSpansAreSharesOfBytesBelow(t *testing.T) {
	for layout, want := range map[string][]Span{
		"1:A-B=10 2:B-C=30": {{0, 0.25}, {0.25, 1}},
		"1:A-B=10 2:C-D=30": {{0, 0.25}, {0.25, 1}},
		"1:A-E=40 2:B-C=40": {{0, 1}, {0.125, 0.75}},
		"1:A-E=40 2:C-C=40": {{0, 1}, {0.5, 0.5}},
		"1:A-B=0 2:C-D=0":   {{}, {}},
	} {
		must.Equal(t, Spans(layoutOf(layout)), want, layout)
	}
}

// shareBelow returns, in exact arithmetic, the bytes of the layout below key, by the definition:
// each rowset's bytes are spread evenly over the numbers between its first and last key.
func shareBelow(layout Layout, key []byte) *big.Rat {
	sum := new(big.Rat)
	for i := range layout.RowSets {
		r := &layout.RowSets[i]
		n := 0
		for n < min(len(r.MinKey), len(r.MaxKey)) && r.MinKey[n] == r.MaxKey[n] {
			n++
		}
		number := func(k []byte) *big.Int {
			b := make([]byte, n+8)
			copy(b, k)
			return new(big.Int).SetBytes(b[n:])
		}
		from, to := number(r.MinKey), number(r.MaxKey)
		if !r.wellFormed() || from.Cmp(to) == 0 || bytes.Compare(key, r.MinKey) <= 0 {
			continue
		}
		share := big.NewRat(1, 1)
		if bytes.Compare(key, r.MaxKey) < 0 {
			share.SetFrac(new(big.Int).Sub(number(key), from), new(big.Int).Sub(to, from))
		}
		sum.Add(sum, share.Mul(share, new(big.Rat).SetInt64(r.Bytes)))
	}
	return sum
}

func TestSpansMatchExactArithmetic(t *testing.T) {
	r := seedtest.Rand(t)
	randomKey := func() []byte {
		key := make([]byte, r.IntN(14))
		for i := range key {
			// Few values make long common prefixes, and zeros are padding too.
			key[i] = byte(r.IntN(3))
		}
		return key
	}
	for range 150 {
		var l Layout
		for id := range 1 + r.IntN(12) {
			set := RowSetInfo{ID: uint64(id), MinKey: randomKey(), MaxKey: randomKey(),
				Bytes: r.Int64N(1 << r.IntN(50))}
			if r.IntN(10) > 0 && bytes.Compare(set.MinKey, set.MaxKey) > 0 {
				set.MinKey, set.MaxKey = set.MaxKey, set.MinKey
			}
			l.RowSets = append(l.RowSets, set)
		}
		total := shareBelow(l, []byte{255})
		for i, span := range Spans(l) {
			want := Span{}
			if set := &l.RowSets[i]; set.wellFormed() && total.Sign() > 0 {
				want.From, _ = new(big.Rat).Quo(shareBelow(l, set.MinKey), total).Float64()
				want.To, _ = new(big.Rat).Quo(shareBelow(l, set.MaxKey), total).Float64()
			}
			if math.Abs(span.From-want.From) > 1e-12 || math.Abs(span.To-want.To) > 1e-12 {
				t.Fatalf("rowset %d of %+v: %v, want %v", i, l.RowSets, span, want)
			}
		}
	}
}

// The first and last key of a rowset may be close, and differ in the first byte of their numbers
// all the same.
func TestSpansOfKeysThatDifferInTheEighthByte(t *testing.T) {
	key := func(first byte, others ...byte) []byte { return append([]byte{first}, others...) }
	middle := key(1, 255, 255, 255, 255, 255, 255, 252)
	l := Layout{RowSets: []RowSetInfo{
		{ID: 1, MinKey: key(1, 255, 255, 255, 255, 255, 255, 240), MaxKey: key(2, 0, 0, 0, 0, 0, 0, 0), Bytes: 16},
		{ID: 2, MinKey: middle, MaxKey: middle, Bytes: 16},
	}}
	must.Equal(t, Spans(l), []Span{{0, 1}, {0.75, 0.75}})
}

// Bytes per key that differ by many orders of magnitude leave no rounding errors in later spans.
func TestSpansOfNarrowRowSetsDoNotDisturbOthers(t *testing.T) {
	l := Layout{RowSets: []RowSetInfo{
		{ID: 1, MinKey: []byte{1}, MaxKey: []byte{9}, Bytes: 8},
		{ID: 2, MinKey: []byte{2, 0, 0, 0, 0, 0, 0, 0}, MaxKey: []byte{2, 255, 255, 255, 255, 255, 255, 255}, Bytes: 0},
		{ID: 3, MinKey: []byte{3, 0, 0, 0, 0, 0, 0, 1}, MaxKey: []byte{3, 0, 0, 0, 0, 0, 0, 2}, Bytes: 1 << 62},
		{ID: 4, MinKey: []byte{4}, MaxKey: []byte{5}, Bytes: 1},
	}}
	spans := Spans(l)
	if got := spans[3].Width() * (1<<62 + 9); math.Abs(got-2) > 2000 { // of 2^62, in steps of 2^-53
		t.Errorf("the last rowset spans %v bytes", got)
	}
	l.RowSets[2].Bytes = 0
	if got := Spans(l)[3].Width() * 9; math.Abs(got-2) > 1e-12 {
		t.Errorf("the last rowset spans %v bytes", got)
	}
}
