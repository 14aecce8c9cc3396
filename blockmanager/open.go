package blockmanager

import (
	"errors"
	"fmt"

	"github.com/oribi-db/oribi/block"
	"github.com/oribi-db/oribi/internal/fault"
)

// Open reads and checks the metadata in a directory. It writes nothing.
//
// The caller holds the store's lock, shared or exclusive. Errors: ErrCorrupt, with the location,
// for metadata that is damaged or older than the anchor; ErrUnsupported for a newer format; those
// of the operating system unchanged.
func Open(o Options) (*Manager, error) {
	o, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	m := &Manager{o: o, poison: newPoison(), fresh: map[*container]struct{}{}}
	if err := m.read(); err != nil {
		return nil, fmt.Errorf("blockmanager: open: %w", err)
	}
	return m, nil
}

func (m *Manager) read() (err error) {
	if m.anchor, err = readAnchor(&m.o); err != nil {
		return err
	}
	if m.state, err = readMeta(&m.o); err != nil {
		return err
	}
	a := m.anchor.newest()
	if !a.accepts(m.state.root) {
		return fault.Corruptf("metadata is at epoch %d with hash %s, %s at epoch %d with hash %s",
			m.state.epoch, m.state.hash, anchorName, a.epoch, a.hash)
	}
	if m.state.epoch > a.epoch {
		m.o.Logger.Warn("metadata is ahead of the anchor", "epoch", m.state.epoch, "anchor", a.epoch)
	}
	for i, p := range m.anchor.problems {
		if p != nil {
			m.o.Logger.Warn("anchor slot is invalid; using the other one", "slot", i, "err", p)
		}
	}
	if a.confirms(m.state.root) {
		m.confirmedEpoch, m.confirmedLogStart = m.state.epoch, m.state.logStart
		m.confirmedOnRequest.Store(m.state.epoch)
	}
	for _, d := range m.state.dead {
		d.died = m.state.epoch
	}
	m.nextID = block.ID(m.state.mark)
	return m.openContainers()
}

// readMeta loads the metadata without writing, and closes Pebble again.
func readMeta(o *Options) (*state, error) {
	meta, err := openMeta(o, metaRead, newPoison())
	if err != nil {
		return nil, err
	}
	st, err := loadState(o, meta)
	if err := errors.Join(err, meta.close()); err != nil {
		return nil, err
	}
	return st, nil
}

func (m *Manager) openContainers() error {
	last := map[*container]int64{}
	for _, b := range m.state.blocks {
		if b.length > 0 { // an empty block may be at the end of the file, or beyond it
			last[b.in] = max(last[b.in], b.off+b.length)
		}
	}
	for _, c := range m.state.containers {
		c.died = m.state.epoch
		if c.row.state == containerDead {
			continue // possibly unlinked already
		}
		err := openContainer(&m.o, c, last[c])
		if err != nil && m.o.damaged != nil {
			openDamagedContainer(&m.o, c, err)
		} else if err != nil {
			for _, c := range m.state.containers {
				c.closeFiles()
			}
			return err
		}
	}
	return nil
}
