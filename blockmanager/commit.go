package blockmanager

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/oribi-db/oribi/block"
	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/lsn"
)

// Edit is the content of one atomic commit.
type Edit struct {
	Created []*Creation // synced creations whose blocks become committed
	Dead    []block.ID  // blocks dropped
	Delete  [][]byte    // keys of the caller's rows; absent ones are ignored
	Put     []Row       // the caller's rows, applied after Delete; of equal keys the last one is used
	// LogStart is the lowest LSN that replay on the new state needs. The store's value never falls:
	// if two commits computed theirs before either happened, the higher one is used, since each may
	// rely on the other's files. 0 leaves it unchanged.
	LogStart lsn.LSN
	// Confirm makes the anchor accept no older state once Commit returns, for changes that the log
	// cannot restore.
	Confirm bool

	// Of Rewrite:
	moved   []*liveBlock // old locations of blocks that are created again with the same IDs
	stale   []*liveBlock // of those created: copies of blocks that no longer exist
	emptied *container   // container to remove, whether full or not
}

// Commit makes an edit durable and visible. Commits are serialized, in the order of their calls.
//
// Errors: ErrNotFound for a dead block that does not exist, and errors for creations that are not
// ready: nothing has changed. ErrNoSpace: nothing has changed, and the call may be tried again with
// the same creations. Every other error of a write poisons; the next open finds out whether the
// edit happened.
func (m *Manager) Commit(e Edit) error {
	m.commitMu.Lock()
	defer m.commitMu.Unlock()
	for i, c := range e.Created {
		if c == nil || slices.Contains(e.Created[:i], c) {
			return errors.New("blockmanager: commit: a creation is nil or listed twice")
		}
		c.mu.Lock() // in any order: no other goroutine locks two
		defer c.mu.Unlock()
	}
	return m.commit(e)
}

// commit is Commit under commitMu and the locks of its creations.
func (m *Manager) commit(e Edit) error {
	if err := m.writable(); err != nil {
		return err
	}
	p, err := m.plan(&e)
	if err != nil {
		return err
	}
	if err := m.metaSpace(p); err != nil {
		return err
	}
	if err := m.beforeCommit(); err != nil {
		return err
	}
	if err := m.intend(p); err != nil {
		return err
	}
	if err := m.meta.commit(p.ops); err != nil {
		return m.fail(err)
	}
	previous := m.state.epoch
	m.install(p)
	m.journal.record(m, p, previous)
	for _, op := range p.ops {
		m.unflushed += int64(len(op.key) + len(op.value))
	}
	if e.Confirm {
		if err := m.writeConfirmed(); err != nil {
			return err
		}
		m.confirmedOnRequest.Store(p.root.epoch)
	}
	if err := m.release(); err != nil {
		return m.fail(err)
	}
	return nil
}

// beforeCommit calls Options.BeforeCommit.
func (m *Manager) beforeCommit() error {
	if m.o.BeforeCommit == nil {
		return nil
	}
	if err := m.o.BeforeCommit(); err != nil {
		return m.fail(fmt.Errorf("commit: %w", err))
	}
	return nil
}

// keepForCommit is the free disk space that a commit requires in addition to twice its own bytes:
// for Pebble's log, and occasionally a table.
const keepForCommit = 512 << 10

// metaSpace refuses a commit that does not fit on the disk: Pebble treats a failed write as fatal.
func (m *Manager) metaSpace(p *plan) error {
	need := int64(keepForCommit)
	for _, op := range p.ops {
		need += 2 * int64(len(op.key)+len(op.value))
	}
	if free := m.o.FS.FreeBytes(m.o.metaDir()); free >= 0 && free < need {
		return fmt.Errorf("blockmanager: commit: %d bytes are free on the disk, want %d: %w", free, need,
			fault.ErrNoSpace)
	}
	return nil
}

// plan is a complete commit, computed before anything is written: the rows to write, and the change
// of the state that they are.
type plan struct {
	stateChange
	edit *Edit

	ops    []metaOp
	staged map[string]int // index into ops, by key
}

// plan computes the rows, root and hash of an edit.
func (m *Manager) plan(e *Edit) (*plan, error) {
	st := m.state
	p := &plan{stateChange: newStateChange(st), edit: e, staged: map[string]int{}}
	p.root.epoch = max(st.epoch, m.anchor.highest) + 1
	p.logStart = max(st.logStart, e.LogStart)
	if p.root.epoch >= maxEpoch {
		return nil, fault.Unsupportedf("blockmanager: commit: epoch %d", p.root.epoch)
	}
	if err := m.planCreated(p); err != nil {
		return nil, err
	}
	if err := m.planDead(p); err != nil {
		return nil, err
	}
	m.planForgotten(p)
	for c, row := range p.next {
		p.containers[c.id] = c
		p.put(st, containerKey(c.id), row.value())
	}
	if err := m.planMark(p); err != nil {
		return nil, err
	}
	p.put(st, []byte{kindLogStart}, numberValue(uint64(p.logStart)))
	for _, key := range e.Delete {
		p.caller = append(p.caller, Row{Key: key})
	}
	for _, r := range e.Put {
		p.caller = append(p.caller, Row{Key: r.Key, Value: append([]byte{}, r.Value...)})
	}
	for _, r := range p.caller {
		p.put(st, userKey(r.Key), r.Value)
	}
	p.ops = append(p.ops, metaOp{[]byte{kindRoot}, p.root.value()})
	return p, nil
}

// put stages a row, or its removal if value is nil, and updates the hash.
func (p *plan) put(st *state, key, value []byte) {
	i, again := p.staged[string(key)]
	old := st.value(key)
	if again {
		old = p.ops[i].value
	}
	if old == nil && value == nil && !again {
		return
	}
	if old != nil {
		p.root.hash.sub(key, old)
	}
	if value != nil {
		p.root.hash.add(key, value)
	}
	if again {
		p.ops[i].value = value
		return
	}
	p.staged[string(key)] = len(p.ops)
	p.ops = append(p.ops, metaOp{key, value})
}

func (m *Manager) planCreated(p *plan) error {
	for _, c := range p.edit.Created {
		if err := c.ready(m); err != nil {
			return err
		}
		for _, b := range c.blocks {
			if slices.Contains(p.edit.stale, b) {
				p.deadRange(m.state, b, nil)
			} else {
				p.put(m.state, blockKey(b.id), b.value())
				p.blocks[b.id] = b
			}
			row := containerRow{state: containerOpen, next: b.in.end}
			if row.next >= m.o.ContainerBytes {
				row.state = containerFull
			}
			p.next[b.in] = row
		}
	}
	return nil
}

// planDead drops blocks. A full container that loses its last block dies with it and needs no dead
// ranges.
func (m *Manager) planDead(p *plan) error {
	live := map[*container]int{}
	var created, dropped []*liveBlock
	for _, b := range p.blocks {
		created = append(created, b)
	}
	for _, id := range p.edit.Dead {
		b := m.state.blocks[id]
		if _, seen := p.blocks[id]; b == nil || seen {
			return fmt.Errorf("blockmanager: commit: dead block %d: %w", id, fault.ErrNotFound)
		}
		p.blocks[id] = nil
		dropped = append(dropped, b)
		p.put(m.state, blockKey(id), nil)
		if _, ok := live[b.in]; !ok {
			live[b.in] = b.in.live
		}
		live[b.in]--
	}
	for _, b := range p.edit.moved {
		dropped = append(dropped, b)
		live[b.in] = 0 // all of them move
	}
	if c := p.edit.emptied; c != nil {
		live[c] = 0
	}
	for _, b := range created {
		if _, ok := live[b.in]; ok {
			live[b.in]++
		}
	}
	removed := map[*container]bool{}
	m.mu.RLock()
	for c, n := range live {
		full := c.row.state == containerFull || c.row.next >= m.o.ContainerBytes
		if n == 0 && (full && !c.acquired || c == p.edit.emptied) {
			removed[c] = true
			p.next[c] = containerRow{state: containerDead, next: c.row.next}
		}
	}
	m.mu.RUnlock()
	for _, b := range dropped {
		if !removed[b.in] {
			p.deadRange(m.state, b, b)
		}
	}
	for key, d := range m.state.dead {
		if d.punched || removed[d.in] {
			p.dead[key] = nil
			p.put(m.state, []byte(key), nil)
		}
	}
	return nil
}

// deadRange marks the space of a block as dead; reader is the block that may still be open.
func (p *plan) deadRange(st *state, b, reader *liveBlock) {
	if b.length == 0 {
		return
	}
	key := deadKey(b.in.id, b.off)
	p.dead[string(key)] = &deadRange{in: b.in, off: b.off, length: b.length, died: p.root.epoch, block: reader}
	p.put(st, key, numberValue(uint64(b.length)))
}

// planForgotten removes the rows of containers whose files are gone.
func (m *Manager) planForgotten(p *plan) {
	for _, c := range m.state.containers {
		if c.unlinked {
			p.containers[c.id] = nil
			p.put(m.state, containerKey(c.id), nil)
		}
	}
}

// planMark raises the ID mark when less than half of a reserve is left.
func (m *Manager) planMark(p *plan) error {
	m.mu.RLock()
	next := uint64(m.nextID)
	m.mu.RUnlock()
	p.mark = m.state.mark
	if next+idReserve/2 <= p.mark {
		return nil
	}
	if p.mark = next + idReserve; p.mark > maxMark {
		return fault.Unsupportedf("blockmanager: commit: block ids are used up at %d", next)
	}
	p.put(m.state, []byte{kindMark}, numberValue(p.mark))
	return nil
}

// intend writes the intent. With it durable the anchor accepts the current state and the next, no
// older one: the current one is confirmed.
func (m *Manager) intend(p *plan) error {
	synced, err := m.anchor.write(slot{state: slotIntent, root: p.root, previous: m.state.hash})
	switch {
	case err == nil:
	case !synced && errors.Is(err, fault.ErrNoSpace):
		return fmt.Errorf("blockmanager: commit: %w", err)
	default:
		return m.fail(err)
	}
	m.confirmed()
	return nil
}

// confirmed records that the anchor accepts no state before the current one.
func (m *Manager) confirmed() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.confirmedEpoch, m.confirmedLogStart = m.state.epoch, m.state.logStart
}

// install makes a durable plan visible.
func (m *Manager) install(p *plan) {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := time.Now()
	for _, d := range p.dead {
		if d != nil {
			d.since = now
		}
	}
	m.state.apply(&p.stateChange)
	for c, row := range p.next {
		delete(m.fresh, c)
		if row.state == containerDead {
			c.died, c.since, c.acquired = p.root.epoch, now, false
		}
	}
	for _, c := range p.edit.Created {
		c.ended = true
		for _, in := range c.acquired {
			m.releaseContainer(in)
		}
		c.acquired, c.free = nil, nil
	}
}

// Confirm makes the anchor accept no state before the current one and frees space that has become
// free. It does nothing if both are done. Callers call it when idle.
func (m *Manager) Confirm() error {
	m.commitMu.Lock()
	defer m.commitMu.Unlock()
	if err := m.writable(); err != nil {
		return err
	}
	return m.confirm()
}

// confirm is Confirm under commitMu.
func (m *Manager) confirm() error {
	if err := m.beforeCommit(); err != nil {
		return err
	}
	if err := m.writeConfirmed(); err != nil {
		return err
	}
	if err := m.release(); err != nil {
		return m.fail(err)
	}
	if m.unflushed >= flushWhenIdle {
		if err := m.meta.flush(); err != nil {
			return m.fail(err)
		}
		m.unflushed = 0
	}
	return nil
}

// writeConfirmed writes the anchor's confirmation of the current state, if it is due.
func (m *Manager) writeConfirmed() error {
	if m.confirmedEpoch == m.state.epoch {
		return nil
	}
	if _, err := m.anchor.write(slot{state: slotConfirmed, root: m.state.root,
		previous: m.anchor.newest().previous}); err != nil {
		return m.fail(err)
	}
	m.confirmed()
	return nil
}
