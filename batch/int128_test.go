package batch

import (
	"math/big"
	"testing"

	"pgregory.net/rapid"

	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/internal/seedtest"
)

// bigOf returns the value of v as a big.Int.
func bigOf(v Int128) *big.Int {
	b := new(big.Int).Lsh(big.NewInt(v.Hi), 64)
	return b.Add(b, new(big.Int).SetUint64(v.Lo))
}

// two127 is the first value that is too large.
var two127 = new(big.Int).Lsh(big.NewInt(1), 127)

func inRange(b *big.Int) bool {
	return b.Cmp(two127) < 0 && b.Cmp(new(big.Int).Neg(two127)) >= 0
}

// drawInt128 draws values of all sizes, including limits and powers of ten.
func drawInt128(t *rapid.T, name string) Int128 {
	words := rapid.OneOf(rapid.Just(uint64(0)), rapid.Just(^uint64(0)), rapid.Just(uint64(1)<<63),
		rapid.Just(uint64(1)<<63-1),
		rapid.Uint64Range(0, 100), rapid.Uint64())
	switch rapid.IntRange(0, 3).Draw(t, name+" kind") {
	case 0:
		return Int128Of(int64(words.Draw(t, name)))
	case 1:
		v := Pow10(rapid.IntRange(0, 38).Draw(t, name+" digits"))
		// no power of ten but 1 is so close to a multiple of 2^64
		v.Lo += uint64(rapid.IntRange(-2, 2).Draw(t, name+" off"))
		if rapid.Bool().Draw(t, name+" sign") {
			return v.Neg()
		}
		return v
	}
	return Int128{Lo: words.Draw(t, name+" low"), Hi: int64(words.Draw(t, name+" high"))}
}

func TestInt128MatchesBigInt(t *testing.T) {
	seedtest.Check(t, func(t *rapid.T) {
		v, o := drawInt128(t, "v"), drawInt128(t, "o")
		b := bigOf(v)
		if got := v.String(); got != b.String() {
			t.Fatalf("%x is %s, want %s", v, got, b)
		}
		if got, want := v.Cmp(o), b.Cmp(bigOf(o)); got != want {
			t.Fatalf("%s against %s: %d, want %d", v, o, got, want)
		}
		if v.Negative() != (b.Sign() < 0) {
			t.Fatalf("%s: negative %t", v, v.Negative())
		}
		if neg := new(big.Int).Neg(b); inRange(neg) && bigOf(v.Neg()).Cmp(neg) != 0 {
			t.Fatalf("−(%s) is %s", v, v.Neg())
		}
		ten := big.NewInt(10)
		product := new(big.Int).Mul(b, ten)
		if got, ok := v.Mul10(); ok != inRange(product) || ok && bigOf(got).Cmp(product) != 0 {
			t.Fatalf("10 × %s is %s, %t", v, got, ok)
		}
		sum := new(big.Int).Add(b, bigOf(o))
		if got, ok := v.Add(o); ok != inRange(sum) || ok && bigOf(got).Cmp(sum) != 0 {
			t.Fatalf("%s + %s is %s, %t", v, o, got, ok)
		}
		product = new(big.Int).Mul(b, bigOf(o))
		if got, ok := v.Mul(o); ok != inRange(product) || ok && bigOf(got).Cmp(product) != 0 {
			t.Fatalf("%s × %s is %s, %t", v, o, got, ok)
		}
		nearest, _ := new(big.Rat).SetInt(b).Float64()
		if got := v.Float64(); got != nearest {
			t.Fatalf("%s is near %v, want %v", v, got, nearest)
		}
		q, r := new(big.Int).QuoRem(b, ten, new(big.Int))
		if gotQ, gotR := v.Div10(); bigOf(gotQ).Cmp(q) != 0 || gotR != r.Int64() {
			t.Fatalf("%s / 10 is %s rest %d, want %s rest %s", v, gotQ, gotR, q, r)
		}
	})
}

func TestFitsDigits(t *testing.T) {
	seedtest.Check(t, func(t *rapid.T) {
		v := drawInt128(t, "v")
		digits := len(new(big.Int).Abs(bigOf(v)).String())
		if v == (Int128{}) {
			digits = 0
		}
		for n := range 39 {
			if v.FitsDigits(n) != (digits <= n) {
				t.Fatalf("%s, %d digits, fits %d: %t", v, digits, n, v.FitsDigits(n))
			}
		}
	})
}

func TestPow10(t *testing.T) {
	want := big.NewInt(1)
	for n := range 39 {
		if got := bigOf(Pow10(n)); got.Cmp(want) != 0 {
			t.Errorf("10^%d is %s", n, got)
		}
		want = new(big.Int).Mul(want, big.NewInt(10))
	}
	smallest := Int128{Hi: -1 << 63}
	must.Equal(t, smallest.Neg(), smallest)
	if _, ok := Pow10(38).Mul10(); ok {
		t.Error("10^39 fits")
	}
}
