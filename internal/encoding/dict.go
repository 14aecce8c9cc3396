package encoding

import (
	"bytes"
	"encoding/binary"
	"sort"
	"sync"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/schema"
)

// DICT payload of byte strings. Source: cfile spec §6.7.
//
//	offset  width  field   meaning
//	0       4      mode    1: codes, 2: plain
//	4       …      nested  mode 1: BIT_SHUFFLE payload of uint32 codes, indexes in the dictionary
//	                       mode 2: PLAIN payload of the byte strings
//
// Codes 0, 1, 0, 0 from row 0: 01 00 00 00 00 00 00 00 04 00 00 00 21 00 00 00 08 00 00 00 01 00 00
// 00 00 00 00 09 80 02 00 00 00 00 00 00 00
//
// The dictionary is a separate cblock, one per file: a PLAIN payload of the words, which are distinct.
// Kudu writes them in the order of their first occurrence, and mode 2 once the dictionary is full. We
// may begin with words that do not occur, and payloads of mode 1 may follow others: they are copied
// from a file with the same first words.
const (
	dictModeLen = 4 // file format: never change
	modeCodes   = 1 // file format: never change
	modePlain   = 2 // file format: never change
)

// dictBlock is a DICT payload of codes. The nested payload does not know the dictionary, so that
// codes are checked when they are decoded.
type dictBlock struct {
	codes shuffled
	dict  *batch.Dictionary
}

// parseDict returns a dictBlock for a payload in mode 1, a PLAIN block for one in mode 2.
func parseDict(p Params) (Block, error) {
	if len(p.Payload) < dictModeLen {
		return nil, fault.Corruptf("encoding: dict: %d bytes hold no mode", len(p.Payload))
	}
	nested := p.Payload[dictModeLen:]
	switch mode := binary.LittleEndian.Uint32(p.Payload); mode {
	case modePlain:
		return parsePlainBinary(nested, p.Limit, p.Offsets)
	case modeCodes:
	default:
		return nil, fault.Corruptf("encoding: dict: mode %d", mode)
	}
	if p.Dict == nil {
		return nil, fault.Corruptf("encoding: dict: codes in a file without dictionary")
	}
	b := &dictBlock{dict: p.Dict}
	if err := b.codes.parse(nested, schema.Uint32, p.Chunks); err != nil {
		return nil, err
	}
	return b, nil
}

func (b *dictBlock) Ordinal() batch.Ordinal  { return b.codes.ordinal }
func (b *dictBlock) Len() int                { return b.codes.count }
func (b *dictBlock) Dict() *batch.Dictionary { return b.dict }
func (b *dictBlock) Footprint() int          { return b.codes.Footprint() + 8 }

// badCode returns the error of a code that is beyond the dictionary.
func (b *dictBlock) badCode(code uint32) error {
	return fault.Corruptf("encoding: dict: code %d, the dictionary has %d words", code, len(b.dict.Words))
}

func (b *dictBlock) Codes(from, n int, dst []uint32) error {
	greatest, err := b.codes.decode32(from, dst[:n])
	if err == nil && n > 0 && uint64(greatest) >= uint64(len(b.dict.Words)) {
		return b.badCode(greatest)
	}
	return err
}

// codeBuffer is the working memory of Decode and Select.
type codeBuffer [batch.WindowRows]uint32

var codeBuffers = sync.Pool{New: func() any { return new(codeBuffer) }}

// eachCodes calls f for the codes of values [from, from+n), a buffer at a time.
func (b *dictBlock) eachCodes(from, n int, f func(codes []uint32)) error {
	buf := codeBuffers.Get().(*codeBuffer)
	defer codeBuffers.Put(buf)
	for n > 0 {
		k := min(n, len(buf))
		if err := b.Codes(from, k, buf[:k]); err != nil {
			return err
		}
		f(buf[:k])
		from, n = from+k, n-k
	}
	return nil
}

func (b *dictBlock) Decode(from, n int, dst *batch.Vector, at int) error {
	words, out := b.dict.Words, dst.Bytes[at:at+n]
	return b.eachCodes(from, n, func(codes []uint32) {
		for i, c := range codes {
			out[i] = words[c]
		}
		out = out[len(codes):]
	})
}

func (b *dictBlock) Cell(i int) ([]byte, error) {
	code, err := b.codes.uint32At(i)
	if err != nil {
		return nil, err
	}
	if uint64(code) >= uint64(len(b.dict.Words)) {
		return nil, b.badCode(code)
	}
	return b.dict.Words[code], nil
}

// Seek requires values that were appended in order. The dictionary is then sorted as well, so codes
// order like words. Source: cfile spec §6.7.
func (b *dictBlock) Seek(target []byte) (int, bool, error) {
	return searchWords(b.dict, target, func(order func(code []byte) int) (int, bool, error) {
		return b.codes.search(nil, order)
	})
}

// searchWords is Block.Seek for the codes that search searches.
func searchWords(d *batch.Dictionary, target []byte,
	search func(order func(code []byte) int) (i int, exact bool, err error)) (int, bool, error) {
	code, found := sort.Find(len(d.Words), func(i int) int { return bytes.Compare(target, d.Words[i]) })
	i, exact, err := search(func(cell []byte) int { return int(load64(cell)) - code })
	return i, exact && found, err
}

// Select tests words, each once, and then codes. A few values of a large dictionary that is not
// known to the predicate are left to the caller, who tests the words that occur.
func (b *dictBlock) Select(p *batch.Predicate, from, n int, sel batch.Bitmap, at int) (bool, error) {
	return b.SelectCounted(p, from, n, sel, at, nil)
}

// SelectCounted is Select. If c is not nil, it counts the values that the dictionary or constant
// planes of the codes decide.
func (b *dictBlock) SelectCounted(p *batch.Predicate, from, n int, sel batch.Bitmap, at int,
	c *batch.TestCounts) (bool, error) {
	if selectAll(p, n, sel, at) {
		return true, nil
	}
	if !p.WorthWords(b.dict, n) {
		return false, nil
	}
	match := p.EvalWords(b.dict)
	count := match.Count()
	if c != nil && (count == 0 || count == len(b.dict.Words)) {
		c.Dictionary += int64(sel.CountRange(at, at+n))
	}
	switch count {
	case 0:
		sel.ClearRange(at, at+n)
		return true, nil
	case len(b.dict.Words):
		return true, nil
	}
	w := planeWorks.Get().(*planeWork)
	defer planeWorks.Put(w)
	if w.test.compileCodes(match, len(b.dict.Words), count) {
		return true, b.codes.filter(w, from, n, sel, at, c)
	}
	return true, b.eachCodes(from, n, func(codes []uint32) {
		batch.FilterCodes(codes, match, sel, at)
		at += len(codes)
	})
}
