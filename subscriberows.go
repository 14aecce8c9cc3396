package oribi

import (
	"bytes"
	"cmp"
	"errors"
	"slices"
	"time"

	"github.com/oribi-db/oribi/internal/conflict"
	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/internal/tablet"
	"github.com/oribi-db/oribi/mvcc"
	"github.com/oribi-db/oribi/scan"
)

// The limits of a piece of a write batch.
const (
	mostChanges     = 4096
	mostChangeBytes = 1 << 20
)

// batch yields a batch, of which changes lists the keys.
func (s *subscription) batch(changes []conflict.Change) error {
	slices.SortFunc(changes, func(a, b conflict.Change) int {
		return cmp.Or(cmp.Compare(a.Table, b.Table), bytes.Compare(a.Key, b.Key)) // the unknown first
	})
	ts := changes[0].Timestamp
	s.piece, s.bytes = &CommittedBatch{Timestamp: ts}, 0
	for len(changes) > 0 {
		n := 1
		for n < len(changes) && changes[n].Table == changes[0].Table {
			n++
		}
		err := s.tableChanges(s.tables[changes[0].Table], ts, changes[:n])
		if err != nil && !errors.Is(err, fault.ErrNoTable) { // dropped
			return err
		}
		changes = changes[n:]
	}
	if len(s.piece.Changes) == 0 {
		return nil
	}
	return s.give()
}

// tableChanges adds the changes of a batch to a table.
func (s *subscription) tableChanges(t *Table, ts mvcc.Timestamp, changes []conflict.Change) error {
	v, err := t.tab.View(tablet.Snapshot{At: mvcc.Before(ts)})
	if err != nil {
		return err
	}
	d := Difference{KeyColumns: v.Schema.Columns[:v.Schema.Keys], Columns: v.Schema.Columns}
	if changes[0].Unknown {
		return s.allChanges(t, v, ts, d)
	}
	defer v.Release()
	after := v.At(mvcc.AsOf(ts))
	defer after.Release()
	for i, ch := range changes {
		if i > 0 && bytes.Equal(changes[i-1].Key, ch.Key) {
			continue
		}
		if s.looked++; s.looked%ctxEvery == 0 {
			if err := s.store.interrupted(s.ctx); err != nil {
				return err
			}
		}
		before, existed, err := v.Get(ch.Key, v.All, nil)
		if err != nil {
			return err
		}
		now, exists, err := after.Get(ch.Key, v.All, nil)
		if err != nil {
			return err
		}
		if existed == exists && slices.EqualFunc(before, now, sameCell) {
			continue
		}
		d.Before, d.After = before, now
		if err := s.add(t, &v, ch.Key, d); err != nil {
			return err
		}
	}
	return nil
}

// allChanges is tableChanges for a batch of which the keys are not known. It releases v.
func (s *subscription) allChanges(t *Table, v tablet.View, ts mvcc.Timestamp, d Difference) error {
	rows := v.Diff(scan.Options{Columns: v.All}, mvcc.AsOf(ts))
	defer rows.Close()
	rows.OnlyChanged()
	for n := 0; rows.Next(); n++ {
		if n%ctxEvery == 0 {
			if err := s.store.interrupted(s.ctx); err != nil {
				return err
			}
		}
		d.Before, d.After = cloneCells(rows.Before()), cloneCells(rows.After())
		if err := s.add(t, &v, rows.Key(), d); err != nil {
			return err
		}
	}
	return rows.Close()
}

// cloneCells returns a copy of cells; nil if there is no row.
func cloneCells(cells [][]byte) [][]byte {
	if cells == nil {
		return nil
	}
	size := 0
	for _, cell := range cells {
		size += len(cell)
	}
	out, buf := make([][]byte, len(cells)), make([]byte, 0, size)
	for i, cell := range cells {
		if cell != nil {
			at := len(buf)
			buf = append(buf, cell...)
			out[i] = buf[at:len(buf):len(buf)]
		}
	}
	return out
}

// add adds a change to the current piece, after it has yielded a full piece.
func (s *subscription) add(t *Table, v *tablet.View, key []byte, d Difference) (err error) {
	if s.bytes > mostChangeBytes || len(s.piece.Changes) == mostChanges {
		s.piece.More = true
		if err := s.give(); err != nil {
			return err
		}
		s.piece, s.bytes = &CommittedBatch{Timestamp: s.piece.Timestamp}, 0
	}
	if d.Key, err = v.Encoder.Decode(key); err != nil {
		return t.errorf(err)
	}
	d.Kind = kindOf(d.Before != nil, d.After != nil)
	s.bytes += len(key)
	for _, cells := range [2][][]byte{d.Before, d.After} {
		for _, cell := range cells {
			s.bytes += len(cell) + sliceBytes
		}
	}
	s.piece.Changes = append(s.piece.Changes, RowChange{t, d})
	return nil
}

// pinEvery is the number of pieces after which the pin follows them, within a step too.
const pinEvery = 64

// give passes the current piece to the loop. Meanwhile the store may be closed, and the history is
// pinned for a limited time.
func (s *subscription) give() error {
	rest := s.piece.Timestamp // what is still to be read comes after
	if s.piece.More {
		rest--
	}
	if s.given++; s.given%pinEvery == 0 {
		if err := s.repin(rest); err != nil {
			return err
		}
	}
	s.leave()
	pinned := s.snapshot
	idle := time.AfterFunc(maxIdle, func() { pinned.Close() })
	defer idle.Stop()
	more := s.yield(s.piece, nil)
	inTime := idle.Stop()
	if !more {
		return errLoopEnded
	}
	if err := s.enter(); err != nil || inTime {
		return err
	}
	if err := s.repin(rest); err != nil {
		return err
	}
	return s.check()
}

// repin pins the history above ts only.
func (s *subscription) repin(ts mvcc.Timestamp) error {
	next, err := s.pin(ts)
	if err != nil {
		return err
	}
	s.snapshot.Close()
	s.snapshot = next
	return nil
}
