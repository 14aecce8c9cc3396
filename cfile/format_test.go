package cfile

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"strings"
	"testing"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/block"
	"github.com/oribi-db/oribi/internal/compress"
	"github.com/oribi-db/oribi/internal/kudupb"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/internal/seedtest"
	"github.com/oribi-db/oribi/schema"
)

func TestHeaderBytes(t *testing.T) {
	for _, c := range []struct {
		pairs     []Pair
		checksums bool
		want      string
	}{
		{nil, true, "6b 75 64 75 63 66 6c 32 00 00 00 00 02 94 3a d3"},
		{nil, false, "6b 75 64 75 63 66 6c 32 00 00 00 00"},
		{[]Pair{{"hkey", []byte("hv")}}, true,
			"6b 75 64 75 63 66 6c 32 0c 00 00 00 1a 0a 0a 04 68 6b 65 79 12 02 68 76 57 d9 60 f1"},
	} {
		must.Equal(t, must.Get(appendHeader(nil, c.pairs, c.checksums))(t), must.Hex(t, c.want), c.pairs, c.want)
	}
}

func TestFooterBytes(t *testing.T) {
	footer := newFooter(&WriterOptions{Type: schema.Int32, Encoding: schema.Bitshuffle,
		Compression: schema.NoCompression}, 3)
	footer.PosidxInfo = &kudupb.BTreeInfoPB{RootBlock: BlockPointer{57, 23}.message()}
	got, err := appendFooter(nil, footer, true)
	want := "3b 54 d2 49 08 05 10 06 18 03 22 06 0a 04 08 39 10 17 30 01 40 00 50 01 " +
		"6b 75 64 75 63 66 6c 32 14 00 00 00"
	must.Do(t, err, want)
	must.Equal(t, got, must.Hex(t, want), want)
}

func TestMetadataAboveTheLimitIsRefused(t *testing.T) {
	big := []Pair{{"k", make([]byte, maxMessage)}}
	must.Refuse(t, must.Err(NewWriter(&block.Memory{}, WriterOptions{Type: schema.Int8, HeaderMetadata: big})))
	w := must.Get(NewWriter(&block.Memory{}, WriterOptions{Type: schema.Int8, PositionalIndex: true}))(t)
	w.AddMetadata(big[0].Key, big[0].Value)
	must.Refuse(t, w.Finish())
}

// zeros is PLAIN INT32 of 64 zeros at ordinal 0.
func zeros() []byte { return append([]byte{0x40}, make([]byte, 263)...) }

func TestFrameBytes(t *testing.T) {
	for _, c := range []struct {
		codec   compress.Codec
		payload []byte
		want    string
	}{
		{compress.LZ4, zeros(), "08 01 00 00 2f 40 00 01 00 ee 50 00 00 00 00 00"},
		{compress.LZ4, must.Hex(t, "01 00 00 00 00 00 00 00 07 00 00 00"),
			"0c 00 00 00 01 00 00 00 00 00 00 00 07 00 00 00"},
		{compress.Snappy, must.Hex(t, "01 00 00 00 00 00 00 00 07 00 00 00"),
			"0c 00 00 00 01 00 00 00 00 00 00 00 07 00 00 00"},
		{compress.None, must.Hex(t, "01 02"), "01 02"},
	} {
		out := &block.Memory{}
		f := framer{sink: out, codec: c.codec}
		p, _, err := f.writeBlock(c.payload)
		if err != nil || !bytes.Equal(out.Bytes, must.Hex(t, c.want)) || p != (BlockPointer{0, int32(len(out.Bytes))}) {
			t.Errorf("%v: % x at %v, %v, want %s", c.codec, out.Bytes, p, err, c.want)
		}
	}
}

// A hasty file compresses some of many random cblocks only, and others again soon after them. All
// can be read.
func TestHastyFilesDoNotCompressRandomBytes(t *testing.T) {
	rng := seedtest.Rand(t)
	for _, hasty := range []bool{false, true} {
		out := &block.Memory{}
		f := framer{sink: out, codec: compress.LZ4, hasty: hasty}
		var payloads [][]byte
		var places []BlockPointer
		smaller := 0
		for i := range 1000 {
			payload := make([]byte, 100+rng.IntN(400))
			if i < 300 || i >= 600 && i < 900 {
				for k := range payload {
					payload[k] = byte(rng.Uint32())
				}
			}
			p, _, err := f.writeBlock(payload)
			must.Do(t, err)
			if int(p.Size) < len(payload) {
				smaller++
			}
			payloads, places = append(payloads, payload), append(places, p)
		}
		if least := 400 - 2*rawStep; smaller > 400 || smaller < least || !hasty && smaller < 400 || hasty && smaller == 400 {
			t.Errorf("hasty %t: %d cblocks are compressed", hasty, smaller)
		}
		r := &Reader{src: out, codec: compress.LZ4, version: 2, dataEnd: int64(len(out.Bytes))}
		for i, p := range places {
			got, _, err := r.readBlock(p, nil)
			must.Do(t, err)
			must.Equal(t, got, payloads[i], hasty, i)
		}
	}
}

func TestReadBlockDecompressesFrames(t *testing.T) {
	for _, c := range []struct {
		name, form string
		codec      compress.Codec
		version    int
	}{
		{"snappy", "08 01 00 00 88 02 04 40 00 fe 01 00 fe 01 00 fe 01 00 fe 01 00 09 01", compress.Snappy, 2},
		{"lz4", "08 01 00 00 2f 40 00 01 00 ee 50 00 00 00 00 00", compress.LZ4, 2},
		{"zlib", "08 01 00 00 78 9c 73 60 18 05 20 00 00 43 08 00 41", compress.Zlib, 2},
		{"zlib v1", "0d 00 00 00 08 01 00 00 78 9c 73 60 18 05 20 00 00 43 08 00 41", compress.Zlib, 1},
	} {
		form := must.Hex(t, c.form)
		r := &Reader{src: &block.Memory{Bytes: form}, codec: c.codec, version: c.version, dataEnd: int64(len(form))}
		for _, s := range []*scratch{nil, new(scratch)} {
			got, _, err := r.readBlock(BlockPointer{0, int32(len(form))}, s)
			must.Do(t, err, c.name)
			must.Equal(t, got, zeros(), c.name)
		}
	}
}

func TestIndexNodeBytes(t *testing.T) {
	entry := func(key string, offset int64, size int32) func(*nodeBuilder) {
		return func(b *nodeBuilder) { b.add(must.Hex(t, key), BlockPointer{offset, size}) }
	}
	var four []func(*nodeBuilder)
	for i := range 4 {
		four = append(four, entry(fmt.Sprintf("000000%02x", 10*(i+1)), int64(90010+10*i), 65536))
	}
	for _, c := range []struct {
		name    string
		entries []func(*nodeBuilder)
		want    string
	}{
		{"empty", nil, "08 00 10 00 04 00 00 00"},
		{"empty key", []func(*nodeBuilder){entry("", 0, 1)}, "00 00 01 00 00 00 00 08 01 10 00 04 00 00 00"},
		{"one", []func(*nodeBuilder){entry("00000000", 16, 41)},
			"04 00 00 00 00 10 29 00 00 00 00 08 01 10 00 04 00 00 00"},
		{"four", four, `04 00 00 00 0a 9a bf 05 80 80 04 04 00 00 00 14 a4 bf 05 80 80 04 04 00 00 00 1e ae bf 05 80 80
			04 04 00 00 00 28 b8 bf 05 80 80 04 00 00 00 00 0b 00 00 00 16 00 00 00 21 00 00 00 08 04 10 00
			04 00 00 00`},
	} {
		var b nodeBuilder
		for _, add := range c.entries {
			add(&b)
		}
		got, err := b.finish(nil, false)
		if want := must.Hex(t, strings.Join(strings.Fields(c.want), "")); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s: % x, %v", c.name, got, err)
		}
		n, err := parseNode(got)
		if err != nil || n.count != len(c.entries) || n.inner {
			t.Errorf("%s: parsed as %+v, %v", c.name, n, err)
		}
	}
}

func TestSeparators(t *testing.T) {
	for _, c := range []struct{ prev, key, want string }{
		{"", "apple", "a"}, {"cardamom", "carrot", "carr"}, {"fennel", "fig", "fi"}, {"abc", "abc", "abc"},
		{"abc", "abcd", "abcd"}, {"", "", ""}, {"\x80\x00\x00\x7e", "\x80\x00\x00\x7f", "\x80\x00\x00\x7f"},
		{"\x80\x00\x00\xff", "\x80\x00\x01\x00", "\x80\x00\x01"}, {"abcd", "abc", "abc"},
	} {
		must.Equal(t, string(Separator([]byte(c.prev), []byte(c.key))), c.want, c.prev, c.key)
	}
}

func TestZoneMapBytes(t *testing.T) {
	z := zoneBuilder{t: schema.Int8}
	v := vectorOf(schema.Int8, [][]byte{{0xff}, nil, {5}})
	z.add(v, 0, 1)
	z.addNulls(1)
	z.add(v, 2, 3)
	z.close(0x01020304)
	got := z.finish(nil)
	want := must.Hex(t, "4f 52 5a 4d 01 00 00 00 01 00 00 00 04 03 02 01 03 00 00 00 01 00 00 00 03 01 01 00 7f 85")
	must.Equal(t, got, want)
	m := must.Get(parseZoneMap(got, schema.Int8, 1, 3))(t)
	must.Equal(t, len(m.Entries), 1)
	e := m.Entries[0]
	if e.Rows != 3 || e.Nulls != 1 || e.crc != 0x01020304 || !bytes.Equal(e.Min, []byte{0x7f}) ||
		!bytes.Equal(e.Max, []byte{0x85}) {
		t.Errorf("parsed as %+v", e)
	}
	must.Equal(t, got[zoneHeaderLen:], e.append(nil))
}

// The complete example files of the spec, which are Kudu's output for these values.
func TestWholeFileBytes(t *testing.T) {
	le32 := func(values ...int32) [][]byte {
		var cells [][]byte
		for _, v := range values {
			cells = append(cells, binary.LittleEndian.AppendUint32(nil, uint32(v)))
		}
		return cells
	}
	words := func(values ...string) [][]byte {
		var cells [][]byte
		for _, v := range values {
			cells = append(cells, []byte(v))
		}
		return cells
	}
	for _, c := range []struct {
		name  string
		o     WriterOptions
		cells [][]byte
		want  string
	}{
		{"int32 bitshuffle", WriterOptions{Type: schema.Int32, PositionalIndex: true}, le32(1, 2, 3), `
			6b 75 64 75 63 66 6c 32 00 00 00 00 02 94 3a d3 00 00 00 00 03 00 00 00 25 00 00 00 08 00 00 00
			04 00 00 00 00 00 00 0d 3f 05 06 00 01 00 05 50 00 00 00 00 00 f0 c3 6e be 04 00 00 00 00 10 29
			00 00 00 00 08 01 10 00 04 00 00 00 93 d6 19 2c 3b 54 d2 49 08 05 10 06 18 03 22 06 0a 04 08 39
			10 17 30 01 40 00 50 01 6b 75 64 75 63 66 6c 32 14 00 00 00`},
		{"no checksums", WriterOptions{Type: schema.Int32, Encoding: schema.Plain, PositionalIndex: true,
			NoChecksums: true}, le32(1, 2, 3), `
			6b 75 64 75 63 66 6c 32 00 00 00 00 03 00 00 00 00 00 00 00 01 00 00 00 02 00 00 00 03 00 00 00
			04 00 00 00 00 0c 14 00 00 00 00 08 01 10 00 04 00 00 00 08 05 10 01 18 03 22 06 0a 04 08 20 10
			13 30 01 40 00 50 00 6b 75 64 75 63 66 6c 32 14 00 00 00`},
		{"no rows", WriterOptions{Type: schema.Int32, Encoding: schema.Plain, PositionalIndex: true}, nil, `
			6b 75 64 75 63 66 6c 32 00 00 00 00 02 94 3a d3 08 00 10 00 04 00 00 00 9d b7 3d 75 28 ad 75 01
			08 05 10 01 18 00 22 06 0a 04 08 10 10 0c 30 01 40 00 50 01 6b 75 64 75 63 66 6c 32 14 00 00 00`},
		{"both indexes", WriterOptions{Type: schema.String, Encoding: schema.Plain,
			Compression: schema.NoCompression, PositionalIndex: true, ValueIndex: true},
			words("apple", "banana", "cherry"), `
			6b 75 64 75 63 66 6c 32 00 00 00 00 02 94 3a d3 00 00 00 00 03 00 00 00 1d 00 00 00 61 70 70 6c
			65 62 61 6e 61 6e 61 63 68 65 72 72 79 00 0c 11 17 00 23 08 3d f9 04 00 00 00 00 10 26 00 00 00
			00 08 01 10 00 04 00 00 00 71 ca 5a 3d 01 61 10 26 00 00 00 00 08 01 10 00 04 00 00 00 02 33 f4
			ee 1f 03 b0 42 08 08 10 01 18 03 22 06 0a 04 08 36 10 17 2a 06 0a 04 08 4d 10 14 30 01 40 00 50
			01 6b 75 64 75 63 66 6c 32 1c 00 00 00`},
		{"dictionary", WriterOptions{Type: schema.String, Compression: schema.NoCompression,
			PositionalIndex: true}, words("red", "blue", "red", "red"), `
			6b 75 64 75 63 66 6c 32 00 00 00 00 02 94 3a d3 01 00 00 00 00 00 00 00 04 00 00 00 21 00 00 00
			08 00 00 00 01 00 00 00 00 00 00 09 80 02 00 00 00 00 00 00 00 3f 6b 8a 3a 04 00 00 00 00 10 29
			00 00 00 00 08 01 10 00 04 00 00 00 93 d6 19 2c 00 00 00 00 02 00 00 00 13 00 00 00 72 65 64 62
			6c 75 65 00 0c 0f 00 00 3a af 5c 68 bf 55 be d7 08 08 10 05 18 04 22 06 0a 04 08 39 10 17 30 01
			40 00 4a 04 08 50 10 1c 50 01 6b 75 64 75 63 66 6c 32 1a 00 00 00`},
		{"dictionary of no rows", WriterOptions{Type: schema.String, Compression: schema.NoCompression,
			PositionalIndex: true}, nil, `
			6b 75 64 75 63 66 6c 32 00 00 00 00 02 94 3a d3 08 00 10 00 04 00 00 00 9d b7 3d 75 00 00 00 00
			00 00 00 00 0c 00 00 00 48 e7 06 a6 d9 fe c2 8f 08 08 10 05 18 00 22 06 0a 04 08 10 10 0c 30 01
			40 00 4a 04 08 1c 10 10 50 01 6b 75 64 75 63 66 6c 32 1a 00 00 00`},
		{"lz4", WriterOptions{Type: schema.Int32, Encoding: schema.Plain, Compression: schema.LZ4,
			PositionalIndex: true}, le32(make([]int32, 64)...), `
			6b 75 64 75 63 66 6c 32 00 00 00 00 02 94 3a d3 08 01 00 00 2f 40 00 01 00 ee 50 00 00 00 00 00
			e2 d6 ae 46 13 00 00 00 04 00 00 00 00 10 14 00 00 00 00 08 01 10 00 04 00 00 00 d9 18 99 71 29
			ef 00 a5 08 05 10 01 18 40 22 06 0a 04 08 24 10 1b 30 03 40 00 50 01 6b 75 64 75 63 66 6c 32 14 00 00 00`},
	} {
		c.o.Exact = true
		got := writeAll(t, c.o, vectorOf(c.o.Type, c.cells))
		must.Equal(t, got.Bytes, must.Hex(t, strings.Join(strings.Fields(c.want), "")), c.name)
	}
}

// Two levels of an index, from the spec's worked example.
func TestTwoLevelTreeBytes(t *testing.T) {
	out := &block.Memory{}
	w := must.Get(NewWriter(out, WriterOptions{Type: schema.Int32, Encoding: schema.Plain, BlockBytes: 512,
		IndexBlockBytes: 60, PositionalIndex: true, Exact: true}))(t)
	v := batch.NewVector(schema.Int32, 1000)
	for i := range batch.Values[int32](v) {
		batch.Values[int32](v)[i] = int32(i)
		must.Do(t, w.appendRange(v, i, i+1))
	}
	must.Do(t, w.Finish())
	leaf := must.Hex(t, "0400000000108804040000007f9804880404000000fea0088804040000017da80c8804000000"+
		"0008000000110000001a00000008041000040000006f25cc54")
	root := must.Hex(t, `0400000000b0103f04000001fccf20400000000008000000080210010400000005cec4ea`)
	must.Equal(t, out.Bytes[2096:][:len(leaf)], leaf)
	must.Equal(t, out.Bytes[4239:][:len(root)], root)
	r := open(t, out, nil)
	x, err := r.ordinalIndex()
	if err != nil || len(x.blocks) != 8 || len(x.nodes) != 3 || x.first[5] != 635 {
		t.Errorf("read as %+v, %v", x, err)
	}
}
