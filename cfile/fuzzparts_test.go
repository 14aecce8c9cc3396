package cfile

import (
	"encoding/binary"
	"math/rand/v2"
	"slices"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/block"
	"github.com/oribi-db/oribi/internal/compress"
	"github.com/oribi-db/oribi/internal/encoding"
	"github.com/oribi-db/oribi/internal/fuzztest"
	"github.com/oribi-db/oribi/internal/kudupb"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/schema"
)

// The fuzz targets in this file put the fuzzer's bytes into one part of an otherwise valid file and
// recompute its checksums. So the bytes reach the code that runs after the other parts were
// checked.

// FuzzHeaderFooter fuzzes the two messages. If the footer is accepted, the file is read in every
// way.
func FuzzHeaderFooter(f *testing.F) {
	value := func(m proto.Message) []byte {
		return must.Get(proto.Marshal(m))(f)
	}
	pairs := []Pair{{"a", []byte("b")}}
	for _, o := range []WriterOptions{
		{Type: schema.Int8, Encoding: schema.Plain, Compression: schema.NoCompression},
		{Type: schema.Uint8, Encoding: schema.Plain, Compression: schema.LZ4, Nullable: true},
		{Type: schema.Int8, Encoding: schema.RLE, Compression: schema.NoCompression, Array: true},
	} {
		for _, header := range []*kudupb.CFileHeaderPB{{}, {Metadata: pairMessages(pairs)}} {
			start := int64(preludeLen + len(value(header)) + checksumLen)
			footer := newFooter(&o, 3)
			footer.Metadata = pairMessages(pairs)
			footer.PosidxInfo = &kudupb.BTreeInfoPB{RootBlock: BlockPointer{start + 15, 23}.message()}
			f.Add(value(header), value(footer))
			footer.ValidxInfo, footer.DictBlockPtr = footer.PosidxInfo, BlockPointer{start, 15}.message()
			footer.Metadata = pairMessages([]Pair{{zoneMapKey, value(BlockPointer{start, 15}.message())}})
			f.Add(value(header), value(footer))
		}
	}
	fuzztest.Run(f, func(t *testing.T, header, footer []byte) {
		if len(header) > 200 {
			return
		}
		b := &builder{}
		b.framer = framer{sink: &b.out, checksums: true}
		head := append(binary.LittleEndian.AppendUint32([]byte(magicV2), uint32(len(header))), header...)
		_ = b.write(appendCRC(head, 0))
		d, _, _ := b.writeBlock([]byte{3, 0, 0, 0, 0, 0, 0, 0, 1, 2, 3})
		b.node(false, d)
		tail := append(slices.Clone(footer), magicV2...)
		tail = binary.LittleEndian.AppendUint32(tail, uint32(len(footer)))
		var m kudupb.CFileFooterPB
		if proto.Unmarshal(footer, &m) == nil && m.GetIncompatibleFeatures()&featureChecksum != 0 {
			crc := make([]byte, checksumLen)
			putCRC(crc, tail)
			_ = b.write(crc)
		}
		_ = b.write(tail)
		checkFile(t, &b.out)
	})
}

// checkFile reads a file in every way, unless it has too many rows or elements for that.
func checkFile(t *testing.T, src *block.Memory) {
	t.Helper()
	r, err := Open(src, ReaderOptions{Arrays: true})
	if err != nil || r.Rows() > 1<<20 || r.Info().Array && r.Rows() > 64 {
		checkKind(t, err)
		return
	}
	checkKind(t, readAll(src))
}

// FuzzIndex fuzzes the root of an index and a node below it.
func FuzzIndex(f *testing.F) {
	entries := func(inner bool, keys []string, pointers ...BlockPointer) []byte {
		var n nodeBuilder
		for i, p := range pointers {
			n.add([]byte(keys[i]), p)
		}
		payload, _ := n.finish(nil, inner)
		return payload
	}
	first := BlockPointer{16, 14}
	second := BlockPointer{30, 13}
	leaf := entries(false, []string{"\x00\x00\x00\x00", "\x00\x00\x00\x02"}, first, second)
	f.Add(false, []byte{}, leaf)
	f.Add(false, leaf, entries(true, []string{"\x00\x00\x00\x00"}, BlockPointer{43, int32(len(leaf)) + checksumLen}))
	values := entries(false, []string{"\x81", "\x83"}, first, second)
	f.Add(true, []byte{}, values)
	f.Add(true, values, entries(true, []string{"\x81"}, BlockPointer{43, int32(len(values)) + checksumLen}))
	fuzztest.Run(f, func(t *testing.T, byValue bool, node, root []byte) {
		b := newBuilder(compress.None)
		for _, payload := range [][]byte{{2, 0, 0, 0, 0, 0, 0, 0, 1, 2}, {1, 0, 0, 0, 2, 0, 0, 0, 3}} {
			_, _, _ = b.writeBlock(payload)
		}
		if len(node) > 0 {
			_, _, _ = b.writeBlock(node)
		}
		if len(root) == 0 {
			return
		}
		p, _, _ := b.writeBlock(slices.Clone(root))
		o := WriterOptions{Type: schema.Int8, Encoding: schema.Plain, Compression: schema.NoCompression}
		if byValue {
			checkFile(t, b.finish(o, 3, BlockPointer{}, p, BlockPointer{}))
			return
		}
		checkFile(t, b.finish(o, 3, p, BlockPointer{}, BlockPointer{}))
	})
}

// FuzzData fuzzes the payload of the only data cblock, with type, encoding, codec, NULLs and
// arrays.
func FuzzData(f *testing.F) {
	options := fuzzedOptions()
	rng := rand.New(rand.NewPCG(52, 1))
	for i, o := range options {
		o.BlockBytes, o.Exact = 1<<20, true
		var src *block.Memory
		if o.Array {
			src = writeArrays(f, rng, o, randomArrays(rng, o.Type, 20, o.Nullable))
		} else {
			src = writeSteps(f, rng, o, randomCells(rng, o.Type, 50, map[bool]float64{true: 0.4}[o.Nullable]))
		}
		r := open(f, src, nil)
		payload, _ := must.Get2(r.readBlock(BlockPointer{Offset: r.dataStart, Size: firstSize(f, r)}, nil))(f)
		f.Add(uint8(i), payload)
	}
	fuzztest.Run(f, func(t *testing.T, kind uint8, payload []byte) {
		o := options[int(kind)%len(options)]
		words, _ := plainBinary([]string{"", "a", "ab", "b"})
		rows := int64(1)
		for range 2 { // the second time with the number of rows that the payload has
			b := newBuilder(compress.Codec(o.Compression))
			d, _, _ := b.writeBlock(slices.Clone(payload))
			root := b.node(false, d)
			dict := BlockPointer{}
			if o.Encoding == schema.Dictionary {
				dict, _, _ = b.writeBlock(words)
			}
			src := b.finish(o, rows, root, BlockPointer{}, dict)
			checkFile(t, src)
			r, err := Open(src, ReaderOptions{Arrays: true})
			if err != nil {
				t.Fatal(err) // header and footer are valid
			}
			block, err := r.parseData(payload, d, new(scratch))
			if err != nil {
				checkKind(t, err)
				return
			}
			rows = int64(block.rows)
		}
	})
}

// fuzzedOptions are the kinds of files that FuzzData writes.
func fuzzedOptions() (all []WriterOptions) {
	codecs := []schema.Compression{schema.NoCompression, schema.LZ4, schema.Snappy, schema.Zlib}
	for _, typ := range []schema.Type{schema.Int32, schema.Uint32, schema.Bool, schema.String, schema.Double} {
		for _, enc := range allEncodings {
			for k := range 4 {
				if enc.Allowed(typ) {
					all = append(all, WriterOptions{Type: typ, Encoding: enc, Compression: codecs[len(all)%4],
						Nullable: k&1 != 0, Array: k&2 != 0, PositionalIndex: true})
				}
			}
		}
	}
	return all
}

func firstSize(f *testing.F, r *Reader) int32 {
	bs, err := r.BlockPointers()
	if err != nil || len(bs) == 0 {
		f.Fatal(len(bs), err)
	}
	return bs[0].Size
}

// plainBinary returns a payload of byte strings.
func plainBinary(words []string) ([]byte, error) {
	b, err := encoding.NewBuilder(encoding.BuilderOptions{Type: schema.Binary, Encoding: schema.Plain})
	if err != nil {
		return nil, err
	}
	v := batch.NewVector(schema.Binary, len(words))
	for i, w := range words {
		v.Bytes[i] = []byte(w)
	}
	b.AppendAll(v, 0, v.Len)
	return b.Finish(nil, 0), nil
}

// ones returns the payload of n INT8 values, all 1, in RLE.
func ones(n uint32) []byte {
	b := append(binary.LittleEndian.AppendUint32(nil, n), 0, 0, 0, 0)
	for n > 0 {
		k := min(n, 1<<30-1)
		b = append(binary.AppendUvarint(b, uint64(k)<<1), 1)
		n -= k
	}
	return b
}

// FuzzNullPrologue fuzzes the prologue of a nullable cblock, which has as many values as the
// prologue requires. The cells read must agree with the bitmap, bit by bit.
func FuzzNullPrologue(f *testing.F) {
	f.Add([]byte{6, 2, 3, 0x19})
	f.Add([]byte{0x80, 8, 4, 0x80, 8, 0x80, 8})
	for _, n := range []int{1, 70, 900} {
		f.Add(encoding.AppendNullPrologue(nil, n, randomPresence(rand.New(rand.NewPCG(53, uint64(n))), n, 5)))
	}
	fuzztest.Run(f, func(t *testing.T, prologue []byte) {
		rows, stream, rest, err := splitPrologue(prologue)
		if err != nil || len(rest) > 0 {
			checkKind(t, err)
			return
		}
		p, err := parsePresence(stream, rows)
		if err != nil || rows == 0 {
			checkKind(t, err)
			return
		}
		b := newBuilder(compress.None)
		d, _, _ := b.writeBlock(append(slices.Clone(prologue), ones(p.ones)...))
		o := WriterOptions{Type: schema.Int8, Encoding: schema.RLE, Compression: schema.NoCompression, Nullable: true}
		src := b.finish(o, int64(rows), b.node(false, d), BlockPointer{}, BlockPointer{})
		r := open(t, src, nil)
		c, v := r.NewColumnReader(), &batch.Vector{Type: schema.Int8}
		naive := bitsOf(stream, min(int(rows), 3000))
		must.Get(c.ReadVector(0, len(naive), v))(t)
		for i, present := range naive {
			if v.IsNull(i) == present {
				t.Fatalf("row %d of %d: NULL is %v", i, rows, v.IsNull(i))
			}
			if cell, err := r.Cell(batch.Ordinal(i)); err != nil || (cell == nil) == present {
				t.Fatalf("cell %d of %d: %x, %v", i, rows, cell, err)
			}
		}
		checkFile(t, src)
	})
}

// bitsOf decodes the first n bits of valid runs in the simplest way.
func bitsOf(stream []byte, n int) (bits []bool) {
	for len(bits) < n {
		header, used := binary.Uvarint(stream)
		stream = stream[used:]
		if header&1 == 0 {
			for range min(int(header>>1), n-len(bits)) {
				bits = append(bits, stream[0] == 1)
			}
			stream = stream[1:]
			continue
		}
		for i := 0; i < int(header>>1)*8 && len(bits) < n; i++ {
			bits = append(bits, stream[i/8]>>(i%8)&1 == 1)
		}
		stream = stream[min(int(header>>1), len(stream)):]
	}
	return bits
}

// FuzzArrayPrologue fuzzes the prologue of a cblock of arrays, which has as many values as the
// prologue requires. Small windows must give the same cells as large ones.
func FuzzArrayPrologue(f *testing.F) {
	f.Add([]byte("\x0a\x07\x04\x10\x01\x03\x02\x0f\x03\x02\x00\x00\x00\x00\x00\x02" +
		"\x00\x04\x00\x01\x00\x01\x00\x02\x03\x7b"))
	f.Add([]byte{0, 5, 0, 3, 10, 0, 0, 2, 10, 0})
	f.Add([]byte{0xff, 0xff, 3, 1, 4, 0xfe, 0xff, 7, 0, 3, 2, 0xff, 0xff, 2, 2, 1})
	fuzztest.Run(f, func(t *testing.T, prologue []byte) {
		parsed := &dataBlock{}
		rest, err := parsed.parseArrays(prologue, true)
		if err != nil || len(rest) > 0 || parsed.nulls.rows == 0 {
			checkKind(t, err)
			return
		}
		b := newBuilder(compress.None)
		d, _, _ := b.writeBlock(append(slices.Clone(prologue), ones(parsed.arrays.elements.ones)...))
		o := WriterOptions{Type: schema.Int8, Encoding: schema.RLE, Compression: schema.NoCompression,
			Nullable: true, Array: true}
		src := b.finish(o, int64(parsed.nulls.rows), b.node(false, d), BlockPointer{}, BlockPointer{})
		r := open(t, src, nil)
		large, small := &batch.Vector{Type: schema.Int8}, &batch.Vector{Type: schema.Int8}
		if _, err := r.NewColumnReader().ReadVector(0, 300, large); err != nil || large.Elements.Len > readElements {
			t.Fatal(large.Elements.Len, err)
		}
		c := r.NewColumnReader()
		for at := 0; at < large.Len; at += small.Len {
			if n, err := c.ReadVector(batch.Ordinal(at), min(7, large.Len-at), small); err != nil || n == 0 {
				t.Fatal(at, n, err)
			}
			if large.Elements.Len > 1<<14 {
				continue // NULL elements, mostly
			}
			for i := range small.Len {
				if a, b := arrayOf(large, at+i), arrayOf(small, i); !equalArrays(a, b) {
					t.Fatalf("cell %d: %v and %v", at+i, a, b)
				}
			}
		}
		checkFile(t, src)
	})
}

// FuzzZoneMap fuzzes the zone map of a file of two cblocks and sets the checksums in it to theirs.
func FuzzZoneMap(f *testing.F) {
	data := [][]byte{{2, 0, 0, 0, 0, 0, 0, 0, 1, 2}, {1, 0, 0, 0, 2, 0, 0, 0, 3}}
	entry := func(rows uint32, low, high byte) []byte {
		e := ZoneEntry{Rows: int(rows), Min: []byte{low}, Max: []byte{high}}
		return e.append(nil)
	}
	f.Add(slices.Concat([]byte("ORZM\x01\x00\x00\x00\x02\x00\x00\x00"), entry(2, 0x81, 0x82),
		entry(1, 0x83, 0x83)), uint8(0x82))
	f.Add([]byte("ORZM\x02\x00\x00\x00\x02\x00\x00\x00"), uint8(0))
	fuzztest.Run(f, func(t *testing.T, zone []byte, value uint8) {
		b := newBuilder(compress.None)
		var pointers []BlockPointer
		zone = slices.Clone(zone)
		at := zoneHeaderLen
		for _, payload := range data {
			p, crc, _ := b.writeBlock(slices.Clone(payload))
			pointers = append(pointers, p)
			if at+zoneEntryLen <= len(zone) {
				binary.LittleEndian.PutUint32(zone[at:], crc)
				at += zoneEntryLen + int(zone[at+13]) + int(zone[at+14])
			}
		}
		var n nodeBuilder
		for i, p := range pointers {
			n.add(binary.BigEndian.AppendUint32(nil, uint32(2*i)), p)
		}
		payload, _ := n.finish(nil, false)
		root, _, _ := b.writeBlock(payload)
		z, _, _ := b.writeBlock(zone)
		pointer := must.Get(proto.Marshal(z.message()))(t)
		footer := newFooter(&WriterOptions{Type: schema.Int8, Encoding: schema.Plain,
			Compression: schema.NoCompression}, 3)
		footer.PosidxInfo = &kudupb.BTreeInfoPB{RootBlock: root.message()}
		footer.Metadata = pairMessages([]Pair{{zoneMapKey, pointer}})
		tail, _ := appendFooter(nil, footer, true)
		_ = b.write(tail)
		checkFile(t, &b.out)
		checkZoneMap(t, &b.out, value)
	})
}

// checkZoneMap checks that a zone map accepted by Verify excludes no cblock that has matching
// values. The file has the values 1, 2 and 3.
func checkZoneMap(t *testing.T, src *block.Memory, value uint8) {
	r := open(t, src, nil)
	if r.Verify() != nil {
		return
	}
	z, err := r.ZoneMap()
	if err != nil || z == nil {
		return
	}
	for op := batch.Eq; op <= batch.NotNull; op++ {
		p := &batch.Predicate{Type: schema.Int8, Op: op}
		if op <= batch.In {
			p.Values = [][]byte{{value}}
		}
		for k, cells := range [][]byte{{1, 2}, {3}} {
			if slices.ContainsFunc(cells, func(c byte) bool { return p.EvalCell([]byte{c}) }) && !z.MayMatch(k, p) {
				t.Fatalf("%v %d: cblock %d is excluded", op, value, k)
			}
		}
	}
}

// FuzzFrame fuzzes the stored form of a compressed cblock.
func FuzzFrame(f *testing.F) {
	for _, codec := range []compress.Codec{compress.LZ4, compress.Snappy, compress.Zlib} {
		out := &block.Memory{}
		fr := framer{sink: out, codec: codec}
		must.Get2(fr.writeBlock(zeros()))(f)
		f.Add(uint8(codec), false, out.Bytes)
		f.Add(uint8(codec), true, append(binary.LittleEndian.AppendUint32(nil, uint32(len(out.Bytes)-4)), out.Bytes...))
	}
	fuzztest.Run(f, func(t *testing.T, codec uint8, old bool, form []byte) {
		if _, err := compress.Lookup(int32(codec)); err != nil || len(form) == 0 {
			return
		}
		r := &Reader{src: &block.Memory{Bytes: form}, codec: compress.Codec(codec), version: 2,
			dataEnd: int64(len(form))}
		if old {
			r.version = 1
		}
		p := BlockPointer{0, int32(len(form))}
		kept, _, err := r.readBlock(p, nil)
		checkKind(t, err)
		var s scratch
		again, _, err2 := r.readBlock(p, &s)
		must.Equal(t, err == nil, err2 == nil, err, err2)
		must.Equal(t, kept, again, err, err2)
	})
}
