package cfile

import (
	"encoding/binary"

	"github.com/oribi-db/oribi/internal/coding"
	"github.com/oribi-db/oribi/internal/fault"
)

// counts has the number of elements of each cell in a cblock of arrays.
//
// Like presence it keeps the runs encoded as in the prologue (written and described by
// internal/encoding), with marks that let a search start in the middle. Unlike the runs of a
// bitmap, these must end exactly with the last cell. Immutable. Source: cfile spec §4.4, §7.2.
type counts struct {
	stream []byte
	marks  []mark // ones is the number of elements
	cells  uint32
	total  uint32
}

const countLen = 2 // bytes of a count

// countRun is one run of counts.
type countRun struct {
	cells  int    // at least 1
	counts []byte // of a literal run, 2 bytes each; nil for a repeated one
	each   uint16 // of a repeated run: elements in each of its cells
	next   int    // offset of the next run
}

// readCounts reads the run at off. need is the number of cells that remain to be read, at least 1.
func readCounts(stream []byte, off int, need uint32) (countRun, error) {
	header, n, ok := coding.Uvarint32(stream[off:])
	if !ok || header>>31 != 0 || header>>1 == 0 {
		return countRun{}, fault.Corruptf("array counts: malformed run header at byte %d", off)
	}
	off += n
	cells := int64(header >> 1)
	if header&1 == 0 {
		if len(stream)-off < countLen || cells > int64(need) {
			return countRun{}, fault.Corruptf("array counts: run of %d cells at byte %d, %d bytes and %d cells left",
				cells, off, len(stream)-off, need)
		}
		return countRun{cells: int(cells), each: binary.LittleEndian.Uint16(stream[off:]), next: off + countLen}, nil
	}
	// The last group is cut after the last cell.
	if cells *= 8; cells > int64(len(stream)-off)/countLen {
		cells = int64(len(stream)-off) / countLen
		if cells < int64(need) {
			return countRun{}, fault.Corruptf("array counts: counts end at byte %d, %d cells left", len(stream),
				int64(need)-cells)
		}
	}
	if cells > int64(need) {
		return countRun{}, fault.Corruptf("array counts: %d counts at byte %d, %d cells left", cells, off, need)
	}
	end := off + int(cells)*countLen
	return countRun{cells: int(cells), counts: stream[off:end], next: end}, nil
}

// sum returns the number of elements in the first n cells of the run.
func (r *countRun) sum(n int) int {
	if r.counts == nil {
		return n * int(r.each)
	}
	s := 0
	for c := r.counts[:n*countLen]; len(c) > 0; c = c[countLen:] {
		s += int(binary.LittleEndian.Uint16(c))
	}
	return s
}

// at returns the number of elements in cell i of the run.
func (r *countRun) at(i int) int {
	if r.counts == nil {
		return int(r.each)
	}
	return int(binary.LittleEndian.Uint16(r.counts[i*countLen:]))
}

// parseCounts checks the stream of a prologue against the presence of its cells and the number of
// elements.
func parseCounts(stream []byte, whole *presence, elements uint32) (counts, error) {
	c := counts{stream: stream, cells: whole.rows, total: elements}
	cell, sum, off, spacing := uint32(0), 0, 0, runsPerMark
	for k := 0; cell < c.cells; k++ {
		if k%spacing == 0 {
			if len(c.marks) == maxMarks {
				c.marks, spacing = everySecond(c.marks), 2*spacing
			}
			c.marks = append(c.marks, mark{uint32(off), cell, uint32(sum)})
		}
		r, err := readCounts(stream, off, c.cells-cell)
		if err != nil {
			return c, err
		}
		if err := whole.checkCounts(&r, int(cell)); err != nil {
			return c, err
		}
		// A run has fewer than 2^31 cells of fewer than 2^16 elements: no overflow.
		if sum += r.sum(r.cells); sum > int(elements) {
			return c, fault.Corruptf("array counts: sum exceeds the %d elements of the cblock", elements)
		}
		cell += uint32(r.cells)
		off = r.next
	}
	if off != len(stream) || sum != int(elements) {
		return c, fault.Corruptf("array counts: %d trailing bytes, sum %d, want %d elements", len(stream)-off,
			sum, elements)
	}
	return c, nil
}

// checkCounts returns an error if a NULL cell has elements. r is the run of counts that begins with
// the given cell.
func (p *presence) checkCounts(r *countRun, cell int) error {
	if r.counts == nil {
		if r.each == 0 {
			return nil
		}
		if n := p.rank(cell+r.cells) - p.rank(cell); n != r.cells {
			return fault.Corruptf("array counts: %d elements each for %d cells, of which %d are NULL", r.each,
				r.cells, r.cells-n)
		}
		return nil
	}
	const step = 1024
	var window [step / 64]uint64
	for from := 0; from < r.cells; from += step {
		n := min(step, r.cells-from)
		for i := range window {
			window[i] = ^uint64(0)
		}
		p.clearNulls(window[:], 0, cell+from, n)
		for i := range n {
			if window[i>>6]>>(i&63)&1 == 0 && r.at(from+i) != 0 {
				return fault.Corruptf("array counts: %d elements of cell %d, which is NULL", r.at(from+i), cell+from+i)
			}
		}
	}
	return nil
}

// seek finds the run that contains a cell, which is below c.cells. at is the run's first cell,
// before the number of elements in the cells before that one. The stream was checked when c was
// made.
func (c *counts) seek(cell uint32) (r countRun, at, before uint32) {
	m := new(markParts).find(c.marks, cell)
	at, before = m.row, m.ones
	for off := int(m.off); ; off = r.next {
		r, _ = readCounts(c.stream, off, c.cells-at)
		if uint64(at)+uint64(r.cells) > uint64(cell) {
			return r, at, before
		}
		at, before = at+uint32(r.cells), before+uint32(r.sum(r.cells))
	}
}

// before returns the number of elements of the cells before cell, which is at most c.cells.
func (c *counts) before(cell int) int {
	if uint32(cell) == c.cells {
		return int(c.total)
	}
	r, at, n := c.seek(uint32(cell))
	return int(n) + r.sum(cell-int(at))
}

// offsets appends to dst the end offsets of the elements of cells [from, from+n), starting at base.
// It stops before the first cell that ends above limit. k is the number of cells appended.
func (c *counts) offsets(dst []uint32, from, n, base, limit int) (out []uint32, k int) {
	if n == 0 {
		return dst, 0
	}
	r, first, _ := c.seek(uint32(from))
	skip := from - int(first)
	for {
		for i := skip; i < r.cells && k < n; i++ {
			end := base + r.at(i)
			if end > limit {
				return dst, k
			}
			base = end
			dst = append(dst, uint32(base))
			k++
		}
		if k == n {
			return dst, k
		}
		r, _ = readCounts(c.stream, r.next, c.cells-uint32(from+k))
		skip = 0
	}
}
