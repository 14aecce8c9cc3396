package cfile

import (
	"encoding/binary"
	"math/bits"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/internal/coding"
	"github.com/oribi-db/oribi/internal/fault"
)

// presence records which rows of a nullable cblock are not NULL.
//
// It keeps the runs encoded as in the prologue (written and described by internal/encoding),
// instead of one bit for each row: a run of 2^30 NULLs takes 6 bytes, and cblocks written by Kudu
// may have any number of rows, since NULLs never fill one. A mark at every fourth run lets a search
// start in the middle. The spacing doubles as long as there would be more than 2^16 marks; cblocks
// of normal size never need that. A table over equal parts of the rows narrows the search to a few
// marks. Immutable.
//
// Source: cfile spec §4.4, §7.1.
type presence struct {
	stream []byte
	marks  []mark
	parts  markParts
	rows   uint32
	ones   uint32
}

// mark is the state before a run.
type mark struct {
	off  uint32 // of the run, in the stream
	row  uint32 // rows before it
	ones uint32 // of these, not NULL
}

const (
	markBytes   = 12 // of memory
	runsPerMark = 4
	maxMarks    = 1 << 16
)

// run is one run of a stream.
type run struct {
	rows int    // at least 1; up to 7 more than were written, if it is the last and a literal run
	bits []byte // of a literal run, lowest bit first; nil for a repeated one
	ones bool   // of a repeated run: whether all its rows are present
	next int    // offset of the next run
}

// readRun reads the run at off. need is the number of rows that remain to be read, at least 1.
func readRun(stream []byte, off int, need uint32) (run, error) {
	header, n, ok := coding.Uvarint32(stream[off:])
	if !ok || header>>31 != 0 {
		return run{}, fault.Corruptf("presence: malformed run header at byte %d", off)
	}
	off += n
	count := header >> 1
	switch {
	case count == 0:
		return run{}, fault.Corruptf("presence: empty run at byte %d", off)
	case header&1 == 0:
		if off >= len(stream) || stream[off] > 1 {
			return run{}, fault.Corruptf("presence: value of the repeated run at byte %d is not 0 or 1", off)
		}
		return run{rows: int(count), ones: stream[off] == 1, next: off + 1}, nil
	}
	// The last literal run may end after the byte of the last row.
	have := min(int64(count), int64(len(stream)-off))
	if have < int64(count) && have*8 < int64(need) {
		return run{}, fault.Corruptf("presence: %d groups of bits at byte %d, %d bytes left", count, off, have)
	}
	return run{rows: int(have) * 8, bits: stream[off : off+int(have)], next: off + int(have)}, nil
}

// parsePresence checks the stream of a prologue, which must have the given number of rows.
func parsePresence(stream []byte, rows uint32) (presence, error) {
	p := presence{stream: stream, rows: rows}
	row, ones, off := uint32(0), uint32(0), 0
	spacing := runsPerMark
	for k := 0; row < rows; k++ {
		if k%spacing == 0 {
			if len(p.marks) == maxMarks {
				p.marks, spacing = everySecond(p.marks), 2*spacing
			}
			// Half of the marks are removed: k, which is maxMarks times the old spacing, is a
			// multiple of the new spacing too.
			p.marks = append(p.marks, mark{uint32(off), row, ones})
		}
		r, err := readRun(stream, off, rows-row)
		if err != nil {
			return p, err
		}
		n := uint32(min(int64(r.rows), int64(rows-row)))
		ones += r.count(int(n))
		row += n
		off = r.next
	}
	if off != len(stream) {
		return p, fault.Corruptf("presence: %d trailing bytes after the last row", len(stream)-off)
	}
	p.ones, p.parts = ones, partsOf(p.marks, rows)
	return p, nil
}

// footprint returns the memory in bytes, without the stream.
func (p *presence) footprint() int64 {
	return markBytes*int64(cap(p.marks)) + 2*int64(cap(p.parts.mark))
}

// everySecond keeps the marks at even indexes.
func everySecond(marks []mark) []mark {
	for i := range len(marks) / 2 {
		marks[i] = marks[2*i]
	}
	return marks[:len(marks)/2]
}

// count returns the number of 1 bits among the first n rows of the run.
func (r *run) count(n int) uint32 {
	if r.bits == nil {
		if r.ones {
			return uint32(n)
		}
		return 0
	}
	return countBits(r.bits, n)
}

// countBits returns the number of 1 bits among the first n bits of b.
func countBits(b []byte, n int) uint32 {
	c := 0
	for ; n >= 64; n -= 64 {
		c += bits.OnesCount64(binary.LittleEndian.Uint64(b))
		b = b[8:]
	}
	if n > 0 {
		c += bits.OnesCount64(loadBits(b, n))
	}
	return uint32(c)
}

// loadBits returns the first n < 64 bits of b; higher bits are 0.
func loadBits(b []byte, n int) uint64 { return loadUpTo8(b[:(n+7)/8]) & (1<<uint(n) - 1) }

// seek finds the run that contains row, which is below p.rows. at is the run's first row, ones the
// number of 1 bits before it. The stream was checked when p was made.
func (p *presence) seek(row uint32) (r run, at, ones uint32) {
	m := p.parts.find(p.marks, row)
	at, ones = m.row, m.ones
	// This repeats readRun for runs known to be valid, without building a run value for each: point
	// reads call seek.
	for off := int(m.off); ; {
		header, body := uint32(p.stream[off]), off+1
		if header >= 0x80 {
			long, n, _ := coding.Uvarint32(p.stream[off:])
			header, body = long, off+n
		}
		if header&1 == 0 {
			n, one := header>>1, p.stream[body] == 1
			if uint64(at)+uint64(n) > uint64(row) {
				return run{rows: int(n), ones: one, next: body + 1}, at, ones
			}
			if one {
				ones += n
			}
			at, off = at+n, body+1
			continue
		}
		off = body + min(int(header>>1), len(p.stream)-body)
		literal := p.stream[body:off]
		if uint64(at)+8*uint64(len(literal)) > uint64(row) {
			return run{rows: 8 * len(literal), bits: literal, next: off}, at, ones
		}
		ones += countBits(literal, 8*len(literal))
		at += uint32(8 * len(literal))
	}
}

// markParts splits the rows into parts of equal size and records which marks are in each. That
// makes the search for a row short where runs are spread evenly, and no slower elsewhere. The zero
// value is one part.
type markParts struct {
	mark  []uint16 // for part i, the last mark at or before its first row; one more entry at the end, the last mark
	shift uint     // log2 of the rows of a part
}

// minParts is the number of marks at which a table of parts is worth its memory.
const minParts = 8

// partsOf returns at most as many parts as there are marks.
func partsOf(marks []mark, rows uint32) (p markParts) {
	if len(marks) < minParts {
		return p
	}
	for (rows-1)>>p.shift >= uint32(len(marks)) {
		p.shift++
	}
	n := (rows-1)>>p.shift + 1
	p.mark = make([]uint16, n+1) // there are at most maxMarks marks
	at := 0
	for i := range n {
		for at+1 < len(marks) && marks[at+1].row <= i<<p.shift {
			at++
		}
		p.mark[i] = uint16(at)
	}
	p.mark[n] = uint16(len(marks) - 1)
	return p
}

// find finds the last mark at or before row.
func (p *markParts) find(marks []mark, row uint32) mark {
	lo, hi := 0, len(marks)
	if p.mark != nil {
		part := row >> p.shift
		lo, hi = int(p.mark[part]), int(p.mark[part+1])+1
	}
	for hi-lo > 1 {
		mid := int(uint(lo+hi) >> 1)
		if marks[mid].row <= row {
			lo = mid
		} else {
			hi = mid
		}
	}
	return marks[lo]
}

// rank returns the number of present rows before row, which is at most p.rows.
func (p *presence) rank(row int) int {
	switch uint32(row) {
	case 0:
		return 0
	case p.rows:
		return int(p.ones)
	}
	r, at, ones := p.seek(uint32(row))
	return int(ones + r.count(row-int(at)))
}

// find reports whether a row is present and, if so, returns its index among the present rows.
func (p *presence) find(row int) (value int, present bool) {
	r, at, ones := p.seek(uint32(row))
	i := row - int(at)
	if r.bits == nil {
		present = r.ones
	} else {
		present = r.bits[i>>3]>>(i&7)&1 != 0
	}
	return int(ones + r.count(i)), present
}

// clearNulls clears the bits in [at, at+n) of dst, all 1 on entry, whose rows in [from, from+n) are
// NULL.
func (p *presence) clearNulls(dst batch.Bitmap, at, from, n int) {
	p.walk(from, n, func(r run, skip, k int) bool {
		switch {
		case r.bits != nil:
			clearZeros(dst, at, r.bits, skip, k)
		case !r.ones:
			dst.ClearRange(at, at+k)
		}
		at += k
		return true
	})
}

// each calls f for the runs of rows [from, from+n), in parts: k rows that are all present or all
// NULL if repeated is set, k mixed rows otherwise.
func (p *presence) each(from, n int, f func(k int, repeated, present bool) error) (err error) {
	p.walk(from, n, func(r run, _, k int) bool {
		err = f(k, r.bits == nil, r.ones)
		return err == nil
	})
	return err
}

// walk calls f for the runs that contain rows [from, from+n), until f returns false. A call covers
// the k rows of r that start at its row skip.
func (p *presence) walk(from, n int, f func(r run, skip, k int) bool) {
	if n == 0 {
		return
	}
	r, first, _ := p.seek(uint32(from))
	skip := from - int(first)
	for {
		k := min(r.rows-skip, n)
		if from, n = from+k, n-k; !f(r, skip, k) || n == 0 {
			return
		}
		r, _ = readRun(p.stream, r.next, p.rows-uint32(from))
		skip = 0
	}
}

// clearZeros clears bits [at, at+n) of dst where bits [from, from+n) of src are 0.
func clearZeros(dst batch.Bitmap, at int, src []byte, from, n int) {
	src, from = src[from>>3:], from&7
	for n > 0 {
		// Up to 56 bits: with an offset of at most 7 they are in 8 bytes of src.
		k := min(n, 56)
		zeros := ^(loadUpTo8(src) >> uint(from)) & (1<<uint(k) - 1)
		dst[at>>6] &^= zeros << (uint(at) & 63)
		if spill := at&63 + k - 64; spill > 0 {
			dst[at>>6+1] &^= zeros >> uint(k-spill)
		}
		at, n = at+k, n-k
		src = src[min(7, len(src)):]
	}
}

// loadUpTo8 loads 8 bytes, or as many as there are.
func loadUpTo8(b []byte) uint64 {
	if len(b) >= 8 {
		return binary.LittleEndian.Uint64(b)
	}
	w := uint64(0)
	for i, c := range b {
		w |= uint64(c) << (8 * i)
	}
	return w
}

// spread moves m cells packed at cells[at:at+m] to the positions in [at, at+n) whose bit is 1, and
// zeroes the others. For instance, cells 7 8 _ _ with bits 1 0 0 1 become 7 0 0 8.
func spread[T any](cells []T, present batch.Bitmap, at, n, m int) {
	var zero T
	from := at + m - 1
	// Backward: a cell only moves up, so none is overwritten before it has moved. Once the source
	// and target positions are equal, all cells below are present and already in position.
	for to := at + n - 1; to > from; to-- {
		if present.Get(to) {
			cells[to] = cells[from]
			from--
		} else {
			cells[to] = zero
		}
	}
}

// spreadVector does the same for the values of v.
func spreadVector(v *batch.Vector, at, n, m int) {
	switch {
	case v.Dict != nil:
		spread(v.Codes, v.Present, at, n, m)
	case v.Type.Variable():
		spread(v.Bytes, v.Present, at, n, m)
	default:
		spreadFixed(v, at, n, m)
	}
}

func spreadFixed(v *batch.Vector, at, n, m int) {
	switch v.Type.Width() {
	case 1:
		spread(batch.Raw[uint8](v), v.Present, at, n, m)
	case 2:
		spread(batch.Raw[uint16](v), v.Present, at, n, m)
	case 4:
		spread(batch.Raw[uint32](v), v.Present, at, n, m)
	case 8:
		spread(batch.Raw[uint64](v), v.Present, at, n, m)
	case 16:
		spread(batch.Raw[batch.Int128](v), v.Present, at, n, m)
	}
}
