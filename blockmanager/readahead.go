package blockmanager

import (
	"cmp"
	"errors"
	"io"
	"slices"

	"github.com/oribi-db/oribi/block"
	"github.com/oribi-db/oribi/internal/fault"
)

// aheadBytes is the size of a read of ReadAhead.
const aheadBytes = 1 << 20

// ReadAhead reads all committed blocks, in the order of their places, so that the system has them
// in memory. If they have more than limit bytes, it reads nothing. It does not check them. read is
// the number of bytes read, also with an error.
func (m *Manager) ReadAhead(limit int64) (read int64, err error) {
	m.mu.RLock()
	blocks, sum := make([]*liveBlock, 0, len(m.state.blocks)), int64(0)
	for _, b := range m.state.blocks {
		blocks, sum = append(blocks, b), sum+b.length
	}
	m.mu.RUnlock()
	if sum > limit {
		return 0, nil
	}
	slices.SortFunc(blocks, func(a, b *liveBlock) int {
		return cmp.Or(slices.Compare(a.container[:], b.container[:]), cmp.Compare(a.off, b.off))
	})
	buf := make([]byte, min(aheadBytes, sum))
	for _, b := range blocks {
		n, err := m.readAll(b.id, buf)
		if read += n; err != nil {
			return read, err
		}
	}
	return read, nil
}

// readAll reads a block, if it is still there, in pieces of the size of buf.
func (m *Manager) readAll(id block.ID, buf []byte) (read int64, err error) {
	m.mu.RLock()
	s, err := m.source(id, m.state.blocks[id])
	m.mu.RUnlock()
	if errors.Is(err, fault.ErrNotFound) {
		return 0, nil
	} else if err != nil {
		return 0, err
	}
	defer s.Close()
	for read < s.Size() {
		n, err := s.ReadAt(buf[:min(int64(len(buf)), s.Size()-read)], read)
		if read += int64(n); err != nil && !errors.Is(err, io.EOF) {
			return read, err
		}
	}
	return read, nil
}
