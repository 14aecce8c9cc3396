package carbondata

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math/bits"
	"unsafe"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/carbondata/internal/codec"
	"github.com/oribi-db/oribi/internal/fault"
)

// Local dictionary: the values of a column in a blocklet. Source: carbondata spec §7.5.
//
//	dictionary_values  a bit for each surrogate in use: bit i%8 of byte i/8; zero bytes at the end
//	                   are left out
//	dictionary_data    strings in the order of their surrogates, with lengths of two bytes, or of
//	                   four if the column kind in the encoder meta is 8
//
// Both are compressed. Surrogate 2, "varchar", in a VARCHAR column: values 04, data
// 00 00 00 07 76 61 72 63 68 61 72
type dictionary struct {
	used  []byte           // dictionary_values
	first int              // the first surrogate in use, if those after it are too; else −1
	rank  []uint32         // rank[i]: how many surrogates before 64·i are in use
	words batch.Dictionary // in the order of the surrogates
	nulls batch.Bitmap     // the words that are null; nil if none is
}

const (
	nullSurrogate = 1 // of a STRING; file format: never change
	maxSurrogate  = 1<<24 - 1
	rankBytes     = 8  // of used, for each entry of rank
	wordBytes     = 24 // memory of a word, besides its bytes
)

// readDictionary reads the dictionary of c, which is of a column of the given type.
func readDictionary(c *chunk, typ Type, m *memory) (*dictionary, error) {
	h := c.dictionary
	if typ != String && typ != Varchar && typ != Binary {
		return nil, fault.Corruptf("%v with a local dictionary", typ)
	}
	if len(c.pages) == 0 {
		return nil, fault.Corruptf("a dictionary without pages")
	}
	if len(h.encoders) == 0 || h.encoders[0] != encDirectCompress {
		return nil, fault.Unsupportedf("encodings %v", h.encoders)
	}
	meta, err := parseEncoderMeta(h.meta)
	if err != nil {
		return nil, err
	}
	prefix := lengthLen
	if meta.kind == kindLongValue {
		prefix = longLengthLen
	}
	compressor := c.pages[0].compressor
	d := new(dictionary)
	if d.used, err = codec.Decompress(nil, compressor, h.values, min(maxSurrogate/8+1, m.left)); err != nil {
		return nil, inside(err, "surrogates")
	}
	if err := m.take(2 * len(d.used)); err != nil {
		return nil, err
	}
	for len(d.used)%rankBytes != 0 {
		d.used = append(d.used, 0)
	}
	n, last := 0, 0
	for i := 0; i < len(d.used); i += rankBytes {
		d.rank = append(d.rank, uint32(n))
		word := binary.LittleEndian.Uint64(d.used[i:])
		if n += bits.OnesCount64(word); word != 0 {
			last = 8*i + bits.Len64(word) - 1
		}
	}
	d.first = last - (n - 1)
	if code, ok := d.code(d.first); !ok || code != 0 {
		d.first = -1
	}
	if err := m.take(n * wordBytes); err != nil {
		return nil, err
	}
	data, err := codec.Decompress(nil, compressor, h.data, m.left)
	if _, long := errors.AsType[*codec.TooLong](err); long {
		err = m.take(m.left + 1) // no damage, but too much
	}
	if err == nil {
		err = m.unpacked(len(d.used)+len(data), 0)
	}
	if err == nil {
		err = m.take(len(data) + n*offsetBytes)
	}
	if err != nil {
		return nil, inside(err, "values")
	}
	offsets, err := splitStrings(nil, data, prefix, n)
	if err != nil {
		return nil, inside(err, "values")
	}
	d.words.Words = make([][]byte, n)
	for i := range n {
		word := data[int(offsets[i])+prefix : offsets[i+1] : offsets[i+1]]
		if d.words.Words[i] = word; isNullText(typ, word) {
			if d.nulls == nil {
				d.nulls = batch.MakeBitmap(n)
			}
			d.nulls.Set(i)
		}
	}
	return d, nil
}

// code returns the index of a surrogate's word, or false for a surrogate that is not in use.
func (d *dictionary) code(surrogate int) (uint32, bool) {
	at := surrogate / (8 * rankBytes)
	if at >= len(d.rank) {
		return 0, false
	}
	word := binary.LittleEndian.Uint64(d.used[at*rankBytes:])
	bit := uint(surrogate) % (8 * rankBytes)
	if word>>bit&1 == 0 {
		return 0, false
	}
	return d.rank[at] + uint32(bits.OnesCount64(word&(1<<bit-1))), true
}

// codes sets dst to the codes of the surrogates in data. It returns the index of the first
// surrogate that is not in use, or −1.
func (d *dictionary) codes(dst []uint32, data []byte) (bad int) {
	data = data[:len(dst)*surrogateLen]
	for i := range dst {
		b := data[i*surrogateLen : i*surrogateLen+surrogateLen]
		s := int(b[0])<<16 | int(b[1])<<8 | int(b[2])
		code, ok := uint32(s-d.first), uint(s-d.first) < uint(len(d.words.Words))
		if d.first < 0 {
			code, ok = d.code(s)
		}
		if s == 0 || !ok {
			return i
		}
		dst[i] = code
	}
	return -1
}

// value returns the value of a code. It shares memory with d, which never changes.
func (d *dictionary) value(typ Type, code uint32) any {
	if d.nulls != nil && d.nulls.Get(int(code)) {
		return nil
	}
	word := d.words.Words[code]
	if typ == Binary {
		return bytes.Clone(word)
	}
	return unsafe.String(unsafe.SliceData(word), len(word))
}
