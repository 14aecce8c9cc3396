package encoding

import (
	"math/bits"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/internal/coding"
	"github.com/oribi-db/oribi/internal/fault"
)

// maxPrologueRows limits the bitmap that a few bytes can request: 2^27 rows take 16 MiB, as much as
// the largest cblock. Readers of blocks with more rows use the runs instead, which are few.
const maxPrologueRows = 1 << 27

// ParseNullPrologue reads a prologue into a bitmap with one bit per row, for tests; cfile uses the
// runs.
//
// present has rows bits, 1 for the rows that have a value, and belongs to the caller; it is nil if
// all rows have one. rest is the payload after the prologue, for Parse; the caller checks that its
// Len is the number of present rows. Errors: ErrCorrupt; ErrUnsupported for more than 2^27 rows.
func ParseNullPrologue(payload []byte) (rows int, present batch.Bitmap, rest []byte, err error) {
	n, used, ok := coding.Uvarint32(payload)
	if !ok {
		return 0, nil, nil, fault.Corruptf("encoding: null prologue: row count truncated")
	}
	rest = payload[used:]
	size, used, ok := coding.Uvarint32(rest)
	if !ok {
		return 0, nil, nil, fault.Corruptf("encoding: null prologue: bitmap size truncated")
	}
	rest = rest[used:]
	if uint64(size) > uint64(len(rest)) {
		return 0, nil, nil, fault.Corruptf("encoding: null prologue: a bitmap of %d bytes, %d left", size, len(rest))
	}
	present, err = parsePresence(rest[:size], int(n))
	return int(n), present, rest[size:], err
}

// parsePresence reads the runs of a bitmap of rows bits. It checks the runs before it allocates the
// bitmap, and allocates none if every row has a value.
func parsePresence(stream []byte, rows int) (batch.Bitmap, error) {
	ones, err := countOnes(stream, rows)
	if err != nil {
		return nil, err
	}
	if ones == rows {
		return nil, nil
	}
	if rows > maxPrologueRows {
		return nil, fault.Unsupportedf("encoding: null prologue: %d rows in a cblock, at most %d", rows,
			maxPrologueRows)
	}
	present := batch.MakeBitmap(rows)
	for i := 0; i < rows; {
		r, used, err := nextRun(stream, 1, rows-i)
		if err != nil {
			return nil, err
		}
		if r.literal {
			orBits(present, i, r.body, r.count)
		} else if r.body[0]&1 != 0 {
			present.SetRange(i, i+r.count)
		}
		i, stream = i+r.count, stream[used:]
	}
	return present, nil
}

// countOnes checks runs of one-bit values and counts the ones among the first n.
func countOnes(stream []byte, n int) (ones int, err error) {
	for n > 0 {
		r, used, err := nextRun(stream, 1, n)
		if err != nil {
			return 0, err
		}
		if !r.literal {
			ones += int(r.body[0]&1) * r.count
		} else {
			for i := 0; i < r.count; i += 64 {
				w := load64(r.body[i/8:])
				if r.count-i < 64 {
					w &= lowBits(r.count - i)
				}
				ones += bits.OnesCount64(w)
			}
		}
		n, stream = n-r.count, stream[used:]
	}
	return ones, nil
}
