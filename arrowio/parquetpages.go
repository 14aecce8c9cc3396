package arrowio

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"

	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/compress"
	"github.com/apache/arrow-go/v18/parquet/file"
	pq "github.com/apache/arrow-go/v18/parquet/schema"
)

// pageReader reads the pages of a column chunk for arrow-go's decoders: it is a file.PageReader.
// arrow-go's own trusts the headers of pages, ignores their checksums, and knows fewer encodings
// and codecs.
//
// Each step consumes bytes of the file, and pages without values are not returned, so that a reader
// of pages comes to an end. Pages in the encodings of differences are returned in the encoding
// PLAIN.
type pageReader struct {
	stream chunkStream
	column *pq.Column
	codec  compress.Compression
	chunk  int64 // number of values, NULLs included
	values int64 // in the pages so far
	words  int32 // number of values of the dictionary, −1: no dictionary page so far

	page  file.Page
	err   error
	data  *memory.Buffer // an uncompressed data page
	dict  *memory.Buffer // the uncompressed dictionary page
	plain plainValues    // a data page in the encoding PLAIN
}

func newPageReader(in *source, mem memory.Allocator) *pageReader {
	p := &pageReader{stream: chunkStream{in: in}}
	for _, b := range []**memory.Buffer{&p.stream.buf, &p.data, &p.dict, &p.plain.buf} {
		*b = memory.NewResizableBuffer(mem)
	}
	return p
}

// open begins with the pages of a column chunk, which has size bytes at byte start of the file, and
// values values. Errors: ErrCorrupt, ErrUnsupported.
func (p *pageReader) open(column *pq.Column, codec compress.Compression, values, start, size int64) error {
	p.release()
	p.stream.open(start, size)
	p.column, p.codec, p.chunk = column, codec, values
	p.values, p.words, p.err = 0, -1, nil
	if values < 0 {
		return corruptf("a column chunk of %d values", values)
	}
	return checkCodec(codec)
}

// Page returns the page that Next has read.
func (p *pageReader) Page() file.Page { return p.page }

// Err returns the error because of which Next has returned false, nil at the end.
func (p *pageReader) Err() error { return p.err }

// Close releases the page.
func (p *pageReader) Close() error {
	p.release()
	return nil
}

// free frees all memory.
func (p *pageReader) free() {
	p.release()
	release([]*memory.Buffer{p.stream.buf, p.data, p.dict, p.plain.buf})
}

func (p *pageReader) release() {
	if p.page != nil {
		p.page.Release()
		p.page = nil
	}
}

// The rest of the interface has no use here: pages are read in order, the dictionary page first.

func (p *pageReader) SetMaxPageHeaderSize(int)                         {}
func (p *pageReader) GetDictionaryPage() (*file.DictionaryPage, error) { return nil, nil }
func (p *pageReader) SeekToPageWithRow(int64) error                    { return errors.ErrUnsupported }
func (p *pageReader) Reset(parquet.BufferedReader, int64, compress.Compression, *file.CryptoContext) {
}

// Next reads the next page that has values.
func (p *pageReader) Next() bool {
	p.release()
	for p.err == nil && p.page == nil && p.values < p.chunk && p.stream.left() > 0 {
		p.page, p.err = p.read()
	}
	return p.page != nil
}

// maxHeader is the size of the largest page header. The lowest and the greatest value of the page
// may be in it.
const maxHeader = 4 << 20

// header reads the header of a page.
func (p *pageReader) header() (pageHeader, error) {
	for n := 256; ; n *= 2 {
		b, err := p.stream.peek(n)
		if err != nil {
			return pageHeader{}, err
		}
		h, size, ok := parsePageHeader(b)
		if ok {
			p.stream.skip(size)
			return h, nil
		}
		if n = max(n, len(b)); int64(n) >= p.stream.left() || n >= maxHeader {
			return pageHeader{}, corruptf("malformed page header")
		}
	}
}

// read reads a page. It returns nil for one without values.
func (p *pageReader) read() (file.Page, error) {
	at := p.stream.position()
	page, err := p.readPage()
	if err != nil {
		return nil, fmt.Errorf("page at byte %d: %w", at, err)
	}
	return page, nil
}

func (p *pageReader) readPage() (file.Page, error) {
	h, err := p.header()
	if err != nil {
		return nil, err
	}
	if h.stored < 0 || int64(h.stored) > p.stream.left() {
		return nil, corruptf("%d bytes, %d are left of the column chunk", h.stored, p.stream.left())
	}
	if h.size < 0 || h.size > maxBuffer {
		return nil, corruptf("%d bytes uncompressed, limit %d", h.size, maxBuffer)
	}
	if h.values < 0 {
		return nil, corruptf("%d values", h.values)
	}
	stored, err := p.stream.peek(int(h.stored))
	if err != nil {
		return nil, err
	}
	stored = stored[:h.stored]
	p.stream.skip(len(stored))
	if h.hasCRC {
		if crc := crc32.ChecksumIEEE(stored); crc != h.crc {
			return nil, corruptf("crc %08x, want %08x", crc, h.crc)
		}
	}
	switch h.kind {
	case dictionaryPage:
		return p.dictionary(&h, stored)
	case dataPage:
		return p.dataPage(&h, stored)
	case dataPageV2:
		return p.dataPageV2(&h, stored)
	}
	return nil, nil // an index, or of a type that a reader may ignore
}

// dictionary returns the dictionary page.
func (p *pageReader) dictionary(h *pageHeader, stored []byte) (file.Page, error) {
	if p.words >= 0 || p.values > 0 {
		return nil, corruptf("a dictionary page that is not the first page of the column chunk")
	}
	switch parquet.Encoding(h.encoding) {
	case parquet.Encodings.Plain, parquet.Encodings.PlainDict:
	default:
		return nil, unsupportedf("a dictionary in the encoding %s", encodingName(h.encoding))
	}
	if p.column.PhysicalType() == parquet.Types.Boolean {
		return nil, unsupportedf("a dictionary of booleans")
	}
	data, err := decompressed(p.codec, p.dict, nil, int(h.size), stored)
	if err != nil {
		return nil, err
	}
	least := int64(4) // of a byte string, its length
	if w := p.width(); w >= 0 {
		least = max(1, int64(w))
	}
	if int64(h.values)*least > int64(len(data)) {
		return nil, corruptf("a dictionary of %d values in %d bytes", h.values, len(data))
	}
	p.words = h.values
	return file.NewDictionaryPage(memory.NewBufferBytes(data), h.values, parquet.Encodings.Plain), nil
}

// dataPage returns a data page of version 1: levels of repetition and definition, each after its
// length, then values, compressed together.
func (p *pageReader) dataPage(h *pageHeader, stored []byte) (file.Page, error) {
	data, err := p.unpacked(0, int(h.size), stored, true)
	if err != nil {
		return nil, err
	}
	p.values += int64(h.values)
	if h.values == 0 {
		return nil, nil
	}
	levels := 0
	for _, l := range []struct {
		most   int16
		coding int32
	}{{p.column.MaxRepetitionLevel(), h.repCoding}, {p.column.MaxDefinitionLevel(), h.defCoding}} {
		if l.most == 0 {
			continue
		}
		if parquet.Encoding(l.coding) != parquet.Encodings.RLE {
			return nil, unsupportedf("levels in the encoding %s", encodingName(l.coding))
		}
		if len(data)-levels < 4 || int64(binary.LittleEndian.Uint32(data[levels:])) > int64(len(data)-levels-4) {
			return nil, corruptf("levels of more bytes than the page")
		}
		levels += 4 + int(binary.LittleEndian.Uint32(data[levels:]))
	}
	data, encoding, err := p.decodable(h, data, levels)
	if err != nil {
		return nil, err
	}
	return file.NewDataPageV1(memory.NewBufferBytes(data), h.values, encoding, parquet.Encodings.RLE,
		parquet.Encodings.RLE, int32(len(data))), nil
}

// dataPageV2 returns a data page of version 2: levels of repetition and definition, then values,
// which alone are compressed.
func (p *pageReader) dataPageV2(h *pageHeader, stored []byte) (file.Page, error) {
	levels := int64(h.repBytes) + int64(h.defBytes)
	if h.repBytes < 0 || h.defBytes < 0 || levels > int64(min(h.stored, h.size)) {
		return nil, corruptf("levels of %d and %d bytes in a page of %d, %d in the file",
			h.repBytes, h.defBytes, h.size, h.stored)
	}
	data, err := p.unpacked(int(levels), int(h.size), stored, h.compressed)
	if err != nil {
		return nil, err
	}
	p.values += int64(h.values)
	if h.values == 0 {
		return nil, nil
	}
	data, encoding, err := p.decodable(h, data, int(levels))
	if err != nil {
		return nil, err
	}
	return file.NewDataPageV2(memory.NewBufferBytes(data), h.values, h.nulls, h.rows, encoding, h.defBytes,
		h.repBytes, int32(len(data)), false), nil
}

// unpacked returns a data page, uncompressed, which has size bytes. The first levels bytes are not
// compressed. The result is valid until the next page is read.
//
// pyarrow before version 3 wrote that pages are not compressed which are, and some writers store a
// page that compression does not make smaller as it is. The sizes show whether a page is
// compressed, unless they are equal: then it is compressed if it can be decompressed.
func (p *pageReader) unpacked(levels, size int, stored []byte, compressed bool) ([]byte, error) {
	if p.codec == compress.Codecs.Uncompressed || !compressed && len(stored) == size {
		if len(stored) != size {
			return nil, corruptf("%d bytes, want %d", len(stored), size)
		}
		return stored, nil
	}
	if size == levels && len(stored) == levels {
		return stored, nil // no values, and not even the compressed form of none
	}
	data, err := decompressed(p.codec, p.data, stored[:levels], size, stored[levels:])
	if err != nil && len(stored) == size {
		return stored, nil
	}
	return data, err
}

// decodable returns a data page in an encoding that arrow-go decodes. levels is the number of bytes
// before the values.
func (p *pageReader) decodable(h *pageHeader, data []byte, levels int) ([]byte, parquet.Encoding, error) {
	kind := p.column.PhysicalType()
	fixed := p.width()
	switch encoding := parquet.Encoding(h.encoding); encoding {
	case parquet.Encodings.Plain:
		return data, encoding, nil
	case parquet.Encodings.PlainDict, parquet.Encodings.RLEDict:
		if p.words < 0 {
			return nil, 0, corruptf("codes without a dictionary")
		}
		return data, parquet.Encodings.RLEDict, nil
	case parquet.Encodings.RLE:
		if kind == parquet.Types.Boolean {
			return data, encoding, nil
		}
	case parquet.Encodings.ByteStreamSplit:
		switch kind {
		case parquet.Types.Float, parquet.Types.Double, parquet.Types.Int32, parquet.Types.Int64,
			parquet.Types.FixedLenByteArray:
			return data, encoding, nil
		}
	case parquet.Encodings.DeltaBinaryPacked:
		if kind == parquet.Types.Int32 || kind == parquet.Types.Int64 {
			data, err := p.plain.integers(data, levels, fixed, int(h.values))
			return data, parquet.Encodings.Plain, err
		}
	case parquet.Encodings.DeltaLengthByteArray, parquet.Encodings.DeltaByteArray:
		if kind == parquet.Types.ByteArray || kind == parquet.Types.FixedLenByteArray {
			data, err := p.plain.strings(data, levels, fixed, int(h.values),
				encoding == parquet.Encodings.DeltaByteArray)
			return data, parquet.Encodings.Plain, err
		}
	}
	return nil, 0, unsupportedf("values of type %s in the encoding %s", kind, encodingName(h.encoding))
}

// width returns the number of bytes of a value, −1 if they vary or are less than one.
func (p *pageReader) width() int {
	switch p.column.PhysicalType() {
	case parquet.Types.Boolean, parquet.Types.ByteArray:
		return -1
	case parquet.Types.FixedLenByteArray:
		return p.column.TypeLength()
	}
	return p.column.PhysicalType().ByteSize()
}

// encodingName returns the name of an encoding, which may be unknown.
func encodingName(e int32) string {
	for _, known := range []parquet.Encoding{
		parquet.Encodings.Plain, parquet.Encodings.PlainDict, parquet.Encodings.RLE, parquet.Encodings.BitPacked,
		parquet.Encodings.DeltaBinaryPacked, parquet.Encodings.DeltaLengthByteArray, parquet.Encodings.DeltaByteArray,
		parquet.Encodings.RLEDict, parquet.Encodings.ByteStreamSplit,
	} {
		if parquet.Encoding(e) == known {
			return known.String()
		}
	}
	return fmt.Sprintf("number %d", e)
}

// resized returns n bytes of a buffer, whose content is undefined.
func resized(b *memory.Buffer, n int) []byte {
	if b.Len() < n {
		b.Resize(0) // nothing needs to be copied
		b.Resize(n)
	}
	return b.Bytes()[:n]
}
