package tablet

import "context"

// Drop drops tables of one store, in ascending order of their numbers: all or none. It blocks their
// writers, calls remove to remove the tables and their rowsets from the metadata, and closes them.
// Errors: ErrNoTable, which names a table that was dropped before; the errors of remove.
//
// A table's claims and then its gate are acquired in the order of the numbers, as by FlushTogether
// and by write batches, so these do not wait for each other in a circle.
func Drop(tables []*Tablet, remove func() error) error {
	for _, t := range tables {
		t.claims.exclude(context.Background())
	}
	defer func() {
		for _, t := range tables {
			t.sendEvents()
		}
	}()
	defer func() {
		for _, t := range tables {
			t.claims.include()
		}
	}()
	for _, t := range tables {
		t.gate.Lock()
		defer t.gate.Unlock()
	}
	return dropBlocked(tables, remove)
}

// dropBlocked is Drop for the owner of the tables, with their writers blocked.
func dropBlocked(tables []*Tablet, remove func() error) error {
	for _, t := range tables {
		st, err := t.acquire()
		if err != nil {
			return err
		}
		defer st.release()
		for _, d := range st.tree.Sets {
			d.OpenFiles() // running scans still need them
		}
	}
	if err := remove(); err != nil {
		return err
	}
	for _, t := range tables {
		t.End()
	}
	return nil
}
