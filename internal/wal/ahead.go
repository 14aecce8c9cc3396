package wal

import (
	"errors"

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
type ahead struct {
	end   int64 // of the zeros in the newest segment; there are none if it is not after the last record
	syncs int64 // of the log, when zeros were last written or judged not worthwhile
	bytes int64 // of records since
	full  bool  // the disk has no room for zeros: not again in this segment
}

// aheadRules say when zeros are written. Lengths are bytes.
type aheadRules struct {
	syncs int64 // minimum number of syncs for the records since the last time; with fewer, no caller waits for syncs
	least int64 // zeros to begin with
	most  int64 // in one go: an append and a sync take longer for it
	serve int64 // syncs, at least, that the zeros must last for
}

// The zeros for 1 MiB are written in a millisecond, and synced together with the current record.
var defaultAhead = aheadRules{syncs: 8, least: 64 << 10, most: 1 << 20, serve: 16}

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

// writeAhead writes zeros after the last record if there are none for the next one, of at most n
// bytes, and if it is worthwhile. On a full disk it writes none.
func (l *Log) writeAhead(n int64) error {
	a := &l.ahead
	if a.bytes += n; l.at.off+n <= a.end || a.full {
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
	for at := max(off, l.ahead.end); at < end; {
		next := min(end, (at/piece+1)*piece)
		if _, err := l.f.WriteAt(zeros[:next-at], at); errors.Is(err, fault.ErrNoSpace) {
			return true, l.cut(off)
		} else if err != nil {
			return false, l.poison("write ahead", err)
		}
		at = next
	}
	l.ahead.end = max(l.ahead.end, end)
	return false, nil
}

// cut cuts off the bytes after end in the newest segment.
func (l *Log) cut(end int64) error {
	l.closeWindow(&l.mapped.window) // a copy after the end of the file would fail
	l.ahead.end = end
	if err := l.f.Truncate(end); err != nil {
		return l.poison("cut", err)
	}
	return nil
}

// Spare returns the number of the newest segment and how many bytes at its end are zeros for later
// records. Close cuts them off.
func (l *Log) Spare() (segment string, bytes int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return segmentName(l.number), l.spare.Load()
}
