package carbondata

import (
	"encoding/binary"
	"math"
	"math/bits"

	"github.com/oribi-db/oribi/internal/fault"
)

// Data of a page after decompression, one entry per row. Source: carbondata spec §7.
//
//	numbers            see numbers: store type's width, little-endian; 3 bytes: big-endian
//	DECIMAL over 18    digits: two's complement, big-endian, see decimalWidth
//	STRING             length (2, big-endian), bytes
//	VARCHAR, BINARY    length (4, big-endian), bytes
//	local dictionary   surrogate (3, big-endian)
//	DATE               4, big-endian: 1 for null, else days since 1970-01-01 and 3fffffff
//	numbers before 1.5 in sort columns, and TIMESTAMP: length (2), big-endian with the sign bit
//	                   flipped; no bytes for null
//
// With INVERTED_INDEX the entries are sorted, see inverse. With RLE and runs there is one entry for
// each run, see expandRuns.
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

// page is a decoded page.
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
	inverse []uint16 // from row to entry; nil: the same

	elements int // of all rows of ARRAY and MAP
}

// nullBits returns the null bits of a page of n values, at most limit bytes. Source: carbondata
// spec §7.1.
func nullBits(h *pageHeader, n, limit int) ([]byte, error) {
	if len(h.nulls) == 0 {
		return nil, nil
	}
	b, err := decompress(h.compressor, h.nulls, min((n+63)/64*8, limit))
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

// readPage reads and checks page i of a column, but not those of its children. It has n rows, or
// elements.
func (f *File) readPage(col *Column, c *chunk, dict *dictionary, i, n int) (*page, error) {
	h := &c.pages[i]
	if complexPage := col.nested || len(col.Children) > 0; h.rows >= 0 && h.rows != n && !complexPage {
		return nil, fault.Corruptf("%d rows, want %d", h.rows, n)
	}
	b, err := readAt(f.src, h.offset, h.data+h.rowIDs+h.runs)
	if err != nil {
		return nil, err
	}
	p := &page{column: col, rows: n, dict: dict}
	limit := f.textLimit()
	if col.nested {
		limit /= 3 // many short strings, with where each ends
	}
	if p.nulls, err = nullBits(h, n, limit); err != nil {
		return nil, err
	}
	if err := p.choose(h, dict != nil); err != nil {
		return nil, err
	}
	data, rowIDs, runs := b[:h.data], b[h.data:h.data+h.rowIDs], b[h.data+h.rowIDs:]
	if h.has(encInvertedIndex) {
		if n > maxPageRows {
			return nil, fault.Corruptf("row IDs of %d elements", n)
		}
		if p.inverse, err = inverse(rowIDs, n); err != nil {
			return nil, inside(err, "row IDs")
		}
	} else if len(rowIDs) > 0 {
		return nil, fault.Corruptf("row IDs without INVERTED_INDEX")
	}
	return p, p.decode(h.compressor, data, runs, limit)
}

// choose determines the form of the page.
func (p *page) choose(h *pageHeader, dictionary bool) error {
	for _, e := range h.encoders {
		switch e {
		case encDictionary, encRLE, encInvertedIndex, encDirectCompress, encAdaptive, encAdaptiveDelta, encAdaptiveFloat, encAdaptiveFloatDel, encVarchar, encIntLengthChild:
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
		if len(h.encoders) > 0 && !p.column.nested && h.encoders[0] != encVarchar && h.encoders[0] != encRLE && h.encoders[0] != encInvertedIndex {
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
	if dictionary {
		return fault.Corruptf("%v with a local dictionary", p.column.Type)
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

// decode decompresses the data, of at most limit bytes if it is strings, and checks it.
func (p *page) decode(compressor string, data, runs []byte, limit int) (err error) {
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
	if width > 0 {
		limit = min(width*p.rows, limit)
	}
	if p.data, err = decompress(compressor, data, limit); err != nil {
		return err
	}
	if len(runs) > 0 {
		if p.form != formSurrogates && p.form != formDates {
			return fault.Corruptf("runs of values that are not surrogates")
		}
		if p.data, err = expandRuns(p.data, width, runs, p.rows); err != nil {
			return inside(err, "runs")
		}
	}
	if width > 0 && len(p.data) != width*p.rows {
		return fault.Corruptf("%d bytes of %d rows, want %d", len(p.data), p.rows, width*p.rows)
	}
	p.numbers.data = p.data
	switch p.form {
	case formSurrogates:
		return p.checkSurrogates()
	case formElements:
		return p.checkElements()
	case formFields:
		return p.checkFields()
	case formStrings, formOldNumbers, formNestedDates, formNestedDecimals:
		p.offsets, err = splitStrings(p.data, p.prefix, p.rows)
	}
	return err
}

func (p *page) checkSurrogates() error {
	for i := range p.rows {
		if s := p.surrogate(i); s == 0 || !p.dict.has(s) {
			return fault.Corruptf("entry %d: surrogate %d is not in the dictionary", i, s)
		}
	}
	return nil
}

func (p *page) surrogate(i int) int {
	b := p.data[i*surrogateLen:]
	return int(b[0])<<16 | int(b[1])<<8 | int(b[2])
}

// splitStrings returns where the strings in data are: string i ends at offset i+1, and begins
// prefix bytes after offset i.
func splitStrings(data []byte, prefix, n int) ([]uint32, error) {
	if n > len(data)/prefix {
		return nil, fault.Corruptf("%d bytes are too short for %d strings", len(data), n)
	}
	offsets := make([]uint32, 1, n+1)
	at := 0
	for i := range n {
		if len(data)-at < prefix {
			return nil, fault.Corruptf("string %d begins at byte %d of %d", i, at, len(data))
		}
		length := int(int16(binary.BigEndian.Uint16(data[at:])))
		if prefix == longLengthLen {
			length = int(int32(binary.BigEndian.Uint32(data[at:])))
		}
		at += prefix
		if length < 0 || length > len(data)-at {
			return nil, fault.Corruptf("string %d: %d bytes, %d are left", i, length, len(data)-at)
		}
		at += length
		offsets = append(offsets, uint32(at))
	}
	if at != len(data) {
		return nil, fault.Corruptf("%d bytes after the last string", len(data)-at)
	}
	return offsets, nil
}

func (p *page) isNull(row int) bool {
	return row/8 < len(p.nulls) && p.nulls[row/8]&(1<<(row%8)) != 0
}

// value returns the value of a row of a column without children as a Go value, see Type.
func (p *page) value(row int) (any, error) {
	if p.isNull(row) {
		return nil, nil
	}
	i := row
	if p.inverse != nil {
		i = int(p.inverse[row])
	}
	switch p.form {
	case formSurrogates:
		return textValue(p.column.Type, p.dict.value(p.surrogate(i))), nil
	case formDates:
		return date(binary.BigEndian.Uint32(p.data[i*dateLen:])), nil
	case formStrings:
		return textValue(p.column.Type, string(p.bytes(i))), nil
	case formOldNumbers:
		return oldNumber(p.column.Type, p.bytes(i))
	case formNestedDates:
		return nestedDate(p.bytes(i))
	case formNestedDecimals:
		return nestedDecimal(p.column, p.bytes(i))
	case formElements, formFields:
		return nil, fault.Corruptf("%s without children", p.column.TypeName())
	}
	return p.numbers.value(i)
}

func (p *page) bytes(i int) []byte {
	return p.data[int(p.offsets[i])+p.prefix : p.offsets[i+1]]
}

// textValue returns the value of a STRING, VARCHAR or BINARY. Source: carbondata spec §7.4.
func textValue(typ Type, s string) any {
	switch {
	case typ == Binary && s == "", typ != Binary && s == nullText:
		return nil
	case typ == Binary:
		return []byte(s)
	}
	return s
}

func date(surrogate uint32) any {
	if surrogate == dateNull {
		return nil
	}
	return Days(int32(int64(surrogate) - dateZero))
}

// oldNumber returns a number of a sort column before 1.5. Source: carbondata spec §7.1.
func oldNumber(typ Type, b []byte) (any, error) {
	switch {
	case len(b) == 0:
		return nil, nil
	case typ == Boolean && len(b) == 1:
		return b[0] != 0, nil
	case typ == Short && len(b) == 2:
		return int16(binary.BigEndian.Uint16(b) ^ 1<<15), nil
	case typ == Int && len(b) == 4:
		return int32(binary.BigEndian.Uint32(b) ^ 1<<31), nil
	case (typ == Long || typ == Timestamp) && len(b) == 8:
		return integer(typ, int64(binary.BigEndian.Uint64(b)^1<<63))
	}
	return nil, fault.Corruptf("%v of %d bytes", typ, len(b))
}

// Runs: how often each entry of the data is repeated. Source: carbondata spec §7.7.
//
//	offset  width  field  meaning
//	0       2      start  first row, big-endian
//	2       2      count  rows, big-endian
//
// 10 rows with one value: 00 00 00 0a
const runLen = 4 // file format: never change

// expandRuns repeats the entries in data, of the given width, as runs says. The result has n
// entries.
func expandRuns(data []byte, width int, runs []byte, n int) ([]byte, error) {
	if len(runs)%runLen != 0 || len(data) != len(runs)/runLen*width {
		return nil, fault.Corruptf("%d bytes of runs, %d of entries", len(runs), len(data))
	}
	if n > len(runs)/runLen*maxPageRows {
		return nil, fault.Corruptf("%d bytes of runs of %d rows", len(runs), n)
	}
	b := make([]byte, 0, n*width)
	row := 0
	for ; len(runs) > 0; runs, data = runs[runLen:], data[width:] {
		start, count := int(int16(binary.BigEndian.Uint16(runs))), int(int16(binary.BigEndian.Uint16(runs[2:])))
		if start != row || count <= 0 || count > n-row {
			return nil, fault.Corruptf("%d rows from %d, at row %d of %d", count, start, row, n)
		}
		for range count {
			b = append(b, data[:width]...)
		}
		row += count
	}
	if row != n {
		return nil, fault.Corruptf("%d rows, want %d", row, n)
	}
	return b, nil
}

// Row IDs: the row of each sorted entry. Integers are big-endian. Source: carbondata spec §7.6.
//
//	offset  width  field   meaning
//	0       4      length  bytes of the list
//	4       2 each list    row IDs
//	…       2 each map     positions in the list: the entry there and the next are the first and the
//	                       last of a run of rows; empty if there are no runs
//
// Rows 1 2 3 4 6 of sorted entries 0 to 4, and row 0 of entry 5, as a run and two rows:
//
//	00 00 00 08  00 01 00 04 00 06 00 00  00 00
const rowIDLen = 2 // file format: never change

// inverse returns the sorted entry of each of n rows.
func inverse(b []byte, n int) ([]uint16, error) {
	const head = 4
	if len(b) < head {
		return nil, fault.Corruptf("%d bytes", len(b))
	}
	length := binary.BigEndian.Uint32(b)
	b = b[head:]
	if int64(length) > int64(len(b)) || length%rowIDLen != 0 || len(b)%rowIDLen != 0 {
		return nil, fault.Corruptf("a list of %d bytes, %d are left", int32(length), len(b))
	}
	list, positions := b[:length], b[length:]
	const none = math.MaxUint16
	result := make([]uint16, n)
	for i := range result {
		result[i] = none
	}
	entry := 0
	add := func(first, last int) error {
		if first < 0 || last < first || last >= n || last-first >= n-entry {
			return fault.Corruptf("rows %d to %d of %d, entry %d", first, last, n, entry)
		}
		for row := first; row <= last; row++ {
			if result[row] != none {
				return fault.Corruptf("row %d twice", row)
			}
			result[row] = uint16(entry)
			entry++
		}
		return nil
	}
	at := func(b []byte, i int) int { return int(int16(binary.BigEndian.Uint16(b[i*rowIDLen:]))) }
	count := len(list) / rowIDLen
	for i := 0; i < count; i++ {
		first := at(list, i)
		last := first
		if len(positions) > 0 && at(positions, 0) == i {
			positions = positions[rowIDLen:]
			if i++; i == count {
				return nil, fault.Corruptf("a run that begins at the last of %d row IDs", count)
			}
			last = at(list, i)
		}
		if err := add(first, last); err != nil {
			return nil, err
		}
	}
	if len(positions) > 0 {
		return nil, fault.Corruptf("a run at position %d of %d row IDs", at(positions, 0), count)
	}
	if entry != n {
		return nil, fault.Corruptf("%d rows, want %d", entry, n)
	}
	return result, nil
}
