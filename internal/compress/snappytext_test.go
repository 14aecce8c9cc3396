package compress

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"testing"

	"github.com/klauspost/compress/snappy"

	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/internal/fuzztest"
	"github.com/oribi-db/oribi/internal/must"
)

// compareSnappy compares UnpackText with the library's strict decoder: the same blocks are
// well-formed, and they unpack to the same bytes.
func compareSnappy(t *testing.T, packed []byte) {
	t.Helper()
	if n, err := snappy.DecodedLen(packed); err == nil && n > 1<<20 && n <= Snappy.MaxRatio()*len(packed) {
		return
	}
	before := bytes.Clone(packed)
	var want []byte
	wantErr := errSnappy
	if n, err := snappy.DecodedLen(packed); err == nil && n <= Snappy.MaxRatio()*len(packed) {
		want, wantErr = snappy.DecodeStrict(nil, packed)
	}
	for _, dst := range [][]byte{nil, make([]byte, 10, 5000)} {
		got, err := UnpackText(dst, packed)
		if (err == nil) != (wantErr == nil) || !bytes.Equal(got, want) {
			t.Fatalf("%d bytes, %v; the library: %d bytes, %v", len(got), err, len(want), wantErr)
		}
		if err != nil && !errors.Is(err, fault.ErrCorrupt) {
			t.Fatal(err)
		}
	}
	if !bytes.Equal(packed, before) {
		t.Fatal("the input has changed")
	}
}

// snappyBlock returns a block of random elements of all kinds and lengths, whose copies lead to all
// distances, also to the start.
func snappyBlock(r *rand.Rand, elements int) []byte {
	var b []byte
	n := 0
	for range elements {
		length, offset := 1+r.IntN(64), 1+r.IntN(max(1, n))
		if r.IntN(4) == 0 {
			offset = min(1+r.IntN(40), max(1, n))
		}
		switch kind := r.IntN(8); {
		case kind == 0 || n == 0: // a literal; now and then with a length after the tag
			more := max(0, r.IntN(8)-3)
			if length > snappyLongLiteral {
				more = max(1, more)
			}
			b = appendSnappy(b, snappyLiteral, length, length-1, more)
			for range length {
				b = append(b, byte(r.Uint32()))
			}
		case kind < 5 && offset < 1<<11:
			length = 4 + length%8
			b = append(b, byte(1|(length-4)<<2|offset>>8<<5), byte(offset))
		case kind < 7 && offset < 1<<16:
			b = appendSnappy(b, 2, length, offset, 2)
		default:
			b = appendSnappy(b, 3, length, offset, 4)
		}
		n += length
	}
	return append(binary.AppendUvarint(nil, uint64(n)), b...)
}

// appendSnappy appends a tag, with its length unless the length of a literal follows it, and a
// number of so many bytes.
func appendSnappy(b []byte, kind, length, number, bytes int) []byte {
	high := length - 1
	if kind == snappyLiteral && bytes > 0 {
		high = snappyLongLiteral + bytes - 1
	}
	b = append(b, byte(kind|high<<2))
	for i := range bytes {
		b = append(b, byte(number>>(8*i)))
	}
	return b
}

func TestUnpackTextAcceptsWhatTheLibraryAccepts(t *testing.T) {
	r := newRand(t)
	packed := [][]byte{nil, {0}, must.Hex(t, "04 04 61 62 06 02 00"), must.Hex(t, "80 80 80 80 80 00"),
		must.Hex(t, "ff ff ff ff 0f 00 61")}
	for kind := range deflateKinds {
		for _, n := range []int{0, 1, 31, 63, 100, 200, 70000} {
			packed = append(packed, snappy.Encode(nil, deflateText(r, kind, n)))
		}
	}
	for range 20 {
		packed = append(packed, snappyBlock(r, r.IntN(60)))
	}
	packed = append(packed, snappyBlock(r, 5000))
	for _, p := range packed {
		compareSnappy(t, p)
		if len(p) == 0 || len(p) > 5000 {
			continue
		}
		for range 60 {
			b := bytes.Clone(p)
			for range 1 + r.IntN(2) {
				b[r.IntN(len(b))] ^= 1 << r.IntN(8)
			}
			compareSnappy(t, b[:len(b)-r.IntN(2)*r.IntN(len(b))])
		}
	}
}

func TestUnpackTextUsesMemoryAgain(t *testing.T) {
	r := newRand(t)
	text := deflateText(r, 2, 5000)
	packed := snappy.Encode(nil, text)
	dst := make([]byte, 0, len(text)+len(packed))
	if n := testing.AllocsPerRun(5, func() {
		if got, err := UnpackText(dst, packed); err != nil || !bytes.Equal(got, text) {
			t.Fatal(err)
		}
	}); n > 0 {
		t.Errorf("%v allocations", n)
	}
}

// FuzzUnpackText compares UnpackText with the library's strict decoder.
func FuzzUnpackText(f *testing.F) {
	r := rand.New(rand.NewPCG(1, 1))
	for kind := range deflateKinds {
		f.Add(snappy.Encode(nil, deflateText(r, kind, 600)))
		f.Add(snappyBlock(r, 20))
	}
	fuzztest.Run(f, func(t *testing.T, packed []byte) { compareSnappy(t, packed) })
}
