package hfile

import (
	"bytes"
	"compress/flate"
	"compress/gzip"
	"io"
	"math/rand/v2"
	"testing"

	"github.com/oribi-db/oribi/internal/fuzztest"
)

// gzipText returns text of the given kind, compressed at a level.
func gzipText(kind, n, level int) (text, packed []byte) {
	rng := rand.New(rand.NewPCG(uint64(kind), uint64(n)))
	for len(text) < n {
		switch kind {
		case 0: // few letters
			text = append(text, 'a'+byte(rng.IntN(4)))
		case 1: // noise
			text = append(text, byte(rng.Uint32()))
		case 2: // words of which some repeat far away
			text = append(text, "row-0000"...)
			text = append(text, byte('0'+rng.IntN(10)), byte(rng.IntN(256)))
			if len(text) > 1000 && rng.IntN(3) == 0 {
				at := rng.IntN(len(text) - 300)
				text = append(text, text[at:at+rng.IntN(300)]...)
			}
		default: // a run
			text = append(text, 'x')
		}
	}
	var b bytes.Buffer
	w, err := gzip.NewWriterLevel(&b, level)
	if err != nil {
		panic(err)
	}
	w.Write(text)
	w.Close()
	return text, b.Bytes()
}

func TestGunzipReadsAllKindsOfBlocks(t *testing.T) {
	for kind := range 4 {
		for _, n := range []int{0, 1, 7, 100, 5000, 70000, 300000} {
			for _, level := range []int{gzip.HuffmanOnly, gzip.NoCompression, 1, 6, 9} {
				text, packed := gzipText(kind, n, level)
				got := make([]byte, len(text))
				if err := gunzip(got, packed); err != nil || !bytes.Equal(got, text) {
					t.Fatalf("kind %d, %d bytes, level %d: %v", kind, n, level, err)
				}
				if len(text) > 0 && gunzip(got[1:], packed) == nil {
					t.Fatalf("kind %d, %d bytes, level %d: one byte less is accepted", kind, n, level)
				}
				if gunzip(append(got, 0), packed) == nil {
					t.Fatalf("kind %d, %d bytes, level %d: one byte more is accepted", kind, n, level)
				}
			}
		}
	}
}

// FuzzGunzip compares gunzip with the standard library.
func FuzzGunzip(f *testing.F) {
	for kind := range 4 {
		for _, level := range []int{gzip.HuffmanOnly, gzip.NoCompression, 6} {
			text, packed := gzipText(kind, 400, level)
			f.Add(packed, uint16(len(text)))
		}
	}
	fuzztest.Run(f, func(t *testing.T, packed []byte, n uint16) {
		body, err := gzipBody(packed)
		if _, errHeader := gzip.NewReader(bytes.NewReader(packed)); err != nil && errHeader == nil {
			t.Fatalf("header: %v, the library accepts it", err)
		}
		if err != nil {
			return
		}
		// Without the checksum at the end: no change would pass it.
		want, errBody := io.ReadAll(io.LimitReader(flate.NewReader(bytes.NewReader(body)), 1<<20))
		if len(want) == 1<<20 {
			return
		}
		got := make([]byte, len(want))
		_, err = new(inflater).inflate(got, body)
		if (err == nil) != (errBody == nil) || err == nil && !bytes.Equal(got, want) {
			t.Fatalf("%d bytes: %v, the library: %v", len(want), err, errBody)
		}
		new(inflater).inflate(make([]byte, n), body)
	})
}
