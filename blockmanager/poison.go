package blockmanager

import (
	"errors"
	"fmt"
	"sync"

	"github.com/oribi-db/oribi/internal/fault"
)

// poison records the first failure, after which nothing may be written any more.
//
// A failed fsync leaves pages that look clean but are not on disk, so no later success proves
// anything: the first cause stays, and all later writes are refused with it.
type poison struct {
	mu    sync.Mutex
	cause error         // unchanged
	ch    chan struct{} // closed with the first cause
}

func newPoison() *poison { return &poison{ch: make(chan struct{})} }

// set records cause if it is the first, and returns the result of err.
func (p *poison) set(cause error) error {
	p.mu.Lock()
	if p.cause == nil {
		p.cause = cause
		close(p.ch)
	}
	p.mu.Unlock()
	return p.err()
}

// first returns the first cause unchanged, or nil.
func (p *poison) first() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.cause
}

// err returns the first cause, wrapped in ErrPoisoned, or nil.
func (p *poison) err() error {
	switch cause := p.first(); {
	case cause == nil:
		return nil
	case errors.Is(cause, fault.ErrNoSpace): // whose message says that a retry may succeed
		return fmt.Errorf("blockmanager: %w: %v", fault.ErrPoisoned, cause)
	default:
		return fmt.Errorf("blockmanager: %w: %w", fault.ErrPoisoned, cause)
	}
}

// is reports whether there is a cause.
func (p *poison) is() bool { return p.first() != nil }
