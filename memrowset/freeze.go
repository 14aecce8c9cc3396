package memrowset

import (
	"github.com/oribi-db/oribi/change"
	"github.com/oribi-db/oribi/internal/arena"
	"github.com/oribi-db/oribi/lsn"
	"github.com/oribi-db/oribi/mvcc"
)

// logEntry identifies one change of a frozen set, or a delete of several rows.
type logEntry struct {
	row  arena.Ref // the row's header
	last arena.Ref // the header of the last row that DeleteRange has deleted; 0 = the change is of one row
	link arena.Ref
	lsn  lsn.LSN
}

const logEntryBytes = 32

// LoggedChange is a change that was applied after Freeze: an update, a replacement or a delete.
type LoggedChange struct {
	Row  uint64 // identifies the row in the set
	Key  []byte
	Last []byte // unless nil, all rows with keys in [Key, Last] that existed were deleted
	TS   mvcc.Timestamp
	LSN  lsn.LSN
	List change.List
}

// Freeze ends insertions, including REINSERTs. Rows may still be changed; these changes are
// recorded in a change log, for the flush that catches them up. The caller prevents concurrent
// inserts and changes during the call. The change log counts as memory of the set.
func (m *MemRowSet) Freeze() {
	m.changeLog.Store(arena.NewJournal[logEntry](logEntryBytes, m.grow))
}

func (m *MemRowSet) checkOpen() {
	if m.changeLog.Load() != nil {
		panic("memrowset: insert into a frozen set")
	}
}

// LoggedChanges calls use for each change since Freeze from position from on, the changes of one
// row in order, and returns the position after the last one. Changes may be applied concurrently.
// It stops at the first error of use. Keys and lists are read-only and never overwritten.
func (m *MemRowSet) LoggedChanges(from int, use func(LoggedChange) error) (next int, err error) {
	log := m.changeLog.Load()
	for {
		some := log.Next(from)
		if len(some) == 0 {
			return from, nil
		}
		for _, n := range some {
			l := m.link(n.link)
			list := deleteList
			if l.kind() != change.Delete {
				list = l.list()
			}
			c := LoggedChange{uint64(n.row), m.header(n.row).key(), nil, l.ts(), n.lsn, list}
			if n.last != 0 {
				c.Last = m.header(n.last).key()
			}
			if err := use(c); err != nil {
				return from, err
			}
			from++
		}
	}
}
