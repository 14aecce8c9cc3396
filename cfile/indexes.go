package cfile

import (
	"encoding/binary"
	"math/bits"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/internal/encoding"
	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/schema"
)

// Codes describes the cells of a column as small integers.
type Codes struct {
	Bits int // of a code, at most 16
	// Words has the cell of each code. It is nil if the code of a cell is its integer.
	Words [][]byte
	// Null is the code of NULL: one bit that no other code has. It is 0 if the column has no NULLs.
	Null uint16
}

// Codes returns how the cells of the column can be numbered. ok is false if that is not known, or
// takes more than 16 bits.
func (c *ColumnReader) Codes() (codes Codes, ok bool, err error) {
	if c.r.info.Array {
		return codes, false, nil
	}
	z, err := c.zoneMap()
	if err != nil {
		return codes, false, err
	}
	greatest := uint64(0)
	if c.r.info.Encoding == schema.Dictionary {
		d, err := c.r.dictionary()
		if err != nil || d == nil || len(d.Words) == 0 {
			return codes, false, err
		}
		codes.Words, greatest = d.Words, uint64(len(d.Words)-1)
	} else if z == nil {
		return codes, false, nil
	} else if least, most, ok := z.File.integers(z.Type); !ok || least < 0 {
		return codes, false, nil
	} else {
		greatest = uint64(most)
	}
	codes.Bits = bits.Len64(greatest)
	if c.r.info.Nullable && (z == nil || z.File.Nulls > 0) {
		codes.Null = 1 << min(codes.Bits, 16)
		codes.Bits++
	}
	return codes, codes.Bits <= 16, nil
}

// Magnitude returns an integer that no magnitude of the column's cells, integers, is above. ok is
// false if none is known, or some cell is NULL.
func (c *ColumnReader) Magnitude() (most uint64, ok bool, err error) {
	z, err := c.zoneMap()
	if z == nil || err != nil || c.r.info.Array || c.r.info.Type == schema.Bool || z.File.Nulls > 0 {
		return 0, false, err
	}
	least, greatest, ok := z.File.integers(z.Type)
	return max(uint64(max(greatest, 0)), -uint64(min(least, 0))), ok, nil
}

// integers returns the least and the greatest of the cells of type t, or 0 if all are NULL. ok is
// false if they are not known, or are not integers that fit an int64.
func (e *ZoneEntry) integers(t schema.Type) (least, greatest int64, ok bool) {
	switch {
	case t.Variable() || isFloat(t) || t.Width() > 8:
		return 0, 0, false
	case e.Min == nil || e.Max == nil:
		return 0, 0, e.Nulls == e.Rows
	}
	least, greatest = comparableInteger(e.Min, t), comparableInteger(e.Max, t)
	return least, greatest, least <= greatest && (least >= 0 || t.Physical() != schema.Uint64)
}

// comparableInteger returns the integer of a bound, modulo 2^64.
func comparableInteger(bound []byte, t schema.Type) int64 {
	var wide [8]byte
	copy(wide[8-len(bound):], bound)
	v := binary.BigEndian.Uint64(wide[:])
	switch t.Physical() {
	case schema.Int8, schema.Int16, schema.Int32, schema.Int64:
		v -= 1 << (8*len(bound) - 1)
	}
	return int64(v)
}

// Coded reports whether the cells [ord, ord+n) whose bits in sel are 1 have codes: it is false if
// one of their cblocks in a column with a dictionary is not in dictionary form. Bit i of sel is for
// cell ord+i. Cells after the end of the file do not count.
func (c *ColumnReader) Coded(ord batch.Ordinal, n int, sel batch.Bitmap) (bool, error) {
	if c.r.info.Encoding != schema.Dictionary {
		return true, nil
	}
	n = c.clip(ord, n)
	for at := sel.Next(0); at >= 0 && at < n; {
		b, err := c.block(int64(ord) + int64(at))
		if err != nil || b.codes == nil {
			return false, err
		}
		at = sel.Next(int(b.first + int64(b.rows) - int64(ord)))
	}
	return true, nil
}

// IndexColumn is a column whose codes are bits [Shift, Shift+Bits) of indexes.
type IndexColumn struct {
	Reader *ColumnReader
	Codes
	Shift int
}

// IndexRows is the greatest number of indexes that an Indexer reads at once.
const IndexRows = encoding.IndexRows

// Indexer makes 16-bit integers of the codes of several columns, one for each row. The zero Indexer
// is ready for use. Not safe for concurrent use.
type Indexer struct {
	index  encoding.Index
	vector batch.Vector
	sel    batch.Bitmap
}

// Release makes x forget all files.
func (x *Indexer) Release() {
	x.index.Release()
	x.vector.Drop(0)
}

// Read sets dst to the indexes of rows [ord, ord+len(dst)), up to IndexRows, which the files have.
// Those whose bits in sel, from bit at on, are 1 are Coded. The others get an index with a 1 in bit
// missing, above the columns.
func (x *Indexer) Read(ord batch.Ordinal, columns []IndexColumn, sel batch.Bitmap, at, missing int,
	dst []uint16) error {
	for len(dst) > 0 {
		if k := unselected(sel, at, len(dst)); k > 0 {
			for i := range dst[:k] {
				dst[i] = 1 << missing
			}
			ord, at, dst = ord+batch.Ordinal(k), at+k, dst[k:]
			continue
		}
		n, err := x.span(ord, columns, len(dst))
		if err != nil {
			return err
		}
		x.sel = x.sel.Resize(n)
		encoding.CopyBits(x.sel, sel, at, n)
		if err := x.read(ord, columns, missing, dst[:n]); err != nil {
			return err
		}
		ord, at, dst = ord+batch.Ordinal(n), at+n, dst[n:]
	}
	return nil
}

// unselected returns how many of n rows, from the first one on, are not selected, in whole words.
// Rows that begin with a whole byte of the planes then still do so after those.
func unselected(sel batch.Bitmap, at, n int) int {
	switch next := sel.Next(at); {
	case next < 0 || next >= at+n:
		return n
	default:
		return (next - at) &^ 63
	}
}

// span returns how many of n rows are in the same cblock and chunk of each column.
func (x *Indexer) span(ord batch.Ordinal, columns []IndexColumn, n int) (int, error) {
	for i := range columns {
		b, err := columns[i].Reader.block(int64(ord))
		if err != nil {
			return 0, err
		}
		from := int(int64(ord) - b.first)
		n = min(n, b.rows-from)
		if k := encoding.IndexSpan(b.values, from, n); k > 0 && !b.nullable {
			n = k
		}
	}
	return n, nil
}

// read reads the indexes of rows that span allows. x.sel has their selection.
func (x *Indexer) read(ord batch.Ordinal, columns []IndexColumn, missing int, dst []uint16) error {
	n := len(dst)
	x.index.Reset()
	x.index.AddMissing(x.sel, n, missing)
	cells := uint64(0) // columns whose cells are to be read
	for i := range columns {
		c := &columns[i]
		b, err := c.Reader.block(int64(ord))
		if err != nil {
			return err
		}
		c.Reader.use(b.index, batch.BlockStored)
		if b.nullable {
			cells |= 1 << i
			continue
		}
		if c.codeBits() == 0 {
			if c.Words != nil {
				cells |= 1 << i // reading them checks that each code is the code of the only word
			}
			continue
		}
		from, added := int(int64(ord)-b.first), false
		if encoding.IndexSpan(b.values, from, n) == n {
			if added, err = x.index.Add(b.values, from, n, c.Shift, c.codeBits()); err != nil {
				return c.Reader.wrap(b, err)
			}
		}
		if !added {
			cells |= 1 << i
		}
	}
	x.index.Fill(dst)
	for ; cells != 0; cells &= cells - 1 {
		if err := x.addCells(ord, &columns[bits.TrailingZeros64(cells)], dst); err != nil {
			return err
		}
	}
	return nil
}

// codeBits returns the number of bits of a cell that is not NULL.
func (c *Codes) codeBits() int {
	if c.Null != 0 {
		return c.Bits - 1
	}
	return c.Bits
}

// addCells adds the codes of a column to indexes, from its cells.
func (x *Indexer) addCells(ord batch.Ordinal, c *IndexColumn, dst []uint16) error {
	v := &x.vector
	v.Type = c.Reader.r.info.Type
	if _, err := c.Reader.ReadVector(ord, len(dst), v); err != nil {
		return err
	}
	limit := uint64(1) << c.codeBits()
	for i := x.sel.Next(0); i >= 0; i = x.sel.Next(i + 1) {
		code := uint64(c.Null)
		if !v.IsNull(i) {
			if code = codeOf(v, i); code >= limit {
				return fault.Corruptf("cfile: row %d: the zone map or the dictionary does not have the cell",
					int64(ord)+int64(i))
			}
		}
		dst[i] |= uint16(code << c.Shift)
	}
	return nil
}

// codeOf returns the code of cell i of v, which is not NULL.
func codeOf(v *batch.Vector, i int) uint64 {
	if v.Dict != nil {
		return uint64(v.Codes[i])
	}
	return CodeOf(v.Cell(i))
}

// CodeOf returns the code of a cell whose code is its integer. It is too large for any column if
// the cell is below 0.
func CodeOf(cell []byte) uint64 {
	var wide [8]byte
	copy(wide[:], cell)
	return binary.LittleEndian.Uint64(wide[:])
}
