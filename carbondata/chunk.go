package carbondata

import (
	"slices"

	"github.com/oribi-db/oribi/carbondata/internal/thrift"
	"github.com/oribi-db/oribi/internal/fault"
)

// Column chunk: one column of a blocklet. A DataChunk3, then its pages, back to back, up to the
// next chunk. Source: carbondata spec §4.1, §6.
//
// DataChunk3:
//
//	ID  type    field             meaning
//	1   list    data_chunk_list   a DataChunk2 for each page
//	2   list    page_offset       i32 for each page: from the end of this message
//	3   list    page_length       i32 for each page: bytes of data, row IDs and runs
//	4   struct  local_dictionary  LocalDictionaryChunk
//
// DataChunk2:
//
//	ID  type    field               meaning
//	1   struct  chunk_meta          1: codec (i32), 2 and 3: bytes before and after compression
//	                                (i64, not used), 4: name of the compressor (absent: snappy)
//	2   bool    rowMajor            false
//	3   i32     data_page_length    compressed
//	4   i32     rowid_page_length   see inverse
//	5   i32     rle_page_length     see runEnds
//	6   struct  presence            1: false (bool), 2: null bits, compressed (binary)
//	7   i32     sort_state          1; with row IDs 2; not of all pages; not used
//	8   list    encoders            i32s, see encoding
//	9   list    encoder_meta        binaries; the first is read, see encoderMeta
//	10  struct  min_max             of one column, see bounds
//	11  i32     numberOfRowsInpage  not usable inside complex columns
//
// LocalDictionaryChunk:
//
//	ID  type    field              meaning
//	1   struct  dictionary_meta    1: encoders (list), 2: encoder_meta (list)
//	2   binary  dictionary_data    values, see dictionary; compressed
//	3   binary  dictionary_values  a bit for each surrogate in use; compressed
//
// A dictionary without values, in snappy:
//
//	1c 19 15 0c 19 18 00 00  18 01 00  18 01 00  00
//
// A page of 100 strings in 414 bytes, with snappy and without nulls:
//
//	19 1c
//	1c 15 00 16 00 16 00 00  12 15 bc 06  3c 12 18 01 00 00  15 02  19 05  19 08
//	1c 19 18 06 72 6f 62 6f 74 30 19 18 07 72 6f 62 6f 74 39 39 00  15 c8 01  00
//	19 15 00  19 15 bc 06  00
const (
	chunkPages       = 1 // file format: never change
	chunkPageOffsets = 2 // file format: never change
	chunkPageLengths = 3 // file format: never change
	chunkDictionary  = 4 // file format: never change

	pageMeta     = 1  // file format: never change
	pageRowMajor = 2  // file format: never change
	pageData     = 3  // file format: never change
	pageRowIDs   = 4  // file format: never change
	pageRuns     = 5  // file format: never change
	pagePresence = 6  // file format: never change
	pageSort     = 7  // file format: never change
	pageEncoders = 8  // file format: never change
	pageMetas    = 9  // file format: never change
	pageBounds   = 10 // file format: never change
	pageRows     = 11 // file format: never change

	sortNative   = 1 // file format: never change
	sortExplicit = 2 // file format: never change

	metaCodec        = 1 // file format: never change
	metaUncompressed = 2 // file format: never change
	metaCompressed   = 3 // file format: never change
	metaCompressor   = 4 // file format: never change

	codecDeprecated = 1 // see the name; file format: never change

	presenceSet  = 1 // file format: never change
	presenceBits = 2 // file format: never change

	dictionaryMeta   = 1 // file format: never change
	dictionaryData   = 2 // file format: never change
	dictionaryValues = 3 // file format: never change

	dictionaryEncoders = 1 // file format: never change
	dictionaryMetas    = 2 // file format: never change
)

// pageHeader is a DataChunk2 with the place of its page.
type pageHeader struct {
	compressor string
	data       int // bytes of data, row IDs and runs
	rowIDs     int
	runs       int
	nulls      []byte // compressed; nil if the header has no presence bits
	encoders   []encoding
	meta       []byte // nil: no encoder_meta
	rows       int    // -1: not in the header
	offset     int64  // in the file
	bounds     bounds // of one column, or none
}

func (h *pageHeader) has(e encoding) bool { return slices.Contains(h.encoders, e) }

// pageHeaderBytes is the memory of a pageHeader with its place and encodings, while a list of them
// grows.
const pageHeaderBytes = 512

// dictionaryHeader is a LocalDictionaryChunk.
type dictionaryHeader struct {
	encoders     []encoding
	meta         []byte
	data, values []byte
}

// chunk is the header of a column chunk.
type chunk struct {
	pages      []pageHeader
	dictionary *dictionaryHeader
}

// readEncodings reads a list of encodings.
func readEncodings(r *thrift.Reader, typ byte) (list []encoding) {
	const most = 16 // there are no more
	r.List(typ, func(typ byte) {
		if len(list) == most {
			r.Fail("more than %d encodings", most)
		}
		list = append(list, encoding(r.I32(typ)))
	})
	return list
}

// readFirstBytes reads a list of byte strings and returns the first, or nil.
func readFirstBytes(r *thrift.Reader, typ byte) (first []byte) {
	r.List(typ, func(typ byte) {
		if b := r.Bytes(typ); first == nil {
			first = b
		}
	})
	return first
}

func readPageHeader(r *thrift.Reader) (h pageHeader) {
	h.rows = -1
	r.Fields("DataChunk2", func(id int, typ byte) {
		switch id {
		case pageMeta:
			if !r.Want(typ, thrift.Struct) {
				return
			}
			r.Fields("ChunkCompressionMeta", func(id int, typ byte) {
				if id == metaCompressor {
					h.compressor = r.Text(typ)
				} else {
					r.Skip(typ)
				}
			}, metaCodec)
		case pageData:
			h.data = r.I32(typ)
		case pageRowIDs:
			h.rowIDs = r.I32(typ)
		case pageRuns:
			h.runs = r.I32(typ)
		case pagePresence:
			if !r.Want(typ, thrift.Struct) {
				return
			}
			r.Fields("PresenceMeta", func(id int, typ byte) {
				switch id {
				case presenceSet:
					if r.Bool(typ) {
						r.Fail("bits of rows that are present")
					}
				case presenceBits:
					h.nulls = r.Bytes(typ)
				default:
					r.Skip(typ)
				}
			}, presenceBits)
		case pageEncoders:
			h.encoders = readEncodings(r, typ)
		case pageMetas:
			h.meta = readFirstBytes(r, typ)
		case pageBounds:
			h.bounds = readBounds(r, typ, 1)
		case pageRows:
			h.rows = r.I32(typ)
		default:
			r.Skip(typ)
		}
	}, pageMeta, pageData)
	return h
}

func readDictionaryHeader(r *thrift.Reader) *dictionaryHeader {
	d := new(dictionaryHeader)
	r.Fields("LocalDictionaryChunk", func(id int, typ byte) {
		switch id {
		case dictionaryMeta:
			if !r.Want(typ, thrift.Struct) {
				return
			}
			r.Fields("LocalDictionaryChunkMeta", func(id int, typ byte) {
				switch id {
				case dictionaryEncoders:
					d.encoders = readEncodings(r, typ)
				case dictionaryMetas:
					d.meta = readFirstBytes(r, typ)
				default:
					r.Skip(typ)
				}
			}, dictionaryEncoders, dictionaryMetas)
		case dictionaryData:
			d.data = r.Bytes(typ)
		case dictionaryValues:
			d.values = r.Bytes(typ)
		default:
			r.Skip(typ)
		}
	}, dictionaryMeta, dictionaryData, dictionaryValues)
	return d
}

// parseChunk reads a DataChunk3, which is all of b. Its pages, at most the given number, are in
// [start, end) of the file.
func parseChunk(b []byte, start, end int64, pages int) (c chunk, err error) {
	r := thrift.Reader{In: b}
	var offsets, lengths []int
	r.Fields("DataChunk3", func(id int, typ byte) {
		switch id {
		case chunkPages:
			r.List(typ, func(typ byte) {
				if len(c.pages) == pages {
					r.Fail("more than %d pages", pages)
				}
				if r.Want(typ, thrift.Struct) {
					c.pages = append(c.pages, readPageHeader(&r))
				}
			})
		case chunkPageOffsets:
			offsets = r.I32s(typ)
		case chunkPageLengths:
			lengths = r.I32s(typ)
		case chunkDictionary:
			if r.Want(typ, thrift.Struct) {
				c.dictionary = readDictionaryHeader(&r)
			}
		default:
			r.Skip(typ)
		}
	}, chunkPages, chunkPageOffsets, chunkPageLengths)
	if r.Err == nil && r.At != len(b) {
		r.Fail("%d bytes after the header", len(b)-r.At)
	}
	if r.Err != nil {
		return c, r.Err
	}
	if len(offsets) != len(c.pages) || len(lengths) != len(c.pages) {
		return c, fault.Corruptf("%d offsets and %d lengths of %d pages", len(offsets), len(lengths), len(c.pages))
	}
	at := start
	for i := range c.pages {
		h := &c.pages[i]
		h.offset = start + int64(offsets[i])
		sum := int64(h.data) + int64(h.rowIDs) + int64(h.runs)
		if h.data < 0 || h.rowIDs < 0 || h.runs < 0 || sum != int64(lengths[i]) || h.offset != at || sum > end-at {
			return c,
				fault.Corruptf("page %d: %d bytes (%d of data, %d of row IDs, %d of runs) at byte %d, want byte %d, "+
					"the chunk ends at byte %d",
					i, lengths[i], h.data, h.rowIDs, h.runs, h.offset, at, end)
		}
		at += sum
		if err := h.bounds.check(1); err != nil {
			return c, inside(err, "page %d", i)
		}
	}
	return c, nil
}

func writeEncodings(w *thrift.Writer, id int, list []encoding) {
	w.List(id, thrift.I32, len(list))
	for _, e := range list {
		w.Zigzag(int64(e))
	}
}
