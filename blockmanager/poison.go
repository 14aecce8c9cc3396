package blockmanager

import (
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/oribi-db/oribi/internal/fault"
)

// poison records the first failure, after which nothing may be written any more.
//
// A failed fsync leaves pages that look clean but are not on disk, so no later success proves
// anything: the first cause stays, and all later writes are refused with it.
type poison struct {
	cause atomic.Pointer[error] // unchanged
	ch    chan struct{}         // closed with the first cause
}

func newPoison() *poison { return &poison{ch: make(chan struct{})} }

// set records cause if it is the first, and returns the result of err.
func (p *poison) set(cause error) error {
	if p.cause.CompareAndSwap(nil, &cause) {
		close(p.ch)
	}
	return p.err()
}

// first returns the first cause unchanged, or nil.
func (p *poison) first() error {
	if cause := p.cause.Load(); cause != nil {
		return *cause
	}
	return nil
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
