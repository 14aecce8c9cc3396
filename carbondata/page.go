package carbondata

import (
	"errors"
	"math/bits"

	"github.com/oribi-db/oribi/internal/compress"
	"github.com/oribi-db/oribi/internal/fault"
)

// Data of a page after decompression, one entry per row. Source: carbondata spec §7.
//
//	numbers            see numbers: store type's width, little-endian; 3 bytes: big-endian
//	DECIMAL over 18    digits: two's complement, big-endian, see decimalWidth
//	STRING             length (2, big-endian), bytes
//	VARCHAR, BINARY    length (4, big-endian), bytes
//	local dictionary   surrogate (3, big-endian)
//	DATE               4, big-endian: 1 for null, else days since 1970-01-01, see switchDay, and
//	                   3fffffff
//	numbers before 1.5 in sort columns, and TIMESTAMP: length (2), big-endian with the sign bit
//	                   flipped; no bytes for null
//
// With INVERTED_INDEX the entries are sorted, see inverse. With RLE and runs there is one entry for
// each run, see runEnds.
//
// Inside ARRAY, STRUCT, and MAP there is one entry for each element of the parent's page, and no
// entry is sorted. Numbers are as above. The length of a string has 4 bytes if the encodings
// contain INT_LENGTH_COMPLEX_CHILD_BYTE_ARRAY, else 2. Source: carbondata spec §7.8.
//
//	ARRAY, MAP         number of elements (4, big-endian), index of the first (4): elements are in
//	                   order and without gaps
//	STRUCT             number of fields (2, big-endian)
//	DATE               length, 4 bytes as above with the sign bit flipped; no bytes for null
//	DECIMAL            length, scale (1), unscaled: two's complement, big-endian; no bytes for null
//
// The DATE 2019-03-02: 40 00 46 24. The STRING "ab": 00 02 61 62. A null STRING:
// 00 08 40 4e 55 23 4c 4c 24 21
const (
	nullText      = "@NU#LL$!" // file format: never change
	dateNull      = 1          // file format: never change
	dateZero      = 1<<30 - 1  // file format: never change
	dateLen       = 4          // file format: never change
	surrogateLen  = 3          // file format: never change
	lengthLen     = 2          // file format: never change
	longLengthLen = 4          // file format: never change
)

// form is how the values of a page are stored.
type form int

const (
	formNumbers form = iota
	formStrings
	formSurrogates
	formDates
	formOldNumbers // as strings of bytes
	formNestedDates
	formNestedDecimals
	formElements // of ARRAY and MAP
	formFields   // of STRUCT
)

// page is a decoded page. Its memory is used again for the next page of the column.
type page struct {
	column  *Column
	form    form
	rows    int
	nulls   []byte // bit i%8 of byte i/8: row i is null; may end early
	numbers numbers
	data    []byte
	offsets []uint32 // of the strings in data, and the end of the last
	prefix  int      // bytes of a string's length
	dict    *dictionary
	// of formSurrogates, indexes in dict: of the entries, or of the runs if there are ends; nil
	// before findCodes
	codes   []uint32
	ends    []uint32 // of formSurrogates with runs: the entries after each; nil without runs and with row IDs
	inverse []uint16 // from row to entry; nil if rows are in the order of the entries

	elements int // of all rows of ARRAY and MAP

	buffers pageBuffers
}

// pageBuffers is the memory of a page.
type pageBuffers struct {
	nulls, data, runs []byte
	offsets, codes    []uint32
	inverse           []uint16
}

// size returns the bytes of b.
func (b *pageBuffers) size() int {
	return cap(b.nulls) + cap(b.data) + cap(b.runs) +
		offsetBytes*(cap(b.offsets)+cap(b.codes)) + rowIDLen*cap(b.inverse)
}

// offsetBytes is the memory of an offset or a code.
const offsetBytes = 4

// nullBits returns the null bits of a page of n values, at most limit bytes, in the memory of dst
// if that is large enough. Source: carbondata spec §7.1.
func nullBits(dst []byte, h *pageHeader, n, limit int) ([]byte, error) {
	if len(h.nulls) == 0 {
		return dst[:0], nil
	}
	b, err := decompress(dst, h.compressor, h.nulls, min((n+63)/64*8, limit))
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
	if f.strict && (h.compressor == "" || h.compressor == nameSnappy) && compress.SnappyRepeats(data) {
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
			if n := mostBytes(compressor, data); n < width*p.rows {
				return fault.Corruptf("at most %d bytes of %d rows, want %d", n, p.rows, width*p.rows)
			}
			return m.take(width * p.rows)
		}
	}
	unpack := decompress
	if width == 0 {
		if err := m.take(len(data)); err != nil {
			return err
		}
		limit, unpack = m.left, decompressText
	}
	if p.data, err = unpack(p.buffers.data, compressor, data, limit); err != nil {
		if _, long := errors.AsType[*tooLong](err); long && width == 0 {
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
