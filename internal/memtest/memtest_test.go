package memtest

import (
	"bytes"
	"compress/gzip"
	"io"
	"testing"

	"github.com/oribi-db/oribi/internal/must"
)

var kept []byte

func TestAllocated(t *testing.T) {
	const size = 8 << 20
	if n := Allocated(func() { kept = make([]byte, size) }); n < size || n > size+size/4 {
		t.Errorf("%d bytes, want about %d", n, size)
	}
	if n := Allocated(func() {}); n > size/8 {
		t.Errorf("%d bytes without allocations", n)
	}
}

func TestGzipZeros(t *testing.T) {
	for _, n := range []int{0, 1, 1 << 20, 3<<20 + 5} {
		r := must.Get(gzip.NewReader(bytes.NewReader(GzipZeros(n))))(t)
		b, err := io.ReadAll(r)
		if err != nil || !bytes.Equal(b, make([]byte, n)) {
			t.Errorf("%d bytes, %v, want %d zeros", len(b), err, n)
		}
	}
}
