package rowpage

import (
	"bytes"
	"encoding/binary"
	"hash/maphash"
	"math"
	"math/bits"
	"sync/atomic"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/schema"
)

// Eager makes rowsets write row files with schema.AutoRowFile for any rows, and scans make overlays of
// any changes, instead of when it pays. Results are the same. It is for tests.
var Eager atomic.Bool

// Builder makes the pages of one file. Not safe for concurrent use.
type Builder struct {
	format *Format
	all    []bool // by column: byte strings that have no word are in the page
	long   []bool // by column: also those of more than MaxString bytes
	words  Words
	tables []*wordTable // of words; nil for other columns, and when the words became too many
	bytes  int          // of all words

	far      []bool   // by column: see SetFar
	pieces   []int    // see Pieces
	decimals []byte   // by column of doubles: the decimals of the last page
	numbers  []uint64 // memory
}

// NewBuilder returns a Builder without words. Byte strings with few distinct values become words.
// Byte strings of other columns are in the pages if all is true, unless one of the page has more
// than MaxString bytes. Those of the first keys columns always are.
func NewBuilder(f *Format, all bool, keys int) *Builder {
	n := len(f.columns)
	b := &Builder{format: f, all: make([]bool, n), long: make([]bool, n), words: make(Words, n),
		tables:   make([]*wordTable, n),
		decimals: make([]byte, n), far: make([]bool, n)}
	for i := range f.columns {
		b.all[i], b.long[i] = all || i < keys, i < keys
		if c := &f.columns[i]; c.width == 0 && i >= keys && c.typ != schema.Array {
			b.tables[i] = new(wordTable)
		}
	}
	return b
}

// SetFar decides whether pages refer to the byte strings of a column that are neither words nor in
// the pages. Without SetFar they leave them out.
func (b *Builder) SetFar(col int, far bool) { b.far[col] = far }

// Pieces returns the columns of the last page for which AppendPieces is to be called, in order.
func (b *Builder) Pieces() []int { return b.pieces }

// Piece says where the byte strings of consecutive rows are.
type Piece struct {
	Rows   int
	Offset int64  // in the column's file; −1 if they are not stored as they are
	CRC    uint32 // CRC-32C
}

// MaxPieces is the most pieces of a column of a page.
const MaxPieces = 255

// AppendPieces appends the pieces of a column to a page. There are at most MaxPieces, and they have
// the bytes of all rows.
func AppendPieces(page []byte, pieces []Piece) []byte {
	page = append(page, byte(len(pieces)))
	for _, p := range pieces {
		page = binary.LittleEndian.AppendUint16(page, uint16(p.Rows))
		page = binary.LittleEndian.AppendUint64(page, uint64(p.Offset))
		page = binary.LittleEndian.AppendUint32(page, p.CRC)
	}
	return page
}

// Finish appends the end of a page, after the pieces.
func Finish(page []byte) []byte { return append(page, make([]byte, slackBytes)...) }

// Words returns the words of all pages so far.
func (b *Builder) Words() Words { return b.words }

// Has reports whether pages have the cells of a column, unless its byte strings are too long.
func (b *Builder) Has(col int) bool {
	return b.format.columns[col].width != 0 || b.all[col] || b.tables[col] != nil
}

// Wants reports whether Append uses the byte strings of a column at all.
func (b *Builder) Wants(col int) bool {
	return b.Has(col) || b.far[col]
}

// Append appends a page of rows [from, to) of vectors to dst, without its end: AppendPieces for each
// of Pieces, then Finish. There is a vector for each column of
// the format, in its order; arrays are byte strings. There are at most MaxRows rows, and at least
// one.
func (b *Builder) Append(dst []byte, vectors []*batch.Vector, from, to int) []byte {
	b.pieces = b.pieces[:0]
	dst = binary.LittleEndian.AppendUint16(dst, uint16(to-from))
	for i, v := range vectors {
		c := &b.format.columns[i]
		switch {
		case c.width > 8:
			dst = b.appendWide(dst, c, v, from, to)
		case c.width > 0:
			dst = b.appendFixed(dst, i, v, from, to)
		default:
			dst = b.appendStrings(dst, i, v, from, to)
		}
	}
	return dst
}

// appendHead appends the head of a column and its presence. The numbers follow.
func appendHead(dst []byte, kind byte, width int, base uint64, v *batch.Vector, nulls bool, from, to int) []byte {
	if nulls {
		kind |= hasNulls
	}
	dst = binary.LittleEndian.AppendUint64(append(dst, kind, byte(width)), base)
	if nulls {
		dst = appendPresence(dst, v, from, to)
	}
	return dst
}

func appendPresence(dst []byte, v *batch.Vector, from, to int) []byte {
	for i := from; i < to; i += 8 {
		x := byte(0)
		for k := i; k < min(i+8, to); k++ {
			if v.Present.Get(k) {
				x |= 1 << (k - i)
			}
		}
		dst = append(dst, x)
	}
	return dst
}

// appendNumbers appends a column of numbers, which are those of the cells that are not NULL.
func (b *Builder) appendNumbers(dst []byte, kind byte, v *batch.Vector, from, to int) []byte {
	low, high := int64(math.MaxInt64), int64(math.MinInt64)
	nulls := v.Present != nil && v.Present.CountRange(from, to) < to-from
	if nulls {
		for i, x := range b.numbers {
			if v.Present.Get(from + i) {
				low, high = min(low, int64(x)), max(high, int64(x))
			}
		}
		if low > high {
			low, high = 0, 0
		}
		for i := range b.numbers {
			if !v.Present.Get(from + i) {
				b.numbers[i] = uint64(low)
			}
		}
	} else {
		for _, x := range b.numbers {
			low, high = min(low, int64(x)), max(high, int64(x))
		}
	}
	width := bits.Len64(uint64(high) - uint64(low))
	return appendBits(appendHead(dst, kind, width, uint64(low), v, nulls, from, to), b.numbers, uint64(low), uint(width))
}

// appendBits appends the lowest width bits of each number less low.
func appendBits(dst []byte, numbers []uint64, low uint64, width uint) []byte {
	if width == 0 {
		return dst
	}
	word, n := uint64(0), uint(0)
	for _, x := range numbers {
		x -= low
		word |= x << n
		if n += width; n >= 64 {
			dst = binary.LittleEndian.AppendUint64(dst, word)
			n -= 64
			word = x >> (width - n)
		}
	}
	for ; int(n) > 0; n -= min(n, 8) {
		dst = append(dst, byte(word))
		word >>= 8
	}
	return dst
}

// appendFixed appends a column of at most 8 bytes a cell.
func (b *Builder) appendFixed(dst []byte, col int, v *batch.Vector, from, to int) []byte {
	c := &b.format.columns[col]
	b.numbers = b.numbers[:0]
	b.load(c, v, from, to)
	if c.typ == schema.Double {
		if d, ok := b.toDecimals(b.decimals[col], v, from); ok {
			b.decimals[col] = d
			at := len(dst)
			dst = b.appendNumbers(append(dst, 0), kindDecimal, v, from, to)
			dst[at], dst[at+1], dst[at+2] = dst[at+1], dst[at+2], d // the decimals come after the bits
			return dst
		}
	}
	return b.appendNumbers(dst, kindInteger, v, from, to)
}

// load sets numbers to cells of at most 8 bytes, integers extended by their sign.
func (b *Builder) load(c *column, v *batch.Vector, from, to int) {
	data := v.Data[from*c.width : to*c.width]
	switch c.width {
	case 1:
		for _, x := range data {
			b.numbers = append(b.numbers, uint64(int8(x)))
		}
	case 2:
		for ; len(data) > 0; data = data[2:] {
			b.numbers = append(b.numbers, uint64(int16(binary.LittleEndian.Uint16(data))))
		}
	case 4:
		for ; len(data) > 0; data = data[4:] {
			b.numbers = append(b.numbers, uint64(int32(binary.LittleEndian.Uint32(data))))
		}
	default:
		for ; len(data) > 0; data = data[8:] {
			b.numbers = append(b.numbers, binary.LittleEndian.Uint64(data))
		}
	}
}

// maxExact is the bound of integers that doubles have exactly.
const maxExact = 1 << 53

// toDecimals turns the numbers, which are bits of doubles, into integers, if all are such integers
// divided by 10^d. try is the first d that is tried.
func (b *Builder) toDecimals(try byte, v *batch.Vector, from int) (d byte, ok bool) {
	for k := range byte(maxDecimal + 1) {
		d = k
		switch {
		case k == 0:
			d = try
		case k <= try:
			d = k - 1
		}
		if b.exact(d, v, from) {
			for i, x := range b.numbers {
				if !v.IsNull(from + i) {
					b.numbers[i] = uint64(int64(math.RoundToEven(math.Float64frombits(x) * powers[d])))
				}
			}
			return d, true
		}
	}
	return 0, false
}

// exact reports whether each number is an integer divided by 10^d.
func (b *Builder) exact(d byte, v *batch.Vector, from int) bool {
	for i, x := range b.numbers {
		if v.IsNull(from + i) {
			continue
		}
		n := math.RoundToEven(math.Float64frombits(x) * powers[d])
		if !(math.Abs(n) < maxExact) || math.Float64bits(float64(int64(n))/powers[d]) != x {
			return false
		}
	}
	return true
}

// appendWide appends a column of 16 bytes a cell, as integers if all fit into 8 bytes.
func (b *Builder) appendWide(dst []byte, c *column, v *batch.Vector, from, to int) []byte {
	b.numbers = b.numbers[:0]
	small := true
	for i := from; i < to && small; i++ {
		low := binary.LittleEndian.Uint64(v.Data[i*c.width:])
		high := binary.LittleEndian.Uint64(v.Data[i*c.width+8:])
		small = v.IsNull(i) || high == uint64(int64(low)>>63)
		b.numbers = append(b.numbers, low)
	}
	if small {
		return b.appendNumbers(dst, kindInteger, v, from, to)
	}
	kind := byte(kindRaw)
	if v.Present != nil && v.Present.CountRange(from, to) < to-from {
		dst = appendPresence(append(dst, kind|hasNulls), v, from, to)
	} else {
		dst = append(dst, kind)
	}
	for i := from; i < to; i++ {
		if v.IsNull(i) {
			dst = append(dst, make([]byte, 16)...)
		} else {
			dst = append(dst, v.Data[i*c.width:(i+1)*c.width]...)
		}
	}
	return dst
}

// appendStrings appends a column of byte strings: as words if all of them are or become words, else
// as they are, or not at all.
func (b *Builder) appendStrings(dst []byte, col int, v *batch.Vector, from, to int) []byte {
	if b.toWords(col, v, from, to) {
		return b.appendNumbers(dst, kindWord, v, from, to)
	}
	if !b.all[col] && !b.far[col] {
		return append(dst, kindOut)
	}
	least, most, end := math.MaxInt, 0, 0
	for i := from; i < to; i++ {
		n := len(v.Cell(i))
		least, most, end = min(least, n), max(most, n), end+n
	}
	kind := byte(kindString)
	switch {
	case end == 0, b.all[col] && (most <= MaxString || b.long[col]):
	case b.far[col] && end < maxFar:
		kind = kindFar
		b.pieces = append(b.pieces, col)
	default:
		return append(dst, kindOut)
	}
	width := bits.Len64(uint64(end - least*(to-from)))
	nulls := v.Present != nil && v.Present.CountRange(from, to) < to-from
	dst = appendHead(dst, kind, width, uint64(least), v, nulls, from, to)
	b.numbers = b.numbers[:0]
	end = 0
	for i := from; i < to; i++ {
		end += len(v.Cell(i))
		b.numbers = append(b.numbers, uint64(end-least*(i-from+1)))
	}
	dst = appendBits(dst, b.numbers, 0, uint(width))
	for i := from; i < to && kind == kindString; i++ {
		dst = append(dst, v.Cell(i)...)
	}
	return dst
}

// maxFar bounds the byte strings of a column of kind 6: a read of one of them reads the piece.
const maxFar = 256 << 10

// toWords sets numbers to the numbers of the words of a column. It returns false for a column with
// too many of them.
func (b *Builder) toWords(col int, v *batch.Vector, from, to int) bool {
	table := b.tables[col]
	if table == nil {
		return false
	}
	if table.dict != v.Dict {
		table.dict, table.codes = v.Dict, nil
		if v.Dict != nil {
			table.codes = make([]uint16, len(v.Dict.Words))
		}
	}
	b.numbers = b.numbers[:0]
	for i := from; i < to; i++ {
		n := uint32(0)
		switch {
		case v.IsNull(i):
		case v.Dict == nil || table.codes[v.Codes[i]] == 0:
			var ok bool
			if n, ok = b.word(table, col, v.Cell(i)); !ok {
				b.tables[col] = nil
				return false
			}
			if v.Dict != nil {
				table.codes[v.Codes[i]] = uint16(n + 1)
			}
		default:
			n = uint32(table.codes[v.Codes[i]] - 1)
		}
		b.numbers = append(b.numbers, uint64(n))
	}
	return true
}

// word returns the number of a word of a column, which it adds if it is a new one. ok is false if
// the file would have too many words.
func (b *Builder) word(table *wordTable, col int, cell []byte) (n uint32, ok bool) {
	hash := maphash.Bytes(seed, cell)
	if n, ok = table.find(b.words[col], cell, hash); ok {
		return n, true
	}
	if len(cell) > maxWord || b.bytes+len(cell)+wordCost > maxWordBytes {
		return 0, false
	}
	n = uint32(len(b.words[col]))
	b.words[col] = append(b.words[col], append([]byte{}, cell...))
	b.bytes += len(cell) + wordCost
	table.add(n, hash)
	return n, true
}

var seed = maphash.MakeSeed()

// wordTable finds the words of a column.
type wordTable struct {
	// slots is a hash table with open addressing, of numbers of words plus 1. A file has at most a
	// third as many words.
	slots [2048]uint16

	// The last vector in dictionary form had dict. codes has, by code, the number of the word plus 1,
	// or 0 for a code that did not occur.
	dict  *batch.Dictionary
	codes []uint16
}

// find returns the number of a word among words.
func (t *wordTable) find(words [][]byte, word []byte, hash uint64) (n uint32, ok bool) {
	for slot := hash; ; slot++ {
		k := t.slots[slot%uint64(len(t.slots))]
		if k == 0 {
			return 0, false
		}
		if bytes.Equal(words[k-1], word) {
			return uint32(k - 1), true
		}
	}
}

// add adds word n, which is not in the table.
func (t *wordTable) add(n uint32, hash uint64) {
	slot := hash
	for t.slots[slot%uint64(len(t.slots))] != 0 {
		slot++
	}
	t.slots[slot%uint64(len(t.slots))] = uint16(n + 1)
}

// wordCost is about the memory of a word apart from its bytes.
const wordCost = 24
