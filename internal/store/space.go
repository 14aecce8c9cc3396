package store

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/oribi-db/oribi/blockmanager"
	"github.com/oribi-db/oribi/internal/budget"
	"github.com/oribi-db/oribi/internal/fault"
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

// Spare reports whether a write batch of so many bytes may be committed without another look at the
// disk's free space. If not, MakeSpace looks.
func (s *Store) Spare(bytes int64) bool { return s.spare.Add(-bytes) >= 0 }

// MakeSpace makes space for a write batch of so many bytes. Errors: ErrNoSpace; the errors of a
// flush.
func (s *Store) MakeSpace(ctx context.Context, bytes int64, deletesOnly bool) error {
	keep := int64(rowReserve)
	if deletesOnly {
		keep = blockmanager.KeepFree
		if err := s.ClaimReserve(); err != nil {
			return err
		}
	}
	if err := s.hasSpace(bytes, keep); err == nil {
		return nil
	}
	// A flush takes less space in files than in the log, which is trimmed afterwards.
	if _, err := s.Writer.FlushAll(ctx, s.Tablets()); err != nil && !isNoSpace(err) {
		return err
	}
	if err := s.Writer.Exclusive(s.Writer.TrimLog); err != nil {
		return err
	}
	return s.hasSpace(bytes, keep)
}

// ClaimReserve removes RESERVE, for operations that free space.
func (s *Store) ClaimReserve() error { return s.reserve.Claim() }

// HasSpace returns ErrNoSpace if the disk has no room for rows.
func (s *Store) HasSpace() error { return s.hasSpace(0, rowReserve) }

// hasSpace asks the file system for its free space, and allows some more bytes before it asks
// again. It returns ErrNoSpace if less than keep would be left.
func (s *Store) hasSpace(bytes, keep int64) error {
	free := s.Dir.FreeBytes()
	if free < 0 { // unknown
		s.spare.Store(spareMost)
		return nil
	}
	free += s.reserve.Bytes()
	held := s.Budget.UsedBy(budget.MemRowSet) + s.Budget.UsedBy(budget.Delta)
	above := free - rowReserve - held - 2*bytes
	s.spare.Store(max(0, min(above/spareShare, spareMost)))
	if free >= keep+2*bytes && (keep < rowReserve || above >= 0) {
		return nil
	}
	return fmt.Errorf("the disk has %d bytes free, of which the store keeps %d for operations that free space: %w",
		free, keep, fault.ErrNoSpace)
}

// Reclaim runs at the end of a call and returns the space of the blocks that the call has dropped
// to the file system. The commit of the call could not, because the call, or a table, had them
// open. Blocks that readers use are reclaimed after these end, when the store is idle. An error
// here is not an error of the call, which is complete and durable; a failed write poisons the
// store.
func (s *Store) Reclaim(ctx context.Context) {
	s.Writer.Confirm()
	if s.Poisoned() == nil {
		s.rewriteSparse(ctx)
	}
	s.Writer.Confirm() // of what was copied
}

// rewriteSparse moves the blocks out of containers in which few are left. Where holes cannot be
// punched, this returns their space to the disk; everywhere, it removes their files.
func (s *Store) rewriteSparse(ctx context.Context) {
	for ctx.Err() == nil {
		n, err := s.Blocks.Rewrite(ctx)
		if err != nil && ctx.Err() == nil && !errors.Is(err, fault.ErrClosed) {
			s.Options.Logger.Error("rewriting a sparse container failed", slog.Any("err", err))
		}
		if n == 0 && !errors.Is(err, fault.ErrCorrupt) { // from now on a damaged one is skipped: others follow
			return
		}
	}
}
