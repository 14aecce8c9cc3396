package blockmanager

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"

	"github.com/oribi-db/oribi/block"
	"github.com/oribi-db/oribi/internal/coding"
	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/vfs"
)

// journalAdvice ends the findings about a damaged journal: the user need not repair anything.
const journalAdvice = "nothing but a salvage needs it, and the next flush or other change of the metadata " +
	"writes it anew"

// verifyJournal verifies the journal, as far as its bytes are known to have reached the disk: all
// records if the journal is sealed or this process writes it, otherwise the first record. The
// journal of a store may be missing, or end before the last commit, or after it: a power cut may
// take that.
func (m *Manager) verifyJournal(finding func(string, int64, block.ID, string)) error {
	if m.o.Follow { // the writer appends to it
		return nil
	}
	if info, err := m.o.FS.Stat(m.o.journalPath(JournalName)); err == nil && info.IsDir() {
		finding(JournalName, 0, 0, "is a directory")
		return nil
	}
	err := m.withJournal(func(f vfs.File, size int64) error {
		j := &journalState{instance: m.o.Instance, strict: true}
		err := j.readAll(f, size)
		switch {
		case err != nil && !errors.Is(err, fault.ErrCorrupt) && !errors.Is(err, fault.ErrUnsupported):
			return err
		case err != nil && (j.rows == nil || m.journal.file != nil || m.sealedAt(f, size)):
			finding(JournalName, j.at, 0, fmt.Sprintf("the copy of the metadata: %v; %s", err, journalAdvice))
		}
		return nil
	})
	if errors.Is(err, fs.ErrPermission) {
		finding(JournalName, 0, 0,
			fmt.Sprintf("the copy of the metadata cannot be read: %v; %s", fs.ErrPermission, journalAdvice))
		return nil
	}
	return err
}

// withJournal calls use with the journal, if the file exists. No commit runs during the call.
func (m *Manager) withJournal(use func(f vfs.File, size int64) error) error {
	m.commitMu.Lock()
	defer m.commitMu.Unlock()
	if m.closed.Load() {
		return fault.ErrClosed
	}
	name := m.o.journalPath(JournalName)
	if info, err := m.o.FS.Stat(name); errors.Is(err, fs.ErrNotExist) || err == nil && info.IsDir() {
		return nil
	}
	f, err := m.o.FS.Open(name, false)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	} else if err != nil {
		return err
	}
	defer f.Close()
	size, err := f.Size()
	if err != nil {
		return err
	}
	return use(f, size)
}

// sealedAt reports whether a journal ends with a seal of this store.
func (m *Manager) sealedAt(f vfs.File, size int64) bool {
	head := make([]byte, journalHeaderLen)
	if size < journalHeaderLen {
		return false
	}
	if n, _ := f.ReadAt(head, size-journalHeaderLen); n < len(head) {
		return false
	}
	return string(head[:len(journalMagic)]) == journalMagic && head[journalKindOff] == journalSeal &&
		[16]byte(head[journalInstanceOff:]) == m.o.Instance &&
		binary.LittleEndian.Uint32(head[journalCRCOff:]) == coding.CRC32C(head[:journalCRCOff])
}

// CompareJournal compares the journal with the metadata, and calls finding if it does not have the
// same rows at the same epoch, or no metadata at its epoch. Verify has found what is damaged.
func (m *Manager) CompareJournal(finding func(file string, off int64, id block.ID, problem string)) error {
	if m.o.Follow {
		return nil
	}
	err := m.withJournal(func(f vfs.File, size int64) error {
		j := &journalState{instance: m.o.Instance}
		if err := j.readAll(f, size); j.rows == nil {
			if errors.Is(err, fault.ErrCorrupt) || errors.Is(err, fault.ErrUnsupported) {
				return nil
			}
			return err
		}
		s, err := j.load(&m.o)
		if err == nil && s.epoch == m.state.epoch && s.root != m.state.root {
			err = fault.Corruptf("hash %s, the hash of the metadata is %s", s.hash, m.state.hash)
		}
		if err == nil && s.epoch != j.epoch {
			err = fault.Corruptf("the root row is of epoch %d", s.epoch)
		}
		if errors.Is(err, fault.ErrCorrupt) || errors.Is(err, fault.ErrUnsupported) {
			finding(JournalName, 0, 0,
				fmt.Sprintf("the copy of the metadata at epoch %d: %v; %s", j.epoch, err, journalAdvice))
			return nil
		}
		return err
	})
	if err != nil && !errors.Is(err, fs.ErrPermission) {
		return fmt.Errorf("blockmanager: verify: %w", err)
	}
	return nil
}
