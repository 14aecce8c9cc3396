package carbondata

import (
	"math/bits"

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
	used    []byte   // dictionary_values
	rank    []uint32 // rank[i]: how many surrogates before 64·i are in use
	text    string   // dictionary_data
	offsets []uint32 // see splitStrings
	prefix  int
}

const (
	maxSurrogate = 1<<24 - 1
	rankBytes    = 8 // of used, for each entry of rank
)

// readDictionary reads the dictionary of c, of at most limit bytes.
func readDictionary(c *chunk, limit int) (*dictionary, error) {
	h := c.dictionary
	if len(c.pages) == 0 {
		return nil, fault.Corruptf("a dictionary without pages")
	}
	if len(h.encoders) == 0 || h.encoders[0] != encDirectCompress {
		return nil, fault.Unsupportedf("encodings %v", h.encoders)
	}
	m, err := parseEncoderMeta(h.meta)
	if err != nil {
		return nil, err
	}
	d := &dictionary{prefix: lengthLen}
	if m.kind == kindLongValue {
		d.prefix = longLengthLen
	}
	compressor := c.pages[0].compressor
	if d.used, err = decompress(compressor, h.values, maxSurrogate/8+1); err != nil {
		return nil, inside(err, "surrogates")
	}
	n := 0
	for i, b := range d.used {
		if i%rankBytes == 0 {
			d.rank = append(d.rank, uint32(n))
		}
		n += bits.OnesCount8(b)
	}
	data, err := decompress(compressor, h.data, limit)
	if err != nil {
		return nil, inside(err, "values")
	}
	d.text = string(data)
	d.offsets, err = splitStrings(data, d.prefix, n)
	return d, inside(err, "values")
}

// has reports whether the surrogate is in use.
func (d *dictionary) has(surrogate int) bool {
	return surrogate/8 < len(d.used) && d.used[surrogate/8]&(1<<(surrogate%8)) != 0
}

// value returns the value of a surrogate that is in use.
func (d *dictionary) value(surrogate int) string {
	at := surrogate / 8
	i := int(d.rank[at/rankBytes])
	for _, b := range d.used[at/rankBytes*rankBytes : at] {
		i += bits.OnesCount8(b)
	}
	i += bits.OnesCount8(d.used[at] & (1<<(surrogate%8) - 1))
	return d.text[int(d.offsets[i])+d.prefix : d.offsets[i+1]]
}
