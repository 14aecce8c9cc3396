package tablet

import (
	"bytes"
	"context"
	"fmt"
	"slices"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/keyenc"
	"github.com/oribi-db/oribi/scan"
)

// IndexScan finds the keys of rows by the entries of an index. Rows are in the order of their positions: the
// indexed columns as in an entry, and then the key. Its methods do not change it.
type IndexScan struct {
	IndexColumns
	entries *View // of the table with the entries; released by its owner
	ranges  []entryRange
	lower   []byte // position, inclusive; nil is no bound
	upper   []byte // position, exclusive; nil is no bound
}

// NewIndexScan returns a scan of entries that contain those of all rows for which a filter is true. ok reports
// whether the filter bounds the first column of the index; if not, the scan is of all entries.
func NewIndexScan(c IndexColumns, entries *View, f *batch.Filter) (x *IndexScan, ok bool) {
	x = &IndexScan{IndexColumns: c, entries: entries}
	if x.ranges, ok = c.ranges(f); !ok {
		x.ranges = []entryRange{{}}
	}
	return x, ok
}

// Bound is a place in the order of an index: values of the indexed columns, then of the key, the first ones or
// all.
type Bound struct {
	Cells [][]byte // nil is NULL
	Keys  int      // columns of the key
}

// Above leaves out the rows up to those with the values of a bound.
func (x *IndexScan) Above(b Bound) {
	at, entry := x.position(b)
	lower := keyenc.PrefixEnd(at)
	if len(b.Cells) == len(x.Columns)+b.Keys {
		lower = append(at, 0)
	}
	if lower == nil { // no position is above it
		x.ranges = nil
		return
	}
	x.lower = lower
	if entry = min(entry, len(lower)); entry < len(at) { // another row may have this entry by now
		lower = lower[:entry]
	}
	x.narrow(lower, nil)
}

// Below leaves out the rows from those with the values of a bound on.
func (x *IndexScan) Below(b Bound) {
	x.upper, _ = x.position(b)
	x.narrow(nil, x.upper)
}

// position returns the encoding of a bound, of which the first entry bytes are of an entry.
func (x *IndexScan) position(b Bound) (at []byte, entry int) {
	n := min(len(b.Cells), len(x.Columns))
	at = x.AppendPrefix(nil, b.Cells[:n])
	entry = len(at)
	for i, cell := range b.Cells[n:] {
		at = keyenc.AppendKeyCell(at, x.schema.Columns[i].Type, cell, i == b.Keys-1)
	}
	if !x.alone(b.Cells[:n]) {
		entry = len(at)
	}
	return at, entry
}

// alone reports whether the entry of a row with some cells in the indexed columns does not contain the key.
func (x *IndexScan) alone(cells [][]byte) bool {
	return x.Table.Index().Unique && !slices.ContainsFunc(cells, func(cell []byte) bool { return cell == nil })
}

// narrow removes the entries below lower and those not below upper; nil is no bound.
func (x *IndexScan) narrow(lower, upper []byte) {
	var left []entryRange
	for _, r := range x.ranges {
		o := scan.Options{Lower: r.lower, Upper: r.upper}
		o.Narrow(lower, upper)
		if o.Upper == nil || bytes.Compare(o.Lower, o.Upper) < 0 {
			left = append(left, entryRange{o.Lower, o.Upper})
		}
	}
	x.ranges = left
}

// Ranges yields the ranges of the entries, disjoint and ascending; a nil upper is no bound.
func (x *IndexScan) Ranges(yield func(lower, upper []byte) bool) {
	for _, r := range x.ranges {
		if !yield(r.lower, r.upper) {
			return
		}
	}
}

// Entries returns an iterator over the entries, in the order of the index or backward. limit is the number of
// entries that the caller will read, if known; 0 means all.
func (x *IndexScan) Entries(ctx context.Context, descending bool, limit int64) *Entries {
	return &Entries{x: x, ctx: ctx, left: x.ranges, ordered: true, descending: descending, limit: limit}
}

// Entries iterates over the entries of an IndexScan. It implements scan.Keys.
type Entries struct {
	x          *IndexScan
	ctx        context.Context
	left       []entryRange
	ordered    bool // or in no order
	descending bool
	limit      int64

	// OnRange, unless it is nil, is called before the entries of a range are read.
	OnRange func(lower, upper []byte)

	it    scan.Iterator // nil: none is open
	row   int           // the next one of its batch; below 0: none
	entry []byte
}

// Next returns the key of the row of the next entry. It is never overwritten.
func (e *Entries) Next() (key []byte, ok bool, err error) {
	for {
		for e.it == nil || e.row < 0 {
			if ok, err := e.load(); !ok {
				return nil, false, err
			}
		}
		b, i := e.it.Batch(), e.row
		e.row = b.Selection.Next(i + 1)
		if e.entry = e.it.Keys()[i]; len(b.Columns) > 0 {
			key = b.Columns[0].Cell(i)
		} else if key, ok = e.x.rowKey(e.entry); !ok {
			return nil, false, fmt.Errorf("index %q: %w", e.x.Table.Index().Name, fault.Corruptf("an entry %x", e.entry))
		}
		if e.x.lower == nil && e.x.upper == nil || e.x.Has(e.x.Position(e.entry, key)) {
			return key, true, nil
		}
	}
}

// Entry returns the key of the current entry.
func (e *Entries) Entry() []byte { return e.entry }

// load reads the next batch of entries. It returns false at the end.
func (e *Entries) load() (bool, error) {
	if err := e.ctx.Err(); err != nil {
		return false, err
	}
	if e.it == nil {
		if len(e.left) == 0 {
			return false, nil
		}
		if err := e.open(); err != nil {
			return false, err
		}
	}
	if e.it.Next() {
		e.row = e.it.Batch().Selection.Next(0)
		return true, nil
	}
	err := e.it.Close()
	e.it = nil
	return err == nil, err
}

// open begins the next range.
func (e *Entries) open() (err error) {
	var r entryRange
	if e.descending {
		r, e.left = e.left[len(e.left)-1], e.left[:len(e.left)-1]
	} else {
		r, e.left = e.left[0], e.left[1:]
	}
	if e.OnRange != nil {
		e.OnRange(r.lower, r.upper)
	}
	columns := []int{}
	if e.x.Table.Index().Unique {
		columns = append(columns, e.x.entries.Schema.Index(RowColumn))
	}
	e.row = -1
	e.it, err = e.x.entries.Ref().Scan(scan.Options{Columns: columns, Filter: e.x.entries.Alive(batch.Filter{}),
		Lower: r.lower, Upper: r.upper, Keys: true, Descending: e.descending, Limit: e.limit}, e.ordered)
	return err
}

// Close ends the iteration.
func (e *Entries) Close() {
	if e.it != nil {
		e.it.Close()
		e.it = nil
	}
	e.left = nil
}

// Position returns the place of the row of an entry in the order of the index.
func (x *IndexScan) Position(entry, key []byte) []byte {
	if rest, _ := x.rowKey(entry); x.Table.Index().Unique && len(rest) == 0 {
		return append(bytes.Clone(entry), key...)
	}
	return entry
}

// Entry returns the entry of a row of which all cells are given, and its position.
func (c *IndexColumns) Entry(key []byte, cells [][]byte) (entry, position []byte) {
	alone := c.Table.Index().Unique
	var indexed [][]byte
	for _, i := range c.Columns {
		indexed = append(indexed, cells[i])
		alone = alone && cells[i] != nil
	}
	position = c.AppendPrefix(nil, indexed)
	n := len(position)
	if position = append(position, key...); !alone {
		n = len(position)
	}
	return position[:n:n], position
}

// Has reports whether a position is within the bounds of the scan, given that its entry is in one of its ranges.
func (x *IndexScan) Has(position []byte) bool {
	return bytes.Compare(position, x.lower) >= 0 && (x.upper == nil || bytes.Compare(position, x.upper) < 0)
}
