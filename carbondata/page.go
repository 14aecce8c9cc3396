package carbondata

import (
	"errors"
	"math/bits"

	"github.com/oribi-db/oribi/carbondata/internal/codec"
	"github.com/oribi-db/oribi/internal/compress"
	"github.com/oribi-db/oribi/internal/fault"
)

// nullBits returns the null bits of a page of n values, at most limit bytes, in the memory of dst
// if that is large enough. Source: carbondata spec §7.1.
func nullBits(dst []byte, h *pageHeader, n, limit int) ([]byte, error) {
	if len(h.nulls) == 0 {
		return dst[:0], nil
	}
	b, err := codec.Decompress(dst, h.compressor, h.nulls, min((n+63)/64*8, limit))
	if err != nil {
		return nil, inside(err, "null bits")
	}
	for i, c := range b {
		if c != 0 && 8*i+bits.Len8(c) > n {
			return nil, fault.Corruptf("null bits of more than %d rows", n)
		}
	}
	return b, nil
}

// read reads and checks page i of a column, but not the pages of its children. It has n rows, or
// elements. scratch is memory for the bytes in the file.
func (p *page) read(f *File, c *cells, i, n int, m *memory, scratch *[]byte) error {
	h := &c.chunk.pages[i]
	if complexPage := c.column.nested || len(c.column.Children) > 0; h.rows >= 0 && h.rows != n && !complexPage {
		return fault.Corruptf("%d rows, want %d", h.rows, n)
	}
	b, err := readInto(scratch, f.src, h.offset, h.data+h.rowIDs+h.runs)
	if err != nil {
		return err
	}
	*p = page{column: c.column, rows: n, dict: c.dict, buffers: p.buffers}
	if p.nulls, err = nullBits(p.buffers.nulls, h, n, m.left); err != nil {
		return err
	}
	p.buffers.nulls = p.nulls
	if err := m.take(len(p.nulls)); err != nil {
		return err
	}
	if err := p.choose(h, c.dict != nil); err != nil {
		return err
	}
	data, rowIDs, runs := b[:h.data], b[h.data:h.data+h.rowIDs], b[h.data+h.rowIDs:]
	if h.has(encInvertedIndex) {
		if n > maxPageRows {
			return fault.Corruptf("row IDs of %d elements", n)
		}
		if err := m.take(n * rowIDLen); err != nil {
			return err
		}
		if p.inverse, err = inverse(p.buffers.inverse, rowIDs, n); err != nil {
			return inside(err, "row IDs")
		}
		p.buffers.inverse = p.inverse
	} else if len(rowIDs) > 0 {
		return fault.Corruptf("row IDs without INVERTED_INDEX")
	}
	if err := p.decode(h.compressor, data, runs, m); err != nil {
		return err
	}
	if f.strict && (h.compressor == "" || h.compressor == codec.Snappy) && compress.SnappyRepeats(data) {
		return fault.Corruptf("snappy: a copy from offset 0")
	}
	return nil
}

// choose determines the form of the page.
func (p *page) choose(h *pageHeader, dictionary bool) error {
	for _, e := range h.encoders {
		switch e {
		case encDictionary, encRLE, encInvertedIndex, encDirectCompress, encAdaptive, encAdaptiveDelta,
			encAdaptiveFloat, encAdaptiveFloatDel, encVarchar, encIntLengthChild:
		default:
			return fault.Unsupportedf("encoding %d", e)
		}
	}
	p.prefix = lengthLen
	if h.has(encVarchar) || h.has(encIntLengthChild) {
		p.prefix = longLengthLen
	}
	switch typ := p.column.Type; {
	case typ == Array || typ == Map:
		p.form = formElements
		return nil
	case typ == Struct:
		p.form = formFields
		return nil
	case typ == Date && p.column.nested:
		p.form = formNestedDates
		return nil
	case typ == Decimal && p.column.nested:
		p.form = formNestedDecimals
		return nil
	case typ == String || typ == Varchar || typ == Binary:
		p.form = formStrings
		if dictionary {
			p.form = formSurrogates
		}
		if len(h.encoders) > 0 && !p.column.nested && h.encoders[0] != encVarchar && h.encoders[0] != encRLE &&
			h.encoders[0] != encInvertedIndex {
			return fault.Unsupportedf("%v with encoding %d", p.column.Type, h.encoders[0])
		}
		return nil
	case typ == Date:
		p.form = formDates
		if !h.has(encDictionary) {
			return fault.Unsupportedf("DATE with encodings %v", h.encoders)
		}
		return nil
	}
	if len(h.encoders) == 0 || h.encoders[0] == encInvertedIndex || h.encoders[0] == encRLE {
		if !p.column.dimension {
			return fault.Corruptf("%v without encoding", p.column.Type)
		}
		p.form = formOldNumbers
		return nil
	}
	if h.encoders[0] == encDictionary {
		return fault.Unsupportedf("%v with a global dictionary", p.column.Type)
	}
	m, err := parseEncoderMeta(h.meta)
	if err != nil {
		return err
	}
	p.numbers, err = newNumbers(p.column, h.encoders[0], m)
	return err
}

// decode decompresses the data and checks it.
func (p *page) decode(compressor string, data, runs []byte, m *memory) (err error) {
	width := 0 // of an entry
	switch p.form {
	case formNumbers:
		width = p.numbers.width
	case formSurrogates:
		width = surrogateLen
	case formDates:
		width = dateLen
	case formElements:
		width = elementsLen
	case formFields:
		width = fieldsLen
	}
	limit := m.left
	if width > 0 {
		if limit = min(width*p.rows, limit); len(runs) == 0 && limit < width*p.rows {
			if n := codec.MostBytes(compressor, data); n < width*p.rows {
				return fault.Corruptf("at most %d bytes of %d rows, want %d", n, p.rows, width*p.rows)
			}
			return m.take(width * p.rows)
		}
	}
	unpack := codec.Decompress
	if width == 0 {
		if err := m.take(len(data)); err != nil {
			return err
		}
		limit, unpack = m.left, codec.DecompressText
	}
	if p.data, err = unpack(p.buffers.data, compressor, data, limit); err != nil {
		if _, long := errors.AsType[*codec.TooLong](err); long && width == 0 {
			return m.take(limit + 1) // no damage, but too much
		}
		return err
	}
	p.buffers.data = p.data
	if err := m.unpacked(len(p.data), p.rows); err != nil {
		return err
	}
	if err := m.take(len(p.data)); err != nil {
		return err
	}
	if len(runs) > 0 {
		if err := p.readRuns(runs, width, m); err != nil {
			return inside(err, "runs")
		}
	}
	entries := p.rows
	if p.ends != nil {
		entries = len(p.ends)
	}
	if width > 0 && len(p.data) != width*entries {
		return fault.Corruptf("%d bytes of %d rows, want %d", len(p.data), p.rows, width*entries)
	}
	p.numbers.data = p.data
	switch p.form {
	case formSurrogates:
		if err := m.take(offsetBytes * max(entries, len(p.inverse))); err != nil || p.ends == nil && p.inverse == nil {
			return err
		}
		return p.findCodes()
	case formElements:
		return p.checkElements()
	case formFields:
		return p.checkFields()
	case formStrings, formOldNumbers, formNestedDates, formNestedDecimals:
		if err := m.take(offsetBytes * (min(p.rows, len(p.data)) + 1)); err != nil {
			return err
		}
		p.offsets, err = splitStrings(p.buffers.offsets, p.data, p.prefix, p.rows)
		p.buffers.offsets = p.offsets
	}
	return err
}

// readPage reads page p, of n rows, of the column and its children.
func (c *cells) readPage(f *File, p, n int, m *memory, scratch *[]byte) error {
	if err := c.page.read(f, c, p, n, m, scratch); err != nil {
		return inside(err, "column %q: page %d", c.column.Name, p)
	}
	if c.page.form == formElements {
		n = c.page.elements
	}
	for _, child := range c.children {
		if err := child.readPage(f, p, n, m, scratch); err != nil {
			return inside(err, "column %q", c.column.Name)
		}
	}
	return nil
}
