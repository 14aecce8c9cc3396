package tablet

import (
	"bytes"
	"fmt"
	"slices"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/internal/rowunion"
	"github.com/oribi-db/oribi/mvcc"
	"github.com/oribi-db/oribi/scan"
	"github.com/oribi-db/oribi/schema"
)

// Diff iterates over the rows whose content differs between two timestamps, in key order, which may
// descend.
//
// It compares the rows of rowunion.Union.Changed. Not safe for concurrent use.
type Diff struct {
	table    string
	state    *tabletState
	join     *rowunion.Join // nil: there is no request
	key      []byte
	old, new [][]byte // with the cells of the filter at the end
	err      error

	columns    int               // that are compared
	filter     batch.Filter      // of the rows in either state
	ids        []schema.ColumnID // of old and new
	descending bool

	gone   *expiredRows // nil: no row expires between the two
	joined difference   // the current row of the join, if waits is set
	waits  bool
	ended  bool // the join
}

// difference is a row that differs.
type difference struct {
	key      []byte
	old, new [][]byte
}

// Diff compares what v sees with a later snapshot. Every batch that either snapshot includes has
// been published. Of the options, it uses the columns, the bounds, the order, and the filter, which
// must be true for the row in one of the two states. The Diff releases v at Close.
func (v View) Diff(o scan.Options, to mvcc.Snapshot) *Diff {
	d := &Diff{table: v.of.Name(), state: v.state, columns: len(o.Columns), filter: o.Filter,
		descending: o.Descending}
	for p := range o.Filter.Tests() {
		if i := v.Schema.IndexID(p.ID); i >= 0 && !slices.Contains(o.Columns, i) {
			o.Columns = append(slices.Clip(o.Columns), i)
		}
	}
	for _, i := range o.Columns {
		d.ids = append(d.ids, v.Schema.Columns[i].ID)
	}
	request := func(snap mvcc.Snapshot) (r *scan.Request) {
		if d.err == nil {
			r, d.err = scan.NewRequest(scan.Options{Schema: v.Schema, Columns: o.Columns,
				Filter: v.asOf(snap).Alive(batch.Filter{}),
				Lower:  o.Lower, Upper: o.Upper, Descending: o.Descending, Snapshot: snap, Keys: true})
		}
		return r
	}
	before, after := request(v.snap), request(to)
	if d.err == nil {
		d.join = d.state.union().Changed(v.snap, to, before, after)
		d.gone, d.err = v.newExpiredRows(o, to)
	}
	return d
}

// OnlyChanged leaves out rows that have expired between the two timestamps and were not changed. It is
// called before Next.
func (d *Diff) OnlyChanged() {
	if d.gone != nil {
		if err := d.gone.it.Close(); d.err == nil {
			d.err = err
		}
		d.gone = nil
	}
}

// Next advances to the next row that differs and satisfies the filter, and reports whether there is
// such a row.
func (d *Diff) Next() bool {
	for d.next() {
		if d.filter.All() || d.satisfies(d.old) || d.satisfies(d.new) {
			return true
		}
	}
	return false
}

// satisfies reports whether the filter is true for a row.
func (d *Diff) satisfies(cells [][]byte) bool {
	return cells != nil && d.filter.EvalRow(func(id schema.ColumnID) []byte {
		if i := slices.Index(d.ids, id); i >= 0 {
			return cells[i]
		}
		return nil
	})
}

// next advances to the next row that differs. It merges the rows that were changed with those that
// have expired.
func (d *Diff) next() bool {
	if d.gone == nil {
		return d.nextChanged()
	}
	if !d.waits && !d.ended {
		if d.waits = d.nextChanged(); d.waits {
			d.joined = difference{d.key, d.old, d.new}
		}
		d.ended = !d.waits
	}
	if d.err == nil && d.gone.key == nil {
		d.err = d.gone.next()
	}
	if d.err != nil {
		return false
	}
	key := d.gone.key
	switch {
	case d.waits && (key == nil || d.inOrder(d.joined.key, key)):
		if key != nil && bytes.Equal(d.joined.key, key) {
			d.gone.key = nil
		}
		d.waits, d.key, d.old, d.new = false, d.joined.key, d.joined.old, d.joined.new
		return true
	case key == nil:
		return false
	}
	d.gone.key, d.key, d.old, d.new = nil, key, d.gone.cells, nil
	return true
}

// inOrder reports whether key a is b, or comes before b.
func (d *Diff) inOrder(a, b []byte) bool {
	if d.descending {
		a, b = b, a
	}
	return bytes.Compare(a, b) <= 0
}

// nextChanged advances to the next row that was changed and differs.
func (d *Diff) nextChanged() bool {
	for d.err == nil && d.join.Next() {
		d.key, d.old, d.new = d.join.Key(), d.join.Before(), d.join.After()
		if !rowunion.SameCells(d.compared(d.old), d.compared(d.new)) {
			return true
		}
	}
	if d.err == nil {
		d.err = d.join.Close() // it is at its end
	}
	return false
}

// compared returns the cells of the columns that are compared; nil if there is no row.
func (d *Diff) compared(cells [][]byte) [][]byte {
	if cells == nil {
		return nil
	}
	return cells[:d.columns]
}

// Key returns the encoded key of the current row. It is never overwritten.
func (d *Diff) Key() []byte { return d.key }

// Before returns the row's cells as of the earlier timestamp; nil if there was no row. They are
// valid until the next call of Next.
func (d *Diff) Before() [][]byte { return d.compared(d.old) }

// After returns the row's cells as of the later timestamp; nil if there was no row. They are valid
// until the next call of Next.
func (d *Diff) After() [][]byte { return d.compared(d.new) }

// Close ends the iteration and returns its first error. It may be called twice.
func (d *Diff) Close() error {
	if d.join != nil {
		if err := d.join.Close(); d.err == nil {
			d.err = err
		}
	}
	if d.gone != nil {
		if err := d.gone.it.Close(); d.err == nil {
			d.err = err
		}
	}
	if d.state != nil {
		d.state.release()
		d.state = nil
	}
	if d.err != nil {
		return fmt.Errorf("table %q: %w", d.table, d.err)
	}
	return nil
}
