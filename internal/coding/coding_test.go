package coding

import (
	"bytes"
	"encoding/binary"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/oribi-db/oribi/internal/fuzztest"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/internal/seedtest"
)

// spread returns a number of random width, to cover all widths.
func spread(r *rand.Rand) uint64 { return r.Uint64() >> r.IntN(64) }

func TestUvarintExamples(t *testing.T) {
	for _, c := range []struct {
		v uint64
		b string
	}{
		{0, "00"}, {127, "7f"}, {128, "80 01"}, {300, "ac 02"}, {16383, "ff 7f"}, {16384, "80 80 01"},
		{math.MaxUint32, "ff ff ff ff 0f"}, {1 << 32, "80 80 80 80 10"},
		{math.MaxUint64, "ff ff ff ff ff ff ff ff ff 01"},
	} {
		want := must.Hex(t, c.b)
		must.Equal(t, AppendUvarint64(nil, c.v), want, "AppendUvarint64", c.v)
		if v, n, ok := Uvarint64(want); v != c.v || n != len(want) || !ok {
			t.Errorf("Uvarint64(%x) = %d, %d, %v", want, v, n, ok)
		}
		v, n, ok := Uvarint32(want)
		if c.v > math.MaxUint32 {
			must.Equal(t, ok, false, "Uvarint32", want, v)
		} else if uint64(v) != c.v || n != len(want) || !ok {
			t.Errorf("Uvarint32(%x) = %d, %d, %v", want, v, n, ok)
		}
	}
}

func TestUvarintRefusesOverflowAndOverlength(t *testing.T) {
	for _, c := range []struct {
		name, b        string
		want32, want64 bool
	}{
		{"empty", "", false, false},
		{"cut", "80", false, false},
		{"longer than needed", "80 00", true, true},
		{"bit 32", "80 80 80 80 10", false, true},
		{"five bytes and on", "80 80 80 80 80 00", false, true},
		{"bit 64", "80 80 80 80 80 80 80 80 80 02", false, false},
		{"ten bytes and on", "80 80 80 80 80 80 80 80 80 80 00", false, false},
	} {
		b := must.Hex(t, c.b)
		if _, n, ok := Uvarint32(b); ok != c.want32 || !ok && n != 0 {
			t.Errorf("%s: Uvarint32 n %d, ok %v", c.name, n, ok)
		}
		if _, n, ok := Uvarint64(b); ok != c.want64 || !ok && n != 0 {
			t.Errorf("%s: Uvarint64 n %d, ok %v", c.name, n, ok)
		}
	}
}

func TestUvarintAgreesWithStandardLibrary(t *testing.T) {
	r := seedtest.Rand(t)
	for range 10000 {
		v := spread(r)
		want := binary.AppendUvarint(nil, v)
		must.Equal(t, AppendUvarint64(nil, v), want, v)
		must.Equal(t, AppendUvarint32(nil, uint32(v)), binary.AppendUvarint(nil, uint64(uint32(v))), uint32(v))
		garbage := make([]byte, r.IntN(12))
		for i := range garbage {
			garbage[i] = byte(r.Uint32()) | byte(r.IntN(2))<<7
		}
		wantV, wantN := binary.Uvarint(garbage)
		if v, n, ok := Uvarint64(garbage); ok != (wantN > 0) || ok && (v != wantV || n != wantN) {
			t.Fatalf("%x: %d, %d, %v; want %d, %d", garbage, v, n, ok, wantV, wantN)
		}
	}
}

func TestGroupVarintExamples(t *testing.T) {
	for _, c := range []struct {
		v [4]uint32
		b string
	}{
		{[4]uint32{0, 0, 0, 0}, "00 00 00 00 00"},
		{[4]uint32{1, 2, 3, 254}, "00 01 02 03 fe"},
		{[4]uint32{256, 2, 3, 65535}, "41 00 01 02 03 ff ff"},
		{[4]uint32{1, 2000, 3, 200000}, "12 01 d0 07 03 40 0d 03"},
		{[4]uint32{70000, 1 << 24, 255, 256}, "b1 70 11 01 00 00 00 01 ff 00 01"},
	} {
		want := must.Hex(t, c.b)
		must.Equal(t, AppendGroupVarint(nil, c.v[0], c.v[1], c.v[2], c.v[3]), want, "AppendGroupVarint", c.v)
		if v, n, ok := GroupVarint(want); v != c.v || n != len(want) || !ok {
			t.Errorf("GroupVarint(%x) = %v, %d, %v", want, v, n, ok)
		}
	}
}

func TestGroupVarintSequenceExamples(t *testing.T) {
	for _, c := range []struct {
		v []uint32
		b string
	}{
		{nil, ""},
		{[]uint32{12, 17, 23}, "00 0c 11 17 00"},
		{[]uint32{12, 300, 70000, 5, 6}, "18 0c 2c 01 70 11 01 05 00 06 00 00 00"},
	} {
		must.Equal(t, AppendGroupVarintSeq(nil, c.v), must.Hex(t, c.b), "AppendGroupVarintSeq", c.v)
	}
}

func TestGroupVarintRoundTripAndTruncation(t *testing.T) {
	r := seedtest.Rand(t)
	for range 5000 {
		want := [4]uint32{uint32(spread(r)), uint32(spread(r)), uint32(spread(r)), uint32(spread(r))}
		b := AppendGroupVarint(nil, want[0], want[1], want[2], want[3])
		tail := append(bytes.Clone(b), make([]byte, r.IntN(20))...)
		if v, n, ok := GroupVarint(tail); v != want || n != len(b) || !ok {
			t.Fatalf("%v: %v, %d, %v", want, v, n, ok)
		}
		for cut := range b {
			if _, n, ok := GroupVarint(b[:cut:cut]); ok || n != 0 {
				t.Fatalf("%x cut to %d bytes was accepted", b, cut)
			}
		}
	}
}

func TestOrderedUvarintExamples(t *testing.T) {
	for _, c := range []struct {
		v uint64
		b string
	}{
		{0, "00"}, {240, "f0"}, {241, "f1 01"}, {495, "f1 ff"}, {496, "f2 00"}, {2287, "f8 ff"},
		{2288, "f9 00 00"}, {67823, "f9 ff ff"}, {67824, "fa 01 08 f0"}, {1<<24 - 1, "fa ff ff ff"},
		{1 << 24, "fb 01 00 00 00"}, {1<<32 - 1, "fb ff ff ff ff"}, {1 << 32, "fc 01 00 00 00 00"},
		{1 << 40, "fd 01 00 00 00 00 00"}, {1 << 48, "fe 01 00 00 00 00 00 00"},
		{1 << 56, "ff 01 00 00 00 00 00 00 00"}, {math.MaxUint64, "ff ff ff ff ff ff ff ff ff"},
	} {
		want := must.Hex(t, c.b)
		must.Equal(t, AppendOrderedUvarint(nil, c.v), want, "AppendOrderedUvarint", c.v)
		if v, n, ok := OrderedUvarint(want); v != c.v || n != len(want) || !ok {
			t.Errorf("OrderedUvarint(%x) = %d, %d, %v", want, v, n, ok)
		}
	}
}

func TestOrderedUvarintSortsAsNumbers(t *testing.T) {
	r := seedtest.Rand(t)
	for range 20000 {
		u, v := spread(r), spread(r)
		if r.IntN(4) == 0 {
			v = u + uint64(r.IntN(3))
		}
		a, b := AppendOrderedUvarint(nil, u), AppendOrderedUvarint(nil, v)
		want := 0
		if u < v {
			want = -1
		} else if u > v {
			want = 1
		}
		must.Equal(t, bytes.Compare(a, b), want, u, a, v, b)
		if got, n, ok := OrderedUvarint(append(a, b...)); got != u || n != len(a) || !ok {
			t.Fatalf("%d is read as %d, %d, %v", u, got, n, ok)
		}
	}
}

// Only the form that AppendOrderedUvarint writes is accepted, since a number must have one key.
func TestOrderedUvarintAcceptsOnlyShortestForm(t *testing.T) {
	for _, s := range []string{
		"", "f1", "f9 00", "fa 01 08", "ff 01", // cut
		"f1 00",                      // 240
		"fa 01 08 ef",                // 67823
		"fa 00 00 00",                // 0
		"fb 00 ff ff ff",             // 2^24 - 1
		"ff 00 ff ff ff ff ff ff ff", // 2^56 - 1
	} {
		if v, n, ok := OrderedUvarint(must.Hex(t, s)); ok || n != 0 {
			t.Errorf("%s was accepted as %d", s, v)
		}
	}
	r := seedtest.Rand(t)
	for range 20000 {
		b := make([]byte, 9)
		for i := range b {
			b[i] = byte(r.IntN(256))
		}
		b[0] |= byte(r.IntN(2)) * 0xf0
		b[1] &= byte(r.IntN(2)) * 0xff
		v, n, ok := OrderedUvarint(b)
		if ok && !bytes.Equal(AppendOrderedUvarint(nil, v), b[:n]) {
			t.Fatalf("%x was accepted as %d, which is written as %x", b[:n], v, AppendOrderedUvarint(nil, v))
		}
	}
}

func TestCRC32CExamples(t *testing.T) {
	for _, c := range []struct {
		in   string
		want uint32
	}{
		{"", 0}, {"a", 0xc1d04330}, {"123456789", 0xe3069283}, {"abcdefgh", 0x0a9421b7},
		{"kuducfl2\x00\x00\x00\x00", 0xd33a9402},
	} {
		must.Equal(t, CRC32C([]byte(c.in)), c.want, "CRC32C", c.in)
		half := len(c.in) / 2
		must.Equal(t, UpdateCRC32C(CRC32C([]byte(c.in[:half])), []byte(c.in[half:])), c.want,
			"CRC of the halves of", c.in)
	}
}

func FuzzReadersStayInBounds(f *testing.F) {
	f.Add([]byte{0xac, 0x02})
	f.Add([]byte{0xff, 1, 2, 3, 4, 5, 6, 7, 8})
	fuzztest.Run(f, func(t *testing.T, b []byte) {
		b = b[:len(b):len(b)]
		if _, n, _ := Uvarint32(b); n > len(b) {
			t.Error("Uvarint32 ran over")
		}
		if _, n, _ := Uvarint64(b); n > len(b) {
			t.Error("Uvarint64 ran over")
		}
		if _, n, _ := GroupVarint(b); n > len(b) {
			t.Error("GroupVarint ran over")
		}
		if v, n, ok := OrderedUvarint(b); ok && !bytes.Equal(AppendOrderedUvarint(nil, v), b[:n]) {
			t.Error("OrderedUvarint read a form that is not written")
		}
	})
}

func BenchmarkGroupVarint(b *testing.B) {
	buf := AppendGroupVarint(nil, 1, 2000, 3, 200000)
	buf = append(buf, make([]byte, 16)...)
	var sum uint32
	for b.Loop() {
		v, _, _ := GroupVarint(buf)
		sum += v[0] + v[3]
	}
	if sum == 0 {
		b.Fatal("nothing was read")
	}
}
