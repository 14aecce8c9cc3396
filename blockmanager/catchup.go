package blockmanager

import (
	"bytes"
	"fmt"
	"maps"
	"slices"

	"github.com/oribi-db/oribi/block"
	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/lsn"
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

// caughtUp is the difference between the state of a follower and a later one. A row that is removed
// has a nil value; a container that is removed has no row.
type caughtUp struct {
	rows map[string][]byte // by key, the root row included
	root root
	at   int64 // where the next record of the journal begins

	blocks     map[block.ID]*liveBlock
	containers map[containerID]*container // new ones, or the state's
	next       map[*container]containerRow
	removed    []*container
	opened     []*container
	dead       map[string]*deadRange
	mark       uint64
	logStart   lsn.LSN
}

// catchUp moves a follower to the state that the anchor announces by the changes in the journal,
// and returns the keys of the caller's rows that have changed. If the journal does not lead there,
// it returns false and changes nothing.
func (m *Manager) catchUp(a *anchor) (changed [][]byte, done bool) {
	c := &caughtUp{rows: map[string][]byte{}}
	if c.read(m) != nil || c.root.epoch < a.newest().epoch || !a.newest().accepts(c.root) {
		return nil, false
	}
	err := c.plan(m.state)
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

// plan decodes the rows, and checks them against the state as loadState does.
func (c *caughtUp) plan(st *state) (err error) {
	c.blocks, c.containers, c.dead = map[block.ID]*liveBlock{}, map[containerID]*container{}, map[string]*deadRange{}
	c.next, c.mark, c.logStart = map[*container]containerRow{}, st.mark, st.logStart
	// Containers and numbers first: the others are checked against them.
	for _, key := range slices.Sorted(maps.Keys(c.rows)) {
		k, value := []byte(key), c.rows[key]
		var n uint64
		switch k[0] {
		case kindContainer:
			err = c.planContainer(st, k, value)
		case kindMark:
			c.mark, err = decodeNumber(k, value)
		case kindLogStart:
			n, err = decodeNumber(k, value)
			c.logStart = lsn.LSN(n)
		case kindBlock, kindDead, kindRoot, kindUser:
		default: // the format never changes
			err = badRow(k, value)
		}
		if err != nil {
			return err
		}
	}
	if c.mark == 0 || c.mark > maxMark {
		return fault.Corruptf("id mark %d", c.mark)
	}
	for key, value := range c.rows {
		switch k := []byte(key); k[0] {
		case kindBlock:
			err = c.planBlock(st, k, value)
		case kindDead:
			err = c.planDead(st, k, value)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (c *caughtUp) planContainer(st *state, key, value []byte) error {
	id := containerID(key[1:])
	old := st.containers[id]
	if value == nil {
		c.containers[id] = nil
		c.removed = append(c.removed, old)
		return nil
	}
	_, row, err := decodeContainer(key, value)
	if err != nil {
		return err
	}
	if !row.endsWell(st.format.blockSize) {
		return fault.Corruptf("container %s: ends at %d", id, row.next)
	}
	switch {
	case old == nil:
		c.containers[id] = &container{id: id, row: row}
	case row.state == containerDead: // readers of earlier states may need its file
		c.containers[id] = &container{id: id, row: row}
		c.removed = append(c.removed, old)
	case old.row.state == containerDead:
		return fault.Corruptf("container %s: was dead", id)
	default:
		c.containers[id], c.next[old] = old, row
	}
	return nil
}

// in returns a container and its row after the changes, or nil if the state after them has no such
// container.
func (c *caughtUp) in(st *state, id containerID) (*container, containerRow) {
	in, changed := c.containers[id]
	if !changed {
		in = st.containers[id]
	}
	if in == nil {
		return nil, containerRow{}
	}
	if row, ok := c.next[in]; ok {
		return in, row
	}
	return in, in.row
}

// fits checks a range of a container.
func (c *caughtUp) fits(st *state, row containerRow, off, length int64) error {
	if !row.contains(off, length, st.format.blockSize) {
		return fault.Corruptf("%d bytes at %d of a container that ends at %d", length, off, row.next)
	}
	return nil
}

func (c *caughtUp) planBlock(st *state, key, value []byte) error {
	id := decodeBlockKey(key)
	if value == nil {
		c.blocks[id] = nil
		return nil
	}
	b := &liveBlock{}
	var err error
	if b.id, b.blockRow, err = decodeBlock(key, value); err != nil {
		return err
	}
	in, row := c.in(st, b.container)
	if id == 0 || uint64(id) >= c.mark || in == nil || row.state == containerDead {
		return fault.Corruptf("block %d: id mark is %d, or container %s is not there", id, c.mark, b.container)
	}
	b.in, c.blocks[id] = in, b
	return c.fits(st, row, b.off, b.length)
}

func (c *caughtUp) planDead(st *state, key, value []byte) error {
	if value == nil {
		c.dead[string(key)] = nil
		return nil
	}
	id, off, length, err := decodeDead(key, value)
	if err != nil {
		return err
	}
	in, row := c.in(st, id)
	if in == nil {
		return fault.Corruptf("dead range in unknown container %s", id)
	}
	c.dead[string(key)] = &deadRange{in: in, off: off, length: length, died: c.root.epoch}
	return c.fits(st, row, off, length)
}

// open opens the new containers.
func (c *caughtUp) open(o *Options) error {
	last := map[*container]int64{}
	for _, b := range c.blocks {
		if b != nil && b.length > 0 {
			last[b.in] = max(last[b.in], b.off+b.length)
		}
	}
	for _, in := range c.containers {
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

// install makes the changes visible. The caller holds m.mu.
func (c *caughtUp) install(m *Manager) (changed [][]byte) {
	st := m.state
	if m.older == nil {
		m.older = map[block.ID]*liveBlock{}
	}
	for id, in := range c.containers {
		if in == nil {
			delete(st.containers, id)
		} else {
			st.containers[id] = in
		}
	}
	for in, row := range c.next {
		in.row = row
	}
	for id, b := range c.blocks {
		if old := st.blocks[id]; old != nil {
			old.in.live--
			if b == nil {
				m.older[id] = old
			}
		}
		if b == nil {
			delete(st.blocks, id)
			continue
		}
		st.blocks[id] = b
		b.in.live++
	}
	for key, d := range c.dead {
		if d == nil {
			delete(st.dead, key)
		} else {
			st.dead[key] = d
		}
	}
	for _, old := range c.removed {
		if old != nil {
			m.retired = append(m.retired, old)
		}
	}
	for key, value := range c.rows {
		if key[0] != kindUser {
			continue
		}
		changed = append(changed, []byte(key[1:]))
		if value == nil {
			st.caller.delete(key[1:])
		} else {
			st.caller.put(key[1:], bytes.Clone(value))
		}
	}
	st.root, st.mark, st.logStart = c.root, c.mark, c.logStart
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
