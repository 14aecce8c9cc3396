package arrowio

import (
	"bytes"
	"encoding/binary"
	"errors"
	"slices"
	"testing"

	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet/compress"
	"github.com/pierrec/lz4/v4"

	"github.com/oribi-db/oribi/internal/must"
)

// packedPages returns forms of a page, as writers store them, by the name of the form.
func packedPages(t *testing.T, text []byte) map[string]struct {
	codec compress.Compression
	data  []byte
} {
	t.Helper()
	c := &compress.Codecs
	encode := func(codec compress.Compression, text []byte) []byte {
		e := must.Get(compress.GetCodec(codec))(t)
		return slices.Clone(e.Encode(nil, text))
	}
	half := len(text) / 2
	block := func(text []byte) []byte { return encode(c.Lz4Raw, text) }
	size := func(n int) []byte { return binary.BigEndian.AppendUint32(nil, uint32(n)) }
	sized := func(b []byte) []byte { return append(size(len(b)), b...) }
	var frame bytes.Buffer
	w := lz4.NewWriter(&frame)
	must.Get(w.Write(text))(t)
	must.Do(t, w.Close())
	twice := func(codec compress.Compression) []byte {
		return slices.Concat(encode(codec, text[:half]), encode(codec, text[half:]))
	}
	return map[string]struct {
		codec compress.Compression
		data  []byte
	}{
		"none":                {c.Uncompressed, text},
		"snappy":              {c.Snappy, encode(c.Snappy, text)},
		"gzip":                {c.Gzip, encode(c.Gzip, text)},
		"gzip of two members": {c.Gzip, twice(c.Gzip)},
		"brotli":              {c.Brotli, encode(c.Brotli, text)},
		"zstd":                {c.Zstd, encode(c.Zstd, text)},
		"zstd of two frames":  {c.Zstd, twice(c.Zstd)},
		"lz4_raw":             {c.Lz4Raw, block(text)},
		"lz4 of Hadoop":       {c.Lz4, slices.Concat(size(len(text)), sized(block(text)))},
		"lz4 of Hadoop, two frames": {c.Lz4,
			slices.Concat(size(half), sized(block(text[:half])), size(len(text)-half), sized(block(text[half:])))},
		"lz4 of Hadoop, two blocks": {c.Lz4,
			slices.Concat(size(len(text)), sized(block(text[:half])), sized(block(text[half:])))},
		"lz4 without frame":     {c.Lz4, block(text)},
		"lz4 in a frame of LZ4": {c.Lz4, frame.Bytes()},
	}
}

// Pages are decompressed from all forms in which writers store them, only to the size that their
// headers have, and a form that is cut off is damage.
func TestPagesAreDecompressed(t *testing.T) {
	text := bytes.Repeat([]byte("a page of a column chunk; "), 300)
	buf := memory.NewResizableBuffer(checked(t))
	defer buf.Release()
	for name, form := range packedPages(t, text) {
		must.Equal(t, string(must.Get(decompressed(form.codec, buf, []byte("levels"), 6+len(text), form.data))(t)),
			"levels"+string(text), name)
		for _, n := range []int{len(text) - 1, len(text) + 1, 0, 1 << 24} {
			must.Fail(t, must.Err(decompressed(form.codec, buf, nil, n, form.data)), ErrCorrupt, name, n)
		}
		for n := range min(len(form.data), 200) {
			must.Fail(t, must.Err(decompressed(form.codec, buf, nil, len(text), form.data[:n])), ErrCorrupt, n, name)
		}
	}
}

// A page that claims more bytes than its codec can make of those in the file is refused before
// memory is allocated for them.
func TestSizesThatNoCodecReaches(t *testing.T) {
	mem := memory.NewCheckedAllocator(memory.NewGoAllocator())
	buf := memory.NewResizableBuffer(mem)
	for _, codec := range []compress.Compression{compress.Codecs.Snappy, compress.Codecs.Gzip, compress.Codecs.Lz4,
		compress.Codecs.Lz4Raw, compress.Codecs.Zstd} {
		if _, err := decompressed(codec, buf, nil, maxBuffer, make([]byte, 100)); !errors.Is(err, ErrCorrupt) ||
			mem.CurrentAlloc() > 0 {
			t.Errorf("%s: %d bytes are allocated: %v", codec, mem.CurrentAlloc(), err)
		}
	}
}
