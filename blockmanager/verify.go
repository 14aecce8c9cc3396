package blockmanager

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/oribi-db/oribi/block"
	"github.com/oribi-db/oribi/internal/fault"
	"github.com/zeebo/xxh3"
)

// verifyChunk is how many bytes of a block are read at once.
const verifyChunk = 1 << 20

// Verify reads everything and calls finding for each byte range that is not as written: file
// (relative to the store), byte offset in it, the block or 0, and what is wrong.
//
// It looks at both slots of the anchor, at all metadata, at the journal, at the header page of each
// container, at all bytes of each block and at the zeros between its end and the next block's
// start. It may run
// concurrently with everything else, and skips blocks that a commit drops while it runs. An error
// means that it could not continue, not that it found something; ctx ends it between two blocks. If
// checked is not nil, Verify calls it with the length of each block it has read.
func (m *Manager) Verify(ctx context.Context, finding func(file string, off int64, id block.ID, problem string),
	checked func(bytes int64)) error {
	verifyMeta := m.verifyMeta
	if m.o.Follow {
		verifyMeta = m.verifyFollowed
	}
	if err := verifyMeta(finding); err != nil {
		return fmt.Errorf("blockmanager: verify: %w", err)
	}
	if err := m.verifyJournal(finding); err != nil {
		return fmt.Errorf("blockmanager: verify: %w", err)
	}
	m.mu.RLock()
	containers := slices.Collect(maps.Values(m.state.containers))
	ids := slices.Sorted(maps.Keys(m.state.blocks))
	m.mu.RUnlock()
	for _, c := range containers {
		if err := m.verifyHeader(c, finding); err != nil {
			return fmt.Errorf("blockmanager: verify: %w", err)
		}
	}
	buf := make([]byte, verifyChunk)
	for _, id := range ids {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := m.verifyBlock(id, buf, finding); err != nil {
			return fmt.Errorf("blockmanager: verify: %w", err)
		}
		m.mu.RLock()
		b := m.state.blocks[id]
		m.mu.RUnlock()
		if checked != nil && b != nil {
			checked(b.length)
		}
	}
	return nil
}

// BlockLocation is where the bytes of a block are stored.
type BlockLocation struct {
	ID     block.ID
	File   string // relative to the store
	Offset int64  // in that file, bytes
	Length int64  // bytes, without the zeros up to where the next block may begin
}

// BlockLocations lists the blocks of the last commit, by file and offset.
func (m *Manager) BlockLocations() []BlockLocation {
	m.mu.RLock()
	defer m.mu.RUnlock()
	list := make([]BlockLocation, 0, len(m.state.blocks))
	for _, b := range m.state.blocks {
		list = append(list, BlockLocation{b.id, "data/" + b.in.name(), b.off, b.length})
	}
	slices.SortFunc(list, func(a, b BlockLocation) int {
		return cmp.Or(strings.Compare(a.File, b.File), cmp.Compare(a.Offset, b.Offset), cmp.Compare(a.ID, b.ID))
	})
	return list
}

// VerifyBlock verifies one block and the zeros after it, as Verify does.
func (m *Manager) VerifyBlock(id block.ID, finding func(file string, off int64, id block.ID, problem string)) error {
	if err := m.verifyBlock(id, make([]byte, verifyBuffer), finding); err != nil {
		return fmt.Errorf("blockmanager: verify: %w", err)
	}
	return nil
}

// verifyBuffer is how many bytes of a block VerifyBlock reads at once.
const verifyBuffer = 64 << 10

// verifyMeta reads anchor and metadata from the disk again and compares them with memory.
func (m *Manager) verifyMeta(finding func(string, int64, block.ID, string)) error {
	m.commitMu.Lock()
	defer m.commitMu.Unlock()
	if m.closed.Load() {
		return fault.ErrClosed
	}
	a, err := readAnchor(&m.o)
	switch {
	case errors.Is(err, fault.ErrCorrupt), errors.Is(err, fault.ErrUnsupported):
		finding(anchorName, 0, 0, err.Error())
	case err != nil:
		return err
	default:
		for i, p := range a.problems {
			if p != nil {
				finding(anchorName, int64(i)*slotLen, 0, p.Error())
			}
		}
		if !a.newest().accepts(m.state.root) {
			finding(anchorName, 0, 0, fmt.Sprintf("does not accept epoch %d with hash %s", m.state.epoch, m.state.hash))
		}
	}
	var again *state
	if m.meta != nil && !m.poison.is() {
		again, err = loadState(&m.o, m.meta)
	} else {
		again, err = readMeta(&m.o)
	}
	switch {
	case errors.Is(err, fault.ErrCorrupt), errors.Is(err, fault.ErrUnsupported):
		finding("meta", 0, 0, err.Error())
	case err != nil:
		return err
	case again.root != m.state.root && !m.poison.is():
		finding("meta", 0, 0, fmt.Sprintf("is at epoch %d with hash %s, want epoch %d with hash %s",
			again.epoch, again.hash, m.state.epoch, m.state.hash))
	}
	return nil
}

// verifyFollowed is verifyMeta next to a writer. Findings while the writer commits say nothing, and
// once it has committed, the metadata is another.
func (m *Manager) verifyFollowed(finding func(string, int64, block.ID, string)) error {
	for try := 1; ; try++ {
		var found []func()
		err := m.verifyMeta(func(file string, off int64, id block.ID, problem string) {
			found = append(found, func() { finding(file, off, id, problem) })
		})
		if err == nil && len(found) == 0 {
			return nil
		}
		if epoch, err := m.AnchorEpoch(); err == nil && epoch > m.Epoch() {
			return nil
		}
		if try == verifyTries {
			for _, report := range found {
				report()
			}
			return err
		}
		time.Sleep(verifySleep)
	}
}

// How often, and at what intervals, a follower looks at metadata that seems damaged.
const (
	verifyTries = 4
	verifySleep = 20 * time.Millisecond
)

func (m *Manager) verifyHeader(c *container, finding func(string, int64, block.ID, string)) error {
	m.mu.RLock()
	if c.row.state == containerDead || m.closed.Load() {
		m.mu.RUnlock()
		return nil
	}
	file := c.file
	c.refs.Add(1)
	file.refs.Add(1)
	m.mu.RUnlock()
	defer func() {
		file.release()
		c.refs.Add(-1)
	}()
	path := "data/" + c.name()
	err := checkContainer(&m.o, c.id, file.f, 0)
	if errors.Is(err, fault.ErrCorrupt) || errors.Is(err, fault.ErrUnsupported) {
		finding(path, 0, 0, err.Error())
	} else if err != nil {
		return err
	}
	first := alignUp(headerLen, m.state.format.blockSize)
	rest := make([]byte, first-headerLen)
	if n, err := file.f.ReadAt(rest, headerLen); err != nil && !errors.Is(err, io.EOF) {
		return err
	} else if !allZero(rest[:n]) {
		finding(path, headerLen, 0, "bytes between header page and first block are not zero")
	}
	return nil
}

func (m *Manager) verifyBlock(id block.ID, buf []byte, finding func(string, int64, block.ID, string)) error {
	s, err := m.OpenBlock(id)
	m.mu.RLock()
	b := m.state.blocks[id]
	m.mu.RUnlock()
	switch {
	case errors.Is(err, fault.ErrNotFound):
		return nil
	case errors.Is(err, fault.ErrCorrupt):
		if b != nil {
			finding("data/"+b.in.name(), b.off, id, err.Error())
		}
		return nil
	case err != nil:
		return err
	}
	defer s.Close()
	src := s.(*source)
	report := func(off int64, problem string) {
		finding("data/"+src.b.in.name(), src.b.off+off, id, problem)
	}
	sum := xxh3.New()
	for off := int64(0); off < s.Size(); {
		n, err := s.ReadAt(buf[:min(int64(len(buf)), s.Size()-off)], off)
		if errors.Is(err, fault.ErrCorrupt) {
			report(off, err.Error())
			return nil
		} else if err != nil {
			return err
		}
		sum.Write(buf[:n])
		off += int64(n)
	}
	if got := sum.Sum64(); got != src.b.sum {
		report(0, fmt.Sprintf("checksum %016x, want %016x", got, src.b.sum))
	}
	pad := make([]byte, alignUp(s.Size(), m.state.format.blockSize)-s.Size())
	n, err := src.file.f.ReadAt(pad, src.b.off+s.Size())
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	if !allZero(pad[:n]) {
		report(s.Size(), "bytes between its end and the next block are not zero")
	}
	return nil
}
