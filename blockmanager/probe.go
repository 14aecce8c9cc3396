package blockmanager

import (
	"errors"
	"slices"
	"strings"

	"github.com/oribi-db/oribi/internal/fault"
)

// probePunch finds out at the open for writing whether holes can be punched, before the first block
// dies: where they cannot, containers are emptied by copying much earlier (sparse).
//
// It punches one block behind the end of a container that is there. Nothing is there to be given
// back: what a crash had left behind the end has just been cut off, and no state that the anchor
// accepts has a block there. So no byte changes, whatever the answer, and a crash leaves nothing
// behind. A file system says that it cannot before it looks at the range. Any other error is taken
// for a no too: copying gives the space back as well, and nothing was written whose loss could
// matter.
//
// A store without a container has nothing to give back yet; there the first range that is punched
// tells. The caller holds commitMu.
func (m *Manager) probePunch() {
	m.canPunch = true
	var open []*container
	for _, c := range m.state.containers {
		if c.row.state != containerDead {
			open = append(open, c)
		}
	}
	if len(open) == 0 {
		return
	}
	c := slices.MinFunc(open, func(a, b *container) int { return strings.Compare(a.name(), b.name()) })
	if err := c.punch(&m.o, c.row.next, m.state.format.blockSize); err != nil {
		m.cannotPunch(err)
	}
}

// cannotPunch has space given back by copying from now on.
func (m *Manager) cannotPunch(err error) {
	m.canPunch = false
	if errors.Is(err, fault.ErrUnsupported) {
		m.o.Logger.Info("the file system cannot give back space inside a file: containers with little left in them are copied", "err", err)
	} else {
		m.o.Logger.Warn("giving back space inside a file failed: containers with little left in them are copied", "err", err)
	}
}
