package bloom

import (
	"bytes"
	"encoding/binary"
	"errors"
	"testing"

	oracle "github.com/bits-and-blooms/bloom/v3"

	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/internal/fuzztest"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/internal/seedtest"
)

func TestSizingMatchesKudu(t *testing.T) {
	for _, c := range []struct {
		o    Options
		want Sizing
	}{
		{Options{}, Sizing{4096, 1710, 13}},
		{Options{BlockBytes: 4096, FalsePositiveRate: 0.001}, Sizing{4096, 2280, 9}},
		{Options{BlockBytes: 4096, FalsePositiveRate: 0.01}, Sizing{4096, 3419, 6}},
		{Options{BlockBytes: 4096, FalsePositiveRate: 0.1}, Sizing{4096, 6838, 3}},
		{Options{BlockBytes: 1024, FalsePositiveRate: 0.01}, Sizing{1024, 855, 6}},
		{Options{BlockBytes: 8192, FalsePositiveRate: 0.0001}, Sizing{8192, 3419, 13}},
		{Options{BlockBytes: 16384, FalsePositiveRate: 0.0001}, Sizing{16384, 6838, 13}},
		{Options{KeysPerBlock: 100, FalsePositiveRate: 0.01}, Sizing{120, 100, 6}},
		{Options{KeysPerBlock: 1000, FalsePositiveRate: 0.01}, Sizing{1199, 1000, 6}},
		{Options{KeysPerBlock: 2000, FalsePositiveRate: 0.01}, Sizing{2397, 2000, 6}},
		{Options{KeysPerBlock: 10000, FalsePositiveRate: 0.0001}, Sizing{23964, 10000, 13}},
		{Options{BlockBytes: 16, FalsePositiveRate: 0.1}, Sizing{16, 27, 3}},
		{Options{BlockBytes: 1, FalsePositiveRate: 0.5}, Sizing{1, 6, 1}},
	} {
		must.Equal(t, must.Get(c.o.Sizing())(t), c.want, c.o)
	}
}

func TestSizingRefusesInvalidOptions(t *testing.T) {
	nan := 0.0
	nan /= nan
	for _, o := range []Options{
		{FalsePositiveRate: 1}, {FalsePositiveRate: -0.1}, {FalsePositiveRate: 2}, {FalsePositiveRate: nan},
		{BlockBytes: -1}, {KeysPerBlock: -1}, {BlockBytes: 100, KeysPerBlock: 100},
		{BlockBytes: maxBlockBytes + 1}, {KeysPerBlock: 1 << 30},
		{FalsePositiveRate: 0.9999999999999999}, // more keys than a rowset can have
	} {
		if s, err := o.Sizing(); err == nil {
			t.Errorf("%+v gives %+v", o, s)
		}
	}
	// All accepted sizings can be written and read.
	r := seedtest.Rand(t)
	for range 2000 {
		o := Options{FalsePositiveRate: 1 / float64(uint64(2)+r.Uint64()>>r.IntN(64))}
		if r.IntN(2) == 0 {
			o.BlockBytes = r.IntN(1 << r.IntN(25))
		} else {
			o.KeysPerBlock = r.IntN(1 << r.IntN(25))
		}
		s, err := o.Sizing()
		if err != nil {
			continue
		}
		if s.Bytes < 1 || s.Bytes > maxBlockBytes || s.Keys < 1 || s.Hashes < 1 || s.Hashes > maxHashes {
			t.Fatalf("%+v gives %+v", o, s)
		}
	}
}

// The example in the format table of filter.go.
func TestFilterExample(t *testing.T) {
	want := must.Hex(t, "02 00 00 00 | 08 03 | 00 00 00 20 80 01 00 00 20 02 00 40 00 08 06 00")
	got := must.Get(appendHeader(nil, 3))(t)
	f := filter{hashes: 3, bitmap: make([]byte, 16)}
	for _, key := range []string{"alpha", "beta", "gamma"} {
		f.add(MakeProbe([]byte(key)).hash)
	}
	if got = append(got, f.bitmap...); !bytes.Equal(got, want) {
		t.Errorf("got  %x\nwant %x", got, want)
	}
	back, err := parseFilter(want)
	if err != nil || back.hashes != 3 || !bytes.Equal(back.bitmap, f.bitmap) {
		t.Errorf("read as %+v (%v)", back, err)
	}
	for _, key := range []string{"alpha", "beta", "gamma"} {
		must.Equal(t, back.mayContain(MakeProbe([]byte(key)).hash), true, key)
	}
	must.Equal(t, back.mayContain(MakeProbe([]byte("delta")).hash), false, "delta is found")
}

func TestParseFilterRefusesGarbage(t *testing.T) {
	for name, s := range map[string]string{
		"empty":             "",
		"three bytes":       "02 00 00",
		"header too long":   "03 00 00 00 08 03",
		"header of 4 GiB":   "ff ff ff ff 08 03",
		"no bitmap":         "02 00 00 00 08 03",
		"no header":         "00 00 00 00 ff",
		"other field":       "02 00 00 00 10 03 ff",
		"cut varint":        "02 00 00 00 08 83 ff",
		"no hashes":         "02 00 00 00 08 00 ff",
		"negative hashes":   "0b 00 00 00 08 ff ff ff ff ff ff ff ff ff 01 ff",
		"absurdly many":     "03 00 00 00 08 b3 08 ff",
		"two billion of 32": "06 00 00 00 08 ff ff ff ff 07 ff",
	} {
		must.Fail(t, must.Err(parseFilter(must.Hex(t, s))), fault.ErrCorrupt, name)
	}
	for name, s := range map[string]string{
		"most hashes":      "03 00 00 00 08 b2 08 ff",
		"unknown field":    "04 00 00 00 08 03 10 01 ff",
		"longer than need": "03 00 00 00 08 83 00 ff",
	} {
		must.Do(t, must.Err(parseFilter(must.Hex(t, s))), name)
	}
}

func FuzzParseFilter(f *testing.F) {
	f.Add([]byte("\x02\x00\x00\x00\x08\x03abcdef"), uint64(1))
	fuzztest.Run(f, func(t *testing.T, b []byte, hash uint64) {
		got, err := parseFilter(b)
		if err == nil {
			got.mayContain(hash)
		} else if !errors.Is(err, fault.ErrCorrupt) {
			t.Error(err)
		}
	})
}

// positions returns the bits of a hash, computed in 64 bits from the format's definition.
func positions(hash uint64, hashes, bitmapBytes int) []uint64 {
	var all []uint64
	h1, h2 := hash&0xffffffff, hash>>32
	for i := range uint64(hashes) {
		all = append(all, (h1+i*h2)%(1<<32)%uint64(8*bitmapBytes))
	}
	return all
}

func TestAddSetsTheBitsOfTheFormat(t *testing.T) {
	r := seedtest.Rand(t)
	for range 300 {
		f := filter{hashes: 1 + r.IntN(40), bitmap: make([]byte, 1+r.IntN(300))}
		if r.IntN(3) == 0 {
			f.bitmap = make([]byte, 1<<r.IntN(9))
		}
		model := map[uint64]bool{}
		for range r.IntN(20) {
			h := r.Uint64()
			f.add(h)
			for _, p := range positions(h, f.hashes, len(f.bitmap)) {
				model[p] = true
			}
		}
		for p := range uint64(8 * len(f.bitmap)) {
			must.Equal(t, f.bitmap[p/8]>>(p%8)&1 == 1, model[p], p)
		}
		for range 50 {
			h, want := r.Uint64(), true
			for _, p := range positions(h, f.hashes, len(f.bitmap)) {
				want = want && model[p]
			}
			must.Equal(t, f.mayContain(h), want, h)
		}
	}
}

// A full filter has the requested false-positive rate, and no higher one than another
// implementation of the same size, which would show if the halves of the hash were dependent. The
// keys are fixed so that the test cannot fail by chance.
func TestFalsePositiveRateMatchesOption(t *testing.T) {
	const questions = 200000
	for _, rate := range []float64{0.1, 0.01, 0.001} {
		s := must.Get(Options{FalsePositiveRate: rate}.Sizing())(t)
		f := filter{hashes: s.Hashes, bitmap: make([]byte, s.Bytes)}
		other := oracle.New(uint(8*s.Bytes), uint(s.Hashes))
		var key [8]byte
		for i := range s.Keys {
			binary.BigEndian.PutUint64(key[:], uint64(i)<<2)
			f.add(MakeProbe(key[:]).hash)
			other.Add(key[:])
		}
		var ours, theirs float64
		for i := range uint64(questions) {
			binary.BigEndian.PutUint64(key[:], i<<2|1)
			if f.mayContain(MakeProbe(key[:]).hash) {
				ours++
			}
			if other.Test(key[:]) {
				theirs++
			}
		}
		ours, theirs = ours/questions, theirs/questions
		t.Logf("rate %v: %v, oracle %v", rate, ours, theirs)
		if ours > 1.5*rate || ours > 1.5*theirs+0.0003 {
			t.Errorf("rate %v: got a false-positive rate of %v, the oracle has %v", rate, ours, theirs)
		}
	}
}
