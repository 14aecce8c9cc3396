package cfile

import (
	"fmt"
	"slices"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/cache"
	"github.com/oribi-db/oribi/internal/encoding"
	"github.com/oribi-db/oribi/schema"
)

// ColumnReader reads windows of a file into vectors. It keeps the cblocks that it used last, so
// consecutive windows read each cblock once. Not safe for concurrent use.
type ColumnReader struct {
	// Transient is for compactions, which read all of a file once: cblocks are taken from the cache
	// but not added to it, and the reader reuses its memory. Byte strings are then valid only until
	// the next call of ReadVector, except in columns of arrays or in prefix encoding.
	Transient bool

	// Strings is the memory of the byte strings of a Transient reader, which ReadVector overwrites.
	// A caller that needs them for longer sets it to other memory, or to nil, before the next call.
	Strings []byte

	r *Reader

	// held has the cblocks of the last reads, newest first. While c holds a cblock, its memory is
	// not used again, and the next window, which mostly begins in it, does not ask the cache.
	held [2]heldBlock

	// The ordinal index and the zone map, or nil if they were not needed yet. The cache for indexes
	// may drop them between two calls; c keeps them so that a scan looks them up, or reads them,
	// once and not for each window.
	ordinals *ordinalIndex
	zones    *zones

	counts *Counts // what a scan counts for its explanation; nil if it counts nothing

	// Memory of SelectAll, kept from window to window.
	tests   []*batch.Predicate
	present batch.Bitmap // of the rows of one cblock
	dense   batch.Bitmap // of its values
}

// heldBlock is a cblock, and the memory that it was read into if that does not belong to the cache.
type heldBlock struct {
	b *dataBlock
	s *scratch
}

// maxHeld is the largest memory of a cblock at which two of them are kept. Keeping two helps when a
// window crosses from one cblock to the next and is read twice, once for a predicate and once for
// the values.
const maxHeld = 512 << 10

// NewColumnReader returns a ColumnReader with no position.
func (r *Reader) NewColumnReader() *ColumnReader { return &ColumnReader{r: r} }

// Reset makes c a reader of r with no position that counts nothing, as NewColumnReader does, and
// keeps the memory of SelectAll. If r is nil, c can only be reset; it then keeps no cblock in
// memory.
func (c *ColumnReader) Reset(r *Reader) {
	c.r, c.held, c.ordinals = r, [2]heldBlock{}, nil
	c.Transient, c.Strings, c.counts = false, nil, nil
	c.zones = nil
	clear(c.tests[:cap(c.tests)])
}

// load returns data cblock i.
func (c *ColumnReader) load(bs []BlockPointer, i int) (*dataBlock, error) {
	for k := range c.held {
		if b := c.held[k].b; b != nil && b.index == i {
			if k == 1 {
				c.held[0], c.held[1] = c.held[1], c.held[0]
			}
			return b, nil
		}
	}
	b, s, err := c.read(bs, i)
	if err != nil {
		return nil, err
	}
	c.held[0] = heldBlock{b, s}
	return b, nil
}

// shift frees held[0] for another cblock and returns the cblock that c then no longer holds.
func (c *ColumnReader) shift() (oldest heldBlock) {
	oldest = c.held[1]
	c.held[1], c.held[0] = c.held[0], heldBlock{}
	if b := c.held[1].b; b != nil && b.bytes > maxHeld {
		oldest, c.held[1] = c.held[1], heldBlock{}
	}
	return oldest
}

// read frees held[0] and reads data cblock i, reusing memory if no caller can see it.
func (c *ColumnReader) read(bs []BlockPointer, i int) (*dataBlock, *scratch, error) {
	oldest := c.shift()
	key := cache.Key{Block: c.r.id, Offset: uint64(bs[i].Offset), Part: partWhole}
	if c.r.cache != nil {
		if v, ok := c.r.cache.Get(key); ok {
			return v.(*dataBlock), nil, nil
		}
		if !c.Transient {
			b, err := c.r.readData(i, bs[i], nil)
			if err == nil {
				c.r.cache.Put(key, b, b.bytes)
			}
			return b, nil, err
		}
	}
	if c.r.info.Type.Variable() && !c.copies() {
		b, err := c.r.readData(i, bs[i], nil) // vectors alias the payload
		return b, nil, err
	}
	s := oldest.s
	if s == nil {
		s = new(scratch)
	}
	b, err := c.r.readData(i, bs[i], s)
	return b, s, err
}

// block returns the cblock that contains row ord.
func (c *ColumnReader) block(ord int64) (*dataBlock, error) {
	if b := c.held[0].b; b != nil && uint64(ord-b.first) < uint64(b.rows) {
		return b, nil
	}
	if b := c.held[1].b; b != nil && uint64(ord-b.first) < uint64(b.rows) {
		return b, nil
	}
	if b := c.held[0].b; b != nil && ord == b.first+int64(b.rows) && !c.r.info.PositionalIndex {
		return c.following(b)
	}
	if !c.r.info.PositionalIndex {
		return c.r.findRow(ord, c.load)
	}
	x, err := c.ordinalIndex()
	if err != nil {
		return nil, err
	}
	return c.r.rowIn(x, ord, c.load)
}

// ordinalIndex returns the ordinal index of a file that has one. c keeps it, so that a scan reads
// it once even if the cache for indexes does not keep it.
func (c *ColumnReader) ordinalIndex() (x *ordinalIndex, err error) {
	if c.ordinals == nil {
		if x, err = c.r.ordinalIndex(); err != nil {
			return nil, err
		}
		c.ordinals = x
	}
	return c.ordinals, nil
}

// zoneMap is Reader.ZoneMap. c keeps it, as it keeps the ordinal index.
func (c *ColumnReader) zoneMap() (*ZoneMap, error) {
	if c.zones == nil {
		z, err := c.r.loadedZones()
		if z == nil || err != nil {
			return nil, err
		}
		c.zones = z
	}
	return c.zones.m, nil
}

// Words returns the words of the column's dictionary if it has one of up to most words, which may
// lack values of cblocks that are not in dictionary form; otherwise nil. Read-only.
func (c *ColumnReader) Words(most int) ([][]byte, error) {
	if c.r.info.Encoding != schema.Dictionary || c.r.info.Array {
		return nil, nil
	}
	d, err := c.r.dictionary()
	if err != nil || d == nil || len(d.Words) > most {
		return nil, err
	}
	return d.Words, nil
}

// Cached reports whether the cblocks of the first and the last of cells [ord, ord+n), clipped to
// the end of the file, are available without reading it.
func (c *ColumnReader) Cached(ord batch.Ordinal, n int) bool {
	if n = c.clip(ord, n); n == 0 {
		return true
	}
	last := int64(ord) + int64(n) - 1
	first := c.hold(int64(ord))
	return first != nil && (last < first.first+int64(first.rows) || c.hold(last) != nil)
}

// hold returns the cblock of row ord, which is below the number of rows, if that needs no read, and
// keeps it for the next call of block; otherwise it returns nil.
func (c *ColumnReader) hold(ord int64) *dataBlock {
	for k := range c.held {
		if b := c.held[k].b; b != nil && uint64(ord-b.first) < uint64(b.rows) {
			return b
		}
	}
	x, b := c.r.cached(ord)
	if b == nil || c.r.checkOrdinal(x, b.index, b.first, b.rows) != nil {
		return nil // block returns the error
	}
	c.shift()
	c.held[0].b = b
	return b
}

// Fetch reads the cblocks of the first and the last of cells [ord, ord+n), clipped to the end of
// the file. Vectors of these cells that are read soon after need fewer reads or none.
func (c *ColumnReader) Fetch(ord batch.Ordinal, n int) error {
	if n = c.clip(ord, n); n == 0 {
		return nil
	}
	if _, err := c.block(int64(ord) + int64(n) - 1); err != nil {
		return err
	}
	_, err := c.block(int64(ord))
	return err
}

// following returns the cblock after b, in a file without an ordinal index.
func (c *ColumnReader) following(b *dataBlock) (*dataBlock, error) {
	bs, err := c.r.blocks()
	if err != nil {
		return nil, err
	}
	want, i := b.first+int64(b.rows), b.index+1
	if i >= len(bs) {
		return nil, c.r.corruptf("rows end at %d, want %d", want, c.r.info.Rows)
	}
	next, err := c.load(bs, i)
	if err == nil && next.first != want {
		err = c.r.corruptf("cblock at byte %d begins with row %d, want %d", bs[i].Offset, next.first, want)
	}
	return next, err
}

// clip returns the number of rows in [ord, ord+n) that the file has.
func (c *ColumnReader) clip(ord batch.Ordinal, n int) int {
	return int(max(0, min(int64(n), c.r.info.Rows-int64(ord))))
}

// ReadVector reads cells [ord, ord+n), clipped to the end of the file, into dst and returns how
// many cells dst has.
//
// In two cases dst has fewer, but at least one, and callers continue from there: in a column of
// arrays, if the cells have more than 2^18 elements; and in prefix encoding, if copying the values
// takes more than 4 MiB.
//
// dst is a vector of the file's type; its memory is reused. It is in dictionary form if all cells
// are in cblocks of codes, and has no presence bitmap if none is NULL. Cells of fixed width are
// copies. Byte strings alias memory that is not written again, unless the reader is Transient.
// Errors: ErrCorrupt with block and byte offset; dst is undefined then. Source: cfile spec §10.4.
func (c *ColumnReader) ReadVector(ord batch.Ordinal, n int, dst *batch.Vector) (int, error) {
	if dst.Type.Width() != c.r.info.Type.Width() {
		panic(fmt.Sprintf("cfile: read a column of %s into a vector of %s", c.r.info.Type, dst.Type))
	}
	n = c.clip(ord, n)
	if c.r.info.Array {
		return c.readArrays(ord, n, dst)
	}
	dst.Reset(0)
	c.Strings = c.Strings[:0]
	left := maxReadCopyBytes
	for at := 0; at < n; {
		row := int64(ord) + int64(at)
		b, err := c.block(row)
		if err != nil {
			return 0, err
		}
		from := int(row - b.first)
		k := min(n-at, b.rows-from)
		if c.r.info.Encoding == schema.Prefix {
			fit, copied := b.fit(from, k, max(left, 0))
			if left -= copied; at > 0 && left < 0 {
				n = at
				break
			}
			if fit < k {
				k, n = fit, at+fit
			}
		}
		if err := c.decode(b, from, k, dst, at, n); err != nil {
			return 0, c.wrap(b, err)
		}
		if dst.Dict == nil && c.reused(b) {
			c.copyStrings(dst.Bytes[at : at+k])
		}
		at += k
	}
	shorten(dst, n)
	return n, nil
}

// ReadBackward reads cells [ord, ord+n), which the file has, into dst in descending order. It does
// so only where this is faster than to read and then reverse them: otherwise handled is false and
// dst undefined. See ReadVector for dst and errors.
func (c *ColumnReader) ReadBackward(ord batch.Ordinal, n int, dst *batch.Vector) (handled bool, err error) {
	if !c.r.info.Type.Variable() || c.r.info.Array || c.Transient || c.clip(ord, n) < n {
		return false, nil
	}
	dst.Reset(n)
	for at := 0; at < n; {
		row := int64(ord) + int64(at)
		b, err := c.block(row)
		if err != nil {
			return false, err
		}
		values, ok := b.values.(encoding.BackwardBlock)
		if !ok || b.nullable {
			return false, nil
		}
		from := int(row - b.first)
		k := min(n-at, b.rows-from)
		at += k
		values.DecodeBackward(from, k, dst, n-at)
		c.decoded(b.index, k)
	}
	return true, nil
}

// copies reports whether byte strings are copied, so that cblocks can be read into reused memory.
// Values in prefix encoding are not copied: most of them are copies already.
func (c *ColumnReader) copies() bool {
	return c.Transient && !c.r.info.Array && c.r.info.Encoding != schema.Prefix
}

// reused reports whether byte strings of b alias memory that will be reused.
func (c *ColumnReader) reused(b *dataBlock) bool {
	if !c.r.info.Type.Variable() {
		return false
	}
	for k := range c.held {
		if c.held[k].b == b {
			return c.held[k].s != nil
		}
	}
	return false
}

// copyStrings replaces cells with copies in c.Strings.
func (c *ColumnReader) copyStrings(cells [][]byte) {
	n := 0
	for _, cell := range cells {
		n += len(cell)
	}
	if cap(c.Strings)-len(c.Strings) < n {
		c.Strings = make([]byte, 0, max(n, 2*cap(c.Strings))) // earlier copies keep their memory
	}
	for i, cell := range cells {
		if len(cell) > 0 {
			from := len(c.Strings)
			c.Strings = append(c.Strings, cell...)
			cells[i] = c.Strings[from:len(c.Strings):len(c.Strings)]
		}
	}
}

// shorten truncates v to n cells. If v has more, it must not be in dictionary form.
func shorten(v *batch.Vector, n int) {
	if v.Len == n {
		return
	}
	v.Len, v.Bytes = n, v.Bytes[:n]
	if v.Present != nil {
		v.Present.ClearRange(n, min(n|63+1, 64*len(v.Present)))
		v.Present = v.Present[:(n+63)/64]
	}
}

// decode decodes rows [from, from+k) of b into the cells of dst from at on; dst will have n cells.
// It chooses the dictionary form at the first cell, and leaves it at the first cblock that has no
// codes.
func (c *ColumnReader) decode(b *dataBlock, from, k int, dst *batch.Vector, at, n int) error {
	c.decoded(b.index, k)
	codes := b.codes != nil && len(b.codes.Dict().Words) > 0
	switch {
	case at == 0 && codes:
		dst.UseCodes(b.codes.Dict(), n)
	case at == 0:
		dst.Reset(n)
	case dst.Dict != nil && !codes:
		leaveCodes(dst, at, n)
	}
	if dst.Dict != nil {
		return b.decodeCodes(from, k, dst, at)
	}
	return b.decode(from, k, dst, at)
}

// leaveCodes converts the first at of n cells from codes to byte strings.
func leaveCodes(v *batch.Vector, at, n int) {
	present := v.Present
	v.Bytes = slices.Grow(v.Bytes[:0], n)
	v.Len, v.Codes = at, v.Codes[:at]
	v.Materialize()
	v.Len, v.Bytes, v.Present = n, v.Bytes[:n], present
}

func (c *ColumnReader) wrap(b *dataBlock, err error) error {
	bs, lost := c.r.blocks()
	if lost != nil {
		return lost
	}
	return c.r.at(bs[b.index], err)
}
