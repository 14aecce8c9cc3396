package wal

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"

	"github.com/zeebo/xxh3"

	"github.com/oribi-db/oribi/lsn"
)

// Follow is Replay of a log to which another process may be writing. It calls fn for the records
// that are complete when it reads them, in order, and stops before the first incomplete record.
//
// What a Log does meanwhile can make one look at a segment fail: it removes the segment, or seals
// it and cuts off its zeros. So Follow looks again from the record on that it has not found. After
// some looks without a record, it returns the error: the log is damaged, or does not reach back to
// logStart any more.
func Follow(o Options, logStart lsn.LSN, fn func(lsn lsn.LSN, payload []byte) error) (*Tail, error) {
	o.Live = true
	next := max(logStart, 1)
	for looks := 0; ; looks++ {
		var refused error
		tail, err := Replay(o, next, func(lsn lsn.LSN, payload []byte) error {
			if err := fn(lsn, payload); err != nil {
				refused = err
				return err
			}
			next, looks = lsn+1, 0
			return nil
		})
		if err == nil || err == refused || looks >= followLooks {
			return tail, err
		}
		if o.Logger != nil {
			o.Logger.Debug("a follower tries again to read the log", slog.Any("err", err))
		}
	}
}

// followLooks is how often Follow reads the log again without finding a record. A Log seals or
// removes a segment once, so two looks in a row rarely meet that.
const followLooks = 3

// Continue reads the records that another process has appended after the end of t, and returns the
// new end. t does not change. Its cost depends on the new records alone. fn may return ErrStop, as
// for Replay.
//
// After an error of Continue it is not known whether the log is damaged, or was changed in the
// meantime: it may have been removed up to a later record.
func (t *Tail) Continue(fn func(lsn lsn.LSN, payload []byte) error) (*Tail, error) {
	next := *t
	next.o.Live, next.stopped, next.used = true, false, true
	next.plan, next.sealed, next.full, next.flips = plan{}, nil, nil, nil
	for again := false; ; {
		if err := next.continueSegment(fn); err != nil || next.stopped {
			return &next, err
		}
		began, err := next.beginNext()
		switch {
		case err != nil && again:
			return nil, err
		case err == nil && !began:
			return &next, nil
		}
		// The segment was full when the next one began, but perhaps not when its end was read.
		again = err != nil
	}
}

// continueSegment reads the newest segment from t.at on.
func (t *Tail) continueSegment(fn func(lsn.LSN, []byte) error) error {
	r, err := openReader(&t.o, &t.newest)
	if err != nil {
		return err
	}
	defer r.close()
	if r.win.size, err = r.win.f.Size(); err != nil {
		return fmt.Errorf("wal: %s: %w", t.newest.name, err)
	}
	r.at, r.flips, t.foot = t.at, nil, nil
	defer func(from int64) { t.report.Bytes += t.at.off - from }(t.at.off)
	for {
		before := r.at
		lsn, payload, err := r.next()
		if err != nil {
			return t.endOfNew(r, err)
		}
		if err := fn(lsn, payload); err == ErrStop {
			t.at, t.stopped = before, true
			return nil
		} else if err != nil {
			return err
		}
		t.at = r.at
		t.report.Records++
	}
}

// endOfNew classifies the end of the newest segment, where next returned err. A frame whose first
// bytes are zeros has not been written yet.
func (t *Tail) endOfNew(r *reader, err error) error {
	if d := (*damage)(nil); !errors.As(err, &d) {
		t.foot = r.foot
		return r.end(err, false)
	}
	head, rerr := r.read(r.at.off, alignment)
	if rerr != nil {
		return rerr
	}
	for _, b := range head {
		if b != 0 {
			if err = r.end(err, false); err == errGrown { // read by the next call
				err = nil
			}
			return err
		}
	}
	return nil
}

// beginNext makes the segment after the newest the newest, and returns true, if that segment exists
// and has a header. It returns an error if that segment does not continue where t ends.
func (t *Tail) beginNext() (bool, error) {
	seg := segment{name: segmentName(t.newest.number + 1), number: t.newest.number + 1}
	seg.inspect(&t.o)
	switch {
	case errors.Is(seg.err, fs.ErrNotExist):
		return false, nil
	case seg.err != nil:
		return false, seg.err
	case seg.unreadable != "":
		return false, nil
	}
	if err := seg.follows(link{number: t.newest.number, length: t.at.off + footerLen, chain: t.at.chain},
		t.at.next); err != nil {
		return false, err
	}
	t.newest, t.foot = seg, nil
	t.at = border{off: headerLen, next: seg.head.first, chain: xxh3.Hash(seg.head.encode())}
	return true, nil
}

// MayContinue reports whether something may have been appended after the end of t: more of a record
// that was not complete, or the next segment.
func (t *Tail) MayContinue() bool {
	f, err := t.o.FS.Open(t.o.path(t.newest.name), false)
	if err != nil {
		return true
	}
	defer f.Close()
	var head [alignment]byte
	if n, _ := f.ReadAt(head[:], t.at.off); n == len(head) && head != [alignment]byte{} && (t.foot == nil ||
		!t.footerThere(f)) {
		return true
	}
	_, err = t.o.FS.Stat(t.o.path(segmentName(t.newest.number + 1)))
	return err == nil
}

// footerThere reports whether the footer of a sealed segment is after the last record.
func (t *Tail) footerThere(f interface {
	ReadAt(b []byte, off int64) (int, error)
}) bool {
	b := make([]byte, footerLen)
	if n, _ := f.ReadAt(b, t.at.off); n < len(b) {
		return false
	}
	_, ok := parseFooter(b, t.newest.number, seedCRC(t.o.Instance))
	return ok
}
