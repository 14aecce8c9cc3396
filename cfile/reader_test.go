package cfile

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"testing"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/block"
	"github.com/oribi-db/oribi/cache"
	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/internal/seedtest"
	"github.com/oribi-db/oribi/schema"
)

// keyFile writes a file of n sorted byte strings with a common prefix.
func keyFile(t testing.TB, n int, o WriterOptions) (*block.Memory, [][]byte) {
	t.Helper()
	var cells [][]byte
	for i := range n {
		cells = append(cells, fmt.Appendf(nil, "customer/%07d/%d", i/3, i%3))
	}
	o.Type, o.ValueIndex = schema.Binary, true
	return writeAll(t, o, vectorOf(schema.Binary, cells)), cells
}

// Keys that are not kept in memory are found in their leaves.
func TestSeekWithoutKeysInMemory(t *testing.T) {
	src, cells := keyFile(t, 3000, WriterOptions{Encoding: schema.Prefix, BlockBytes: 512, IndexBlockBytes: 200,
		FullIndexKeys: true})
	for _, limit := range []int{1 << 30, 1, 500} {
		r := open(t, src, nil)
		r.keyLimitForTest = limit
		must.Equal(t, must.Get(r.valueIndex())(t).leaves == nil, limit == 1<<30, limit)
		checkSeeks(t, rand.New(rand.NewPCG(41, 1)), r, cells)
		for i := 0; i < len(cells); i += 17 {
			for _, key := range [][]byte{cells[i], append(slices.Clone(cells[i]), 0), cells[i][:len(cells[i])-1]} {
				want, exact := slices.BinarySearchFunc(cells, key, bytes.Compare)
				if ord, gotExact, err := r.Seek(key); err != nil || int(ord) != want || exact != gotExact {
					t.Fatalf("limit %d: seek %q: %d, %v, %v, want %d, %v", limit, key, ord, gotExact, err, want, exact)
				}
			}
		}
		must.Do(t, r.Verify())
	}
}

func TestSeekNeedsAValueIndex(t *testing.T) {
	r := open(t, writeAll(t, WriterOptions{Type: schema.Int8, PositionalIndex: true},
		vectorOf(schema.Int8, [][]byte{{1}})), nil)
	must.Fail(t, must.Err2(r.Seek([]byte{1})), fault.ErrUnsupported)
	r = open(t, writeAll(t, WriterOptions{Type: schema.Int32, ValueIndex: true},
		vectorOf(schema.Int32, [][]byte{{1, 0, 0, 0}})), nil)
	must.Fail(t, must.Err2(r.Seek([]byte{1})), fault.ErrSchema, "seek for a cell of one byte")
}

func TestFileWithoutIndexesIsRefused(t *testing.T) {
	r := open(t, writeAll(t, WriterOptions{Type: schema.Int8}, vectorOf(schema.Int8, [][]byte{{1}})), nil)
	must.Fail(t, must.Err(r.Cell(0)), fault.ErrUnsupported)
	must.Fail(t, r.Verify(), fault.ErrUnsupported)
}

// A window may begin and end at any row. Windows after the last row are empty, not an error.
func TestWindowsAreClippedAtTheEnd(t *testing.T) {
	r := open(t, writeAll(t, WriterOptions{Type: schema.Int8, PositionalIndex: true},
		vectorOf(schema.Int8, [][]byte{{1}, {2}, {3}})), nil)
	c, v := r.NewColumnReader(), &batch.Vector{Type: schema.Int8}
	for _, w := range []struct {
		at   batch.Ordinal
		n, k int
	}{{0, 3, 3}, {2, 5, 1}, {3, 5, 0}, {1 << 31, 1, 0}, {1, 0, 0}, {0, 1 << 40, 3}} {
		if n, err := c.ReadVector(w.at, w.n, v); n != w.k || err != nil || v.Len != w.k {
			t.Errorf("[%d,+%d): %d, %v, vector of %d", w.at, w.n, n, err, v.Len)
		}
	}
}

// Plain byte strings, which dictionary files have too, are read backward.
func TestReadBackwardReversesReadVector(t *testing.T) {
	rng := seedtest.Rand(t)
	for _, enc := range []schema.Encoding{schema.Plain, schema.Dictionary, schema.Prefix} {
		for _, nulls := range []float64{0, 0.01} {
			cells, handledCount := randomCells(rng, schema.String, 3000, nulls), 0
			r := open(t, writeSteps(t, rng, WriterOptions{Type: schema.String, Encoding: enc,
				Nullable: nulls > 0, PositionalIndex: true, BlockBytes: 512}, cells), nil)
			c, got, want := r.NewColumnReader(), &batch.Vector{Type: schema.String}, &batch.Vector{Type: schema.String}
			for range 60 {
				from := rng.IntN(len(cells))
				n := 1 + rng.IntN(min(len(cells)-from, 200))
				if enc != schema.Prefix {
					must.Get(c.ReadVector(batch.Ordinal(from), n, want))(t)
					want.Reverse()
				}
				handled := must.Get(c.ReadBackward(batch.Ordinal(from), n, got))(t)
				if !handled {
					continue
				}
				handledCount++
				for i := range n {
					if !bytes.Equal(got.Cell(i), want.Cell(i)) || got.Cell(i) == nil {
						t.Fatalf("%v: rows [%d,+%d): cell %d is %q, want %q", enc, from, n, i, got.Cell(i),
							want.Cell(i))
					}
				}
			}
			must.Equal(t, handledCount > 0, enc != schema.Prefix, enc, handledCount)
			must.Equal(t, must.Get(c.ReadBackward(2900, 101, got))(t), false, enc)
		}
	}
}

// Byte strings of a reader are never overwritten. A transient reader's byte strings are valid until
// its next call.
func TestByteStringsStayValid(t *testing.T) {
	src, cells := keyFile(t, 5000, WriterOptions{Encoding: schema.Plain, BlockBytes: 1024, PositionalIndex: true})
	for _, transient := range []bool{false, true} {
		for _, c := range []*cache.Cache{nil, cache.New(1 << 20)} {
			cr := open(t, src, c).NewColumnReader()
			cr.Transient = transient
			var kept [][]byte
			v := &batch.Vector{Type: schema.Binary}
			for at := 0; at < len(cells); at += 300 {
				must.Get(cr.ReadVector(batch.Ordinal(at), 300, v))(t)
				if transient && !slices.EqualFunc(v.Bytes, cells[at:min(at+300, len(cells))], bytes.Equal) {
					t.Fatalf("byte strings from row %d differ from the file", at)
				}
				kept = append(kept, v.Bytes...)
			}
			if !transient && !slices.EqualFunc(kept, cells, bytes.Equal) {
				t.Error("byte strings changed after they were read")
			}
		}
	}
}

// A transient reader of byte strings reads all cblocks into the same memory.
func TestTransientReaderReusesItsMemory(t *testing.T) {
	const rows, width = 40 * batch.WindowRows, 100
	cells := batch.NewVector(schema.Binary, rows)
	for i := range cells.Bytes {
		cells.Bytes[i] = fmt.Appendf(nil, "%0*d", width, i)
	}
	src := writeAll(t, WriterOptions{Type: schema.Binary, Encoding: schema.Plain, BlockBytes: 32 << 10,
		PositionalIndex: true}, cells)
	cr := open(t, src, nil).NewColumnReader()
	cr.Transient = true
	v := &batch.Vector{Type: schema.Binary}
	at := batch.Ordinal(0)
	read := func() {
		must.Equal(t, must.Get(cr.ReadVector(at, batch.WindowRows, v))(t), batch.WindowRows)
		at += batch.WindowRows
	}
	read()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range 30 {
		read()
	}
	runtime.ReadMemStats(&after)
	if bytes := (after.TotalAlloc - before.TotalAlloc) / 30; bytes > batch.WindowRows*width/5 {
		t.Errorf("%d bytes allocated for a window of %d bytes", bytes, batch.WindowRows*width)
	}
}

// A transient reader uses the cache and adds no cblock to it; another reader reads each cblock
// once.
func TestReadersUseTheCache(t *testing.T) {
	v := batch.NewVector(schema.Int64, 100000)
	rng := rand.New(rand.NewPCG(42, 1))
	for i := range batch.Values[int64](v) {
		batch.Values[int64](v)[i] = rng.Int64N(1 << 40)
	}
	src := &countingSource{Source: writeAll(t, WriterOptions{Type: schema.Int64, PositionalIndex: true}, v)}
	keep := cache.New(64 << 20)
	r := open(t, src, keep)
	scan := func(transient bool) int64 {
		before := src.reads.Load()
		c, got := r.NewColumnReader(), &batch.Vector{Type: schema.Int64}
		c.Transient = transient
		for at := 0; at < v.Len; at += batch.WindowRows {
			must.Get(c.ReadVector(batch.Ordinal(at), batch.WindowRows, got))(t)
		}
		return src.reads.Load() - before
	}
	const indexes = 4 << 10 // and the zone map
	if scan(true); keep.Used() > indexes {
		t.Errorf("%d bytes in the cache after a transient scan", keep.Used())
	}
	scan(false)
	must.Equal(t, scan(true), 0, "reads of cached cblocks")
	before := src.reads.Load()
	for range 1000 {
		must.Get(r.Cell(batch.Ordinal(rng.IntN(v.Len))))(t)
	}
	must.Equal(t, src.reads.Load()-before, 0, "reads of cached cells")
	keep.Evict(17)
	must.Equal(t, keep.Used(), 0, "bytes of other blocks")
}

// Sources with ID 0 are not cached, since two of them would share their keys.
func TestSourcesWithoutIDAreNotCached(t *testing.T) {
	keep := cache.New(1 << 20)
	for i := range 2 {
		src := writeAll(t, WriterOptions{Type: schema.Int8, PositionalIndex: true},
			vectorOf(schema.Int8, [][]byte{{byte(i)}}))
		src.Number = 0
		must.Equal(t, must.Get(open(t, src, keep).Cell(0))(t)[0], byte(i), i)
	}
	must.Equal(t, keep.Used(), 0, "a source with ID 0 was cached")
}

// Verify finds damage that occurs after the reader has loaded everything.
func TestVerifyReadsFromTheSource(t *testing.T) {
	src, _ := keyFile(t, 300, WriterOptions{PositionalIndex: true})
	r := open(t, src, cache.New(1<<20))
	checks := func() error {
		if _, _, err := r.Seek([]byte("customer/0000001/0")); err != nil {
			return err
		}
		return r.Verify()
	}
	must.Do(t, checks())
	for _, p := range []BlockPointer{r.ordinalRoot, r.valueRoot, r.dictPointer, r.zonePointer, {Offset: 0},
		{Offset: r.size - 1}} {
		src.Bytes[p.Offset] ^= 1
		must.Fail(t, checks(), fault.ErrCorrupt, p.Offset)
		src.Bytes[p.Offset] ^= 1
	}
}

func TestReaderIsSafeForConcurrentUse(t *testing.T) {
	rng := rand.New(rand.NewPCG(43, 1))
	for _, o := range []WriterOptions{
		{Type: schema.Int64, BlockBytes: 4096, PositionalIndex: true, ValueIndex: true},
		{Type: schema.String, BlockBytes: 4096, PositionalIndex: true, ValueIndex: true},
		{Type: schema.String, Encoding: schema.Prefix, BlockBytes: 4096, ValueIndex: true},
		{Type: schema.Int32, Encoding: schema.RLE, BlockBytes: 4096, PositionalIndex: true, ValueIndex: true},
	} {
		cells := sortCells(o.Type, randomCells(rng, o.Type, 20000, 0))
		src := writeSteps(t, rng, o, cells)
		for _, c := range []*cache.Cache{nil, cache.New(30 << 10)} {
			r := open(t, src, c)
			var wg sync.WaitGroup
			for g := range 4 {
				wg.Go(func() {
					rng := rand.New(rand.NewPCG(44, uint64(g)))
					cr, v := r.NewColumnReader(), &batch.Vector{Type: o.Type}
					for range 150 {
						at := rng.IntN(len(cells))
						ord, exact, err := r.Seek(cells[at])
						if err != nil || int(ord) != at || !exact {
							t.Errorf("seek %d: %d, %v, %v", at, ord, exact, err)
							return
						}
						if cell, err := r.Cell(ord); err != nil || !bytes.Equal(cell, cells[at]) {
							t.Errorf("cell %d: %x, %v", at, cell, err)
							return
						}
						n, err := cr.ReadVector(ord, 50, v)
						if err != nil || !bytes.Equal(v.Cell(n-1), cells[at+n-1]) {
							t.Errorf("window at %d: %v", at, err)
							return
						}
					}
				})
			}
			wg.Wait()
		}
	}
}

// ParsedBlock returns the cblocks in order, and FindData the one where a key may begin. As in delta
// files, keys need not ascend within a row.
func TestParsedBlocksAreFoundByKey(t *testing.T) {
	var cells [][]byte
	for row := range 400 {
		for ts := 9; ts > 0; ts-- {
			cells = append(cells,
				append([]byte{byte(row >> 8), byte(row), byte(ts)}, bytes.Repeat([]byte{'x'}, row%40)...))
		}
	}
	out := &block.Memory{Number: 17}
	w := must.Get(NewWriter(out, WriterOptions{Type: schema.Binary, Encoding: schema.Plain, Compression: schema.LZ4,
		BlockBytes: 600,
		ValueIndex: true, FullIndexKeys: true, Exact: true, IndexKey: func(cell []byte) []byte { return cell[:3] }}))(t)
	w.AddMetadata(DeltaStatsKey, nil)
	must.Do(t, w.Append(vectorOf(schema.Binary, cells)))
	must.Do(t, w.Finish())
	for _, c := range []*cache.Cache{nil, cache.New(1 << 20)} {
		r := open(t, out, c)
		must.Do(t, r.Verify())
		n := must.Get(r.DataBlocks())(t)
		var all [][]byte
		var blocks []parsedCells
		for i := range n {
			b := must.Get(cellsOf(r, i))(t)
			must.Equal(t, b.first, len(all), i)
			blocks, all = append(blocks, b), append(all, b.cells...)
			single, err := singleCells(r, i)
			if err != nil || !slices.EqualFunc(single, b.cells, bytes.Equal) {
				t.Fatalf("cblock %d: %d cells one by one, want %d: %v", i, len(single), len(b.cells), err)
			}
		}
		if !slices.EqualFunc(all, cells, bytes.Equal) {
			t.Fatalf("%d cells, want %d", len(all), len(cells))
		}
		for row := range 402 {
			i, err := r.FindData([]byte{byte(row >> 8), byte(row), 0})
			b, first := blocks[max(i, 0)], min(row*9, len(cells)-1)
			if err != nil || b.first > first {
				t.Fatalf("row %d: cblock begins with cell %d, want %d or before: %v", row, b.first, first, err)
			}
			// The cblock has the row's first cell, or ends directly before it.
			if end := b.first + len(b.cells); row < 400 && end < first {
				t.Fatalf("row %d: cblock ends with cell %d, want %d or later", row, end, first)
			}
		}
		again, err := r.ParsedBlock(0, func(batch.Ordinal, *batch.Vector) (any, int64, error) {
			return parsedCells{first: -1}, 1, nil
		})
		must.Do(t, err, again)
		must.Equal(t, c != nil, again.(parsedCells).first == 0, again)
	}
}

// singleCells reads the cells of a data cblock one by one.
func singleCells(r *Reader, i int) (cells [][]byte, err error) {
	b, err := r.DataBlock(i)
	if err != nil {
		return nil, err
	}
	for k := range b.Len() {
		cell, err := b.Cell(k)
		if err != nil {
			return nil, err
		}
		cells = append(cells, cell)
	}
	return cells, nil
}

// parsedCells is a copy of a data cblock as passed to parse by ParsedBlock.
type parsedCells struct {
	first int
	cells [][]byte
}

func cellsOf(r *Reader, i int) (parsedCells, error) {
	v, err := r.ParsedBlock(i, func(first batch.Ordinal, cells *batch.Vector) (any, int64, error) {
		b, size := parsedCells{first: int(first)}, int64(0)
		for k := range cells.Len {
			b.cells = append(b.cells, bytes.Clone(cells.Cell(k)))
			size += int64(len(cells.Cell(k)))
		}
		return b, size, nil
	})
	if err != nil {
		return parsedCells{}, err
	}
	return v.(parsedCells), nil
}

func TestFindBlockInRawFiles(t *testing.T) {
	for _, codec := range []schema.Compression{schema.NoCompression, schema.LZ4} {
		out := &block.Memory{Number: 17}
		w := must.Get(NewRawWriter(out, WriterOptions{Compression: codec, IndexBlockBytes: 100}))(t)
		key := func(i int) []byte { return binary.BigEndian.AppendUint32(nil, uint32(i)) }
		prev := []byte(nil)
		for i := range 200 {
			must.Do(t, w.AppendBlock([][]byte{[]byte("head"), key(10*i + 10)}, key(10*i+10), prev))
			prev = key(10*i + 17)
		}
		must.Do(t, w.Finish())
		must.Equal(t, w.Bytes(), int64(len(out.Bytes)))
		if w.Finish() == nil || w.AppendBlock(nil, nil, nil) == nil {
			t.Error("AppendBlock after Finish succeeded")
		}
		keep := cache.New(1 << 20)
		r := open(t, out, keep)
		if _, ok, err := r.FindBlock(nil); ok || err != nil {
			t.Errorf("a key before the first: %v, %v", ok, err)
		}
		for probe := range 2100 {
			p, ok := must.Get2(r.FindBlock(key(probe)))(t)
			// Cblock n begins with key 10n+10, and the one before ends with 10n+7; its cut key is
			// between the two.
			lowest, highest := min((probe-10)/10, 199), min(max(probe-8, 0)/10, 199)
			must.Equal(t, ok, true, probe)
			v, err := r.ReadBlock(p, asPayload)
			b, _ := v.([]byte)
			must.Do(t, err)
			must.Equal(t, string(b[:4]), "head")
			n := int(binary.BigEndian.Uint32(b[4:]))
			if first := (n - 10) / 10; first > highest || first < lowest {
				t.Fatalf("key %d: cblock %d, want %d to %d", probe, first, lowest, highest)
			}
		}
		if keep.Used() == 0 {
			t.Error("nothing cached")
		}
		must.Do(t, r.Verify())
	}
}

// Errors of the source are returned unchanged, not as ErrCorrupt.
type failingSource struct {
	block.Source
	after int
}

var errIO = errors.New("input/output error")

func (s *failingSource) ReadAt(p []byte, off int64) (int, error) {
	if s.after--; s.after < 0 {
		return 0, errIO
	}
	return s.Source.ReadAt(p, off)
}

func TestReaderReturnsSourceErrors(t *testing.T) {
	src, _ := keyFile(t, 2000, WriterOptions{BlockBytes: 512, PositionalIndex: true})
	for after := range 12 {
		err := readAll(&failingSource{src, after})
		if !errors.Is(err, errIO) || errors.Is(err, fault.ErrCorrupt) {
			t.Fatalf("after %d reads: %v", after, err)
		}
	}
}

// asPayload is a parse function for ReadBlock that returns the payload.
func asPayload(payload []byte) (any, error) { return payload, nil }

// Cells that Cached reports are read without reading the file, and Fetch makes cells available.
func TestCachedCellsAreReadWithoutTheFile(t *testing.T) {
	r := seedtest.Rand(t)
	v := &batch.Vector{Type: schema.Int32}
	for range 5000 {
		cell := binary.LittleEndian.AppendUint32(nil, r.Uint32())
		if r.IntN(5) == 0 {
			cell = nil
		}
		v.AppendCell(cell)
	}
	src := &countingSource{Source: writeAll(t,
		WriterOptions{Type: schema.Int32, Nullable: true, BlockBytes: 1000, PositionalIndex: true}, v)}
	f := open(t, src, cache.New(16<<20))
	if _, ok, err := f.QuickCell(7); ok || err != nil {
		t.Errorf("a cell is held before anything was read: %v", err)
	}
	held := 0
	for range 1000 {
		row := batch.Ordinal(r.IntN(v.Len + 10))
		before := src.reads.Load()
		cell, ok, err := f.QuickCell(row)
		must.Do(t, err, row)
		must.Equal(t, src.reads.Load(), before, row)
		want, err := f.Cell(row)
		if int(row) >= v.Len {
			must.Equal(t, ok, false, row)
			must.Fail(t, err, fault.ErrNotFound, row)
			continue
		}
		if err != nil || ok != (src.reads.Load() == before) ||
			ok && (!bytes.Equal(cell, want) || (cell == nil) != (want == nil)) {
			t.Fatalf("row %d: held %t, %d reads, %x, want %x, %v", row, ok, src.reads.Load()-before, cell, want, err)
		}
		if ok {
			held++
		}
	}
	if held == 0 {
		t.Error("no cell was held")
	}

	f.cache.Evict(f.id)
	var c ColumnReader // also after another file
	for range 100 {
		if c.Reset(nil); c.held != [2]heldBlock{} {
			t.Fatal("Reset keeps a cblock")
		}
		c.Reset(f)
		got := &batch.Vector{Type: schema.Int32}
		c.Transient = r.IntN(2) == 0
		row, n := batch.Ordinal(r.IntN(v.Len)), 1+r.IntN(100)
		must.Do(t, c.Fetch(row, n))
		before := src.reads.Load()
		must.Equal(t, c.Cached(row, min(int(row)+n, v.Len)-int(row)), true)
		if k, err := c.ReadVector(row, n, got); err != nil || src.reads.Load() != before {
			t.Fatalf("%d of rows [%d,+%d): %d reads, %v", k, row, n, src.reads.Load()-before, err)
		}
	}
}
