package blockmanager

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"time"

	"github.com/oribi-db/oribi/internal/fault"
)

// release frees the space of blocks and containers that were dropped in a confirmed epoch and are
// not open, in this process or, as far as Options.Kept says, another: dead ranges are punched, dead
// containers unlinked. The next commit removes their rows.
//
// No state that the anchor still accepts has a block there: states that did are older than the
// confirmed epoch, and no range is used twice. A punched container is synced before its row may be
// removed; if the punch were lost afterwards, no row would record the space.
//
// The caller holds commitMu and poisons the manager if release fails.
func (m *Manager) release() error {
	var k kept
	if err := m.punchRanges(&k); err != nil {
		return err
	}
	m.unlinkContainers(&k)
	return nil
}

// kept is the space that must not be freed because readers in other processes may need it. It asks
// for the readers' needs once, when the first block or container is due.
type kept struct {
	asked bool
	epoch uint64
	old   time.Time
}

// allows reports whether what a commit has dropped may be freed.
func (k *kept) allows(o *Options, died uint64, since time.Time) bool {
	if o.Kept == nil {
		return true
	}
	if !k.asked {
		k.epoch, k.old = o.Kept()
		k.asked = true
	}
	return died <= k.epoch || since.Before(k.old)
}

func (m *Manager) punchRanges(k *kept) error {
	if !m.canPunch {
		return nil
	}
	var due []*deadRange
	for _, d := range m.state.dead {
		if !d.punched && d.died <= m.confirmedEpoch && d.in.row.state != containerDead &&
			(d.block == nil || d.block.refs.Load() == 0) && k.allows(&m.o, d.died, d.since) {
			due = append(due, d)
		}
	}
	slices.SortFunc(due, func(a, b *deadRange) int {
		return cmp.Or(strings.Compare(a.in.name(), b.in.name()), cmp.Compare(a.off, b.off))
	})
	for len(due) > 0 {
		n := 1
		for n < len(due) && due[n].in == due[0].in {
			n++
		}
		err := m.punchContainer(due[0].in, due[:n])
		if errors.Is(err, fault.ErrUnsupported) {
			m.cannotPunch(err)
			return nil
		} else if err != nil {
			return err
		}
		due = due[n:]
	}
	return nil
}

// punchContainer punches ranges of one container, adjacent ones in one call.
func (m *Manager) punchContainer(c *container, due []*deadRange) error {
	end := func(d *deadRange) int64 { return d.off + alignUp(d.length, m.state.format.blockSize) }
	for i := 0; i < len(due); {
		from, to := due[i].off, end(due[i])
		for i++; i < len(due) && due[i].off == to; i++ {
			to = end(due[i])
		}
		if err := c.punch(&m.o, from, to-from); err != nil {
			return err
		}
	}
	if err := c.sync(&m.o); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, d := range due {
		d.punched = true
	}
	return nil
}

func (m *Manager) unlinkContainers(k *kept) {
	for _, c := range m.state.containers {
		if c.row.state != containerDead || c.unlinked || c.died > m.confirmedEpoch || c.refs.Load() > 0 ||
			!k.allows(&m.o, c.died, c.since) {
			continue
		}
		err := errors.Join(c.closeFiles(), m.o.FS.Remove(m.o.dataPath(c.name())))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			m.o.Logger.Warn("dead container stays for now", "container", c.id, "err", err)
			continue
		}
		m.mu.Lock()
		c.unlinked = true
		m.mu.Unlock()
	}
}

// String returns the location of a dead range.
func (d *deadRange) String() string {
	return fmt.Sprintf("%d bytes at %d of container %s", d.length, d.off, d.in.id)
}
