package wal

import (
	"sync"

	"github.com/oribi-db/oribi/lsn"
)

// later buffers frames that are appended and not yet written, so that records which are synced
// together are written together:
//
//	writer A  append ┐
//	writer B  append ├─ one write, one sync
//	writer C  append ┘
//
// Writers contend in the kernel: a write that changes the file's time occasionally waits for a
// commit of the file system's journal, and all callers of Append wait with it. Only frames that
// overwrite zeros are buffered: they need no new space on the disk. Before a frame is written,
// copied, or synced, all frames before it are written.
type later struct {
	held bool // a frame was buffered since the last that was not; used by Append only

	// writing is held over a write of buffered frames, so that they reach the file in order. mu is
	// held only to append to buf or to swap it with spare: Append goes on during the write. writing
	// is locked before mu.
	writing sync.Mutex
	spare   []byte // the previous buf; guarded by writing

	mu  sync.Mutex
	buf []byte // frames, back to back
	off int64  // where they go
}

// put writes a frame at off, after all earlier frames, copies it there, or buffers it.
func (l *Log) put(b []byte, off int64) error {
	a := &l.later
	if l.isLater && off+int64(len(b)) <= l.ahead.end.Load() {
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
	if !l.isLater {
		if copied, err := l.copyFrame(b, off); copied || err != nil {
			return err
		}
	}
	if off+int64(len(b)) > l.ahead.end.Load() {
		return l.writeLonger(b, off)
	}
	_, err := l.f.WriteAt(b, off)
	return err
}

// flush writes the buffered frames, after a concurrent flush if one is running. Append is not
// blocked. flush returns the LSN of the last record that was appended before the call. If it fails,
// records whose Append has returned are lost, and the log is poisoned.
func (l *Log) flush() (lsn.LSN, error) {
	a := &l.later
	a.writing.Lock()
	defer a.writing.Unlock()
	a.mu.Lock()
	last := l.Next() - 1 // put precedes the increment of Next
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
