package hfile

import (
	"bytes"
	"encoding/binary"
	"math"

	"github.com/oribi-db/oribi/internal/fault"
)

// Payload of a data block without encoding: cells back to back. Source: hfile spec §5.1.
//
//	width        field        meaning
//	4            keyLength    big-endian
//	4            valueLength  big-endian
//	keyLength    key          see keyRowLen
//	valueLength  value
//	2            tagsLength   big-endian; only in files with tags
//	tagsLength   tags         see tagHeaderLen
//	vint         sequence     only in files with sequence IDs
//
// Row "key1", value "value1", sequence ID 0, as Hudi writes them:
//
//	00 00 00 10  00 00 00 06  00 04 6b 65 79 31 00 7f ff ff ff ff ff ff ff 04  76 61 6c 75 65 31  00
//
// The payload of an encoded block begins with the number of its encoding. Then PREFIX, DIFF, and
// FAST_DIFF have the size of the same cells in the form above, and cells that refer to the cell
// before them, up to the end. ROW_INDEX_V1 has the cells above, then a row index: the number of
// rows, the offset of the first cell of each, and the size of the cells, each in four bytes.
// Source: hfile spec §5.6.
const (
	cellKeyLen     = 4 // file format: never change
	cellValueLen   = 4 // file format: never change
	cellFixedLen   = 8 // file format: never change
	cellTagsLen    = 2 // file format: never change
	encodingLen    = 2 // file format: never change
	plainSizeLen   = 4 // file format: never change
	rowIndexIntLen = 4 // file format: never change
)

// cellState is one cell in a block: where its parts are, and the lengths and values that an
// encoding of the next cell may refer to.
type cellState struct {
	at, next  int // offset of the cell and of the one after it
	key       int // offset in walker.keys
	keyLen    int // of the plain form
	row       int // length; the row begins after keyRowLen bytes
	family    int // offset from key
	qualifier int // offset from key
	suffix    int // offset from key, where timestamp and type begin
	timestamp int64
	kind      Type
	value     int // offset in the payload
	valueLen  int
	tags      int // offset in walker.tagBytes
	tagsLen   int
	sequence  int64
	plain     int // bytes of the cells so far in the plain form; only in blocks of differences
}

// walker reads the cells of one block, one after the other. It keeps the current key, never a
// decoded copy of the block: a block of differences may expand several thousandfold.
type walker struct {
	cellState
	layout layout
	b      []byte // payload
	start  int    // of the cells
	end    int    // of the cells
	limit  int    // plain size of all cells; only in blocks of differences

	keys     []byte // the payload, or buf
	tagBytes []byte // the payload, or tagBuf
	buf      []byte // the current key, in blocks of differences
	tagBuf   []byte // the current tags, in blocks with a dictionary
	dict     *tagDictionary
	common   []byte // the family of all cells; only in DIFF and FAST_DIFF

	bad string // what is wrong with the cell at next
}

// open starts with the given payload, before its first cell.
func (w *walker) open(l layout, payload []byte) error {
	w.layout = l
	w.b, w.keys, w.tagBytes = payload, payload, payload
	w.bad = ""
	w.start, w.end, w.limit = 0, len(payload), 0
	w.common = nil
	if l.encoding != EncodingNone {
		if err := w.openEncoded(); err != nil {
			return err
		}
	}
	if w.start == w.end {
		return fault.Corruptf("no cells")
	}
	w.rewind()
	return nil
}

// openEncoded reads the fields that precede and follow the cells of an encoded block.
func (w *walker) openEncoded() error {
	b := w.b
	if len(b) < encodingLen+plainSizeLen {
		return fault.Corruptf("%d bytes of payload are too short", len(b))
	}
	if id := Encoding(binary.BigEndian.Uint16(b)); id != w.layout.encoding {
		return fault.Corruptf("encoding %v, file info says %v", id, w.layout.encoding)
	}
	w.start = encodingLen
	if w.layout.encoding == EncodingRowIndexV1 {
		return w.openRowIndex()
	}
	size := int32(binary.BigEndian.Uint32(b[encodingLen:]))
	if size < 0 {
		return fault.Corruptf("cells of %d bytes in the plain form", size)
	}
	w.limit = int(size)
	w.start += plainSizeLen
	if w.layout.encoding == EncodingDiff {
		if w.start == len(b) {
			return fault.Corruptf("no family")
		}
		n := int(b[w.start])
		if w.start++; n > MaxFamilyBytes || n > len(b)-w.start {
			return fault.Corruptf("family of %d bytes", n)
		}
		w.common = b[w.start : w.start+n]
		w.start += n
	}
	if w.layout.dict {
		if w.dict == nil {
			w.dict = new(tagDictionary)
		}
		w.tagBytes = nil
	}
	w.keys = w.buf
	return nil
}

// openRowIndex reads the row index at the end of the payload.
func (w *walker) openRowIndex() error {
	b := w.b
	size := binary.BigEndian.Uint32(b[len(b)-rowIndexIntLen:])
	rest := len(b) - encodingLen - 2*rowIndexIntLen
	if rest < 0 || int64(size) > int64(rest) {
		return fault.Corruptf("row index: cells of %d bytes in %d", int32(size), len(b))
	}
	w.end = encodingLen + int(size)
	n := binary.BigEndian.Uint32(b[w.end:])
	if int64(n)*rowIndexIntLen != int64(rest)-int64(size) {
		return fault.Corruptf("row index: %d rows in %d bytes", int32(n), rest-int(size))
	}
	last := int64(-1)
	for i := range int(n) {
		at := int64(w.rowOffset(i))
		if at <= last || i == 0 && at != 0 || at >= int64(size) {
			return fault.Corruptf("row index: row %d at byte %d of %d", i, at, size)
		}
		last = at
	}
	if n == 0 && size > 0 {
		return fault.Corruptf("row index: no rows in %d bytes", size)
	}
	return nil
}

// rowOffset returns the i-th offset in the row index, from the first cell.
func (w *walker) rowOffset(i int) uint32 {
	return binary.BigEndian.Uint32(w.b[w.end+rowIndexIntLen*(i+1):])
}

// rows returns the number of rows in the row index.
func (w *walker) rows() int { return int(binary.BigEndian.Uint32(w.b[w.end:])) }

// rewind moves before the first cell.
func (w *walker) rewind() {
	w.cellState = cellState{next: w.start}
	if w.layout.dict {
		w.dict.reset()
	}
}

// step moves to the next cell. It returns false at the end, where the last cell stays the current
// one, and if the next cell is malformed; then bad says why.
func (w *walker) step() bool {
	switch w.layout.encoding {
	case EncodingNone, EncodingRowIndexV1:
		return w.stepPlain()
	case EncodingFastDiff:
		return w.stepFastDiff()
	case EncodingDiff:
		return w.stepDiff()
	}
	return w.stepPrefix()
}

// fail returns false, with the reason.
func (w *walker) fail(reason string) bool {
	w.bad = reason
	return false
}

// err returns the error of a step that returned false, nil at the end of the block.
func (w *walker) err() error {
	if w.bad != "" {
		return fault.Corruptf("cell at byte %d: %s", w.next, w.bad)
	}
	if w.next == w.end && w.plain != w.limit {
		return fault.Corruptf("cells of %d bytes in the plain form, want %d", w.plain, w.limit)
	}
	return nil
}

const (
	badLengths   = "the lengths of key and value do not fit the block"
	badKey       = "the lengths of row and family do not fit the key"
	badTimestamp = "the timestamp is negative"
	badTags      = "the tags do not fit the block"
	badSequence  = "the sequence ID does not fit the block"
	badShared    = "it refers to more of the cell before than there is"
	badPlainSize = "the cells are longer than the block says"
)

// stepPlain is step in the plain form.
func (w *walker) stepPlain() bool {
	b := w.b[w.next:w.end]
	if len(b) < cellFixedLen {
		return len(b) > 0 && w.fail(badLengths)
	}
	keyLen, valueLen := int(binary.BigEndian.Uint32(b)), int(binary.BigEndian.Uint32(b[cellKeyLen:]))
	if uint(keyLen) > uint(len(b)-cellFixedLen) || uint(valueLen) > uint(len(b)-cellFixedLen-keyLen) {
		return w.fail(badLengths)
	}
	key := b[cellFixedLen : cellFixedLen+keyLen]
	if !w.setKey(key) {
		return false
	}
	end := cellFixedLen + keyLen + valueLen
	w.key = w.next + cellFixedLen
	w.keyLen = keyLen
	w.value = w.key + keyLen
	w.valueLen = valueLen
	if w.layout.tags {
		if len(b)-end < cellTagsLen {
			return w.fail(badTags)
		}
		n := int(binary.BigEndian.Uint16(b[end:]))
		if end += cellTagsLen; n > len(b)-end {
			return w.fail(badTags)
		}
		w.tags, w.tagsLen = w.next+end, n
		end += n
	}
	if w.layout.sequence != noSequence {
		n := w.setSequence(b[end:])
		if n == 0 {
			return w.fail(badSequence)
		}
		end += n
	}
	w.at = w.next
	w.next += end
	return true
}

// setKey reads the lengths, timestamp, and type of a whole key.
func (w *walker) setKey(key []byte) bool {
	if len(key) < keyFixedLen {
		return w.setShortKey(key)
	}
	row := int(binary.BigEndian.Uint16(key))
	if row > len(key)-keyFixedLen || row > MaxRowBytes {
		return w.setShortKey(key)
	}
	family := keyRowLen + row + keyFamilyLen
	qualifier := family + int(key[family-1])
	suffix := len(key) - keySuffixLen
	if qualifier > suffix || qualifier-family > MaxFamilyBytes {
		return w.fail(badKey)
	}
	timestamp := int64(binary.BigEndian.Uint64(key[suffix:]))
	if timestamp < 0 {
		return w.fail(badTimestamp)
	}
	w.row, w.family, w.qualifier, w.suffix = row, family, qualifier, suffix
	w.timestamp, w.kind = timestamp, Type(key[len(key)-1])
	return true
}

// setShortKey reads a key that ends after the row, as Hudi's first native writers wrote it: a put
// at the largest timestamp.
func (w *walker) setShortKey(key []byte) bool {
	row, ok := parseShortKey(key)
	if !ok || !w.layout.short {
		return w.fail(badKey)
	}
	w.row = len(row)
	w.family, w.qualifier, w.suffix = len(key), len(key), len(key)
	w.timestamp, w.kind = math.MaxInt64, Put
	return true
}

// setSequence reads the sequence ID at the front of b and returns its length, 0 if b is too short.
func (w *walker) setSequence(b []byte) int {
	if len(b) > 0 && b[0] <= math.MaxInt8 && (b[0] == 0 || w.layout.sequence == vintSequence) {
		w.sequence = int64(b[0])
		return 1
	}
	if w.layout.sequence != vintSequence {
		return 0
	}
	v, n := vint(b)
	w.sequence = v
	return n
}

// current returns the cell. Its slices are valid until the next step.
func (w *walker) current() (c Cell) {
	w.fill(&c)
	return c
}

// fill stores the cell in c, which is zero. A scan has this copied once less than the result of a
// function that is not inlined.
func (w *walker) fill(c *Cell) {
	key := w.keys[w.key:]
	c.Row = key[keyRowLen : keyRowLen+w.row : keyRowLen+w.row]
	c.Family = key[w.family:w.qualifier:w.qualifier]
	c.Qualifier = key[w.qualifier:w.suffix:w.suffix]
	c.Timestamp = w.timestamp
	c.Type = w.kind
	c.Value = w.b[w.value : w.value+w.valueLen : w.value+w.valueLen]
	if w.tagsLen > 0 {
		c.Tags = w.tagBytes[w.tags : w.tags+w.tagsLen : w.tags+w.tagsLen]
	}
	c.Sequence = w.sequence
}

// currentRow returns the row of the cell, valid until the next step.
func (w *walker) currentRow() []byte {
	return w.keys[w.key+keyRowLen : w.key+keyRowLen+w.row]
}

// currentKey returns the key of the cell, valid until the next step.
func (w *walker) currentKey() Key {
	key := w.keys[w.key:]
	return Key{
		Row:       key[keyRowLen : keyRowLen+w.row],
		Family:    key[w.family:w.qualifier],
		Qualifier: key[w.qualifier:w.suffix],
		Timestamp: w.timestamp,
		Type:      w.kind,
	}
}

// compare returns -1, 0, or 1 as the current cell is before, at, or after t.
func (w *walker) compare(t *target) int {
	if c := bytes.Compare(w.currentRow(), t.Row); c != 0 || t.cellRows {
		return c
	}
	return w.currentKey().Compare(t.Key)
}
