package blockmanager

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
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
	l := loader{state: newState(), seen: map[byte]bool{}}
	if err := meta.scan(l.row); err != nil {
		return nil, err
	}
	if err := l.finish(o); err != nil {
		return nil, fmt.Errorf("metadata: %w", err)
	}
	return l.state, nil
}

type loader struct {
	*state
	sum  setHash
	seen map[byte]bool // kinds that have one row
}

// row adds one row. Rows of blocks precede the rows of their containers, so that a container's row
// is checked against all of its blocks.
func (l *loader) row(key, v []byte) (err error) {
	if len(key) == 0 {
		return fault.Corruptf("metadata: empty key")
	}
	if key[0] != kindRoot {
		l.sum.add(key, v)
	}
	l.seen[key[0]] = true
	switch key[0] {
	case kindBlock:
		b := &liveBlock{}
		b.id, b.blockRow, err = decodeBlock(key, v)
		l.blocks[b.id] = b
	case kindContainer:
		var id containerID
		c := &container{}
		id, c.row, err = decodeContainer(key, v)
		c.id = id
		l.containers[id] = c
	case kindDead:
		var id containerID
		d := &deadRange{}
		id, d.off, d.length, err = decodeDead(key, v)
		if d.in = l.containers[id]; err == nil && d.in == nil {
			return fault.Corruptf("metadata: dead range in unknown container %s", id)
		}
		l.dead[string(key)] = d
	case kindFormat:
		l.format, err = decodeFormat(key, v)
	case kindMark:
		l.mark, err = decodeNumber(key, v)
	case kindLogStart:
		var n uint64
		n, err = decodeNumber(key, v)
		l.logStart = lsn.LSN(n)
	case kindRoot:
		l.root, err = decodeRoot(key, v)
	case kindUser:
		l.caller.put(string(key[1:]), slices.Clone(v))
	default:
		return fault.Corruptf("metadata: row %x is of no known kind", clip(key))
	}
	return err
}

// finish checks what involves several rows.
func (l *loader) finish(o *Options) error {
	for _, kind := range []byte{kindFormat, kindMark, kindLogStart, kindRoot} {
		if !l.seen[kind] {
			return fault.Corruptf("no row %q", kind)
		}
	}
	if l.sum != l.hash {
		return fault.Corruptf("hash of the rows is %s, the root of epoch %d says %s", l.sum, l.epoch, l.hash)
	}
	if l.format.instance != o.Instance {
		return fault.Corruptf("belongs to store %x, not %x", l.format.instance, o.Instance)
	}
	if o.BlockSize != 0 && o.BlockSize != l.format.blockSize {
		return fault.Corruptf("block size %d, the store says %d", l.format.blockSize, o.BlockSize)
	}
	if l.mark == 0 || l.mark > maxMark {
		return fault.Corruptf("id mark %d", l.mark)
	}
	return l.checkRanges()
}

// span is a range of a container in use, for the check of overlaps.
type span struct {
	off, end int64
	what     string
}

func (l *loader) checkRanges() error {
	size := l.format.blockSize
	used := map[*container][]span{}
	add := func(c *container, off, length int64, what string) error {
		if !c.row.contains(off, length, size) {
			return fault.Corruptf("%s: %d bytes at %d of container %s, which ends at %d", what, length, off,
				c.id, c.row.next)
		}
		if length > 0 {
			used[c] = append(used[c], span{off, off + length, what})
		}
		return nil
	}
	for _, c := range l.containers {
		if !c.row.endsWell(size) {
			return fault.Corruptf("container %s: ends at %d", c.id, c.row.next)
		}
	}
	for id, b := range l.blocks {
		if id == 0 || uint64(id) >= l.mark {
			return fault.Corruptf("block %d: id mark is %d", id, l.mark)
		}
		b.in = l.containers[b.container]
		if b.in == nil || b.in.row.state == containerDead {
			return fault.Corruptf("block %d: container %s is not there", id, b.container)
		}
		if err := add(b.in, b.off, b.length, fmt.Sprintf("block %d", id)); err != nil {
			return err
		}
		b.in.live++
	}
	for _, d := range l.dead {
		if err := add(d.in, d.off, d.length, "dead range"); err != nil {
			return err
		}
	}
	for c, list := range used {
		slices.SortFunc(list, func(a, b span) int {
			return cmp.Or(cmp.Compare(a.off, b.off), strings.Compare(a.what, b.what))
		})
		for i := 1; i < len(list); i++ {
			if list[i].off < list[i-1].end {
				return fault.Corruptf("container %s: %s and %s overlap at %d", c.id, list[i-1].what,
					list[i].what, list[i].off)
			}
		}
	}
	return nil
}
