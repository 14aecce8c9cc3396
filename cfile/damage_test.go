package cfile

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/block"
	"github.com/oribi-db/oribi/cache"
	"github.com/oribi-db/oribi/internal/compress"
	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/internal/kudupb"
	"github.com/oribi-db/oribi/internal/memtest"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/internal/seedtest"
	"github.com/oribi-db/oribi/schema"
)

// countingSource counts reads.
type countingSource struct {
	block.Source
	reads atomic.Int64
}

func (s *countingSource) ReadAt(p []byte, off int64) (int, error) {
	s.reads.Add(1)
	return s.Source.ReadAt(p, off)
}

// smallFiles returns files with every kind of cblock.
func smallFiles(t testing.TB) map[string]*block.Memory {
	rng := rand.New(rand.NewPCG(31, 1))
	files := map[string]*block.Memory{}
	for name, o := range map[string]WriterOptions{
		"dictionary": {Type: schema.String, PositionalIndex: true, ValueIndex: true,
			HeaderMetadata: []Pair{{"hkey", []byte("hv")}}},
		"bitshuffle": {Type: schema.Int32, PositionalIndex: true, Nullable: true, BlockBytes: 512, IndexBlockBytes: 60},
		"exact": {Type: schema.String, Encoding: schema.Prefix, Compression: schema.LZ4, ValueIndex: true,
			Exact: true},
		"no rows": {Type: schema.Bool, PositionalIndex: true},
	} {
		n := 150
		if name == "no rows" {
			n = 0
		}
		share := 0.0
		if o.Nullable {
			share = 0.3
		}
		cells := randomCells(rng, o.Type, n, share)
		if o.ValueIndex {
			for i := range cells { // short, so that the test can flip every bit
				cells[i] = fmt.Appendf(nil, "k%03d", rng.IntN(500))
			}
			cells = sortCells(o.Type, cells)
		}
		files[name] = writeSteps(t, rng, o, cells)
	}
	ao := WriterOptions{Type: schema.Int16, Encoding: schema.RLE, Nullable: true, Array: true,
		PositionalIndex: true, BlockBytes: 512, IndexBlockBytes: 60}
	files["arrays"] = writeArrays(t, rng, ao, randomArrays(rng, schema.Int16, 30, true))
	return files
}

// readAll reads a file in every way.
func readAll(src block.Source) error {
	r, err := Open(src, ReaderOptions{Arrays: true})
	if err != nil {
		return err
	}
	if _, err := useAll(src, "scan"); err != nil {
		return err
	}
	if r.Info().ValueIndex {
		if _, _, err := r.Seek(make([]byte, r.Info().Type.Width())); err != nil {
			return err
		}
	}
	return r.Verify()
}

func TestEveryFlippedBitIsFound(t *testing.T) {
	for name, src := range smallFiles(t) {
		must.Do(t, readAll(src), name)
		bits := seedtest.Rounds(8, 1)
		for i := range src.Bytes {
			for bit := range bits {
				damaged := &block.Memory{Bytes: slices.Clone(src.Bytes)}
				damaged.Bytes[i] ^= 1 << ((bit + i) % 8)
				err := readAll(damaged)
				if !errors.Is(err, fault.ErrCorrupt) && !errors.Is(err, fault.ErrUnsupported) {
					t.Fatalf("%s: bit %d of byte %d of %d: %v", name, (bit+i)%8, i, len(src.Bytes), err)
				}
			}
		}
		t.Logf("%s: %d bytes", name, len(src.Bytes))
	}
}

func TestEveryTruncationIsFound(t *testing.T) {
	for name, src := range smallFiles(t) {
		for n := range src.Bytes {
			must.Fail(t, must.Err(Open(&block.Memory{Bytes: src.Bytes[:n]}, ReaderOptions{})),
				fault.ErrCorrupt, name, n)
			if _, err := Open(&block.Memory{Bytes: src.Bytes[n+1:]},
				ReaderOptions{}); !errors.Is(err, fault.ErrCorrupt) {
				t.Fatalf("%s without its first %d bytes: %v", name, n+1, err)
			}
		}
	}
}

// Random changes in files without checksums give errors or other values, but no panic and no
// endless loop.
func TestDamageWithoutChecksumsNeverPanics(t *testing.T) {
	rng := rand.New(rand.NewPCG(32, 1))
	rounds := seedtest.Rounds(400, 60)
	for _, typ := range []schema.Type{schema.String, schema.Int32, schema.Int64, schema.Bool, schema.Double,
		schema.Uint32} {
		for _, enc := range allEncodings {
			if !enc.Allowed(typ) {
				continue
			}
			for k := range 4 {
				o := WriterOptions{Type: typ, Encoding: enc, Nullable: k%2 == 0, PositionalIndex: true,
					NoChecksums: true,
					Compression: []schema.Compression{schema.NoCompression, schema.LZ4}[k/2], BlockBytes: 512,
					IndexBlockBytes: 60}
				share := 0.0
				if o.Nullable {
					share = 0.3
				}
				src := writeSteps(t, rng, o, randomCells(rng, typ, 300, share))
				for range rounds / 4 {
					damaged := &block.Memory{Bytes: slices.Clone(src.Bytes)}
					for range 1 + rng.IntN(3) {
						damaged.Bytes[rng.IntN(len(damaged.Bytes))] = byte(rng.IntN(256))
					}
					_ = readAll(damaged)
				}
			}
		}
	}
}

// The zone map detects a valid cblock of the same size from another file.
func TestCblockOfAnotherFileIsDetected(t *testing.T) {
	file := func(from int) *block.Memory {
		v := batch.NewVector(schema.Int64, 100)
		for i := range batch.Values[int64](v) {
			batch.Values[int64](v)[i] = int64(from + i)
		}
		return writeAll(t, WriterOptions{Type: schema.Int64, Encoding: schema.Plain, PositionalIndex: true}, v)
	}
	a, b := file(0), file(1000)
	r := open(t, a, nil)
	blocks := must.Get(r.BlockPointers())(t)
	p := blocks[0]
	copy(a.Bytes[p.Offset:p.end()], b.Bytes[p.Offset:p.end()])
	must.Fail(t, must.Err(open(t, a, nil).Cell(0)), fault.ErrCorrupt)
}

// A zone map of a later version is ignored.
func TestLaterZoneMapIsIgnored(t *testing.T) {
	for name, change := range map[string]func(payload []byte){
		"version":   func(b []byte) { b[4] = 9 },
		"must flag": func(b []byte) { b[5] = 0x80 },
	} {
		src := writeAll(t, WriterOptions{Type: schema.Int32, PositionalIndex: true},
			vectorOf(schema.Int32, [][]byte{{1, 2, 3, 4}}))
		r := open(t, src, nil)
		p := r.zonePointer
		stored := src.Bytes[p.Offset:p.end()]
		change(stored)
		putCRC(stored[len(stored)-4:], stored[:len(stored)-4])
		r = open(t, src, nil)
		if z, err := r.ZoneMap(); z != nil || err != nil {
			t.Errorf("%s: %v, %v", name, z, err)
		}
		must.Equal(t, must.Get(r.Cell(0))(t), []byte{1, 2, 3, 4}, name)
	}
}

// builder writes files that Writer never writes.
type builder struct {
	framer
	out block.Memory
}

func newBuilder(codec compress.Codec) *builder {
	b := &builder{}
	b.framer = framer{sink: &b.out, codec: codec, checksums: true}
	header, _ := appendHeader(nil, nil, true)
	_ = b.write(header)
	return b
}

func (b *builder) finish(o WriterOptions, rows int64, root, values, dict BlockPointer) *block.Memory {
	footer := newFooter(&o, rows)
	if root.Size > 0 {
		footer.PosidxInfo = &kudupb.BTreeInfoPB{RootBlock: root.message()}
	}
	if values.Size > 0 {
		footer.ValidxInfo = &kudupb.BTreeInfoPB{RootBlock: values.message()}
	}
	if dict.Size > 0 {
		footer.DictBlockPtr = dict.message()
	}
	tail, _ := appendFooter(nil, footer, true)
	_ = b.write(tail)
	return &b.out
}

// node writes an index node with the given entries, whose ordinals are their indexes.
func (b *builder) node(inner bool, pointers ...BlockPointer) BlockPointer {
	var n nodeBuilder
	for i, p := range pointers {
		n.add(binary.BigEndian.AppendUint32(nil, uint32(i)), p)
	}
	payload, _ := n.finish(nil, inner)
	p, _, _ := b.writeBlock(payload)
	return p
}

func TestHostileTreesAreRefused(t *testing.T) {
	o := WriterOptions{Type: schema.Int8, Encoding: schema.Plain, Compression: schema.NoCompression}
	data := []byte{1, 0, 0, 0, 0, 0, 0, 0, 7}
	for name, tree := range map[string]func(b *builder, data BlockPointer) BlockPointer{
		"inner node without entries": func(b *builder, _ BlockPointer) BlockPointer { return b.node(true) },
		"inner node leads to data":   func(b *builder, d BlockPointer) BlockPointer { return b.node(true, d) },
		"empty leaf below a root": func(b *builder, _ BlockPointer) BlockPointer {
			return b.node(true, b.node(false))
		},
		"same child twice": func(b *builder, d BlockPointer) BlockPointer {
			leaf := b.node(false, d)
			return b.node(true, leaf, leaf)
		},
		"leaves of two depths": func(b *builder, d BlockPointer) BlockPointer {
			leaf := b.node(false, d)
			return b.node(true, b.node(true, leaf), b.node(false, d))
		},
		"leaf after its parent": func(b *builder, d BlockPointer) BlockPointer {
			root := b.node(true, BlockPointer{d.end() + 40, 20})
			b.node(false, d)
			return root
		},
		"too many levels": func(b *builder, d BlockPointer) BlockPointer {
			p := b.node(false, d)
			for range maxTreeHeight {
				p = b.node(true, p)
			}
			return p
		},
		"no cblock for the rows": func(b *builder, _ BlockPointer) BlockPointer { return b.node(false) },
		"rows after the last": func(b *builder, d BlockPointer) BlockPointer {
			return b.node(false, d, BlockPointer{d.end(), 9})
		},
	} {
		b := newBuilder(compress.None)
		d, _, _ := b.writeBlock(data)
		root := tree(b, d)
		r, err := Open(b.finish(o, 1, root, BlockPointer{}, BlockPointer{}), ReaderOptions{})
		must.Do(t, err, name)
		must.Fail(t, must.Err(r.Cell(0)), fault.ErrCorrupt, name)
	}
}

// Small files that expand to much memory return an error or their values, within the documented
// bound.
func TestHostileFilesTakeLittleMemory(t *testing.T) {
	const bound = 1<<20 + 16<<20
	run := func(name string, src *block.Memory, use func(r *Reader) error, wantErr bool) {
		t.Helper()
		var err error
		peak := memtest.Allocated(func() {
			var r *Reader
			if r, err = Open(src, ReaderOptions{}); err == nil {
				err = use(r)
			}
		})
		if limit := bound + 64*int64(len(src.Bytes)); peak > limit {
			t.Errorf("%s: %d bytes allocated for a file of %d, at most %d", name, peak, len(src.Bytes), limit)
		}
		must.Equal(t, errors.Is(err, fault.ErrCorrupt), wantErr, name, err)
	}
	cell := func(r *Reader) error {
		_, err := r.Cell(0)
		return err
	}
	o := WriterOptions{Type: schema.Int8, Encoding: schema.RLE, Compression: schema.LZ4, Nullable: true}

	b := newBuilder(compress.LZ4) // 2^30−1 NULLs in a few bytes
	d, _, _ := b.writeBlock([]byte{0xff, 0xff, 0xff, 0xff, 0x03, 6, 0xfe, 0xff, 0xff, 0xff, 0x07, 0, 0, 0,
		0, 0, 0, 0, 0, 0})
	run("long run of NULLs", b.finish(o, 1<<30-1, b.node(false, d), BlockPointer{}, BlockPointer{}), cell, false)

	b = newBuilder(compress.LZ4) // bitmap of 14 MiB of single runs
	stream := bytes.Repeat([]byte{2, 1}, 7<<20)
	prologue := binary.AppendUvarint(binary.AppendUvarint(nil, 7<<20), uint64(len(stream)))
	values := append(binary.LittleEndian.AppendUint32(nil, 7<<20), 0, 0, 0, 0)
	values = append(binary.AppendUvarint(values, 7<<21), 1)
	d, _, _ = b.writeBlock(slices.Concat(prologue, stream, values))
	run("many runs", b.finish(o, 7<<20, b.node(false, d), BlockPointer{}, BlockPointer{}), cell, false)

	b = newBuilder(compress.LZ4) // index of 2^21 entries that all point to the same cblock
	var n nodeBuilder
	for range 2 << 20 {
		n.add(nil, BlockPointer{16, 1})
	}
	payload, _ := n.finish(nil, false)
	d, _, _ = b.writeBlock(payload)
	vo := WriterOptions{Type: schema.Binary, Encoding: schema.Plain, Compression: schema.LZ4}
	run("index of one cblock", b.finish(vo, 1, BlockPointer{}, d, BlockPointer{}), func(r *Reader) error {
		_, _, err := r.Seek([]byte("x"))
		return err
	}, true)

	b = newBuilder(compress.LZ4) // dictionary of 2^23 empty words
	words := slices.Concat(make([]byte, 4), binary.LittleEndian.AppendUint32(nil, 8<<20), []byte{12, 0, 0, 0},
		bytes.Repeat([]byte{0, 12, 12, 12, 12}, 2<<20))
	d, _, _ = b.writeBlock(words)
	do := WriterOptions{Type: schema.String, Encoding: schema.Dictionary, Compression: schema.LZ4}
	codes, _, _ := b.writeBlock(must.Hex(t,
		"01 00 00 00 00 00 00 00 04 00 00 00 21 00 00 00 08 00 00 00 01 00 00 00 00 00 00 09 80 02 00 00 "+
			"00 00 00 00 00"))
	run("dictionary of empty words", b.finish(do, 4, b.node(false, codes), BlockPointer{}, d), cell, true)

	b = newBuilder(compress.LZ4) // 12 million empty byte strings
	strings := 12 << 20
	if testing.Short() {
		strings = 1 << 20
	}
	words = slices.Concat(make([]byte, 4), binary.LittleEndian.AppendUint32(nil, uint32(strings)),
		[]byte{12, 0, 0, 0}, bytes.Repeat([]byte{0, 12, 12, 12, 12}, strings/4))
	d, _, _ = b.writeBlock(words)
	src := b.finish(vo, int64(strings), b.node(false, d), BlockPointer{}, BlockPointer{})
	run("empty strings", src, func(r *Reader) error {
		_, err := r.Cell(batch.Ordinal(strings - 1))
		return err
	}, false)
	run("empty strings as deltas", src, func(r *Reader) error {
		must.Fail(t, must.Err(cellsOf(r, 0)), fault.ErrUnsupported)
		return nil
	}, false)

	b = newBuilder(compress.LZ4) // 16 MiB + 1
	f := binary.LittleEndian.AppendUint32(nil, 16<<20+1)
	f = append(f, make([]byte, 70000)...)
	f = appendCRC(f, 0)
	d = BlockPointer{b.offset, int32(len(f))}
	_ = b.write(f)
	run("declared size", b.finish(o, 1, b.node(false, d), BlockPointer{}, BlockPointer{}), cell, true)
}

func TestFooterFieldsAreChecked(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(f *kudupb.CFileFooterPB)
		want   error
	}{
		{"negative rows", func(f *kudupb.CFileFooterPB) { f.NumValues = proto.Int64(-1) }, fault.ErrCorrupt},
		{"2^32 rows", func(f *kudupb.CFileFooterPB) { f.NumValues = proto.Int64(1 << 32) }, fault.ErrCorrupt},
		{"type 18", func(f *kudupb.CFileFooterPB) { f.DataType = proto.Int32(18) }, fault.ErrUnsupported},
		{"type 999", func(f *kudupb.CFileFooterPB) { f.DataType = proto.Int32(999) }, fault.ErrUnsupported},
		{"encoding 3", func(f *kudupb.CFileFooterPB) { f.Encoding = proto.Int32(3) }, fault.ErrUnsupported},
		{"encoding 77", func(f *kudupb.CFileFooterPB) { f.Encoding = proto.Int32(77) }, fault.ErrUnsupported},
		{"encoding 0", func(f *kudupb.CFileFooterPB) { f.Encoding = proto.Int32(0) }, nil},
		{"compression 0", func(f *kudupb.CFileFooterPB) { f.Compression = proto.Int32(0) }, fault.ErrUnsupported},
		{"compression 77", func(f *kudupb.CFileFooterPB) { f.Compression = proto.Int32(77) }, fault.ErrUnsupported},
		{"feature 2", func(f *kudupb.CFileFooterPB) { f.IncompatibleFeatures = proto.Uint32(5) }, fault.ErrUnsupported},
		{"compatible features", func(f *kudupb.CFileFooterPB) { f.CompatibleFeatures = proto.Uint32(1 << 31) }, nil},
		{"array bit alone", func(f *kudupb.CFileFooterPB) {
			f.IncompatibleFeatures = proto.Uint32(3)
		}, fault.ErrCorrupt},
		{"array", func(f *kudupb.CFileFooterPB) {
			f.IncompatibleFeatures, f.IsTypeArray = proto.Uint32(3), proto.Bool(true)
		}, nil},
		{"array with a value index", func(f *kudupb.CFileFooterPB) {
			f.IncompatibleFeatures, f.IsTypeArray, f.ValidxInfo = proto.Uint32(3), proto.Bool(true), f.PosidxInfo
		}, fault.ErrUnsupported},
		{"root in the header", func(f *kudupb.CFileFooterPB) {
			f.PosidxInfo.RootBlock.Offset = proto.Int64(12)
		}, fault.ErrCorrupt},
		{"negative root", func(f *kudupb.CFileFooterPB) {
			f.PosidxInfo.RootBlock.Offset = proto.Int64(-1)
		}, fault.ErrCorrupt},
		{"root of negative size", func(f *kudupb.CFileFooterPB) {
			f.PosidxInfo.RootBlock.Size = proto.Int32(-20)
		}, fault.ErrCorrupt},
		{"root in the footer", func(f *kudupb.CFileFooterPB) {
			f.PosidxInfo.RootBlock.Size = proto.Int32(100)
		}, fault.ErrCorrupt},
		{"root far away", func(f *kudupb.CFileFooterPB) {
			f.PosidxInfo.RootBlock.Offset = proto.Int64(1<<63 - 1)
		}, fault.ErrCorrupt},
	} {
		b := newBuilder(compress.None)
		o := WriterOptions{Type: schema.Int32, Encoding: schema.Plain, Compression: schema.NoCompression}
		footer := newFooter(&o, 0)
		footer.PosidxInfo = &kudupb.BTreeInfoPB{RootBlock: b.node(false).message()}
		c.change(footer)
		tail := must.Get(appendFooter(nil, footer, true))(t)
		_ = b.write(tail)
		if _, err := Open(&b.out, ReaderOptions{Arrays: true}); !errors.Is(err, c.want) || c.want == nil && err != nil {
			t.Errorf("%s: %v, want %v", c.name, err, c.want)
		}
	}
}

func TestCodesWithoutDictionaryAreRefused(t *testing.T) {
	b := newBuilder(compress.None)
	codes, _, _ := b.writeBlock(must.Hex(t,
		"01 00 00 00 00 00 00 00 04 00 00 00 21 00 00 00 08 00 00 00 01 00 00 00 00 00 00 09 80 02 00 00 "+
			"00 00 00 00 00"))
	o := WriterOptions{Type: schema.String, Encoding: schema.Dictionary, Compression: schema.NoCompression}
	r := open(t, b.finish(o, 4, b.node(false, codes), BlockPointer{}, BlockPointer{}), cache.New(1<<20))
	must.Fail(t, must.Err(r.Cell(0)), fault.ErrCorrupt)
}
