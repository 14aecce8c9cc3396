package wal

import (
	"errors"
	"fmt"
	"io/fs"

	"github.com/zeebo/xxh3"

	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/lsn"
	"github.com/oribi-db/oribi/vfs"
)

// Create makes an empty log whose first record will be first: one segment, synced, in a directory
// that exists and has none.
func Create(o Options, first lsn.LSN) error {
	o, err := o.filled()
	if err != nil {
		return err
	}
	if first == 0 {
		return errors.New("wal: create: the first LSN is 0")
	}
	segs, err := list(&o)
	if err != nil {
		return err
	}
	if len(segs) > 0 {
		return fmt.Errorf("wal: create: %s is there: %w", o.path(segs[0].name), fs.ErrExist)
	}
	f, err := createSegment(&o, header{instance: o.Instance, number: 1, first: first})
	if err == nil {
		err = f.Sync()
	}
	if err == nil {
		err = o.FS.SyncDir(o.Dir)
	}
	if f != nil {
		err = errors.Join(err, f.Close())
	}
	if err != nil {
		return fmt.Errorf("wal: create: %w", err)
	}
	return nil
}

// createSegment creates a file and writes its header. If the disk is full it leaves nothing and
// returns ErrNoSpace; after another error the file may exist.
func createSegment(o *Options, h header) (vfs.File, error) {
	name := o.path(segmentName(h.number))
	f, err := o.FS.Create(name)
	if err != nil {
		return nil, err
	}
	if _, err = f.WriteAt(h.encode(), 0); err == nil {
		return f, nil
	}
	f.Close()
	if errors.Is(err, fault.ErrNoSpace) {
		if rerr := o.FS.Remove(name); rerr != nil {
			return nil, rerr
		}
	}
	return nil, err
}

// Roll seals the newest segment, if it has a record, and begins the next, so that Release can
// remove all records. It must not run concurrently with Append, and returns the same errors.
func (l *Log) Roll() error {
	if err := l.usable(); err != nil {
		return err
	}
	if l.at.frames > 0 {
		if err := l.roll(); err != nil {
			return err
		}
	}
	return l.sealPrevious()
}

// fullSegment is a segment after which the newest was begun, and which is not sealed yet.
//
// Sealing takes several syncs, and the first one may have to write all of the segment. So that
// Append does not wait for them, the next Sync does them, before it syncs the newest segment:
//
//	Append  …8 │ begins the next segment: 9, 10, 11 …
//	Sync             │ sync 1–8, footer, sync │ directory │ sync 9–10 │
//
// No record of the newest segment counts as durable before the last of these syncs, so a power cut
// may take all of it. Replay accepts a segment without a footer before the newest only if no frame
// of the newest says that its first record was durable.
type fullSegment struct {
	f      vfs.File
	window vfs.Window // nil = none
	number uint64
	at     border // its end
	zeros  int64  // end of the zeros after it
	sealed bool   // it has its footer; only the name of the newest segment is not durable
}

// roll begins the next segment. It does not wait for the disk, unless the segment before the newest
// is not sealed yet. If the disk is full, nothing has changed.
func (l *Log) roll() error {
	if err := l.sealPrevious(); err != nil {
		return err
	}
	if !l.isSealed {
		if err := l.reserveFooter(); err != nil {
			return err
		}
		if _, err := l.flush(); err != nil {
			return err
		}
	}
	return l.begin()
}

// sealPrevious waits until the segment before the newest is sealed, and seals it unless a sync does.
func (l *Log) sealPrevious() error {
	if !l.rolling() {
		return nil
	}
	l.turn(never)
	defer l.pass()
	if err := l.usable(); err != nil || !l.rolling() { // the sync that this call waited for may have failed, or done it
		return err
	}
	return l.syncAll()
}

// rolling reports whether the segment before the newest is not sealed yet.
func (l *Log) rolling() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.old != nil
}

// reserveFooter writes zeros in place of the footer, so that it finds space on the disk later.
func (l *Log) reserveFooter() error {
	l.ahead.extending.Lock()
	defer l.ahead.extending.Unlock()
	full, err := l.extend(l.at.off+footerLen, windowPiece)
	if full {
		if err := l.cutTo(l.at.off); err != nil {
			return err
		}
		return fmt.Errorf("wal: append: %w", fault.ErrNoSpace)
	}
	return err
}

// begin creates the segment after the newest, and makes it the newest.
func (l *Log) begin() error {
	h := header{
		instance: l.o.Instance, number: l.number + 1, first: l.at.next,
		prev: link{number: l.number, length: l.at.off + footerLen, chain: l.at.chain},
	}
	if h.number > maxNumber {
		return fmt.Errorf("wal: segment %d: no higher number", l.number)
	}
	f, err := createSegment(&l.o, h)
	if errors.Is(err, fault.ErrNoSpace) {
		return fmt.Errorf("wal: begin segment %d: %w", h.number, err)
	}
	if err != nil {
		return l.poison(fmt.Sprintf("begin segment %d", h.number), err)
	}
	l.ahead.extending.Lock()
	defer l.ahead.extending.Unlock()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.old = &fullSegment{l.f, l.mapped.window, l.number, l.at, l.ahead.end.Load(), l.isSealed}
	l.f, l.number, l.isSealed = f, h.number, false
	l.ahead.end.Store(headerLen)
	l.ahead.full = false
	l.ahead.none.Store(false)
	l.mapped.window, l.mapped.full = nil, false
	l.at = border{off: headerLen, next: h.first, chain: xxh3.Hash(h.encode())}
	l.tail.Store(headerLen)
	l.bytes.Add(headerLen)
	return nil
}

// finish makes all records of s durable, then writes the footer and syncs that. The caller has the
// turn.
//
// With one sync for both, the footer could not prove that the last records are durable, and no
// later segment may exist that proves it: the process is closed, or killed before a record of the
// next one is durable. A flipped byte in those records would be mistaken for a torn tail. The
// second sync costs one for each 32 MiB.
//
// ErrNoSpace means that the footer does not fit. All other errors have poisoned the log.
func (l *Log) finish(s *fullSegment) error {
	last := s.at.next - 1
	if l.Durable() < last {
		if err := s.f.Sync(); err != nil {
			return l.poison("sync", err)
		}
		l.advance(last)
	}
	foot := footer{
		segment: s.number, last: last, durable: last, chain: s.at.chain,
		bytes: s.at.off + footerLen, frames: s.at.frames,
	}
	if _, err := s.f.WriteAt(foot.encode(l.seed), s.at.off); errors.Is(err, fault.ErrNoSpace) {
		return err
	} else if err != nil {
		return l.poison("seal", err)
	}
	l.closeWindow(&s.window)
	if s.zeros > foot.bytes {
		if err := s.f.Truncate(foot.bytes); err != nil {
			return l.poison("cut", err)
		}
	}
	if err := s.f.Sync(); err != nil {
		return l.poison("sync", err)
	}
	l.bytes.Add(footerLen)
	return nil
}

// sealOld seals the segment before the newest, and makes the name of the newest durable. The caller
// has the turn, syncs the newest and then calls retire.
func (l *Log) sealOld(s *fullSegment) error {
	if !s.sealed {
		if err := l.finish(s); err != nil {
			return l.poison("seal", err)
		}
	}
	if err := l.o.FS.SyncDir(l.o.Dir); err != nil {
		return l.poison(fmt.Sprintf("begin segment %d", s.number+1), err)
	}
	return nil
}

// retire makes s one of the sealed segments. The newest is durable with its header: only now may
// Release remove s.
func (l *Log) retire(s *fullSegment) {
	l.mu.Lock()
	l.sealed = append(l.sealed, sealedSegment{segmentName(s.number), s.at.next - 1, s.at.off + footerLen})
	l.old = nil
	l.mu.Unlock()
	l.closeFull(s)
}

// closeFull closes the file of s.
func (l *Log) closeFull(s *fullSegment) {
	l.closeWindow(&s.window)
	if err := s.f.Close(); err != nil { // all of it is synced, or the log is poisoned
		l.o.Logger.Warn("closing a full log segment", "number", s.number, "error", err)
	}
}

// Release unlinks segments whose LSNs are all below before, oldest first, but never the newest. The
// directory is not synced: a power cut may restore some, and replay skips them.
//
// A file that cannot be unlinked is an error and does not poison: the next call tries again.
func (l *Log) Release(before lsn.LSN) error {
	l.releasing.Lock()
	defer l.releasing.Unlock()
	for {
		if err := l.usable(); err != nil || l.retained > 0 {
			return err
		}
		l.mu.Lock()
		if len(l.sealed) == 0 || l.sealed[0].last >= before {
			l.mu.Unlock()
			return nil
		}
		oldest := l.sealed[0]
		l.mu.Unlock()
		if err := l.o.FS.Remove(l.o.path(oldest.name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("wal: release: %w", err)
		}
		l.mu.Lock()
		l.sealed = l.sealed[1:] // Append may have added one at the end, no other call removes one from the front
		l.mu.Unlock()
		l.bytes.Add(-oldest.bytes)
	}
}
