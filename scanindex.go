package oribi

import (
	"context"
	"errors"

	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/internal/store"
	"github.com/oribi-db/oribi/internal/tablet"
	"github.com/oribi-db/oribi/mvcc"
	"github.com/oribi-db/oribi/scan"
)

// NoIndex makes a scan, a count, or an aggregate look through the table, whatever indexes there are.
func NoIndex() CountOption { return countOption(func(o *readOptions) { o.noIndex = true }) }

// A scan uses the index that leads to the fewest rows, if these are few: reading a row by its key takes as
// long as a look at indexShare rows of a file. Finding that out takes as many entries.
const (
	indexShare = 1000
	leastByKey = 16      // rows that are read by key, however small the table is
	mostByKey  = 1 << 16 // and their keys are in memory
)

// chooseIndex sets the keys of the rows that a scan looks at, if an index finds few, and returns its name.
func (t *Table) chooseIndex(ctx context.Context, v *view, read *readOptions, o *scan.Options) (index string, err error) {
	if len(read.where) == 0 || read.noIndex {
		return "", nil
	}
	limit := int(min(max(t.tab.LiveRows()/indexShare, leastByKey), mostByKey))
	for _, entries := range t.entry.Indexes() {
		if !complete(entries, v.ts) {
			continue
		}
		c, ok := t.tab.IndexColumns(v.TableSchema, entries.Tablet)
		if !ok {
			continue
		}
		keys, ok, err := t.keysBy(ctx, v, read, &c, entries, o, limit)
		switch {
		case err != nil:
			return "", t.errorf(err)
		case ok:
			o.Only, limit, index = keys, len(keys)-1, entries.Index().Name
			if o.Only == nil {
				o.Only = [][]byte{}
			}
		}
		if limit < 0 {
			break
		}
	}
	return index, nil
}

func (t *Table) keysBy(ctx context.Context, v *view, read *readOptions, c *tablet.IndexColumns,
	entries *store.Table, o *scan.Options, limit int) ([][]byte, bool, error) {
	var of tablet.View
	err := t.entriesView(&of, v, read, entries)
	if errors.Is(err, fault.ErrTooOld) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, err
	}
	defer of.Release()
	return c.KeysBy(ctx, &o.Filter, &of, limit)
}

// entriesView sets of to the entries of an index as of the timestamp of a view of the table.
func (t *Table) entriesView(of *tablet.View, v *view, o *readOptions, entries *store.Table) error {
	if o.snapshot != nil && t.store.core.Follows() {
		if kept, ok := o.snapshot.pin.State(entries.Tablet); ok {
			*of = kept
			return nil
		}
	}
	return entries.SetView(of, tablet.Snapshot{At: mvcc.AsOf(v.ts), Latest: !o.asOf})
}

// complete reports whether the index has an entry for each row as of ts.
func complete(entries *store.Table, ts mvcc.Timestamp) bool {
	x := entries.Index()
	return !x.Building && x.Since <= ts
}
