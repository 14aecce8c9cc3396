package wal

import (
	"errors"
	"fmt"
	"io"
	"io/fs"

	"github.com/oribi-db/oribi/vfs"
)

// Repair makes what was replayed durable and opens the log for Append. Only a writer calls it,
// once, before it writes anything else of the store. It takes these steps; each says which state a
// crash after it leaves:
//
//  0. Single flipped bits of all segments are repaired in place and synced. After a crash they are
//     found again, or gone.
//     The segment before the newest, unless a frame of the newest proves that it was sealed, is
//     written again, synced, and gets its footer, which is synced too. After a crash it is complete
//     again, with a footer or without.
//  1. The torn tail is copied to a file .torn and synced. The log has not changed; an older .torn
//     of that number is gone.
//  2. The tail is cut, with the zeros that were written ahead; the rest is written again with the
//     same bytes; one sync for both. Either the tail is found again, or it is gone. The rest is
//     written again because after a failed sync the pages in the kernel's cache look clean: another
//     sync would succeed and write nothing.
//  3. The directory is synced. The name of the newest segment need not have been durable: a kill
//     may have come between the sync of its header and the sync of the directory. All records
//     acknowledged from now on depend on it, and without it the next step could remove the only
//     segment that shows where the log ends.
//  4. Leftovers are removed, oldest first, then a newest file without a header, or after lost
//     records. Some are found again.
//  5. If anything was removed, the directory is synced: a file without a header that a power cut
//     restored later would follow a segment without a footer.
//
// The first Append continues a sealed newest segment, as Close leaves it, if it has room; otherwise
// it begins the next. After an error the log is as one of these crashes leaves it, and may be
// replayed again.
//
// metadata, if not nil, is called before leftovers are removed. It makes durable the metadata by
// which they are leftovers: a kill may have left it in the kernel's cache only, and a power cut
// would then restore metadata that needs them.
func (t *Tail) Repair(metadata func() error) (*Log, error) {
	if t.used || t.stopped {
		return nil, errors.New("wal: repaired twice, or after a replay of a part")
	}
	t.used = true
	f, err := t.o.FS.Open(t.o.path(t.newest.name), true)
	if err != nil {
		return nil, fmt.Errorf("wal: repair: %w", err)
	}
	l := newLog(t, f)
	err = t.repair(f)
	if err == nil && metadata != nil {
		err = metadata()
	}
	if err == nil {
		err = t.removeUseless()
	}
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("wal: repair: %w", err)
	}
	return l, nil
}

func (t *Tail) repair(f vfs.File) error {
	size, err := f.Size()
	if err != nil {
		return err
	}
	if size != t.newest.size {
		return fmt.Errorf("%s has %d bytes, had %d when it was replayed", t.newest.name, size, t.newest.size)
	}
	if err := t.writeRepairs(); err != nil {
		return err
	}
	if t.full != nil {
		if err := t.sealFull(); err != nil {
			return err
		}
	}
	if t.report.TornBytes > 0 {
		if err := t.keepTorn(f); err != nil {
			return err
		}
	}
	if end := t.end(); size > end {
		if err := f.Truncate(end); err != nil {
			return err
		}
		size = end
	}
	if err := copyRange(f, f, 0, 0, size); err != nil {
		return err
	}
	if err := f.Sync(); err != nil {
		return err
	}
	return t.o.FS.SyncDir(t.o.Dir)
}

// sealFull seals the segment before the newest, durably: the process may have been killed before a
// Sync did.
func (t *Tail) sealFull() (err error) {
	f, err := t.o.FS.Open(t.o.path(t.full.name), true)
	if err != nil {
		return err
	}
	defer func() {
		if cerr := f.Close(); err == nil {
			err = cerr
		}
	}()
	at, end := t.full.at, t.full.at.off
	if t.full.foot != nil {
		end = t.full.foot.bytes
	}
	if t.full.size > end {
		if err := f.Truncate(end); err != nil {
			return err
		}
	}
	if err := copyRange(f, f, 0, 0, end); err != nil {
		return err
	}
	if err := f.Sync(); err != nil || t.full.foot != nil {
		return err
	}
	last := at.next - 1
	foot := footer{segment: t.full.number, last: last, durable: last, chain: at.chain,
		bytes: at.off + footerLen, frames: at.frames}
	if _, err := f.WriteAt(foot.encode(seedCRC(t.o.Instance)), at.off); err != nil {
		return err
	}
	return f.Sync()
}

// keepTorn copies the torn tail for inspection by people. The copy stays until they remove it.
func (t *Tail) keepTorn(f vfs.File) error {
	name := t.o.path(tornName(t.newest.number))
	if err := t.o.FS.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	torn, err := t.o.FS.Create(name)
	if err != nil {
		return err
	}
	defer torn.Close()
	if err := copyRange(torn, f, 0, t.at.off, t.report.TornBytes); err != nil {
		return err
	}
	if err := torn.Sync(); err != nil {
		return err
	}
	if err := t.o.FS.SyncDir(t.o.Dir); err != nil {
		return err
	}
	t.o.Logger.Warn("torn tail of the log is cut", "kept", name, "bytes", t.report.TornBytes, "last_lsn", t.Last())
	return nil
}

// copyRange copies n bytes of src from srcOff to dst at dstOff.
func copyRange(dst, src vfs.File, dstOff, srcOff, n int64) error {
	buf := make([]byte, min(n, 1<<20))
	for done := int64(0); done < n; {
		part := buf[:min(int64(len(buf)), n-done)]
		if got, err := src.ReadAt(part, srcOff+done); got < len(part) {
			if err == io.EOF {
				err = io.ErrUnexpectedEOF
			}
			return err
		}
		if _, err := dst.WriteAt(part, dstOff+done); err != nil {
			return err
		}
		done += int64(len(part))
	}
	return nil
}

// recognized reports whether a file without a header has the bytes that a crash leaves of an
// unfinished header, or a frame of this log.
func (s *segment) recognized(o *Options) bool {
	r, err := openReader(o, s)
	if err != nil {
		return false
	}
	defer r.close()
	if _, found, err := r.proof(0); err != nil || found {
		return err == nil
	}
	b := make([]byte, headerLen)
	n, err := r.win.f.ReadAt(b, 0)
	if err != nil && err != io.EOF {
		return false
	}
	want := header{instance: o.Instance, number: s.number, prev: link{number: s.number - 1}}.encode()
	for i := range b[:min(n, headerFirstOff)] {
		if b[i] != 0 && b[i] != want[i] {
			return false
		}
	}
	return true
}

// removeUseless removes the files that replay skipped, durably. The newest, if it has more than a
// header, or something else than a part of one, is kept for inspection, as a torn tail is.
func (t *Tail) removeUseless() error {
	useless := t.plan.leftovers
	if t.plan.unfinished != nil {
		useless = append(useless[:len(useless):len(useless)], *t.plan.unfinished)
	}
	for i, s := range useless {
		if i < len(t.plan.leftovers) && s.unreadable != "" && !s.recognized(&t.o) {
			t.o.Logger.Warn("a file that is no segment of this log is left alone", "file", s.name)
			continue
		}
		remove := func() error { return t.o.FS.Remove(t.o.path(s.name)) }
		if i == len(t.plan.leftovers) && (s.size > headerLen || !s.recognized(&t.o)) {
			remove = func() error { return t.o.FS.Rename(t.o.path(s.name), t.o.path(tornName(s.number))) }
		}
		if err := remove(); err != nil {
			return err
		}
		t.o.Logger.Info("log file of no use is removed", "file", s.name, "bytes", s.size)
	}
	if len(useless) == 0 {
		return nil
	}
	return t.o.FS.SyncDir(t.o.Dir)
}
