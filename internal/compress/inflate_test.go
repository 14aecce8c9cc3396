package compress

import (
	"bytes"
	"compress/flate"
	"compress/gzip"
	"errors"
	"hash/crc32"
	"io"
	"math/rand/v2"
	"testing"

	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/internal/fuzztest"
	"github.com/oribi-db/oribi/internal/must"
)

// deflateKinds is how many kinds of text deflateText knows.
const deflateKinds = 5

// deflateText returns n bytes of a kind: the kinds use codes of all lengths, near and far matches.
func deflateText(r *rand.Rand, kind, n int) []byte {
	var text []byte
	for len(text) < n {
		switch kind {
		case 0: // few letters
			text = append(text, 'a'+byte(r.IntN(4)))
		case 1: // noise
			text = append(text, byte(r.Uint32()))
		case 2: // rows, and pieces of text that repeat far away
			text = append(text, "row-0000"...)
			text = append(text, byte('0'+r.IntN(10)), byte(r.IntN(256)))
			if len(text) > 1000 && r.IntN(3) == 0 {
				at := r.IntN(len(text) - 300)
				text = append(text, text[at:at+r.IntN(300)]...)
			}
		case 3: // letters of which each is half as frequent as the one before: codes of 15 bits
			c := byte(0)
			for c < 40 && r.IntN(2) == 0 {
				c++
			}
			text = append(text, 'a'+c)
		default: // runs, short periods
			period := min(1+r.IntN(20), len(text))
			for range 1 + r.IntN(400) {
				c := byte('x')
				if period > 0 {
					c = text[len(text)-period]
				}
				text = append(text, c)
			}
			text = append(text, byte(r.Uint32()))
		}
	}
	return text[:n]
}

// deflated returns text, compressed by the standard library.
func deflated(t testing.TB, text []byte, level int) []byte {
	t.Helper()
	var b bytes.Buffer
	w := must.Get(flate.NewWriter(&b, level))(t)
	w.Write(text)
	must.Do(t, w.Close())
	return b.Bytes()
}

var deflateLevels = []int{flate.HuffmanOnly, flate.NoCompression, 1, 6, 9}

func TestInflateUnpacksWhatTheStandardLibraryPacks(t *testing.T) {
	r := newRand(t)
	for kind := range deflateKinds {
		for _, n := range []int{0, 1, 7, 100, 300, 5000, 100000} {
			text := deflateText(r, kind, n)
			for _, level := range deflateLevels {
				packed := deflated(t, text, level)
				got := make([]byte, n, n+1)
				if rest, err := inflate(got, append(packed, "rest"...)); err != nil || string(rest) != "rest" ||
					!bytes.Equal(got, text) {
					t.Fatalf("kind %d, %d bytes, level %d: %q left, %v", kind, n, level, rest, err)
				}
				if _, err := inflate(got[:n+1], packed); !errors.Is(err, fault.ErrCorrupt) ||
					errors.Is(err, errInflateLonger) {
					t.Fatalf("kind %d, %d bytes, level %d: one byte more: %v", kind, n, level, err)
				}
				if n == 0 {
					continue
				}
				must.Fail(t, must.Err(inflate(got[:n-1], packed)), errInflateLonger, kind, n, level)
				for range 10 {
					must.Fail(t, must.Err(inflate(got, packed[:r.IntN(len(packed))])),
						fault.ErrCorrupt, kind, n, level)
				}
			}
		}
	}
}

// compareInflate compares inflate with the standard library: the same streams are well-formed, and
// they unpack to the same bytes and end at the same place. n is the size of a second, unrelated
// buffer.
func compareInflate(t *testing.T, packed []byte, n int) {
	t.Helper()
	const limit = 1 << 20
	in := bytes.NewReader(packed)
	want, wantErr := io.ReadAll(io.LimitReader(flate.NewReader(in), limit))
	if len(want) == limit {
		return
	}
	got := make([]byte, len(want))
	rest, err := inflate(got, packed)
	must.Equal(t, err == nil, wantErr == nil, len(want), err, wantErr)
	if err == nil && (!bytes.Equal(got, want) || len(rest) != in.Len()) {
		t.Fatalf("%d bytes: differ, or %d bytes left, the standard library leaves %d", len(want), len(rest), in.Len())
	}
	if err != nil && !errors.Is(err, fault.ErrCorrupt) {
		t.Fatal(err)
	}
	b := make([]byte, n+1)
	b[n] = 0xa5
	_, err = inflate(b[:n], packed)
	must.Equal(t, b[n], 0xa5, n)
	if wantErr == nil && n < len(want) && !errors.Is(err, errInflateLonger) {
		t.Fatalf("%d of %d bytes: %v", n, len(want), err)
	}
}

func TestInflateFindsTheDamageThatTheStandardLibraryFinds(t *testing.T) {
	r := newRand(t)
	for kind := range deflateKinds {
		for _, level := range deflateLevels {
			packed := deflated(t, deflateText(r, kind, 4000), level)
			for range 150 {
				b := bytes.Clone(packed)
				for range 1 + r.IntN(3) {
					at := r.IntN(len(b))
					if r.IntN(2) == 0 {
						at = r.IntN(min(len(b), 100)) // where the lengths of codes are
					}
					b[at] ^= 1 << r.IntN(8)
				}
				compareInflate(t, b, r.IntN(5000))
			}
		}
	}
}

// FuzzInflate compares inflate with the standard library.
func FuzzInflate(f *testing.F) {
	r := rand.New(rand.NewPCG(1, 1))
	for kind := range deflateKinds {
		for _, level := range deflateLevels {
			f.Add(deflated(f, deflateText(r, kind, 600), level), uint16(100))
		}
	}
	f.Add(must.Hex(f, "03 00"), uint16(0))             // no bytes, fixed codes
	f.Add(must.Hex(f, "01 01 00 fe ff 61"), uint16(1)) // stored
	fuzztest.Run(f, func(t *testing.T, packed []byte, n uint16) { compareInflate(t, packed, int(n)) })
}

func TestGunzipAllocatesNothing(t *testing.T) {
	text := deflateText(newRand(t), 2, 70000)
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	w.Write(text)
	w.Close()
	got := make([]byte, len(text))
	if n := testing.AllocsPerRun(20, func() {
		must.Do(t, Gunzip(got, b.Bytes()))
	}); n > 0 || !bytes.Equal(got, text) {
		t.Errorf("%v allocations for %d bytes", n, len(text))
	}
}

func TestGunzipReadsHeadersOfMembers(t *testing.T) {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	w.Name, w.Comment, w.Extra = "name", "comment", []byte("extra")
	w.Write([]byte("abc"))
	w.Close()
	member := b.Bytes()
	got := make([]byte, 3)
	must.Do(t, Gunzip(got, member))
	must.Equal(t, string(got), "abc")
	for at := range member {
		must.Fail(t, Gunzip(got, member[:at]), fault.ErrCorrupt, at)
	}
	must.Fail(t, Gunzip(got, append(member, 0)), fault.ErrCorrupt, "a byte after the member")
	for _, at := range []int{0, 1, 2, len(member) - 8, len(member) - 1} {
		b := bytes.Clone(member)
		b[at] ^= 1
		must.Fail(t, Gunzip(got, b), fault.ErrCorrupt, at)
	}
	// The standard library reads checksums of headers, but does not write them.
	header := must.Hex(t, "1f 8b 08 02  00 00 00 00 00 ff")
	crc := crc32.ChecksumIEEE(header)
	for wrong, want := range []error{nil, fault.ErrCorrupt} {
		member := append(bytes.Clone(header), byte(crc)^byte(wrong), byte(crc>>8))
		must.Fail(t, Gunzip(nil, append(member, must.Hex(t, "03 00  00 00 00 00  00 00 00 00")...)), want, wrong)
	}
}

func TestZlibRefusesForeignStreams(t *testing.T) {
	good := must.Hex(t, "78 9c 03 00 00 00 00 01")
	must.Do(t, Zlib.Decompress(nil, good))
	for what, stream := range map[string]string{
		"method 7":            "77 85 03 00 00 00 00 01",
		"window of 64 KiB":    "88 1c 03 00 00 00 00 01",
		"header checksum":     "78 9d 03 00 00 00 00 01",
		"preset dictionary":   "78 bb 03 00 00 00 00 01",
		"Adler-32":            "78 9c 03 00 00 00 00 02",
		"Adler-32 is cut off": "78 9c 03 00 00 00 00",
		"header is cut off":   "78",
	} {
		must.Fail(t, Zlib.Decompress(nil, must.Hex(t, stream)), fault.ErrCorrupt, what)
	}
}
