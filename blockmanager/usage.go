package blockmanager

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math"
	"slices"

	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/vfs"
)

// Usage explains what one file in data/ takes of the disk, all in bytes. Header, Live, Alignment,
// Dead, Reserved and Other add up to Allocated.
type Usage struct {
	Name      string // in data/
	Length    int64  // of the file
	Allocated int64  // by the file system, see vfs.Allocated

	Header    int64 // header page, up to where blocks begin
	Live      int64 // blocks that the metadata names
	Alignment int64 // zeros between the end of a live block and the next multiple of the block size
	Dead      int64 // dropped blocks whose space is not freed yet, with the zeros that align them
	Reserved  int64 // after the last committed block: reserved ahead, or of uncommitted blocks
	// Other is the space that the file system itself adds, such as the blocks in which it lists a
	// file's extents. It is negative if the file system compresses.
	Other int64

	Stray bool // no row names it: a crash left it, and the next writer removes it. All of it is Reserved.
}

// Usage returns the usage of each container in data/ that belongs to the store, by name. The
// figures are exact unless commits run at the same time.
func (m *Manager) Usage() ([]Usage, error) {
	names, err := m.o.FS.List(m.o.dataDir())
	if err != nil {
		return nil, fmt.Errorf("blockmanager: usage: %w", err)
	}
	known, err := m.ranges()
	if err != nil {
		return nil, err
	}
	var out []Usage
	for _, name := range names {
		id, ok := containerName(name)
		if !ok {
			continue
		}
		info, err := m.o.FS.Stat(m.o.dataPath(name))
		if errors.Is(err, fs.ErrNotExist) {
			continue // unlinked since then
		} else if err != nil {
			return nil, fmt.Errorf("blockmanager: usage: %w", err)
		}
		u := Usage{Stray: true}
		k := known[id]
		if k != nil {
			u = k.Usage
		} else if !m.recognizes(name, id) {
			continue
		}
		u.Name, u.Length, u.Allocated = name, info.Size(), vfs.Allocated(info)
		rest := u.Allocated - u.Header - u.Live - u.Alignment
		switch {
		case k == nil:
			u.Reserved = rest
		case k.dead:
			u.Dead = rest
		default:
			// Ranges that were punched and whose rows no commit has removed yet take nothing.
			u.Dead = max(0, min(rest, u.Dead))
			u.Reserved = max(0, min(rest-u.Dead, k.ahead))
			u.Other = rest - u.Dead - u.Reserved
		}
		out = append(out, u)
	}
	return out, nil
}

// containerUse is the use of a container's space according to the metadata.
type containerUse struct {
	Usage
	dead  bool
	ahead int64 // the most that may be reserved after its last committed block
}

func (m *Manager) ranges() (map[containerID]*containerUse, error) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	if m.closed.Load() {
		return nil, fmt.Errorf("blockmanager: usage: %w", fault.ErrClosed)
	}
	size := m.state.format.blockSize
	known := map[containerID]*containerUse{}
	for _, c := range slices.AppendSeq(slices.Collect(maps.Values(m.state.containers)), maps.Keys(m.fresh)) {
		u := &containerUse{dead: c.row.state == containerDead, ahead: math.MaxInt64}
		u.Header = alignUp(headerLen, size)
		if m.meta != nil {
			u.ahead = c.reservedAbove(c.row.next)
		}
		known[c.id] = u
	}
	for _, b := range m.state.blocks {
		u := known[b.container]
		u.Live += b.length
		u.Alignment += alignUp(b.length, size) - b.length
	}
	for _, d := range m.state.dead {
		if u := known[d.in.id]; !d.punched && !u.dead {
			u.Dead += alignUp(d.length, size)
		}
	}
	return known, nil
}

// alignedUse is how much of each container its header page, its live blocks and its dead ranges
// take.
func (s *state) alignedUse() map[*container]int64 {
	use := map[*container]int64{}
	for _, c := range s.containers {
		use[c] = alignUp(headerLen, s.format.blockSize)
	}
	for _, b := range s.blocks {
		use[b.in] += alignUp(b.length, s.format.blockSize)
	}
	for _, d := range s.dead {
		use[d.in] += alignUp(d.length, s.format.blockSize)
	}
	return use
}
