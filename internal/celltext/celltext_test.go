package celltext

import (
	"math"
	"math/big"
	"strings"
	"testing"
	"time"

	"github.com/oribi-db/oribi/batch"
)

// Package time is the oracle, on every day of the years that are worked out here and on some around
// them.
func TestDatesAreThoseOfPackageTime(t *testing.T) {
	for days := int64(minPlainDate - 1000); days <= maxPlainDate+1000; days++ {
		want := time.Unix(days*secondsPerDay, 0).UTC().Format(time.DateOnly)
		if got := string(appendDate(nil, days)); got != want {
			t.Fatalf("day %d: %s, want %s", days, got, want)
		}
	}
	for _, days := range []int64{math.MinInt32, math.MaxInt32} {
		if got, want := string(appendDate(nil, days)), time.Unix(days*secondsPerDay, 0).UTC().Format(time.DateOnly); got != want {
			t.Errorf("day %d: %s, want %s", days, got, want)
		}
	}
}

// Package math/big is the oracle.
func TestDecimalsAreThoseOfPackageBig(t *testing.T) {
	for _, n := range []int64{0, 1, -1, 9, -10, 99, 100, -12345, math.MaxInt32, math.MinInt32, math.MaxInt64, math.MinInt64, math.MinInt64 + 1} {
		for _, shift := range []int64{0, 1, -1} { // beyond 64 bits too
			v := batch.Int128{Lo: uint64(n), Hi: n>>63 + shift}
			wide := new(big.Int).Add(new(big.Int).Lsh(big.NewInt(shift), 64), big.NewInt(n))
			for scale := range 25 {
				digits := new(big.Int).Abs(wide).String()
				if missing := scale + 1 - len(digits); missing > 0 {
					digits = strings.Repeat("0", missing) + digits
				}
				want := digits[:len(digits)-scale]
				if scale > 0 {
					want += "." + digits[len(digits)-scale:]
				}
				if wide.Sign() < 0 {
					want = "-" + want
				}
				if got := string(AppendDecimal([]byte("x"), v, scale)); got != "x"+want {
					t.Fatalf("%s with %d decimals: %s, want x%s", wide, scale, got, want)
				}
			}
		}
	}
}

func BenchmarkDate(b *testing.B) {
	for _, c := range []struct {
		name string
		days int64
	}{{"here", 20_000}, {"package=time", maxPlainDate + 1}} {
		b.Run(c.name, func(b *testing.B) {
			buffer := make([]byte, 0, 32)
			for b.Loop() {
				buffer = appendDate(buffer[:0], c.days)
			}
		})
	}
}
