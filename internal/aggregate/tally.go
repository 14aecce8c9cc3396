package aggregate

import (
	"math/bits"

	"github.com/oribi-db/oribi/scan"
)

// tally is the sums of values by index. A sum may also contain the number of values, times 2^shift:
// one addition for each row then suffices for both.
type tally struct {
	lanes int     // of each index; a row is added to one of them, its neighbor to another
	bins  []int64 // by index and lane
	shift int     // 0: no number of values

	sum int64 // set by read
}

// Rows with equal indexes must wait for one another: an addition to memory that was just written
// takes several cycles. With few indexes, rows thus go to several lanes in turn.
const (
	laneBits   = 2
	laneRows   = 1 << laneBits
	fewIndexes = 1 << 7
)

// maxTableRows is the number of rows after which a table is flushed.
const maxTableRows = 1 << 30

// makeTallies makes the tallies of t.values, the first of which has the number of rows if there is
// space for it.
func (t *table) makeTallies() {
	size := 2 << t.index.Bits // the upper half is for rows that are not selected
	newTally := func(shift int) {
		y := tally{lanes: 1, shift: shift}
		if size <= fewIndexes {
			y.lanes = laneRows
		}
		y.bins = make([]int64, y.lanes*max(size, fewIndexes))
		t.tallies = append(t.tallies, y)
	}
	t.limit = maxTableRows
	for i := range t.values {
		valueBits, shift := bits.Len64(t.values[i].most), 0
		if i == 0 && valueBits <= maxCountedBits {
			// 2^rowBits values have a sum below 2^(shift−1), and their number is below
			// 2^(63−shift).
			rowBits := (62 - valueBits) / 2
			shift = valueBits + rowBits + 1
			t.limit = min(t.limit, 1<<rowBits, 1<<(63-shift)-1)
		}
		t.limit = min(t.limit, 1<<(62-valueBits))
		newTally(shift)
	}
	if len(t.values) == 0 || t.tallies[0].shift == 0 {
		newTally(0)
	}
}

// maxCountedBits is the size of values whose sums have space for the number of rows: with 28 bits,
// the sum and the number are added up for (62 − 28) / 2 = 17 bits of rows before a flush.
const maxCountedBits = 28

// add adds up the rows of a strip.
func (t *table) add(s *scan.Strip) error {
	for i := range t.tallies {
		y := &t.tallies[i]
		switch {
		case i == len(t.values):
			y.count(s.Index)
		default:
			y.add(s.Index, t.valuesOf(&t.values[i], s.Values), countOne(y.shift))
		}
	}
	for i := range t.extremes {
		e := &t.extremes[i]
		e.add(s.Index, s.Values[e.at])
	}
	return nil
}

// countOne returns what a row adds to a sum apart from its value.
func countOne(shift int) int64 {
	if shift == 0 {
		return 0
	}
	return 1 << shift
}

// add adds each value, and more, to the sum of its index.
func (y *tally) add(index []uint16, values []int64, more int64) {
	values = values[:len(index)]
	if y.lanes == 1 {
		bins := y.bins
		for i, x := range index {
			bins[x] += values[i] + more
		}
		return
	}
	bins := (*[fewIndexes * laneRows]int64)(y.bins)
	for ; len(index) >= laneRows && len(values) >= laneRows; index, values = index[laneRows:], values[laneRows:] {
		x, v := (*[laneRows]uint16)(index), (*[laneRows]int64)(values)
		bins[x[0]%fewIndexes*laneRows] += v[0] + more
		bins[x[1]%fewIndexes*laneRows+1] += v[1] + more
		bins[x[2]%fewIndexes*laneRows+2] += v[2] + more
		bins[x[3]%fewIndexes*laneRows+3] += v[3] + more
	}
	for i, x := range index {
		bins[x%fewIndexes*laneRows] += values[i] + more
	}
}

// count adds 1 to the sum of each index.
func (y *tally) count(index []uint16) {
	if y.lanes == 1 {
		bins := y.bins
		for _, x := range index {
			bins[x]++
		}
		return
	}
	bins := (*[fewIndexes * laneRows]int64)(y.bins)
	for ; len(index) >= laneRows; index = index[laneRows:] {
		x := (*[laneRows]uint16)(index)
		bins[x[0]%fewIndexes*laneRows]++
		bins[x[1]%fewIndexes*laneRows+1]++
		bins[x[2]%fewIndexes*laneRows+2]++
		bins[x[3]%fewIndexes*laneRows+3]++
	}
	for _, x := range index {
		bins[x%fewIndexes*laneRows]++
	}
}

// read sets the sums of the tallies to the sums at index x and returns the number of rows at x.
func (t *table) read(x int) (n int64) {
	for i := range t.tallies {
		y := &t.tallies[i]
		y.sum = 0
		for _, v := range y.bins[x*y.lanes:][:y.lanes] {
			y.sum += v
		}
		switch {
		case i == len(t.values):
			n = y.sum
		case y.shift > 0:
			total := y.sum
			y.sum = total << (64 - y.shift) >> (64 - y.shift)
			n = (total - y.sum) >> y.shift
		}
	}
	return n
}
