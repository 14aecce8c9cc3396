package history

import (
	"fmt"
	"strings"
	"sync"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/internal/prooftest/model"
	"github.com/oribi-db/oribi/internal/prooftest/script"
	"github.com/oribi-db/oribi/mvcc"
	"github.com/oribi-db/oribi/vfs"
	"github.com/oribi-db/oribi/vfs/faultfs"
)

// during commits a batch, or makes a bulk call, while its table is rewritten: after the snapshot of
// the rewrite and before its metadata commit. The step's mask chooses whether it comes after the
// first rows are read or before one of the block writes. The batch comes after a rewrite that does
// neither. It also comes after background rewrites, whose progress is not known, and after a
// rewrite with memory nearly full, where the batch would wait for the flush that waits for the
// batch.
//
// Bits 59 to 61 of the mask flush the table inside a compaction, before and after the batch.
func (r *Runner) during(st *script.Step) error {
	var err error
	write := func() {
		if st.Written { // the rewrite failed and is retried
			return
		}
		if err = r.commit(st); err == nil {
			st.Written = true
			err = r.compareNow(st.Table)
		}
	}
	inside := false
	if r.Script.Settings.Manual() {
		r.middle.set(st, func() {
			inside = true
			for _, do := range []func(){func() {
				err = r.flushInside(st, 59)
			}, write, func() { err = r.flushInside(st, 60) }} {
				if err == nil {
					do()
				}
			}
		})
	}
	failed := r.rewrite(&script.Step{Kind: st.During, Table: st.Table, Mask: st.Mask})
	r.middle.set(st, nil)
	r.inside = false
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

// flushInside flushes the step's table, or its changes only, if the rewrite is a compaction of some
// rowsets and a bit of the step's mask is set. The other rewrites exclude flushes.
func (r *Runner) flushInside(st *script.Step, bit int) error {
	switch st.During {
	case script.Merge, script.Minor, script.Major, script.Recompress:
	default:
		return nil
	}
	if st.Mask>>bit&1 == 0 {
		return nil
	}
	kind := script.Flush
	if st.Mask>>61&1 != 0 {
		kind = script.Deltas
	}
	if err := r.rewrite(&script.Step{Kind: kind, Table: st.Table}); err != nil {
		return fmt.Errorf("%s inside: %w", kind, err)
	}
	r.inside = true
	r.Counts.Inside++
	return r.compareNow(st.Table)
}

// middle is a function to call once in the middle of a rewrite. The goroutines of the rewrite
// report progress to it, while the goroutine that runs the steps waits.
type middle struct {
	mu     sync.Mutex
	do     func() // nil = none, or already called
	rows   bool   // call it when rows have been read
	writes uint64 // otherwise, call it after this many block writes
}

// set sets the function; bits 56 to 58 of the step's mask choose when it is called.
func (m *middle) set(st *script.Step, do func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch m.do, m.rows = do, st.Mask>>56&1 == 0; st.During {
	case script.Deltas, script.Minor, script.Major, script.Recompress: // these do not report rows
		m.rows = false
	}
	m.writes = st.Mask >> 57 & 3
}

// due calls the function if it is due.
func (m *middle) due(rows bool) {
	m.mu.Lock()
	do := m.do
	switch {
	case do == nil || rows != m.rows:
		do = nil
	case !rows && m.writes > 0:
		m.writes--
		do = nil
	default:
		m.do = nil
	}
	m.mu.Unlock()
	if do != nil {
		do()
	}
}

// progress is the store's Options.Progress if rewrites are explicit steps.
func (r *Runner) progress(string, int64, int64) { r.middle.due(true) }

// watched returns disk with block writes reported to r.middle.
func (r *Runner) watched(disk vfs.FS) vfs.FS {
	f := faultfs.New(disk)
	f.Watch(func(c faultfs.Call) error {
		if c.Op == faultfs.Write && strings.HasSuffix(c.Name, ".data") {
			r.middle.due(false)
		}
		return nil
	})
	return f
}

// compareNow compares the newest state of a table with the model.
func (r *Runner) compareNow(table string) error {
	t, err := r.Store.Table(table)
	if err != nil {
		return err
	}
	sum, rows, err := model.ScanDigest(r.ctx, t, oribi.Latest())
	if err != nil {
		return err
	}
	if m := r.Model.Tables[table]; sum != m.Digest(mvcc.Max) {
		return fmt.Errorf("during a rewrite the table shows %d rows that are not the newest", rows)
	}
	r.Counts.Rows += rows
	return nil
}
