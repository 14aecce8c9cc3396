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
// remove all records. Concurrency and errors are those of Append.
func (l *Log) Roll() error {
	if err := l.usable(); err != nil {
		return err
	}
	if l.at.frames == 0 {
		return nil
	}
	return l.roll()
}

// roll seals the newest segment and begins the next. If the disk is full in between, the next call
// continues from there.
func (l *Log) roll() error {
	l.turn(never)
	defer l.pass()
	if err := l.usable(); err != nil { // the sync that this call waited for may have failed
		return err
	}
	if !l.isSealed {
		if err := l.seal(); err != nil {
			return err
		}
	}
	return l.begin()
}

// seal makes all records durable, then writes the footer and syncs that. The caller has the turn.
//
// With one sync for both, the footer could not prove that the last records are durable, and no
// later segment may exist that proves it: the next segment does not fit on the disk, or the process
// is killed before it begins one; then the next open finds a sealed segment and Close has nothing
// to add. A flipped byte in those records would be mistaken for a torn tail. The second sync costs
// one for each 32 MiB.
func (l *Log) seal() error {
	last := l.at.next - 1
	if _, err := l.flush(); err != nil {
		return err
	}
	if l.Durable() < last {
		if err := l.f.Sync(); err != nil {
			return l.poison("sync", err)
		}
		l.advance(last)
	}
	foot := footer{
		segment: l.number, last: last, durable: last, chain: l.at.chain,
		bytes: l.at.off + footerLen, frames: l.at.frames,
	}
	if _, err := l.f.WriteAt(foot.encode(l.seed), l.at.off); err != nil {
		return l.undo(err)
	}
	l.closeWindow()
	if l.ahead.end > foot.bytes {
		if err := l.cut(foot.bytes); err != nil {
			return err
		}
	}
	if err := l.f.Sync(); err != nil {
		return l.poison("sync", err)
	}
	l.isSealed = true
	l.spare.Store(0)
	l.bytes.Add(footerLen)
	return nil
}

// begin creates the segment after the newest, which is sealed, and makes it the newest.
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
	if err == nil {
		err = f.Sync()
	}
	if err == nil {
		err = l.o.FS.SyncDir(l.o.Dir)
	}
	if err != nil {
		if f != nil {
			f.Close()
		}
		return l.poison(fmt.Sprintf("begin segment %d", h.number), err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.f.Close(); err != nil { // all of it is synced
		l.o.Logger.Warn("closing a sealed log segment", "number", l.number, "error", err)
	}
	l.sealed = append(l.sealed, sealedSegment{segmentName(l.number), l.at.next - 1, h.prev.length})
	l.f, l.number, l.isSealed = f, h.number, false
	l.ahead.end, l.ahead.full = headerLen, false
	l.mapped.full = false
	l.at = border{off: headerLen, next: h.first, chain: xxh3.Hash(h.encode())}
	l.bytes.Add(headerLen)
	return nil
}

// Release unlinks segments whose LSNs are all below before, oldest first, but never the newest. The
// directory is not synced: a power cut may restore some, and replay skips them.
//
// A file that cannot be unlinked is an error and does not poison: the next call tries again.
func (l *Log) Release(before lsn.LSN) error {
	l.releasing.Lock()
	defer l.releasing.Unlock()
	for {
		if err := l.usable(); err != nil {
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
