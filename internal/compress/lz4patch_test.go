package compress

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/internal/seedtest"
)

// A patched block unpacks to the patched bytes, and a block that LZ4Patch refuses is unchanged.
func TestLZ4PatchChangesTheOutput(t *testing.T) {
	r := seedtest.Rand(t)
	patched := 0
	for range 2000 {
		src := patchable(r)
		block := LZ4CompressChunk(nil, src)
		before := bytes.Clone(block)
		at, b := r.IntN(20), []byte{byte(r.IntN(4)), byte(r.IntN(4)), 0, 0}
		ok := LZ4Patch(block, at, b)
		want := bytes.Clone(src)
		if ok {
			patched++
			copy(want[at:], b)
		} else if !bytes.Equal(block, before) {
			t.Fatalf("%x: refused, but changed", src)
		}
		got := make([]byte, len(want))
		must.Do(t, LZ4DecompressExact(got, block), b, at, src)
		must.Equal(t, got, want, b, at, src)
	}
	if patched < 200 || patched > 1800 {
		t.Errorf("%d of 2000 blocks patched", patched)
	}
}

// patchable returns some bytes, of which a match may copy the first ones.
func patchable(r *rand.Rand) []byte {
	src := []byte{byte(r.IntN(4)), 0, 0, 0, byte(r.IntN(256)), byte(r.IntN(2)), 0, 0}
	for range 1 + r.IntN(10) {
		src = fmt.Appendf(src, "%d words", r.IntN(1000))
	}
	if r.IntN(3) == 0 {
		src = append(src, make([]byte, r.IntN(2)<<16)...)
		src = append(src, src[:16]...)
	}
	return append(src, "the last literals"...)
}

func TestLZ4PatchRefusesMalformedBlocks(t *testing.T) {
	block := LZ4CompressChunk(nil, []byte("literals literals literals literals and literals"))
	for n := range block {
		if cut := bytes.Clone(block[:n]); LZ4Patch(cut, 0, []byte{1}) || !bytes.Equal(cut, block[:n]) {
			t.Errorf("%d of %d bytes are patched", n, len(block))
		}
	}
}
