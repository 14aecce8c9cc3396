package oribi

import "context"

// Refresh moves a follower to the newest state of the store: every write batch whose Commit had
// returned when Refresh was called, and perhaps later ones. Its cost depends on what has changed.
// Reads that run, and open snapshots, keep the state that they have. Tables stay valid; those that
// the writer has dropped return ErrNoTable.
//
// In a store that was not opened with Options.Follow, Refresh does nothing: it always sees the
// newest state, or, opened read-only, there is no other. Errors: ErrLocked if a writer changes the
// store faster than it can be read, within five seconds; ErrCorrupt; ErrClosed; ctx.Err(). After an
// error the follower has the state from before.
func (s *Store) Refresh(ctx context.Context) error { return s.core.Refresh(ctx) }

// restarts is store.Restarts for a read of a table with options.
func restarts[O option](ctx context.Context, t *Table, opts []O, err error, tries int) bool {
	return t.store.core.Follows() && t.store.core.Restarts(ctx, collect(opts).asOf, err, tries)
}

// Wait returns when a follower would find something new by Refresh, or may. It looks at the files
// periodically: the writer copies small batches into mapped memory, of which the system tells
// nobody.
//
// In a store that was not opened with Options.Follow, Wait waits for the next write batch to become
// visible. Errors: ctx.Err(); ErrPoisoned; ErrClosed.
func (s *Store) Wait(ctx context.Context) error { return s.core.Wait(ctx) }
