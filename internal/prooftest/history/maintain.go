package history

import (
	"slices"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/internal/prooftest/script"
	"github.com/oribi-db/oribi/internal/prooftest/values"
)

// maintain carries out up to eight background operations, chosen at random by the step's mask among
// those that could run, whether they are due or not.
func (r *Runner) maintain(st *script.Step) error {
	if !r.Script.Settings.Background {
		r.choosing.Lock()
		r.choices = values.NewRand(st.Mask)
		r.choosing.Unlock()
	}
	for range 1 + st.Mask>>60&7 {
		_, ran, err := r.Store.StepBackgroundWork(r.ctx)
		if err != nil {
			return err
		}
		if ran {
			r.Counts.Maintained++
		}
	}
	return nil
}

// schedule is the store's Options.Schedule: it chooses any operation, or sometimes none. The store
// calls it in any goroutine. Log is removed once a second without background work too,
// so in a run that must be repeatable that is not chosen.
func (r *Runner) schedule(ops []oribi.BackgroundOp) int {
	if !r.Script.Settings.Background {
		ops = slices.DeleteFunc(ops, func(op oribi.BackgroundOp) bool { return op.Kind == "log-gc" }) // the last one
	}
	r.choosing.Lock()
	defer r.choosing.Unlock()
	return r.choices.IntN(len(ops)+1) - 1
}
