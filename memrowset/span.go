package memrowset

import (
	"github.com/oribi-db/oribi/change"
	"github.com/oribi-db/oribi/internal/arena"
	"github.com/oribi-db/oribi/keyenc"
	"github.com/oribi-db/oribi/mvcc"
)

// span is the timestamps in (after, upTo].
type span struct{ after, upTo mvcc.Timestamp }

// ChangedIn leaves only the rows with a change, their insertion among them, at a timestamp in
// (after, upTo]. All batches in there have been applied. It is called before Next.
func (it *Iterator) ChangedIn(after, upTo mvcc.Timestamp) { it.span = &span{after, upTo} }

// changedIn tells whether the row with that header has a change in the span.
func (m *MemRowSet) changedIn(ref arena.Ref, s *span) bool {
	if ts := m.header(ref).ts(); ts > s.after {
		return ts <= s.upTo // no change of a row is older than its insertion
	}
	for at := m.newest(ref); at != 0; at = m.link(at).older() {
		if ts := m.link(at).ts(); ts <= s.upTo {
			return ts > s.after // the newest that is not too new: if it is too old, so are all before it
		}
	}
	return false
}

// History is the cells of a key's row as it was inserted, as an image, with the undo of the
// insertion and the redos below snap, oldest first: what Histories gives of the row. image is nil
// where Histories has no row: none was inserted below snap, or one was inserted and deleted for
// good within one batch.
func (m *MemRowSet) History(key []byte, snap mvcc.Timestamp) (image []byte, undo, redo []change.Delta) {
	ref := m.find(key)
	if ref == 0 {
		return nil, nil, nil
	}
	it := HistoryIterator{walker: walker{m: m}, snap: snap}
	it.add(item{keyenc.Head(key), ref})
	if len(it.images) == 0 {
		return nil, nil, nil
	}
	return it.images[0], it.out.Undo, it.out.Redo
}
