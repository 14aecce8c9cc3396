package oribi

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/oribi-db/oribi/mvcc"
)

// RowChange is the change of one row by a write batch.
type RowChange struct {
	Table *Table
	Difference
}

// CommittedBatch is a write batch that Store.Subscribe yields, or a piece of a large one. Its
// changes are in the order of the tables' creation, the changes of a table in key order. All of it
// may be kept; cells must not be modified.
type CommittedBatch struct {
	Timestamp mvcc.Timestamp
	Changes   []RowChange // at least one
	More      bool        // the next step has further changes of the same write batch
}

// maxIdle is how long the history that a subscription has yet to read is pinned while its loop is
// busy with a step.
const maxIdle = 10 * time.Minute

// errLoopEnded ends a subscription whose loop has ended.
var errLoopEnded = errors.New("the loop has ended")

// subscription is a running call of Subscribe. It looks for the batches after done, up to some
// later timestamp, and so on:
//
//	    │ history of the tables               │ recent │
//	────┼────────────┬────────────┬───────────┼────────┼──▶ time
//	  from         window       window      window  visible
//
// Which keys a batch has changed is in the store's list of recent changes, if it reaches back to
// done; otherwise in the delta stores of the tables, of which a window takes as many as fit into
// memory. What a batch has made of a row follows, in both cases, from the states before and after
// it.
type subscription struct {
	store *Store
	ctx   context.Context
	yield func(*CommittedBatch, error) bool
	only  []*Table // empty: all
	until mvcc.Timestamp
	ends  bool // at until

	done     mvcc.Timestamp // all batches up to here were yielded
	horizon  mvcc.Timestamp // all batches up to here are visible
	inside   bool           // the store was entered
	recorded bool           // the store records changes for the subscription
	snapshot *Snapshot      // of done, or before; pins what is still to be read
	tables   map[uint32]*Table
	piece    *CommittedBatch
	bytes    int // of piece
	given    int // pieces
	looked   int // keys
}

func (s *subscription) enter() error {
	if err := s.store.enter(); err != nil {
		return err
	}
	s.inside = true
	return s.ctx.Err()
}

func (s *subscription) leave() {
	if s.inside {
		s.inside = false
		s.store.leave()
	}
}

// pin pins the history above a timestamp.
func (s *subscription) pin(ts mvcc.Timestamp) (*Snapshot, error) {
	sn, err := s.store.snapshotAt(s.ctx, s.store.newSnapshot(ts, []SnapshotOption{KeepHistory()}), s.chosen)
	if err == nil {
		sn.SetName("subscription")
	}
	return sn, err
}

// chosen returns the tables that exist now and whose changes are yielded.
func (s *subscription) chosen() []*Table {
	tables := s.store.sortedTables()
	if len(s.only) == 0 {
		return tables
	}
	return slices.DeleteFunc(tables, func(t *Table) bool { return !slices.Contains(s.only, t) })
}

// check returns ErrTooOld if a table may have dropped history after the snapshot.
func (s *subscription) check() error {
	pins := s.store.core.Pins
	for _, t := range s.tables {
		if err := pins.PinSnapshot(t.tab.Number, &s.snapshot.pin); err != nil {
			return t.errorf(err)
		}
		pins.Unpin(s.snapshot.pin.TS)
	}
	return nil
}
