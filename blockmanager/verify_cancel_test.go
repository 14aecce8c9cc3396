package blockmanager

import (
	"context"
	"errors"
	"testing"

	"github.com/oribi-db/oribi/block"
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
	if !errors.Is(err, context.Canceled) || checked != 1 {
		t.Errorf("%d blocks checked, error %v", checked, err)
	}
}
