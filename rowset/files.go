package rowset

import (
	"errors"
	"fmt"
	"math"
	"sync"

	"github.com/oribi-db/oribi/block"
)

// Files are the finished files of one rowset, on their way from one store to another. Metadata
// names them as blocks of Blocks. A LiveRows of −1 is a number that is not known.
type Files struct {
	Metadata *Metadata
	Blocks   Blocks
}

// Overlay is the blocks of Base and blocks in memory. As a Creation it makes the latter, whose IDs
// descend from the highest one. It is safe for concurrent use.
type Overlay struct {
	Base Blocks // nil: there are none

	mu   sync.Mutex
	made map[block.ID]*block.Memory // nil: not finished
}

// Create begins a block in memory.
func (o *Overlay) Create() (block.Sink, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.made == nil {
		o.made = map[block.ID]*block.Memory{}
	}
	id := math.MaxUint64 - block.ID(len(o.made))
	o.made[id] = nil
	return &block.Memory{Number: id}, nil
}

// Finish completes a block that Create began.
func (o *Overlay) Finish(s block.Sink) error {
	m, ok := s.(*block.Memory)
	o.mu.Lock()
	defer o.mu.Unlock()
	if !ok || m == nil {
		return errors.New("rowset: the block is not one in memory")
	}
	o.made[m.Number] = m
	return nil
}

// OpenBlock opens a finished block, or one of Base.
func (o *Overlay) OpenBlock(id block.ID) (Block, error) {
	o.mu.Lock()
	m := o.made[id]
	o.mu.Unlock()
	switch {
	case m != nil:
		return memoryBlock{m}, nil
	case o.Base == nil:
		return nil, fmt.Errorf("rowset: there is no block %d", id)
	}
	return o.Base.OpenBlock(id)
}

type memoryBlock struct{ *block.Memory }

func (memoryBlock) Close() error { return nil }
