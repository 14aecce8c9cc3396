package hfile

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/oribi-db/oribi/block"
	"github.com/oribi-db/oribi/internal/must"
)

// at is a fixed creation time.
var at = time.UnixMilli(1700000000000)

func newWriter(t *testing.T, o WriterOptions) (*Writer, *bytes.Buffer) {
	t.Helper()
	if o.CreationTime.IsZero() {
		o.CreationTime = at
	}
	out := new(bytes.Buffer)
	w := must.Get(NewWriter(out, o))(t)
	return w, out
}

func put(row, qualifier string, timestamp int64) Cell {
	return Cell{Key: Key{Row: []byte(row), Family: []byte("cf"), Qualifier: []byte(qualifier), Timestamp: timestamp,
		Type: Put}, Value: []byte("value")}
}

// TestWriterRefusals hands each refused cell to a writer between two good ones: the file must equal
// the file of the good ones alone.
func TestWriterRefusals(t *testing.T) {
	first, last := put("m", "q", 5), put("z", "q", 5)
	with := func(change func(c *Cell)) Cell {
		c := put("p", "q", 5)
		change(&c)
		return c
	}
	long := make([]byte, 1<<16)
	for _, c := range []struct {
		name string
		o    WriterOptions
		cell Cell
		want string
	}{
		{"row before", WriterOptions{}, put("a", "q", 5), "sorts before"},
		{"qualifier before", WriterOptions{}, put("m", "p", 5), "sorts before"},
		{"newer version after", WriterOptions{}, put("m", "q", 6), "sorts before"},
		{"greater type after", WriterOptions{},
			Cell{Key: Key{Row: []byte("m"), Family: []byte("cf"), Qualifier: []byte("q"), Timestamp: 5,
				Type: DeleteColumn}}, "sorts before"},
		{"equal key", WriterOptions{RefuseEqualKeys: true}, put("m", "q", 5), "equals"},
		{"long row", WriterOptions{}, with(func(c *Cell) {
			c.Row = append([]byte("p"), long[:MaxRowBytes]...)
		}), "row of 32768 bytes"},
		{"long family", WriterOptions{}, with(func(c *Cell) { c.Family = long[:128] }), "family of 128 bytes"},
		{"other family", WriterOptions{}, with(func(c *Cell) { c.Family = []byte("cg") }), "family of the file"},
		{"no family", WriterOptions{}, with(func(c *Cell) { c.Family = nil }), "family of the file"},
		{"negative timestamp", WriterOptions{}, with(func(c *Cell) { c.Timestamp = -1 }), "negative timestamp"},
		{"negative sequence ID", WriterOptions{}, with(func(c *Cell) { c.Sequence = -1 }), "negative sequence"},
		{"sequence ID without them", WriterOptions{OmitSequences: true}, with(func(c *Cell) {
			c.Sequence = 1
		}), "OmitSequences"},
		{"type Minimum", WriterOptions{}, with(func(c *Cell) { c.Type = Minimum }), "not the type"},
		{"type Maximum", WriterOptions{}, with(func(c *Cell) { c.Type = Maximum }), "not the type"},
		{"unknown type", WriterOptions{}, with(func(c *Cell) { c.Type = 5 }), "not the type"},
		{"tags without them", WriterOptions{}, with(func(c *Cell) { c.Tags = []byte{0, 1, 1} }), "WriterOptions.Tags"},
		{"long tags", WriterOptions{Tags: true}, with(func(c *Cell) { c.Tags = long }), "tags of 65536 bytes"},
		{"cut tags", WriterOptions{Tags: true}, with(func(c *Cell) { c.Tags = []byte{0, 2, 1} }), "malformed tags"},
		{"tag without type", WriterOptions{Tags: true}, with(func(c *Cell) {
			c.Tags = []byte{0, 0}
		}), "malformed tags"},
		{"end of tags", WriterOptions{Tags: true}, with(func(c *Cell) {
			c.Tags = []byte{0, 1, 1, 0}
		}), "malformed tags"},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, encoding := range []Encoding{EncodingNone, EncodingFastDiff} {
				c.o.Encoding = encoding
				c.o.Bloom = BloomRow
				write := func(refused bool) []byte {
					w, out := newWriter(t, c.o)
					err := w.Append(first)
					if refused {
						err := w.Append(c.cell)
						if err == nil || !strings.Contains(err.Error(), c.want) ||
							!strings.HasPrefix(err.Error(), "hfile: entry 1: ") {
							t.Errorf("%v: %v, want an error with %q", encoding, err, c.want)
						}
					}
					if err == nil {
						err = w.Append(last)
					}
					if err == nil {
						err = w.Finish()
					}
					must.Do(t, err)
					return out.Bytes()
				}
				must.Equal(t, write(true), write(false), encoding)
			}
		})
	}
}

// TestWriterRefusesOversizedCells does so without the memory: the limits are checked first.
func TestWriterRefusesOversizedCells(t *testing.T) {
	w, out := newWriter(t, WriterOptions{})
	w.blockLimit = 1000
	must.Do(t, w.Append(put("a", "q", 1)))
	big := put("b", "q", 1)
	big.Value = make([]byte, 1000)
	must.Contain(t, fmt.Sprint(w.Append(big)), "more than the limit of 1000", "a block above the limit")
	// Cells with equal keys share a block, whatever its size.
	for i := 0; ; i++ {
		if err := w.Append(put("a", "q", 1)); err != nil {
			break
		}
		if i > 100 {
			t.Fatal("a block beyond the limit was accepted")
		}
	}
	must.Do(t, w.Finish())
	must.Get(Open(&block.Memory{Bytes: out.Bytes()}, ReaderOptions{}))(t)
	w, _ = newWriter(t, WriterOptions{BytesPerChecksum: headerLen})
	onDisk := headerLen + w.blockLimit
	if total := onDisk + checksumLen*((onDisk+headerLen-1)/headerLen); total > math.MaxInt32 {
		t.Errorf("a block of %d bytes takes %d", w.blockLimit, total)
	}
}

func TestHudiWriterRefusesCellsOfHBase(t *testing.T) {
	w, _ := newWriter(t, WriterOptions{Like: Hudi})
	for _, c := range []Cell{
		put("a", "", math.MaxInt64),
		{Key: Key{Row: []byte("a"), Qualifier: []byte("q"), Timestamp: math.MaxInt64, Type: Put}},
		{Key: Key{Row: []byte("a"), Timestamp: 1, Type: Put}},
		{Key: Key{Row: []byte("a"), Timestamp: math.MaxInt64, Type: Delete}},
		{Key: Key{Row: []byte("a"), Timestamp: math.MaxInt64, Type: Put}, Sequence: 1},
		{Key: Key{Row: []byte("a"), Timestamp: math.MaxInt64, Type: Put}, Tags: []byte{0, 1, 1}},
	} {
		must.Contain(t, fmt.Sprint(w.Append(c)), "AppendKeyValue", c)
	}
	for _, key := range []string{"b", "b", "c"} {
		must.Do(t, w.AppendKeyValue([]byte(key), nil))
	}
	must.Refuse(t, w.AppendKeyValue([]byte("a"), nil), "a falling key was accepted")
}

func TestWriterRefusesMetaAndInfo(t *testing.T) {
	w, _ := newWriter(t, WriterOptions{StoreFile: true})
	for _, c := range []struct {
		err  error
		want string // "": no error
	}{
		{w.AddMeta("m", []byte("1")), ""},
		{w.AddMeta("m", []byte("2")), "added before"},
		{w.AddMeta("", nil), ""},
		{w.AddInfo("user", nil), ""},
		{w.AddInfo("user", nil), "added before"},
		{w.AddInfo("hfile.", nil), "prefix"},
		{w.AddInfo("hfile.LASTKEY", nil), "prefix"},
		{w.AddInfo("KEY_VALUE_VERSION", nil), "the writer sets"},
		{w.AddInfo("DATA_BLOCK_ENCODING", nil), "the writer sets"},
		{w.AddInfo("TIMERANGE", nil), "the writer sets"},
	} {
		if (c.err == nil) != (c.want == "") || c.err != nil && !strings.Contains(c.err.Error(), c.want) {
			t.Errorf("%v, want %q", c.err, c.want)
		}
	}
	w, _ = newWriter(t, WriterOptions{})
	must.Do(t, w.AddInfo("TIMERANGE", nil))
}

func TestWriterIsClosedAfterFinish(t *testing.T) {
	w, _ := newWriter(t, WriterOptions{})
	must.Do(t, w.Finish())
	for _, err := range []error{w.Append(put("a", "", 1)), w.AppendKeyValue(nil, nil), w.AddMeta("m", nil),
		w.AddInfo("i", nil), w.Finish()} {
		must.Fail(t, err, ErrClosed)
	}
}

// limitedSink accepts a number of bytes.
type limitedSink struct{ left int }

var errFull = errors.New("full")

func (s *limitedSink) Write(p []byte) (int, error) {
	if len(p) > s.left {
		n := s.left
		s.left = 0
		return n, errFull
	}
	s.left -= len(p)
	return len(p), nil
}

func TestWriterKeepsTheErrorOfItsSink(t *testing.T) {
	for limit := 0; ; limit += 37 {
		w, err := NewWriter(&limitedSink{limit},
			WriterOptions{BlockBytes: 100, IndexBlockBytes: 200, IndexMinEntries: 2, Bloom: BloomRow,
				BloomBlockBytes: 128, CreationTime: at})
		must.Do(t, err)
		w.AddMeta("m", []byte("content"))
		for i := range 100 {
			err = w.Append(put(fmt.Sprintf("row%03d", i), "q", 1))
			if err != nil {
				break
			}
		}
		if err == nil {
			err = w.Finish()
		}
		if err == nil {
			if limit < 10000 {
				t.Errorf("a file of %d bytes", limit)
			}
			return
		}
		must.Fail(t, err, errFull, limit)
		must.Fail(t, w.Append(put("z", "q", 1)), errFull, "Append after the failure")
		must.Fail(t, w.Finish(), errFull, "Finish after the failure")
	}
}

func TestWriterOptionsAreChecked(t *testing.T) {
	for _, c := range []struct {
		o    WriterOptions
		want string
	}{
		{WriterOptions{Like: 9}, "system 9"},
		{WriterOptions{Codec: 5}, "codec 5"},
		{WriterOptions{Encoding: 6}, "encoding 6"},
		{WriterOptions{Checksum: Use(Checksum(3))}, "checksum type 3"},
		{WriterOptions{Bloom: 4}, "Bloom kind 4"},
		{WriterOptions{Bloom: BloomRow, BloomHash: Use(BloomHash(3))}, "hash 3"},
		{WriterOptions{Bloom: BloomRowPrefix}, "prefixes of 0 bytes"},
		{WriterOptions{Bloom: BloomRow, BloomBlockBytes: -1}, "Bloom blocks"},
		{WriterOptions{BlockBytes: -1}, "BlockBytes is -1"},
		{WriterOptions{BlockBytes: 2 << 30}, "BlockBytes"},
		{WriterOptions{BytesPerChecksum: 32}, "BytesPerChecksum is 32"},
		{WriterOptions{IndexBlockBytes: -1}, "IndexBlockBytes"},
		{WriterOptions{IndexMinEntries: 1}, "IndexMinEntries is 1, want 2"},
		{WriterOptions{CodecBuffer: 10}, "CodecBuffer"},
		{WriterOptions{CompressTags: true}, "needs Tags"},
		{WriterOptions{MajorVersion: 1}, "version 1"},
		{WriterOptions{Comparator: "org.apache.hadoop.hbase.KeyValue$MetaComparator"}, "not known"},
		{WriterOptions{Comparator: "org.apache.hudi." + strings.Repeat("x", 100)}, "116 bytes"},
		{WriterOptions{Like: Hudi, Codec: Snappy}, "codec SNAPPY"},
		{WriterOptions{Like: Hudi, Encoding: EncodingDiff}, "encoding DIFF"},
		{WriterOptions{Like: Hudi, Bloom: BloomRow}, "no tags"},
		{WriterOptions{Like: Hudi, Tags: true}, "no tags"},
		{WriterOptions{Like: Hudi, StoreFile: true}, "no tags"},
		{WriterOptions{Like: Hudi, OmitSequences: true}, "sequence IDs"},
		{WriterOptions{Like: Hudi, MajorVersion: 2}, "version 3"},
		{WriterOptions{Like: Hudi120, IndexBlockBytes: 100}, "one level"},
	} {
		must.Contain(t, fmt.Sprint(must.Err(NewWriter(new(bytes.Buffer), c.o))), c.want, c.o)
	}
	_, err := NewWriter(new(bytes.Buffer), WriterOptions{BlockBytes: -1, Codec: 5})
	must.Contain(t, fmt.Sprint(err), "BlockBytes")
	must.Contain(t, fmt.Sprint(err), "codec")
}

// TestHudiChecksumsCoverBlocks checks the default of BytesPerChecksum: Hudi up to 1.2.0 loses the
// last records of a block whose checksums take more bytes than its last record.
func TestHudiChecksumsCoverBlocks(t *testing.T) {
	headers := func(o WriterOptions) (headers []blockHeader) {
		w, out := newWriter(t, o)
		for i := range 40 { // runs of equal keys, larger than small blocks
			must.Do(t, w.AppendKeyValue(fmt.Appendf(nil, "key%05d", i/4), make([]byte, 30<<10)))
		}
		must.Do(t, w.Finish())
		for _, b := range unpackedBlocks(t, out.Bytes()) {
			headers = append(headers, b.header)
		}
		return headers
	}
	for _, c := range []struct {
		name   string
		o      WriterOptions
		size   int // BytesPerChecksum
		larger bool
	}{
		{"default", WriterOptions{Like: Hudi}, 1 << 20, true},
		{"blocks of 64 KiB", WriterOptions{Like: Hudi, BlockBytes: 64 << 10}, 16 << 10, true},
		{"blocks of 200 KiB", WriterOptions{Like: Hudi, BlockBytes: 200 << 10}, 200 << 10, true},
		{"explicit", WriterOptions{Like: Hudi, BytesPerChecksum: 512}, 512, false},
		{"as 1.2.0", WriterOptions{Like: Hudi120}, 16 << 10, false},
		{"as HBase", WriterOptions{}, 16 << 10, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, h := range headers(c.o) {
				want := c.size
				if c.larger && h.dataSize > hudiSafeBlockBytes {
					want = max(want, h.dataSize)
				}
				must.Equal(t, h.bytesPerChecksum, want, h.magic, h.dataSize)
			}
		})
	}
}

// TestWriterKeepsEqualKeysInOneBlock writes runs of equal keys that are larger than a block.
func TestWriterKeepsEqualKeysInOneBlock(t *testing.T) {
	for _, like := range []System{HBase, Hudi} {
		w, out := newWriter(t, WriterOptions{Like: like, BlockBytes: 100})
		for i := range 60 {
			must.Do(t, w.AppendKeyValue(fmt.Appendf(nil, "key%03d", i/20), []byte("some value")))
		}
		must.Do(t, w.Finish())
		r := must.Get(Open(&block.Memory{Bytes: out.Bytes()}, ReaderOptions{}))(t)
		must.Equal(t, r.Trailer().DataIndexCount, 3, like)
	}
}

func TestHudiWriterSplitsItsIndexOnRequest(t *testing.T) {
	for _, c := range []struct{ bytes, levels int }{{0, 1}, {256, 3}} {
		w, out := newWriter(t, WriterOptions{Like: Hudi, BlockBytes: 64, IndexBlockBytes: c.bytes})
		for i := range 200 {
			must.Do(t, w.AppendKeyValue(fmt.Appendf(nil, "key%05d", i), []byte("some value")))
		}
		must.Do(t, w.Finish())
		r := must.Get(Open(&block.Memory{Bytes: out.Bytes()}, ReaderOptions{}))(t)
		must.Equal(t, r.Trailer().IndexLevels, c.levels, c.bytes)
	}
}

// TestWriterStreams checks that what a Writer keeps does not grow with the file.
func TestWriterStreams(t *testing.T) {
	inUse := func() uint64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	before := inUse()
	w := must.Get(NewWriter(io.Discard, WriterOptions{Bloom: BloomRow}))(t)
	c := put("", "q", 1)
	c.Value = make([]byte, 200)
	const entries = 200_000
	for i := range entries {
		c.Row = fmt.Appendf(c.Row[:0], "row%09d", i)
		must.Do(t, w.Append(c))
	}
	if kept := int64(inUse() - before); kept > 2<<20 {
		t.Errorf("keeps %d bytes after %d", kept, w.blocks.offset)
	}
	if w.blocks.offset < entries*200 {
		t.Errorf("wrote %d bytes", w.blocks.offset)
	}
}

// TestFullTagDictionaryReplacesOldestTag fills the dictionary: the tag that was not used for the
// longest time leaves its place to the next new one.
func TestFullTagDictionaryReplacesOldestTag(t *testing.T) {
	tag := func(i int) []byte { return fmt.Appendf(nil, "\x01tag %03d", i) }
	var p tagPacker
	var block []byte
	packs := func(i, place int) {
		t.Helper()
		n := len(block)
		block = p.append(block, tag(i))
		want := fmt.Appendf([]byte{tagNew, byte(len(tag(i)))}, "%s", tag(i))
		if place >= 0 {
			want = []byte{0, byte(place)}
		}
		must.Equal(t, block[n:], want, i)
	}
	const added = -1
	for range 2 { // each block has a dictionary of its own
		block = nil
		p.reset()
		for i := range maxTags {
			packs(i, added)
		}
		packs(0, 0)
		packs(200, added) // for tag 1
		packs(1, added)   // for tag 2
		packs(200, 1)
		packs(1, 2)
		packs(3, 3)
		packs(0, 0)
		packs(2, added) // for tag 4
		packs(2, 4)
	}
}

func BenchmarkWriter(b *testing.B) {
	for _, codec := range []Codec{None, GZ} {
		for _, encoding := range []Encoding{EncodingNone, EncodingFastDiff} {
			b.Run(fmt.Sprintf("codec=%v/encoding=%v", codec, encoding), func(b *testing.B) {
				b.ReportAllocs()
				w, err := NewWriter(io.Discard, WriterOptions{Codec: codec, Encoding: encoding, Bloom: BloomRow})
				must.Do(b, err)
				row := []byte("row-0000000000")
				c := Cell{Key: Key{Row: row, Family: []byte("cf"), Qualifier: []byte("q"), Timestamp: 1700000000000,
					Type: Put}, Value: make([]byte, 64)}
				for i := range b.N {
					for k, v := len(row)-1, i; v > 0; k, v = k-1, v/10 {
						row[k] = '0' + byte(v%10)
					}
					c.Value[0] = byte(i)
					must.Do(b, w.Append(c))
				}
				must.Do(b, w.Finish())
			})
		}
	}
}
