package harness

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"syscall"
	"time"
)

// errFull ends a run: on a full disk every peer after the first would fail, or wait for ever until
// there is room.
var errFull = errors.New("the disk is full")

const (
	leastFree = 64 << 20 // bytes; less is full
	lookEvery = time.Second
)

// full tells whether an error, perhaps of another process and so no more than its text, says that
// the disk is full.
func full(err error) bool {
	if errors.Is(err, syscall.ENOSPC) {
		return true
	}
	text := strings.ToLower(err.Error())
	for _, words := range []string{syscall.ENOSPC.Error(), "no space left", "disk is full"} {
		if strings.Contains(text, words) {
			return true
		}
	}
	return false
}

// watchSpace ends a run, by cancel, when the disk of dir is all but full; until the run's end.
func watchSpace(ctx context.Context, dir string, cancel context.CancelCauseFunc) {
	t := time.NewTicker(lookEvery)
	defer t.Stop()
	for {
		if free, known := freeBytes(dir); known && free < leastFree {
			cancel(fmt.Errorf("%w: %d MiB are left at %s", errFull, free>>20, dir))
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-t.C:
		}
	}
}
