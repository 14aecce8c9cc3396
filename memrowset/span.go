package memrowset

import (
	"github.com/oribi-db/oribi/change"
	"github.com/oribi-db/oribi/internal/arena"
	"github.com/oribi-db/oribi/mvcc"
)

// span contains the changes that to sees and from does not.
type span struct{ from, to mvcc.Snapshot }

// ChangedIn restricts the iterator to rows with a change, or an insertion, that to sees and from
// does not. All batches that to sees must have been applied. It must be called before the first
// Next.
func (it *Iterator) ChangedIn(from, to mvcc.Snapshot) { it.span = &span{from, to} }

// changedIn reports whether the row with that header has a change in the span.
func (m *MemRowSet) changedIn(ref arena.Ref, s *span) bool {
	if ts := m.header(ref).ts(); !s.from.Sees(ts) {
		return s.to.Sees(ts) // no change of a row is older than its insertion
	}
	// If from sees the newest change that to sees, it sees all older ones.
	at := m.newestIn(ref, s.to)
	return at != 0 && !s.from.Sees(m.link(at).ts())
}

// EachChange calls visit with the key and the timestamp of each change, and insertion, that to sees
// and from does not, in key order, up to its first error. All batches that to sees must have been
// applied. Keys are never overwritten.
func (m *MemRowSet) EachChange(from, to mvcc.Snapshot, visit func(key []byte, ts mvcc.Timestamp) error) error {
	w := m.newWalker(mvcc.Nothing, nil, nil, false)
	for refs := w.next(leafItems); len(refs) > 0; refs = w.next(leafItems) {
		for _, row := range refs {
			h := m.header(row)
			note := func(ts mvcc.Timestamp) error {
				if from.Sees(ts) || !to.Sees(ts) {
					return nil
				}
				return visit(h.key(), ts)
			}
			err := note(h.ts())
			for ref := m.newest(row); ref != 0 && err == nil; {
				l := m.link(ref)
				if from.Sees(l.ts()) {
					break
				}
				err = note(l.ts())
				ref = l.older()
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// History returns the row of a key as it was inserted, as an image, with the undo of the insertion
// and the redos below snap, oldest first, as Histories does. image is nil if Histories would not
// return the row: it was not inserted below snap, or was inserted and deleted for good within one
// batch.
func (m *MemRowSet) History(key []byte, snap mvcc.Snapshot) (image []byte, undo, redo []change.Delta) {
	ref := m.find(key, false)
	if ref == 0 {
		return nil, nil, nil
	}
	var w window
	it := HistoryIterator{walker: walker{m: m}, as: snap}
	it.add(&w, ref)
	if len(w.images) == 0 {
		return nil, nil, nil
	}
	return w.images[0], w.rows.Undo, w.rows.Redo
}
