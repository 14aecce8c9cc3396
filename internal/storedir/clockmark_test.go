package storedir

import (
	"io"
	"strings"
	"testing"

	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/mvcc"
	"github.com/oribi-db/oribi/vfs"
	"github.com/oribi-db/oribi/vfs/faultfs"
)

// A mark is read only if it is whole: another process may be writing it.
func TestMarkIsReadWhole(t *testing.T) {
	const ts = mvcc.Timestamp(7353474760878567423)
	text := appendMark([]byte("pid 4711 since 2026-11-28T02:00:00Z\n"), ts)
	must.Equal(t, decodeMark(text), ts, string(text))
	for n := range text {
		must.Equal(t, decodeMark(text[:n]), 0, string(text[:n]))
		torn := append([]byte{}, text...)
		if torn[n] ^= 1; decodeMark(torn) != 0 && n > 36 { // the first line may be any
			t.Errorf("%q is %d", torn, decodeMark(torn))
		}
	}
	if got := appendMark(nil, 0); len(got) != 0 {
		t.Errorf("no mark is %q", got)
	}
}

// A LOCK that is being written is read again.
func TestMarkIsReadAgain(t *testing.T) {
	mem := vfs.NewMem()
	dir := testDir(mem)
	writer := must.Get(dir.Lock(false))(t)
	must.Do(t, dir.WriteInstance(&Instance{BlockSize: minBlockSize}))
	must.Do(t, writer.LockInstance())
	must.Do(t, must.Err(writer.WriteOwner()))
	must.Do(t, writer.Mark(42))
	view := faultfs.New(mem)
	for failures, want := range map[int]mvcc.Timestamp{0: 42, markTries - 1: 42, markTries: 0} {
		view.Watch(func(c faultfs.Call) error {
			if c.Op == faultfs.Open && strings.HasSuffix(c.Name, LockName) && failures > 0 {
				failures--
				return io.ErrUnexpectedEOF
			}
			return nil
		})
		must.Equal(t, testDir(view).FinalUpTo(1<<40), want, "the mark")
	}
}
