package hfile

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"math"

	"github.com/oribi-db/oribi/internal/fault"
)

// Hudi's Bloom filter is the base64 text (standard alphabet, padded) of these bytes. Integers are
// big-endian and signed.
//
//	width  field    meaning
//	4      version  -1
//	4      hashes   number of hashes
//	1      hash     hash function: 0 Jenkins, 1 Murmur (Hadoop's variant)
//	4      bits     number of bits
//
// In the oldest form the first integer is positive: it is the number of hashes, the next one the
// number of bits, and the hash function is Jenkins. Then follow, in a filter of type SIMPLE:
//
//	(bits+7)/8  row  bit p is bit p mod 8 of byte p/8; unused bits are 0
//
// In a filter of type DYNAMIC_V0:
//
//	4  keysPerRow  number of keys that a row is made for
//	4  keys        number of keys in the newest row
//	4  rows        number of rows
//	…  rows        each as a whole filter of type SIMPLE, with the same header
//
// A key sets the bits |h rem bits| of one row for each of the hashes h: the first with seed 0, each
// further one with its predecessor as seed. A key is present if one row has all of its bits.
//
// An empty filter of type SIMPLE with 7 Murmur hashes and 12 bits:
//
//	ff ff ff ff | 00 00 00 07 | 01 | 00 00 00 0c | 00 00
//
// Its text is /////wAAAAcBAAAADAAA.
//
// Source: hfile spec §7.2.
const (
	hudiBloomVersion      = -1 // file format: never change
	hudiBloomHeaderLen    = 13 // file format: never change
	hudiBloomOldHeaderLen = 8  // file format: never change; without version and hash function
	hudiBloomDynamicLen   = 12 // file format: never change; keysPerRow, keys, rows

	hudiBloomSimple  = "SIMPLE"     // file format: never change
	hudiBloomDynamic = "DYNAMIC_V0" // file format: never change
)

// HudiBloomOptions sets the size of a HudiBloom. The zero value has Hudi's defaults.
type HudiBloomOptions struct {
	Simple    bool    // type SIMPLE instead of DYNAMIC_V0
	Keys      int     // expected number of keys, in type DYNAMIC_V0 of each row; 0 is 60000
	ErrorRate float64 // rate of false positives with so many keys, more than 0 and less than 1; 0 is 1e-9
	MaxKeys   int     // number of keys from which on no further row is added; 0 is 100000
}

// Hudi's defaults.
const (
	hudiBloomKeys      = 60000
	hudiBloomErrorRate = 1e-9
	hudiBloomMaxKeys   = 100000
)

// HudiBloom is a Bloom filter over the keys of one of Hudi's files, stored in a meta block.
//
// MayContain is safe for concurrent use unless Add is called. Source: hfile spec §7.2.
type HudiBloom struct {
	b         []byte // the filter as stored; never changed after parsing except by Add
	dynamic   bool
	headerLen int
	hashes    int
	hash      BloomHash
	bits      int32
	maxKeys   int64 // for Add to a filter of type DYNAMIC_V0
	full      bool  // Add adds no further row
	turn      int   // then: the number of keys added since
}

// NewHudiBloom returns an empty filter. Hash function is Murmur, as in all of Hudi's filters.
func NewHudiBloom(o HudiBloomOptions) (*HudiBloom, error) {
	if o.Keys == 0 {
		o.Keys = hudiBloomKeys
	}
	if o.ErrorRate == 0 {
		o.ErrorRate = hudiBloomErrorRate
	}
	if o.MaxKeys == 0 {
		o.MaxKeys = hudiBloomMaxKeys
	}
	if o.Keys < 1 || o.Keys > math.MaxInt32 || o.MaxKeys < 1 {
		return nil, fmt.Errorf("hfile: Bloom filter for %d keys, at most %d: want positive numbers", o.Keys, o.MaxKeys)
	}
	if !(o.ErrorRate > 0 && o.ErrorRate < 1) {
		return nil, fmt.Errorf("hfile: Bloom error rate %v, want more than 0 and less than 1", o.ErrorRate)
	}
	bits := math.Ceil(float64(o.Keys) * (-math.Log(o.ErrorRate) / (math.Ln2 * math.Ln2)))
	if bits > math.MaxInt32 {
		return nil, fmt.Errorf("hfile: Bloom filter for %d keys with error rate %v has %.0f bits, want at most %d",
			o.Keys, o.ErrorRate, bits, math.MaxInt32)
	}
	f := &HudiBloom{dynamic: !o.Simple, headerLen: hudiBloomHeaderLen, hash: Murmur,
		bits: int32(bits), maxKeys: int64(o.MaxKeys)}
	f.hashes = int(math.Ceil(math.Ln2 * bits / float64(o.Keys)))

	version := int32(hudiBloomVersion)
	header := binary.BigEndian.AppendUint32(nil, uint32(version))
	header = binary.BigEndian.AppendUint32(header, uint32(f.hashes))
	header = append(header, byte(f.hash))
	header = binary.BigEndian.AppendUint32(header, uint32(f.bits))
	if f.b = header; f.dynamic {
		f.b = binary.BigEndian.AppendUint32(f.b, uint32(o.Keys))
		f.b = append(f.b, make([]byte, 8)...) // keys, rows
		f.addRow()
	} else {
		f.b = append(f.b, make([]byte, f.rowLen())...)
	}
	return f, nil
}

// ParseHudiBloom parses the content of a meta block. typeCode is the type as file info names it:
// SIMPLE or DYNAMIC_V0. Errors: ErrCorrupt, ErrUnsupported.
func ParseHudiBloom(typeCode string, text []byte) (*HudiBloom, error) {
	f := &HudiBloom{}
	switch typeCode {
	case hudiBloomSimple:
	case hudiBloomDynamic:
		f.dynamic = true
	default:
		return nil, fault.Unsupportedf("Bloom filter: type %q", typeCode)
	}
	if bytes.ContainsAny(text, "\r\n") { // which package base64 ignores
		return nil, fault.Corruptf("Bloom filter: line break in base64 text")
	}
	f.b = make([]byte, base64.StdEncoding.DecodedLen(len(text)))
	n, err := base64.StdEncoding.Decode(f.b, text)
	if err != nil {
		return nil, fault.Corruptf("Bloom filter: %v", err)
	}
	f.b = f.b[:n:n]
	if err := f.parse(); err != nil {
		return nil, fmt.Errorf("Bloom filter: %w", err)
	}
	return f, nil
}

// parse checks f.b and sets the other fields from it. It allocates nothing.
func (f *HudiBloom) parse() error {
	if err := f.parseHeader(); err != nil {
		return err
	}
	rows := f.b[f.headerLen:]
	if !f.dynamic {
		if len(rows) != f.rowLen() {
			return fault.Corruptf("%d bits in %d bytes, want %d bytes", f.bits, len(rows), f.rowLen())
		}
		return nil
	}
	if len(rows) < hudiBloomDynamicLen {
		return fault.Corruptf("%d bytes are too short", len(f.b))
	}
	n := f.dynamicField(rowsField)
	if f.dynamicField(keysPerRowField) < 1 || f.dynamicField(keysField) < 0 || n < 1 {
		return fault.Corruptf("%d keys a row, %d keys in the newest of %d rows",
			f.dynamicField(keysPerRowField), f.dynamicField(keysField), n)
	}
	rows = rows[hudiBloomDynamicLen:]
	if each := f.headerLen + f.rowLen(); len(rows)%each != 0 || len(rows)/each != int(n) {
		return fault.Corruptf("%d rows of %d bytes in %d bytes", n, each, len(rows))
	}
	for row := range int(n) {
		start := f.rowStart(row)
		if header := f.b[start-f.headerLen : start]; !bytes.Equal(header, f.b[:f.headerLen]) {
			return fault.Corruptf("row %d has header %x, want %x", row, header, f.b[:f.headerLen])
		}
	}
	return nil
}

func (f *HudiBloom) parseHeader() error {
	b := f.b
	if len(b) < hudiBloomOldHeaderLen {
		return fault.Corruptf("%d bytes are too short", len(b))
	}
	hashes := int32(binary.BigEndian.Uint32(b))
	switch {
	case hashes > 0:
		f.headerLen, f.hash = hudiBloomOldHeaderLen, Jenkins
	case hashes != hudiBloomVersion:
		return fault.Unsupportedf("version %d", hashes)
	case len(b) < hudiBloomHeaderLen:
		return fault.Corruptf("%d bytes are too short", len(b))
	default:
		f.headerLen, f.hash = hudiBloomHeaderLen, BloomHash(b[8])
		hashes = int32(binary.BigEndian.Uint32(b[4:]))
	}
	f.bits = int32(binary.BigEndian.Uint32(b[f.headerLen-4:]))
	if f.hash != Jenkins && f.hash != Murmur {
		return fault.Unsupportedf("hash function %d", f.hash)
	}
	if hashes < 1 || hashes > maxBloomHashes {
		return fault.Corruptf("%d hashes, want 1 to %d", hashes, maxBloomHashes)
	}
	if f.bits < 1 {
		return fault.Corruptf("%d bits", f.bits)
	}
	f.hashes = int(hashes)
	return nil
}

// TypeCode returns the type as file info names it, under the key bloomFilterTypeCode.
func (f *HudiBloom) TypeCode() string {
	if f.dynamic {
		return hudiBloomDynamic
	}
	return hudiBloomSimple
}

// AddHudiBloom adds a Bloom filter as Hudi stores it: a meta block and its type in file info. The
// filter must have all keys of the file. Errors: as AddMeta and AddInfo.
func (w *Writer) AddHudiBloom(f *HudiBloom) error {
	text, err := f.MarshalText()
	if err == nil {
		err = w.AddMeta(hudiBloomMeta, text)
	}
	if err != nil {
		return err
	}
	return w.AddInfo(infoHudiBloomType, []byte(f.TypeCode()))
}

// MarshalText returns the content of the meta block. The error is always nil.
func (f *HudiBloom) MarshalText() ([]byte, error) {
	return base64.StdEncoding.AppendEncode(nil, f.b), nil
}

// Add adds a key.
func (f *HudiBloom) Add(key []byte) {
	row := f.row(f.rowForAdd())
	h := int32(0)
	for range f.hashes {
		h = hudiHash(f.hash, key, h)
		setBloomBit(row, bloomPosition(h, f.bits))
	}
}

// MayContain reports whether the key may be present; false means that it was not added.
func (f *HudiBloom) MayContain(key []byte) bool {
	var buf [64]int32
	positions := buf[:0] // computed as needed: most absent keys need two
	h := int32(0)
next:
	for i := range f.rows() {
		row := f.row(i)
		for k := range f.hashes {
			if k == len(positions) {
				h = hudiHash(f.hash, key, h)
				positions = append(positions, bloomPosition(h, f.bits))
			}
			if !bloomBit(row, positions[k]) {
				continue next
			}
		}
		return true
	}
	return false
}

// rowForAdd returns the row that the next key goes to, and counts that key. When the newest row has
// its number of keys, it adds a row; when there are rows for maxKeys keys, it takes all rows in
// turn instead, as Hudi does.
func (f *HudiBloom) rowForAdd() int {
	if !f.dynamic {
		return 0
	}
	perRow, keys := f.dynamicField(keysPerRowField), f.dynamicField(keysField)
	row := f.rows() - 1
	switch {
	case f.full:
		row = f.turn % f.rows()
		f.turn++
	case keys >= perRow && int64(f.rows())*int64(perRow) < f.maxKeys:
		f.addRow()
		row, keys = row+1, 0
	case keys >= perRow:
		f.full, row = true, 0
	}
	f.setDynamicField(keysField, min(keys, math.MaxInt32-1)+1)
	return row
}

// Positions of the fields of type DYNAMIC_V0 after the header.
const (
	keysPerRowField = 0
	keysField       = 4
	rowsField       = 8
)

func (f *HudiBloom) dynamicField(at int) int32 {
	return int32(binary.BigEndian.Uint32(f.b[f.headerLen+at:]))
}

func (f *HudiBloom) setDynamicField(at int, v int32) {
	binary.BigEndian.PutUint32(f.b[f.headerLen+at:], uint32(v))
}

func (f *HudiBloom) addRow() {
	f.setDynamicField(rowsField, f.dynamicField(rowsField)+1)
	f.b = append(f.b, f.b[:f.headerLen]...)
	f.b = append(f.b, make([]byte, f.rowLen())...)
}

func (f *HudiBloom) rows() int {
	if f.dynamic {
		return int(f.dynamicField(rowsField))
	}
	return 1
}

func (f *HudiBloom) rowLen() int { return int((int64(f.bits) + 7) / 8) }

// rowStart returns the position in f.b of the bits of a row.
func (f *HudiBloom) rowStart(row int) int {
	if !f.dynamic {
		return f.headerLen
	}
	return f.headerLen + hudiBloomDynamicLen + row*(f.headerLen+f.rowLen()) + f.headerLen
}

func (f *HudiBloom) row(row int) []byte {
	start := f.rowStart(row)
	return f.b[start : start+f.rowLen()]
}
