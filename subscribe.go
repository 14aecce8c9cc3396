package oribi

import (
	"context"
	"fmt"
	"iter"
	"slices"

	"github.com/oribi-db/oribi/internal/conflict"
	"github.com/oribi-db/oribi/mvcc"
)

// FromStart is before every write batch: Subscribe begins with the first one, and AsOf reads the state
// in which tables were empty. Both work as long as the tables concerned have dropped no history, which
// is at least as long as they keep it. Then they return ErrTooOld, whose text has the first time that can
// be read.
const FromStart = mvcc.Min

// Subscribe yields the write batches with timestamps above from and up to until, in the order of
// timestamps: first those that were committed already, then each one when it becomes visible. It
// ends when all of them have been yielded; until must not be ahead of the clock, or be mvcc.Max for
// a subscription without an end. from may be FromStart. With tables, it yields the changes of these tables only. No batch
// is left out, and none comes twice. A program that remembers the timestamp of the last batch for
// which More is false continues there with another Subscribe, also after a restart.
//
// A batch has one change for each row whose content it has changed, as Table.Diff would find it
// immediately before and after: operations that change nothing do not appear, and several on one
// row appear as one. That is so for all kinds of writes: inserts of Ingest, deletes of Truncate,
// what RestoreTo brings back. Changes of schemas are no events: rows come with the columns that the
// table has when they are read. So are rows that expire. The changes of a dropped table no longer
// come. Batches committed with NoSync come when they are visible, so a power failure may undo them.
//
// The loop may be slow: no writer waits for it, and memory stays bounded, since the subscription
// reads what it has missed from the history of the tables. Between two steps it pins that history,
// for ten minutes at most; after that, a table may have dropped it, and the subscription ends with
// ErrTooOld. To begin anew, take a Snapshot with KeepHistory, read the tables At it, and
// subscribe from its Timestamp. A subscription of some tables needs the history of these tables only.
//
// In a follower (Options.Follow) the loop calls Wait and Refresh for the next batches. In another
// read-only store it ends after the newest batch. Otherwise it ends with break, or with an error:
// ctx.Err(); ErrTooOld; ErrFuture if from or until is ahead of the clock; ErrCorrupt; ErrPoisoned,
// after the last visible batch; ErrClosed.
func (s *Store) Subscribe(
	ctx context.Context, from, until mvcc.Timestamp, tables ...*Table,
) iter.Seq2[*CommittedBatch, error] {
	return func(yield func(*CommittedBatch, error) bool) {
		sub := &subscription{store: s, ctx: ctx, yield: yield, only: slices.Clone(tables), done: from,
			until: until, ends: until < mvcc.Max}
		if err := sub.run(); err != nil && err != errLoopEnded {
			yield(nil, callErr(fmt.Sprintf("subscription from %v", from), err))
		}
	}
}

func (s *subscription) run() error {
	defer s.end()
	if err := s.begin(); err != nil {
		return err
	}
	for {
		for s.done < s.visible() {
			if err := s.step(); err != nil {
				return err
			}
		}
		if s.store.core.Frozen() || s.ends && s.done >= s.until {
			return nil
		}
		s.leave()
		if err := s.wait(); err != nil {
			return err
		}
		if err := s.enter(); err != nil {
			return err
		}
	}
}

// wait waits until something may be visible after done. It refreshes a follower.
func (s *subscription) wait() error {
	store := s.store
	if !store.Follows() {
		return store.core.WaitAbove(s.ctx, s.done)
	}
	if err := store.Wait(s.ctx); err != nil {
		return err
	}
	return store.Refresh(s.ctx)
}

// begin pins the history from done on, and makes the store record changes.
func (s *subscription) begin() (err error) {
	if err := s.enter(); err != nil {
		return err
	}
	if s.ends {
		if err := s.store.checkTimestamp(s.until); err != nil {
			return err
		}
		if err := s.store.core.Pass(s.ctx, s.until); err != nil {
			return err
		}
		if err := s.store.core.Await(s.ctx, s.until); err != nil {
			return err
		}
		s.horizon = s.until
	}
	if s.snapshot, err = s.pin(s.done); err != nil || s.ends {
		return err
	}
	since, recorded, err := s.store.record()
	if s.recorded = recorded; err != nil || !recorded {
		return err
	}
	if s.store.core.Await(s.ctx, since) == nil { // else what is visible comes first, then the error
		s.horizon = since
	}
	return nil
}

// end releases the resources that begin has acquired.
func (s *subscription) end() {
	if s.snapshot != nil {
		s.snapshot.Close()
	}
	if s.recorded {
		s.store.core.Writer.EndRecord()
	}
	s.leave()
}

// visible returns the timestamp up to which there may be batches to yield now.
func (s *subscription) visible() mvcc.Timestamp {
	if s.ends {
		return s.until
	}
	return max(s.horizon, s.store.core.Visible())
}

// step yields batches after done, at most those that are visible now.
func (s *subscription) step() error {
	store := s.store
	upTo := s.visible()
	s.tables = map[uint32]*Table{} // those that exist now: they include all that the batches have changed
	for _, t := range s.chosen() {
		s.tables[t.tab.Number] = t
	}
	if err := s.check(); err != nil {
		return err
	}
	var all iter.Seq[conflict.Change]
	if changes := s.recent(); changes != nil {
		all = changes.All
	} else {
		w := window{limit: store.core.RecentLimit(), upTo: upTo}
		if err := s.fill(&w); err != nil {
			return err
		}
		all, upTo = slices.Values(w.changes), w.upTo
	}
	if err := s.batches(all, upTo); err != nil {
		return err
	}
	s.done = upTo
	return s.repin(upTo)
}

// recent returns the changes after done that the store has recorded, nil if it has not recorded all
// of them.
func (s *subscription) recent() *conflict.Changes {
	if !s.recorded {
		return nil
	}
	changes := s.store.core.Writer.Since(s.done)
	if changes.Complete > s.done {
		return nil
	}
	return &changes
}

// batches yields the batches up to a timestamp, of which changes, by timestamp, says the keys.
func (s *subscription) batches(changes iter.Seq[conflict.Change], upTo mvcc.Timestamp) error {
	var of []conflict.Change // one batch
	for ch := range changes {
		if ch.Timestamp > upTo {
			break
		}
		if len(of) > 0 && of[0].Timestamp != ch.Timestamp {
			if err := s.batch(of); err != nil {
				return err
			}
			of = of[:0]
		}
		if s.tables[ch.Table] != nil {
			of = append(of, ch)
		}
	}
	if len(of) == 0 {
		return nil
	}
	return s.batch(of)
}
