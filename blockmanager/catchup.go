package blockmanager

import (
	"bytes"
	"fmt"

	"github.com/oribi-db/oribi/block"
	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/vfs"
)

// A follower need not read all metadata again after each commit: the journal has the changes.
//
//	writer     intent of e+1   Pebble: e+1   journal: e+1   confirms e+1
//	follower   at e                                                       anchor: e+1   journal: e+1
//
// Nothing depends on the journal. The changes count if they lead from the follower's state to one
// with the set hash in its root row and in the anchor, as the rows in Pebble must. Otherwise, as
// when the writer is between Pebble and the journal, or could not write the journal, the follower
// reads all rows.

// catchUpBytes is how many bytes of changes a follower takes from the journal at most.
const catchUpBytes = 16 << 20

// caughtUp is the difference between the state of a follower and a later one.
type caughtUp struct {
	rows map[string][]byte // by key, the root row included; nil for a row that is removed
	root root
	at   int64 // where the next record of the journal begins

	change stateChange
	opened []*container
}

// catchUp moves a follower to the state that the anchor announces by the changes in the journal,
// and returns the keys of the caller's rows that have changed. If the journal does not lead there,
// it returns false and changes nothing.
func (m *Manager) catchUp(a *anchor) (changed [][]byte, done bool) {
	c := &caughtUp{rows: map[string][]byte{}}
	if c.read(m) != nil || c.root.epoch < a.newest().epoch || !a.newest().accepts(c.root) {
		return nil, false
	}
	err := c.decode(m.state)
	if err == nil {
		err = c.open(&m.o)
	}
	if err != nil {
		for _, in := range c.opened {
			in.closeFiles()
		}
		return nil, false
	}
	m.anchor, m.journalAt, m.state.view = a, c.at, nil
	m.mu.Lock()
	defer m.mu.Unlock()
	return c.install(m), true
}

// read reads the changes after the manager's state, and checks that they are whole.
func (c *caughtUp) read(m *Manager) error {
	f, err := m.o.FS.Open(m.o.journalPath(JournalName), false)
	if err != nil {
		return err
	}
	defer f.Close()
	size, err := f.Size()
	if err != nil {
		return err
	}
	epoch, left := m.state.epoch, int64(catchUpBytes)
	if c.at, err = m.findJournal(f, size); err != nil {
		return err
	}
	for c.at < size {
		h, err := readJournalHead(f, c.at, size, m.o.Instance)
		if err != nil || h.kind != journalChanges || h.previous != epoch {
			break // it is being written
		}
		if left -= h.length; left < 0 {
			return fault.Corruptf("%s: more than %d bytes of changes", JournalName, int64(catchUpBytes))
		}
		payload, err := h.read(f, c.at)
		if err != nil {
			break
		}
		err = journalRows(payload, func(key, value []byte) { c.rows[string(key)] = value })
		if err != nil {
			return err
		}
		epoch, c.at = h.epoch, c.at+h.size()
	}
	key := string([]byte{kindRoot})
	if c.rows[key] == nil {
		return fault.Corruptf("%s: no changes after epoch %d", JournalName, m.state.epoch)
	}
	if c.root, err = decodeRoot([]byte(key), c.rows[key]); err != nil {
		return err
	}
	if sum, err := c.hash(m.state); err != nil || sum != c.root.hash || c.root.epoch != epoch {
		return fault.Corruptf("%s: changes up to epoch %d, hash %s, the root of epoch %d says %s", JournalName,
			epoch, sum, c.root.epoch, c.root.hash)
	}
	return nil
}

// findJournal returns where the first record after the manager's state begins. That is where the
// last call has stopped, unless the writer has written the journal anew.
func (m *Manager) findJournal(f vfs.File, size int64) (int64, error) {
	epoch := m.state.epoch
	if at := m.journalAt; at > 0 && at < size {
		if h, err := readJournalHead(f, at, size, m.o.Instance); err == nil && h.kind == journalChanges &&
			h.previous == epoch {
			return at, nil
		}
	}
	for at := int64(0); at < size; {
		h, err := readJournalHead(f, at, size, m.o.Instance)
		switch {
		case err != nil:
			return 0, err
		case h.kind == journalChanges && h.previous == epoch:
			return at, nil
		case h.epoch > epoch:
			return 0, fault.Corruptf("%s: begins after epoch %d", JournalName, epoch)
		}
		if at += h.size(); h.epoch == epoch {
			return at, nil
		}
	}
	return 0, fault.Corruptf("%s: ends before epoch %d", JournalName, epoch)
}

// hash returns the set hash of the rows after the changes. It drops those that change nothing.
func (c *caughtUp) hash(st *state) (setHash, error) {
	sum := st.hash
	for key, value := range c.rows {
		k := []byte(key)
		if len(k) == 0 || k[0] == kindBlock && len(k) != blockKeyLen ||
			k[0] == kindContainer && len(k) != containerKeyLen {
			return sum, badRow(k, value)
		}
		if k[0] == kindRoot {
			continue
		}
		old := st.value(k)
		if (old == nil) == (value == nil) && bytes.Equal(old, value) {
			delete(c.rows, key)
			continue
		}
		if old != nil {
			sum.sub(k, old)
		}
		if value != nil {
			sum.add(k, value)
		}
	}
	return sum, nil
}

// decode makes the change of the state that the rows are.
func (c *caughtUp) decode(st *state) error {
	c.change = newStateChange(st)
	for key, value := range c.rows {
		if err := c.change.row([]byte(key), value); err != nil {
			return err
		}
	}
	return c.change.link(st)
}

// open opens the new containers.
func (c *caughtUp) open(o *Options) error {
	last := map[*container]int64{}
	for _, b := range c.change.blocks {
		if b != nil && b.length > 0 {
			last[b.in] = max(last[b.in], b.off+b.length)
		}
	}
	for _, in := range c.change.containers {
		if in == nil || in.file != nil || in.row.state == containerDead {
			continue
		}
		if err := openContainer(o, in, last[in]); err != nil {
			return fmt.Errorf("blockmanager: %w", err)
		}
		c.opened = append(c.opened, in)
	}
	return nil
}

// install makes the changes visible, and keeps the blocks and containers that are gone until
// Forget. The caller holds m.mu.
func (c *caughtUp) install(m *Manager) (changed [][]byte) {
	st := m.state
	if m.older == nil {
		m.older = map[block.ID]*liveBlock{}
	}
	for id, b := range c.change.blocks {
		if old := st.blocks[id]; b == nil && old != nil {
			m.older[id] = old
		}
	}
	for id, in := range c.change.containers {
		if old := st.containers[id]; old != nil && old != in {
			m.retired = append(m.retired, old)
		}
	}
	st.apply(&c.change)
	for _, r := range c.change.caller {
		changed = append(changed, r.Key)
	}
	return changed
}

// changedRows returns the keys of the caller's rows that differ between two states.
func changedRows(before, after *state) (keys [][]byte) {
	a, b := before.caller.withPrefix(""), after.caller.withPrefix("")
	for len(a) > 0 || len(b) > 0 {
		switch {
		case len(b) == 0 || len(a) > 0 && a[0].key < b[0].key:
			keys, a = append(keys, []byte(a[0].key)), a[1:]
		case len(a) == 0 || b[0].key < a[0].key:
			keys, b = append(keys, []byte(b[0].key)), b[1:]
		default:
			if !bytes.Equal(a[0].value, b[0].value) {
				keys = append(keys, []byte(a[0].key))
			}
			a, b = a[1:], b[1:]
		}
	}
	return keys
}
