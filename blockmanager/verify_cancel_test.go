package blockmanager

import (
	"context"
	"testing"

	"github.com/oribi-db/oribi/block"
	"github.com/oribi-db/oribi/internal/must"
)

func TestVerifyEndsAtTheNextBlockOnceItsContextIsCanceled(t *testing.T) {
	m := openWriterOn(t, testOptions(nil))
	defer m.Close()
	for range 5 {
		add(t, m, []byte("a block"))
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	checked := 0
	err := m.Verify(ctx, func(string, int64, block.ID, string) {}, func(int64) {
		checked++
		cancel()
	})
	must.Fail(t, err, context.Canceled)
	must.Equal(t, checked, 1, "blocks checked")
}
