package hfile

import (
	"encoding/binary"
	"math"
)

// Cells in blocks of differences; cint is an unsigned varint of at most 5 bytes, as in protobuf. P
// is the previous cell of the block. Source: hfile spec §5.6.
//
// PREFIX:
//
//	width   field   meaning
//	cint    k       bytes of the key that follow
//	cint    v       length of the value
//	cint    shared  bytes of the key as in P's
//	k       key     the others
//	v       value
//
// DIFF; the block begins with the length of the family (1) and the family:
//
//	width   field        meaning
//	1       flags        see diffSameKeyLen
//	cint    keyLength    absent if as P's
//	cint    valueLength  absent if as P's
//	cint    shared       bytes of the key as in P's, up to the end of the qualifier
//	…       key          up to the end of the qualifier: what is not shared, without the family
//	1 to 8  timestamp    little-endian, or the difference P's - this
//	1       type         absent if as P's
//	…       value
//
// FAST_DIFF; the first cell has flags 0 and a whole key, with family, timestamp, and type:
//
//	width   field        meaning
//	1       flags        see fastSharedTime
//	cint    keyLength    absent if as P's
//	cint    valueLength  absent if as P's
//	cint    shared       as in DIFF
//	…       key          as in DIFF
//	1 to 8  timestamp    big-endian, without the leading bytes that are as in P's
//	1       type         absent if as P's
//	…       value        absent if as P's
//
// Each cell ends with the length of its tags (cint) and the tags, in files with tags, and the
// sequence ID (vint), in files with sequence IDs.
//
// FAST_DIFF, row "r", family "f", qualifier "q", timestamp 1, Put, value "v", sequence ID 0, and
// the same cell with timestamp 0 (flags: 7 shared bytes, lengths, type, and value as before):
//
//	00 0f 01 00  00 01 72 01 66 71 00 00 00 00 00 00 00 01 04  76  00
//	7f 06  00  00
const (
	diffSameKeyLen   = 1 << 0 // file format: never change
	diffSameValueLen = 1 << 1 // file format: never change
	diffSameType     = 1 << 2 // file format: never change
	diffTimeDelta    = 1 << 3 // file format: never change; the timestamp is a difference
	diffTimeShift    = 4      // file format: never change; three bits: bytes of the timestamp - 1
	diffTimeMask     = 7      // file format: never change
	diffNegative     = 1 << 7 // file format: never change; timestamp or difference is negated

	fastSharedTime   = 7      // file format: never change; mask: leading bytes of the timestamp as P's
	fastSameKeyLen   = 1 << 3 // file format: never change
	fastSameValueLen = 1 << 4 // file format: never change
	fastSameType     = 1 << 5 // file format: never change
	fastSameValue    = 1 << 6 // file format: never change
)

const timestampLen = 8 // file format: never change

// cint reads a number at b[p:] and returns the offset after it. That offset is 0 if b[p:] does not
// begin with a whole number.
func cint(b []byte, p int) (v, next int) {
	if p < len(b) && b[p] < 0x80 {
		return int(b[p]), p + 1
	}
	return longCint(b, p)
}

// longCint is cint for numbers of two bytes and more; the compiler inlines the shorter one.
func longCint(b []byte, p int) (v, next int) {
	u := uint64(0)
	for shift := 0; shift < 35 && p < len(b); shift += 7 {
		c := b[p]
		p++
		u |= uint64(c&0x7f) << shift
		if c < 0x80 {
			if u > math.MaxInt32 {
				return 0, 0
			}
			return int(u), p
		}
	}
	return 0, 0
}

// stepPrefix is step with encoding PREFIX.
func (w *walker) stepPrefix() bool {
	if w.next == w.end {
		return false
	}
	b := w.b[:w.end]
	k, p := cint(b, w.next)
	if p == 0 {
		return w.fail(badLengths)
	}
	valueLen, p := cint(b, p)
	if p == 0 {
		return w.fail(badLengths)
	}
	shared, p := cint(b, p)
	if p == 0 || k > len(b)-p || valueLen > len(b)-p-k {
		return w.fail(badLengths)
	}
	if shared > w.keyLen {
		return w.fail(badShared)
	}
	w.grow(shared, shared+k)
	copy(w.buf[shared:shared+k], b[p:])
	if !w.setKey(w.buf[:shared+k]) {
		return false
	}
	p += k
	w.keyLen = shared + k
	w.value, w.valueLen = p, valueLen
	return w.finish(b, p+valueLen)
}

// grow makes buf at least n bytes long and keeps the first keep bytes.
func (w *walker) grow(keep, n int) {
	if n > len(w.buf) {
		w.replaceBuf(keep, n)
	}
}

func (w *walker) replaceBuf(keep, n int) {
	buf := make([]byte, n+n/4+64)
	copy(buf, w.buf[:keep])
	w.buf, w.keys = buf, buf
}

// finish reads the tags and the sequence ID, which follow the value, at p, and makes the cell the
// current one.
func (w *walker) finish(b []byte, p int) bool {
	plain := cellFixedLen + w.keyLen + w.valueLen
	if w.layout.tags {
		n, q := cint(b, p)
		if q == 0 || n > math.MaxUint16 {
			return w.fail(badTags)
		}
		p = q
		if !w.layout.dict {
			if n > len(b)-p {
				return w.fail(badTags)
			}
			w.tags, w.tagsLen = p, n
			p += n
		} else {
			w.tagsLen = 0
			if w.tagBuf, p = w.dict.expand(w.tagBuf[:0], b, p, n); p == 0 {
				return w.fail(badTags)
			}
			w.tagBytes, w.tagsLen = w.tagBuf, n
		}
		plain += cellTagsLen + n
	}
	if w.layout.sequence != noSequence {
		n := 1
		if p < len(b) && b[p] == 0 {
			w.sequence = 0
		} else if n = w.setSequence(b[p:]); n == 0 {
			return w.fail(badSequence)
		}
		p += n
		plain += n
	}
	// A block of a few bytes can expand to cells of gigabytes, so the cells are limited to the size
	// that the block's header states.
	if plain > w.limit-w.plain {
		return w.fail(badPlainSize)
	}
	w.plain += plain
	w.at, w.next = w.next, p
	return true
}

// stepFastDiff is step with encoding FAST_DIFF.
func (w *walker) stepFastDiff() bool {
	if w.next == w.end {
		return false
	}
	b := w.b[:w.end]
	if w.next == w.start {
		return w.firstFastDiff(b)
	}
	flags := b[w.next]
	p := w.next + 1
	keyLen, valueLen := w.keyLen, w.valueLen
	if flags&fastSameKeyLen == 0 {
		if keyLen, p = cint(b, p); p == 0 {
			return w.fail(badLengths)
		}
	}
	if flags&fastSameValueLen == 0 {
		if valueLen, p = cint(b, p); p == 0 {
			return w.fail(badLengths)
		}
	}
	shared, p := cint(b, p)
	if p == 0 {
		return w.fail(badLengths)
	}
	if p = w.mergeKey(b, p, keyLen, shared); p == 0 {
		return false
	}
	same := int(flags & fastSharedTime)
	if timestampLen-same > len(b)-p {
		return w.fail(badLengths)
	}
	var rest uint64 // the bytes that are not shared, from the highest on
	if len(b)-p >= timestampLen {
		rest = binary.BigEndian.Uint64(b[p:])
	} else {
		for i, c := range b[p : p+timestampLen-same] {
			rest |= uint64(c) << (56 - 8*i)
		}
	}
	own := uint64(math.MaxUint64) >> (8 * same)
	t := uint64(w.timestamp)&^own | rest>>(8*same)
	p += timestampLen - same
	if int64(t) < 0 {
		return w.fail(badTimestamp)
	}
	w.timestamp = int64(t)
	if flags&fastSameType == 0 {
		if p == len(b) {
			return w.fail(badLengths)
		}
		w.kind = Type(b[p])
		p++
	}
	if flags&fastSameValue == 0 {
		if valueLen > len(b)-p {
			return w.fail(badLengths)
		}
		w.value = p
		p += valueLen
	} else if valueLen != w.valueLen {
		return w.fail(badShared)
	}
	w.valueLen = valueLen
	return w.finish(b, p)
}

// firstFastDiff is stepFastDiff for the first cell of a block.
func (w *walker) firstFastDiff(b []byte) bool {
	if b[w.next] != 0 {
		return w.fail(badShared)
	}
	keyLen, p := cint(b, w.next+1)
	if p == 0 {
		return w.fail(badLengths)
	}
	valueLen, p := cint(b, p)
	if p == 0 {
		return w.fail(badLengths)
	}
	shared, p := cint(b, p)
	if p == 0 || keyLen > len(b)-p || valueLen > len(b)-p-keyLen {
		return w.fail(badLengths)
	}
	if shared != 0 {
		return w.fail(badShared)
	}
	key := b[p : p+keyLen]
	if len(key) < keyFixedLen || !w.setKey(key) {
		return w.fail(badKey)
	}
	w.common = key[w.family:w.qualifier]
	w.grow(0, keyLen)
	copy(w.buf, key)
	p += keyLen
	w.keyLen = keyLen
	w.value, w.valueLen = p, valueLen
	return w.finish(b, p+valueLen)
}

// stepDiff is step with encoding DIFF.
func (w *walker) stepDiff() bool {
	if w.next == w.end {
		return false
	}
	b := w.b[:w.end]
	flags := b[w.next]
	if w.next == w.start && flags&(diffSameKeyLen|diffSameValueLen|diffSameType|diffTimeDelta) != 0 {
		return w.fail(badShared)
	}
	p := w.next + 1
	keyLen, valueLen := w.keyLen, w.valueLen
	if flags&diffSameKeyLen == 0 {
		if keyLen, p = cint(b, p); p == 0 {
			return w.fail(badLengths)
		}
	}
	if flags&diffSameValueLen == 0 {
		if valueLen, p = cint(b, p); p == 0 {
			return w.fail(badLengths)
		}
	}
	shared, p := cint(b, p)
	if p == 0 {
		return w.fail(badLengths)
	}
	if p = w.mergeKey(b, p, keyLen, shared); p == 0 {
		return false
	}
	n := int(flags>>diffTimeShift&diffTimeMask) + 1
	if n > len(b)-p {
		return w.fail(badLengths)
	}
	t := uint64(0)
	for i := range n {
		t |= uint64(b[p+i]) << (8 * i)
	}
	p += n
	if flags&diffNegative != 0 {
		t = -t
	}
	if flags&diffTimeDelta != 0 {
		t = uint64(w.timestamp) - t
	}
	if int64(t) < 0 {
		return w.fail(badTimestamp)
	}
	w.timestamp = int64(t)
	if flags&diffSameType == 0 {
		if p == len(b) {
			return w.fail(badLengths)
		}
		w.kind = Type(b[p])
		p++
	}
	if valueLen > len(b)-p {
		return w.fail(badLengths)
	}
	w.value, w.valueLen = p, valueLen
	return w.finish(b, p+valueLen)
}

// mergeKey makes the key of keyLen bytes, up to its qualifier, from the first shared bytes of the
// key before and the bytes at b[p:]. It returns the offset after them, or 0 after fail.
func (w *walker) mergeKey(b []byte, p, keyLen, shared int) int {
	row, family := w.row, len(w.common)
	suffix := keyLen - keySuffixLen
	if shared >= keyRowLen+row && w.next != w.start {
		// Same row: only the qualifier changes.
		if shared < w.qualifier || shared > w.suffix || shared > suffix {
			w.fail(badShared)
			return 0
		}
		n := suffix - shared
		if n > len(b)-p {
			w.fail(badLengths)
			return 0
		}
		if n > 0 {
			w.grow(shared, keyLen)
			copy(w.buf[shared:suffix], b[p:])
		}
		w.keyLen, w.suffix = keyLen, suffix
		return p + n
	}
	if shared >= keyRowLen && w.next == w.start {
		w.fail(badShared)
		return 0
	}
	from := max(shared, keyRowLen) // what of the row follows
	if missing := keyRowLen - shared; missing > 0 {
		if w.next == w.start && shared > 0 || missing > len(b)-p {
			w.fail(badShared)
			return 0
		}
		w.grow(shared, keyRowLen)
		copy(w.buf[shared:keyRowLen], b[p:])
		p += missing
		row = int(binary.BigEndian.Uint16(w.buf))
	}
	if row > MaxRowBytes || row > keyLen-keyFixedLen-family {
		w.fail(badKey)
		return 0
	}
	rest := keyRowLen + row - from
	qualifier := keyLen - keyFixedLen - row - family
	if rest+qualifier > len(b)-p {
		w.fail(badLengths)
		return 0
	}
	start := keyRowLen + row + keyFamilyLen // of the family
	if start == w.family {
		w.grow(start+family, keyLen) // the family is already there
	} else {
		w.grow(from, keyLen)
		w.family, w.qualifier = start, start+family
		w.buf[start-keyFamilyLen] = byte(family)
		copy(w.buf[start:], w.common)
	}
	w.row, w.keyLen, w.suffix = row, keyLen, suffix
	copy(w.buf[from:from+rest], b[p:])
	copy(w.buf[w.qualifier:suffix], b[p+rest:])
	return p + rest + qualifier
}
