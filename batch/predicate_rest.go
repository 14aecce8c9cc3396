package batch

import "sync/atomic"

// resting decides when a predicate with MayRest is tested. It counts the rows that were tested and
// those that passed. After every restSample rows it decides: if more than nine of ten passed, the
// predicate rests. A resting predicate is still tested on every restTurns-th batch, so it is tested
// everywhere again when values come that the filter excludes.
//
// All goroutines of a scan share it. Their counts need not be consistent with each other.
type resting struct {
	notNull        Predicate // tested instead
	rests          atomic.Bool
	turns          atomic.Uint32 // batches while resting
	tested, passed atomic.Int64  // rows since the last decision
}

const (
	restSample = WindowRows
	restTurns  = 16
)

func newResting(p *Predicate) *resting {
	return &resting{notNull: Predicate{Column: p.Column, ID: p.ID, Type: p.Type, Op: NotNull, words: p.words}}
}

// eval calls test with p, or with the test that replaces it while it rests.
func (p *Predicate) eval(sel Bitmap, test func(p *Predicate, sel Bitmap) error) error {
	r := p.rest
	if r == nil {
		return test(p, sel)
	}
	if r.rests.Load() && r.turns.Add(1)%restTurns != 0 {
		return test(&r.notNull, sel)
	}
	before := sel.Count()
	err := test(p, sel)
	if err == nil {
		r.count(int64(before), int64(sel.Count()))
	}
	return err
}

func (r *resting) count(tested, passed int64) {
	tested, passed = r.tested.Add(tested), r.passed.Add(passed)
	if tested >= restSample {
		r.rests.Store(10*passed > 9*tested)
		r.tested.Store(0)
		r.passed.Store(0)
	}
}
