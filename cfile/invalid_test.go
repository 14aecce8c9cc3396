package cfile

import (
	"encoding/binary"
	"errors"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/block"
	"github.com/oribi-db/oribi/internal/compress"
	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/internal/kudupb"
	"github.com/oribi-db/oribi/internal/memtest"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/schema"
)

// int8s returns a PLAIN payload of INT8 values starting at a row.
func int8s(first byte, values ...byte) []byte {
	return append([]byte{byte(len(values)), 0, 0, 0, first, 0, 0, 0}, values...)
}

// keyed writes an index node with the given keys.
func (b *builder) keyed(keys []string, pointers ...BlockPointer) BlockPointer {
	var n nodeBuilder
	for i, p := range pointers {
		n.add([]byte(keys[i]), p)
	}
	payload, _ := n.finish(nil, false)
	p, _, _ := b.writeBlock(payload)
	return p
}

func (b *builder) data(payload []byte) BlockPointer {
	p, _, _ := b.writeBlock(payload)
	return p
}

// Each file has well-formed cblocks and one inconsistency. Reading all of it in every way reports
// the inconsistency.
func TestContradictoryFilesAreRefused(t *testing.T) {
	o := WriterOptions{Type: schema.Int8, Encoding: schema.Plain, Compression: schema.NoCompression}
	none := BlockPointer{}
	rows := []string{"\x00\x00\x00\x00", "\x00\x00\x00\x02", "\x00\x00\x00\x04"}
	for _, c := range []struct {
		name, want string
		make       func(b *builder) *block.Memory
	}{
		{"unreferenced cblock", "belong to no cblock, or to two", func(b *builder) *block.Memory {
			d := b.data(int8s(0, 1, 2))
			b.data(int8s(0, 1, 2))
			return b.finish(o, 2, b.keyed(rows, d), none, none)
		}},
		{"unreferenced cblock at the end", "belong to no cblock", func(b *builder) *block.Memory {
			root := b.keyed(rows, b.data(int8s(0, 1, 2)))
			b.data(int8s(0, 1, 2))
			return b.finish(o, 2, root, none, none)
		}},
		{"trees that differ", "differs from ordinal index", func(b *builder) *block.Memory {
			d, e := b.data(int8s(0, 1, 2)), b.data(int8s(2, 3))
			root := b.keyed(rows, d, e)
			return b.finish(o, 3, root, b.keyed([]string{"\x81"}, d), none)
		}},
		{"row keys of three bytes", "key of 3 bytes", func(b *builder) *block.Memory {
			return b.finish(o, 2, b.keyed([]string{"\x00\x00\x00"}, b.data(int8s(0, 1, 2))), none, none)
		}},
		{"descending row keys", "ordinal", func(b *builder) *block.Memory {
			d, e := b.data(int8s(0, 1, 2)), b.data(int8s(2, 3))
			return b.finish(o, 3, b.keyed([]string{rows[1], rows[0]}, d, e), none, none)
		}},
		{"rows differ from the index", "index has", func(b *builder) *block.Memory {
			return b.finish(o, 3, b.keyed(rows, b.data(int8s(1, 1, 2))), none, none)
		}},
		{"rows missing between cblocks", "row", func(b *builder) *block.Memory {
			d, e := b.data(int8s(0, 1, 2)), b.data(int8s(3, 3))
			return b.finish(o, 4, none, b.keyed([]string{"\x81", "\x83"}, d, e), none)
		}},
		{"rows missing at the end", "row", func(b *builder) *block.Memory {
			return b.finish(o, 4, none, b.keyed([]string{"\x81"}, b.data(int8s(0, 1, 2))), none)
		}},
		{"descending values", "follows", func(b *builder) *block.Memory {
			return b.finish(o, 2, none, b.keyed([]string{"\x81"}, b.data(int8s(0, 2, 1))), none)
		}},
		{"descending keys", "follows", func(b *builder) *block.Memory {
			d, e := b.data(int8s(0, 1, 2)), b.data(int8s(2, 3))
			return b.finish(o, 3, none, b.keyed([]string{"\x83", "\x81"}, d, e), none)
		}},
		{"a key above its value", "between values", func(b *builder) *block.Memory {
			d, e := b.data(int8s(0, 1, 2)), b.data(int8s(2, 3))
			return b.finish(o, 3, none, b.keyed([]string{"\x81", "\x84"}, d, e), none)
		}},
		{"a key below the values before", "between values", func(b *builder) *block.Memory {
			d, e := b.data(int8s(0, 1, 2)), b.data(int8s(2, 3))
			return b.finish(o, 3, none, b.keyed([]string{"\x81", "\x81"}, d, e), none)
		}},
		{"too few values", "rows", func(b *builder) *block.Memory {
			return b.finish(o, 1, b.keyed(rows, b.data(int8s(0))), none, none)
		}},
		{"too short for a checksum", "too short for a checksum", func(b *builder) *block.Memory {
			d := b.data(int8s(0, 1, 2))
			return b.finish(o, 2, b.keyed(rows, BlockPointer{d.Offset, 3}), none, none)
		}},
		{"index in the header", "want a cblock within", func(b *builder) *block.Memory {
			b.data(int8s(0, 1, 2))
			return b.finish(o, 2, BlockPointer{4, 12}, none, none)
		}},
		{"value index in the header", "want a cblock within", func(b *builder) *block.Memory {
			return b.finish(o, 2, b.keyed(rows, b.data(int8s(0, 1, 2))), BlockPointer{4, 12}, none)
		}},
		{"dictionary in the footer", "want a cblock within", func(b *builder) *block.Memory {
			return b.finish(o, 2, b.keyed(rows, b.data(int8s(0, 1, 2))), none, BlockPointer{40, 1 << 20})
		}},
		{"bitmap of cells damaged", "presence", func(b *builder) *block.Memory {
			ao := o
			ao.Array, ao.Nullable = true, true
			return b.finish(ao, 4,
				b.keyed(rows, b.data(must.Hex(t, "0304020601090302000000000001000200000300000000000000010203"))),
				none, none)
		}},
		{"malformed zone map pointer", "pair oribi.zonemap", func(b *builder) *block.Memory {
			return b.finishZone(o, 2, b.keyed(rows, b.data(int8s(0, 1, 2))), []byte{0xff})
		}},
	} {
		b := newBuilder(compress.None)
		err := readAll(c.make(b))
		if !errors.Is(err, fault.ErrCorrupt) || !strings.Contains(err.Error(), c.want) ||
			!strings.HasPrefix(err.Error(), "cfile: block ") {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
	}
}

// finishZone ends a file whose footer has a pair for the zone map with the given value.
func (b *builder) finishZone(o WriterOptions, rows int64, root BlockPointer, value []byte) *block.Memory {
	footer := newFooter(&o, rows)
	footer.PosidxInfo = &kudupb.BTreeInfoPB{RootBlock: root.message()}
	footer.Metadata = pairMessages([]Pair{{zoneMapKey, value}})
	tail, _ := appendFooter(nil, footer, true)
	_ = b.write(tail)
	return &b.out
}

// Zone maps in a valid cblock whose content is malformed or disagrees with the values. crc is
// replaced by the checksum of the data cblock.
func TestInvalidZoneMapsAreRefused(t *testing.T) {
	const head = "4f525a4d 01000000 01000000 crc 02000000 00000000"
	for name, text := range map[string]string{
		"empty":         "",
		"wrong magic":   "4f525a4e 01000000 00000000",
		"byte 7":        "4f525a4d 01000001 01000000",
		"entry missing": "4f525a4d 01000000 01000000",
		"entries of more blocks": "4f525a4d 01000000 02000000 crc 02000000 00000000 03010100 8182 crc " +
			"02000000 00000000 03010100 8182",
		"unknown flag":           head + "23010100 8182",
		"byte 15":                head + "03010101 8182",
		"bound too long":         head + "03210100" + strings.Repeat("81", 33) + "82",
		"bound cut short":        head + "03010100 81",
		"bound of a wrong width": head + "03020100 810082",
		"bound without its flag": head + "02010100 8182",
		"no bounds":              head + "00000000",
		"maximum alone":          head + "02000100 82",
		"bounds crossed":         head + "03010100 8281",
		"minimum too low":        head + "03010100 8082",
		"maximum too high":       head + "03010100 8183",
		"more NULLs than rows":   "4f525a4d 01000000 01000000 crc 02000000 03000000 03010100 8182",
		"rows missing":           "4f525a4d 01000000 01000000 crc 01000000 00000000 03010100 8182",
		"rows too many":          "4f525a4d 01000000 01000000 crc 03000000 00000000 03010100 8182",
		"trailing bytes":         head + "03010100 818200",
		"another cblock's":       "4f525a4d 01000000 01000000 01020304 02000000 00000000 03010100 8182",
		"good":                   head + "03010100 8182",
	} {
		b := newBuilder(compress.None)
		d, crc, _ := b.writeBlock(int8s(0, 1, 2))
		sum := make([]byte, 0, 8)
		for i := range 4 {
			sum = append(sum, "0123456789abcdef"[crc>>(8*i+4)&15], "0123456789abcdef"[crc>>(8*i)&15])
		}
		zone := must.Hex(t, strings.ReplaceAll(strings.ReplaceAll(text, "crc", string(sum)), " ", ""))
		root := b.keyed([]string{"\x00\x00\x00\x00"}, d)
		z, _, _ := b.writeBlock(zone)
		pointer := must.Get(proto.Marshal(z.message()))(t)
		o := WriterOptions{Type: schema.Int8, Encoding: schema.Plain, Compression: schema.NoCompression}
		err := readAll(b.finishZone(o, 2, root, pointer))
		if name == "good" && err != nil || name != "good" && !errors.Is(err, fault.ErrCorrupt) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Compressed cblocks too short for their length fields.
func TestShortFramesAreRefused(t *testing.T) {
	for version, lengths := range map[int]int{1: frameLenV1, 2: frameLenV2} {
		for n := 1; n < lengths; n++ {
			r := &Reader{src: &block.Memory{Bytes: make([]byte, n)}, codec: compress.LZ4, version: version,
				dataEnd: int64(n)}
			must.Fail(t, must.Err2(r.readBlock(BlockPointer{0, int32(n)}, nil)), fault.ErrCorrupt, version, n)
		}
	}
	r := &Reader{src: &block.Memory{Bytes: make([]byte, 9)}, dataStart: 2, dataEnd: 9}
	for _, p := range []BlockPointer{{1, 2}, {2, 0}, {2, -1}, {2, 8}, {9, 1}, {-1, 4}, {1<<63 - 1, 4}} {
		must.Fail(t, must.Err2(r.readBlock(p, nil)), fault.ErrCorrupt, p)
	}
}

// A cblock that says how long it is uncompressed, with a length that no cblock has: nothing is
// allocated for it.
func TestLongPayloadsAreRefused(t *testing.T) {
	for _, size := range []uint32{maxPayload + 1, 1 << 31, 1<<32 - 1} {
		for version, header := range map[int][]byte{1: {4, 0, 0, 0}, 2: nil} {
			form := append(binary.LittleEndian.AppendUint32(header, size), 1, 2, 3, 4)
			r := &Reader{src: &block.Memory{Bytes: form}, codec: compress.LZ4, version: version,
				dataEnd: int64(len(form))}
			var err error
			n := memtest.Allocated(func() { _, _, err = r.readBlock(BlockPointer{0, int32(len(form))}, nil) })
			if !errors.Is(err, fault.ErrCorrupt) || !strings.Contains(err.Error(), "uncompressed length") || n > 1<<20 {
				t.Errorf("version %d, %d bytes: %v, %d bytes allocated", version, size, err, n)
			}
		}
	}
}

// Types that columns of tables do not have, in the footer's message.
func TestFootersOfOtherTypesAreUnsupported(t *testing.T) {
	for _, typ := range []int32{-1, int32(kudupb.DataType_IS_DELETED), int32(schema.Array), 22,
		int32(kudupb.DataType_UNKNOWN_DATA)} {
		footer := newFooter(&WriterOptions{Type: schema.Int32, Encoding: schema.Plain,
			Compression: schema.NoCompression}, 3)
		footer.DataType = &typ
		r := &Reader{src: &block.Memory{}}
		must.Fail(t, r.takeFooter(footer), fault.ErrUnsupported, typ)
	}
}

// The file became shorter after it was opened.
func TestShrunkFileIsCorrupt(t *testing.T) {
	src := writeAll(t, WriterOptions{Type: schema.Int8, PositionalIndex: true},
		vectorOf(schema.Int8, [][]byte{{1}, {2}}))
	r := open(t, src, nil)
	src.Bytes = src.Bytes[:30]
	if _, err := r.Cell(0); !errors.Is(err, fault.ErrCorrupt) || !strings.Contains(err.Error(), "shorter than it was") {
		t.Error(err)
	}
}

func TestMixedHeaderAndFooterVersionsAreRefused(t *testing.T) {
	src := writeAll(t, WriterOptions{Type: schema.Int8, PositionalIndex: true, NoChecksums: true},
		vectorOf(schema.Int8, nil))
	for version, at := range map[string]int{magicV1: 0, magicV2: len(src.Bytes) - preludeLen} {
		mixed := &block.Memory{Bytes: slices.Clone(src.Bytes)}
		copy(mixed.Bytes[at:], version)
		if at > 0 {
			copy(mixed.Bytes, magicV1)
		}
		if _, err := Open(mixed, ReaderOptions{}); !errors.Is(err, fault.ErrCorrupt) ||
			!strings.Contains(err.Error(), "header: magic") {
			t.Errorf("%s at byte %d: %v", version, at, err)
		}
	}
}

func TestSeekInNullableFileIsUnsupported(t *testing.T) {
	b := newBuilder(compress.None)
	o := WriterOptions{Type: schema.Int8, Encoding: schema.Plain, Compression: schema.NoCompression, Nullable: true}
	d := b.data(append([]byte{2, 2, 4, 1}, int8s(0, 1, 2)...))
	r := open(t, b.finish(o, 2, BlockPointer{}, b.keyed([]string{"\x81"}, d), BlockPointer{}), nil)
	must.Fail(t, must.Err2(r.Seek([]byte{1})), fault.ErrUnsupported)
	if pairs, inHeader := r.Pairs(); len(pairs) != 0 || inHeader != 0 {
		t.Errorf("pairs %v, %d in the header", pairs, inHeader)
	}
}

// Of two large cblocks only the newer one is kept.
func TestColumnReaderReleasesLargeCblocks(t *testing.T) {
	v := batch.NewVector(schema.Int64, 400_000)
	for i := range batch.Values[int64](v) {
		batch.Values[int64](v)[i] = int64(i)
	}
	o := WriterOptions{Type: schema.Int64, Encoding: schema.Plain, PositionalIndex: true, BlockBytes: 1 << 20}
	c := open(t, writeAll(t, o, v), nil).NewColumnReader()
	got := &batch.Vector{Type: schema.Int64}
	for at := 0; at < v.Len; at += 100_000 {
		must.Do(t, must.Err(c.ReadVector(batch.Ordinal(at), 100_000, got)), at)
		must.Equal(t, batch.Values[int64](got)[7], int64(at+7), at)
		if c.held[1].b != nil && c.held[1].b.bytes > maxHeld {
			t.Fatalf("a cblock of %d bytes is held", c.held[1].b.bytes)
		}
	}
}

// uses lists the ways to read a file of sorted INT64 values with both indexes.
var uses = map[string]func(r *Reader) error{
	"cell": func(r *Reader) error {
		_, err := r.Cell(3)
		return err
	},
	"seek": func(r *Reader) error {
		_, _, err := r.Seek(make([]byte, 8))
		return err
	},
	"seek without keys in memory": func(r *Reader) error {
		r.keyLimitForTest = 1
		_, _, err := r.Seek(make([]byte, 8))
		return err
	},
	"select": func(r *Reader) error {
		p := &batch.Predicate{Type: schema.Int64, Op: batch.In, Values: [][]byte{make([]byte, 8)}}
		if err := p.Prepare(); err != nil {
			return err
		}
		sel := batch.MakeBitmap(2000)
		sel.SetRange(0, 2000)
		_, err := r.NewColumnReader().Select(0, 2000, p, sel)
		return err
	},
	"vector": func(r *Reader) error {
		_, err := r.NewColumnReader().ReadVector(100, 3000, &batch.Vector{Type: schema.Int64})
		return err
	},
	"blocks": func(r *Reader) error {
		n, err := r.DataBlocks()
		if err != nil {
			return err
		}
		i, err := r.FindData([]byte{0x80})
		for i = max(i, 0); i < n && err == nil; i++ {
			_, err = cellsOf(r, i)
		}
		return err
	},
	"single cells of blocks": func(r *Reader) error {
		n, err := r.DataBlocks()
		for i := 0; i < n && err == nil; i++ {
			_, err = singleCells(r, i)
		}
		return err
	},
	"find": func(r *Reader) error {
		p, ok, err := r.FindBlock([]byte{0xff})
		if err == nil && ok {
			_, err = r.ReadBlock(p, asPayload)
		}
		return err
	},
	"verify": func(r *Reader) error {
		r.keyLimitForTest = 1
		return r.Verify()
	},
}

// The error of any failing read is returned unchanged, not as ErrCorrupt.
func TestEveryReadErrorIsReturned(t *testing.T) {
	v := batch.NewVector(schema.Int64, 3000)
	for i := range batch.Values[int64](v) {
		batch.Values[int64](v)[i] = int64(i)
	}
	for _, o := range []WriterOptions{
		{Type: schema.Int64, BlockBytes: 2048, IndexBlockBytes: 60, PositionalIndex: true, ValueIndex: true},
		{Type: schema.Int64, Encoding: schema.RLE, BlockBytes: 2048, IndexBlockBytes: 60, ValueIndex: true,
			Exact: true},
	} {
		src := writeSmall(t, o, v)
		for name, use := range uses {
			for after := 0; ; after++ {
				r, err := Open(&failingSource{src, after}, ReaderOptions{})
				if err == nil {
					err = use(r)
				}
				if err == nil {
					break
				}
				if !errors.Is(err, errIO) || errors.Is(err, fault.ErrCorrupt) || after > 10_000 {
					t.Fatalf("%s after %d reads: %v", name, after, err)
				}
			}
		}
	}
}

// writeSmall appends a few rows at a time, so that no cblock exceeds its size by much.
func writeSmall(t *testing.T, o WriterOptions, v *batch.Vector) *block.Memory {
	out := &block.Memory{Number: 17}
	w := must.Get(NewWriter(out, o))(t)
	for i := 0; i < v.Len; i += 50 {
		must.Do(t, w.appendRange(v, i, min(i+50, v.Len)))
	}
	must.Do(t, w.Finish())
	return out
}

// In a file without checksums, only decoding detects this damage.
func TestDamageInsideChunksIsReported(t *testing.T) {
	v := batch.NewVector(schema.Int64, 3000)
	for i := range batch.Values[int64](v) {
		batch.Values[int64](v)[i] = int64(i)
	}
	src := writeSmall(t, WriterOptions{Type: schema.Int64, PositionalIndex: true, ValueIndex: true,
		NoChecksums: true}, v)
	p := must.Get(open(t, src, nil).BlockPointers())(t)
	for i := p[0].Offset + 24; i < p[0].end(); i++ { // all but the header and the length of the first chunk
		if i < p[0].Offset+200 {
			src.Bytes[i] = 0xff
		}
	}
	for name, use := range uses {
		if name == "find" || name == "select" {
			continue // these do not decode values
		}
		if err := use(open(t, src, nil)); !errors.Is(err, fault.ErrCorrupt) ||
			!strings.HasPrefix(err.Error(), "cfile: block ") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Codes beyond the dictionary are an error only where they are decoded.
func TestCodesBeyondTheDictionaryAreReported(t *testing.T) {
	b := newBuilder(compress.None)
	codes := must.Hex(t, "01 00 00 00 00 00 00 00 04 00 00 00 21 00 00 00 08 00 00 00 01 00 00 00 00 00 00 "+
		"09 80 02 00 00 00 00 00 00 00")
	d := b.data(codes)
	root := b.keyed([]string{"\x00\x00\x00\x00"}, d)
	words := must.Get(plainBinary([]string{"a"}))(t)
	dict := b.data(words)
	o := WriterOptions{Type: schema.String, Encoding: schema.Dictionary, Compression: schema.NoCompression}
	r := open(t, b.finish(o, 4, root, BlockPointer{}, dict), nil)
	p := &batch.Predicate{Type: schema.String, Op: batch.In, Values: [][]byte{[]byte("b")}}
	sel := batch.MakeBitmap(4)
	sel.SetRange(0, 4)
	if handled, err := r.NewColumnReader().Select(0, 4, p, sel); err != nil || !handled || sel.Any() {
		t.Errorf("no word matches, want no error: handled %v, %v", handled, err)
	}
	words2 := must.Get(plainBinary([]string{"a", "b"}))(t)
	b = newBuilder(compress.None)
	codes[28] = 0x80 // code bits 0 to 7 come from this literal and the next
	codes[29] = 0x06
	codes[30] = 0x04
	d = b.data(codes)
	root = b.keyed([]string{"\x00\x00\x00\x00"}, d)
	dict = b.data(words2)
	r = open(t, b.finish(o, 4, root, BlockPointer{}, dict), nil)
	p = &batch.Predicate{Type: schema.String, Op: batch.Eq, Values: [][]byte{[]byte("b")}}
	sel.SetRange(0, 4)
	must.Fail(t, must.Err(r.NewColumnReader().Select(0, 4, p, sel)), fault.ErrCorrupt)
}

// Max is above all values if it was rounded up, so no value equals it.
func TestZoneMapWithRoundedMaximum(t *testing.T) {
	z := zoneBuilder{t: schema.Binary}
	long := strings.Repeat("a", 40)
	z.add(vectorOf(schema.Binary, [][]byte{[]byte(long)}), 0, 1)
	z.close(1)
	m, err := parseZoneMap(z.finish(nil), schema.Binary, 1, 1)
	must.Do(t, err, m)
	must.Equal(t, m.Entries[0].MaxRounded, true, m)
	rounded := m.Entries[0].Max
	for op, want := range map[batch.Operator]bool{batch.Eq: false, batch.Ge: false, batch.Gt: false,
		batch.Lt: true, batch.Ne: true, batch.InFilter: true} {
		p := &batch.Predicate{Type: schema.Binary, Op: op, Values: [][]byte{rounded}}
		must.Equal(t, m.MayMatch(0, p), want, op)
	}
	nulls := ZoneEntry{Rows: 3, Nulls: 3}
	for op := batch.Eq; op <= batch.InFilter; op++ {
		if got := nulls.mayMatch(schema.Int8,
			&batch.Predicate{Type: schema.Int8, Op: op, Values: [][]byte{{1}}}); got != (op == batch.IsNull) {
			t.Errorf("%v of NULLs: %v", op, got)
		}
	}
}
