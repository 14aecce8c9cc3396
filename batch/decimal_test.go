package batch

import (
	"math"
	"math/big"
	"strings"
	"testing"

	"github.com/oribi-db/oribi/internal/must"
)

// Package math/big is the oracle.
func TestDecimalsAgreeWithPackageBig(t *testing.T) {
	for _, n := range []int64{0, 1, -1, 9, -10, 99, 100, -12345, math.MaxInt32, math.MinInt32,
		math.MaxInt64, math.MinInt64, math.MinInt64 + 1} {
		for _, shift := range []int64{0, 1, -1} { // also beyond 64 bits
			v := Int128{Lo: uint64(n), Hi: n>>63 + shift}
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
				must.Equal(t, string(Decimal{v, scale}.Append([]byte("x"))), "x"+want,
					wide, "with", scale, "decimals")
			}
		}
	}
}
