package wal

import "github.com/oribi-db/oribi/lsn"

// BytesFrom returns the length of the segments that are needed for a replay from an LSN on. The
// others are those that Release removes.
func (l *Log) BytesFrom(from lsn.LSN) int64 {
	bytes := l.bytes.Load()
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, s := range l.sealed {
		if s.last >= from {
			break
		}
		bytes -= s.bytes
	}
	return bytes
}
