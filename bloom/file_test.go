package bloom

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/oribi-db/oribi/block"
	"github.com/oribi-db/oribi/cache"
	"github.com/oribi-db/oribi/cfile"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/internal/seedtest"
	"github.com/oribi-db/oribi/schema"
)

// example is the complete file of section 9.6 of the cfile spec.
const example = `6b 75 64 75 63 66 6c 32 00 00 00 00 02 94 3a d3
	02 00 00 00 08 03 00 00 00 20 80 01 00 00 20 02
	00 40 00 08 06 00 7b ea e6 f2 01 61 10 1a 00 00
	00 00 08 01 10 00 04 00 00 00 8a 40 f8 ab 82 2d
	62 b5 08 0c 10 01 18 00 2a 06 0a 04 08 2a 10 14
	30 01 40 00 50 01 6b 75 64 75 63 66 6c 32 14 00
	00 00`

// write returns the bytes of a file with the keys.
func write(t testing.TB, o Options, keys [][]byte) []byte {
	t.Helper()
	var sink block.Memory
	w := must.Get(NewWriter(&sink, o))(t)
	for _, key := range keys {
		must.Do(t, w.Add(key))
	}
	must.Do(t, w.Finish())
	must.Equal(t, w.Keys(), int64(len(keys)))
	return sink.Bytes
}

// open opens a file as block 1, with or without a cache.
func open(t testing.TB, data []byte, c *cache.Cache) *Reader {
	t.Helper()
	return must.Get(Open(&block.Memory{Number: 1, Bytes: data}, cfile.ReaderOptions{Cache: c}))(t)
}

func ask(t testing.TB, r *Reader, key []byte) bool {
	t.Helper()
	return must.Get(r.MayContain(MakeProbe(key)))(t)
}

func TestFileExample(t *testing.T) {
	keys := [][]byte{[]byte("alpha"), []byte("beta"), []byte("gamma")}
	data := write(t, Options{BlockBytes: 16, FalsePositiveRate: 0.1}, keys)
	must.Equal(t, data, must.Hex(t, example))
	r := open(t, data, nil)
	for _, key := range keys {
		must.Equal(t, ask(t, r, key), true, key)
	}
	for _, key := range []string{"", "A", "delta", "zeta"} {
		must.Equal(t, ask(t, r, []byte(key)), false, key)
	}
}

func TestDumpExample(t *testing.T) {
	var got bytes.Buffer
	must.Do(t, Dump(&got, must.Hex(t, example)))
	golden := filepath.Join("testdata", "example.dump")
	if os.Getenv("ORIBI_REWRITE") != "" {
		must.Do(t, os.WriteFile(golden, got.Bytes(), 0o644))
	}
	must.Equal(t, got.Bytes(), must.Get(os.ReadFile(golden))(t), got.String())
}

func TestFileWithoutKeysFindsNothing(t *testing.T) {
	data := write(t, Options{}, nil)
	must.Equal(t, len(data), 64)
	r := open(t, data, nil)
	must.Equal(t, ask(t, r, nil), false)
	must.Equal(t, ask(t, r, []byte("x")), false)
	must.Do(t, r.Verify())
	must.Do(t, Dump(new(strings.Builder), data))
}

// model is a bloom file built directly from the format's definition: sets of bits, with separator
// keys.
type model struct {
	sizing     Sizing
	separators [][]byte
	bits       []map[uint64]bool
}

func newModel(s Sizing, keys [][]byte) *model {
	m := &model{sizing: s}
	var prev []byte
	for chunk := range slices.Chunk(keys, s.Keys) {
		n := 0
		for n < len(prev) && n < len(chunk[0]) && prev[n] == chunk[0][n] {
			n++
		}
		m.separators = append(m.separators, chunk[0][:min(n+1, len(chunk[0]))])
		set := map[uint64]bool{}
		for _, key := range chunk {
			for _, p := range positions(MakeProbe(key).hash, s.Hashes, s.Bytes) {
				set[p] = true
			}
		}
		m.bits = append(m.bits, set)
		prev = chunk[len(chunk)-1]
	}
	return m
}

func (m *model) mayContain(key []byte) bool {
	at := -1
	for i, s := range m.separators {
		if bytes.Compare(s, key) <= 0 {
			at = i
		}
	}
	if at < 0 {
		return false
	}
	for _, p := range positions(MakeProbe(key).hash, m.sizing.Hashes, m.sizing.Bytes) {
		if !m.bits[at][p] {
			return false
		}
	}
	return true
}

// randomKeys returns n distinct ascending keys of one kind: short, long with common prefixes, or
// numbers.
func randomKeys(r *rand.Rand, n int) [][]byte {
	set := map[string]bool{}
	kind := r.IntN(3)
	for len(set) < n {
		var key []byte
		switch kind {
		case 0:
			key = fmt.Appendf(nil, "%d", r.IntN(20*n+1))
		case 1:
			key = append(bytes.Repeat([]byte{'p'}, r.IntN(300)), byte(r.Uint32()), byte(r.Uint32()))
		default:
			key = binary.BigEndian.AppendUint64(nil, r.Uint64()>>r.IntN(64))
		}
		set[string(key)] = true
	}
	var keys [][]byte
	for key := range set {
		keys = append(keys, []byte(key))
	}
	slices.SortFunc(keys, bytes.Compare)
	return keys
}

func TestMayContainAgreesWithModel(t *testing.T) {
	r := seedtest.Rand(t)
	rounds := 60
	if testing.Short() {
		rounds = 15
	}
	for range rounds {
		o := Options{FalsePositiveRate: []float64{0, 0.5, 0.1, 0.01}[r.IntN(4)], NoChecksums: r.IntN(4) == 0}
		if r.IntN(2) == 0 {
			o.BlockBytes = 1 + r.IntN(400)
		} else {
			o.KeysPerBlock = 1 + r.IntN(100)
		}
		sizing := must.Get(o.Sizing())(t)
		keys := randomKeys(r, r.IntN(1200))
		m := newModel(sizing, keys)
		data := write(t, o, keys)
		var c *cache.Cache
		if r.IntN(2) == 0 {
			c = cache.New(1 << 20)
		}
		reader := open(t, data, c)
		for _, key := range keys {
			must.Equal(t, ask(t, reader, key), true, o, key, len(keys))
		}
		for _, key := range randomKeys(r, 500) {
			must.Equal(t, ask(t, reader, key), m.mayContain(key), o, key)
		}
		must.Do(t, reader.Verify(), o)
	}
}

func TestWriterRefusesDescendingKeys(t *testing.T) {
	w := must.Get(NewWriter(new(block.Memory), Options{}))(t)
	for _, key := range []string{"b", "b", "c"} {
		must.Do(t, w.Add([]byte(key)), key)
	}
	first := w.Add([]byte("bz"))
	must.Refuse(t, first, "a descending key was accepted")
	if err := w.Add([]byte("d")); err != first {
		t.Errorf("the first error is not kept: %v", err)
	}
	if err := w.Finish(); err != first {
		t.Errorf("Finish after a failed Add: %v", err)
	}
}

func TestWriterRefusesCallsAfterFinish(t *testing.T) {
	w := must.Get(NewWriter(new(block.Memory), Options{}))(t)
	must.Do(t, w.Finish())
	if w.Add([]byte("x")) == nil || w.Finish() == nil {
		t.Error("a finished file was written on")
	}
}

var errDisk = errors.New("disk")

// failing is a sink that fails after left bytes.
type failing struct {
	block.Memory
	left int
}

func (f *failing) Write(p []byte) (int, error) {
	if len(p) > f.left {
		return 0, errDisk
	}
	f.left -= len(p)
	return f.Memory.Write(p)
}

func TestWriterReturnsSinkErrors(t *testing.T) {
	keys := randomKeys(seedtest.Rand(t), 300)
	o := Options{BlockBytes: 64, FalsePositiveRate: 0.01}
	for left := range len(write(t, o, keys)) {
		w, err := NewWriter(&failing{left: left}, o)
		for i := 0; err == nil && i < len(keys); i++ {
			err = w.Add(keys[i])
		}
		if err == nil {
			err = w.Finish()
		}
		must.Fail(t, err, errDisk, left)
	}
}

func TestOpenRefusesOtherFiles(t *testing.T) {
	for name, o := range map[string]cfile.WriterOptions{
		"compressed": {Type: schema.Binary, Encoding: schema.Plain, Compression: schema.LZ4, ValueIndex: true},
		"no value index": {Type: schema.Binary, Encoding: schema.Plain, Compression: schema.NoCompression,
			PositionalIndex: true},
		"other type": {Type: schema.Int64, Encoding: schema.Plain, Compression: schema.NoCompression,
			ValueIndex: true},
		"other encoding": {Type: schema.Binary, Encoding: schema.Prefix, Compression: schema.NoCompression,
			ValueIndex: true},
	} {
		var file block.Memory
		w, err := cfile.NewWriter(&file, o)
		if err == nil {
			err = w.Finish()
		}
		must.Do(t, err, name)
		must.Fail(t, must.Err(Open(&file, cfile.ReaderOptions{})), ErrUnsupported, name)
	}
}

// Verify detects every flipped bit and every truncation of a file with checksums, and no damage
// hides a key without an error.
func TestDamageIsDetected(t *testing.T) {
	keys := randomKeys(seedtest.Rand(t), 60)
	data := write(t, Options{BlockBytes: 16, FalsePositiveRate: 0.1}, keys)
	check := func(what string, damaged []byte) {
		r, err := Open(&block.Memory{Number: 1, Bytes: damaged}, cfile.ReaderOptions{})
		if err == nil {
			for _, key := range keys {
				if ok, err := r.MayContain(MakeProbe(key)); err == nil && !ok {
					t.Errorf("%s: key %x is no longer found", what, key)
				}
			}
			err = r.Verify()
		}
		if !errors.Is(err, ErrCorrupt) && !errors.Is(err, ErrUnsupported) {
			t.Errorf("%s: %v", what, err)
		}
	}
	for bit := range 8 * len(data) {
		damaged := bytes.Clone(data)
		damaged[bit/8] ^= 1 << (bit % 8)
		check(fmt.Sprintf("bit %d of byte %d", bit%8, bit/8), damaged)
	}
	for n := range data {
		check(fmt.Sprintf("cut to %d bytes", n), data[:n])
	}
}

// Without checksums, damage may give wrong answers but no panic.
func TestDamageWithoutChecksumsNeverPanics(t *testing.T) {
	keys := randomKeys(seedtest.Rand(t), 60)
	data := write(t, Options{BlockBytes: 16, FalsePositiveRate: 0.1, NoChecksums: true}, keys)
	for i := range data {
		for _, v := range []byte{0, 1, 0x7f, 0x80, 0xff, data[i] ^ 1, data[i] ^ 0x80} {
			damaged := bytes.Clone(data)
			damaged[i] = v
			r, err := Open(&block.Memory{Number: 1, Bytes: damaged}, cfile.ReaderOptions{})
			if err != nil {
				continue
			}
			for _, key := range keys {
				_, _ = r.MayContain(MakeProbe(key))
			}
			_ = r.Verify()
			_ = Dump(new(strings.Builder), damaged)
		}
	}
}

func TestReaderIsSafeForConcurrentUse(t *testing.T) {
	keys := randomKeys(seedtest.Rand(t), 2000)
	data := write(t, Options{BlockBytes: 64, FalsePositiveRate: 0.1}, keys)
	for _, c := range []*cache.Cache{nil, cache.New(1 << 20)} {
		r := open(t, data, c)
		var wg sync.WaitGroup
		for g := range 4 {
			wg.Go(func() {
				for i := range keys {
					key := keys[(i*(2*g+1)+g)%len(keys)]
					if ok, err := r.MayContain(MakeProbe(key)); !ok || err != nil {
						t.Errorf("%x: %v, %v", key, ok, err)
						return
					}
				}
			})
		}
		wg.Wait()
	}
}

// Excludes answers from the cache alone: nothing before a filter was read, then as MayContain.
func TestExcludesReadsNoFilter(t *testing.T) {
	r := seedtest.Rand(t)
	keys := randomKeys(r, 400)
	data := write(t, Options{KeysPerBlock: 50}, keys)
	excludes := func(reader *Reader, key []byte) bool {
		return must.Get(reader.Excludes(MakeProbe(key)))(t)
	}
	c := cache.New(1 << 20)
	reader, uncached := open(t, data, c), open(t, data, nil)
	for _, key := range append(randomKeys(r, 100), keys...) {
		c.Evict(1)
		before := bytes.Compare(key, keys[0]) < 0 // the index excludes it
		must.Equal(t, excludes(reader, key), before, key)
		may := ask(t, reader, key)
		if got := excludes(reader, key); got == may {
			t.Errorf("%x: excluded %t, may be present %t", key, got, may)
		}
		must.Equal(t, excludes(uncached, key), before, key)
	}
}

// BenchmarkMayContain probes one filter, which then stays in the processor's cache, and the 256
// filters of a file of 1 MiB at random, all in the cblock cache. hash=in makes the probe in each
// iteration; hash=out makes it before, as for lookups in many files.
func BenchmarkMayContain(b *testing.B) {
	for _, filters := range []int{1, 256} {
		n := 1710 * filters
		keys := make([][]byte, n)
		for i := range keys {
			keys[i] = binary.BigEndian.AppendUint64(nil, uint64(i)<<2)
		}
		data := write(b, Options{}, keys)
		for _, present := range []bool{true, false} {
			r := open(b, data, cache.New(64<<20))
			rng := rand.New(rand.NewPCG(1, 2))
			probes := make([]Probe, 1<<12*min(filters, 16))
			for i := range probes {
				k := uint64(rng.IntN(n)) << 2
				if !present {
					k |= 1
				}
				probes[i] = MakeProbe(binary.BigEndian.AppendUint64(nil, k))
			}
			for _, hash := range []string{"in", "out"} {
				b.Run(fmt.Sprintf("filters=%d/present=%v/hash=%s", filters, present, hash), func(b *testing.B) {
					benchMayContain(b, r, probes, hash == "in", present)
				})
			}
		}
	}
}

func benchMayContain(b *testing.B, r *Reader, probes []Probe, hash, present bool) {
	for range 3 { // until all filters are in the cache
		for _, p := range probes {
			ask(b, r, p.Key)
		}
	}
	found, i := 0, 0
	for b.Loop() {
		p := probes[i&(len(probes)-1)]
		if hash {
			p = MakeProbe(p.Key)
		}
		ok := must.Get(r.MayContain(p))(b)
		if ok {
			found++
		}
		i++
	}
	if present && found != i || !present && found > max(i/1000, 100) {
		b.Fatalf("%d of %d were found", found, i)
	}
}

func BenchmarkAdd(b *testing.B) {
	w := must.Get(NewWriter(new(block.Memory), Options{}))(b)
	var key [8]byte
	i := uint64(0)
	for b.Loop() {
		binary.BigEndian.PutUint64(key[:], i)
		must.Do(b, w.Add(key[:]))
		i++
	}
	if w.Keys() != int64(i) {
		b.Fatal("Keys differs from the number of keys added")
	}
}
