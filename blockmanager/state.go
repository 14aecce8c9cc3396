package blockmanager

import (
	"cmp"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/oribi-db/oribi/block"
	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/lsn"
)

// liveBlock is a committed block. All fields except refs are immutable.
type liveBlock struct {
	id block.ID
	blockRow
	in   *container
	refs atomic.Int64 // open sources; rises only while the block is in state.blocks
}

// deadRange is the space of a block that a commit dropped, until its row is removed.
type deadRange struct {
	in          *container
	off, length int64      // in bytes, not rounded
	died        uint64     // epoch of the commit that dropped it, or of the open
	since       time.Time  // of that commit, or of the open
	block       *liveBlock // the block if it may still be open; nil if it was dropped before this open
	punched     bool       // freed and synced: the next commit removes the row
}

// state is the metadata as of the last commit, in memory. Pebble's rows are exactly those that
// value returns, and the root row.
type state struct {
	root
	format     formatRow
	mark       uint64 // ids below it may be in use
	logStart   lsn.LSN
	blocks     map[block.ID]*liveBlock
	containers map[containerID]*container // those with a row
	dead       map[string]*deadRange      // by row key
	caller     callerRows                 // by their keys, without kindUser

	view *metaView // closed; that a follower has read the state from. nil if it was the journal
}

func newState() *state {
	return &state{
		blocks:     map[block.ID]*liveBlock{},
		containers: map[containerID]*container{},
		dead:       map[string]*deadRange{},
		caller:     newCallerRows(),
	}
}

// value returns the value of the row with this key, or nil if no such row exists.
func (s *state) value(key []byte) []byte {
	switch key[0] {
	case kindBlock:
		if b := s.blocks[decodeBlockKey(key)]; b != nil {
			return b.value()
		}
	case kindContainer:
		if c := s.containers[containerID(key[1:])]; c != nil {
			return c.row.value()
		}
	case kindDead:
		if d := s.dead[string(key)]; d != nil {
			return numberValue(uint64(d.length))
		}
	case kindFormat:
		return s.format.value()
	case kindMark:
		return numberValue(s.mark)
	case kindLogStart:
		return numberValue(uint64(s.logStart))
	case kindUser:
		return s.caller.value(string(key[1:]))
	}
	return nil
}

// loadState reads all rows and checks that they are complete, that the root contains their hash,
// and that they are consistent with one another (spec blockmanager.md, 9.6 step 4). It reads only
// Pebble's files.
func loadState(o *Options, meta *metaStore) (*state, error) {
	l := newLoader()
	if err := meta.scan(l.row); err != nil {
		return nil, err
	}
	st, err := l.finish(o)
	if err != nil {
		return nil, fmt.Errorf("metadata: %w", err)
	}
	return st, nil
}

// loader makes a state from all of its rows.
type loader struct {
	stateChange
	sum  setHash
	seen map[byte]bool // kinds of rows
}

func newLoader() *loader {
	return &loader{stateChange: newStateChange(newState()), seen: map[byte]bool{}}
}

// row adds one row.
func (l *loader) row(key, v []byte) error {
	if v == nil {
		v = []byte{} // no row is removed
	}
	if err := l.stateChange.row(key, v); err != nil {
		return err
	}
	if key[0] != kindRoot {
		l.sum.add(key, v)
	}
	l.seen[key[0]] = true
	return nil
}

// finish checks the rows that belong together and returns the state.
func (l *loader) finish(o *Options) (*state, error) {
	for _, kind := range []byte{kindFormat, kindMark, kindLogStart, kindRoot} {
		if !l.seen[kind] {
			return nil, fault.Corruptf("no row %q", kind)
		}
	}
	if l.sum != l.root.hash {
		return nil, fault.Corruptf("hash of the rows is %s, the root of epoch %d says %s", l.sum, l.root.epoch,
			l.root.hash)
	}
	if l.format.instance != o.Instance {
		return nil, fault.Corruptf("belongs to store %x, not %x", l.format.instance, o.Instance)
	}
	if o.BlockSize != 0 && o.BlockSize != l.format.blockSize {
		return nil, fault.Corruptf("block size %d, the store says %d", l.format.blockSize, o.BlockSize)
	}
	st := newState()
	if err := l.link(st); err != nil {
		return nil, err
	}
	st.apply(&l.stateChange)
	return st, st.checkOverlaps()
}

// span is a range of a container in use, for the check of overlaps.
type span struct {
	off, end int64
	block    block.ID // 0: a dead range
}

func (s span) String() string {
	if s.block == 0 {
		return "dead range"
	}
	return fmt.Sprintf("block %d", s.block)
}

// checkOverlaps checks that the ranges of each container are disjoint.
func (s *state) checkOverlaps() error {
	used := map[*container][]span{}
	for id, b := range s.blocks {
		if b.length > 0 {
			used[b.in] = append(used[b.in], span{b.off, b.off + b.length, id})
		}
	}
	for _, d := range s.dead {
		if d.length > 0 {
			used[d.in] = append(used[d.in], span{d.off, d.off + d.length, 0})
		}
	}
	for c, list := range used {
		slices.SortFunc(list, func(a, b span) int {
			return cmp.Or(cmp.Compare(a.off, b.off), cmp.Compare(a.block, b.block))
		})
		for i := 1; i < len(list); i++ {
			if list[i].off < list[i-1].end {
				return fault.Corruptf("container %s: %s and %s overlap at %d", c.id, list[i-1], list[i], list[i].off)
			}
		}
	}
	return nil
}
