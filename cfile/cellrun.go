package cfile

import (
	"bytes"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/internal/compress"
	"github.com/oribi-db/oribi/internal/fault"
)

// maxRun is the number of bytes of adjacent cblocks that are read at once.
const maxRun = 256 << 10

// CellRun has consecutive cells of a Keyed file, which were read together: one read for all cblocks
// that are adjacent, up to 256 KiB. The cache is neither asked nor filled. Use Reset first. Not safe
// for concurrent use.
type CellRun struct {
	r        *Reader
	ordinals *ordinalIndex // nil if it was not needed yet; see ColumnReader

	first batch.Ordinal // of cells
	cells [][]byte
	ends  []int          // by cblock: the number of cells up to its end
	at    []BlockPointer // the cblocks
	bytes []byte         // the cells alias them
	plain []uint32       // memory
}

// maxKeptRun is the number of bytes of memory that Reset keeps.
const maxKeptRun = 64 << 10

// Reset makes u a run of no cells of r; nil drops what u refers to.
func (u *CellRun) Reset(r *Reader) {
	u.clear()
	if cap(u.bytes) > maxKeptRun {
		u.bytes = nil
	}
	u.r, u.ordinals = r, nil
}

func (u *CellRun) clear() {
	clear(u.cells)
	u.cells, u.ends, u.at = u.cells[:0], u.ends[:0], u.at[:0]
}

// Has reports whether u has cells [row, row+n).
func (u *CellRun) Has(row batch.Ordinal, n int) bool {
	return row >= u.first && int64(row)+int64(n) <= int64(u.first)+int64(len(u.cells))
}

// Cell returns a cell that u has. It is valid until u reads others, or as long as the caller refers
// to it after a call of Keep.
func (u *CellRun) Cell(row batch.Ordinal) []byte { return u.cells[row-u.first] }

// Keep makes u use other memory for the cells that it reads next.
func (u *CellRun) Keep() { u.bytes = nil }

// VisitFloor is Reader.VisitFloor, but a cell that u has is not read again.
func (u *CellRun) VisitFloor(key []byte, visit func(row batch.Ordinal, at, value []byte) error) error {
	p, ok, err := u.r.findNode(key)
	if err != nil || !ok {
		return err
	}
	if k := u.find(p); k >= 0 {
		return u.visit(k, key, visit)
	}
	return u.r.VisitFloor(key, visit)
}

// Seek is VisitFloor that also reads up to before cblocks before the cblock of key and up to after
// cblocks after it, and keeps them. It reads none whose keys are all after end, unless end is nil.
func (u *CellRun) Seek(key []byte, before, after int, end []byte,
	visit func(row batch.Ordinal, at, value []byte) error) error {
	leaf, i, err := u.r.findEntry(key)
	if leaf == nil || err != nil {
		return err
	}
	u.clear()
	size, floor := int64(0), 0
	for k := max(0, i-before); k < leaf.count && k <= i+after; k++ {
		if k > i && (end != nil && bytes.Compare(leaf.key(k), end) > 0 || size > maxRun) {
			break
		}
		_, p, err := leaf.entry(k)
		if err != nil {
			return u.r.at(leaf.at, err)
		}
		if size += int64(p.Size); k < i && size > maxRun {
			size = 0
			u.at = u.at[:0]
			continue
		}
		if k == i {
			floor = len(u.at)
		}
		u.at = append(u.at, p)
	}
	if err := u.read(); err != nil {
		return err
	}
	return u.visit(floor, key, visit)
}

// Read reads cells [row, row+n), clipped to the end of the file, unless u has them.
func (u *CellRun) Read(row batch.Ordinal, n int) (err error) {
	if n = int(max(0, min(int64(n), u.r.info.Rows-int64(row)))); n == 0 || u.Has(row, n) {
		return nil
	}
	u.clear()
	if u.ordinals == nil {
		if u.ordinals, err = u.r.ordinalIndex(); err != nil {
			return err
		}
	}
	from, to := u.ordinals.find(uint32(row)), u.ordinals.find(uint32(row)+uint32(n)-1)
	u.at = append(u.at, u.ordinals.blocks[from:to+1]...)
	if err := u.read(); err != nil {
		return err
	}
	if !u.Has(row, n) {
		err := u.r.corruptf("cells [%d,%d): the cblocks have cells [%d,%d)", row, int64(row)+int64(n), u.first,
			int64(u.first)+int64(len(u.cells)))
		u.clear()
		return err
	}
	return nil
}

// find returns the number of the cblock at p, −1 if u does not have it.
func (u *CellRun) find(p BlockPointer) int {
	for k := range u.ends {
		if u.at[k] == p {
			return k
		}
	}
	return -1
}

// visit calls visit with the last cell of cblock k whose key is at or before key; it does
// not if all keys are after it.
func (u *CellRun) visit(k int, key []byte, visit func(row batch.Ordinal, at, value []byte) error) error {
	from := 0
	if k > 0 {
		from = u.ends[k-1]
	}
	cell := func(i int) []byte { return u.cells[from+i] }
	i, at, value, err := searchKeyed(u.ends[k]-from, cell, key)
	if err != nil {
		return u.r.at(u.at[k], err)
	}
	if i < 0 {
		return nil
	}
	return visit(u.first+batch.Ordinal(from+i), at, value)
}

// read reads the cblocks in u.at. After an error u has no cells.
func (u *CellRun) read() error {
	err := u.readAll()
	if err != nil {
		u.clear()
	}
	return err
}

func (u *CellRun) readAll() error {
	r := u.r
	if r.codec != compress.None {
		return fault.Unsupportedf("cfile: block %v: cells with keys in %s", r.src.ID(), r.codec)
	}
	size := 0
	for _, p := range u.at {
		if err := r.checkPointer(p); err != nil {
			return err
		}
		size += int(p.Size)
	}
	rest := sized(&u.bytes, size)
	for k := 0; k < len(u.at); {
		p := u.at[k]
		end := p.end()
		for k++; k < len(u.at) && u.at[k].Offset == end && u.at[k].end()-p.Offset <= maxRun; k++ {
			end = u.at[k].end()
		}
		n := end - p.Offset
		held := r.acquire(BlockPointer{p.Offset, int32(n)})
		err := r.readAt(rest[:n], p.Offset)
		if r.release(held); err != nil {
			return err
		}
		rest = rest[n:]
	}
	rest = u.bytes[:size]
	for _, p := range u.at {
		payload, _, err := r.checkSum(rest[:p.Size:p.Size], p)
		if err == nil {
			err = u.add(p, payload)
		}
		if err != nil {
			return err
		}
		rest = rest[p.Size:]
	}
	return nil
}

// add adds the cells of the next cblock.
func (u *CellRun) add(p BlockPointer, payload []byte) error {
	first, offsets, err := u.r.plainCells(payload, &u.plain)
	switch {
	case err != nil:
	case len(u.ends) == 0:
		u.first = first
	case int64(first) != int64(u.first)+int64(len(u.cells)):
		err = fault.Corruptf("begins with row %d, want %d", first, int64(u.first)+int64(len(u.cells)))
	}
	if err != nil {
		return u.r.at(p, err)
	}
	for i := range len(offsets) - 1 {
		u.cells = append(u.cells, payload[offsets[i]:offsets[i+1]:offsets[i+1]])
	}
	u.ends = append(u.ends, len(u.cells))
	return nil
}
