package encoding

import (
	"encoding/binary"
	"math/bits"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/internal/coding"
	"github.com/oribi-db/oribi/schema"
)

// binaryBuilder makes PLAIN payloads of byte strings.
type binaryBuilder struct {
	ends
	blockBytes int
	values     []byte
	offsets    []uint32 // of each value in the payload
	size       int      // of the payload, as Kudu estimates it: exact up to the last group's padding
}

func (b *binaryBuilder) Append(v *batch.Vector, from, to int) int {
	before, i := b.Len(), from
	for ; i < to && !b.Full(); i++ {
		b.add(byteString(v, i))
	}
	b.note(before, v, from, i)
	return i - from
}

func (b *binaryBuilder) AppendAll(v *batch.Vector, from, to int) {
	before := b.Len()
	for i := from; i < to; i++ {
		b.add(byteString(v, i))
	}
	b.note(before, v, from, to)
}

// add appends one value.
func (b *binaryBuilder) add(value []byte) {
	if len(b.offsets)%4 == 0 {
		b.size++ // selector of a group
	}
	offset := uint32(binaryHeaderLen + len(b.values))
	b.size += (bits.Len32(offset)+7)/8 + len(value)
	b.offsets = append(b.offsets, offset)
	b.values = append(b.values, value...)
}

func (b *binaryBuilder) Full() bool { return b.size > b.blockBytes }
func (b *binaryBuilder) Len() int   { return len(b.offsets) }

func (b *binaryBuilder) Reset() {
	b.values, b.offsets, b.size = b.values[:0], b.offsets[:0], binaryHeaderLen
}

func (b *binaryBuilder) Finish(dst []byte, ord batch.Ordinal) []byte {
	dst = binary.LittleEndian.AppendUint32(dst, uint32(ord))
	dst = binary.LittleEndian.AppendUint32(dst, uint32(len(b.offsets)))
	dst = binary.LittleEndian.AppendUint32(dst, uint32(binaryHeaderLen+len(b.values)))
	dst = append(dst, b.values...)
	return coding.AppendGroupVarintSeq(dst, b.offsets)
}

// prefixBuilder makes PREFIX payloads.
type prefixBuilder struct {
	ends
	blockBytes, interval int
	entries              []byte
	restarts             []uint32 // offsets in entries; the first entry is not listed
	previous             []byte
	n                    int
}

func (b *prefixBuilder) Append(v *batch.Vector, from, to int) int {
	before, i := b.n, from
	for ; i < to && !b.Full(); i++ {
		b.add(byteString(v, i))
	}
	b.note(before, v, from, i)
	return i - from
}

func (b *prefixBuilder) AppendAll(v *batch.Vector, from, to int) {
	before := b.n
	for i := from; i < to; i++ {
		b.add(byteString(v, i))
	}
	b.note(before, v, from, to)
}

func (b *prefixBuilder) add(value []byte) {
	shared := 0
	if b.n%b.interval != 0 {
		shared = commonPrefix(b.previous, value)
	} else if b.n > 0 {
		b.restarts = append(b.restarts, uint32(len(b.entries)))
	}
	b.entries = coding.AppendUvarint32(b.entries, uint32(shared))
	b.entries = coding.AppendUvarint32(b.entries, uint32(len(value)-shared))
	b.entries = append(b.entries, value[shared:]...)
	b.previous = append(b.previous[:shared], value[shared:]...)
	b.n++
}

func (b *prefixBuilder) Full() bool { return len(b.entries) > b.blockBytes }
func (b *prefixBuilder) Len() int   { return b.n }

func (b *prefixBuilder) Reset() {
	b.entries, b.restarts, b.previous, b.n = b.entries[:0], b.restarts[:0], b.previous[:0], 0
}

func (b *prefixBuilder) Finish(dst []byte, ord batch.Ordinal) []byte {
	start := len(dst)
	dst = coding.AppendGroupVarint(dst, uint32(b.n), uint32(ord), uint32(b.interval), 0)
	header := uint32(len(dst) - start)
	dst = append(dst, b.entries...)
	for _, r := range b.restarts {
		dst = binary.LittleEndian.AppendUint32(dst, header+r)
	}
	return binary.LittleEndian.AppendUint32(dst, uint32(len(b.restarts)))
}

// dictBuilder makes DICT payloads: codes until the dictionary is full, PLAIN from then on.
type dictBuilder struct {
	ends
	codes shuffleBuilder
	plain binaryBuilder
	words binaryBuilder // the dictionary
	index map[string]uint32
	mode  uint32

	// The last dictionary that a vector had, and our codes of its words, −1 if unknown: a
	// compaction passes codes of the same dictionary for a whole file.
	source *batch.Dictionary
	known  []int32
}

func newDictBuilder(o *BuilderOptions) *dictBuilder {
	b := &dictBuilder{index: make(map[string]uint32), mode: modeCodes}
	b.codes = shuffleBuilder{typ: schema.Uint32, capacity: o.BlockBytes / schema.Uint32.Width(), exact: o.Exact}
	b.plain.blockBytes, b.words.blockBytes = o.StringBytes, o.BlockBytes
	b.plain.Reset()
	b.words.Reset()
	return b
}

func (b *dictBuilder) Append(v *batch.Vector, from, to int) int {
	if b.mode == modePlain {
		return b.plain.Append(v, from, to)
	}
	before, i := b.Len(), from
	for i < to {
		// The word is added before the room for its code is checked, as in Kudu: a word may be in
		// the dictionary although its code did not fit in the payload.
		code, ok := b.code(v, i, false)
		if !ok || b.codes.Full() {
			break
		}
		b.codes.appendCode(code)
		i++
	}
	b.note(before, v, from, i)
	return i - from
}

// AppendAll adds words even to a full dictionary.
func (b *dictBuilder) AppendAll(v *batch.Vector, from, to int) {
	if b.mode == modePlain {
		b.plain.AppendAll(v, from, to)
		return
	}
	before := b.Len()
	for i := from; i < to; i++ {
		code, _ := b.code(v, i, true)
		b.codes.appendCode(code)
	}
	b.note(before, v, from, to)
}

// code returns the code of cell i, which is added to the dictionary if necessary. It returns false
// if the dictionary is full and overfill is false.
func (b *dictBuilder) code(v *batch.Vector, i int, overfill bool) (uint32, bool) {
	if v.Dict == nil {
		return b.lookup(v.Bytes[i], overfill)
	}
	if b.source != v.Dict {
		b.source, b.known = v.Dict, b.known[:0]
		for range v.Dict.Words {
			b.known = append(b.known, -1)
		}
	}
	c := v.Codes[i]
	if code := b.known[c]; code >= 0 {
		return uint32(code), true
	}
	code, ok := b.lookup(v.Dict.Words[c], overfill)
	if ok {
		b.known[c] = int32(code)
	}
	return code, ok
}

func (b *dictBuilder) lookup(word []byte, overfill bool) (uint32, bool) {
	if code, ok := b.index[string(word)]; ok {
		return code, true
	}
	if b.words.Full() && !overfill {
		return 0, false
	}
	code := uint32(b.words.Len())
	b.words.add(word)
	b.index[string(word)] = code
	return code, true
}

func (b *dictBuilder) Full() bool {
	if b.mode == modePlain {
		return b.plain.Full()
	}
	return b.codes.Full() || b.words.Full()
}

func (b *dictBuilder) Len() int {
	if b.mode == modePlain {
		return b.plain.Len()
	}
	return b.codes.Len()
}

func (b *dictBuilder) First() []byte {
	if b.mode == modePlain {
		return b.plain.First()
	}
	return b.first
}

func (b *dictBuilder) Last() []byte {
	if b.mode == modePlain {
		return b.plain.Last()
	}
	return b.last
}

// Reset switches to plain payloads if the dictionary is full.
func (b *dictBuilder) Reset() {
	if b.mode == modeCodes && b.words.Full() {
		b.mode, b.index, b.source, b.known = modePlain, nil, nil, nil
	}
	b.codes.Reset()
	b.plain.Reset()
}

func (b *dictBuilder) Finish(dst []byte, ord batch.Ordinal) []byte {
	dst = binary.LittleEndian.AppendUint32(dst, b.mode)
	if b.mode == modePlain {
		return b.plain.Finish(dst, ord)
	}
	return b.codes.Finish(dst, ord)
}

func (b *dictBuilder) FinishDictionary(dst []byte) []byte { return b.words.Finish(dst, 0) }
func (b *dictBuilder) Words() int                         { return b.words.Len() }
