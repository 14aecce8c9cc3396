package delta

import (
	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/change"
	"github.com/oribi-db/oribi/internal/arena"
	"github.com/oribi-db/oribi/lsn"
	"github.com/oribi-db/oribi/mvcc"
)

// logEntry identifies one change of a MemStore, or the rows that DeleteRun has deleted.
type logEntry struct {
	row  batch.Ordinal
	rows uint32 // of DeleteRun, else 0
	link arena.Ref
	lsn  lsn.LSN
}

const logEntryBytes = 24

// LoggedChange is a change that was applied after StartChangeLog: of the row Row, or, if Rows is not 0,
// a delete of all rows [Row, Row+Rows), which had all existed.
type LoggedChange struct {
	Row  batch.Ordinal
	Rows uint32
	TS   mvcc.Timestamp
	LSN  lsn.LSN
	List change.List // read-only; valid as long as it is referenced
}

// StartChangeLog starts recording applied changes, for a rewrite that catches them up. The caller
// prevents concurrent Apply calls during the call. The change log's memory is reported to grow.
func (m *MemStore) StartChangeLog() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.changeLog = arena.NewJournal[logEntry](logEntryBytes, m.grow)
}

// StopChangeLog drops the change log.
func (m *MemStore) StopChangeLog() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.changeLog != nil {
		m.changeLog.Release()
		m.changeLog = nil
	}
}

// LoggedChanges calls use for each logged change from position from on, the changes of one row in
// their order, and returns the position after the last one. Changes may be applied concurrently. It
// stops at use's first error. StartChangeLog must have been called.
func (m *MemStore) LoggedChanges(from int, use func(LoggedChange) error) (next int, err error) {
	m.mu.RLock()
	log := m.changeLog
	m.mu.RUnlock()
	for {
		some := log.Next(from)
		if len(some) == 0 {
			return from, nil
		}
		for _, n := range some {
			l := linkAt(m.changes, n.link)
			if err := use(LoggedChange{n.row, n.rows, l.ts(), n.lsn, l.list()}); err != nil {
				return from, err
			}
			from++
		}
	}
}
