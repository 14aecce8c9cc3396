package oribi

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/oribi-db/oribi/internal/conflict"
	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/internal/txmemory"
	"github.com/oribi-db/oribi/mvcc"
	"github.com/oribi-db/oribi/scan"
)

var (
	// errTxConflict is the cause of an ErrConflict of a transaction.
	errTxConflict = fmt.Errorf("changed by another writer since the transaction began: %w", fault.ErrConflict)
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
		sc.addExpiry()
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
			return ts, nil
		case errors.Is(err, fault.ErrRow):
			// The row was refused in a state that is newer than what the transaction has seen.
			if changed := tx.validate(); changed != nil {
				err = callErr("commit", changed)
			}
		}
		if !errors.Is(err, errRecheck) {
			return 0, err
		}
	}
}

// validate returns an error if what the transaction has read was changed, as far as it can tell
// before the commit: the rest, of write batches that come in between, is left to the commit.
func (tx *Tx) validate() error {
	s := tx.store
	if tx.until < mvcc.Max {
		if now, err := s.core.Clock.Now(); err != nil || tx.until <= now {
			return cmp.Or(err, errTxExpired)
		}
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

// Update runs fn in a transaction and commits it. If the commit conflicts, Update waits for a short
// time and runs fn again, in a new transaction, until ctx is canceled. fn must not have effects
// that a second run would repeat. If fn returns an error or panics, nothing is changed.
//
// Errors: that of fn; those of Begin and Tx.Commit, except ErrConflict. If ctx ends after a
// conflict, the error wraps both.
func (s *Store) Update(ctx context.Context, fn func(*Tx) error, opts ...CommitOption) error {
	for attempt := 0; ; attempt++ {
		err := s.update(ctx, fn, opts)
		if !errors.Is(err, errTxConflict) && !errors.Is(err, txmemory.ErrGivesWay) {
			return err
		}
		select {
		case <-ctx.Done():
			return callErr("", fmt.Errorf("%w: %w", ctx.Err(), err))
		case <-time.After(retryDelay(attempt)):
		}
	}
}

func (s *Store) update(ctx context.Context, fn func(*Tx) error, opts []CommitOption) error {
	tx, err := s.Begin(ctx)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	if err := fn(tx); err != nil {
		return err
	}
	_, err = tx.Commit(opts...)
	return err
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
