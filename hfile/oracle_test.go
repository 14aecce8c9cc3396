package hfile_test

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"math"
	"math/rand/v2"
	"slices"
	"sort"
	"testing"
	"time"

	"github.com/oribi-db/oribi/block"
	"github.com/oribi-db/oribi/cache"
	"github.com/oribi-db/oribi/hfile"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/internal/seedtest"
)

// Random files go through the writer and the reader. The reader's answers are compared with a
// sorted slice of the cells. These tests use the public API only, and their own order of keys.

// order compares two keys. Source: hfile spec §5.4.
func order(a, b hfile.Key) int {
	if c := bytes.Compare(a.Row, b.Row); c != 0 {
		return c
	}
	last := func(k hfile.Key) int {
		if k.Type == hfile.Minimum && len(k.Family)+len(k.Qualifier) == 0 {
			return 1
		}
		return 0
	}
	return cmp.Or(
		cmp.Compare(last(a), last(b)),
		cmp.Compare(len(a.Family), len(b.Family)),
		bytes.Compare(a.Qualifier, b.Qualifier),
		cmp.Compare(b.Timestamp, a.Timestamp),
		cmp.Compare(b.Type, a.Type))
}

func orderRows(a, b hfile.Key) int { return bytes.Compare(a.Row, b.Row) }

// randomRow returns rows of three forms, some of which occur again.
func randomRow(rng *rand.Rand, form int) []byte {
	switch form {
	case 0:
		return fmt.Appendf(nil, "row-%05d", rng.IntN(400))
	case 1:
		row := make([]byte, rng.IntN(6))
		for i := range row {
			row[i] = []byte{0, 1, 'a', 0x7f, 0x80, 0xff}[rng.IntN(6)]
		}
		return row
	}
	row := bytes.Repeat([]byte("prefix/"), rng.IntN(40))
	return fmt.Appendf(row, "%d", rng.IntN(1000))
}

// randomCells returns sorted cells of one family: versions, deletes, empty qualifiers and values,
// equal keys, and tags and sequence IDs if o stores them. With distinct there is one cell for each
// row.
func randomCells(rng *rand.Rand, n int, o hfile.WriterOptions, distinct bool) []hfile.Cell {
	types := []hfile.Type{hfile.Put, hfile.Put, hfile.Put, hfile.Delete, hfile.DeleteColumn,
		hfile.DeleteFamily, hfile.DeleteFamilyVersion}
	family := []byte("family")[:rng.IntN(7)]
	form := rng.IntN(3)
	var cells []hfile.Cell
	for range n {
		c := hfile.Cell{Key: hfile.Key{Row: randomRow(rng, form), Timestamp: math.MaxInt64, Type: hfile.Put}}
		if o.Like == hfile.HBase {
			c.Family = family
			c.Qualifier = []byte("qualifier")[:[]int{0, 1, 9}[rng.IntN(3)]]
			c.Timestamp = []int64{0, 1, 255, 1_700_000_000_000,
				1_700_000_000_000 + rng.Int64N(1<<40), math.MaxInt64}[rng.IntN(6)]
			c.Type = types[rng.IntN(len(types))]
		}
		c.Value = make([]byte, []int{0, 1, 20, 150}[rng.IntN(4)])
		for i := range c.Value {
			c.Value[i] = byte(rng.IntN(4))
		}
		if rng.IntN(200) == 0 {
			c.Value = bytes.Repeat([]byte("long value "), 2000)
		}
		if o.Tags {
			for range rng.IntN(3) {
				c.Tags = hfile.AppendTag(c.Tags,
					hfile.Tag{Type: uint8(1 + rng.IntN(60)), Value: []byte("a tag value")[:rng.IntN(12)]})
			}
		}
		if o.Like == hfile.HBase && !o.OmitSequences {
			c.Sequence = []int64{0, 5, 127, 128, 1 << 40}[rng.IntN(5)]
		}
		cells = append(cells, c)
		if rng.IntN(20) == 0 {
			c.Value = []byte("the same key again")
			cells = append(cells, c)
		}
	}
	slices.SortStableFunc(cells, func(a, b hfile.Cell) int { return order(a.Key, b.Key) })
	if distinct {
		cells = slices.CompactFunc(cells, func(a, b hfile.Cell) bool { return bytes.Equal(a.Row, b.Row) })
	}
	return cells
}

// randomOptions returns options that the writer accepts.
func randomOptions(rng *rand.Rand) hfile.WriterOptions {
	o := hfile.WriterOptions{
		Codec:      []hfile.Codec{hfile.None, hfile.GZ, hfile.Snappy, hfile.LZ4, hfile.Zstd}[rng.IntN(5)],
		BlockBytes: []int{64, 500, 4000, 64 << 10}[rng.IntN(4)],
		Checksum: hfile.Use([]hfile.Checksum{hfile.ChecksumNull, hfile.ChecksumCRC32,
			hfile.ChecksumCRC32C}[rng.IntN(3)]),
		BytesPerChecksum: []int{0, 33, 512}[rng.IntN(3)],
		CreationTime:     time.UnixMilli(1_700_000_000_000),
	}
	if rng.IntN(4) == 0 {
		o.Like = hfile.Hudi
		o.Codec = []hfile.Codec{hfile.None, hfile.GZ}[rng.IntN(2)]
		return o
	}
	o.Encoding = []hfile.Encoding{hfile.EncodingNone, hfile.EncodingPrefix, hfile.EncodingDiff, hfile.EncodingFastDiff,
		hfile.EncodingRowIndexV1}[rng.IntN(5)]
	o.OmitSequences = rng.IntN(4) == 0
	o.Tags = rng.IntN(3) == 0
	o.CompressTags = o.Tags && rng.IntN(2) == 0
	if rng.IntN(2) == 0 {
		o.IndexBlockBytes = []int{60, 300, 2000}[rng.IntN(3)]
		o.IndexMinEntries = 2 + rng.IntN(4)
	}
	o.Bloom = []hfile.BloomKind{hfile.BloomNone, hfile.BloomRow, hfile.BloomRowCol, hfile.BloomRowPrefix}[rng.IntN(4)]
	if o.Bloom != hfile.BloomNone {
		o.BloomHash = hfile.Use([]hfile.BloomHash{hfile.Jenkins, hfile.Murmur, hfile.Murmur3}[rng.IntN(3)])
		o.BloomBlockBytes = []int{0, 1, 300}[rng.IntN(3)]
	}
	if o.Bloom == hfile.BloomRowPrefix {
		o.PrefixBytes = 1 + rng.IntN(10)
	}
	return o
}

func writeCells(t *testing.T, o hfile.WriterOptions, cells []hfile.Cell) []byte {
	t.Helper()
	sink := &block.Memory{}
	w, err := hfile.NewWriter(sink, o)
	must.Do(t, err, o)
	for _, c := range cells {
		must.Do(t, w.Append(c), o)
	}
	if o.Like == hfile.Hudi {
		f := must.Get(hfile.NewHudiBloom(hfile.HudiBloomOptions{Keys: 50, ErrorRate: 0.01, MaxKeys: 1000}))(t)
		for _, c := range cells {
			f.Add(c.Row)
		}
		must.Do(t, w.AddHudiBloom(f))
	}
	must.Do(t, cmp.Or(w.AddMeta("some name", []byte("some content")),
		w.AddInfo("some key", []byte("some value")), w.Finish()))
	return sink.Bytes
}

func sameCell(a, b hfile.Cell) bool {
	return bytes.Equal(a.Row, b.Row) && bytes.Equal(a.Family, b.Family) && bytes.Equal(a.Qualifier, b.Qualifier) &&
		a.Timestamp == b.Timestamp && a.Type == b.Type && bytes.Equal(a.Value, b.Value) &&
		bytes.Equal(a.Tags, b.Tags) && a.Sequence == b.Sequence
}

// sameCells compares an iteration with a slice.
func sameCells(t *testing.T, what string, seq iter.Seq2[hfile.Cell, error], want []hfile.Cell) {
	t.Helper()
	i := 0
	for c, err := range seq {
		must.Do(t, err, what, i)
		if i == len(want) {
			t.Fatalf("%s: more than %d cells: %v", what, len(want), c)
		}
		if !sameCell(c, want[i]) {
			t.Fatalf("%s: cell %d is %v, want %v", what, i, c, want[i])
		}
		i++
	}
	must.Equal(t, i, len(want), what)
}

func slice(cells []hfile.Cell) iter.Seq2[hfile.Cell, error] {
	return func(yield func(hfile.Cell, error) bool) {
		for _, c := range cells {
			if !yield(c, nil) {
				return
			}
		}
	}
}

// oracle answers seeks from the cells and the keys of the lowest level of the index.
type oracle struct {
	view  hfile.View
	cells []hfile.Cell
	index []hfile.Key
}

func newOracle(t *testing.T, r *hfile.Reader, view hfile.View, cells []hfile.Cell) *oracle {
	o := &oracle{view: view, cells: cells}
	for e, err := range r.IndexEntries() {
		must.Do(t, err)
		if e.Depth == r.Trailer().IndexLevels-1 {
			k, ok := hfile.ParseKey(e.Key)
			must.Equal(t, ok, true, e.Key)
			o.index = append(o.index, k)
		}
	}
	return o
}

func (o *oracle) compare(a, b hfile.Key) int {
	if o.view == hfile.ViewHudi {
		return orderRows(a, b)
	}
	return order(a, b)
}

// from returns the index of the first cell that is not before k.
func (o *oracle) from(k hfile.Key) int {
	return sort.Search(len(o.cells), func(i int) bool { return o.compare(o.cells[i].Key, k) >= 0 })
}

// seekTo returns the code of a seek and the index of the cell under the cursor, -1 for none.
// Source: hfile spec §11.
func (o *oracle) seekTo(k hfile.Key) (hfile.SeekCode, int) {
	hudi := o.view == hfile.ViewHudi
	n := o.from(k)
	switch {
	case len(o.cells) == 0 && hudi:
		return hfile.AfterFile, -1
	case len(o.cells) == 0:
		return hfile.BeforeFile, -1
	case n < len(o.cells) && o.compare(o.cells[n].Key, k) == 0:
		return hfile.Found, n
	case n == 0 && hudi:
		return hfile.BeforeFile, 0
	case n == 0:
		return hfile.BeforeFile, -1
	case n == len(o.cells) && hudi:
		return hfile.AfterFile, -1
	}
	leaf := sort.Search(len(o.index), func(i int) bool { return o.compare(o.index[i], k) > 0 }) - 1
	if first := o.from(o.index[leaf]); n <= first {
		return hfile.BeforeBlock, first
	}
	return hfile.InRange, n - 1
}

// randomKey returns a key of a cell, or one close to it.
func (o *oracle) randomKey(rng *rand.Rand) hfile.Key {
	k := hfile.FirstOnRow(randomRow(rng, rng.IntN(3)))
	if len(o.cells) == 0 {
		return k
	}
	near := o.cells[rng.IntN(len(o.cells))].Key
	switch rng.IntN(9) {
	case 0:
		k = near
	case 1:
		k = hfile.FirstOnRow(near.Row)
	case 2:
		k = hfile.Key{Row: near.Row, Type: hfile.Minimum}
	case 3:
		k = near
		k.Timestamp += int64(rng.IntN(3)) - 1
		k.Timestamp = max(k.Timestamp, 0)
	case 4:
		k = near
		k.Qualifier = append(bytes.Clone(k.Qualifier), 'x')
	case 5:
		k = hfile.FirstOnRow(append(bytes.Clone(near.Row), 0))
	case 6:
		k = hfile.FirstOnRow(near.Row[:len(near.Row)/2])
	case 7:
		if len(o.index) > 0 {
			k = o.index[rng.IntN(len(o.index))]
		}
	}
	return k
}

// checkSeekGE checks where SeekGE moves to.
func (o *oracle) checkSeekGE(t *testing.T, c *hfile.Cursor, k hfile.Key) {
	t.Helper()
	want := o.from(k)
	ok, err := c.SeekGE(k)
	if err != nil || ok != (want < len(o.cells)) || ok && !sameCell(c.Cell(), o.cells[want]) {
		t.Fatalf("SeekGE(%v) = %t, %v, at %v; want cell %d", k, ok, err, c.Cell(), want)
	}
}

func checkSeeks(t *testing.T, r *hfile.Reader, o *oracle, rng *rand.Rand) {
	t.Helper()
	reused := r.NewCursor(hfile.CursorOptions{View: o.view})
	var keys []hfile.Key
	for range 60 {
		k := o.randomKey(rng)
		keys = append(keys, k)
		wantCode, want := o.seekTo(k)
		for name, c := range map[string]*hfile.Cursor{"new": r.NewCursor(hfile.CursorOptions{View: o.view}),
			"used": reused} {
			code, err := c.SeekTo(k)
			if err != nil || code != wantCode || c.Valid() != (want >= 0) {
				t.Fatalf("%s cursor, SeekTo(%v) = %d, %v, valid %t; want %d at %d", name, k, code,
					err, c.Valid(), wantCode, want)
			}
			if want < 0 {
				continue
			}
			if !sameCell(c.Cell(), o.cells[want]) {
				t.Fatalf("%s cursor, SeekTo(%v) = %d at %v, want cell %d, %v", name, k, code,
					c.Cell(), want, o.cells[want])
			}
			for i := want + 1; i < min(want+4, len(o.cells)); i++ {
				if !c.Next() || !sameCell(c.Cell(), o.cells[i]) {
					t.Fatalf("%s cursor, SeekTo(%v), then Next: %v, want %v (%v)", name, k,
						c.Cell(), o.cells[i], c.Err())
				}
			}
			if want >= len(o.cells)-3 && c.Next() {
				t.Fatalf("%s cursor, SeekTo(%v): Next after the last cell", name, k)
			}
		}
		o.checkSeekGE(t, reused, k)
		before := o.from(k) - 1
		ok := must.Get(reused.SeekBefore(k))(t)
		must.Equal(t, ok, before >= 0, k, before)
		if ok && !sameCell(reused.Cell(), o.cells[before]) {
			t.Fatalf("SeekBefore(%v) is at %v, want %v", k, reused.Cell(), o.cells[before])
		}
		if before+1 < len(o.cells) && (!reused.Next() || !sameCell(reused.Cell(), o.cells[before+1])) {
			t.Fatalf("SeekBefore(%v), then Next: %v, want %v (%v)", k, reused.Cell(), o.cells[before+1], reused.Err())
		}
	}
	must.Do(t, reused.Close())

	// Ascending keys on one cursor that only goes forward: the answers of new cursors.
	slices.SortFunc(keys, o.compare)
	ahead := r.NewCursor(hfile.CursorOptions{View: o.view, ForwardOnly: true})
	for _, k := range keys {
		o.checkSeekGE(t, ahead, k)
	}
	must.Do(t, ahead.Close())
	c := r.NewCursor(hfile.CursorOptions{View: o.view, ForwardOnly: true})
	for _, k := range keys {
		wantCode, want := o.seekTo(k)
		code, err := c.SeekTo(k)
		if err != nil || code != wantCode || c.Valid() != (want >= 0) ||
			want >= 0 && !sameCell(c.Cell(), o.cells[want]) {
			t.Fatalf("forward only, SeekTo(%v) = %d, %v, at %v; want %d at %d", k, code, err, c.Cell(), wantCode, want)
		}
	}
	if len(o.cells) > 1 && o.compare(o.cells[0].Key, o.cells[len(o.cells)-1].Key) < 0 {
		c := r.NewCursor(hfile.CursorOptions{View: o.view, ForwardOnly: true})
		last := o.cells[len(o.cells)-1].Key
		must.Equal(t, must.Get(c.SeekTo(last))(t), hfile.Found, "SeekTo the last key")
		at := c.Cell().Clone()
		leaf := sort.Search(len(o.index), func(i int) bool { return o.compare(o.index[i], last) > 0 }) - 1
		if o.compare(o.cells[0].Key, o.index[leaf]) < 0 {
			if code, err := c.SeekTo(o.cells[0].Key); !errors.Is(err, hfile.ErrBackward) ||
				!c.Valid() || !sameCell(c.Cell(), at) {
				t.Fatalf("forward only, SeekTo the first key from the last = %d, %v, at %v", code, err, c.Cell())
			}
		}
	}
}

func checkGets(t *testing.T, r *hfile.Reader, cells []hfile.Cell, rng *rand.Rand) {
	t.Helper()
	among := func(wanted func(hfile.Cell) bool) (some []hfile.Cell) {
		for _, c := range cells {
			if wanted(c) {
				some = append(some, c)
			}
		}
		return some
	}
	for range 30 {
		k := hfile.Key{Row: randomRow(rng, rng.IntN(3))}
		if len(cells) > 0 && rng.IntN(3) > 0 {
			k = cells[rng.IntN(len(cells))].Key
		}
		if rng.IntN(4) == 0 {
			k.Qualifier = []byte("qualifier")[:rng.IntN(10)]
		}
		got := must.Get(r.Get(k.Row))(t)
		sameCells(t, fmt.Sprintf("Get(%q)", k.Row), slice(got), among(func(c hfile.Cell) bool {
			return bytes.Equal(c.Row, k.Row)
		}))
		got = must.Get(r.GetColumn(k.Row, k.Family, k.Qualifier))(t)
		sameCells(t, fmt.Sprintf("GetColumn(%q, %q, %q)", k.Row, k.Family, k.Qualifier), slice(got),
			among(func(c hfile.Cell) bool {
				return bytes.Equal(c.Row, k.Row) && bytes.Equal(c.Family, k.Family) &&
					bytes.Equal(c.Qualifier, k.Qualifier)
			}))

		prefix := k.Row[:rng.IntN(len(k.Row)+1)]
		want := among(func(c hfile.Cell) bool { return bytes.HasPrefix(c.Row, prefix) })
		i := 0
		for kv, err := range r.ScanPrefix(prefix) {
			if err != nil || i == len(want) || !bytes.Equal(kv.Key, want[i].Row) ||
				!bytes.Equal(kv.Value, want[i].Value) {
				t.Fatalf("ScanPrefix(%q): entry %d of %d is %q (%v)", prefix, i, len(want), kv.Key, err)
			}
			i++
		}
		must.Equal(t, i, len(want), prefix)
		to := randomRow(rng, rng.IntN(3))
		sameCells(t, fmt.Sprintf("CellsBetween(%q, %q)", k.Row, to), r.CellsBetween(k.Row, to),
			among(func(c hfile.Cell) bool {
				return bytes.Compare(c.Row, k.Row) >= 0 && bytes.Compare(c.Row, to) < 0
			}))
	}
}

// checkBlooms checks that the filters contain the cells.
func checkBlooms(t *testing.T, r *hfile.Reader, o hfile.WriterOptions, cells []hfile.Cell) {
	t.Helper()
	general := must.Get(r.Bloom())(t)
	must.Equal(t, general != nil, o.Bloom != hfile.BloomNone && len(cells) > 0, o)
	deletes := must.Get(r.DeleteFamilyBloom())(t)
	hudi := must.Get(r.HudiBloom())(t)
	must.Equal(t, hudi != nil, o.Like == hfile.Hudi)
	for _, f := range []*hfile.BloomFilter{general, deletes} {
		if f == nil {
			continue
		}
		must.Do(t, f.Check())
	}
	for _, c := range cells {
		if general != nil {
			must.Equal(t, must.Get(general.MayContain(c.Row, c.Qualifier))(t), true, c.Key)
		}
		if hudi != nil && !hudi.MayContain(c.Row) {
			t.Fatalf("filter of Hudi excludes %q", c.Row)
		}
		deleted := c.Type == hfile.DeleteFamily || c.Type == hfile.DeleteFamilyVersion
		if deleted && deletes == nil && o.StoreFile && o.Bloom != hfile.BloomRowCol {
			t.Fatal("no filter of deletes")
		}
		if deleted && deletes != nil {
			must.Equal(t, must.Get(deletes.MayContain(c.Row, nil))(t), true, c.Key)
		}
	}
}

func TestRandomFilesReadAsWritten(t *testing.T) {
	files := seedtest.Rounds(100, 50)
	for seed := range uint64(files) {
		rng := rand.New(rand.NewPCG(seed, 1))
		o := randomOptions(rng)
		distinct := rng.IntN(3) == 0
		cells := randomCells(rng, []int{0, 1, 2, 30, 500}[rng.IntN(5)], o, distinct)
		t.Run(fmt.Sprintf("seed=%d/%v/%v/%v/%d", seed, o.Like, o.Codec, o.Encoding, len(cells)), func(t *testing.T) {
			file := writeCells(t, o, cells)
			must.Equal(t, file, writeCells(t, o, cells), "the same cells give other bytes")
			read := hfile.ReaderOptions{}
			if rng.IntN(2) == 0 {
				read.Cache, read.CacheID = cache.New(int64(rng.IntN(1<<20))), 7
			}
			r := must.Get(hfile.Open(&block.Memory{Bytes: file}, read))(t)
			sameCells(t, "Cells", r.Cells(), cells)
			views := []hfile.View{hfile.ViewHBase}
			if distinct || o.Like == hfile.Hudi {
				views = append(views, hfile.ViewHudi)
			}
			for _, view := range views {
				checkSeeks(t, r, newOracle(t, r, view, cells), rng)
			}
			checkGets(t, r, cells, rng)
			checkBlooms(t, r, o, cells)
			if content, ok, err := r.Meta("some name"); string(content) != "some content" || !ok || err != nil {
				t.Errorf("meta block: %q, %t, %v", content, ok, err)
			}
			if _, ok, err := r.Meta("some nam"); ok || err != nil {
				t.Errorf("a meta block that is not in the file: %t, %v", ok, err)
			}
			if v, ok := r.InfoValue("some key"); string(v) != "some value" || !ok {
				t.Errorf("file info: %q, %t", v, ok)
			}
			must.Do(t, r.Verify(context.Background()))
		})
	}
}

// smallFiles calls f for small files with every part that a block can be, and checksums.
func smallFiles(t *testing.T, f func(t *testing.T, o hfile.WriterOptions, cells []hfile.Cell, file []byte)) {
	for i, o := range []hfile.WriterOptions{
		{Bloom: hfile.BloomRow, BloomBlockBytes: 1, IndexBlockBytes: 60, IndexMinEntries: 2, BlockBytes: 200},
		{Codec: hfile.GZ, Encoding: hfile.EncodingFastDiff, Checksum: hfile.Use(hfile.ChecksumCRC32),
			BytesPerChecksum: 64, BlockBytes: 300},
		{Codec: hfile.Snappy, Encoding: hfile.EncodingDiff, Tags: true, CompressTags: true, Bloom: hfile.BloomRowCol},
		{Codec: hfile.Zstd, Encoding: hfile.EncodingPrefix, StoreFile: true, BlockBytes: 300},
		{Codec: hfile.LZ4, Encoding: hfile.EncodingRowIndexV1, Bloom: hfile.BloomRowPrefix, PrefixBytes: 4},
		{Like: hfile.Hudi, Checksum: hfile.Use(hfile.ChecksumCRC32C), BlockBytes: 300},
	} {
		o.CreationTime = time.UnixMilli(1_700_000_000_000)
		rng := rand.New(rand.NewPCG(uint64(i), 2))
		cells := randomCells(rng, 12, o, false)
		cells = slices.DeleteFunc(cells, func(c hfile.Cell) bool { return len(c.Value)+len(c.Row) > 200 })
		t.Run(fmt.Sprintf("%v/%v/%v", o.Like, o.Codec, o.Encoding), func(t *testing.T) {
			f(t, o, cells, writeCells(t, o, cells))
		})
	}
}

func blocksEnd(t *testing.T, file []byte) (end int) {
	r := must.Get(hfile.Open(&block.Memory{Bytes: file}, hfile.ReaderOptions{}))(t)
	for b, err := range r.Blocks() {
		must.Do(t, err)
		end = int(b.Offset) + b.Size
	}
	return end
}

func isFormatError(err error) bool {
	return errors.Is(err, hfile.ErrCorrupt) || errors.Is(err, hfile.ErrUnsupported)
}

func TestEveryFlippedBitOfABlockIsAnError(t *testing.T) {
	smallFiles(t, func(t *testing.T, _ hfile.WriterOptions, _ []hfile.Cell, file []byte) {
		end := blocksEnd(t, file)
		damaged := bytes.Clone(file)
		for at := range end {
			for k := range seedtest.Rounds(8, 1) {
				bit := (at + k) % 8
				damaged[at] = file[at] ^ 1<<bit
				r, err := hfile.Open(&block.Memory{Bytes: damaged}, hfile.ReaderOptions{})
				if err == nil {
					err = r.Verify(context.Background())
				}
				if !isFormatError(err) {
					t.Errorf("bit %d of byte %d of %d: %v", bit, at, end, err)
				}
			}
			damaged[at] = file[at]
		}
	})
}

// The trailer has no checksum.
func TestFlippedBitsOfTheTrailerChangeNoAnswer(t *testing.T) {
	smallFiles(t, func(t *testing.T, o hfile.WriterOptions, cells []hfile.Cell, file []byte) {
		view := hfile.ViewHBase
		if o.Like == hfile.Hudi {
			view = hfile.ViewHudi
		}
		good := must.Get(hfile.Open(&block.Memory{Bytes: file}, hfile.ReaderOptions{}))(t)
		want := newOracle(t, good, view, cells)
		damaged := bytes.Clone(file)
		accepted := 0
		for at := blocksEnd(t, file); at < len(file); at++ {
			if file[at] == 0 && at%256 != 0 {
				continue // most of the trailer is padding
			}
			for k := range seedtest.Rounds(8, 1) {
				bit := (at + k) % 8
				damaged[at] = file[at] ^ 1<<bit
				if !sameAnswers(t, damaged, o, want) {
					t.Errorf("bit %d of byte %d of the trailer changes an answer", bit, at)
				} else {
					accepted++
				}
			}
			damaged[at] = file[at]
		}
		t.Logf("%d bits", accepted)
	})
}

// sameAnswers reports whether each call on a damaged file fails or answers as on the whole one.
func sameAnswers(t *testing.T, damaged []byte, o hfile.WriterOptions, want *oracle) bool {
	r, err := hfile.Open(&block.Memory{Bytes: damaged}, hfile.ReaderOptions{})
	if err != nil {
		return isFormatError(err)
	}
	i := 0
	for c, err := range r.Cells() {
		if err != nil {
			i = len(want.cells)
			break
		}
		if i == len(want.cells) || !sameCell(c, want.cells[i]) {
			return false
		}
		i++
	}
	if i != len(want.cells) {
		return false
	}
	for _, c := range want.cells {
		for _, k := range []hfile.Key{c.Key, hfile.FirstOnRow(c.Row), {Row: append(bytes.Clone(c.Row), 'x')}} {
			code, at := want.seekTo(k)
			cursor := r.NewCursor(hfile.CursorOptions{View: want.view})
			got, err := cursor.SeekTo(k)
			if err == nil && (got != code || cursor.Valid() != (at >= 0) ||
				at >= 0 && !sameCell(cursor.Cell(), want.cells[at])) {
				return false
			}
			before, err := cursor.SeekBefore(k)
			if n := want.from(k) - 1; err == nil && before != (n >= 0) {
				return false
			}
		}
		if cells, err := r.Get(c.Row); err == nil && len(cells) == 0 {
			return false
		}
		if f, err := r.Bloom(); err == nil {
			if (f != nil) != (o.Bloom != hfile.BloomNone) {
				return false
			}
			if f != nil {
				if ok, err := f.MayContain(c.Row, c.Qualifier); err == nil && !ok {
					return false
				}
			}
		}
		if f, err := r.HudiBloom(); err == nil &&
			((f != nil) != (o.Like == hfile.Hudi) || f != nil && !f.MayContain(c.Row)) {
			return false
		}
	}
	return true
}

func TestTruncatedFilesAreErrors(t *testing.T) {
	smallFiles(t, func(t *testing.T, _ hfile.WriterOptions, _ []hfile.Cell, file []byte) {
		for n := range file {
			if _, err := hfile.Open(&block.Memory{Bytes: file[:n]}, hfile.ReaderOptions{}); !isFormatError(err) {
				t.Errorf("the first %d of %d bytes: %v", n, len(file), err)
			}
			// Without bytes at the front all offsets are wrong.
			if n > 0 {
				r, err := hfile.Open(&block.Memory{Bytes: file[n:]}, hfile.ReaderOptions{})
				if err == nil {
					err = r.Verify(context.Background())
				}
				if !isFormatError(err) {
					t.Errorf("the last %d of %d bytes: %v", len(file)-n, len(file), err)
				}
			}
		}
	})
}
