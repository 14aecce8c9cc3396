package carbondata

import (
	"bytes"
	"testing"

	"github.com/klauspost/compress/zstd"
)

// TestZstdFramesHaveTheirSize writes frames of which the SDK asks the size of their content.
func TestZstdFramesHaveTheirSize(t *testing.T) {
	c, err := newCompressor(nameZstd)
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range []int{0, 1, 200, 255, 256, 70000, 3 << 20} {
		b, err := c.compress(bytes.Repeat([]byte("ab"), n)[:n])
		if err != nil {
			t.Fatal(err)
		}
		var h zstd.Header
		if err := h.Decode(b); err != nil || !h.HasFCS || h.FrameContentSize != uint64(n) {
			t.Errorf("%d bytes: %v, size %d (%v)", n, err, h.FrameContentSize, h.HasFCS)
		}
	}
}
