package hfile

import (
	"bytes"
	"encoding/binary"
	"math/bits"
)

// cellEncoder builds the payload of one data block after another. Source: hfile spec §5.1 and §5.6.
type cellEncoder struct {
	encoding  Encoding
	sequences bool
	tags      bool
	packTags  bool

	buf   []byte // headerLen bytes for the header, then the payload so far
	cells int    // in this block
	plain int    // bytes that the cells take without encoding

	valueStart, valueLen int      // of the previous cell, in buf
	rows                 []uint32 // EncodingRowIndexV1: offset of each row's first cell
	packer               tagPacker
}

func newCellEncoder(o *WriterOptions) *cellEncoder {
	e := &cellEncoder{encoding: o.Encoding, sequences: !o.OmitSequences, tags: o.Tags}
	switch o.Encoding {
	case EncodingPrefix, EncodingDiff, EncodingFastDiff:
		e.packTags = o.CompressTags
	}
	e.buf = make([]byte, headerLen, headerLen+min(o.BlockBytes, hudiBlockBytes)+4<<10)
	e.reset()
	return e
}

// cellsStart returns the length of the payload before the first cell.
func (e *cellEncoder) cellsStart() int {
	switch e.encoding {
	case EncodingNone:
		return 0
	case EncodingRowIndexV1:
		return encodingLen
	}
	return encodingLen + plainSizeLen
}

// reset starts a block.
func (e *cellEncoder) reset() {
	e.buf = e.buf[:headerLen]
	if e.encoding != EncodingNone {
		e.buf = binary.BigEndian.AppendUint16(e.buf, uint16(e.encoding))
	}
	for len(e.buf) < headerLen+e.cellsStart() {
		e.buf = append(e.buf, 0) // the length of the plain cells, which finish writes
	}
	e.cells, e.plain = 0, 0
	e.rows = e.rows[:0]
	e.packer.reset()
}

// size returns how large the block is: the larger of its cells with and without encoding. The
// offsets of rows count, as in HBase.
func (e *cellEncoder) size() int {
	return max(e.plain, len(e.buf)-headerLen-e.cellsStart()) + rowIndexIntLen*len(e.rows)
}

// finish completes the block. The result has the form that blockWriter.write takes.
func (e *cellEncoder) finish() []byte {
	switch e.encoding {
	case EncodingPrefix, EncodingDiff, EncodingFastDiff:
		binary.BigEndian.PutUint32(e.buf[headerLen+encodingLen:], uint32(e.plain))
	case EncodingRowIndexV1:
		cells := len(e.buf) - headerLen - e.cellsStart()
		e.buf = binary.BigEndian.AppendUint32(e.buf, uint32(len(e.rows)))
		for _, offset := range e.rows {
			e.buf = binary.BigEndian.AppendUint32(e.buf, offset)
		}
		e.buf = binary.BigEndian.AppendUint32(e.buf, uint32(cells))
	}
	return e.buf
}

// plainLen returns the bytes that a cell takes without encoding.
func (e *cellEncoder) plainLen(c *Cell) int {
	n := cellFixedLen + c.encodedLen() + len(c.Value)
	if e.tags {
		n += cellTagsLen + len(c.Tags)
	}
	if e.sequences {
		n += vintLen(c.Sequence)
	}
	return n
}

// add appends a cell to the block. key is its key as appendKey writes it; previous is the key of
// the cell before it in the file. The caller has checked the limits.
func (e *cellEncoder) add(c *Cell, key, previous []byte) {
	e.plain += e.plainLen(c)
	switch e.encoding {
	case EncodingNone:
		e.addPlain(c, key)
	case EncodingRowIndexV1:
		if e.cells == 0 || !bytes.Equal(c.Row, keyRow(previous)) {
			e.rows = append(e.rows, uint32(len(e.buf)-headerLen-e.cellsStart()))
		}
		e.addPlain(c, key)
	case EncodingPrefix:
		e.addPrefix(c, key, previous)
	case EncodingDiff:
		e.addDiff(c, key, previous)
	case EncodingFastDiff:
		e.addFastDiff(c, key, previous)
	}
	e.cells++
}

// addPlain appends a cell without encoding.
func (e *cellEncoder) addPlain(c *Cell, key []byte) {
	b := binary.BigEndian.AppendUint32(e.buf, uint32(len(key)))
	b = binary.BigEndian.AppendUint32(b, uint32(len(c.Value)))
	b = append(b, key...)
	b = append(b, c.Value...)
	if e.tags {
		b = binary.BigEndian.AppendUint16(b, uint16(len(c.Tags)))
		b = append(b, c.Tags...)
	}
	if e.sequences {
		b = appendVint(b, c.Sequence)
	}
	e.buf = b
}

// addTail appends what ends a cell of the encodings PREFIX, DIFF, and FAST_DIFF.
func (e *cellEncoder) addTail(c *Cell) {
	if e.tags {
		e.buf = binary.AppendUvarint(e.buf, uint64(len(c.Tags)))
		if e.packTags {
			for rest := c.Tags; len(rest) > 0; {
				var tag []byte
				tag, rest, _ = cutTag(rest) // the writer has checked them
				e.buf = e.packer.append(e.buf, tag)
			}
		} else {
			e.buf = append(e.buf, c.Tags...)
		}
	}
	if e.sequences {
		e.buf = appendVint(e.buf, c.Sequence)
	}
}

func (e *cellEncoder) addPrefix(c *Cell, key, previous []byte) {
	common := 0
	if e.cells > 0 {
		common = commonKey(key, previous, true)
	}
	b := binary.AppendUvarint(e.buf, uint64(len(key)-common))
	b = binary.AppendUvarint(b, uint64(len(c.Value)))
	b = binary.AppendUvarint(b, uint64(common))
	b = append(b, key[common:]...)
	e.buf = append(b, c.Value...)
	e.addTail(c)
}

func (e *cellEncoder) addDiff(c *Cell, key, previous []byte) {
	b := e.buf
	var flags byte
	var common int
	time := uint64(c.Timestamp)
	if e.cells == 0 {
		b = append(b, byte(len(c.Family)))
		b = append(b, c.Family...)
	} else {
		common = commonKey(key, previous, false)
		if len(key) == len(previous) {
			flags |= diffSameKeyLen
		}
		if len(c.Value) == e.valueLen {
			flags |= diffSameValueLen
		}
		if previous[len(previous)-1] == byte(c.Type) {
			flags |= diffSameType
		}
		difference, negated := keyTime(previous)-c.Timestamp, byte(0)
		if difference < 0 {
			difference, negated = -difference, diffNegative
		}
		if byteLen(uint64(difference)) < byteLen(time) {
			time = uint64(difference)
			flags |= diffTimeDelta | negated
		}
	}
	timeLen := byteLen(time)
	flags |= byte(timeLen-1) << diffTimeShift
	b = append(b, flags)
	if flags&diffSameKeyLen == 0 {
		b = binary.AppendUvarint(b, uint64(len(key)))
	}
	if flags&diffSameValueLen == 0 {
		b = binary.AppendUvarint(b, uint64(len(c.Value)))
	}
	b = binary.AppendUvarint(b, uint64(common))
	b = appendKeyRest(b, c, key, common)
	for range timeLen {
		b = append(b, byte(time))
		time >>= 8
	}
	if flags&diffSameType == 0 {
		b = append(b, byte(c.Type))
	}
	e.valueLen = len(c.Value)
	e.buf = append(b, c.Value...)
	e.addTail(c)
}

func (e *cellEncoder) addFastDiff(c *Cell, key, previous []byte) {
	b := e.buf
	if e.cells == 0 {
		b = append(b, 0)
		b = binary.AppendUvarint(b, uint64(len(key)))
		b = binary.AppendUvarint(b, uint64(len(c.Value)))
		b = append(b, 0)
		b = append(b, key...)
		e.valueStart, e.valueLen = len(b), len(c.Value)
		e.buf = append(b, c.Value...)
		e.addTail(c)
		return
	}
	common := commonKey(key, previous, false)
	time := key[len(key)-keySuffixLen : len(key)-1]
	sharedTime := min(commonPrefix(time, previous[len(previous)-keySuffixLen:]), fastSharedTime)
	flags := byte(sharedTime)
	if len(key) == len(previous) {
		flags |= fastSameKeyLen
	}
	if len(c.Value) == e.valueLen {
		flags |= fastSameValueLen
		if bytes.Equal(c.Value, b[e.valueStart:e.valueStart+e.valueLen]) {
			flags |= fastSameValue
		}
	}
	if previous[len(previous)-1] == byte(c.Type) {
		flags |= fastSameType
	}
	b = append(b, flags)
	if flags&fastSameKeyLen == 0 {
		b = binary.AppendUvarint(b, uint64(len(key)))
	}
	if flags&fastSameValueLen == 0 {
		b = binary.AppendUvarint(b, uint64(len(c.Value)))
	}
	b = binary.AppendUvarint(b, uint64(common))
	b = appendKeyRest(b, c, key, common)
	b = append(b, time[sharedTime:]...)
	if flags&fastSameType == 0 {
		b = append(b, byte(c.Type))
	}
	if flags&fastSameValue == 0 {
		e.valueStart, e.valueLen = len(b), len(c.Value)
		b = append(b, c.Value...)
	}
	e.buf = b
	e.addTail(c)
}

// appendKeyRest appends what DIFF and FAST_DIFF store of a key up to the end of its qualifier, of
// whose first common bytes equal the previous key's.
func appendKeyRest(dst []byte, c *Cell, key []byte, common int) []byte {
	row := keyRowLen + len(c.Row)
	if common < row {
		dst = append(dst, key[common:row]...) // the family equals the previous key's
		return append(dst, c.Qualifier...)
	}
	return append(dst, key[common:len(key)-keySuffixLen]...)
}

// commonKey returns how many leading bytes of two keys of one family HBase takes as equal. It does
// not look on after a part that differs in length: keys "a" and "ab" have no byte in common unless
// their lengths do. suffix continues with timestamp and type.
func commonKey(key, previous []byte, suffix bool) int {
	if common := commonPrefix(key[:keyRowLen], previous[:keyRowLen]); common < keyRowLen {
		return common
	}
	row := keyRowLen + len(keyRow(key))
	if common := commonPrefix(key[:row], previous[:row]); common < row {
		return common
	}
	qualifier := row + keyFamilyLen + int(key[row])
	a, b := key[qualifier:len(key)-keySuffixLen], previous[qualifier:len(previous)-keySuffixLen]
	common := commonPrefix(a, b)
	if !suffix || common < max(len(a), len(b)) {
		return qualifier + common
	}
	return commonPrefix(key, previous)
}

// commonPrefix returns how many leading bytes are equal.
func commonPrefix(a, b []byte) int {
	n := min(len(a), len(b))
	i := 0
	for ; i+8 <= n; i += 8 {
		if x := binary.LittleEndian.Uint64(a[i:]) ^ binary.LittleEndian.Uint64(b[i:]); x != 0 {
			return i + bits.TrailingZeros64(x)/8
		}
	}
	for i < n && a[i] == b[i] {
		i++
	}
	return i
}

// keyRow returns the row of a key as appendKey writes it.
func keyRow(key []byte) []byte {
	n := int(binary.BigEndian.Uint16(key))
	return key[keyRowLen : keyRowLen+n]
}

// keyTime returns the timestamp of a key as appendKey writes it.
func keyTime(key []byte) int64 {
	return int64(binary.BigEndian.Uint64(key[len(key)-keySuffixLen:]))
}

// byteLen returns how many bytes v takes, at least 1.
func byteLen(v uint64) int { return max(1, (bits.Len64(v)+7)/8) }

// vintLen returns how many bytes appendVint appends for v ≥ 0.
func vintLen(v int64) int {
	if v <= 127 {
		return 1
	}
	return 1 + byteLen(uint64(v))
}
