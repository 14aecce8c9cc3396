package carbondata

import (
	"bytes"
	"encoding/binary"
)

// dictionaryWriter gives the values of one column their surrogates, for all blocklets of a Writer,
// until there are too many: then the page that is filled has no surrogates, nor have later ones.
// Source: carbondata spec §7.5.
type dictionaryWriter struct {
	codes  map[string]uint32
	values [][]byte // of the surrogates from 1
	bytes  int      // of the values, with their lengths
	most   int      // values
	prefix int      // bytes of a length in dictionary_data
	full   bool     // there are too many values
	used   []byte   // dictionary_values of the blocklet
}

func newDictionaryWriter(threshold, prefix int) *dictionaryWriter {
	return &dictionaryWriter{
		codes:  map[string]uint32{nullText: nullSurrogate},
		values: [][]byte{[]byte(nullText)},
		bytes:  prefix + len(nullText),
		most:   threshold + 1,
		prefix: prefix,
	}
}

// code returns the surrogate of a value. It reports false if the dictionary is full, or if the
// value is longer than 32767 bytes: lengths in the dictionary are two bytes with a sign.
func (d *dictionaryWriter) code(value []byte) (uint32, bool) {
	if code, ok := d.codes[string(value)]; ok {
		return code, true
	}
	d.bytes += d.prefix + len(value)
	if len(d.values) == d.most || d.bytes > maxDictionaryBytes || d.prefix == lengthLen && len(value) > maxTextBytes {
		return 0, false
	}
	d.values = append(d.values, bytes.Clone(value))
	code := uint32(len(d.values))
	d.codes[string(value)] = code
	return code, true
}

func (d *dictionaryWriter) value(code uint32) []byte { return d.values[code-1] }

// use records that a page of the blocklet has the surrogate.
func (d *dictionaryWriter) use(code uint32) {
	for int(code/8) >= len(d.used) {
		d.used = append(d.used, 0)
	}
	d.used[code/8] |= 1 << (code % 8)
}

// data returns dictionary_data.
func (d *dictionaryWriter) data() []byte {
	var b []byte
	for code := range 8 * len(d.used) {
		if d.used[code/8]&(1<<(code%8)) != 0 {
			b = appendLength(b, d.prefix, len(d.value(uint32(code))))
			b = append(b, d.value(uint32(code))...)
		}
	}
	return b
}

// appendLength appends the length of a string, big-endian, in 2 or 4 bytes.
func appendLength(dst []byte, prefix, n int) []byte {
	if prefix == lengthLen {
		return binary.BigEndian.AppendUint16(dst, uint16(n))
	}
	return binary.BigEndian.AppendUint32(dst, uint32(n))
}
