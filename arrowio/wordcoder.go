package arrowio

import (
	"bytes"
	"encoding/binary"
	"math/bits"

	"github.com/oribi-db/oribi/batch"
)

// wordCoder gives equal byte strings of a column chunk equal codes, so that a batch has a
// dictionary and later steps handle each word once instead of each cell. arrow-go has the codes of
// a dictionary page, but its readers of columns return words only.
//
// It gives up when the cells repeat too little for that to pay: codes take memory for each word and
// a search for each cell.
type wordCoder struct {
	words [][]byte // by code; never changed
	known map[string]uint32
	slots [1 << slotBits]uint32 // by a hash: 1 + the code of the word that was last looked up there
	text  []byte                // memory of the newest words
	bytes int                   // of all words
	cells int

	dict *batch.Dictionary // of the first words; nil before the first word
}

const (
	slotBits     = 10
	freeWords    = 1024 // may be distinct, then one cell in cellsByWord
	cellsByWord  = 8
	mostWords    = batch.WindowRows / 2
	maxWordBytes = 256 << 10

	nullCode = ^uint32(0)
)

func newWordCoder() *wordCoder { return &wordCoder{known: map[string]uint32{}} }

// code returns the code of a cell, false if it has none and gets none.
func (c *wordCoder) code(cell []byte) (uint32, bool) {
	c.cells++
	slot := &c.slots[wordHash(cell)]
	if k := *slot; k > 0 && bytes.Equal(c.words[k-1], cell) {
		return k - 1, true
	}
	code, ok := c.known[string(cell)]
	if !ok {
		n := len(c.words)
		if n >= mostWords || n >= freeWords+c.cells/cellsByWord || c.bytes+len(cell) > maxWordBytes {
			return 0, false
		}
		word := []byte{}
		if len(cell) > 0 {
			c.text, word = appendText(c.text, cell)
		}
		code = uint32(n)
		c.words, c.bytes = append(c.words, word), c.bytes+len(cell)
		c.known[string(word)] = code
	}
	*slot = code + 1
	return code, true
}

// wordHash returns a hash of the length and of up to 16 bytes of a word. Words with the same one
// only take longer.
func wordHash(w []byte) uint64 {
	n := len(w)
	h := uint64(n)
	switch {
	case n >= 8:
		h ^= binary.LittleEndian.Uint64(w) ^ bits.RotateLeft64(binary.LittleEndian.Uint64(w[n-8:]), 29)
	case n >= 4:
		h ^= uint64(binary.LittleEndian.Uint32(w))<<8 ^ uint64(binary.LittleEndian.Uint32(w[n-4:]))<<32
	case n > 0:
		h ^= uint64(w[0])<<8 ^ uint64(w[n/2])<<16 ^ uint64(w[n-1])<<24
	}
	return h * 0x9e3779b97f4a7c15 >> (64 - slotBits)
}

// dictionary returns the dictionary of all words so far. It is the same one until there are more.
func (c *wordCoder) dictionary() *batch.Dictionary {
	if n := len(c.words); c.dict == nil || len(c.dict.Words) < n {
		c.dict = &batch.Dictionary{Words: c.words[:n:n]}
	}
	return c.dict
}
