package codec

import (
	"bytes"
	"testing"

	"github.com/klauspost/compress/zstd"

	"github.com/oribi-db/oribi/internal/must"
)

// TestZstdFramesHaveTheirSize writes frames of which the SDK asks the size of their content.
func TestZstdFramesHaveTheirSize(t *testing.T) {
	c := must.Get(NewCompressor(Zstd, 1))(t)
	for _, n := range []int{0, 1, 200, 255, 256, 70000, 3 << 20} {
		b := must.Get(c.Compress(bytes.Repeat([]byte("ab"), n)[:n]))(t)
		var h zstd.Header
		if err := h.Decode(b); err != nil || !h.HasFCS || h.FrameContentSize != uint64(n) {
			t.Errorf("%d bytes: %v, size %d (%v)", n, err, h.FrameContentSize, h.HasFCS)
		}
	}
}
