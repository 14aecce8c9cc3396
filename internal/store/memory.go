package store

import (
	"context"
	"errors"
	"slices"

	"github.com/oribi-db/oribi/internal/budget"
	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/internal/tablet"
)

// OverLimit reports whether memory or log should be freed, whatever the sizes of single tables.
func (w *Writer) OverLimit() bool {
	mem, soft := w.memoryPressure()
	return mem > soft || w.core.Budget.UsedBy(budget.Delta) >= w.deltaLimit() || w.Log.Bytes() >= w.core.LogTarget()
}

// softShare is the share of the memory for rows and changes above which they are flushed before
// anything else is done, in percent. Source: tablet spec §17.
const softShare = 60

// writersMemory returns the bytes for which writers wait: all that are counted, without those of
// scans and compactions, since a flush frees none of them.
func (w *Writer) writersMemory() int64 {
	return w.core.Budget.Used() - w.core.Budget.UsedBy(budget.Scan) - w.core.Budget.UsedBy(budget.Merge)
}

// memoryPressure returns the bytes of rows and changes in memory, and above how many of them memory
// is short: a share of what they may have before writers wait, see MakeRoom.
func (w *Writer) memoryPressure() (mem, soft int64) {
	mem = w.core.Budget.UsedBy(budget.MemRowSet) + w.core.Budget.UsedBy(budget.Delta)
	return mem, max(0, w.core.Options.MemoryLimit/2-(w.writersMemory()-mem)) / 100 * softShare
}

// deltaLimit bounds the delta mem stores of all tables together.
func (w *Writer) deltaLimit() int64 { return min(maxDeltaBytes, w.core.Options.MemoryLimit/8) }

// maxDeltaBytes bounds the delta mem stores of all tables together, whatever the memory limit.
const maxDeltaBytes = 32 << 20

// Full reports whether a write batch of so many bytes has to wait for memory.
func (w *Writer) Full(bytes int64) bool {
	return w.writersMemory()+bytes > w.core.Options.MemoryLimit/2
}

// MakeRoom flushes tables while memory is full for a write batch of so many bytes: the batch's own
// tables first, then the others. So a writer waits for the flush that its batch needs, even if no
// background work runs. Errors: the errors of a flush; ctx.Err().
func (w *Writer) MakeRoom(ctx context.Context, bytes int64, own []*tablet.Tablet) error {
	over := func() bool { return w.Full(bytes) }
	flush := func(t *tablet.Tablet) error {
		// Other writers may have waited for the same flush, which is usually enough for all of
		// them.
		err := t.FlushIf(ctx, over)
		if errors.Is(err, fault.ErrNoTable) {
			return nil
		}
		return err
	}
	all := w.core.Tablets()
	for _, t := range slices.Concat(own, all) {
		if !over() {
			return nil
		}
		if err := flush(t); err != nil {
			return err
		}
	}
	// Only changes of rowsets that are being compacted are left.
	for _, t := range all {
		if err := t.FlushCompacted(ctx, over); err != nil && !errors.Is(err, fault.ErrNoTable) {
			return err
		}
	}
	return nil
}
