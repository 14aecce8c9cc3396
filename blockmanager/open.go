package blockmanager

import (
	"errors"
	"fmt"
	"time"

	"github.com/oribi-db/oribi/block"
	"github.com/oribi-db/oribi/internal/fault"
)

// Open reads and checks the metadata in a directory. It writes nothing.
//
// The caller holds the store's lock, shared or exclusive, unless Options.Follow is set. Errors:
// ErrCorrupt, with the location, for metadata that is damaged or older than the anchor;
// ErrUnsupported for a newer format. Errors of the operating system are returned unchanged.
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
	if m.state.epoch > a.epoch && !m.o.Follow {
		m.o.Logger.Warn("metadata is ahead of the anchor", "epoch", m.state.epoch, "anchor", a.epoch)
	}
	for i, p := range m.anchor.problems {
		if p != nil && !m.o.Follow { // else a writer may be writing it
			m.o.Logger.Warn("anchor slot is invalid; using the other one", "slot", i, "err", p)
		}
	}
	if a.confirms(m.state.root) {
		m.confirmedEpoch, m.confirmedLogStart = m.state.epoch, m.state.logStart
		m.confirmedOnRequest.Store(m.state.epoch)
	}
	now := time.Now()
	for _, d := range m.state.dead {
		d.died, d.since = m.state.epoch, now
	}
	for _, c := range m.state.containers {
		c.died, c.since = m.state.epoch, now
	}
	m.nextID = block.ID(m.state.mark)
	return m.openContainers()
}

// readMeta loads the metadata without writing, and closes Pebble again.
func readMeta(o *Options) (*state, error) {
	var view *metaView
	if o.Follow {
		var err error
		if view, err = viewMeta(o); err != nil {
			return nil, fmt.Errorf("metadata: %w", metaError(err))
		}
		defer view.close()
		copied := *o
		copied.FS = view
		o = &copied
	}
	meta, err := openMeta(o, metaRead, newPoison())
	if err != nil {
		return nil, err
	}
	st, err := loadState(o, meta)
	if err := errors.Join(err, meta.close()); err != nil {
		return nil, err
	}
	st.view = view
	return st, nil
}

func (m *Manager) openContainers() error { return m.state.open(&m.o) }

// open opens the containers that are not open. After an error none is open.
func (s *state) open(o *Options) error {
	last := map[*container]int64{}
	for _, b := range s.blocks {
		if b.length > 0 { // an empty block may be at the end of the file, or beyond it
			last[b.in] = max(last[b.in], b.off+b.length)
		}
	}
	for _, c := range s.containers {
		if c.row.state == containerDead || c.file != nil {
			continue // possibly unlinked already
		}
		err := openContainer(o, c, last[c])
		if err != nil && o.tolerance != nil {
			openDamagedContainer(o, c, err)
		} else if err != nil {
			for _, c := range s.containers {
				c.closeFiles()
			}
			return err
		}
	}
	return nil
}
