package encoding

import (
	"bytes"
	"encoding/binary"
	"hash/maphash"
	"math/bits"
	"slices"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/schema"
)

// dictBuilder makes DICT payloads: codes until the dictionary is full, PLAIN from then on. A
// file may have other DICT payloads between them, which it has copied: see Share.
type dictBuilder struct {
	ends
	codes shuffleBuilder
	plain binaryBuilder
	words wordTable // the dictionary
	mode  uint32

	// The last dictionary that a vector had, and our codes of its words, −1 if unknown: a
	// compaction passes codes of the same dictionary for a whole file.
	source *batch.Dictionary
	known  []int32

	used   []bool            // memory of AppendUsed
	shared *batch.Dictionary // the last one for which Share returned true
}

func newDictBuilder(o *BuilderOptions) *dictBuilder {
	b := &dictBuilder{mode: modeCodes}
	if o.NoWords {
		b.mode = modePlain
	}
	b.codes = shuffleBuilder{typ: schema.Uint32, capacity: o.BlockBytes / schema.Uint32.Width(), exact: o.Exact}
	b.plain.blockBytes, b.words.list.blockBytes = o.StringBytes, o.BlockBytes
	b.plain.Reset()
	b.words.list.Reset()
	return b
}

func (b *dictBuilder) Append(v *batch.Vector, from, to int) int {
	if b.mode == modePlain {
		return b.plain.Append(v, from, to)
	}
	before := b.Len()
	end := min(to, from+max(b.codes.capacity-before, 0))
	i := b.appendCodes(v, from, end, false)
	if i == end && i < to {
		// The word is added before the room for its code is checked, as in Kudu: a word may be in
		// the dictionary although its code did not fit in the payload.
		b.words.code(byteString(v, i), false)
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
	b.appendCodes(v, from, to, true)
	b.note(before, v, from, to)
}

// appendCodes appends the codes of cells [from, to) and returns to. If the dictionary is full and
// overfill is false, it stops at the first cell that is not in it, and returns that one.
func (b *dictBuilder) appendCodes(v *batch.Vector, from, to int, overfill bool) int {
	if from >= to {
		return from
	}
	n := len(b.codes.cells)
	out, i := b.codes.extend(4*(to-from)), from
	if v.Dict == nil {
		for _, cell := range v.Bytes[from:to] {
			code, ok := b.words.code(cell, overfill)
			if !ok {
				break
			}
			binary.LittleEndian.PutUint32(out[4*(i-from):], code)
			i++
		}
	} else {
		b.use(v.Dict)
		for _, c := range v.Codes[from:to] {
			code := b.known[c]
			if code < 0 {
				found, ok := b.words.code(v.Dict.Words[c], overfill)
				if !ok {
					break
				}
				code = int32(found)
				b.known[c] = code
			}
			binary.LittleEndian.PutUint32(out[4*(i-from):], uint32(code))
			i++
		}
	}
	b.codes.cells = b.codes.cells[:n+4*(i-from)]
	return i
}

// use makes d the dictionary to which known belongs.
func (b *dictBuilder) use(d *batch.Dictionary) {
	if b.source == d && len(b.known) == len(d.Words) {
		return
	}
	b.source, b.known = d, b.known[:0]
	for range d.Words {
		b.known = append(b.known, -1)
	}
}

func (b *dictBuilder) Share(d *batch.Dictionary) bool {
	if b.shared == d {
		return true
	}
	have := b.words.list.Len()
	for code, word := range d.Words[:min(have, len(d.Words))] {
		if !bytes.Equal(b.words.list.value(code), word) {
			return false
		}
	}
	if len(d.Words) > have && !b.addWords(d.Words[have:]) {
		return false
	}
	b.shared = d
	return true
}

// addWords adds words, which get the next codes. It returns false if the dictionary has no room for
// all of them, or has one already.
func (b *dictBuilder) addWords(words [][]byte) bool {
	if !b.words.list.fits(words) {
		return false
	}
	for _, word := range words {
		if b.mode == modePlain {
			b.words.list.add(word) // it will not be looked up
			continue
		}
		next := uint32(b.words.list.Len())
		if code, _ := b.words.code(word, true); code != next {
			return false
		}
	}
	return true
}

func (b *dictBuilder) Coded() bool { return b.mode == modeCodes }

// AppendUsed marks the codes of the payload.
func (b *dictBuilder) AppendUsed(dst [][]byte) [][]byte {
	used := slices.Grow(b.used[:0], b.words.list.Len())[:b.words.list.Len()]
	clear(used)
	for c := b.codes.cells; len(c) > 0; c = c[4:] {
		used[binary.LittleEndian.Uint32(c)] = true
	}
	for code, is := range used {
		if is {
			dst = append(dst, b.words.list.value(code))
		}
	}
	b.used = used
	return dst
}

func (b *dictBuilder) Full() bool {
	if b.mode == modePlain {
		return b.plain.Full()
	}
	return b.codes.Full() || b.words.list.Full()
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
	if b.mode == modeCodes && b.words.list.Full() {
		b.mode, b.words.slots, b.source, b.known, b.used = modePlain, nil, nil, nil, nil
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

func (b *dictBuilder) FinishDictionary(dst []byte) []byte { return b.words.list.Finish(dst, 0) }
func (b *dictBuilder) Words() int                         { return b.words.list.Len() }

func (b *dictBuilder) Word(i int) []byte { return b.words.list.value(i) }

// wordTable assigns codes to words in the order in which they are first looked up. It is an
// open-addressed hash table whose slots contain no pointers. Codes do not depend on the hash, whose
// seed differs from process to process, so that nobody can choose words that collide.
type wordTable struct {
	list  binaryBuilder // the words
	slots []wordSlot    // a power of two of them, at most half of which are taken
}

// wordSlot is free if its code is 0. Two words of up to shortWord bytes are equal if their keys and
// lengths are; longer ones must be compared.
type wordSlot struct {
	key  uint64 // the bytes of a short word, followed by zeros; the hash of a longer one
	len  uint32
	code uint32 // of the word, plus 1
}

const (
	shortWord      = 8
	firstWordSlots = 64 // of a table with a word
)

var (
	wordSeed  = maphash.MakeSeed()
	keyMask   = maphash.String(wordSeed, "mask")
	keyFactor = maphash.String(wordSeed, "factor") | 1
)

// wordKey returns the key of a word's slot.
func wordKey(word []byte) uint64 {
	switch n := len(word); {
	case n > shortWord:
		return maphash.Bytes(wordSeed, word)
	case n >= 4:
		// The two parts may overlap.
		return uint64(binary.LittleEndian.Uint32(word)) | uint64(binary.LittleEndian.Uint32(word[n-4:]))<<(8*(n-4)&63)
	case n > 0:
		return uint64(word[0]) | uint64(word[n/2])<<(8*(n/2)&63) | uint64(word[n-1])<<(8*(n-1)&63)
	}
	return 0
}

// place returns where the search for a key begins, to be reduced to the number of slots.
func (s *wordSlot) place() uint64 {
	high, low := bits.Mul64(s.key^keyMask, keyFactor)
	return high ^ low
}

// code returns the code of a word, which is added if necessary. It returns false if the list is
// full and overfill is false.
func (t *wordTable) code(word []byte, overfill bool) (code uint32, ok bool) {
	want := wordSlot{key: wordKey(word), len: uint32(len(word))}
	for i, mask := want.place(), uint64(len(t.slots)-1); len(t.slots) > 0; i++ {
		s := &t.slots[i&mask]
		if s.code == 0 {
			break
		}
		if s.key == want.key && s.len == want.len && (len(word) <= shortWord ||
			bytes.Equal(t.list.value(int(s.code-1)), word)) {
			return s.code - 1, true
		}
	}
	if t.list.Full() && !overfill {
		return 0, false
	}
	want.code = uint32(t.list.Len()) + 1
	t.list.add(word)
	if 2*t.list.Len() > len(t.slots) {
		t.grow()
	}
	t.insert(want)
	return want.code - 1, true
}

// insert adds a word that is not in the table, which has room for it.
func (t *wordTable) insert(s wordSlot) {
	mask := uint64(len(t.slots) - 1)
	i := s.place() & mask
	for t.slots[i].code != 0 {
		i = (i + 1) & mask
	}
	t.slots[i] = s
}

// grow doubles the number of slots.
func (t *wordTable) grow() {
	old := t.slots
	t.slots = make([]wordSlot, max(firstWordSlots, 2*len(old)))
	for _, s := range old {
		if s.code != 0 {
			t.insert(s)
		}
	}
}
