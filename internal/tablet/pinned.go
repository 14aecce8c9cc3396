package tablet

import (
	"sync"

	"github.com/oribi-db/oribi/mvcc"
	"github.com/oribi-db/oribi/rowset"
)

// retired contains the states that were replaced and still have references.
type retired struct {
	mu     sync.Mutex
	states map[*tabletState]bool
}

// add adds a state that was replaced. The caller still has its reference.
func (r *retired) add(st *tabletState) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.states == nil {
		r.states = map[*tabletState]bool{}
	}
	r.states[st] = true
	st.retired = r
}

// remove removes a state without references.
func (r *retired) remove(st *tabletState) {
	if r != nil {
		r.mu.Lock()
		defer r.mu.Unlock()
		delete(r.states, st)
	}
}

// RetiredRowSets returns the number of rowsets that are no longer part of the table and whose files
// reads that began before keep open.
func (t *Tablet) RetiredRowSets() int {
	t.retired.mu.Lock()
	sets := map[*rowset.DiskRowSet]bool{}
	for st := range t.retired.states {
		for _, d := range st.tree.Sets {
			sets[d] = true
		}
	}
	t.retired.mu.Unlock()
	if st, err := t.acquire(); err == nil {
		for _, d := range st.tree.Sets {
			delete(sets, d)
		}
		st.release()
	}
	return len(sets)
}

// UndoBytes returns the size of the undo files whose newest change is in (after, upTo].
func (t *Tablet) UndoBytes(after, upTo mvcc.Timestamp) (bytes int64) {
	st, err := t.acquire()
	if err != nil {
		return 0
	}
	defer st.release()
	for _, d := range st.tree.Sets {
		for _, f := range d.State().Deltas.Undo {
			if newest := f.Stats().Max; newest > after && newest <= upTo {
				bytes += f.Bytes()
			}
		}
	}
	return bytes
}
