package oribi

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/oribi-db/oribi/internal/conflict"
	"github.com/oribi-db/oribi/internal/exclusive"
	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/internal/tablet"
	"github.com/oribi-db/oribi/internal/txmemory"
	"github.com/oribi-db/oribi/mvcc"
	"github.com/oribi-db/oribi/scan"
)

var (
	// errTxExpired is the cause if a row that it has read has expired.
	errTxExpired = fmt.Errorf("a row that was read has expired since: %w", errTxConflict)
	// errRecheck ends an attempt to commit: there are changes that have to be looked at.
	errRecheck = errors.New("what was read may have changed")
)

// Commit ends the transaction and makes its writes visible at one timestamp, which it returns; that
// of a transaction without writes is Timestamp. Without NoSync, they are durable when it returns.
// After an error nothing has changed, except as Batch.Commit says.
//
// Errors: ErrConflict if what the transaction has read was changed by another writer since it
// began; ErrTxEnded; the errors of Batch.Commit.
func (tx *Tx) Commit(opts ...CommitOption) (mvcc.Timestamp, error) {
	if tx.ended {
		return 0, callErr("", ErrTxEnded)
	}
	defer tx.Rollback()
	if tx.batch.Len() == 0 {
		return tx.Timestamp(), nil
	}
	for _, sc := range tx.scans {
		sc.settle()
	}
	s := tx.store
	if err := s.enterWriting(); err != nil {
		return 0, err
	}
	defer s.leave()
	if !tx.reads.Empty() || tx.until < mvcc.Max {
		tx.batch.check = tx.check
	}
	for {
		if err := tx.validate(); err != nil {
			return 0, callErr("commit", err)
		}
		ts, err := tx.batch.Commit(tx.ctx, opts...)
		switch {
		case err == nil:
			tx.results, tx.assigned = tx.batch.results, tx.batch.assigned
			return ts, nil
		case errors.Is(err, fault.ErrRow):
			// The row was refused in a state that is newer than what the transaction has seen.
			changed := tx.validate()
			if changed == nil && errors.Is(err, fault.ErrNotFound) { // of an update with operands, see decide
				changed = errTxConflict
			}
			if changed != nil {
				err = callErr("commit", changed)
			}
		}
		if !errors.Is(err, errRecheck) {
			return 0, err
		}
	}
}

// Results returns the results of the operands after Commit, by the positions of their rows, as Batch.Results does.
// Without a successful Commit it returns none. The position of a row is the number of rows that the
// transaction has written before it: refused ones do not count, nor do those that RollbackTo has undone, nor
// a DeleteRange. Sums that follow one another on a row may be carried out as one, which has the position of
// the last of them, and the result after it.
//
// Store.Update commits the last of the transactions that it passes to its function, so the function keeps
// its argument in a variable for the caller.
func (tx *Tx) Results() []Result { return tx.results.all() }

// Assigned returns the values that Commit assigned to inserted rows, as Batch.Assigned does, by the
// positions that Results describes.
func (tx *Tx) Assigned() []Assigned { return tx.assigned }

// validate returns an error if what the transaction has read was changed, as far as it can tell
// before the commit: the rest, of write batches that come in between, is left to the commit.
func (tx *Tx) validate() error {
	s := tx.store
	for _, c := range tx.cursors {
		c.tx.catchUp()
	}
	if tx.until < mvcc.Max {
		if now, err := s.core.Clock.Now(); err != nil || tx.until <= now {
			return cmp.Or(err, errTxExpired)
		}
	}
	if err := tx.haveIndexes(); err != nil {
		return err
	}
	for !tx.reads.Empty() {
		changes := s.core.Writer.Since(tx.checked)
		err := tx.unchanged(changes)
		switch {
		case err == nil:
			tx.checked = changes.Newest(tx.checked)
			return nil
		case err != errRecheck:
			return err
		}
		if err := tx.compare(changes); err != nil {
			return err
		}
	}
	return nil
}

// check returns errRecheck if what the transaction has read may have changed between validate and
// ts. It is called in the critical section of the commit, so it does not look through many changes.
func (tx *Tx) check(ts mvcc.Timestamp) error {
	if tx.until <= ts {
		return errTxExpired
	}
	if err := tx.haveIndexes(); err != nil {
		return err
	}
	changes := tx.store.core.Writer.SinceLocked(tx.checked)
	if changes.Len() > fewChanges || changes.Complete > tx.checked || len(changes.Unknown(&tx.reads)) > 0 {
		return errRecheck
	}
	if _, ok := changes.In(&tx.reads); ok {
		return errRecheck // validate finds it again
	}
	return nil
}

const fewChanges = 1000

// unchanged returns an error if one of the changes is of a key that the transaction has read, and
// errRecheck if the changes do not tell.
func (tx *Tx) unchanged(changes conflict.Changes) error {
	if ch, ok := changes.In(&tx.reads); ok {
		for _, t := range tx.store.sortedTables() {
			if t.tab.Number == ch.Table {
				return fmt.Errorf("table %q: key %s: %w", t.tab.Name(), t.tab.KeyText(ch.Key), errTxConflict)
			}
		}
		for _, x := range tx.indexes {
			if x.entries.Number == ch.Table {
				return x.changed()
			}
		}
		return errTxConflict
	}
	if changes.Complete > tx.checked || len(changes.Unknown(&tx.reads)) > 0 {
		return errRecheck
	}
	return nil
}

// compare compares the reads of the transaction with a later state, the state of the newest of the
// changes whose keys are not known.
func (tx *Tx) compare(changes conflict.Changes) error {
	s := tx.store
	upTo := max(tx.checked, changes.Complete)
	for _, ts := range changes.Unknown(&tx.reads) {
		upTo = max(upTo, ts)
	}
	if err := s.core.Await(tx.ctx, upTo); err != nil {
		return err
	}
	for _, t := range s.sortedTables() {
		for _, r := range tx.reads.Ranges(t.tab.Number) {
			err := s.interrupted(tx.ctx)
			if err == nil {
				err = tx.compareRange(t, r, upTo)
			}
			if err != nil {
				return err
			}
		}
	}
	for _, x := range tx.indexes {
		if err := tx.compareIndex(x, upTo); err != nil {
			return err
		}
	}
	tx.checked = upTo
	return nil
}

// compareRange returns an error if a row of a range differs between the transaction's state and a
// later one.
func (tx *Tx) compareRange(t *Table, r conflict.Range, upTo mvcc.Timestamp) error {
	var o readOptions
	At(tx.snapshot).apply(&o)
	v, err := t.view(tx.ctx, &o, true)
	if err != nil {
		return err
	}
	defer v.unpin()
	d := v.Diff(scan.Options{Columns: v.All, Lower: r.Lower, Upper: r.Upper}, mvcc.AsOf(upTo))
	defer d.Close()
	if d.Next() {
		return fmt.Errorf("table %q: key %s: %w", t.tab.Name(), t.tab.KeyText(d.Key()), errTxConflict)
	}
	return d.Close()
}

// compareIndex is compareRange for all entries of an index that the transaction has read.
func (tx *Tx) compareIndex(x readIndex, upTo mvcc.Timestamp) error {
	var o readOptions
	At(tx.snapshot).apply(&o)
	v, err := x.table.view(tx.ctx, &o, true)
	if err != nil {
		return err
	}
	defer v.Release()
	for _, r := range tx.reads.Ranges(x.entries.Number) {
		if err := tx.store.interrupted(tx.ctx); err != nil {
			return err
		}
		var entries tablet.View
		if err := x.table.entriesView(&entries, &v, &o, x.entries); err != nil {
			return err
		}
		d := entries.Diff(scan.Options{Columns: entries.All, Lower: r.Lower, Upper: r.Upper}, mvcc.AsOf(upTo))
		changed := d.Next()
		if err := d.Close(); err != nil {
			return err
		}
		if changed {
			return x.changed()
		}
	}
	return nil
}

// haveIndexes returns an error if an index of which the transaction has read entries was dropped: write batches
// no longer change it.
func (tx *Tx) haveIndexes() error {
	for _, x := range tx.indexes {
		if !slices.Contains(x.table.tab.Indexes(), x.entries.Tablet) {
			return fmt.Errorf("table %q: index %q was dropped: %w", x.table.tab.Name(), x.entries.Index().Name, errTxConflict)
		}
	}
	return nil
}

// changed returns the error of a transaction that has read entries of the index that have changed.
func (x readIndex) changed() error {
	return fmt.Errorf("table %q: index %q: an entry: %w", x.table.tab.Name(), x.entries.Index().Name, errTxConflict)
}

// exclusiveAfter is the number of conflicts after which an attempt of Update is exclusive.
const exclusiveAfter = 3

// Update runs fn in a transaction and commits it. If the commit conflicts, Update waits for a short
// time and runs fn again, in a new transaction, until ctx is canceled. fn must not have effects
// that a second run would repeat. If fn returns an error or panics, nothing is changed.
//
// After three conflicts, or at once with Exclusive, an attempt is exclusive: while it runs, the
// write batches that would change a table from which it has read wait until it has ended. So it does
// not conflict, except with ingests, with a row that expires, and with a caller that it waits for.
// Exclusive attempts run one after another. Reads and flushes go on, and so do writes to tables that
// fn only writes to. If fn does nothing with its transaction for a second, others go on: fn may call
// Update, or wait for another goroutine that writes, but loses time by it.
//
// Errors: that of fn; those of Begin and Tx.Commit, except ErrConflict. If ctx ends after a
// conflict, the error wraps both.
func (s *Store) Update(ctx context.Context, fn func(*Tx) error, opts ...UpdateOption) error {
	var o updateOptions
	for _, opt := range opts {
		if opt != nil {
			o = opt.update(o)
		}
	}
	conflicts := 0
	for attempt := 0; ; attempt++ {
		err := s.update(ctx, fn, o.commit, o.exclusive || conflicts >= exclusiveAfter)
		switch {
		case errors.Is(err, errTxConflict):
			conflicts++
		case !errors.Is(err, txmemory.ErrGivesWay):
			return err
		}
		select {
		case <-ctx.Done():
			return callErr("", fmt.Errorf("%w: %w", ctx.Err(), err))
		case <-time.After(retryDelay(attempt)):
		}
	}
}

// update is one attempt.
func (s *Store) update(ctx context.Context, fn func(*Tx) error, opts []CommitOption, alone bool) error {
	var hold *exclusive.Hold
	if alone && s.core.Writer != nil {
		var err error
		if hold, err = s.core.Exclusive.Begin(ctx); err != nil {
			return callErr("", err)
		}
	}
	tx, err := s.begin(ctx, hold)
	if err != nil {
		if hold != nil {
			hold.End()
		}
		return err
	}
	defer tx.Rollback()
	tx.batch.hold, tx.advance = hold, tx.toNewest
	if err := fn(tx); err != nil {
		return err
	}
	_, err = tx.Commit(opts...)
	return err
}

// toNewest waits for the writers that are in a table, after later ones were held off, and makes the
// transaction read the newest state. What it has read before is still so in that state, since the
// writers of those tables are held off: toNewest returns an error if it is not, because a hold has
// ended early, or a row has expired.
func (tx *Tx) toNewest(t *Table) error {
	s := tx.store
	if err := s.enterWriting(); err != nil {
		return err
	}
	defer s.leave()
	w, err := t.tab.PrepareAll()
	if err != nil {
		return err
	}
	w.Release()
	if err := s.core.WaitLSN(tx.ctx, s.core.LastLSN()); err != nil {
		return err
	}
	newest, err := s.Snapshot(tx.ctx, KeepHistory())
	if err == nil {
		err = tx.validate() // after the newest state is fixed: it finds all changes up to there
	}
	if err != nil {
		if newest != nil {
			newest.Close()
		}
		return err
	}
	newest.SetName(txName)
	tx.snapshot.Close()
	tx.snapshot, tx.checked = newest, newest.pin.TS
	tx.turns++
	tx.writes++
	return nil
}

// The delay before a transaction is tried again is random and doubles, between these bounds.
const (
	firstRetry = 50 * time.Microsecond
	lastRetry  = 50 * time.Millisecond
)

func retryDelay(attempt int) time.Duration {
	bound := min(firstRetry<<min(attempt, 16), lastRetry)
	return rand.N(bound) + 1
}
