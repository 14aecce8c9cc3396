package harness

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"syscall"
	"time"
)

// errFull ends a run: on a full disk all other peers would fail too, or wait forever for space.
var errFull = errors.New("the disk is full")

const (
	leastFree = 64 << 20 // bytes; below it the disk is full
	lookEvery = time.Second
)

// full reports whether an error means that the disk is full. The error may come from another
// process as mere text.
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

// watchSpace cancels a run when the disk of dir is almost full.
func watchSpace(ctx context.Context, dir string, cancel context.CancelCauseFunc) {
	t := time.NewTicker(lookEvery)
	defer t.Stop()
	for {
		if free, known := freeBytes(dir); known && free < leastFree {
			cancel(fmt.Errorf("%w: %d MiB left at %s", errFull, free>>20, dir))
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-t.C:
		}
	}
}
