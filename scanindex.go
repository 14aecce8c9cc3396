package oribi

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/internal/store"
	"github.com/oribi-db/oribi/internal/tablet"
	"github.com/oribi-db/oribi/mvcc"
	"github.com/oribi-db/oribi/scan"
	"github.com/oribi-db/oribi/scaninfo"
)

// A scan uses the index that leads to the fewest rows, if these are few: reading a row by its key takes as
// long as a look at indexShare rows of a file. Finding that out takes as many entries.
const (
	indexShare = 1000
	leastByKey = 16      // rows that are read by key, however small the table is
	mostByKey  = 1 << 16 // rows that an index may lead to unless Using names it
)

// keysBytes is about how much memory the keys of a scan take that are sorted: a part of
// Options.MemoryLimit, up to mostKeys.
const (
	keysShare = 32
	mostKeys  = 8 << 20
)

// byIndex is the index by which a scan finds its rows.
type byIndex struct {
	table   *store.Table // with the entries
	find    *tablet.IndexScan
	entries tablet.View
	sorted  *tablet.KeyOrder // nil: the rows are in the order of the index
	found   atomic.Int64     // entries that were read, unless sorted is set
}

// keys returns the number of keys that the index has found.
func (x *byIndex) keys() int64 {
	if x.sorted != nil {
		return x.sorted.Found()
	}
	return x.found.Load()
}

func (x *byIndex) release() {
	if x.sorted != nil {
		x.sorted.Release()
	}
	x.entries.Release()
}

// countedKeys counts keys.
type countedKeys struct {
	scan.Keys
	n *atomic.Int64
}

func (k countedKeys) Next() (key []byte, ok bool, err error) {
	if key, ok, err = k.Keys.Next(); ok {
		k.n.Add(1)
	}
	return key, ok, err
}

// indexChooser chooses the index of a scan.
type indexChooser struct {
	t       *Table
	ctx     context.Context
	v       *view
	read    *readOptions
	o       *scan.Options
	choices []scaninfo.IndexChoice
}

// choose returns the index that the scan uses, nil for none. Errors: ErrSchema for an index that it should use and
// cannot; ErrTooOld.
func (c *indexChooser) choose() (best *byIndex, err error) {
	name := c.read.using
	if c.read.orderBy != "" {
		if c.read.noIndex || name != "" && name != c.read.orderBy {
			return nil, c.t.errorf(fmt.Errorf("index %q: %w", c.read.orderBy, errOrder))
		}
		name = c.read.orderBy
	}
	if name != "" {
		entries, err := c.t.index(name)
		if err != nil {
			return nil, err
		}
		best, err := c.use(entries)
		return best, c.t.errorf(err)
	}
	if len(c.read.where) == 0 || c.read.noIndex {
		return nil, nil
	}
	limit := int(min(max(c.t.tab.LiveRows()/indexShare, leastByKey), mostByKey))
	for _, entries := range c.t.entry.Indexes() {
		x, why, err := c.open(entries, false)
		if err == nil && x != nil {
			if why, err = c.few(x, limit); err != nil || why != "" {
				x.release()
				x = nil
			}
		}
		if err != nil {
			if best != nil {
				best.release()
			}
			return nil, c.t.errorf(err)
		}
		choice := scaninfo.IndexChoice{Index: entries.Index().Name, Reason: why}
		if x != nil {
			choice.Reason = fmt.Sprintf("it leads to %d rows, of at most %d for which an index takes less time than a "+
				"look through the table", x.keys(), limit)
			if best != nil {
				best.release()
			}
			if best, limit = x, max(int(x.keys())-1, 0); x.keys() == 0 {
				limit = -1
			}
		}
		c.choices = append(c.choices, choice)
		if limit < 0 {
			break
		}
	}
	return best, nil
}

// few collects the keys to which an index leads, or returns why the scan does not use it.
func (c *indexChooser) few(x *byIndex, limit int) (why string, err error) {
	c.sort(x)
	ok, err := x.sorted.Begin(c.ctx, limit)
	if err == nil && !ok {
		why = fmt.Sprintf("it leads to more than %d rows", limit)
	}
	return why, err
}

// sort makes the keys be sorted.
func (c *indexChooser) sort(x *byIndex) {
	s := c.t.store
	most := int64(mostKeys)
	if limit := s.opts.MemoryLimit; limit > 0 {
		most = min(most, limit/keysShare)
	}
	x.sorted = &tablet.KeyOrder{Scan: x.find, Lower: c.o.Lower, Upper: c.o.Upper, Descending: c.o.Descending, Most: most,
		Count: func(n int64) { s.core.Scanning.Add(n) }}
}

// use returns an index that the caller has named.
func (c *indexChooser) use(entries *store.Table) (*byIndex, error) {
	ordered := c.read.orderBy != ""
	x, why, err := c.open(entries, ordered)
	name := entries.Index().Name
	switch {
	case err != nil:
		return nil, err
	case x == nil:
		return nil, fmt.Errorf("index %q: %w", name, fault.Reworded(fault.ErrSchema, "%s", why))
	case ordered || c.read.order == anyOrder:
		why = "the rows are in its order"
		if !ordered {
			why = "Using names it"
		}
	default:
		c.sort(x)
		if _, err := x.sorted.Begin(c.ctx, -1); err != nil {
			x.release()
			return nil, err
		}
		why = "Using names it"
	}
	c.choices = append(c.choices, scaninfo.IndexChoice{Index: name, Reason: why})
	return x, nil
}

// open opens an index, or returns why the scan cannot use it. all says that it need not bound the rows.
func (c *indexChooser) open(entries *store.Table, all bool) (_ *byIndex, why string, err error) {
	if !complete(entries, c.v.ts) {
		if entries.Index().Building {
			return nil, "it is not complete yet", nil
		}
		return nil, fmt.Sprintf("it is complete as of %v, and the read as of %v", entries.Index().Since, c.v.ts), nil
	}
	columns, ok := c.t.tab.IndexColumns(c.v.TableSchema, entries.Tablet)
	if !ok {
		return nil, "it was dropped", nil
	}
	x := &byIndex{table: entries}
	err = c.t.entriesView(&x.entries, c.v, c.read, entries)
	if errors.Is(err, fault.ErrTooOld) {
		return nil, "its history begins later", nil
	}
	if err != nil {
		return nil, "", err
	}
	if x.find, ok = tablet.NewIndexScan(columns, &x.entries, &c.o.Filter); !ok && !all {
		x.entries.Release()
		return nil, "no predicate that must be true bounds its first column", nil
	}
	if all {
		if err = c.t.boundOrder(c.v.Schema, x.find, c.read); err != nil {
			x.entries.Release()
			return nil, "", err
		}
	}
	return x, "", nil
}

// lookUp makes a scan look at the rows to which an index leads.
func (x *byIndex) lookUp(ctx context.Context, o *scan.Options) {
	if x.sorted != nil {
		o.Only = func() scan.Keys { return x.sorted.Open(ctx) }
		return
	}
	descending, limit := o.Descending, o.Limit
	o.Only = func() scan.Keys { return countedKeys{x.find.Entries(ctx, descending, limit), &x.found} }
}

// entriesView sets of to the entries of an index as of the timestamp of a view of the table.
func (t *Table) entriesView(of *tablet.View, v *view, o *readOptions, entries *store.Table) error {
	if o.snapshot != nil && t.store.core.Follows() {
		if kept, ok := o.snapshot.pin.State(entries.Tablet); ok {
			*of = kept
			return nil
		}
	}
	err := entries.SetView(of, tablet.Snapshot{At: mvcc.AsOf(v.ts), Latest: !o.asOf})
	if now := t.store.core.Installs(); err == nil && !o.asOf && (now != v.installs || now%2 != 0) {
		of.Release()
		return fault.Reworded(fault.ErrTooOld, "the follower was refreshed meanwhile") // the read begins again
	}
	return err
}

// complete reports whether the index has an entry for each row as of ts.
func complete(entries *store.Table, ts mvcc.Timestamp) bool {
	x := entries.Index()
	return !x.Building && x.Since <= ts
}
