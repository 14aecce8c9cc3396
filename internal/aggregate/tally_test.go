package aggregate

import (
	"math/big"
	"testing"

	"github.com/oribi-db/oribi/scan"
)

// Up to the limit of rows, neither sums nor numbers of rows leave their bits, whatever the greatest
// value is.
func TestTalliesHaveSpaceForAllRows(t *testing.T) {
	for valueBits := 1; valueBits <= 62; valueBits++ {
		table := table{index: scan.Index{Bits: 1}, values: []tableValue{{most: 1<<valueBits - 1}}}
		table.makeTallies()
		sum := new(big.Int).Mul(new(big.Int).SetUint64(table.values[0].most), big.NewInt(int64(table.limit)))
		most := 63 // bits of a sum
		if shift := table.tallies[0].shift; shift > 0 {
			most = shift - 1
			if table.limit >= 1<<(63-shift) {
				t.Errorf("values of %d bits: %d rows do not fit %d bits", valueBits, table.limit, 63-shift)
			}
		}
		if sum.BitLen() > most || table.limit == 0 {
			t.Errorf("values of %d bits: the sum of %d takes %d bits of %d", valueBits, table.limit, sum.BitLen(), most)
		}
	}
}
