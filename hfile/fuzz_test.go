package hfile

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"math"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/oribi-db/oribi/block"
	"github.com/oribi-db/oribi/cache"
	"github.com/oribi-db/oribi/internal/fuzztest"
	"github.com/oribi-db/oribi/internal/must"
)

// rawFile builds a file from payloads as they are, with valid checksums.
type rawFile struct {
	bytes  []byte
	codec  Codec
	levels int
	root   []byte // root index; its entries are counted by rootN
	rootN  int
	meta   []byte
	metaN  int
	info   []InfoEntry
	cells  int

	compress *compressor
}

// block appends a block and returns its offset and size.
func (f *rawFile) block(magic string, stored []byte, uncompressed int) (offset int64, size int32) {
	offset = int64(len(f.bytes))
	b := append([]byte(magic), make([]byte, headerLen-magicLen)...)
	binary.BigEndian.PutUint32(b[headerOnDiskOff:], uint32(len(stored)+checksumLen*(1+(headerLen+len(stored)-1)/16384)))
	binary.BigEndian.PutUint32(b[headerSizeOff:], uint32(uncompressed))
	binary.BigEndian.PutUint64(b[headerPrevOff:], math.MaxUint64)
	b[headerChecksumOff] = byte(ChecksumCRC32C)
	binary.BigEndian.PutUint32(b[headerBytesPerOff:], 16384)
	binary.BigEndian.PutUint32(b[headerDataSizeOff:], uint32(headerLen+len(stored)))
	b = sealed(append(b, stored...))
	f.bytes = append(f.bytes, b...)
	return offset, int32(len(b))
}

// sealed appends the checksums to b, a header and a payload, as the header asks for them.
func sealed(b []byte) []byte {
	per := int(int32(binary.BigEndian.Uint32(b[headerBytesPerOff:])))
	sums := []byte{}
	for at := 0; at < len(b) && per > 0; at += per {
		sums = binary.BigEndian.AppendUint32(sums, Checksum(b[headerChecksumOff]).of(b[at:min(at+per, len(b))]))
	}
	return append(b, sums...)
}

// plain appends a block that is not compressed.
func (f *rawFile) plain(magic string, payload []byte) (offset int64, size int32) {
	return f.block(magic, payload, len(payload))
}

// appendIndexEntry appends an entry of a root index.
func appendIndexEntry(dst []byte, offset int64, size int32, key []byte) []byte {
	dst = binary.BigEndian.AppendUint64(dst, uint64(offset))
	dst = binary.BigEndian.AppendUint32(dst, uint32(size))
	dst = appendVint(dst, int64(len(key)))
	return append(dst, key...)
}

// data appends a data block, and an entry for it with the given key to the root index.
func (f *rawFile) data(magic string, payload, key []byte) {
	offset, size := f.plain(magic, payload)
	f.root = appendIndexEntry(f.root, offset, size, key)
	f.rootN++
}

// infoPayload returns the payload of file info.
func infoPayload(entries []InfoEntry) []byte {
	var message []byte
	for _, e := range entries {
		pair := protowire.AppendTag(nil, pairKeyField, protowire.BytesType)
		pair = protowire.AppendBytes(pair, e.Key)
		pair = protowire.AppendTag(pair, pairValField, protowire.BytesType)
		pair = protowire.AppendBytes(pair, e.Value)
		message = protowire.AppendTag(message, infoPairField, protowire.BytesType)
		message = protowire.AppendBytes(message, pair)
	}
	return protowire.AppendBytes([]byte(infoMagic), message)
}

// message returns the message of the trailer.
func (f *rawFile) message(load, info int64) []byte {
	var m []byte
	add := func(field protowire.Number, v int64) {
		m = protowire.AppendVarint(protowire.AppendTag(m, field, protowire.VarintType), uint64(v))
	}
	add(trailerInfoOff, info)
	add(trailerLoadOff, load)
	add(trailerIndexN, int64(f.rootN))
	add(trailerMetaN, int64(f.metaN))
	add(trailerCells, int64(f.cells))
	add(trailerLevels, int64(max(f.levels, 1)))
	add(trailerCodec, int64(f.codec))
	return m
}

// finish appends the rest of the file. info and message replace the payload of file info and the
// trailer's message with its length.
func (f *rawFile) finish(info, message []byte) []byte {
	if info == nil {
		info = infoPayload(f.info)
	}
	load, _ := f.stored(magicRootIndex, f.root)
	f.stored(magicRootIndex, f.meta)
	infoAt, _ := f.stored(magicFileInfo, info)
	if message == nil {
		message = protowire.AppendBytes(nil, f.message(load, infoAt))
	}
	trailer := make([]byte, trailerLen3)
	copy(trailer, magicTrailer)
	copy(trailer[magicLen:trailerLen3-versionLen], message)
	copy(trailer[trailerLen3-versionLen:], []byte{3, 0, 0, 3})
	return append(f.bytes, trailer...)
}

// stored appends a block in the codec of the file.
func (f *rawFile) stored(magic string, payload []byte) (offset int64, size int32) {
	if f.codec == None {
		return f.plain(magic, payload)
	}
	if f.compress == nil {
		c, err := newCompressor(f.codec, defaultCodecBuffer)
		if err != nil {
			panic(err)
		}
		f.compress = &c
	}
	b, err := f.compress.pack(payload)
	if err != nil {
		panic(err)
	}
	return f.block(magic, b[headerLen:], len(payload))
}

var vintInfo = []InfoEntry{
	{[]byte(infoKeyValueVersion), []byte{0, 0, 0, 1}},
	{[]byte(infoMaxMemstoreTS), []byte{0x7f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff}},
}

// exercise reads the file in data in all ways. Errors must be ErrCorrupt or ErrUnsupported. In a
// file that Verify accepts there are none, every key is found, and seeks are the same with a cache.
func exercise(t *testing.T, data []byte) {
	const limit = 1 << 20
	typed := func(err error) bool {
		if err != nil && !errors.Is(err, ErrCorrupt) && !errors.Is(err, ErrUnsupported) {
			t.Fatalf("neither ErrCorrupt nor ErrUnsupported: %v", err)
		}
		return err == nil
	}
	src := &block.Memory{Number: 1, Bytes: data}
	r, err := Open(src, ReaderOptions{MaxBlockBytes: limit})
	if !typed(err) {
		return
	}
	cached := must.Get(Open(src, ReaderOptions{MaxBlockBytes: limit, Cache: cache.New(8 << 20)}))(t)
	verified := typed(r.Verify(context.Background()))
	var keys []Key
	n, whole := 0, true
	for c, err := range r.Cells() {
		if whole = typed(err); !whole {
			break
		}
		if n++; n < 100 || n%1000 == 0 && n < 20000 {
			keys = append(keys, c.Clone().Key)
		}
		for _, err := range Tags(c.Tags) {
			typed(err)
		}
	}
	if verified && !whole {
		t.Fatal("verified, but a scan fails")
	}
	keys = append(keys, Key{}, FirstOnRow([]byte("row")), FirstOnRow([]byte{0xff, 0xff}))
	for _, view := range []View{ViewHBase, ViewHudi} {
		a, b := r.NewCursor(CursorOptions{View: view}), cached.NewCursor(CursorOptions{View: view})
		for i, k := range keys {
			code, err := a.SeekTo(k)
			code2, err2 := b.SeekTo(k)
			if verified && ((err == nil) != (err2 == nil) || code != code2 || a.Cell().Compare(b.Cell().Key) != 0) {
				t.Fatalf("SeekTo %v: %d, %v, with a cache %d, %v", k, code, err, code2, err2)
			}
			if !typed(err) || !typed(err2) {
				break
			}
			if verified && i < len(keys)-3 && (code != Found || !bytes.Equal(a.Cell().Row, k.Row)) {
				t.Fatalf("SeekTo %v, which is in the file: %d, %v", k, code, a.Cell())
			}
			ok, err := a.SeekBefore(k)
			ok2, err2 := b.SeekBefore(k)
			if verified && ((err == nil) != (err2 == nil) || ok != ok2 || a.Cell().Compare(b.Cell().Key) != 0) {
				t.Fatalf("SeekBefore %v: %t, %v, with a cache %t, %v", k, ok, err, ok2, err2)
			}
			if !typed(err) || !typed(err2) {
				break
			}
		}
	}
	for _, k := range keys[:min(len(keys)-3, 3)] {
		cells, err := cached.Get(k.Row)
		if typed(err) && verified && len(cells) == 0 {
			t.Fatalf("Get %q, which is in the file: nothing", k.Row)
		}
		cells, err = r.GetColumn(k.Row, k.Family, k.Qualifier)
		if typed(err) && verified && len(cells) == 0 {
			t.Fatalf("GetColumn %v, which is in the file: nothing", k)
		}
	}
	for _, err := range r.Blocks() {
		typed(err)
	}
	for _, err := range r.IndexEntries() {
		typed(err)
	}
	_, err = r.MidKey()
	typed(err)
	for i, name := range r.MetaNames() {
		if i < 10 {
			_, _, err := r.Meta(name)
			typed(err)
		}
	}
}

var (
	seedKey = appendKey(nil, Key{Row: []byte("row"), Family: []byte("f"),
		Qualifier: []byte("q"), Timestamp: 5, Type: Put})
	seedCell = append(append([]byte{0, 0, 0, byte(len(seedKey)), 0, 0, 0, 3}, seedKey...), "val\x00"...)
)

// oneCell returns a file of one cell that is not finished.
func oneCell() *rawFile {
	f := &rawFile{codec: None, info: vintInfo, cells: 1}
	f.data(magicData, seedCell, seedKey)
	return f
}

// FuzzTrailer fuzzes the trailer from its message on.
func FuzzTrailer(f *testing.F) {
	var end int64
	{
		file := oneCell()
		end = int64(len(file.finish(nil, nil))) - trailerLen3
	}
	file := oneCell()
	load := int64(len(file.bytes))
	info := end - int64(headerLen+checksumLen+len(infoPayload(vintInfo)))
	message := protowire.AppendBytes(nil, file.message(load, info))
	f.Add(message)
	f.Add(protowire.AppendBytes(nil,
		protowire.AppendString(protowire.AppendTag(file.message(load, info), trailerOrder, protowire.BytesType),
			comparatorHudi)))
	fuzztest.Run(f, func(t *testing.T, message []byte) {
		if len(message) > 0 {
			exercise(t, oneCell().finish(nil, message))
		}
	})
}

// FuzzBlock fuzzes the header after the type, and the stored payload, of a meta block in each
// codec.
func FuzzBlock(f *testing.F) {
	payload := bytes.Repeat([]byte("payload "), 20)
	for _, codec := range []Codec{None, GZ, Snappy, LZ4, Zstd} {
		file := &rawFile{codec: codec}
		_, size := file.stored(magicMeta, payload)
		f.Add(uint8(codec), file.bytes[magicLen:headerLen], file.bytes[headerLen:size-checksumLen])
	}
	fuzztest.Run(f, func(t *testing.T, codec uint8, header, stored []byte) {
		if len(header) != headerLen-magicLen {
			return
		}
		file := &rawFile{codec: Codec(codec)}
		switch file.codec {
		case None, GZ, Snappy, LZ4, Zstd:
		default:
			return
		}
		file.bytes = sealed(append(append([]byte(magicMeta), header...), stored...))
		file.meta = appendIndexEntry(nil, 0, int32(len(file.bytes)), []byte("m"))
		file.metaN = 1
		exercise(t, file.finish(nil, nil))
	})
}

// fuzzCells fuzzes the payload of a data block, with and without tags, a dictionary, and sequence
// IDs.
func fuzzCells(f *testing.F, e Encoding) {
	tag := AppendTag(nil, Tag{7, []byte("tag")})
	for flags := range uint8(8) {
		enc := newCellEncoder(&WriterOptions{Encoding: e, OmitSequences: flags&1 == 0, Tags: flags&2 != 0,
			CompressTags: flags&4 != 0, BlockBytes: 1024})
		var previous []byte
		for i := range 40 {
			k := Key{Row: []byte{'r', byte('a' + i/10)}, Family: []byte("f"), Qualifier: []byte{'q', byte('a' + i/2%5)},
				Timestamp: int64(1000 - i), Type: Put}
			c := Cell{Key: k, Value: []byte("value")}
			if flags&1 != 0 {
				c.Sequence = int64(i * 20)
			}
			if flags&2 != 0 {
				c.Tags = tag
			}
			key := appendKey(nil, k)
			enc.add(&c, key, previous)
			previous = key
		}
		f.Add(flags, enc.finish()[headerLen:])
	}
	fuzztest.Run(f, func(t *testing.T, flags uint8, payload []byte) {
		file := &rawFile{codec: None, cells: 40}
		if flags&1 != 0 {
			file.info = append(file.info, vintInfo...)
		}
		if flags&2 != 0 {
			file.info = append(file.info, InfoEntry{[]byte(infoMaxTagsLen), []byte{0, 0, 0, 9}})
		}
		if flags&4 != 0 {
			file.info = append(file.info, InfoEntry{[]byte(infoTagsCompressed), []byte{0xff}})
		}
		magic := magicData
		if e != EncodingNone {
			file.info = append(file.info, InfoEntry{[]byte(infoDataEncoding), []byte(e.String())})
			magic = magicEncodedData
		}
		// The key sorts before all others, so that every first cell fits.
		file.data(magic, payload, appendKey(nil, FirstOnRow(nil)))
		exercise(t, file.finish(nil, nil))
	})
}

func FuzzPlainCells(f *testing.F)      { fuzzCells(f, EncodingNone) }
func FuzzPrefixCells(f *testing.F)     { fuzzCells(f, EncodingPrefix) }
func FuzzDiffCells(f *testing.F)       { fuzzCells(f, EncodingDiff) }
func FuzzFastDiffCells(f *testing.F)   { fuzzCells(f, EncodingFastDiff) }
func FuzzRowIndexV1Cells(f *testing.F) { fuzzCells(f, EncodingRowIndexV1) }

// FuzzIndex fuzzes the payloads of a root, an intermediate, and a leaf block, after two data
// blocks.
func FuzzIndex(f *testing.F) {
	two := func() *rawFile {
		file := oneCell()
		file.data(magicData, seedCell, seedKey)
		file.cells = 2
		return file
	}
	start := int64(len(two().bytes))
	half := int32(start / 2)
	lower := func(entries ...[]byte) []byte {
		b := binary.BigEndian.AppendUint32(nil, uint32(len(entries)))
		n := 0
		for _, e := range entries {
			b = binary.BigEndian.AppendUint32(b, uint32(n))
			n += len(e)
		}
		b = binary.BigEndian.AppendUint32(b, uint32(n))
		return append(b, bytes.Join(entries, nil)...)
	}
	entry := func(offset int64, size int32) []byte {
		b := binary.BigEndian.AppendUint64(nil, uint64(offset))
		return append(binary.BigEndian.AppendUint32(b, uint32(size)), seedKey...)
	}
	leaf := lower(entry(0, half), entry(int64(half), half))
	leafSize := int32(headerLen + len(leaf) + checksumLen)
	inner := lower(entry(start, leafSize))
	innerSize := int32(headerLen + len(inner) + checksumLen)
	f.Add(uint8(1), uint8(2), two().root, inner, leaf)
	f.Add(uint8(2), uint8(1), appendIndexEntry(nil, start, leafSize, seedKey), inner, leaf)
	f.Add(uint8(3), uint8(1), appendIndexEntry(nil, start+int64(leafSize), innerSize, seedKey), inner, leaf)
	fuzztest.Run(f, func(t *testing.T, levels, n uint8, root, inner, leaf []byte) {
		file := two()
		file.levels, file.rootN, file.root = int(levels), int(n), root
		if levels > 1 {
			file.plain(magicLeafIndex, leaf)
		}
		if levels > 2 {
			file.plain(magicInnerIndex, inner)
		}
		exercise(t, file.finish(nil, nil))
	})
}

// FuzzFileInfo fuzzes the payload of file info.
func FuzzFileInfo(f *testing.F) {
	f.Add(infoPayload(vintInfo))
	f.Add(infoPayload([]InfoEntry{{[]byte(infoLastKey), seedKey}, {[]byte(infoTagsCompressed), []byte{0xff}},
		{[]byte(infoMaxTagsLen), []byte{0, 0, 0, 0}},
		{[]byte(infoDataEncoding), []byte("DIFF")}, {[]byte(infoBloomKind), []byte("ROW")}}))
	fuzztest.Run(f, func(t *testing.T, payload []byte) {
		if payload != nil {
			exercise(t, oneCell().finish(payload, nil))
		}
	})
}

// FuzzTags fuzzes tags, plain and as a dictionary expands them.
func FuzzTags(f *testing.F) {
	f.Add(AppendTag(AppendTag(nil, Tag{8, []byte("ab")}), Tag{9, nil}),
		[]byte("\xff\x03\x08ab\x00\x00\xff\x01\x09"), uint16(13))
	fuzztest.Run(f, func(t *testing.T, plain, packed []byte, n uint16) {
		var again []byte
		valid := true
		for tag, err := range Tags(plain) {
			if valid = err == nil; valid {
				again = AppendTag(again, tag)
			} else if !errors.Is(err, ErrCorrupt) {
				t.Fatal(err)
			}
		}
		if valid && !bytes.Equal(again, plain) {
			t.Fatalf("%x, read and written %x", plain, again)
		}
		var d tagDictionary
		b, p := d.expand(nil, packed, 0, int(n))
		if p > len(packed) || p > 0 && (len(b) != int(n) || !checkTags(b)) {
			t.Fatalf("%d bytes, want %d, up to %d of %d", len(b), n, p, len(packed))
		}
	})
}
