package memrowset

import (
	"github.com/oribi-db/oribi/internal/arena"
	"github.com/oribi-db/oribi/internal/change"
	"github.com/oribi-db/oribi/mvcc"
)

// note names one change of a frozen set.
type note struct {
	row  arena.Ref // the row's header
	link arena.Ref
	lsn  uint64
}

const noteBytes = 24

// Noted is a change that was made after Freeze: an UPDATE or a DELETE.
type Noted struct {
	Row  uint64 // tells rows of the set apart
	Key  []byte
	TS   mvcc.Timestamp
	LSN  uint64
	List change.List
}

// Freeze ends insertions, REINSERTs among them. Rows may still be changed, and a list is kept of
// these changes for the flush that carries them over. Nothing is being inserted or changed while it
// is called. The list counts as memory of the set.
func (m *MemRowSet) Freeze() {
	m.noted.Store(arena.NewJournal[note](noteBytes, m.grow))
}

func (m *MemRowSet) checkOpen() {
	if m.noted.Load() != nil {
		panic("memrowset: insert into a frozen set")
	}
}

// Noted hands out the changes since Freeze from position from on, those of one row in their order,
// and returns the position behind the last one. More may be made meanwhile. It stops at use's first
// error. Keys and lists must not be written to; they hold for good.
func (m *MemRowSet) Noted(from int, use func(Noted) error) (next int, err error) {
	noted := m.noted.Load()
	for {
		some := noted.Next(from)
		if len(some) == 0 {
			return from, nil
		}
		for _, n := range some {
			l := m.link(n.link)
			list := deleteList
			if l.kind() == change.Update {
				list = l.list()
			}
			if err := use(Noted{uint64(n.row), m.header(n.row).key(), l.ts(), n.lsn, list}); err != nil {
				return from, err
			}
			from++
		}
	}
}
