package cfile

import (
	"encoding/binary"
	"weak"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/cache"
	"github.com/oribi-db/oribi/internal/coding"
	"github.com/oribi-db/oribi/internal/encoding"
	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/schema"
)

// dataBlock is a parsed data cblock, as kept in the cache. Immutable; many goroutines may read its
// values at once.
type dataBlock struct {
	index    int
	first    int64 // row
	rows     int
	nullable bool // some row is NULL; nulls has the rows
	nulls    presence
	arrays   *arrayCells // of a column of arrays: positions of the values in the cells
	values   encoding.Block
	codes    encoding.CodeBlock // values, if they are codes of the file's dictionary
	bytes    int64              // approximate size in memory
}

// chunkCache keeps the decoded chunks of one cblock: chunk i is part i+1 of its cache entries.
type chunkCache struct {
	cache *cache.Cache
	key   cache.Key
}

func (k *chunkCache) Get(i int) []byte {
	key := k.key
	key.Part = uint32(i) + 1
	if v, ok := k.cache.Get(key); ok {
		return v.([]byte)
	}
	return nil
}

func (k *chunkCache) Put(i int, decoded []byte) {
	key := k.key
	key.Part = uint32(i) + 1
	k.cache.PutAgain(key, decoded, int64(cap(decoded)))
}

// Parts of a cblock in the cache other than its decoded chunks, of which there are far fewer.
const (
	partWhole  = 0         // *dataBlock
	partStored = 1 << 31   // []byte: part 0 as it is stored; the parts after it have the numbers after it
	partRaw    = 1<<32 - 1 // what the caller of ReadBlock parsed from a cblock that is not column data

	// Package rowset has the two numbers between.
	partNode     = 1<<32 - 4  // *node
	partOrdinals = 1<<32 - 5  // *part[ordinalIndex]
	partValues   = 1<<32 - 6  // *part[valueIndex]
	partZones    = 1<<32 - 7  // *part[zones]
	partCRCs     = 1<<32 - 8  // *part[[]uint32]
	partWords    = 1<<32 - 9  // *part[batch.Dictionary]
	partMarks    = 1<<32 - 10 // *chunkMarks
	partDerived  = 1<<32 - 11 // of KeepDerived, kind 0; the kinds after it have the parts before it
)

// readData reads and parses data cblock i, which is at p. If s is nil, the result may be kept;
// otherwise it is valid until s is used again. Source: cfile spec §10.2, §12.3 items 38 to 49 and
// 52.
func (r *Reader) readData(i int, p BlockPointer, s *scratch) (*dataBlock, error) {
	payload, crc, err := r.readBlock(p, s)
	if err != nil {
		return nil, err
	}
	return r.parse(i, p, payload, crc, s)
}

// parse parses data cblock i, at p, whose stored form has the given CRC.
func (r *Reader) parse(i int, p BlockPointer, payload []byte, crc uint32, s *scratch) (*dataBlock, error) {
	if err := r.checkZone(i, p, crc); err != nil {
		return nil, err
	}
	b, err := r.parseData(payload, p, s)
	if err != nil {
		return nil, r.at(p, err)
	}
	b.index = i
	if b.first+int64(b.rows) > r.info.Rows || b.rows == 0 {
		return nil, r.at(p, fault.Corruptf("rows [%d,%d) in a file of %d rows", b.first, b.first+int64(b.rows),
			r.info.Rows))
	}
	return b, nil
}

// parseData parses a payload. If s is nil, the result may be kept; otherwise it is valid until s is
// used again. Source: cfile spec §7, §12.3 items 38 to 51.
func (r *Reader) parseData(payload []byte, p BlockPointer, s *scratch) (*dataBlock, error) {
	b := &dataBlock{bytes: int64(cap(payload)) + 256}
	params := encoding.Params{Type: r.info.Type, Encoding: r.info.Encoding, Payload: payload,
		Limit: 1<<18 + 16*int(p.Size)}
	if s != nil {
		params.Offsets = &s.offsets
	}
	var err error
	switch {
	case r.info.Array:
		params.Payload, err = b.parseArrays(payload, r.info.Nullable)
	case r.info.Nullable:
		params.Payload, err = b.parseNulls(payload)
	}
	if err != nil {
		return nil, err
	}
	if r.info.Encoding == schema.Dictionary {
		if params.Dict, err = r.dictionary(); err != nil {
			return nil, err
		}
	}
	if r.cache != nil && s == nil && (r.info.Encoding == schema.Bitshuffle || r.info.Encoding == schema.Dictionary) {
		params.Chunks = &chunkCache{r.cache, cache.Key{Block: r.id, Offset: uint64(p.Offset)}}
	}
	values, err := encoding.Parse(params)
	if err != nil {
		return nil, err
	}
	b.values, b.first, b.rows = values, int64(values.Ordinal()), values.Len()
	b.codes, _ = values.(encoding.CodeBlock)
	b.bytes += int64(values.Footprint())
	return b, b.matchPrologue(r.info.Nullable)
}

// parseNulls parses the prologue of a nullable cblock and returns the values after it.
func (b *dataBlock) parseNulls(payload []byte) (values []byte, err error) {
	rows, stream, values, err := splitPrologue(payload)
	if err != nil {
		return nil, err
	}
	b.nulls, err = parsePresence(stream, rows)
	b.nullable = b.nulls.ones < rows
	b.bytes += b.nulls.footprint()
	return values, err
}

// matchPrologue checks that there are as many values as the prologue lists, and sets the number of
// rows. Source: cfile spec §12.3 item 49.
func (b *dataBlock) matchPrologue(nullable bool) error {
	switch {
	case b.arrays != nil:
		if b.values.Len() != int(b.arrays.elements.ones) {
			return fault.Corruptf("%d values for %d elements that are not NULL", b.values.Len(), b.arrays.elements.ones)
		}
		b.rows = int(b.nulls.rows)
	case nullable:
		if b.values.Len() != int(b.nulls.ones) {
			return fault.Corruptf("%d values for %d rows that are not NULL", b.values.Len(), b.nulls.ones)
		}
		b.rows = int(b.nulls.rows)
	}
	return nil
}

// splitPrologue splits the prologue of a nullable cblock into its fields. Package encoding has the
// table of the format. Source: cfile spec §12.3 item 48.
func splitPrologue(payload []byte) (rows uint32, stream, values []byte, err error) {
	rows, n, ok := coding.Uvarint32(payload)
	if !ok {
		return 0, nil, nil, fault.Corruptf("presence: malformed row count")
	}
	size, m, ok := coding.Uvarint32(payload[n:])
	if n += m; !ok || uint64(size) > uint64(len(payload)-n) {
		return 0, nil, nil, fault.Corruptf("presence: bitmap overruns the %d bytes of its cblock", len(payload))
	}
	end := n + int(size)
	return rows, payload[n:end:end], payload[end:], nil
}

// locate reports whether a row of the cblock is present, and returns its index among the values.
func (b *dataBlock) locate(row int) (value int, present bool) {
	if !b.nullable {
		return row, true
	}
	return b.nulls.find(row)
}

// span converts rows [from, from+n) of the cblock to values [v, v+m).
func (b *dataBlock) span(from, n int) (v, m int) {
	if !b.nullable {
		return from, n
	}
	v = b.nulls.rank(from)
	return v, b.nulls.rank(from+n) - v
}

// decode decodes rows [from, from+n) into cells [at, at+n) of dst, which is not in dictionary form.
func (b *dataBlock) decode(from, n int, dst *batch.Vector, at int) error {
	v, m := b.span(from, n)
	if m > 0 {
		if err := b.values.Decode(v, m, dst, at); err != nil {
			return err
		}
	}
	placeNulls(&b.nulls, from, n, m, dst, at)
	return nil
}

// decodeCodes is like decode, for a vector in dictionary form.
func (b *dataBlock) decodeCodes(from, n int, dst *batch.Vector, at int) error {
	v, m := b.span(from, n)
	if m > 0 {
		if err := b.codes.Codes(v, m, dst.Codes[at:at+m]); err != nil {
			return err
		}
	}
	placeNulls(&b.nulls, from, n, m, dst, at)
	return nil
}

// placeNulls moves the m values at the front of cells [at, at+n) to the cells of those rows in
// [from, from+n) that are present.
func placeNulls(p *presence, from, n, m int, dst *batch.Vector, at int) {
	if m == n {
		return
	}
	p.clearNulls(dst.NeedPresent(), at, from, n)
	spreadVector(dst, at, n, m)
}

// dictionary returns the file's dictionary, nil if the footer points to none. It is read on first
// use and kept.
func (r *Reader) dictionary() (*batch.Dictionary, error) {
	if r.dictPointer.Size == 0 {
		return nil, nil
	}
	return loaded(r, &r.dict, r.dictPointer, partWords, r.loadDictionary)
}

// loadDictionary reads the dictionary, unless some cblock in memory still has it: the cblocks of a
// file share one dictionary.
func (r *Reader) loadDictionary() (*batch.Dictionary, int64, error) {
	if d := r.shared.Value(); d != nil {
		return d, dictionaryBytes(d), nil
	}
	payload, _, err := r.readBlock(r.dictPointer, nil)
	if err == nil {
		err = r.checkWords(payload, r.dictPointer)
	}
	if err != nil {
		return nil, 0, err
	}
	d, err := encoding.ParseDictionary(payload)
	if err != nil {
		return nil, 0, r.at(r.dictPointer, err)
	}
	r.shared = weak.Make(d)
	return d, dictionaryBytes(d), nil
}

// checkWords returns an error if a dictionary, at p, has more words than a valid one of its size:
// words are distinct, so a valid one of this many needs more bytes under any codec.
func (r *Reader) checkWords(payload []byte, p BlockPointer) error {
	if len(payload) >= 8 {
		words := int64(binary.LittleEndian.Uint32(payload[4:]))
		if words*sliceHeader > 1<<19+32*int64(p.Size) {
			return r.at(p, fault.Corruptf("dictionary: %d words do not fit in %d bytes", words, p.Size))
		}
	}
	return nil
}

// dictionaryBytes returns the approximate memory of a dictionary.
func dictionaryBytes(d *batch.Dictionary) int64 {
	n := int64(cap(d.Words)) * sliceHeader
	for _, w := range d.Words {
		n += int64(len(w))
	}
	return n
}
