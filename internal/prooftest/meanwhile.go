package prooftest

import "fmt"

// meanwhile commits a batch while its table is flushed or merged: when the first rows of that have been read, so behind the moment as of
// which it writes and before its commit. Where nothing is read the batch comes behind it, as it does where flushes run by themselves,
// which may be the ones that tell of rows, and where memory may be full, so that the batch would wait for the flush that waits for it.
func (r *Runner) meanwhile(st *Step) error {
	var err error
	write := func() {
		if st.written { // and the rewrite failed: it is done once more
			return
		}
		if err = r.write(st); err == nil {
			st.written = true
			err = r.compareNow(st.Table)
		}
	}
	inside := false
	if r.Script.Settings.byHand() {
		r.onProgress = func() { inside = true; write() }
	}
	failed := r.rewrite(&Step{Kind: st.During, Table: st.Table, Mask: st.Mask})
	r.onProgress = nil
	switch {
	case err != nil:
		return err
	case failed != nil:
		return failed
	case !inside:
		write()
	}
	return err
}

// byHand tells that flushes and merges are made by steps alone, so that their progress is told to the goroutine that makes the steps.
func (o *Settings) byHand() bool { return !o.Background && o.Memory == 0 }

// progress is the store's Options.Progress if rewrites are made by hand.
func (r *Runner) progress(string, int64, int64) {
	if do := r.onProgress; do != nil {
		r.onProgress = nil
		do()
	}
}

// compareNow compares the newest state of a table with the model.
func (r *Runner) compareNow(table string) error {
	t, err := r.store.Table(table)
	if err != nil {
		return err
	}
	sum, rows, err := scanDigest(r.ctx, t)
	if err != nil {
		return err
	}
	if m := r.Model.Tables[table]; sum != m.digest(r.Model.newest()) {
		return fmt.Errorf("during a rewrite the table shows %d rows that are not the newest", rows)
	}
	r.Counts.Rows += rows
	return nil
}
