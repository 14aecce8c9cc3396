package blockmanager

import (
	"errors"
	"slices"
	"strings"

	"github.com/oribi-db/oribi/internal/fault"
)

// probePunch determines, when the manager is opened for writing and before the first block is
// dropped, whether holes can be punched. If not, containers are emptied by copying much earlier
// (see sparse).
//
// It punches one block after the end of an existing container. No bytes are there: bytes that a
// crash left after the end have just been cut off, and no state that the anchor accepts has a block
// there. So no byte changes, whatever the result, and a crash has no effect. A file system that
// cannot punch refuses before it looks at the range. Any other error is also treated as a refusal,
// since copying frees the space as well and no data was written that could be lost.
//
// A store without containers has no space to free; its first punched range determines the answer.
// The caller holds commitMu.
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

// cannotPunch makes the manager free space by copying from now on.
func (m *Manager) cannotPunch(err error) {
	m.canPunch = false
	if errors.Is(err, fault.ErrUnsupported) {
		m.o.Logger.Info("the file system cannot punch holes: containers with few live bytes are copied instead",
			"err", err)
	} else {
		m.o.Logger.Warn("punching a hole failed: containers with few live bytes are copied instead", "err", err)
	}
}
