package wal

import (
	"sync"

	"github.com/oribi-db/oribi/lsn"
)

// later holds frames that are appended and not written yet, so that records which are synced
// together are written together:
//
//	writer A  append ┐
//	writer B  append ├─ one write, one sync
//	writer C  append ┘
//
// The kernel is where writers meet: a write that changes the file's time waits for a commit of the
// file system's journal now and then, and all who append wait behind it. Only frames that go over
// zeros written ahead are held back: they need no space on the disk that is not there. All frames
// before one that is written, or about to be synced, are written before it.
type later struct {
	held bool // a frame was held back since the last that was not; for Append alone

	writing sync.Mutex // held over the write

	mu    sync.Mutex // after writing
	buf   []byte     // frames one behind the other
	off   int64      // where they go
	spare []byte     // what buf was the time before, under writing
}

// put writes a frame at off, behind all that was put before, or holds it back.
func (l *Log) put(b []byte, off int64) error {
	a := &l.later
	if l.isLater && off+int64(len(b)) <= l.ahead.end {
		a.mu.Lock()
		defer a.mu.Unlock()
		if len(a.buf) == 0 {
			a.off = off
		}
		a.buf = append(a.buf, b...)
		a.held = true
		return nil
	}
	if a.held {
		if _, err := l.flush(); err != nil {
			return err
		}
		a.held = false
	}
	_, err := l.f.WriteAt(b, off)
	return err
}

// flush writes what was held back, and waits for who does so already; Append goes on meanwhile. It
// gives the last record that was appended before. If it cannot, records that were answered for are
// lost: the log is poisoned.
func (l *Log) flush() (lsn.LSN, error) {
	a := &l.later
	a.writing.Lock()
	defer a.writing.Unlock()
	a.mu.Lock()
	last := l.Next() - 1 // a frame is put before that is raised
	buf, off := a.buf, a.off
	a.buf, a.spare = a.spare[:0], buf
	a.mu.Unlock()
	if len(buf) > 0 {
		if _, err := l.f.WriteAt(buf, off); err != nil {
			return 0, l.poison("append", err)
		}
	}
	return last, l.Poisoned()
}
