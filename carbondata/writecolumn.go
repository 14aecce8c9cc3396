package carbondata

import (
	"bytes"
	"cmp"
	"encoding/binary"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/carbondata/internal/codec"
)

// columnWriter collects the values of a column, or of a child of one, page by page, and encodes
// them. The calls of add do not check values.
type columnWriter struct {
	Column
	path       string // the name with the names of the parents
	pairOf     string // the name of the MAP whose keys and values this is
	form       form
	kind       byte // in encoder meta
	prefix     int  // bytes of a length in text
	inverted   bool
	compressor *codec.Compressor
	dict       *dictionaryWriter // nil: no local dictionary
	children   []*columnWriter

	// The page that is filled. One of ints, floats, wides, codes, and text has the values; a STRUCT
	// has none.
	rows   int
	nulls  []byte // bits of the rows that are null; may end early
	ints   []int64
	floats []float64
	wides  []batch.Int128
	codes  []uint32 // of the dictionary
	text   []byte   // as in a plain page: with lengths
	ends   []uint32 // in text

	plain int // bytes of a plain page of strings

	next   encodedPage // of the page, once it is encoded
	values valueRange  // of the page, once it is encoded

	// The blocklet.
	pages   []encodedPage
	bounds  valueRange
	hasDict bool  // all pages have surrogates
	coded   int64 // bytes of the values that are stored as surrogates
}

// addNull adds a null, as the SDK stores it. Source: carbondata spec §7.3, §7.4, §7.7, §7.8.
func (c *columnWriter) addNull() {
	switch c.form {
	case formNumbers:
		for c.rows/8 >= len(c.nulls) {
			c.nulls = append(c.nulls, 0)
		}
		c.nulls[c.rows/8] |= 1 << (c.rows % 8)
		switch {
		case c.Type == Float || c.Type == Double:
			c.floats = append(c.floats, 0)
		case c.isWide():
			c.wides = append(c.wides, batch.Int128{})
		default:
			c.ints = append(c.ints, 0)
		}
		c.rows++
	case formDates:
		c.ints = append(c.ints, dateNull)
		c.rows++
	case formElements:
		c.addElements(1)
		c.children[0].addNull()
	case formFields:
		c.rows++
		for _, child := range c.children {
			child.addNull()
		}
	case formStrings:
		if c.Type == Binary {
			c.addBytes(nil)
		} else {
			c.addBytes([]byte(nullText))
		}
	default:
		c.addBytes(nil)
	}
}

// isWide reports whether the values of the page are in wides.
func (c *columnWriter) isWide() bool { return c.Type == Decimal && c.Precision > maxLongDigits }

// maxLongDigits is the number of digits of the DECIMALs that are stored as integers.
const maxLongDigits = 18

// addInt adds a value of BOOLEAN, an integer type, DATE (days), or TIMESTAMP (milliseconds), the
// latter two as stored, see storedInt.
func (c *columnWriter) addInt(v int64) {
	switch c.form {
	case formNumbers:
		c.ints = append(c.ints, v)
		c.rows++
	case formDates:
		c.ints = append(c.ints, v+dateZero)
		c.rows++
	default: // formNestedDates
		var b [dateLen]byte
		binary.BigEndian.PutUint32(b[:], uint32(v+dateZero)^1<<31)
		c.addBytes(b[:])
	}
}

func (c *columnWriter) addFloat(v float64) {
	c.floats = append(c.floats, v)
	c.rows++
}

func (c *columnWriter) addDecimal(v batch.Int128) {
	switch {
	case c.form == formNestedDecimals:
		c.addBytes(appendDecimal(nil, c.Scale, v))
		return
	case c.isWide():
		c.wides = append(c.wides, v)
	default:
		c.ints = append(c.ints, int64(v.Lo))
	}
	c.rows++
}

// appendDecimal appends the scale and the fewest bytes of an unscaled value, big-endian. Source:
// carbondata spec §7.2.
func appendDecimal(dst []byte, scale int, v batch.Int128) []byte {
	var b [16]byte
	binary.BigEndian.PutUint64(b[:], uint64(v.Hi))
	binary.BigEndian.PutUint64(b[8:], v.Lo)
	from := 0
	for from < 15 && (b[from] == 0 && b[from+1] < 0x80 || b[from] == 0xff && b[from+1] >= 0x80) {
		from++
	}
	return append(append(dst, byte(scale)), b[from:]...)
}

// addBytes adds a string of bytes, which may be the stored form of a null.
func (c *columnWriter) addBytes(v []byte) {
	c.rows++
	c.plain += c.prefix + len(v)
	if c.isCoded() {
		code, ok := c.dict.code(v)
		if ok {
			c.codes = append(c.codes, code)
			return
		}
		c.dropDictionary()
	}
	c.appendText(v)
}

func (c *columnWriter) appendText(v []byte) {
	c.text = append(appendLength(c.text, c.prefix, len(v)), v...)
	c.ends = append(c.ends, uint32(len(c.text)))
}

// dropDictionary replaces the surrogates of the page by their values.
func (c *columnWriter) dropDictionary() {
	c.dict.full = true
	for _, code := range c.codes {
		c.appendText(c.dict.value(code))
	}
	c.codes = c.codes[:0]
}

// isCoded reports whether the page has surrogates.
func (c *columnWriter) isCoded() bool { return c.dict != nil && !c.dict.full }

// addElements begins an ARRAY or MAP of n elements, which the caller adds to the child.
func (c *columnWriter) addElements(n int) {
	c.ints = append(c.ints, int64(n))
	c.rows++
}

// textAt returns the value of a row of a page without dictionary.
func (c *columnWriter) textAt(row int) []byte {
	from := 0
	if row > 0 {
		from = int(c.ends[row-1])
	}
	return c.text[from+c.prefix : c.ends[row]]
}

func (c *columnWriter) isNull(row int) bool {
	return row/8 < len(c.nulls) && c.nulls[row/8]&(1<<(row%8)) != 0
}

// Limits of the values of a page and of a row, so that reading accepts the page in any file, see
// memoryLimit. The page ends after the row that reaches its limit.
const (
	maxPageMemory = 10 << 20
	maxRowBytes   = 4 << 20 // of text
	maxRowValues  = 1 << 17 // of nested columns

	nestedBytes = 16 // memory of a nested value, besides its text
	codeBytes   = 10 // of a string, besides its text: surrogate, code, run

	maxCodedBytes = 512 << 20 // of a column in a blocklet whose dictionary may be given up
)

const valueBytes = 8 // most bytes of a number

// textMemory returns the memory of text and children of the page when it is read.
func (c *columnWriter) textMemory() int {
	n := c.plain
	for _, child := range c.children {
		n += child.rows*nestedBytes + child.textMemory()
	}
	return n
}

// reset begins the next page.
func (c *columnWriter) reset() {
	c.rows, c.nulls = 0, c.nulls[:0]
	c.ints, c.floats, c.wides, c.codes = c.ints[:0], c.floats[:0], c.wides[:0], c.codes[:0]
	c.text, c.ends, c.plain = c.text[:0], c.ends[:0], 0
}

// sortValue is a value of a sort column.
type sortValue struct {
	null bool
	n    int64
	text []byte
}

// sortValue returns the value of a row. Its text is valid until the page ends.
func (c *columnWriter) sortValue(row int) sortValue {
	switch {
	case c.form == formNumbers:
		return sortValue{null: c.isNull(row), n: c.ints[row]}
	case c.form == formDates:
		return sortValue{null: c.ints[row] == dateNull, n: c.ints[row]}
	case c.isCoded():
		return sortValue{null: c.codes[row] == nullSurrogate, text: c.dict.values[c.codes[row]-1]}
	}
	text := c.textAt(row)
	return sortValue{null: string(text) == nullText, text: text}
}

// compare compares values as CarbonData sorts them: nulls first, text by unsigned bytes.
func (v sortValue) compare(o sortValue) int {
	switch {
	case v.null && o.null:
		return 0
	case v.null:
		return -1
	case o.null:
		return 1
	}
	return cmp.Or(cmp.Compare(v.n, o.n), bytes.Compare(v.text, o.text))
}

// encodedPage is a page of a column in the blocklet that is being filled.
type encodedPage struct {
	head   []byte     // DataChunk2
	body   []byte     // data, compressed, row IDs, runs
	coded  bool       // the data is surrogates
	header pageHeader // of such a page
}

// size returns the bytes that the SDK counts for this page in the size of a blocklet.
func (p *encodedPage) size() int { return len(p.head) + len(p.body) }

// valueRange is the least and the greatest value of a column in a page or a blocklet, with those
// that stand for nulls. Source: carbondata spec §9.
type valueRange struct {
	some           bool // there are values
	absent         bool // a string is too long for bounds
	minInt, maxInt int64
	min, max       float64
	minWide        batch.Int128
	maxWide        batch.Int128
	minText        []byte
	maxText        []byte
}
