package arrowio

import (
	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/file"
	"github.com/apache/arrow-go/v18/parquet/metadata"

	"github.com/oribi-db/oribi/batch"
)

// codeWriter writes vectors in dictionary form to a column chunk as codes. arrow-go would look up
// the word of each cell in the column chunk's dictionary, and compare it with the statistics.
//
// The dictionary of a column chunk has the words in the order in which they were first written, so
// the code of a word is known once arrow-go was given it as a cell: cells with new words are
// written as byte strings, and then noted.
type codeWriter struct {
	chunk *file.ByteArrayColumnChunkWriter // that known is about
	known map[string]int32                 // the codes of the dictionary
	all   bool                             // known has all of its words

	of    *batch.Dictionary // the last one of a vector
	words []codedWord       // by its codes
	call  int               // the number of calls of write
	cells []int32
	used  []parquet.ByteArray
	valid []byte
}

type codedWord struct {
	code int32 // −1: unknown
	size int32 // bytes in a page without dictionary
	call int   // the last one with a cell of this word
}

// dictionaryEncoder has methods of arrow-go's encoders of dictionaries, whose types are in an
// internal package.
type dictionaryEncoder interface {
	NumEntries() int
	AddRawSize(n int64) // counts towards the size of a page
}

// possible reports whether cells of v can be written as codes: the dictionary of the column chunk,
// which arrow-go gives up when it is too large, has the known words.
func (c *codeWriter) possible(out *file.ByteArrayColumnChunkWriter, v *batch.Vector) (dictionaryEncoder, bool) {
	if v.Dict == nil {
		return nil, false
	}
	if c.chunk != out {
		c.chunk, c.known, c.of = out, map[string]int32{}, nil
	}
	if out.CurrentEncoder().Encoding() != parquet.Encodings.PlainDict {
		return nil, false
	}
	e, ok := out.CurrentEncoder().(dictionaryEncoder)
	return e, ok && e.NumEntries() == len(c.known)
}

// use sets c.words to the words of d.
func (c *codeWriter) use(d *batch.Dictionary) {
	if c.of == d {
		return
	}
	c.of, c.words = d, c.words[:0]
	for _, w := range d.Words {
		code, ok := c.known[string(w)]
		if !ok {
			code = -1
		}
		c.words = append(c.words, codedWord{code: code, size: int32(4 + len(w))})
	}
}

// write writes cells [from, to) of v with their definition levels, nil in a column that is not
// nullable. It returns false if it has written nothing, since one of the words is new.
func (c *codeWriter) write(
	out *file.ByteArrayColumnChunkWriter, v *batch.Vector, from, to int, defs []int16,
) (bool, error) {
	var e dictionaryEncoder
	if e, c.all = c.possible(out, v); !c.all {
		return false, nil
	}
	c.use(v.Dict)
	c.call++
	n, nulls, size := to-from, 0, int64(0)
	if cap(c.cells) < n {
		c.cells = make([]int32, n)
	}
	c.cells, c.used = c.cells[:n], c.used[:0]
	for i, k := range v.Codes[from:to] {
		if defs != nil && defs[i] == 0 {
			c.cells[i] = 0
			nulls++
			continue
		}
		w := &c.words[k]
		if w.code < 0 {
			return false, nil
		}
		if w.call != c.call {
			w.call = c.call
			c.used = append(c.used, v.Dict.Words[k])
		}
		c.cells[i] = w.code
		size += int64(w.size)
	}
	if s, ok := out.PageStatistics().(*metadata.ByteArrayStatistics); ok {
		s.Update(c.used, int64(nulls))
		s.IncNumValues(int64(n - nulls - len(c.used)))
	}
	e.AddRawSize(size)
	a := makeArray(arrow.PrimitiveTypes.Int32, n, nulls, []*memory.Buffer{c.validity(defs, nulls), borrowed(c.cells)})
	defer a.Release()
	return true, out.WriteDictIndices(a, defs, nil)
}

// validity returns a bitmap of the cells that are not NULL, nil if all are.
func (c *codeWriter) validity(defs []int16, nulls int) *memory.Buffer {
	if nulls == 0 {
		return nil
	}
	c.valid = append(c.valid[:0], make([]byte, (len(defs)+7)/8)...)
	for i, def := range defs {
		c.valid[i/8] |= byte(def) << (i % 8)
	}
	return memory.NewBufferBytes(c.valid)
}

// note notes the words of cells [from, to) of v, which were written as byte strings after write has
// returned false. If the dictionary has words that are not known, the numbers of words differ for
// the rest of the column chunk.
func (c *codeWriter) note(v *batch.Vector, from, to int) {
	if !c.all {
		return
	}
	for i, k := range v.Codes[from:to] {
		w := &c.words[k]
		if w.code >= 0 || v.IsNull(from+i) {
			continue
		}
		word := v.Dict.Words[k]
		code, ok := c.known[string(word)]
		if !ok {
			code = int32(len(c.known))
			c.known[string(word)] = code
		}
		w.code = code
	}
}
