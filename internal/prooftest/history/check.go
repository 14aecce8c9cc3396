package history

import (
	"fmt"
	"slices"

	"github.com/oribi-db/oribi/internal/prooftest/model"
	"github.com/oribi-db/oribi/internal/prooftest/script"
)

// verify calls the store's Verify.
func (r *Runner) verify() error { return model.Verified(r.Store) }

// check compares all rows of all tables, now and at the step's timestamp, in both directions, and
// the counts.
func (r *Runner) check(st *script.Step) error {
	names := []string{}
	for _, t := range r.Store.Tables() {
		names = append(names, t.Name())
	}
	if !slices.Equal(names, r.Model.Names()) {
		return fmt.Errorf("tables %v, want %v", names, r.Model.Names())
	}
	for _, name := range names {
		for _, rd := range []script.Read{{Limit: -1}, st.Read} {
			rd.Columns, rd.Limit = nil, -1
			for _, rd.Desc = range []bool{false, true} {
				if err := r.find(&script.Step{Table: name, Read: rd}); err != nil {
					return fmt.Errorf("table %s: descending=%v: %w", name, rd.Desc, err)
				}
			}
		}
		if err := r.count(&script.Step{Table: name, Read: script.Read{Limit: -1}}); err != nil {
			return fmt.Errorf("table %s: %w", name, err)
		}
	}
	return nil
}
