package wal

import (
	"errors"
	"sync"
	"sync/atomic"

	"github.com/oribi-db/oribi/internal/fault"
)

// ahead writes zeros after the newest record, for later records, while records are synced a few at
// a time. Windows (see mapped) need zeros too.
//
// A sync of a file that has grown makes the file system also write its journal, which records where
// the new bytes are; a sync of overwritten bytes does not:
//
//	growing   sync: the records' page, the journal, its commit     …the same for each record
//	ahead     sync: all zeros, the journal, its commit             once in a megabyte
//	          sync: the records' page                              for each record
//
// Reserved but unwritten space does not help: it becomes written space at the sync, which changes
// the journal too. The bytes after the last record are always zeros, or what a crash has left of
// records that were not synced. The zeros of a killed writer are not a torn tail; Repair cuts them
// off, so that no old frame is ever after new ones. Seal cuts them off too: a sealed segment has
// its exact length.
//
// A sync of many bytes first writes zeros too, in the goroutine of its caller: while the file system
// finds space on the disk for those bytes, a write that makes the file longer waits for it, and all
// callers of Append with it, for 5 to 13 ms.
type ahead struct {
	// Used by Append only: whether the program syncs its records a few at a time.
	syncs int64 // of the log, when zeros were last written or judged not worthwhile
	bytes int64 // of records since
	full  bool  // the disk has no room for zeros: not again in this segment

	// extending is held while the newest file is made longer or shorter, or is replaced: Append and
	// a sync both do that. end is the file's length; all bytes from the last record to it are zeros.
	extending sync.Mutex
	end       atomic.Int64

	written int64       // Log.written at the last sync; used by the goroutine that has the turn
	none    atomic.Bool // the disk has no room for the zeros of a sync: not again in this segment
}

// aheadRules say when zeros are written. Lengths are bytes.
type aheadRules struct {
	syncs int64 // minimum number of syncs for the records since the last time; with fewer, none are written
	least int64 // zeros to begin with
	most  int64 // in one go: an append and a sync take longer for it
	serve int64 // syncs, at least, that the zeros must last for
	large int64 // length of records from which on a sync writes zeros first; 0 = never
}

// A sync of many bytes writes zeros for this part of their length.
const syncShare = 8

// The zeros for 1 MiB are written in a millisecond, and synced together with the current record.
var defaultAhead = aheadRules{syncs: 8, least: 64 << 10, most: 1 << 20, serve: 16, large: 1 << 20}

// length returns how many zeros to write after so many syncs for so many bytes, 0 if it is not
// worthwhile. It doubles each time.
func (r *aheadRules) length(syncs, bytes int64) int64 {
	if syncs < r.syncs {
		return 0
	}
	n := min(max(2*bytes, r.least), r.most)
	if n/r.serve < bytes/syncs {
		return 0
	}
	return n
}

// zeros are written at most this many at a time. A kernel that gets more than a page may keep it in
// the page cache as one piece, and then writes, or counts as written, all of that piece for each
// record that overwrites a part of it: linux 6.18 does so on ext4, up to 1 MiB for a record. So
// zeros for records that are synced one by one are written page by page (aheadPiece).
var zeros [windowPiece]byte

const aheadPiece = 4 << 10

// writeAhead writes zeros after the last record if the zeros that exist are too few for the next
// record, of at most n bytes, and if it is worthwhile. On a full disk it writes nothing.
func (l *Log) writeAhead(n int64) error {
	a := &l.ahead
	if a.bytes += n; l.at.off+n <= a.end.Load() || a.full {
		return nil
	}
	syncs := l.syncs.Load()
	length := min(l.o.ahead.length(syncs-a.syncs, a.bytes), l.o.SegmentBytes-l.at.off)
	if length <= n {
		if a.bytes > l.o.ahead.most { // start counting again
			a.syncs, a.bytes = syncs, 0
		}
		return nil
	}
	a.syncs, a.bytes = syncs, 0
	full, err := l.writeZeros(l.at.off, l.at.off+length, aheadPiece)
	a.full = full
	return err
}

// writeZeros writes zeros up to end, except where they are already. All frames are before off. Each
// write ends at a multiple of piece. If the disk is full it cuts off all zeros.
func (l *Log) writeZeros(off, end, piece int64) (full bool, err error) {
	l.ahead.extending.Lock()
	defer l.ahead.extending.Unlock()
	if full, err = l.extend(end, piece); full {
		err = l.cutTo(off)
	}
	return full, err
}

// extend writes zeros from the end of the newest file up to end. The caller holds ahead.extending.
func (l *Log) extend(end, piece int64) (full bool, err error) {
	for at := l.ahead.end.Load(); at < end; at = l.ahead.end.Load() {
		next := min(end, (at/piece+1)*piece)
		if _, err := l.f.WriteAt(zeros[:next-at], at); errors.Is(err, fault.ErrNoSpace) {
			return true, nil
		} else if err != nil {
			return false, l.poison("write ahead", err)
		}
		l.ahead.end.Store(next)
	}
	return false, nil
}

// extendForSync writes zeros for the records that are appended during a sync of many bytes. Other
// calls may extend the file before each piece, and wait for one piece at most.
func (l *Log) extendForSync() error {
	a := &l.ahead
	written := l.written.Load()
	bytes := written - a.written
	if a.written = written; l.o.ahead.large == 0 || bytes < l.o.ahead.large || a.none.Load() {
		return nil
	}
	for left := max(l.o.ahead.least,
		min(bytes/syncShare, l.o.ahead.most)) - l.spareBytes(); left > 0; left -= aheadPiece {
		if err := l.extendByPiece(); err != nil || a.none.Load() {
			return err
		}
	}
	return nil
}

// extendByPiece writes one piece of zeros at the end of the newest file, unless the segment has no
// room.
func (l *Log) extendByPiece() error {
	a := &l.ahead
	a.extending.Lock()
	defer a.extending.Unlock()
	full, err := l.extend(min(a.end.Load()+aheadPiece, l.o.SegmentBytes), aheadPiece)
	if !full {
		return err
	}
	a.none.Store(true)
	// Zeros up to a.end stay: Append may have written records over them meanwhile.
	return l.truncate(a.end.Load())
}

// writeLonger writes a frame at off that may end after the end of the file.
func (l *Log) writeLonger(b []byte, off int64) error {
	l.ahead.extending.Lock()
	defer l.ahead.extending.Unlock()
	if _, err := l.f.WriteAt(b, off); err != nil {
		return err
	}
	l.ahead.end.Store(max(l.ahead.end.Load(), off+int64(len(b))))
	return nil
}

// cut cuts off the bytes after end in the newest segment.
func (l *Log) cut(end int64) error {
	l.ahead.extending.Lock()
	defer l.ahead.extending.Unlock()
	return l.cutTo(end)
}

// cutTo is cut for a caller that holds ahead.extending.
func (l *Log) cutTo(end int64) error {
	l.closeWindow(&l.mapped.window) // a copy after the end of the file would fail
	return l.truncate(end)
}

// truncate is cutTo for a caller that knows that no window is over the bytes after end.
func (l *Log) truncate(end int64) error {
	if err := l.f.Truncate(end); err != nil {
		return l.poison("cut", err)
	}
	l.ahead.end.Store(end)
	return nil
}

// spareBytes returns how many zeros are after the last record.
func (l *Log) spareBytes() int64 { return max(0, l.ahead.end.Load()-l.tail.Load()) }

// Spare returns the number of the newest segment and how many bytes at its end are zeros for later
// records. Close cuts them off.
func (l *Log) Spare() (segment string, bytes int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return segmentName(l.number), l.spareBytes()
}
