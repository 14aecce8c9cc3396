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
//	├ rowReserve ──────────── 16 MiB, with RESERVE: below it a write batch gets ErrNoSpace unless it only deletes
//	├ blockmanager.KeepFree ─ deletes, flushes and compactions stop: what is left is for metadata commits
//	0                         that free the space of dropped tables and rewritten rowsets
//
// Rows in memory count as used space, since they will be flushed.
const (
	rowReserve = 16 << 20
	spareShare = 8       // 1/spareShare of the space above the reserve may be written before the next check
	spareMost  = 4 << 20 // but at most so many bytes
)

// makeSpace refuses a write batch for which the disk has no room.
func (s *Store) makeSpace(ctx context.Context, b *Batch) error {
	if s.spare.Add(-b.bytes) >= 0 {
		return nil
	}
	keep := int64(rowReserve)
	if b.deletesOnly() {
		keep = blockmanager.KeepFree
		if err := s.reserve.Claim(); err != nil {
			return err
		}
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
	if err := s.writer.Exclusive(s.writer.TrimLog); err != nil {
		return err
	}
	if free, ok = s.hasSpace(b.bytes, keep); ok {
		return nil
	}
	return fmt.Errorf("oribi: %w", errNoSpace(free, keep))
}

func errNoSpace(free, keep int64) error {
	return fmt.Errorf("the disk has %d bytes free, of which the store keeps %d for operations that free space: %w",
		free, keep, fault.ErrNoSpace)
}

// hasSpace asks the file system for its free space, and allows some more bytes before it asks
// again.
func (s *Store) hasSpace(bytes, keep int64) (free int64, ok bool) {
	free = s.core.Dir.FreeBytes()
	if free < 0 { // unknown
		s.spare.Store(spareMost)
		return free, true
	}
	free += s.reserve.Bytes()
	held := s.core.Budget.UsedBy(budget.MemRowSet) + s.core.Budget.UsedBy(budget.Delta)
	above := free - rowReserve - held - 2*bytes
	s.spare.Store(max(0, min(above/spareShare, spareMost)))
	return free, free >= keep+2*bytes && (keep < rowReserve || above >= 0)
}

// deletesOnly reports whether the write batch adds no rows.
func (b *Batch) deletesOnly() bool {
	for _, p := range b.tables {
		for i := range p.ops {
			if kind := p.ops[i].Kind; kind != tablet.Delete && kind != tablet.DeleteIgnore {
				return false
			}
		}
	}
	return true
}

// reclaim runs at the end of a call and returns the space of the blocks that the call has dropped
// to the file system. The commit of the call could not, because the call, or a table, had them
// open. Blocks that readers use are reclaimed after these end, when the store is idle. An error
// here is not an error of the call, which is complete and durable; a failed write poisons the
// store.
func (s *Store) reclaim(ctx context.Context) {
	s.writer.Confirm()
	if s.poisoned() == nil {
		s.rewriteSparse(ctx)
	}
	s.writer.Confirm() // of what was copied
}

// rewriteSparse moves the blocks out of containers in which few are left. Where holes cannot be
// punched, this returns their space to the disk; everywhere, it removes their files.
func (s *Store) rewriteSparse(ctx context.Context) {
	for ctx.Err() == nil {
		n, err := s.core.Blocks.Rewrite(ctx)
		if err != nil && ctx.Err() == nil && !errors.Is(err, fault.ErrClosed) {
			s.opts.Logger.Error("rewriting a sparse container failed", slog.Any("err", err))
		}
		if n == 0 && !errors.Is(err, fault.ErrCorrupt) { // from now on a damaged one is skipped: others follow
			return
		}
	}
}
