package hfile

import (
	"bytes"
	"cmp"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/oribi-db/oribi/block"
	"github.com/oribi-db/oribi/internal/corpustest"
	"github.com/oribi-db/oribi/internal/must"
)

// randomFile is a file of our writer, with the cells and options that it was written with.
type randomFile struct {
	name  string
	o     WriterOptions
	cells []Cell
	meta  map[string][]byte
	bytes []byte
}

// randomFiles calls f with n files of each codec, encoding, and Bloom filter, and 4·n of Hudi's
// with each codec, each file with other options and cells. The first of each kind is empty.
func randomFiles(t *testing.T, n int, f func(t *testing.T, file *randomFile)) {
	rnd := rand.New(rand.NewPCG(5, 14))
	files, cells := 0, 0
	run := func(name string, o WriterOptions, empty bool) {
		file := &randomFile{name: name, o: o}
		file.make(t, rnd, empty)
		files++
		cells += len(file.cells)
		t.Run(name, func(t *testing.T) { f(t, file) })
	}
	for i := range n {
		for _, codec := range []Codec{None, GZ, Snappy, LZ4, Zstd} {
			for _, encoding := range []Encoding{EncodingNone, EncodingPrefix, EncodingDiff,
				EncodingFastDiff, EncodingRowIndexV1} {
				for bloom := BloomNone; bloom <= BloomRowPrefix; bloom++ {
					o := randomOptions(rnd)
					o.Codec, o.Encoding, o.Bloom = codec, encoding, bloom
					run(fmt.Sprintf("codec=%v/encoding=%v/bloom=%v/%d", codec, encoding, bloom, i), o, i == 0)
				}
			}
			if codec != None && codec != GZ {
				continue
			}
			for k := range 4 {
				o := WriterOptions{Like: Hudi, Codec: codec, BlockBytes: 1 << rnd.IntN(20), CreationTime: at}
				if rnd.IntN(3) == 0 {
					o.IndexBlockBytes, o.IndexMinEntries = 100+rnd.IntN(1000), 2+rnd.IntN(6)
				}
				if rnd.IntN(2) == 0 {
					o.Checksum = Use(ChecksumCRC32C)
				}
				run(fmt.Sprintf("hudi/codec=%v/%d", codec, 4*i+k), o, i+k == 0)
			}
		}
	}
	t.Logf("%d files, %d cells", files, cells)
}

func randomOptions(rnd *rand.Rand) WriterOptions {
	some := func(of int) bool { return rnd.IntN(of) == 0 }
	o := WriterOptions{
		BlockBytes:    64 << rnd.IntN(11),
		OmitSequences: some(4),
		Tags:          some(3),
		StoreFile:     some(2),
		PrefixBytes:   1 + rnd.IntN(8),
		BloomHash:     Use(BloomHash(rnd.IntN(3))),
		CreationTime:  at,
	}
	o.CompressTags = o.Tags && some(2)
	if some(2) {
		o.IndexBlockBytes, o.IndexMinEntries = 50+rnd.IntN(2000), 2+rnd.IntN(6)
	}
	if some(2) {
		o.Checksum, o.BytesPerChecksum = Use(Checksum(rnd.IntN(3))), headerLen<<rnd.IntN(8)
	}
	if some(2) {
		o.BloomBlockBytes = 1 + rnd.IntN(4096)
	}
	if some(3) {
		o.CodecBuffer = minCodecBuffer << rnd.IntN(10)
	}
	if some(8) {
		o.MajorVersion = 2
	}
	return o
}

// make chooses the cells and writes the file.
func (f *randomFile) make(t *testing.T, rnd *rand.Rand, empty bool) {
	if !empty {
		f.cells = randomCells(rnd, &f.o)
	}
	meta := map[string][]byte{}
	for i := range rnd.IntN(4) {
		meta[fmt.Sprintf("%x-%d", rnd.Uint32(), i)] = randomBytes(rnd, 300)
	}
	f.write(t, meta)
}

// write writes the file.
func (f *randomFile) write(t *testing.T, meta map[string][]byte) {
	out := new(bytes.Buffer)
	w := must.Get(NewWriter(out, f.o))(t)
	f.meta = meta
	for name, content := range meta {
		must.Do(t, w.AddMeta(name, content))
	}
	for i, c := range f.cells {
		must.Do(t, w.Append(c), f.name, i)
	}
	must.Do(t, w.Finish(), f.name)
	f.bytes = out.Bytes()
}

// randomCells returns cells in order: rows of several forms with many versions, every type of
// delete, empty qualifiers, equal keys, tags, and now and then a value of 1 MiB.
func randomCells(rnd *rand.Rand, o *WriterOptions) (cells []Cell) {
	sequences := !o.OmitSequences && rnd.IntN(2) == 0
	family := [][]byte{nil, []byte("f"), []byte("family"), randomBytes(rnd, MaxFamilyBytes)}[rnd.IntN(4)]
	row := randomRows(rnd)
	columns := 1 + rnd.IntN(4)
	for range 1 + rnd.IntN(400) {
		if o.Like != HBase {
			cells = append(cells, Cell{Key: Key{Row: row(), Timestamp: math.MaxInt64, Type: Put}})
			continue
		}
		c := Cell{Key: Key{Row: row(), Family: family}}
		versions := 1
		if rnd.IntN(5) == 0 {
			versions = 1 + rnd.IntN(12)
		}
		if column := rnd.IntN(columns); column > 0 {
			c.Qualifier = fmt.Appendf(nil, "%.*s%d", rnd.IntN(9), "qualifier", column)
		}
		for range versions {
			c.Timestamp = []int64{0, rnd.Int64N(20), 1700000000000 + rnd.Int64N(1e6),
				rnd.Int64(), math.MaxInt64}[rnd.IntN(5)]
			c.Type = []Type{Put, Put, Put, Put, Delete, DeleteColumn, DeleteFamily, DeleteFamilyVersion}[rnd.IntN(8)]
			if sequences && rnd.IntN(2) == 0 {
				c.Sequence = []int64{1, 127, 128, rnd.Int64N(1 << 30), rnd.Int64()}[rnd.IntN(5)]
			}
			c.Tags = nil
			if o.Tags {
				for range rnd.IntN(4) {
					c.Tags = AppendTag(c.Tags,
						Tag{Type: uint8(1 + rnd.IntN(100)), Value: fmt.Appendf(nil, "tag %d", rnd.IntN(3))})
				}
				if rnd.IntN(20) == 0 {
					c.Tags = AppendTag(c.Tags, Tag{Type: 9, Value: randomBytes(rnd, 2000)})
				}
			}
			cells = append(cells, c)
			if rnd.IntN(20) == 0 {
				cells = append(cells, c) // an equal key
			}
		}
	}
	for i := range cells {
		switch rnd.IntN(12) {
		case 0: // none
		case 1:
			cells[i].Value = randomBytes(rnd, 3000)
		case 2:
			cells[i].Value = bytes.Repeat([]byte("ab"), rnd.IntN(100))
		default:
			cells[i].Value = fmt.Appendf(nil, "value %d", rnd.IntN(3))
		}
	}
	if rnd.IntN(6) == 0 {
		cells[rnd.IntN(len(cells))].Value = slices.Concat(bytes.Repeat([]byte("large value "), 90000),
			randomBytes(rnd, 100000))[:1<<20]
	}
	slices.SortStableFunc(cells, func(a, b Cell) int {
		if c := a.Key.Compare(b.Key); c != 0 {
			return c
		}
		return cmp.Compare(b.Sequence, a.Sequence)
	})
	if rnd.IntN(3) == 0 {
		return slices.CompactFunc(cells, equalRows)
	}
	return cells
}

// randomRows returns a function that returns rows of one form.
func randomRows(rnd *rand.Rand) func() []byte {
	switch rnd.IntN(4) {
	case 0:
		return func() []byte { return fmt.Appendf(nil, "row-%06d", rnd.IntN(300)) }
	case 1:
		return func() []byte { return randomBytes(rnd, 6) }
	case 2: // of few bytes, also those next to each other and at the ends
		return func() []byte {
			row := make([]byte, rnd.IntN(6))
			for i := range row {
				row[i] = []byte{0, 1, 'a', 'b', 'c', 0x7f, 0x80, 0xfe, 0xff}[rnd.IntN(9)]
			}
			return row
		}
	}
	long := bytes.Repeat([]byte("long row "), 30000)
	return func() []byte { return fmt.Appendf(nil, "%s%d", long[:rnd.IntN(300)*rnd.IntN(2)], rnd.IntN(50)) }
}

// randomBytes returns 1 to n bytes.
func randomBytes(rnd *rand.Rand, n int) []byte {
	b := make([]byte, 1+rnd.IntN(n))
	for i := range b {
		b[i] = byte(rnd.Uint32())
	}
	return b
}

func equalRows(a, b Cell) bool { return bytes.Equal(a.Row, b.Row) }

func equalCells(a, b Cell) bool {
	return a.Key.Compare(b.Key) == 0 && bytes.Equal(a.Family, b.Family) && a.Sequence == b.Sequence &&
		bytes.Equal(a.Tags, b.Tags) && bytes.Equal(a.Value, b.Value)
}

// TestRandomFilesAreReadBack verifies and reads files of every codec, encoding, and Bloom filter.
func TestRandomFilesAreReadBack(t *testing.T) {
	randomFiles(t, 2, func(t *testing.T, f *randomFile) {
		r := must.Get(Open(&block.Memory{Bytes: f.bytes}, ReaderOptions{}))(t)
		must.Do(t, r.Verify(t.Context()))
		i := 0
		for c, err := range r.Cells() {
			must.Do(t, err, i)
			if i == len(f.cells) {
				t.Fatalf("more than the %d cells that were written", i)
			}
			if !equalCells(c, f.cells[i]) {
				t.Fatalf("cell %d: %v, want %v", i, c.Key, f.cells[i].Key)
			}
			i++
		}
		if i < len(f.cells) {
			t.Errorf("%d cells, want %d", i, len(f.cells))
		}
		for name, content := range f.meta {
			if got, ok, err := r.Meta(name); err != nil || !ok || !bytes.Equal(got, content) {
				t.Errorf("meta block %q: %d bytes, %t, %v", name, len(got), ok, err)
			}
		}
	})
}

// TestHBaseAndHudiReadRandomFiles gives files of every codec, encoding, and Bloom filter to the
// readers of HBase and, where that supports them, of Hudi: all entries, seeks, and Bloom filters.
func TestHBaseAndHudiReadRandomFiles(t *testing.T) {
	n, program := corpustest.NeedHFileReaders(t)
	j := newJudge(t, program)
	var hbase, hudi, seeks, probes, absent, positives int
	randomFiles(t, n+1, func(t *testing.T, f *randomFile) { // the first of each kind is empty
		j.t = t
		name := j.write("f.hfile", f.bytes)
		f.compare(t, j, name, "hbase")
		hbase++
		if f.hudiReads(t) {
			f.compare(t, j, name, "hudi")
			hudi++
		}
		rnd := rand.New(rand.NewPCG(1, uint64(len(f.bytes))))
		seeks += f.seek(t, j, name, rnd)
		if f.o.StoreFile || f.o.Bloom != BloomNone {
			p, a, fp := f.probe(t, j, name, rnd)
			probes, absent, positives = probes+p, absent+a, positives+fp
		}
	})
	t.Logf("HBase read %d files, Hudi %d of them; %d seeks; %d Bloom probes, %d of %d absent keys answered true", hbase,
		hudi, seeks, probes, positives, absent)
	if positives*50 > absent {
		t.Errorf("%d false positives in %d probes", positives, absent)
	}
}

// TestHBaseAndHudiReadLargeFiles gives files of many small entries to both readers: blocks of
// Hudi's default size, of which Hudi loses records where checksums cover less, and indexes of both
// systems with several levels.
func TestHBaseAndHudiReadLargeFiles(t *testing.T) {
	_, program := corpustest.NeedHFileReaders(t)
	j := newJudge(t, program)
	for _, o := range []WriterOptions{
		{Like: Hudi},
		{Like: Hudi, Codec: GZ, Checksum: Use(ChecksumCRC32C)},
		{Like: Hudi, BlockBytes: 100 << 10},
		{Like: Hudi, BlockBytes: 512, IndexBlockBytes: 1024},
		{},
		{Bloom: BloomRow, IndexBlockBytes: 4096, BlockBytes: 1024},
	} {
		f := &randomFile{name: fmt.Sprintf("like=%v/codec=%v/block=%d", o.Like, o.Codec, o.BlockBytes), o: o}
		for i := range 50000 {
			f.cells = append(f.cells,
				Cell{Key: Key{Row: fmt.Appendf(nil, "key%07d", i), Timestamp: math.MaxInt64, Type: Put}})
		}
		f.write(t, nil)
		t.Run(f.name, func(t *testing.T) {
			j.t = t
			name := j.write("f.hfile", f.bytes)
			f.compare(t, j, name, "hbase")
			f.compare(t, j, name, "hudi")
			f.seek(t, j, name, rand.New(rand.NewPCG(2, 3)))
		})
	}
}

// hudiReads reports whether Hudi's reader supports the file: all in Hudi's form, and some in
// HBase's. Of those it loses records in blocks whose checksums take more bytes than the last
// record, and blocks that begin with the same row.
func (f *randomFile) hudiReads(t *testing.T) bool {
	if f.o.Like == Hudi {
		return true
	}
	if f.o.Codec != None && f.o.Codec != GZ || f.o.Encoding != EncodingNone || f.o.Tags ||
		f.o.OmitSequences || f.o.MajorVersion == 2 {
		return false
	}
	blocks := 0
	for _, b := range unpackedBlocks(t, f.bytes) {
		if b.header.size-b.header.dataSize > hudiCellBytes {
			return false
		}
		if b.header.magic == magicData {
			blocks++
		}
	}
	if blocks > 1 && len(slices.CompactFunc(slices.Clone(f.cells), equalRows)) < len(f.cells) {
		return false
	}
	return !slices.ContainsFunc(f.cells, func(c Cell) bool { return c.Sequence != 0 })
}

// compare compares what a reader prints with the cells.
func (f *randomFile) compare(t *testing.T, j *judge, name, reader string) {
	i := 0
	exit, message := j.ask(func(text []byte) {
		var l goldenLine
		must.Do(t, json.Unmarshal(text, &l))
		if i < len(f.cells) {
			want := f.cells[i]
			switch {
			case reader == "hudi":
				if !bytes.Equal(l.Key, want.Row) || !bytes.Equal(l.Value, want.Value) {
					t.Errorf("entry %d: Hudi reads %q, want %q", i, l.Key, want.Row)
				}
			case !equalCells(l.cell(t), want):
				t.Errorf("entry %d: HBase reads %v, want %v", i, l.cell(t).Key, want.Key)
			}
		}
		i++
	}, name, "--reader", reader)
	must.Equal(t, exit, 0, reader, message, f.o)
	must.Equal(t, i, len(f.cells), reader, message, f.o)
}

// goldenString returns b as the corpus's texts have byte strings.
func goldenString(b []byte) string { return "0x" + hex.EncodeToString(b) }

// seek has HBase seek some cells, and the last ones before them: it must stop at cells with the
// right keys. If Hudi's reader supports the file, it seeks their rows.
func (f *randomFile) seek(t *testing.T, j *judge, name string, rnd *rand.Rand) int {
	var keys, rows bytes.Buffer
	var wanted []int // indexes of cells
	for range min(len(f.cells), 20) {
		i := rnd.IntN(len(f.cells))
		c := f.cells[i]
		wanted = append(wanted, i)
		line, _ := json.Marshal(map[string]any{"row": goldenString(c.Row), "family": goldenString(c.Family),
			"qualifier": goldenString(c.Qualifier), "ts": c.Timestamp, "type": c.Type.String()})
		keys.Write(append(line, '\n'))
		line, _ = json.Marshal(map[string]string{"key": goldenString(c.Row)})
		rows.Write(append(line, '\n'))
	}
	n := 0
	exit, message := j.ask(func(text []byte) {
		var answer struct {
			SeekTo     int `json:"seek_to"`
			At         *goldenLine
			SeekBefore bool `json:"seek_before"`
			Before     *goldenLine
		}
		must.Do(t, json.Unmarshal(text, &answer))
		i := wanted[n]
		want := f.cells[i].Key
		n++
		must.Equal(t, answer.SeekTo, 0, want, text)
		must.Equal(t, answer.At.cell(t).Key.Compare(want), 0, want, text)
		if f.o.Encoding == EncodingRowIndexV1 {
			return // HBase does not always find the last cell before a key, in its own files either
		}
		for i >= 0 && f.cells[i].Key.Compare(want) == 0 {
			i--
		}
		if answer.SeekBefore != (i >= 0) || i >= 0 && answer.Before.cell(t).Key.Compare(f.cells[i].Key) != 0 {
			t.Errorf("HBase seeks before %v, and %v is: %s", want, f.cells[max(i, 0)].Key, text)
		}
	}, name, "--seek", j.write("keys", keys.Bytes()))
	must.Equal(t, exit, 0, message)
	must.Equal(t, n, len(wanted), message)
	if !f.hudiReads(t) {
		return n
	}
	hudi := 0
	exit, message = j.ask(func(text []byte) {
		var answer struct {
			SeekTo int `json:"seek_to"`
			At     goldenText
		}
		must.Do(t, json.Unmarshal(text, &answer))
		if want := f.cells[wanted[hudi]].Row; answer.SeekTo != 0 || !bytes.Equal(answer.At, want) {
			t.Errorf("Hudi seeks %q: %s", want, text)
		}
		hudi++
	}, name, "--reader", "hudi", "--seek", j.write("rows", rows.Bytes()))
	must.Equal(t, exit, 0, message)
	must.Equal(t, hudi, len(wanted), message)
	return n + hudi
}

// probe asks HBase's Bloom filters for cells of the file and for others.
func (f *randomFile) probe(t *testing.T, j *judge, name string, rnd *rand.Rand) (probes, absent, positives int) {
	var keys bytes.Buffer
	type probe struct {
		Key
		present bool
	}
	var want []probe
	add := func(k Key, present bool) {
		line, _ := json.Marshal(map[string]string{"row": goldenString(k.Row), "qualifier": goldenString(k.Qualifier)})
		keys.Write(append(line, '\n'))
		want = append(want, probe{k, present})
	}
	for _, c := range f.cells {
		add(c.Key, true)
	}
	for range 100 {
		add(Key{Row: append([]byte("\xc1"), randomBytes(rnd, 40)...)}, false)
	}
	deletes := map[string]bool{}
	for _, c := range f.cells {
		if c.Type == DeleteFamily || c.Type == DeleteFamilyVersion {
			deletes[string(c.Row)] = true
		}
	}
	i := 0
	exit, message := j.ask(func(text []byte) {
		var answer struct {
			General      *bool
			DeleteFamily *bool `json:"delete_family"`
		}
		must.Do(t, json.Unmarshal(text, &answer))
		k := want[i]
		i++
		must.Equal(t, answer.General != nil, f.o.Bloom != BloomNone && len(f.cells) > 0, f.o.Bloom)
		must.Equal(t, answer.DeleteFamily != nil,
			f.o.Bloom != BloomRowCol && len(deletes) > 0, "delete family filter in the file")
		for _, b := range []struct {
			answer  *bool
			present bool
		}{{answer.General, k.present}, {answer.DeleteFamily, deletes[string(k.Row)]}} {
			if b.answer == nil {
				continue
			}
			probes++
			switch {
			case b.present && !*b.answer:
				t.Errorf("row %q, qualifier %q: not in the filter of kind %v", k.Row, k.Qualifier, f.o.Bloom)
			case !b.present:
				absent++
				if *b.answer {
					positives++
				}
			}
		}
	}, name, "--bloom", j.write("keys", keys.Bytes()))
	must.Equal(t, exit, 0, message)
	must.Equal(t, i, len(want), message)
	return probes, absent, positives
}
