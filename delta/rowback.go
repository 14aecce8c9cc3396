package delta

import (
	"bytes"
	"slices"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/cfile"
	"github.com/oribi-db/oribi/change"
	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/mvcc"
	"github.com/oribi-db/oribi/schema"
)

// This file reads the changes of single rows. Of each cblock that was searched the cache has the rows,
// so that the next search for a row that the cblock does not have needs no cblock. Of a row with long
// changes it keeps the newest one instead of the cblock.

// Kinds of values in the cache that were derived from a file, see cfile.Reader.KeepDerived.
const (
	derivedRows   = iota // of a data cblock: the rows with changes, []uint32, ascending
	derivedNewest        // of a row: change.Delta, the newest one in a file of redos
)

// longCell is the average size of a cell from which on changes are kept instead of cblocks.
const longCell = 256

// visit calls use with data cblock at, which is valid during the call only if changes are long.
func (f *File) visit(at int, use func(b cfile.Cells) error) error {
	if f.long {
		return f.cells.VisitData(at, func(_ batch.Ordinal, b cfile.Cells) error { return use(b) })
	}
	b, err := f.cells.DataBlock(at)
	if err != nil {
		return err
	}
	return use(b)
}

// rowsOf returns the rows with changes in data cblock at, in ascending order; nil if there is no
// cache to keep them. Errors: ErrCorrupt.
func (f *File) rowsOf(at int) ([]uint32, error) {
	if !f.cells.Cached() {
		return nil, nil
	}
	if v, ok := f.cells.Derived(derivedRows, uint32(at)); ok {
		return v.([]uint32), nil
	}
	var rows []uint32
	err := f.visit(at, func(b cfile.Cells) error {
		for i := range b.Len() {
			cell, err := b.Cell(i)
			if err != nil {
				return err
			}
			row, _, err := parseRow(cell)
			if err != nil {
				return err
			}
			switch n := len(rows); {
			case n == 0 || rows[n-1] < row:
				rows = append(rows, row)
			case rows[n-1] > row:
				return fault.Corruptf("row %d after row %d", row, rows[n-1])
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	rows = slices.Clip(rows)
	f.cells.KeepDerived(derivedRows, uint32(at), rows, 4*int64(len(rows)))
	return rows, nil
}

// rowBack calls use for the changes of one row that apply to snap, in reverse order of application,
// until use returns false or there are no more. Lists are checked against s and never overwritten.
// Errors: ErrCorrupt.
func (f *File) rowBack(row uint32, snap mvcc.Snapshot, undo bool, s *schema.Schema,
	use func(d change.Delta) bool) error {
	var buf [keyBytes]byte
	hi, err := f.cells.FindData(AppendKey(buf[:0], row, mvcc.Max))
	if err == nil && hi >= 0 {
		err = f.rowBackFrom(hi, row, snap, undo, s, use)
	}
	if err != nil {
		return f.damaged(err)
	}
	return nil
}

// rowBackFrom is rowBack; hi is the last cblock that begins with the row or an earlier one.
func (f *File) rowBackFrom(hi int, row uint32, snap mvcc.Snapshot, undo bool, s *schema.Schema,
	use func(d change.Delta) bool) error {
	rows, err := f.rowsOf(hi)
	if err != nil {
		return err
	}
	known := rows != nil // else all cblocks up to hi may have the row
	if _, ok := slices.BinarySearch(rows, row); known && !ok {
		return nil
	}
	b := backward{file: f, position: position{f, row, snap, undo}, schema: s, use: use}
	newest := !undo && snap.Sees(f.stats.Max) && f.long
	if newest {
		if v, ok := f.cells.Derived(derivedNewest, row); ok {
			d := v.(change.Delta)
			if err := d.List.Check(s); err != nil || !use(d) {
				return err
			}
			b.skip = true
		}
		b.keep = !b.skip
	}
	at := hi
	if !known || rows[0] == row {
		at, err = b.block(hi)
	}
	for ; at >= 0 && err == nil && !b.ended; at-- {
		err = f.visit(at, b.visit)
	}
	return err
}

// backward is one call of rowBack.
type backward struct {
	file *File
	position
	schema *schema.Schema
	use    func(d change.Delta) bool
	skip   bool // use was called for the next change
	keep   bool // the cache should have the next change
	ended  bool
}

// visit uses the changes in a cblock.
func (b *backward) visit(cells cfile.Cells) error {
	k, err := b.end(cells)
	for k--; k >= 0 && err == nil && !b.ended; k-- {
		var d change.Delta
		if d, err = deltaAt(cells, k); err != nil {
			break
		}
		if b.ended = d.Row != b.row; b.ended {
			break
		}
		if err = d.List.Check(b.schema); err == nil && applies(d.TS, b.snap, b.undo) {
			b.take(d)
		}
	}
	return err
}

// take uses a change in a cblock, unless it was used before.
func (b *backward) take(d change.Delta) {
	if b.skip {
		b.skip = false
		return
	}
	if b.file.long {
		d.List = bytes.Clone(d.List)
	}
	if b.keep {
		b.file.cells.KeepDerived(derivedNewest, b.row, d, int64(cap(d.List)))
		b.keep = false
	}
	b.ended = !b.use(d)
}

func deltaAt(b cfile.Cells, i int) (change.Delta, error) {
	cell, err := b.Cell(i)
	if err != nil {
		return change.Delta{}, err
	}
	return Parse(cell)
}

// position is the end of the changes of a row that apply to a snapshot. In a file of redos and in
// one of undos, the changes that do not apply come after those that do.
type position struct {
	f    *File
	row  uint32
	snap mvcc.Snapshot
	undo bool
}

// precedes reports whether the position is before cell i.
func (p *position) precedes(b cfile.Cells, i int) (bool, error) {
	cell, err := b.Cell(i)
	if err != nil {
		return false, err
	}
	row, ts, _, err := parseKey(cell)
	return row > p.row || row == p.row && !applies(ts, p.snap, p.undo), err
}

// end returns the position in a cblock.
func (p *position) end(b cfile.Cells) (int, error) {
	lo, hi := 0, b.Len()
	for lo < hi {
		mid := int(uint(lo+hi) >> 1)
		behind, err := p.precedes(b, mid)
		if err != nil {
			return 0, err
		}
		if behind {
			hi = mid
		} else {
			lo = mid + 1
		}
	}
	return lo, nil
}

// block returns the number of the cblock with the last change before the position, or −1 if no
// change is before it. hi is the last cblock that begins with the row or an earlier one. The index
// alone cannot find it, since the keys of undos descend within a row.
func (p *position) block(hi int) (int, error) {
	if hi <= 0 {
		return hi, nil
	}
	behind, err := p.begins(hi)
	if !behind || err != nil {
		return hi, err
	}
	// The row begins in cblock lo or in the next one, and all cblocks from there to hi begin with
	// it.
	var buf [keyBytes]byte
	lo, err := p.f.cells.FindData(AppendKey(buf[:0], p.row, mvcc.Min))
	for lo = max(lo, 0); hi-lo > 1 && err == nil; {
		mid := int(uint(lo+hi) >> 1)
		if behind, err = p.begins(mid); behind {
			hi = mid
		} else {
			lo = mid
		}
	}
	return min(lo, hi-1), err
}

// begins reports whether a cblock begins after the position.
func (p *position) begins(at int) (begins bool, err error) {
	err = p.f.visit(at, func(b cfile.Cells) (err error) {
		begins, err = p.precedes(b, 0)
		return err
	})
	return begins, err
}
