package cfile

import (
	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/internal/coding"
	"github.com/oribi-db/oribi/internal/fault"
)

// arrayCells locates the values of a cblock of arrays: the counts divide the elements into cells,
// and the presence bitmap of the elements shows which of them are values. Immutable. Source: cfile
// spec §7.2.
type arrayCells struct {
	elements presence
	counts   counts
}

// readElements limits the elements that one read returns: a cell of a few bytes may have 65535 NULL
// elements.
const readElements = 1 << 18

// parseArrays parses the prologue of a cblock of arrays and returns the values after it. Package
// internal/encoding has the table of the format. Source: cfile spec §7.2, §12.3 items 50 and 51.
func (b *dataBlock) parseArrays(payload []byte, nullable bool) (values []byte, err error) {
	p := prologueReader{rest: payload}
	elements, cells := p.number("elements"), p.number("cells")
	present, countStream, whole := p.field("elements"), p.field("counts"), p.field("cells")
	if p.err != nil {
		return nil, p.err
	}
	if b.nulls, err = parsePresence(whole, cells); err != nil {
		return nil, err
	}
	if b.nullable = b.nulls.ones < cells; b.nullable && !nullable {
		return nil, fault.Corruptf("array prologue: %d NULL cells in a column that is not nullable", cells-b.nulls.ones)
	}
	a := &arrayCells{}
	if a.elements, err = parsePresence(present, elements); err != nil {
		return nil, err
	}
	if a.counts, err = parseCounts(countStream, &b.nulls, elements); err != nil {
		return nil, err
	}
	b.arrays = a
	b.bytes += b.nulls.footprint() + a.elements.footprint() + markBytes*int64(cap(a.counts.marks))
	return p.rest, nil
}

// prologueReader reads numbers and fields from the front of a payload and keeps the first error.
type prologueReader struct {
	rest []byte
	err  error
}

func (p *prologueReader) number(name string) uint32 {
	v, n, ok := coding.Uvarint32(p.rest)
	if !ok && p.err == nil {
		p.err = fault.Corruptf("array prologue: malformed number of %s", name)
	}
	if p.err != nil {
		return 0
	}
	p.rest = p.rest[n:]
	return v
}

func (p *prologueReader) field(name string) []byte {
	size := p.number("bytes of " + name)
	if p.err == nil && uint64(size) > uint64(len(p.rest)) {
		p.err = fault.Corruptf("array prologue: %d bytes of %s, only %d left", size, name, len(p.rest))
	}
	if p.err != nil {
		return nil
	}
	field := p.rest[:size:size]
	p.rest = p.rest[size:]
	return field
}

// readArrays is ReadVector for a column of arrays.
func (c *ColumnReader) readArrays(ord batch.Ordinal, n int, dst *batch.Vector) (int, error) {
	dst.ResetArrays(0)
	left := maxReadCopyBytes
	for dst.Len < n {
		row := int64(ord) + int64(dst.Len)
		b, err := c.block(row)
		if err != nil {
			return 0, err
		}
		from := int(row - b.first)
		want := min(n-dst.Len, b.rows-from)
		fit, copied := b.fit(from, want, max(left, 0))
		if left -= copied; dst.Len > 0 && left < 0 {
			break
		}
		k, err := b.decodeArrays(from, fit, dst)
		if err != nil {
			return 0, c.wrap(b, err)
		}
		c.decoded(b.index, k)
		if k < want {
			break
		}
	}
	return dst.Len, nil
}

// decodeArrays appends cells [from, from+n) of the cblock to dst, which is in array form. It
// returns the number of cells appended, fewer than n if dst would exceed readElements elements.
func (b *dataBlock) decodeArrays(from, n int, dst *batch.Vector) (int, error) {
	a, at, base := b.arrays, dst.Len, dst.Elements.Len
	offsets, k := a.counts.offsets(dst.Offsets, from, n, base, readElements)
	first, count := a.counts.before(from), int(offsets[len(offsets)-1])-base
	dst.SetOffsets(offsets)
	if b.nulls.rank(from+k)-b.nulls.rank(from) < k {
		b.nulls.clearNulls(dst.NeedPresent(), at, from, k)
	}
	dst.Elements.Extend(count)
	v := a.elements.rank(first)
	m := a.elements.rank(first+count) - v
	if m > 0 {
		if err := b.values.Decode(v, m, dst.Elements, base); err != nil {
			return 0, err
		}
	}
	placeNulls(&a.elements, first, count, m, dst.Elements, base)
	return k, nil
}
