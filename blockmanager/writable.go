package blockmanager

import (
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/vfs"
)

// Writable turns an open manager into a writer. The caller holds the store's lock exclusively.
//
//  1. The anchor's newest slot is written again in place and synced: what Open read may have been
//     in the kernel's cache only. A crash here changes nothing.
//  2. Pebble's manifest likewise: Pebble removes the files that it no longer names.
//  3. Pebble is opened for writing, which makes the records of its log durable, and is read once
//     more: its rows must be those that Open read.
//  4. Container files that no row names are removed. A crash left them, before the commit that
//     would have named them.
//  5. Bytes above the last committed block of a container are cut off, for the same reason.
//  6. A range without data is punched, to determine whether holes can be punched.
//  7. If the anchor accepts no other state, the space of dead blocks is freed.
//
// Errors: ErrReadOnly if Options.ReadOnly is set; ErrNoSpace, after which another Open may be
// tried; otherwise the errors of Open. A failed write poisons the manager, also if the disk is
// full.
func (m *Manager) Writable() error {
	m.commitMu.Lock()
	defer m.commitMu.Unlock()
	switch {
	case m.closed.Load():
		return fmt.Errorf("blockmanager: %w", fault.ErrClosed)
	case m.o.ReadOnly:
		return fmt.Errorf("blockmanager: %w", fault.ErrReadOnly)
	case m.poison.is():
		return m.poison.err()
	case m.meta != nil:
		return nil
	}
	if err := m.repair(); err != nil {
		failed := m.fail(fmt.Errorf("open for writing: %w", err))
		// no writer has started: the caller may try again
		if first := m.poison.first(); errors.Is(first, fault.ErrNoSpace) {
			return fmt.Errorf("blockmanager: %w", first)
		}
		return failed
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, c := range m.state.containers {
		if c.row.state == containerOpen && c.row.next < m.o.ContainerBytes {
			c.end, c.reserved, c.window = c.row.next, c.row.next, firstWindow
			m.pool = append(m.pool, c)
		}
	}
	slices.SortFunc(m.pool, func(a, b *container) int { return strings.Compare(a.name(), b.name()) })
	return nil
}

func (m *Manager) repair() error {
	if err := m.anchor.openForWrite(&m.o); err != nil {
		return err
	}
	if err := syncManifest(&m.o); err != nil {
		return err
	}
	meta, err := openMeta(&m.o, metaWrite, m.poison)
	if err != nil {
		return err
	}
	m.meta = meta
	again, err := loadState(&m.o, meta)
	if err != nil {
		return err
	}
	if again.root != m.state.root {
		return fault.Corruptf("metadata was at epoch %d with hash %s, and is at epoch %d with hash %s now",
			m.state.epoch, m.state.hash, again.epoch, again.hash)
	}
	if err := m.removeStrays(); err != nil {
		return err
	}
	if err := m.cutTails(); err != nil {
		return err
	}
	m.probePunch()
	if err := m.release(); err != nil {
		return err
	}
	for _, d := range m.state.dead {
		if d.punched {
			m.repaired.Reclaimed++
		}
	}
	return nil
}

// syncManifest makes Pebble's manifest durable before Pebble acts on it: it is written again in
// place.
//
//	killed writer  compacts files 5 and 10 to 15, writes the manifest, is killed before the sync
//	next one       finds 15 in the manifest, which is in the kernel's cache alone, and removes 5 and 10
//	power cut      the manifest names 5 and 10
//
// Pebble writes and syncs a new manifest only if it has changes to write. It makes the records of
// its log durable itself, and the names in its directory before it removes any.
func syncManifest(o *Options) error {
	names, err := o.FS.List(o.metaDir())
	if err != nil {
		return fmt.Errorf("metadata: %w", err)
	}
	for _, name := range names {
		if !strings.HasPrefix(name, "MANIFEST-") {
			continue
		}
		if err := rewrite(o.FS, filepath.Join(o.metaDir(), name)); err != nil {
			return fmt.Errorf("metadata: %w", err)
		}
	}
	return nil
}

// rewrite writes a file again in place, with the same bytes, and syncs it.
func rewrite(fsys vfs.FS, name string) error {
	f, err := fsys.Open(name, true)
	if err != nil {
		return err
	}
	size, err := f.Size()
	if err == nil {
		_, err = io.Copy(io.NewOffsetWriter(f, 0), io.NewSectionReader(f, 0, size))
	}
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

// reserveSlack is how many bytes more than its blocks a container may occupy before it counts as
// having reserved space: the file system may need some for itself.
const reserveSlack = 64 << 10

// cutTails cuts off the bytes above the last committed block of each container. The length of the
// file does not include space that was reserved there.
func (m *Manager) cutTails() error {
	use := m.state.alignedUse()
	for _, c := range m.state.containers {
		if c.row.state == containerDead {
			continue
		}
		info, err := m.o.FS.Stat(m.o.dataPath(c.name()))
		if err != nil {
			return fmt.Errorf("container %s: %w", c.id, err)
		}
		if above := info.Size() - c.row.next; above > 0 || vfs.Allocated(info) > use[c]+reserveSlack {
			m.repaired.CutBytes += max(0, above)
			if err := c.cut(&m.o, c.row.next); err != nil {
				return err
			}
		}
	}
	return nil
}

// Repaired counts the files that Writable repaired after a crash.
type Repaired struct {
	Strays    int   // container files that no row named, removed
	CutBytes  int64 // written above the last committed block of a container, cut off
	Reclaimed int   // dropped blocks whose space was still allocated after a crash and was freed by punching holes
}

// Repaired returns what Writable repaired; the zero value before Writable.
func (m *Manager) Repaired() Repaired {
	m.commitMu.Lock()
	defer m.commitMu.Unlock()
	return m.repaired
}

// removeStrays removes container files without a row. Files with other names are left alone, and so
// are those that are no containers of this store, which no crash leaves here: a person has put them
// there.
func (m *Manager) removeStrays() error {
	names, err := m.o.FS.List(m.o.dataDir())
	if err != nil {
		return err
	}
	for _, n := range names {
		id, ok := containerName(n)
		if !ok || m.state.containers[id] != nil {
			continue
		}
		if !m.recognizes(n, id) {
			m.o.Logger.Warn("a file that is no container of this store is left alone", "file", n)
			continue
		}
		m.o.Logger.Info("removing a container that no commit named", "container", id)
		if err := m.o.FS.Remove(m.o.dataPath(n)); err != nil {
			return err
		}
		m.repaired.Strays++
	}
	return nil
}

// recognizes reports whether a file in data/ is a container of this store, of which a crash may
// have left any part of the header page.
func (m *Manager) recognizes(name string, id containerID) bool {
	f, err := m.o.FS.Open(m.o.dataPath(name), false)
	if err != nil {
		return false
	}
	defer f.Close()
	page, want := make([]byte, headerLen), encodeHeader(m.o.Instance, id)
	n, err := f.ReadAt(page, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return false
	}
	for i := range page[:n] {
		if page[i] != 0 && page[i] != want[i] {
			return false
		}
	}
	return true
}

// IsName reports whether a file in data/ may have this name.
func IsName(name string) bool {
	_, ok := containerName(name)
	return ok
}

// containerName parses a file name of the form <32 hex digits, lower case>.data.
func containerName(name string) (id containerID, ok bool) {
	digits, ok := strings.CutSuffix(name, dataSuffix)
	if !ok || len(digits) != 2*len(id) || strings.ToLower(digits) != digits {
		return id, false
	}
	_, err := hex.Decode(id[:], []byte(digits))
	return id, err == nil
}
