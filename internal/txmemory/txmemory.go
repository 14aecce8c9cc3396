// Package txmemory divides memory among open transactions.
//
// Each transaction has a share of its own. Beyond its share, it takes from a pool that all have in
// common, and waits while the pool is empty. The oldest transaction that waits is served first:
//
//	limit 4, share 1     A has 1 + 3     B has 1 + 0, wants 2 more: waits
//	                     A ends          B has 1 + 2
//
// If all transactions that have taken from the pool wait, none of them would go on. Then the youngest
// of them gets an error.
package txmemory

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/oribi-db/oribi/internal/fault"
)

// MostShare is the share of a transaction, in bytes, or a quarter of the limit if that is less.
const MostShare = 1 << 20

// step is the number of bytes in which an account takes from the pool.
const step = 64 << 10

// ErrGivesWay is in an ErrTransactionsFull of a transaction that others wait for, and that waits for
// them. Once it has ended, it may be tried again.
var ErrGivesWay = errors.New("and all wait for each other")

// Pool is the memory that transactions have in common. It is safe for concurrent use.
type Pool struct {
	limit, share int64

	mu      sync.Mutex
	used    int64
	opened  uint64     // accounts so far
	open    []*Account // oldest first
	waiting []*Account // oldest first
	closed  bool
}

// New returns a Pool of limit bytes.
func New(limit int64) *Pool { return &Pool{limit: limit, share: min(MostShare, limit/4)} }

// Account is the memory of a transaction. Use and Close are called by one goroutine at a time.
type Account struct {
	pool   *Pool
	begun  time.Time
	number uint64
	taken  int64 // from the pool; written under pool.mu

	// While it waits, under pool.mu.
	wants int64 // to take in addition
	wake  chan error
}

// Open opens the account of a transaction that begins.
func (p *Pool) Open() *Account {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.opened++
	a := &Account{pool: p, begun: time.Now(), number: p.opened}
	p.open = append(p.open, a)
	return a
}

// Close returns all memory of the account.
func (a *Account) Close() {
	p := a.pool
	p.mu.Lock()
	defer p.mu.Unlock()
	p.open = slices.DeleteFunc(p.open, func(o *Account) bool { return o == a })
	p.used -= a.taken
	a.taken = 0
	p.serve()
}

// Use makes sure that the account may have size bytes in all. It may wait. Errors:
// ErrBatchTooLarge if no transaction may have so much; ErrTransactionsFull if ctx ends before there
// is memory, with ctx.Err(), or with ErrGivesWay; ErrClosed.
func (a *Account) Use(ctx context.Context, size int64) error {
	p := a.pool
	beyond := size - p.share
	if beyond <= a.taken && a.taken-max(beyond, 0) < 4*step {
		return nil
	}
	if beyond > p.limit {
		return fmt.Errorf("the transaction has read and written %d bytes, limit %d: %w", size, p.limit+p.share,
			fault.ErrBatchTooLarge)
	}
	want := min((max(beyond, 0)+step-1)/step*step, p.limit)
	p.mu.Lock()
	if want <= a.taken {
		p.used -= a.taken - want
		a.taken = want
		p.serve()
		p.mu.Unlock()
		return nil
	}
	if p.closed {
		p.mu.Unlock()
		return fault.ErrClosed
	}
	a.wants, a.wake = want-a.taken, make(chan error, 1)
	at, _ := slices.BinarySearchFunc(p.waiting, a, func(x, y *Account) int { return cmp.Compare(x.number, y.number) })
	p.waiting = slices.Insert(p.waiting, at, a)
	p.serve()
	p.mu.Unlock()
	select {
	case err := <-a.wake:
		return err
	default:
	}
	select {
	case err := <-a.wake:
		return err
	case <-ctx.Done():
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	select {
	case err := <-a.wake: // at the same time
		return err
	default:
	}
	err := p.full(ctx.Err())
	p.remove(a, nil)
	p.serve()
	return err
}

// full returns an ErrTransactionsFull. The caller holds mu.
func (p *Pool) full(cause error) error {
	return fmt.Errorf("open transactions take the %d bytes that they have in common, and the oldest of %d is "+
		"open for %v: %w: %w", p.limit, len(p.open), time.Since(p.open[0].begun).Round(time.Millisecond), fault.ErrTransactionsFull, cause)
}

// serve gives memory to the transactions that wait, the oldest first. The caller holds mu, and has
// changed what is in use, or who waits.
func (p *Pool) serve() {
	for len(p.waiting) > 0 {
		a := p.waiting[0]
		if p.used+a.wants > p.limit {
			p.giveWay()
			return
		}
		p.used += a.wants
		a.taken += a.wants
		p.remove(a, nil)
	}
}

// remove ends the waiting of a transaction with an error, or nil. The caller holds mu.
func (p *Pool) remove(a *Account, err error) {
	p.waiting = slices.DeleteFunc(p.waiting, func(o *Account) bool { return o == a })
	a.wants = 0
	a.wake <- err
}

// giveWay ends the waiting of the youngest transaction that has taken memory, if all of these wait.
// The caller holds mu.
func (p *Pool) giveWay() {
	var youngest *Account
	for _, a := range p.open {
		switch {
		case a.taken == 0:
		case a.wants == 0:
			return // it goes on
		default:
			youngest = a
		}
	}
	if youngest != nil {
		p.remove(youngest, p.full(ErrGivesWay))
	}
}

// Shut ends the waiting of all transactions with ErrClosed, also of those that would wait later.
func (p *Pool) Shut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	for len(p.waiting) > 0 {
		p.remove(p.waiting[0], fault.ErrClosed)
	}
}
