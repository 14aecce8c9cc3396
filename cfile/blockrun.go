package cfile

import (
	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/internal/compress"
)

// maxRun is the number of bytes of adjacent cblocks that are read at once.
const maxRun = 256 << 10

// blockRun is the stored bytes of adjacent cblocks, from offset off on.
type blockRun struct {
	until int // cblocks below it are read in runs
	off   int64
	bytes []byte
}

// Expect makes c read the cblocks of cells [ord, ord+n), clipped to the end of the file, in runs:
// one read for all that are adjacent, up to 256 KiB. It is for callers that read all of these cells
// next, from a file with a positional index that is neither compressed nor in the cache; for other
// files it does nothing.
func (c *ColumnReader) Expect(ord batch.Ordinal, n int) error {
	c.run = blockRun{}
	if n = c.clip(ord, n); n == 0 || c.r.cache != nil || c.r.codec != compress.None ||
		!c.r.info.PositionalIndex || c.Transient {
		return nil
	}
	x, err := c.ordinalIndex()
	if err == nil {
		c.run.until = x.find(uint32(ord)+uint32(n)-1) + 1
	}
	return err
}

// read returns data cblock i, which is below until. It is new memory, which it shares with others
// of the run.
func (u *blockRun) read(r *Reader, bs []BlockPointer, i int) (*dataBlock, error) {
	p := bs[i]
	if err := r.checkPointer(p); err != nil {
		return nil, err
	}
	from := p.Offset - u.off
	if from < 0 || from+int64(p.Size) > int64(len(u.bytes)) {
		end := p.end()
		for _, next := range bs[i+1 : max(i+1, u.until)] {
			if next.Offset != end || next.end()-p.Offset > maxRun || r.checkPointer(next) != nil {
				break
			}
			end = next.end()
		}
		u.bytes = nil // in case of an error
		size := end - p.Offset
		held := r.acquire(BlockPointer{p.Offset, int32(size)})
		b := make([]byte, size)
		err := r.readAt(b, p.Offset)
		if r.release(held); err != nil {
			return nil, err
		}
		from, u.off, u.bytes = 0, p.Offset, b
	}
	to := from + int64(p.Size)
	form, crc, err := r.checkSum(u.bytes[from:to:to], p)
	if err != nil {
		return nil, err
	}
	return r.parse(i, p, form, crc, nil)
}
