package history

import (
	"fmt"
	"strings"
	"sync"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/internal/prooftest/model"
	"github.com/oribi-db/oribi/internal/prooftest/script"
	"github.com/oribi-db/oribi/vfs"
	"github.com/oribi-db/oribi/vfs/faultfs"
)

// meanwhile commits a batch while its table is rewritten: behind the moment as of which the rewrite
// writes and before its commit, when the first rows have been read or before one of the writes of
// blocks, as the step's mask says. A rewrite that does neither has the batch come behind it, and so
// have those that run by themselves, which may be the ones that tell of rows, and those where
// memory may be full, so that the batch would wait for the flush that waits for it.
func (r *Runner) meanwhile(st *script.Step) error {
	var err error
	write := func() {
		if st.Written { // and the rewrite failed: it is done once more
			return
		}
		if err = r.write(st); err == nil {
			st.Written = true
			err = r.compareNow(st.Table)
		}
	}
	inside := false
	if r.Script.Settings.Manual() {
		r.middle.set(st, func() { inside = true; write() })
	}
	failed := r.rewrite(&script.Step{Kind: st.During, Table: st.Table, Mask: st.Mask})
	r.middle.set(st, nil)
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

// middle is what is to be done once in the middle of a rewrite. It is told of the rewrite's
// progress by the goroutines that work for it, while the one that makes the steps waits.
type middle struct {
	mu     sync.Mutex
	do     func() // nil = nothing, or it is done
	rows   bool   // when rows have been read
	writes uint64 // otherwise: how many writes of blocks come before
}

// set says what to do, and when: by bits 56 to 58 of the step's mask.
func (m *middle) set(st *script.Step, do func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch m.do, m.rows = do, st.Mask>>56&1 == 0; st.During {
	case script.Deltas, script.Minor, script.Major: // they tell nobody of rows
		m.rows = false
	}
	m.writes = st.Mask >> 57 & 3
}

// due does it if that is due.
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

// progress is the store's Options.Progress if rewrites are made by hand.
func (r *Runner) progress(string, int64, int64) { r.middle.due(true) }

// watched is a disk whose writes of blocks are told to r.middle.
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
	if m := r.Model.Tables[table]; sum != m.Digest(r.Model.Newest()) {
		return fmt.Errorf("during a rewrite the table shows %d rows that are not the newest", rows)
	}
	r.Counts.Rows += rows
	return nil
}
