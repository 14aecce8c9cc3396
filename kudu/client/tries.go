package client

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/oribi-db/oribi/internal/kudurpc"
	pb "github.com/oribi-db/oribi/internal/kudurpcpb"
)

// clock is the highest timestamp of the servers' answers. Requests have it, so that what is written
// later has a higher one, on all servers. The zero value has seen none.
type clock struct{ last atomic.Uint64 }

// see notes a timestamp.
func (c *clock) see(ts uint64) {
	for {
		last := c.last.Load()
		if ts <= last || c.last.CompareAndSwap(last, ts) {
			return
		}
	}
}

// now returns the highest timestamp, nil before the first one.
func (c *clock) now() *uint64 {
	if ts := c.last.Load(); ts != 0 {
		return &ts
	}
	return nil
}

// tries are the attempts of one logical call to a tablet, which may go to several replicas and may need
// new tokens.
type tries struct {
	attempts
	t      *Table
	known  *tablets
	tablet *tablet
	writes bool // only the leader will do
	at     int  // the replica of the next attempt
	token  *pb.SignedTokenPB
}

// tries returns the attempts of a call to a tablet. A read begins with the leader, or with another
// replica if followers is set.
func (t *Table) tries(ctx context.Context, id string, writes, followers bool) (*tries, error) {
	known, err := t.tablets(ctx)
	if err != nil {
		return nil, err
	}
	a := &tries{attempts: attempts{c: t.c}, t: t, known: known, tablet: known.byID(id), writes: writes,
		token: t.authz.current()}
	if a.tablet == nil {
		if err := a.lookUp(ctx, id); err != nil {
			return nil, err
		}
	}
	a.at = a.leader()
	if n := len(a.tablet.replicas); followers && n > 1 {
		a.at = (a.at + 1 + int(t.c.random()*float64(n-1))) % n
	}
	return a, nil
}

// leader returns the index of the leader, -1 if no replica leads.
func (a *tries) leader() int {
	for i := range a.tablet.replicas {
		if a.tablet.replicas[i].leads {
			return i
		}
	}
	if a.writes || len(a.tablet.replicas) == 0 {
		return -1
	}
	return 0
}

// call makes the next attempt.
func (a *tries) call(ctx context.Context, c *kudurpc.Call) error {
	c.Tablet = a.tablet.id
	if a.at < 0 {
		return &kudurpc.Error{Method: c.Method, Tablet: a.tablet.id, Server: "no server", Err: errNoReplica}
	}
	return a.c.at(ctx, &a.tablet.replicas[a.at], c)
}

// bad returns the error of an answer that makes no sense.
func (a *tries) bad(method string, err error) error {
	return &kudurpc.Error{Server: a.tablet.replicas[a.at].addresses[0], Method: method, Tablet: a.tablet.id, Err: err}
}

var (
	errNoReplica  = errors.New("the masters know no leader of the tablet")
	errTabletGone = errors.New("the table has the tablet no more")
)

// recover prepares for the attempt after one that failed with err, and waits. It returns an error if no
// other attempt can help, errTabletGone if the tablet is gone. Source: Kudu's wire protocol, "what to do
// on failure".
func (a *tries) recover(ctx context.Context, err error) error {
	var failed error
	switch kudurpc.ClassOf(err) {
	case kudurpc.Busy:
	case kudurpc.Unavailable:
		if !a.writes {
			failed = a.elsewhere(ctx)
		}
	case kudurpc.Unreachable, kudurpc.NotServing:
		failed = a.elsewhere(ctx)
	case kudurpc.NoTablet:
		failed = a.lookUp(ctx, a.tablet.id)
	case kudurpc.AuthzToken:
		failed = a.t.renewAuthz(ctx, a.token)
		a.token = a.t.authz.current()
	default:
		return err
	}
	if failed != nil {
		return fmt.Errorf("%w, after: %w", failed, err)
	}
	return a.again(ctx, err)
}

// otherSchema adds to an error that the table was altered, if that is what it says.
func otherSchema(err error) error {
	if kudurpc.ClassOf(err) == kudurpc.OtherSchema {
		return fmt.Errorf("%w: the table was altered: open it again: %w", err, ErrSchema)
	}
	return err
}

// elsewhere takes another replica for a read, and looks all up when it has tried them. A write looks up
// the leader.
func (a *tries) elsewhere(ctx context.Context) error {
	n := len(a.tablet.replicas)
	if a.writes || a.at < 0 || a.n%n == n-1 {
		return a.lookUp(ctx, a.tablet.id)
	}
	a.at = (a.at + 1) % n
	return nil
}

// lookUp asks the masters where the replicas of a tablet are.
func (a *tries) lookUp(ctx context.Context, id string) error {
	if ctx.Err() != nil {
		return nil // again says so
	}
	known, err := a.t.refresh(ctx, a.known)
	if err != nil {
		return err
	}
	tablet := known.byID(id)
	if tablet == nil {
		return fmt.Errorf("tablet %s: %w", id, errTabletGone)
	}
	next := a.at + 1
	a.tablet, a.known = tablet, known
	if a.at = a.leader(); !a.writes && len(tablet.replicas) > 0 {
		a.at = next % len(tablet.replicas)
	}
	return nil
}
