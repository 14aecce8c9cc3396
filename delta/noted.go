package delta

import (
	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/internal/arena"
	"github.com/oribi-db/oribi/internal/change"
	"github.com/oribi-db/oribi/mvcc"
)

// note names one change of a MemStore.
type note struct {
	row  batch.Ordinal
	link arena.Ref
	lsn  uint64
}

const noteBytes = 24

// Noted is a change that was applied after NoteChanges.
type Noted struct {
	Row  batch.Ordinal
	TS   mvcc.Timestamp
	LSN  uint64
	List change.List // read-only; holds as long as it is referenced
}

// NoteChanges has the store keep a list of what is applied from here on, for a rewrite that carries
// it over. Nothing is being applied while it is called. The list counts as memory of the store.
func (m *MemStore) NoteChanges() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.noted = arena.NewJournal[note](noteBytes, m.grow)
}

// StopNoting forgets the list.
func (m *MemStore) StopNoting() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.noted != nil {
		m.noted.Release()
		m.noted = nil
	}
}

// Noted hands out the changes noted from position from on, those of one row in their order, and
// returns the position behind the last one. More may be applied meanwhile. It stops at use's first
// error. NoteChanges was called.
func (m *MemStore) Noted(from int, use func(Noted) error) (next int, err error) {
	m.mu.RLock()
	noted := m.noted
	m.mu.RUnlock()
	for {
		some := noted.Next(from)
		if len(some) == 0 {
			return from, nil
		}
		for _, n := range some {
			l := linkAt(m.changes, n.link)
			if err := use(Noted{n.row, l.ts(), n.lsn, l.list()}); err != nil {
				return from, err
			}
			from++
		}
	}
}
