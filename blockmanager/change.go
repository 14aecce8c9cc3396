package blockmanager

import (
	"github.com/oribi-db/oribi/block"
	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/lsn"
)

// stateChange is the difference between two states of the metadata. There are three ways to a new
// state, and each makes a stateChange and applies it:
//
//	Open, Verify   all rows in Pebble, after an empty state   row, link, apply
//	a follower     the rows of some commits in the journal    row, link, apply
//	a commit       its plan, which stages the same rows       apply
//
// The plan of a commit needs no link: it is made from the blocks and containers of the state. So
// the meaning of a row is only in row, the conditions on it are only in link, and the effect on the
// state is only in apply.
type stateChange struct {
	root     root
	format   formatRow
	mark     uint64
	logStart lsn.LSN

	// By key; nil removes the entry of the state.
	blocks     map[block.ID]*liveBlock
	containers map[containerID]*container // new ones, and known ones with a new row
	dead       map[string]*deadRange

	next   map[*container]containerRow // the new rows of containers that the state has
	caller []Row                       // in this order; a nil value removes the row
}

// newStateChange returns a change that changes nothing of st.
func newStateChange(st *state) stateChange {
	return stateChange{
		root:       st.root,
		format:     st.format,
		mark:       st.mark,
		logStart:   st.logStart,
		blocks:     map[block.ID]*liveBlock{},
		containers: map[containerID]*container{},
		dead:       map[string]*deadRange{},
		next:       map[*container]containerRow{},
	}
}

// row adds a row with its new value, or its removal if v is nil. It copies what it keeps. Errors:
// ErrCorrupt for a row that is malformed by itself; ErrUnsupported for a newer format.
func (c *stateChange) row(key, v []byte) (err error) {
	if len(key) == 0 {
		return fault.Corruptf("metadata: empty key")
	}
	switch key[0] {
	case kindBlock:
		if v == nil && len(key) == blockKeyLen {
			c.blocks[decodeBlockKey(key)] = nil
			return nil
		}
		b := &liveBlock{}
		b.id, b.blockRow, err = decodeBlock(key, v)
		c.blocks[b.id] = b
	case kindContainer:
		if v == nil && len(key) == containerKeyLen {
			c.containers[containerID(key[1:])] = nil
			return nil
		}
		in := &container{}
		in.id, in.row, err = decodeContainer(key, v)
		c.containers[in.id] = in
	case kindDead:
		var d *deadRange
		if v != nil {
			d = &deadRange{}
			_, d.off, d.length, err = decodeDead(key, v)
		}
		c.dead[string(key)] = d
	case kindFormat:
		c.format, err = decodeFormat(key, v)
	case kindMark:
		c.mark, err = decodeNumber(key, v)
	case kindLogStart:
		var n uint64
		n, err = decodeNumber(key, v)
		c.logStart = lsn.LSN(n)
	case kindRoot:
		c.root, err = decodeRoot(key, v)
	case kindUser:
		r := Row{Key: append([]byte{}, key[1:]...)}
		if v != nil {
			r.Value = append([]byte{}, v...)
		}
		c.caller = append(c.caller, r)
	default:
		return fault.Corruptf("metadata: row %x is of no known kind", clip(key))
	}
	return err
}

// link finds the containers of the blocks and dead ranges, and checks that all that has changed is
// consistent with the rest of the state after the change. It does not check that the ranges of a
// container are disjoint; see checkOverlaps. Errors: ErrCorrupt.
func (c *stateChange) link(st *state) error {
	if c.mark == 0 || c.mark > maxMark {
		return fault.Corruptf("id mark %d", c.mark)
	}
	if st.format != (formatRow{}) && c.format != st.format {
		return fault.Corruptf("the format has changed")
	}
	if err := c.linkContainers(st); err != nil {
		return err
	}
	for id, b := range c.blocks {
		if b == nil {
			continue
		}
		if id == 0 || uint64(id) >= c.mark {
			return fault.Corruptf("block %d: id mark is %d", id, c.mark)
		}
		in, row := c.in(st, b.container)
		if in == nil || row.state == containerDead {
			return fault.Corruptf("block %d: container %s is not there", id, b.container)
		}
		b.in = in
		if !row.contains(b.off, b.length, c.format.blockSize) {
			return fault.Corruptf("block %d: %d bytes at %d of container %s, which ends at %d", id, b.length,
				b.off, in.id, row.next)
		}
	}
	for key, d := range c.dead {
		if d == nil {
			continue
		}
		id := containerID([]byte(key[1:containerKeyLen]))
		in, row := c.in(st, id)
		if in == nil {
			return fault.Corruptf("dead range in unknown container %s", id)
		}
		d.in, d.died = in, c.root.epoch
		if !row.contains(d.off, d.length, c.format.blockSize) {
			return fault.Corruptf("dead range: %d bytes at %d of container %s, which ends at %d", d.length, d.off,
				id, row.next)
		}
	}
	return nil
}

// linkContainers replaces each new container by the container of the state with the same ID. A
// container that has died remains a new one, since readers of earlier states may need the file of
// the old container.
func (c *stateChange) linkContainers(st *state) error {
	for id, in := range c.containers {
		if in == nil {
			continue
		}
		if !in.row.endsWell(c.format.blockSize) {
			return fault.Corruptf("container %s: ends at %d", id, in.row.next)
		}
		old := st.containers[id]
		switch {
		case old == nil || in.row.state == containerDead:
		case old.row.state == containerDead:
			return fault.Corruptf("container %s: was dead", id)
		default:
			c.containers[id], c.next[old] = old, in.row
		}
	}
	return nil
}

// in returns a container and its row after the change, or nil if the state after it has no such
// container.
func (c *stateChange) in(st *state, id containerID) (*container, containerRow) {
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

// apply makes st the state after the change. The caller holds Manager.mu if others use the state.
// The format is read without it, and never changes.
func (st *state) apply(c *stateChange) {
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
	for _, r := range c.caller {
		if r.Value == nil {
			st.caller.delete(string(r.Key))
		} else {
			st.caller.put(string(r.Key), r.Value)
		}
	}
	if st.format == (formatRow{}) {
		st.format = c.format
	}
	st.root, st.mark, st.logStart = c.root, c.mark, c.logStart
}
