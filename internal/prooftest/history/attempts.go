package history

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/internal/prooftest/model"
	"github.com/oribi-db/oribi/internal/prooftest/script"
)

var (
	errRollback = errors.New("the step ends the attempt")
	errAgain    = errors.New("a second attempt")
	// errUnfit ends an attempt whose operand does not fit a row that it had not read.
	errUnfit = errors.New("an operand does not fit the newest state")
)

// attempt is an exclusive attempt of Update, whose function waits for the steps of a history.
type attempt struct {
	sync     bool
	verdicts chan error // what the function returns
	done     chan error // what Update returns
}

// beginAttempt calls Update until its function has begun.
func beginAttempt(ctx context.Context, s *oribi.Store, sync bool) (*attempt, *oribi.Tx, error) {
	a := &attempt{sync: sync, verdicts: make(chan error), done: make(chan error, 1)}
	opts := []oribi.UpdateOption{oribi.Exclusive()}
	if !sync {
		opts = append(opts, oribi.NoSync)
	}
	begun := make(chan *oribi.Tx)
	go func() {
		defer func() {
			if p := recover(); p != nil {
				a.done <- fmt.Errorf("panic: %v\n%s", p, debug.Stack())
			}
		}()
		attempts := 0
		a.done <- s.Update(ctx, func(tx *oribi.Tx) error {
			if attempts++; attempts > 1 {
				return errAgain
			}
			begun <- tx
			return <-a.verdicts
		}, opts...)
	}()
	select {
	case tx := <-begun:
		return a, tx, nil
	case err := <-a.done:
		return nil, nil, err
	}
}

// end makes the function return err, and returns the error of Update: of a commit that conflicts, ErrConflict.
func (a *attempt) end(err error) error {
	a.verdicts <- err
	if err = <-a.done; err == errAgain {
		return oribi.ErrConflict
	}
	return err
}

// exclusive returns the transaction that is an exclusive attempt, nil for none.
func (r *Runner) exclusive() *transaction {
	for _, open := range r.txs {
		if open.attempt != nil {
			return open
		}
	}
	return nil
}

// Exclusive reports whether a step is one of an exclusive attempt.
func (r *Runner) Exclusive(st *script.Step) bool {
	open := r.txs[st.Tx]
	return st.InTx() && open != nil && open.attempt != nil
}

// advance makes the model of an exclusive attempt read the state that the store reads after a call, which has read m
// unless that is nil, and ended with err. done says that the attempt must end.
func (r *Runner) advance(open *transaction, m *model.Table, err error) (done bool, _ error) {
	if open.attempt == nil {
		return false, err
	}
	ts := open.tx.Timestamp()
	r.pass(ts)
	switch {
	case !open.model.Advance(ts):
		return true, errUnfit
	case m != nil && err == nil && !open.read[m] && ts < r.Model.Newest():
		return true, fmt.Errorf("the attempt reads another table at %d, the newest batch is at %d", uint64(ts), uint64(r.Model.Newest()))
	case m != nil:
		open.read[m] = true
	}
	return false, err
}

// unlessEnded returns err, or nil if an exclusive attempt may end with it: a row that it has read has expired.
func (r *Runner) unlessEnded(open *transaction, err error) error {
	if open.attempt == nil {
		return err
	}
	if _, may := open.model.Changed(); errors.Is(err, errUnfit) || may && errors.Is(err, oribi.ErrConflict) {
		return nil
	}
	return err
}

// beforeWrite ends an exclusive attempt that a step would wait for.
func (r *Runner) beforeWrite(st *script.Step) error {
	x := r.exclusive()
	if x == nil || r.txs[st.Tx] == x && st.InTx() {
		return nil
	}
	waits := true
	switch st.Kind {
	case script.Get, script.Find, script.Count, script.Many, script.Versions, script.Diff, script.Check, script.Verify,
		script.Flush, script.FlushAll, script.Merge, script.Compact, script.Deltas, script.Minor, script.Major,
		script.Recompress, script.UndoGC, script.Maintain, script.Tick, script.Reopen, script.ReadOnly, script.Kill, script.Cut,
		script.Tear:
		waits = false
	case script.Write:
		waits = false
		for i := range st.Ops {
			waits = waits || x.held[r.Model.Tables[st.Ops[i].Table]]
		}
	default:
		waits = !st.InTx() || st.Kind == script.TxCommit
	}
	if !waits {
		return nil
	}
	return r.rollbackAll(func(m *model.Tx) bool { return m == x.model })
}
