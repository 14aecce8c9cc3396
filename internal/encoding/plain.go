package encoding

import (
	"encoding/binary"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/schema"
)

// PLAIN payload of a type of fixed width. Source: cfile spec §6.1.
//
//	offset  width          field    meaning
//	0       4              count    values
//	4       4              ordinal  row of the cblock's first row
//	8       count × width  cells    little-endian
//
// int32 1, −2 from row 100: 02 00 00 00 64 00 00 00 01 00 00 00 fe ff ff ff
//
// PLAIN payload of bool. Source: cfile spec §6.2.
//
//	offset  width        field    meaning
//	0       4            count    values
//	4       4            ordinal  row of the cblock's first row
//	8       ⌈count / 8⌉  bits     bit i is bit i mod 8, lowest first, of byte i / 8; spare bits are 0
//
// 1,0,1,1,0,0,0,1,1,0 from row 5: 0a 00 00 00 05 00 00 00 8d 01
//
// The payload of RLE begins with the same two fields.
const (
	plainOrdinalOff = 4 // file format: never change
	plainHeaderLen  = 8 // file format: never change
)

// plainHeader reads the two fields before the values of PLAIN and RLE payloads.
func plainHeader(name string, payload []byte) (ordinal batch.Ordinal, count int, rest []byte, err error) {
	if len(payload) < plainHeaderLen {
		return 0, 0, nil, fault.Corruptf("encoding: %s: %d bytes, the header has %d", name, len(payload),
			plainHeaderLen)
	}
	n := binary.LittleEndian.Uint32(payload)
	ord := binary.LittleEndian.Uint32(payload[plainOrdinalOff:])
	if err := checkRange(name, ord, n); err != nil {
		return 0, 0, nil, err
	}
	return batch.Ordinal(ord), int(n), payload[plainHeaderLen:], nil
}

// appendPlainHeader appends the two fields.
func appendPlainHeader(dst []byte, ord batch.Ordinal, count int) []byte {
	dst = binary.LittleEndian.AppendUint32(dst, uint32(count))
	return binary.LittleEndian.AppendUint32(dst, uint32(ord))
}

// plainBlock is a PLAIN payload of fixed width.
type plainBlock struct {
	typ     schema.Type
	width   int
	ordinal batch.Ordinal
	count   int
	cells   []byte // count × width
}

func parsePlain(payload []byte, t schema.Type) (Block, error) {
	ord, count, cells, err := plainHeader("plain", payload)
	if err != nil {
		return nil, err
	}
	// 2^32 cells of 16 bytes do not overflow an int of 64 bits.
	if width := t.Width(); len(cells) == count*width {
		return &plainBlock{typ: t, width: width, ordinal: ord, count: count, cells: cells}, nil
	}
	return nil, fault.Corruptf("encoding: plain: %d bytes for %d values of %s", len(cells), count, t)
}

func (b *plainBlock) Ordinal() batch.Ordinal { return b.ordinal }
func (b *plainBlock) Len() int               { return b.count }
func (b *plainBlock) Footprint() int         { return 80 }

func (b *plainBlock) cell(i int) []byte {
	o := i * b.width
	return b.cells[o : o+b.width : o+b.width]
}

func (b *plainBlock) Cell(i int) ([]byte, error) { return b.cell(i), nil }

func (b *plainBlock) Decode(from, n int, dst *batch.Vector, at int) error {
	copy(dst.Data[at*b.width:(at+n)*b.width], b.cells[from*b.width:(from+n)*b.width])
	return nil
}

func (b *plainBlock) Seek(target []byte) (int, bool, error) {
	if err := checkTarget(b.typ, target); err != nil {
		return 0, false, err
	}
	i, exact := searchCells(b.typ, b.count, b.cell, target)
	return i, exact, nil
}

// Select leaves the values to the caller: decoding them is a copy.
func (b *plainBlock) Select(p *batch.Predicate, _, n int, sel batch.Bitmap, at int) (bool, error) {
	return selectAll(p, n, sel, at), nil
}

// plainBool is a PLAIN payload of bool.
type plainBool struct {
	ordinal batch.Ordinal
	count   int
	bits    []byte
}

func parsePlainBool(payload []byte) (Block, error) {
	ord, count, bits, err := plainHeader("plain bool", payload)
	if err != nil {
		return nil, err
	}
	if len(bits) != (count+7)/8 {
		return nil, fault.Corruptf("encoding: plain bool: %d bytes for %d bits", len(bits), count)
	}
	return &plainBool{ordinal: ord, count: count, bits: bits}, nil
}

func (b *plainBool) Ordinal() batch.Ordinal { return b.ordinal }
func (b *plainBool) Len() int               { return b.count }
func (b *plainBool) Footprint() int         { return 64 }

func (b *plainBool) Cell(i int) ([]byte, error) {
	return boolCells[b.bits[i>>3]>>(uint(i)&7)&1], nil
}

func (b *plainBool) Decode(from, n int, dst *batch.Vector, at int) error {
	expandBits(dst.Data[at:at+n], b.bits, from, n)
	return nil
}

func (b *plainBool) Seek([]byte) (int, bool, error) {
	return 0, false, checkTarget(schema.Bool, nil)
}

func (b *plainBool) Select(p *batch.Predicate, _, n int, sel batch.Bitmap, at int) (bool, error) {
	return selectAll(p, n, sel, at), nil
}
