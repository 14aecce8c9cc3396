package oribi

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/oribi-db/oribi/blockmanager"
	"github.com/oribi-db/oribi/internal/budget"
	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/internal/tablet"
)

// Space that is kept free on the disk. Each part is for operations that must still work when the
// part above it is used up:
//
//	free bytes on the disk
//	├ rowReserve ──────────── 16 MiB: below it a write batch gets ErrNoSpace unless it only deletes
//	├ blockmanager.KeepFree ─ deletes, flushes and compactions stop: what is left is for metadata commits
//	0                         by which dropped tables and rewritten rowsets give their space back
//
// Memory counts as used: it is flushed some day.
const (
	rowReserve = 16 << 20
	spareShare = 8       // part of what is above the reserve that may be written before the disk is asked again
	spareMost  = 4 << 20 // and the most
)

// makeSpace refuses a write batch for which the disk has no room.
func (s *Store) makeSpace(ctx context.Context, b *Batch) error {
	if s.spare.Add(-b.bytes) >= 0 {
		return nil
	}
	keep := int64(rowReserve)
	if b.deletesOnly() {
		keep = blockmanager.KeepFree
	}
	free, ok := s.hasSpace(b.bytes, keep)
	if ok {
		return nil
	}
	// A flush takes less space in files than in the log, which is trimmed afterwards.
	for _, t := range s.sortedTables() {
		if _, err := t.tab.Flush(ctx); err != nil && !errors.Is(err, fault.ErrNoTable) && !isNoSpace(err) {
			return err
		}
	}
	s.appendMu.Lock()
	err := s.trimLog()
	s.appendMu.Unlock()
	if err != nil {
		return err
	}
	if free, ok = s.hasSpace(b.bytes, keep); ok {
		return nil
	}
	return fmt.Errorf("oribi: %w", errNoSpace(free, keep))
}

func errNoSpace(free, keep int64) error {
	return fmt.Errorf("%d bytes are free on the disk, %d are kept for what gives space back: %w", free, keep, fault.ErrNoSpace)
}

// hasSpace asks the disk, and allows some bytes more before it is asked again.
func (s *Store) hasSpace(bytes, keep int64) (free int64, ok bool) {
	free = s.opts.FS.FreeBytes(s.dir)
	if free < 0 { // unknown
		s.spare.Store(spareMost)
		return free, true
	}
	held := s.budget.UsedBy(budget.MemRowSet) + s.budget.UsedBy(budget.Delta)
	above := free - rowReserve - held - 2*bytes
	s.spare.Store(max(0, min(above/spareShare, spareMost)))
	return free, free >= keep+2*bytes && (keep < rowReserve || above >= 0)
}

// deletesOnly reports whether the write batch adds no rows.
func (b *Batch) deletesOnly() bool {
	for _, p := range b.parts {
		for i := range p.ops {
			if ask := p.ops[i].Kind; ask != tablet.Delete && ask != tablet.DeleteIgnore {
				return false
			}
		}
	}
	return true
}

// reclaim returns, at the end of a call, the space of the blocks that the call has dropped to the
// file system. The call's own commit could not, because the call, or a table, had them open. Blocks
// that readers use are reclaimed when these are done, in an idle second. A failure is not one of the
// call, which is done and durable; a failed write poisons the store.
func (s *Store) reclaim(ctx context.Context) {
	s.background.confirm()
	if s.poisoned() == nil {
		s.rewriteSparse(ctx)
	}
	s.background.confirm() // of what was copied
}

// rewriteSparse empties containers in which little is left, so that their space goes back to the
// disk where holes cannot be punched, and their files go everywhere.
func (s *Store) rewriteSparse(ctx context.Context) {
	for ctx.Err() == nil {
		n, err := s.blocks.Rewrite(ctx)
		if err != nil && ctx.Err() == nil && !errors.Is(err, fault.ErrClosed) {
			s.opts.Logger.Error("rewriting a sparse container failed", slog.Any("err", err))
		}
		if n == 0 && !errors.Is(err, fault.ErrCorrupt) { // a damaged one is left alone from then on: others follow
			return
		}
	}
}
