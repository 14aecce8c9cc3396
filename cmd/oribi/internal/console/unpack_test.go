package console

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"testing"
	"testing/iotest"

	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/internal/seedtest"
)

// packed returns text as a gzip file of two members, like two files that were concatenated.
func packed(t *testing.T, text []byte) []byte {
	t.Helper()
	var out bytes.Buffer
	half := len(text) / 2
	for _, part := range [][]byte{text[:half], text[half:]} {
		z := gzip.NewWriter(&out)
		must.Get(z.Write(part))(t)
		must.Do(t, z.Close())
	}
	return out.Bytes()
}

func unpackAll(in io.Reader) ([]byte, error) {
	u, err := unpack(in, io.NopCloser(nil))
	if err != nil {
		return nil, err
	}
	defer u.Close()
	return io.ReadAll(u)
}

func TestUnpackRoundTrip(t *testing.T) {
	rng, text := seedtest.Rand(t), make([]byte, 3<<20)
	for i := range text {
		text[i] = "abcdefgh\n"[rng.IntN(9)]
	}
	file := packed(t, text)
	for name, in := range map[string]io.Reader{"whole": bytes.NewReader(file),
		"halves": iotest.HalfReader(bytes.NewReader(file))} {
		must.Equal(t, must.Get(unpackAll(in))(t), text, name)
	}
}

// The content before the place of truncation or damage is returned, and then an error, never
// io.EOF.
func TestTruncatedAndDamagedPackedFilesAreErrors(t *testing.T) {
	text := bytes.Repeat([]byte("some text\n"), 2000)
	file := packed(t, text)
	for cut := range file {
		got, err := unpackAll(bytes.NewReader(file[:cut]))
		if err == nil && bytes.Equal(got, text[:len(text)/2]) {
			continue // between its two members: a valid file
		}
		if err == nil || !bytes.HasPrefix(text, got) {
			t.Fatalf("cut at %d: %d bytes, %v", cut, len(got), err)
		}
		if cut >= 2 && !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Fatalf("cut at %d: %v", cut, err)
		}
	}
	for _, at := range []int{len(file) - 1, len(file) - 5} { // the length and the checksum
		damaged := bytes.Clone(file)
		damaged[at] ^= 1
		must.Fail(t, must.Err(unpackAll(bytes.NewReader(damaged))), gzip.ErrChecksum, at)
	}
}

// After Close, no more is unpacked.
func TestUnpackingStopsAfterClose(t *testing.T) {
	text := make([]byte, 16<<20)
	u := must.Get(unpack(bytes.NewReader(packed(t, text)), io.NopCloser(nil)))(t)
	must.Get(io.ReadFull(u, make([]byte, 10)))(t)
	must.Do(t, u.Close())
	ahead := 0
	for p := range u.pieces {
		ahead += len(p.bytes)
	}
	if ahead >= len(text)/2 {
		t.Errorf("%d bytes were unpacked ahead", ahead)
	}
}

// Zeros after a member end the file, as gzip has it. Other bytes there are an error.
func TestZerosAfterPackedContentEndIt(t *testing.T) {
	text := bytes.Repeat([]byte("some text\n"), 20_000)
	file := packed(t, text)
	for _, c := range []struct {
		name  string
		after []byte
		valid bool
	}{
		{"one zero", make([]byte, 1), true},
		{"a block of zeros", make([]byte, 10_240), true},
		{"more zeros than a buffer", make([]byte, 300_000), true},
		{"text", []byte("x"), false},
		{"half a magic number", []byte("\x1f"), false},
		{"zeros and text", append(make([]byte, 5000), 'x'), false},
		{"zeros and another member", append(make([]byte, 512), packed(t, text)...), false},
	} {
		for _, in := range []io.Reader{bytes.NewReader(append(bytes.Clone(file), c.after...)),
			iotest.HalfReader(bytes.NewReader(append(bytes.Clone(file), c.after...)))} {
			got, err := unpackAll(in)
			must.Equal(t, got, text, c.name, err)
			must.Equal(t, err == nil, c.valid, c.name, err)
			if !c.valid && !IsBadPack(err) {
				t.Errorf("%s: %v is not the error of a damaged file", c.name, err)
			}
		}
	}
}
