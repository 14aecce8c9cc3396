package cfile

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/block"
	"github.com/oribi-db/oribi/internal/coding"
	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/internal/seedtest"
	"github.com/oribi-db/oribi/schema"
)

// rebuiltFile is a file that tests damage.
type rebuiltFile struct {
	o     WriterOptions
	cells [][]byte
	src   *block.Memory
	r     *Reader // of the undamaged file
	data  []BlockPointer
}

func newRebuiltFile(t *testing.T, rng *rand.Rand, o WriterOptions, n int) *rebuiltFile {
	t.Helper()
	f := &rebuiltFile{o: o, cells: randomCells(rng, o.Type, n, 0.3)}
	if !o.Nullable {
		for i, c := range f.cells {
			if c == nil {
				f.cells[i] = make([]byte, o.Type.Width())
			}
		}
	}
	if o.ValueIndex {
		f.cells = sortCells(o.Type, f.cells)
	}
	f.src = writeSteps(t, rng, o, f.cells)
	var err error
	if f.r, err = Open(f.src, ReaderOptions{}); err == nil {
		f.data, err = f.r.BlockPointers()
	}
	must.Do(t, err)
	return f
}

// damaged opens a copy with some bytes changed, and returns the number of rows that cannot be read.
// All others must be right.
func (f *rebuiltFile) damaged(t *testing.T, what string, places ...int64) (lost int) {
	t.Helper()
	b := slices.Clone(f.src.Bytes)
	for _, at := range places {
		b[at] ^= 0x10
	}
	return f.read(t, what, b)
}

func (f *rebuiltFile) read(t *testing.T, what string, b []byte) (lost int) {
	t.Helper()
	r, err := OpenDamaged(&block.Memory{Number: 17, Bytes: b}, ReaderOptions{},
		Known{Type: f.o.Type, Nullable: f.o.Nullable, Rows: int64(len(f.cells))})
	if err != nil {
		if !errors.Is(err, fault.ErrCorrupt) && !errors.Is(err, fault.ErrUnsupported) {
			t.Errorf("%s: %v", what, err)
		}
		return len(f.cells)
	}
	if r.Rows() != int64(len(f.cells)) {
		t.Errorf("%s: %d rows, want %d", what, r.Rows(), len(f.cells))
		return len(f.cells)
	}
	for i, want := range f.cells {
		got, err := r.Cell(batch.Ordinal(i))
		switch {
		case errors.Is(err, fault.ErrCorrupt):
			lost++
		case err != nil || !bytes.Equal(got, want) || (got == nil) != (want == nil):
			t.Errorf("%s: cell %d is %q, %v, want %q", what, i, got, err, want)
			return lost
		}
	}
	return lost
}

// rows returns how many rows data cblock i has.
func (f *rebuiltFile) rows(t *testing.T, i int) int {
	t.Helper()
	b := must.Get(f.r.readData(i, f.data[i], nil))(t)
	return b.rows
}

// In files of every type, encoding and codec, damage of the footer, an index, or the zone map costs
// nothing, damage of a data cblock costs its rows, and both together cost no row before it. No cell
// that is read is wrong.
func TestDamagedFilesAreReadByTheirCblocks(t *testing.T) {
	seed := uint64(0)
	for _, typ := range allTypes {
		for _, enc := range allEncodings {
			for k, codec := range []schema.Compression{schema.NoCompression, schema.Snappy, schema.LZ4, schema.Zlib} {
				seed++
				if !enc.Allowed(typ) || enc == schema.Auto || seed%uint64(seedtest.Stride(7)) != 0 {
					continue
				}
				o := WriterOptions{Type: typ, Encoding: enc, Compression: codec, Nullable: seed%2 == 0,
					PositionalIndex: true, BlockBytes: 512, IndexBlockBytes: 100}
				o.Exact = k == 2
				t.Run(fmt.Sprintf("type=%v/enc=%v/codec=%v/nullable=%v", typ, enc, codec, o.Nullable),
					func(t *testing.T) {
						rng := rand.New(rand.NewPCG(seed, 5))
						f := newRebuiltFile(t, rng, o, 500)
						f.check(t, rng)
					})
			}
		}
	}
}

func (f *rebuiltFile) check(t *testing.T, rng *rand.Rand) {
	size := int64(len(f.src.Bytes))
	footer := f.r.dataEnd + rng.Int64N(size-f.r.dataEnd)
	for what, at := range map[string]int64{"footer": footer, "magic": size - 7, "header": 3,
		"ordinal index": f.r.ordinalRoot.Offset + 1, "zone map": f.r.zonePointer.Offset + 1} {
		if what == "zone map" && f.r.zonePointer.Size == 0 {
			continue
		}
		if lost := f.damaged(t, what, at); lost > 0 && !f.ambiguous() {
			t.Errorf("%s, byte %d of %d: %d rows cannot be read", what, at, size, lost)
		}
	}
	if lost := f.damaged(t, "header and footer", 3, footer); lost > 0 && !f.ambiguous() {
		t.Errorf("header and footer: %d rows cannot be read", lost)
	}
	for range seedtest.Rounds(20, 4) {
		i := rng.IntN(len(f.data))
		at := f.data[i].Offset + rng.Int64N(int64(f.data[i].Size))
		must.Equal(t, f.damaged(t, "data", at), f.rows(t, i), i, len(f.data))
		before := 0
		for k := range i {
			before += f.rows(t, k)
		}
		if lost := f.damaged(t, "data and footer", at, footer); i > 0 && lost > len(f.cells)-before &&
			!f.ambiguous() && f.o.Encoding != schema.Dictionary {
			t.Errorf("data cblock %d of %d and the footer: %d rows cannot be read, %d are before", i,
				len(f.data), lost, before)
		}
		f.damaged(t, "anything", rng.Int64N(size), rng.Int64N(size), rng.Int64N(size))
		f.read(t, "end", f.src.Bytes[:rng.Int64N(size)])
	}
}

// ambiguous reports whether the cblocks may have two meanings, without a footer.
func (f *rebuiltFile) ambiguous() bool {
	return f.o.Encoding == schema.Plain || f.o.Encoding == schema.RLE
}

// A damaged leaf of an index costs nothing, since the root names it. With a value index, which key
// columns have, the same holds.
func TestDamagedNodesCostNothing(t *testing.T) {
	rng := seedtest.Rand(t)
	for _, enc := range []schema.Encoding{schema.Plain, schema.Prefix, schema.Dictionary} {
		f := newRebuiltFile(t, rng, WriterOptions{Type: schema.String, Encoding: enc, PositionalIndex: true,
			ValueIndex: true, BlockBytes: 256, IndexBlockBytes: 64}, 2000)
		x, err := f.r.ordinalIndex()
		if err != nil || len(x.nodes) < 4 {
			t.Fatal(err, len(x.nodes))
		}
		for _, p := range x.nodes {
			if lost := f.damaged(t, "node", p.Offset+2); lost > 0 {
				t.Errorf("%v: node at byte %d: %d rows cannot be read", enc, p.Offset, lost)
			}
			i := rng.IntN(len(f.data))
			if lost, want := f.damaged(t, "node and data", p.Offset+2, f.data[i].Offset),
				f.rows(t, i); lost < want || lost > want && f.data[i].Offset > p.Offset {
				t.Errorf("%v: node at byte %d and data cblock %d: %d rows cannot be read, want %d or more", enc,
					p.Offset, i, lost, want)
			}
		}
	}
}

// Of a file without index and footer whose number of rows is unknown, all cblocks are known to be
// found only if none is missing.
func TestRowsOfDamagedFilesAreKnownIfNothingIsMissing(t *testing.T) {
	rng := seedtest.Rand(t)
	var cells [][]byte
	for i := range 3000 {
		cells = append(cells, fmt.Appendf(nil, "%0300d%s", i, randomString(rng)))
	}
	o := WriterOptions{Type: schema.Binary, Encoding: schema.Plain, Compression: schema.LZ4, BlockBytes: 1,
		ValueIndex: true, FullIndexKeys: true,
		IndexKey: func(cell []byte) []byte { return cell[:300] }, Exact: true}
	src := writeAll(t, o, vectorOf(schema.Binary, cells))
	r := must.Get(Open(src, ReaderOptions{}))(t)
	data := must.Get(r.BlockPointers())(t)
	if x, err := r.valueIndex(); err != nil || len(x.nodes) < 3 {
		t.Fatalf("%d cblocks, %v: one leaf", len(data), err)
	}
	open := func(places ...int64) *Reader {
		t.Helper()
		b := slices.Clone(src.Bytes)
		for _, at := range places {
			b[at] ^= 1
		}
		return must.Get(OpenDamaged(&block.Memory{Bytes: b}, ReaderOptions{}, Known{Type: schema.Binary, Rows: -1}))(t)
	}
	end := int64(len(src.Bytes))
	must.Equal(t, open(end-1).Rows(), int64(len(cells)), "without the footer")
	must.Equal(t, open(r.valueRoot.Offset).Rows(), int64(len(cells)), "without the index")
	for _, at := range []int64{r.valueRoot.Offset, data[len(data)-1].Offset, data[len(data)-10].Offset,
		data[1].Offset} {
		r := open(end-1, at)
		n, err := r.DataBlocks()
		if err != nil || r.Rows() <= int64(len(cells)) {
			t.Errorf("without the footer and byte %d: %d rows, %v", at, r.Rows(), err)
		} else if _, err := r.DataBlock(n - 1); !errors.Is(err, fault.ErrCorrupt) {
			t.Errorf("without the footer and byte %d: the last cblock is no gap: %v", at, err)
		}
	}
}

// A file in which every fourth place could be the end of a cblock, by its checksum, takes no longer
// than another.
func TestManyRightChecksumsAreNotAllTried(t *testing.T) {
	b := must.Get(appendHeader(nil, nil, true))(t)
	crc, next := uint32(0), []byte{1, 2, 3, 4}
	for len(b) < 1<<20 {
		b, crc = append(b, next...), coding.UpdateCRC32C(crc, next)
		next = binary.LittleEndian.AppendUint32(next[:0], crc)
	}
	src := &countingSource{Source: &block.Memory{Bytes: b}}
	_, err := OpenDamaged(src, ReaderOptions{}, Known{Type: schema.Int64, Rows: 100})
	if !errors.Is(err, fault.ErrCorrupt) || src.reads.Load() > 2000 {
		t.Errorf("%d reads, %v", src.reads.Load(), err)
	}
}

// 16 bits that are true are the same bytes as a run and as a bitmap of other bits. Without a footer,
// none of both is returned.
func TestCblocksWithTwoMeaningsAreRefused(t *testing.T) {
	cells := make([][]byte, 16)
	for i := range cells {
		cells[i] = []byte{1}
	}
	o := WriterOptions{Type: schema.Bool, Encoding: schema.RLE, PositionalIndex: true, Exact: true}
	src := writeAll(t, o, vectorOf(schema.Bool, cells))
	f := &rebuiltFile{o: o, cells: cells, src: src}
	must.Equal(t, f.damaged(t, "footer", int64(len(src.Bytes)-1)), len(cells), "rows that cannot be read")
}
