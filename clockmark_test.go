package oribi

import (
	"testing"

	"github.com/oribi-db/oribi/mvcc"
)

// A mark is read only if it is whole: another process may be writing it.
func TestMarkIsReadWhole(t *testing.T) {
	const ts = mvcc.Timestamp(7353474760878567423)
	text := appendMark([]byte("pid 4711 since 2026-11-28T02:00:00Z\n"), ts)
	if got := decodeMark(text); got != ts {
		t.Errorf("%q is %d, want %d", text, got, ts)
	}
	for n := range text {
		if got := decodeMark(text[:n]); got != 0 {
			t.Errorf("%q is %d", text[:n], got)
		}
		torn := append([]byte{}, text...)
		if torn[n] ^= 1; decodeMark(torn) != 0 && n > 36 { // the first line may be any
			t.Errorf("%q is %d", torn, decodeMark(torn))
		}
	}
	if got := appendMark(nil, 0); len(got) != 0 {
		t.Errorf("no mark is %q", got)
	}
}
