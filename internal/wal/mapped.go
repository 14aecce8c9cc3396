package wal

import (
	"errors"
	"fmt"

	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/vfs"
)

// mapped is a window on the space after the newest record. Small records that need not be durable
// at once are copied into it: a call of the system takes longer than all the rest of Append.
//
//	file    header, frames ──────────── 0 0 0 0 0 0 0 0 0 0 0 0
//	window              [ copied frames │ zeros                ]
//	                                    at.off               end
//
// The zeros have been written before, so that a copy needs no space on the disk. The bytes are in
// the system's cache, as after a write: a kill of the process loses none, and the next sync makes
// them durable. Until then a power cut may leave any of the pages, each as it was at any time, as it
// may with writes: frames that are not synced may be missing before others that are there. The
// package documentation says how replay and Repair treat that.
//
// A copy can fail because of a failing disk, because the disk of a file system that copies on write
// is full, or because someone has cut off the file. A file that was cut off poisons the log. After
// the other failures, this frame and the following frames are written instead, and an error of a
// write shows the fault; a full disk does not poison. If the file system has no windows, all frames
// are written.
type mapped struct {
	window vfs.Window // nil = none
	end    int64      // of the window
	small  int64      // records that a window would have taken, before the first one
	length int64      // of the next window
	full   bool       // the disk has no room for a window, or mapping it or a copy failed: not again in this segment
	never  bool       // the file system has no windows
}

// windowRules say when there is a window. Lengths are bytes.
type windowRules struct {
	after int64 // small records that are written before the first window; programs that write few need none
	frame int64 // longest frame that is copied; a longer one is written, which costs less than faults of its pages
	least int64 // length of the first window; each is twice as long as the one before
	most  int64
}

// The first store into a page of a window is a fault. It takes 5.5 µs if the file system must find
// space for the page, or make reserved space written space, and 1 µs if the page has been written.
// Writing it takes 3.5 µs for a single page, 1 µs in pieces of this length. (Linux 6.18, ext4.)
const windowPiece = 32 << 10

var defaultWindows = windowRules{after: 8, frame: 2 << 10, least: 64 << 10, most: 1 << 20}

// copyFrame copies a frame to off of the newest segment, through the window. It reports whether it
// did; if not, the frame must be written.
func (l *Log) copyFrame(b []byte, off int64) (copied bool, err error) {
	m, n := &l.mapped, int64(len(b))
	if m.never || m.full || n > l.o.windows.frame {
		return false, nil
	}
	if m.window == nil || off+n > m.end {
		if err := l.openWindow(off, n); err != nil || m.window == nil {
			return false, err
		}
	}
	if err := m.window.Copy(b, off); err != nil {
		return false, l.copyFailed(err)
	}
	return true, nil
}

// copyFailed ends the use of windows in this segment after a failed copy, of which some bytes may be in
// the file: the write of the same frame overwrites them. It poisons the log if the file has been cut off,
// since the write would make it long enough again, with zeros in place of records.
func (l *Log) copyFailed(cause error) error {
	l.o.Logger.Warn("copying into a window on the log", "number", l.number, "error", cause)
	l.closeWindow(&l.mapped.window)
	l.mapped.full = true
	size, err := l.f.Size()
	if err != nil {
		return l.poison("append", errors.Join(cause, err))
	}
	if size < l.mapped.end {
		return l.poison("append", fmt.Errorf("%d bytes of the segment are left, of at least %d: %w", size,
			l.mapped.end, cause))
	}
	return nil
}

// openWindow replaces the window by a window that begins at off and has room for n bytes, if it is
// worthwhile and possible.
func (l *Log) openWindow(off, n int64) (err error) {
	m, rules := &l.mapped, &l.o.windows
	l.closeWindow(&l.mapped.window)
	if m.small++; m.small <= rules.after {
		return nil
	}
	if _, ok := l.f.(vfs.Mapper); !ok {
		m.never = true
		return nil
	}
	m.length = max(m.length, rules.least)
	length := min(m.length, l.o.SegmentBytes-off)
	if spare := l.ahead.end.Load() - off; spare >= max(n, rules.least) { // written by a sync
		length = min(spare, rules.most)
	}
	if length < n { // the end of the segment
		return nil
	}
	if m.full, err = l.writeZeros(off, off+length, windowPiece); err != nil || m.full {
		return err
	}
	w, err := vfs.Map(l.f, off, length)
	if err != nil { // records are written over the zeros
		m.full, m.never = true, errors.Is(err, fault.ErrUnsupported)
		return nil
	}
	m.window, m.end, m.length = w, off+length, min(2*m.length, rules.most)
	return nil
}

// closeWindow closes *w, unless it is nil, and sets it to nil. The zeros in the file remain.
func (l *Log) closeWindow(w *vfs.Window) {
	open := *w
	if *w = nil; open == nil {
		return
	}
	if err := open.Close(); err != nil { // all copies are in the file
		l.o.Logger.Warn("closing a window on the log", "dir", l.o.Dir, "error", err)
	}
}
