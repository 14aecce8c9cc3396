package wal

import (
	"errors"
	"sync"

	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/lsn"
)

// Retain keeps all segments until the returned function is called: Release does nothing meanwhile,
// and the next call removes what is not needed then. It waits for a Release that runs. Several
// calls may retain at the same time.
func (l *Log) Retain() (release func()) {
	l.releasing.Lock()
	defer l.releasing.Unlock()
	l.retained++
	return sync.OnceFunc(func() {
		l.releasing.Lock()
		defer l.releasing.Unlock()
		l.retained--
	})
}

// Range calls fn, in the order of LSNs, for each record from one LSN to another, both included. It
// writes nothing. A Log may write to the directory meanwhile, if it retains the segments and upTo
// was durable before.
//
// It keeps one record, or a window of 256 KiB, in memory. It stops at the first error of fn and
// returns it as it is. Errors: ErrCorrupt, also if records are missing.
func Range(o Options, from, upTo lsn.LSN, fn func(lsn lsn.LSN, payload []byte) error) error {
	next, end := max(from, 1), errors.New("end of the range")
	for looks := 0; next <= upTo; looks++ {
		var refused error
		tail, err := Replay(o, next, func(lsn lsn.LSN, payload []byte) error {
			if refused = fn(lsn, payload); refused != nil {
				return refused
			}
			if next, looks = lsn+1, 0; lsn == upTo {
				return end
			}
			return nil
		})
		switch {
		case err == end:
			return nil
		case refused != nil:
			return refused
		case err == nil:
			err = fault.Corruptf("wal: log ends with LSN %d, want %d", tail.Last(), upTo)
		}
		if looks >= maxLooks {
			return err
		}
	}
	return nil
}

// maxLooks is how often Range reads the log again from a record that it did not find. A Log that
// begins a segment seals the one before and cuts off its zeros:
//
//	Range   finds 4000 bytes                        the file ends at byte 3976
//	Log                        seals, cuts 24 zeros
//
// That happens once for each segment, so the next look finds the record, unless it is damaged.
const maxLooks = 10

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
