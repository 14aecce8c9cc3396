package oribi

import (
	"context"
	"fmt"

	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/internal/store"
	"github.com/oribi-db/oribi/internal/tablet"
)

// Store is an open store: a directory of tables. It is safe for concurrent use.
type Store struct {
	opts Options
	core *store.Store
}

// enter begins a call; leave ends it.
func (s *Store) enter() error { return s.core.Enter() }

func (s *Store) leave() { s.core.Leave() }

// enterWriting is enter for calls that write.
func (s *Store) enterWriting() error { return s.core.EnterWriting() }

// Poisoned returns the error that made the store read-only, wrapped in ErrPoisoned, or nil if the
// store accepts writes.
func (s *Store) Poisoned() error { return callErr("store "+s.core.Dir.Path, s.core.Poisoned()) }

// sortedTables returns all tables, ordered by name.
func (s *Store) sortedTables() []*Table {
	faces := s.core.Faces()
	out := make([]*Table, len(faces))
	for i, t := range faces {
		out[i] = t.(*Table)
	}
	return out
}

// tablets returns the tablets of tables.
func tablets(tables []*Table) []*tablet.Tablet {
	out := make([]*tablet.Tablet, len(tables))
	for i, t := range tables {
		out[i] = t.tab
	}
	return out
}

// interrupted returns the error with which an iteration ends at its next step: ErrClosed, or ctx's.
func (s *Store) interrupted(ctx context.Context) error {
	if s.core.Closed() {
		return fault.ErrClosed
	}
	return ctx.Err()
}

// Table is one table of an open store. It is safe for concurrent use.
type Table struct {
	store *Store
	tab   *tablet.Tablet
	entry *store.Table
}

// errorf returns err as the error of a public call on the table.
func (t *Table) errorf(err error) error {
	if err == nil {
		return nil
	}
	return callErr(fmt.Sprintf("table %q", t.tab.Name()), err)
}
