package wal

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/zeebo/xxh3"

	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/lsn"
	"github.com/oribi-db/oribi/vfs"
)

// Log appends records. The package documentation says which methods may run concurrently.
type Log struct {
	o    Options
	seed uint32

	// These fields have no lock: Append and Close, which must not run concurrently, are the only
	// methods that reach them, so appending a record takes no lock unless it begins a segment.
	buf      []byte // chain hash, frame header, payload, padding
	isLater  bool   // the current record may be buffered in later
	number   uint64 // of the newest segment
	at       border // its end
	isSealed bool   // its footer is written and synced, the next one is not begun
	ahead    ahead
	mapped   mapped

	// Positions and counters are atomic: Append advances them while other goroutines sync, release,
	// or ask for statistics. Append stores nextLSN last, after the record was written, copied, or
	// buffered: a sync covers the records below the nextLSN that it loads.
	nextLSN lsn.Atomic
	durable lsn.Atomic
	bytes   atomic.Int64
	written atomic.Int64          // bytes of records
	tail    atomic.Int64          // end of the last record in the newest segment, or of its footer
	syncs   atomic.Int64          // that Sync led
	dead    atomic.Pointer[error] // why the log is poisoned
	closed  atomic.Bool

	later later

	// releasing is held for all of a Release, which unlinks files, and for all of Close, so that no
	// file is unlinked after the next opener has started. It is taken before mu.
	releasing sync.Mutex
	retained  int // calls of Retain that are not undone; guarded by releasing

	// f is the file of the newest segment. Append writes to it without a lock, and replaces it with
	// mu held, so that a sync, which takes f with mu held, never syncs a file that is being closed.
	f vfs.File

	// Only the goroutine that has the turn uses these fields: the turn is handed over with mu held,
	// which orders the accesses. They decide how long a leader waits for others, see gatherShare.
	took     time.Duration // by the last sync
	few      int64         // syncs that still wait for gatherFew at most
	fewNext  int64         // what few becomes when less than half come the next time
	closeErr error

	// mu guards the fields below. It is held for a few instructions, never during file I/O: callers
	// of Sync queue up here while one of them, who has the turn, syncs for all.
	mu      sync.Mutex
	taken   bool      // a caller has the turn
	waiting []*waiter // for it, or for durability
	expect  int64     // how many waited when the last turn ended
	gathers bool      // who has the turn waits until as many wait again
	full    chan bool // receives a value when they do
	// old is the segment before the newest, until it is sealed. Append sets it; whoever has the
	// turn clears it.
	old    *fullSegment
	sealed []sealedSegment // the others but the newest, oldest first
}

// newLog returns a log that continues where t ends, in file f.
func newLog(t *Tail, f vfs.File) *Log {
	l := &Log{o: t.o, seed: seedCRC(t.o.Instance), number: t.newest.number, at: t.at, f: f, sealed: t.sealed,
		full: make(chan bool, 1), fewNext: fewFirst}
	size := t.at.off
	if t.foot != nil {
		l.isSealed = true
		size = t.foot.bytes
	}
	l.tail.Store(size)
	l.ahead.end.Store(size)
	for _, s := range t.sealed {
		size += s.bytes
	}
	l.bytes.Store(size)
	l.nextLSN.Store(t.at.next)
	l.durable.Store(t.Last())
	return l
}

// maxKeptBuf bounds the buffer that is kept for the next record.
const maxKeptBuf = 4 << 20

// Append writes one record, of any length from 0, and hands it to the kernel: it survives a kill of
// the process. Sync makes it durable.
//
// Errors: ErrNoSpace, if the disk is full; nothing has changed and the call may be tried again.
// ErrBatchTooLarge; nothing has changed. ErrClosed. All else is ErrPoisoned, for this and every
// later call.
func (l *Log) Append(payload []byte) (lsn.LSN, error) {
	return l.AppendParts(payload)
}

// AppendLater is Append of a record for which a Sync follows: only the Sync, or the next Append,
// must hand it to the kernel. Records of callers who sync together are then written together.
func (l *Log) AppendLater(payload []byte) (lsn.LSN, error) {
	l.isLater = true
	defer func() { l.isLater = false }()
	return l.AppendParts(payload)
}

// AppendParts is Append for a payload in several slices. They are not kept.
func (l *Log) AppendParts(parts ...[]byte) (lsn.LSN, error) {
	if err := l.usable(); err != nil {
		return 0, err
	}
	total := 0
	for _, p := range parts {
		total += len(p)
	}
	frames := max(1, (total+l.o.FrameBytes-1)/l.o.FrameBytes)
	if frames > maxParts {
		return 0, fmt.Errorf("wal: record of %d bytes in %d frames, at most %d: %w", total, frames, maxParts,
			fault.ErrBatchTooLarge)
	}
	if err := l.makeRoom(int64(total) + int64(frames)*(frameLen+alignment)); err != nil {
		return 0, err
	}
	pos, err := l.write(l.at, frames, total, parts)
	if err != nil {
		return 0, l.undo(err)
	}
	lsn := pos.next
	pos.next++
	l.bytes.Add(pos.off - l.at.off)
	l.written.Add(pos.off - l.at.off)
	l.at = pos
	l.tail.Store(pos.off)
	if cap(l.buf) > maxKeptBuf {
		l.buf = nil
	}
	l.nextLSN.Store(pos.next) // only now may a Sync include it
	return lsn, nil
}

// makeRoom rolls to the next segment if the newest would exceed its size. A record is never split
// over two segments, so a torn record is cut in one file.
//
// A sealed segment with room, as Close leaves it, is continued: the first frame, which is longer
// than the footer, overwrites the footer. A crash then leaves the footer, or the frame, or a torn
// tail after the same records. So sessions of a few records do not leave a file each.
func (l *Log) makeRoom(n int64) error {
	if l.at.frames > 0 && l.at.off+n+footerLen > l.o.SegmentBytes {
		return l.roll()
	}
	if l.isSealed {
		l.isSealed = false
		l.bytes.Add(-footerLen)
		return nil
	}
	return l.writeAhead(n)
}

// write writes the frames of one record at pos and returns the border after them.
func (l *Log) write(pos border, frames, total int, parts [][]byte) (border, error) {
	durable := l.Durable()
	rest := []byte(nil) // of the current slice
	for part := range frames {
		f := frame{
			length: min(total, l.o.FrameBytes), last: part == frames-1, part: part,
			segment: l.number, lsn: pos.next, durable: durable,
		}
		total -= f.length
		buf := slices.Grow(l.buf[:0], chainLen+frameLen+padded(f.length))[:chainLen+frameLen]
		for want := f.length; want > 0; {
			if len(rest) == 0 {
				rest, parts = parts[0], parts[1:]
				continue
			}
			n := min(want, len(rest))
			buf = append(buf, rest[:n]...)
			rest, want = rest[n:], want-n
		}
		payload := buf[chainLen+frameLen:]
		f.hash, f.check = xxh3.Hash(payload), crc32c(payload)
		buf = append(buf, make([]byte, padded(f.length)-f.length)...)
		binary.LittleEndian.PutUint64(buf, pos.chain)
		f.encode(buf[chainLen:], l.seed)
		l.buf = buf
		if err := l.put(buf[chainLen:], pos.off); err != nil {
			return pos, err
		}
		pos.off, pos.chain, pos.frames = pos.off+f.size(), xxh3.Hash(buf[:chainLen+frameLen]), pos.frames+1
	}
	return pos, nil
}

// undo cuts off the bytes that a failed write left after the last record, if the disk was full.
// Such bytes do no harm even if a power cut restores them: they are a torn tail, and the LSN that
// was durable when they were written is below theirs.
func (l *Log) undo(err error) error {
	if !errors.Is(err, fault.ErrNoSpace) {
		return l.poison("append", err)
	}
	if cerr := l.cut(l.at.off); cerr != nil {
		return cerr
	}
	return fmt.Errorf("wal: append: %w", err)
}

// Next returns the LSN of the next record.
func (l *Log) Next() lsn.LSN { return l.nextLSN.Load() }

// Durable returns the highest LSN that survives a power cut.
func (l *Log) Durable() lsn.LSN { return l.durable.Load() }

// Bytes returns the length of all segments together.
func (l *Log) Bytes() int64 { return l.bytes.Load() }

// Written returns the number of bytes of records, with their frames, that were appended since the
// log was opened.
func (l *Log) Written() int64 { return l.written.Load() }

// Syncs returns how often Sync has synced a segment.
func (l *Log) Syncs() int64 { return l.syncs.Load() }

// Poisoned returns the error that every call returns from now on, or nil if the log is not
// poisoned. The error wraps ErrPoisoned and the first cause.
func (l *Log) Poisoned() error {
	if err := l.dead.Load(); err != nil {
		return *err
	}
	return nil
}

// usable returns an error if the log is poisoned or closed.
func (l *Log) usable() error {
	if l.closed.Load() {
		return fmt.Errorf("wal: %w", fault.ErrClosed)
	}
	return l.Poisoned()
}

// Poison ends all writing because of a failure elsewhere in the store: not even Close writes any
// more.
func (l *Log) Poison(cause error) { l.poison("store", cause) }

// poison ends all writing: the content of the file is unknown. The first cause wins.
func (l *Log) poison(doing string, cause error) error {
	format := "wal: %s: %w: %w"
	if errors.Is(cause, fault.ErrNoSpace) {
		format = "wal: %s: %w: %v" // ErrNoSpace would mean that the call may be tried again
	}
	err := fmt.Errorf(format, doing, fault.ErrPoisoned, cause)
	if l.dead.CompareAndSwap(nil, &err) {
		l.o.Logger.Error("log is poisoned", "dir", l.o.Dir, "doing", doing, "cause", cause)
	}
	return l.Poisoned()
}
