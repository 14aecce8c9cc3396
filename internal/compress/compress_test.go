package compress

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"testing"

	"github.com/klauspost/compress/s2"

	"github.com/oribi-db/oribi/internal/corpustest"
	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/internal/fuzztest"
	"github.com/oribi-db/oribi/internal/invariant"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/internal/seedtest"
)

var codecs = []Codec{None, Snappy, LZ4, Zlib}

func newRand(t testing.TB) *rand.Rand {
	seed := seedtest.Seed(t)
	return rand.New(rand.NewPCG(seed, 0))
}

// sample returns n bytes: noise, runs, or words, so that codecs find nothing, much or something.
func sample(r *rand.Rand, n int) []byte {
	b := make([]byte, 0, n)
	kind := r.IntN(3)
	for len(b) < n {
		switch kind {
		case 0:
			b = append(b, byte(r.Uint32()))
		case 1:
			b = append(b, bytes.Repeat([]byte{byte(r.IntN(3))}, r.IntN(600))...)
		default:
			b = append(b, []string{"oribi", "tablet", "engine", " "}[r.IntN(4)]...)
		}
	}
	return b[:n]
}

func TestLookupRefusesUnknownCodecs(t *testing.T) {
	for n, want := range map[int32]Codec{1: None, 2: Snappy, 3: LZ4, 4: Zlib} {
		must.Equal(t, must.Get(Lookup(n))(t), want, n)
	}
	for _, n := range []int32{-1, 0, 5, 999, 257} {
		must.Fail(t, must.Err(Lookup(n)), fault.ErrUnsupported, n)
	}
}

// The streams of the cfile spec's section 3.6, which Kudu's own codecs made.
func TestStreamsOfKuduUnpack(t *testing.T) {
	want := append(must.Hex(t, "40 00 00 00 00 00 00 00"), make([]byte, 256)...)
	for c, stream := range map[Codec]string{
		Snappy: "88 02 04 40 00 fe 01 00 fe 01 00 fe 01 00 fe 01 00 09 01",
		LZ4:    "2f 40 00 01 00 ee 50 00 00 00 00 00",
		Zlib:   "78 9c 73 60 18 05 20 00 00 43 08 00 41",
	} {
		got := make([]byte, len(want))
		must.Do(t, c.Decompress(got, must.Hex(t, stream)), c)
		must.Equal(t, got, want, c)
	}
	must.Equal(t, LZ4CompressChunk(nil, want), must.Hex(t, "2f 40 00 01 00 ee 50 00 00 00 00 00"))
}

// CompressHard finds more than Compress, and obeys the rules for the end of an LZ4 block.
func TestCompressHard(t *testing.T) {
	r := newRand(t)
	for _, c := range codecs {
		var easy, hard int
		for _, n := range []int{0, 1, 4, 12, 13, 14, 15, 16, 17, 20, 100, 8192, 65535, 65536, 65537, 200000} {
			for _, src := range [][]byte{sample(r, n), sample(r, n), bytes.Repeat([]byte{7}, n)} {
				packed, err := c.CompressHard([]byte("x"), src)
				got := make([]byte, n)
				if err == nil {
					err = c.Decompress(got, packed[1:])
				}
				must.Do(t, err, c, n)
				must.Equal(t, got, src, c, n)
				fast := must.Get(c.Compress(nil, src))(t)
				easy, hard = easy+len(fast), hard+len(packed)-1
				if c == LZ4 {
					checkLZ4End(t, packed[1:], n)
				}
			}
		}
		if hard > easy || c == LZ4 && hard == easy {
			t.Errorf("%v: %d bytes, %d with less effort", c, hard, easy)
		}
	}
}

// checkLZ4End checks what Kudu's reader requires of the end of a block of n bytes.
func checkLZ4End(t *testing.T, block []byte, n int) {
	t.Helper()
	at, out, last := 0, 0, 0 // last: where the last match begins
	for {
		s, ok := ParseLZ4Sequence(block, at)
		must.Equal(t, ok, true, n, at)
		out += s.To - s.From
		if s.Match == 0 {
			if literals := s.To - s.From; at > 0 && (literals < LZ4LastLiterals || n-last < LZ4LastMatch) {
				t.Fatalf("%d bytes end with %d literals after a match at byte %d", n, literals, last)
			}
			return
		}
		last, out, at = out, out+s.Match, s.End
	}
}

func TestRoundTripAppends(t *testing.T) {
	r := newRand(t)
	sizes := []int{0, 1, 2, 11, 12, 13, 14, 15, 16, 100, 269, 270, 271, 8192, 65535, 65547, 65548, 70000, 300000}
	for _, c := range codecs {
		for _, n := range sizes {
			for range 3 {
				src := sample(r, n)
				front := []byte("front")
				packed, err := c.Compress(front, src)
				if err != nil || !bytes.HasPrefix(packed, front) {
					t.Fatalf("%v: %d bytes: %v", c, n, err)
				}
				packed = packed[len(front):]
				if n > c.MaxRatio()*len(packed) {
					t.Errorf("%v: %d bytes from %d: above MaxRatio", c, n, len(packed))
				}
				got := make([]byte, n)
				must.Do(t, c.Decompress(got, packed), c, n)
				must.Equal(t, got, src, c, n)
			}
		}
	}
}

func TestDecompressWantsTheExactLength(t *testing.T) {
	r := newRand(t)
	for _, c := range codecs {
		for range 50 {
			src := sample(r, 1+r.IntN(2000))
			packed := must.Get(c.Compress(nil, src))(t)
			bad := map[string]error{
				"short dst":   c.Decompress(make([]byte, len(src)-1), packed),
				"long dst":    c.Decompress(make([]byte, len(src)+1), packed),
				"cut stream":  c.Decompress(make([]byte, len(src)), packed[:len(packed)-1]),
				"no stream":   c.Decompress(make([]byte, len(src)), nil),
				"bytes after": c.Decompress(make([]byte, len(src)), append(bytes.Clone(packed), 0)),
			}
			for what, err := range bad {
				must.Fail(t, err, fault.ErrCorrupt, c, what, packed)
			}
		}
	}
}

func TestEmptyBuffersHaveAStream(t *testing.T) {
	for _, c := range codecs {
		packed := must.Get(c.Compress(nil, nil))(t)
		must.Do(t, c.Decompress(nil, packed), c, packed)
		if c != None {
			must.Fail(t, c.Decompress(nil, nil), fault.ErrCorrupt, c)
		}
	}
}

func TestUnknownCodecIsRefused(t *testing.T) {
	must.Fail(t, must.Err(Codec(0).Compress(nil, nil)), fault.ErrUnsupported)
	must.Fail(t, Codec(9).Decompress(nil, nil), fault.ErrUnsupported)
}

// A copy from offset 0 means "the last offset again" to some decoders, and nothing to Kudu's.
func TestSnappyRefusesExtensions(t *testing.T) {
	src := bytes.Repeat([]byte("0123456789abcdefghijklmnop"), 5000)
	stream := s2.EncodeBetter(nil, src)
	dst := make([]byte, len(src))
	must.Get(s2.Decode(dst, stream))(t)
	must.Fail(t, Snappy.Decompress(dst, stream), fault.ErrCorrupt, "an extended stream was read")
	must.Equal(t, SnappyRepeats(stream), true, "an extended stream has no repeat")
	random := make([]byte, 70000) // long literals
	rnd := seedtest.Rand(t)
	for i := range random {
		random[i] = byte(rnd.Uint32())
	}
	for _, src := range [][]byte{nil, src, random[:1], random[:61], random[:300], random, append(random, src...)} {
		must.Equal(t, SnappyRepeats(must.Get(Snappy.Compress(nil, src))(t)), false, len(src))
	}
}

func TestLiteralBlockIsAnLZ4Block(t *testing.T) {
	r := newRand(t)
	for _, n := range []int{0, 1, 2, 14, 15, 16, 269, 270, 271, 524, 525, 526, 8192, 70000} {
		src := sample(r, n)
		block := AppendLZ4Sequence(nil, src, 0, 0)
		got := make([]byte, n)
		must.Do(t, LZ4DecompressExact(got, block), n)
		must.Equal(t, got, src, n)
	}
	must.Equal(t, AppendLZ4Sequence(nil, []byte("ab"), 0, 0), must.Hex(t, "20 61 62"), "two bytes")
	if got := AppendLZ4Sequence(nil, make([]byte, 15), 0, 0); !bytes.HasPrefix(got, must.Hex(t, "f0 00")) {
		t.Errorf("15 bytes give %x", got)
	}
}

// Blocks of the C library are parsed into sequences that, appended again, give the same block, and
// malformed ones are refused.
func TestLZ4SequencesAreParsedAndWritten(t *testing.T) {
	zeros := AppendLZ4Sequence(AppendLZ4Sequence(nil, make([]byte, 1), 1, 14), make([]byte, 5), 0, 0)
	must.Equal(t, zeros, must.Hex(t, "1a 00 01 00 50 00 00 00 00 00"))
	parse := func(block []byte) (again []byte, ok bool) {
		for at := 0; ; {
			s, ok := ParseLZ4Sequence(block, at)
			if !ok {
				return nil, false
			}
			if again = AppendLZ4Sequence(again, block[s.From:s.To], s.Offset, s.Match); s.Match == 0 {
				return again, s.End == len(block)
			}
			at = s.End
		}
	}
	r := newRand(t)
	for range 50 {
		block := LZ4CompressChunk(nil, sample(r, r.IntN(9000)))
		if again, ok := parse(block); !ok || !bytes.Equal(again, block) {
			t.Fatalf("%x is parsed as %x, %v", block, again, ok)
		}
		cut := block[:r.IntN(len(block))]
		if again, ok := parse(cut); ok && !bytes.Equal(again, cut) {
			t.Fatalf("%x is parsed as %x", cut, again)
		}
	}
	for _, text := range []string{"", "f0", "f0 ff", "20 61", "10 61 01", "1f 61 01 00", "1f 61 01 00 ff", "14 61"} {
		if s, ok := ParseLZ4Sequence(must.Hex(t, text), 0); ok {
			t.Errorf("%q is parsed as %v", text, s)
		}
	}
}

// Each chunk of the corpus's bitshuffle blocks must come out again as the C library packed it.
func TestLZ4MatchesTheCLibrary(t *testing.T) {
	const header, sizeOff = 20, 16 // of a bitshuffle block, cfile spec §6.4
	files, err := filepath.Glob(filepath.Join(corpustest.Dir(t), "golden", "cfile", "encodings", "bshuf-*.hex"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no blocks: %v", err)
	}
	chunks := 0
	for _, file := range files {
		block := must.Hex(t, string(corpustest.Read(t, file)))
		left := int(binary.LittleEndian.Uint32(block[12:])) * int(binary.LittleEndian.Uint32(block[sizeOff:]))
		for block = block[header:]; len(block) > 0; chunks++ {
			n := int(binary.BigEndian.Uint32(block))
			want := block[4 : 4+n]
			block = block[4+n:]
			plain := make([]byte, min(left, 8192))
			left -= len(plain)
			must.Do(t, LZ4DecompressExact(plain, want), file)
			must.Equal(t, LZ4CompressChunk(nil, plain), want)
		}
	}
	if chunks == 0 {
		t.Fatal("no chunk was compared")
	}
	t.Logf("%d chunks of %d blocks", chunks, len(files))
}

func TestCallsDoNotAllocate(t *testing.T) {
	if invariant.Race {
		t.Skip("the race detector empties pools at random")
	}
	src := bytes.Repeat([]byte("0123456789"), 800)
	for _, c := range codecs {
		buf := make([]byte, 0, 2*len(src)+100)
		dst := make([]byte, len(src))
		packed := must.Get(c.Compress(nil, src))(t)
		allowed := 0.0
		if c == Zlib {
			allowed = 1 // the checksum's state, which the library makes for each stream
		}
		if n := testing.AllocsPerRun(100, func() { buf, _ = c.Compress(buf[:0], src) }); n >= 1 {
			t.Errorf("%v: Compress allocates %v times", c, n)
		}
		if n := testing.AllocsPerRun(100, func() { _ = c.Decompress(dst, packed) }); n > allowed {
			t.Errorf("%v: Decompress allocates %v times", c, n)
		}
	}
}

func FuzzDecompressNeverPanics(f *testing.F) {
	for i, c := range codecs {
		packed, _ := c.Compress(nil, bytes.Repeat([]byte("fuzz"), 50))
		f.Add(uint8(i), uint16(200), packed)
	}
	fuzztest.Run(f, func(t *testing.T, codec uint8, size uint16, src []byte) {
		c := codecs[int(codec)%len(codecs)]
		dst := make([]byte, int(size)+8)
		guard := dst[size:]
		for i := range guard {
			guard[i] = 0xa5
		}
		err := c.Decompress(dst[:size:size], src)
		if err != nil && !errors.Is(err, fault.ErrCorrupt) {
			t.Errorf("%v: %v", c, err)
		}
		if err == nil && int(size) > c.MaxRatio()*len(src) {
			t.Errorf("%v: %d bytes came out of %d", c, size, len(src))
		}
		for _, g := range guard {
			must.Equal(t, g, 0xa5, c)
		}
	})
}

func BenchmarkDecompress(b *testing.B) {
	src := sample(rand.New(rand.NewPCG(1, 2)), 256<<10)
	for _, c := range codecs {
		b.Run(fmt.Sprintf("codec=%v", c), func(b *testing.B) {
			packed := must.Get(c.Compress(nil, src))(b)
			dst := make([]byte, len(src))
			b.SetBytes(int64(len(src)))
			for b.Loop() {
				must.Do(b, c.Decompress(dst, packed))
			}
			if !bytes.Equal(dst, src) {
				b.Fatal("the unpacked bytes differ from the packed ones")
			}
		})
	}
}

// The library's assembly dereferences a nil dst.
func TestLZ4UnpacksNothingOnlyFromAnEmptyBlock(t *testing.T) {
	literals := append([]byte{0x50}, bytes.Repeat([]byte{0x41}, 40)...)
	for _, dst := range [][]byte{nil, {}} {
		must.Do(t, LZ4DecompressExact(dst, []byte{0}))
		for _, src := range [][]byte{nil, literals, literals[:2], {0, 0}} {
			must.Fail(t, LZ4DecompressExact(dst, src), fault.ErrCorrupt, len(src))
		}
	}
}
