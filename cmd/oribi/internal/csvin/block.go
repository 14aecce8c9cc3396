package csvin

import (
	"bytes"
	"encoding/binary"
	"math/bits"
)

// Block is a run of records that are split at once. It takes a fraction of the time of Next.
type Block struct {
	Text   []byte // of the records, with their line ends
	Fields []Span // of all records, one record after the other
	Ends   []int  // for each record, where it ends in Text
}

// Span is the position of a field in the text of a block, without its quotes.
type Span struct{ From, To uint32 }

// Quoted reports whether a field of the block is quoted.
func (b *Block) Quoted(s Span) bool { return s.From > 0 && b.Text[s.From-1] == '"' }

// blockBytes is the maximum text of a block. It and its spans remain in the processor's cache.
const blockBytes = 32 << 10

// Block splits the next records, at most most of them, as far as they are in the buffer and plain:
// they have n fields after Fit, and no doubled quote and no line end in quotes. The caller reads
// other records with Next. The records remain the next ones until Take is called. The block is
// valid until then, or until the next call of Next or Block.
func (r *Reader) Block(n, most int) *Block {
	b := &r.block
	*b = Block{Fields: b.Fields[:0], Ends: b.Ends[:0]}
	if !r.begun || r.cr {
		return b
	}
	r.pass()
	text := r.buffer[r.start:min(r.end, r.start+blockBytes)]
	b.split(text[:bytes.LastIndexByte(text, '\n')+1], r.delimiter, n, most)
	b.Fields = b.Fields[:n*len(b.Ends)]
	return b
}

// Take passes over the first k records of the block that Block returned last.
func (r *Reader) Take(k int) {
	if k > 0 {
		r.start += r.block.Ends[k-1]
		r.Line += k
	}
}

// split splits text, which ends in LF or is empty.
func (b *Block) split(text []byte, delimiter byte, n, most int) {
	b.Text = text
	delimiters := each * uint64(delimiter)
	record, field := 0, 0 // where the current ones begin
	for i := 0; i < len(text); {
		word := load(text, i)
		found := zeros(word^delimiters) | zeros(word^each*'\n') | zeros(word^each*'"') | zeros(word^each*'\r')
		i += 8
		for ; found != 0; found &= found - 1 {
			at := i - 8 + bits.TrailingZeros64(found)>>3
			if at >= len(text) {
				return
			}
			span := Span{uint32(field), uint32(at)}
			if text[at] == '"' {
				size := bytes.IndexByte(text[at+1:], '"')
				if at != field || size < 0 || bytes.IndexByte(text[at+1:at+1+size], '\n') >= 0 {
					return
				}
				span = Span{uint32(at + 1), uint32(at + 1 + size)}
				at += size + 2
				found, i = 0, at+1
			}
			if text[at] == '\r' && text[at+1] == '\n' {
				at++
				found, i = 0, at+1
			}
			if text[at] != '\n' && text[at] != delimiter {
				return
			}
			b.Fields, field = append(b.Fields, span), at+1
			if text[at] == delimiter {
				continue
			}
			if !b.end(record, field, n) || len(b.Ends) == most {
				return
			}
			record = field
		}
	}
}

// end ends the record that begins at record, before next. It returns false if the record is an empty
// line or does not have n fields.
func (b *Block) end(record, next, n int) bool {
	first, last := n*len(b.Ends), len(b.Fields)-1
	if s := b.Fields[last]; s.From == s.To && !b.Quoted(s) {
		switch {
		case last == first && int(s.From) == record:
			return false
		case last == first+n && n > 0:
			last--
		}
	}
	if last-first+1 != n {
		return false
	}
	b.Fields = b.Fields[:last+1]
	b.Ends = append(b.Ends, next)
	return true
}

// each has a 1 in each byte; low has all bits but the highest of each.
const (
	each = 0x0101010101010101
	low  = 0x7f * each
)

// zeros returns a word with the highest bit of each byte that is 0 in w.
func zeros(w uint64) uint64 { return ^((w&low + low) | w | low) }

// load returns the 8 bytes of text from i, the first in the lowest bits, with zeros after its end.
func load(text []byte, i int) uint64 {
	if i+8 <= len(text) {
		return binary.LittleEndian.Uint64(text[i:])
	}
	var tail [8]byte
	copy(tail[:], text[i:])
	return binary.LittleEndian.Uint64(tail[:])
}
