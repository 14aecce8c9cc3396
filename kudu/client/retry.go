package client

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/oribi-db/oribi/internal/kudurpc"
)

// attempts are the attempts of one call of this package. They end with its context.
type attempts struct {
	c     *Client
	n     int   // how many have failed
	cause error // of the last one that did not fail for lack of time
}

// maxDoublings limits a pause to 4 s.
const maxDoublings = 12

// again waits before the next attempt of a call that has failed with err, which is worth a
// repetition. It returns err with the reason if there is no time for one.
//
// A pause is random, up to 2 ms after the first attempt and twice as much after each other one, as
// in Kudu's clients: many clients that wait for one server do not come back at once.
func (a *attempts) again(ctx context.Context, err error) error { return a.wait(ctx, err, maxDoublings) }

func (a *attempts) wait(ctx context.Context, err error, doublings int) error {
	a.n++
	if a.cause == nil || !errors.Is(err, context.DeadlineExceeded) {
		a.cause = err
	}
	pause := time.Duration(a.c.random() * float64(time.Millisecond<<min(a.n, doublings)))
	if deadline, ok := ctx.Deadline(); ok {
		pause = min(pause, time.Until(deadline)/2)
	}
	if reason := a.c.o.sleep(ctx, pause); reason != nil {
		return a.givenUp(reason)
	}
	return nil
}

// givenUp returns the cause of the attempts' failures, and why there are no more.
func (a *attempts) givenUp(reason error) error {
	return fmt.Errorf("%w (given up after %d attempts: %w)", a.cause, a.n, reason)
}

// last returns the error with which a call ends. If that is the end of ctx, earlier attempts say more.
func (a *attempts) last(ctx context.Context, err error) error {
	if a.cause == nil || err == nil || ctx.Err() == nil || !errors.Is(err, ctx.Err()) {
		return err
	}
	return a.givenUp(ctx.Err())
}

// poll waits before the next question whether what a call has begun is done. Without time for one it
// returns an error that says what the state is.
func (a *attempts) poll(ctx context.Context, state string) error {
	return a.wait(ctx, errors.New(state), pollDoublings)
}

// pollDoublings limits a pause between two questions to a quarter of a second.
const pollDoublings = 7

// random returns a random number in [0, 1).
func (c *Client) random() float64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.rnd.Float64()
}

// limit returns ctx with a deadline.
func (c *Client) limit(ctx context.Context) (context.Context, context.CancelFunc) {
	if _, ok := ctx.Deadline(); ok {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, c.o.Timeout)
}

// Away reports whether err says that servers could not be reached, or were not ready, for as long as a call
// of this package tried: the same call may succeed later.
func Away(err error) bool {
	if e, ok := errors.AsType[*noLeader](err); ok {
		return worthAnother(e)
	}
	switch kudurpc.ClassOf(err) {
	case kudurpc.Busy, kudurpc.Unreachable, kudurpc.NotServing, kudurpc.Unavailable, kudurpc.NoTablet:
		return true
	}
	return false
}
