package oribi

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/internal/store"
	"github.com/oribi-db/oribi/internal/tablet"
	"github.com/oribi-db/oribi/mvcc"
)

// view is one state of the table as a read sees it. It pins the history that the read needs until
// Release.
type view struct {
	tablet.View
	pins *store.Pins // nil: nothing is pinned
	ts   mvcc.Timestamp
	also func()        // releases what a scan needs besides, with the history; or nil
	get  time.Duration // when a read of one row began that is timed; else 0

	installs uint64 // of a follower, before ts was chosen
}

func (v *view) Release() {
	v.View.Release()
	v.unpin()
}

// unpin unpins the history, and releases what a scan needs besides the view.
func (v *view) unpin() {
	if v.pins != nil {
		v.pins.Unpin(v.ts)
		v.pins = nil
	}
	if v.also != nil {
		v.also()
		v.also = nil
	}
}

// view returns the table as a read with options o sees it, see setView.
func (t *Table) view(ctx context.Context, o *readOptions, long bool) (view, error) {
	var v view
	err := t.setView(ctx, o, long, &v)
	return v, err
}

// setView sets v to the table as a read with options o sees it. The columns of the read are found
// in the view's schema. If long is set, it also pins the history of the newest state: a read of one
// row ends before any of that grows too old.
func (t *Table) setView(ctx context.Context, o *readOptions, long bool, v *view) error {
	snap := tablet.Snapshot{Latest: !o.asOf}
	v.installs = t.store.core.Installs()
	switch {
	case o.asOf:
		if err := t.pin(ctx, o); err != nil {
			return fmt.Errorf("oribi: table %q: read at %v: %w", t.tab.Name(), o.at, err)
		}
		v.pins, v.ts = t.store.core.Pins, o.at
	case long:
		v.pins = t.store.core.Pins
		v.ts = v.pins.PinLatest(t.tab, t.store.core.NewestOf(t.tab))
	default:
		v.ts = t.store.core.NewestOf(t.tab)
	}
	snap.At = mvcc.AsOf(v.ts)
	if o.snapshot != nil && t.store.core.Follows() {
		if kept, ok := o.snapshot.pin.State(t.tab); ok {
			v.View = kept
			return nil
		}
	}
	if err := t.tab.SetView(&v.View, snap); err != nil {
		v.unpin()
		return callErr("", err)
	}
	return nil
}

// pin pins the history that a read at o.at needs, and waits until all that the read sees is
// published.
func (t *Table) pin(ctx context.Context, o *readOptions) error {
	s := t.store
	if sn := o.snapshot; sn != nil {
		if sn.store != s {
			return fmt.Errorf("snapshot %q belongs to another store", sn.Name())
		}
		return s.core.Pins.PinSnapshot(t.tab.Number, &sn.pin)
	}
	if err := o.check(s); err != nil {
		return err
	}
	return s.core.PinAt(ctx, t.tab, o.at)
}

// begins returns the earliest timestamp at which the table can be read.
func (t *Table) begins() mvcc.Timestamp { return t.store.core.Pins.Begins(t.tab) }

// project returns the indexes of the columns to read.
func (t *Table) project(tableSchema *tablet.TableSchema, o *readOptions) ([]int, error) {
	if o.fit != nil {
		cols, err := o.fit(tableSchema)
		return cols, callErr("", err)
	}
	if o.all {
		return tableSchema.All, nil
	}
	cols, err := t.indexes(tableSchema, o.columns)
	return cols, callErr("", err)
}

// indexes returns the indexes of columns. Errors: ErrNoColumn, ErrSchema, as of Columns.
func (t *Table) indexes(tableSchema *tablet.TableSchema, names []string) ([]int, error) {
	cols, err := tableSchema.Schema.Project(names)
	for i := range cols {
		if err == nil && slices.Contains(cols[:i], cols[i]) {
			err = fmt.Errorf("column %q appears twice: %w", names[i], fault.ErrSchema)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("table %q: %w", t.tab.Name(), err)
	}
	return cols, nil
}

// check returns an error for a point that is most likely a mistake.
func (p *point) check(s *Store) error {
	switch {
	case p.zero:
		return fault.Reworded(fault.ErrTooOld, "the time is the zero Time")
	case p.isTime:
		return nil
	}
	return s.checkTimestamp(p.at)
}
