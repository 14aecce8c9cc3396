package carbondata

import (
	"encoding/binary"
	"math"

	"github.com/oribi-db/oribi/internal/fault"
)

// Row IDs: the row of each sorted entry. Integers are big-endian. Source: carbondata spec §7.6.
//
//	offset  width  field   meaning
//	0       4      length  bytes of the list
//	4       2 each list    row IDs
//	…       2 each map     positions in the list: the entry there and the next are the first and the
//	                       last of a run of rows; empty if there are no runs
//
// Rows 1 2 3 4 5 of sorted entries 0 to 4, and row 0 of entry 5, as a run and a row:
//
//	00 00 00 06  00 01 00 05 00 00  00 00
const rowIDLen = 2 // file format: never change

// inverse returns the sorted entry of each of n rows, in the memory of dst if that is large enough.
func inverse(dst []uint16, b []byte, n int) ([]uint16, error) {
	const head = 4
	if len(b) < head {
		return nil, fault.Corruptf("%d bytes", len(b))
	}
	length := binary.BigEndian.Uint32(b)
	b = b[head:]
	if int64(length) > int64(len(b)) || length%rowIDLen != 0 || len(b)%rowIDLen != 0 {
		return nil, fault.Corruptf("a list of %d bytes, %d are left", int32(length), len(b))
	}
	list, positions := b[:length], b[length:]
	const none = math.MaxUint16
	if cap(dst) < n {
		dst = make([]uint16, n)
	}
	result := dst[:n]
	for i := range result {
		result[i] = none
	}
	entry := 0
	add := func(first, last int) error {
		if first < 0 || last < first || last >= n || last-first >= n-entry {
			return fault.Corruptf("rows %d to %d of %d, entry %d", first, last, n, entry)
		}
		for row := first; row <= last; row++ {
			if result[row] != none {
				return fault.Corruptf("row %d twice", row)
			}
			result[row] = uint16(entry)
			entry++
		}
		return nil
	}
	at := func(b []byte, i int) int { return int(int16(binary.BigEndian.Uint16(b[i*rowIDLen:]))) }
	count := len(list) / rowIDLen
	for i := 0; i < count; i++ {
		first := at(list, i)
		last := first
		if len(positions) > 0 && at(positions, 0) == i {
			positions = positions[rowIDLen:]
			if i++; i == count {
				return nil, fault.Corruptf("a run that begins at the last of %d row IDs", count)
			}
			last = at(list, i)
		}
		if err := add(first, last); err != nil {
			return nil, err
		}
	}
	if len(positions) > 0 {
		return nil, fault.Corruptf("a run at position %d of %d row IDs", at(positions, 0), count)
	}
	if entry != n {
		return nil, fault.Corruptf("%d rows, want %d", entry, n)
	}
	return result, nil
}
