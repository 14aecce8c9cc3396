package encoding

import (
	"bytes"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/keyenc"
)

// StringBlock is a Block of byte strings that finds the extreme of selected values without decoding
// them.
type StringBlock interface {
	Block

	// ExtremeString adds the selected ones of values [from, from+n) to e. Bit at+i of sel is for
	// value from+i.
	ExtremeString(from, n int, sel batch.Bitmap, at int, e *StringExtreme) error
}

// StringExtreme is the least of the byte strings added so far, or the greatest if Greatest is set.
// The zero StringExtreme is empty. Not safe for concurrent use.
type StringExtreme struct {
	Greatest bool

	value []byte // a copy
	key   uint64 // of value
	ok    bool   // there is a value
}

// Cell returns the byte string, or nil if none was added. It is valid until another one is added.
func (e *StringExtreme) Cell() []byte {
	switch {
	case !e.ok:
		return nil
	case e.value == nil:
		return []byte{}
	}
	return e.value
}

// better reports whether a value with that order relative to e.value replaces it.
func (e *StringExtreme) better(order int) bool {
	return !e.ok || order != 0 && order > 0 == e.Greatest
}

// Add adds a byte string.
func (e *StringExtreme) Add(value []byte) {
	key := keyenc.Head(value)
	if e.ok && (key != e.key && key > e.key != e.Greatest || key == e.key && !e.better(bytes.Compare(value, e.value))) {
		return
	}
	e.value, e.key, e.ok = append(e.value[:0], value...), key, true
}

func (b *binaryBlock) ExtremeString(from, n int, sel batch.Bitmap, at int, e *StringExtreme) error {
	sel = sel[:(at+n+63)/64]
	for i := sel.Next(at); i >= 0 && i < at+n; i = sel.Next(i + 1) {
		e.Add(b.cell(from + i - at))
	}
	return nil
}

func (b *sparseBinary) ExtremeString(from, n int, sel batch.Bitmap, at int, e *StringExtreme) error {
	b.each(from, n, func(w *offsetWindow, skip, k int) {
		sel := sel[:(at+k+63)/64]
		for i := sel.Next(at); i >= 0 && i < at+k; i = sel.Next(i + 1) {
			e.Add(b.value(w, skip+i-at))
		}
		at += k
	})
	return nil
}

// ExtremeString compares each word that occurs once.
func (b *dictBlock) ExtremeString(from, n int, sel batch.Bitmap, at int, e *StringExtreme) error {
	occurs := batch.MakeBitmap(len(b.dict.Words))
	err := b.eachCodes(from, n, func(codes []uint32) {
		sel := sel[:(at+len(codes)+63)/64]
		for i := sel.Next(at); i >= 0 && i < at+len(codes); i = sel.Next(i + 1) {
			occurs.Set(int(codes[i-at]))
		}
		at += len(codes)
	})
	for c := occurs.Next(0); c >= 0; c = occurs.Next(c + 1) {
		e.Add(b.dict.Words[c])
	}
	return err
}

// ExtremeString compares what entries add to the values before them, as prefixOrder does, but with
// a value that changes: a better value shares with it the bytes that both share with the value
// before.
func (b *prefixBlock) ExtremeString(from, n int, sel batch.Bitmap, at int, e *StringExtreme) error {
	if n == 0 {
		return nil
	}
	p := b.cursorAt(from)
	common, order := 0, 0 // of the value before and the extreme
	compare := func(shared int, rest []byte) {
		wanted := e.value[shared:]
		common = shared + commonPrefix(rest, wanted)
		order = bytes.Compare(rest, wanted)
	}
	if p.value != nil {
		compare(0, p.value)
	}
	for i := range n {
		shared, unshared, next, _ := b.entry(p.pos)
		rest := b.payload[next-unshared : next]
		p.value, p.pos = append(p.value[:shared], rest...), next
		if shared <= common {
			compare(shared, rest)
		}
		if sel.Get(at+i) && e.better(order) {
			e.value, e.ok = append(e.value[:common], p.value[common:]...), true
			common, order = len(e.value), 0
		}
	}
	p.next += n
	b.keep(&p)
	e.key = keyenc.Head(e.value)
	return nil
}
