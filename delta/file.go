package delta

import (
	"fmt"
	"sync/atomic"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/block"
	"github.com/oribi-db/oribi/cfile"
	"github.com/oribi-db/oribi/change"
	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/mvcc"
	"github.com/oribi-db/oribi/schema"
)

// File is an open delta file. It contains redos or undos; its position in a Tracker determines
// which, since the file does not record it. Safe for concurrent use. Source: tablet spec §6.6.
type File struct {
	ID block.ID

	cells *cfile.Reader
	stats Stats
	size  int64

	bounds atomic.Pointer[[]cblockBounds] // of the data cblocks; nil before the first read
}

// OpenFile opens a delta file. src must stay open while the File is in use. Errors: ErrUnsupported
// for a file without value index or statistics; ErrCorrupt.
func OpenFile(src block.Source, o cfile.ReaderOptions) (*File, error) {
	f := &File{ID: src.ID(), size: src.Size()}
	var err error
	if f.cells, err = cfile.Open(src, o); err != nil {
		return nil, fmt.Errorf("delta: %w", err)
	}
	info := f.cells.Info()
	if info.Type != schema.Binary || info.Nullable {
		return nil, fault.Corruptf("delta: block %d: cells of type %s, nullable %v, are no deltas", f.ID, info.Type, info.Nullable)
	}
	if info.Encoding != schema.Plain {
		return nil, fault.Unsupportedf("delta: block %d: encoding %s", f.ID, info.Encoding)
	}
	if !info.ValueIndex {
		return nil, fault.Unsupportedf("delta: block %d: no value index", f.ID)
	}
	message, ok := f.cells.Metadata(statsKey)
	if !ok {
		return nil, fault.Unsupportedf("delta: block %d: no statistics", f.ID)
	}
	if f.stats, err = decodeStats(message); err != nil {
		return nil, fmt.Errorf("delta: block %d: %w", f.ID, err)
	}
	return f, nil
}

// Stats returns the statistics recorded in the file. Columns is shared and read-only.
func (f *File) Stats() Stats { return f.stats }

// Len returns the number of deltas.
func (f *File) Len() int64 { return f.cells.Rows() }

// Bytes returns the size of the file.
func (f *File) Bytes() int64 { return f.size }

// has reports whether the file may have changes of a filter.
func (f *File) has(changes filter) bool { return !changes.excludes(f.stats.Min, f.stats.Max) }

// damaged adds the block's number to an error.
func (f *File) damaged(err error) error { return fmt.Errorf("delta: block %d: %w", f.ID, err) }

// wrap adds the package's name to an error that names the block.
func (f *File) wrap(err error) error { return fmt.Errorf("delta: %w", err) }

// block returns data cblock i, from the cache if possible, checked against s. If it is not in the
// cache, it is parsed in memory of lender, unless that is nil; then it is put into the cache.
// Errors: ErrCorrupt.
func (f *File) block(i int, s *schema.Schema, lender *blockLender) (*deltaBlock, error) {
	v, err := f.cells.ParsedBlock(i, func(_ batch.Ordinal, cells *batch.Vector) (any, int64, error) {
		if lender == nil {
			return parseBlock(new(deltaBlock), cells.Bytes[:cells.Len], s)
		}
		b, _, err := parseBlock(lender.lend(), cells.Bytes[:cells.Len], s)
		return b, -1, err
	})
	if err != nil {
		return nil, f.wrap(err)
	}
	b := v.(*deltaBlock)
	if err := b.check(s); err != nil {
		return nil, f.damaged(err)
	}
	return b, nil
}

// rowBack calls use for the changes of one row that apply to snap, in reverse order of application,
// until use returns false or there are no more. Otherwise it reads only the keys that the search
// needs. Lists are checked against s and never overwritten. Errors: ErrCorrupt.
func (f *File) rowBack(row uint32, snap mvcc.Snapshot, undo bool, s *schema.Schema, use func(d change.Delta) bool) error {
	p := position{f, row, snap, undo}
	at, err := p.block()
	for ; at >= 0 && err == nil; at-- {
		var b cfile.Cells
		if b, err = f.cells.DataBlock(at); err != nil {
			break
		}
		var k int
		k, err = p.end(b)
		for k--; k >= 0 && err == nil; k-- {
			var d change.Delta
			if d, err = deltaAt(b, k); err != nil {
				break
			}
			if d.Row != row {
				return nil
			}
			if err = d.List.Check(s); err == nil && applies(d.TS, snap, undo) && !use(d) {
				return nil
			}
		}
	}
	if err != nil {
		return f.damaged(err)
	}
	return nil
}

func deltaAt(b cfile.Cells, i int) (change.Delta, error) {
	cell, err := b.Cell(i)
	if err != nil {
		return change.Delta{}, err
	}
	return parseDelta(cell)
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

// block returns the number of the cblock with the last change before the position, −1 if there is
// none. The index alone cannot find it, since the keys of undos descend within a row.
func (p *position) block() (int, error) {
	var buf [keyBytes]byte
	hi, err := p.f.cells.FindData(appendKey(buf[:0], p.row, mvcc.Max))
	if hi <= 0 || err != nil {
		return hi, err
	}
	behind, err := p.begins(hi)
	if !behind || err != nil {
		return hi, err
	}
	// The row begins in cblock lo or in the next one, and all cblocks from there to hi begin with
	// it.
	lo, err := p.f.cells.FindData(appendKey(buf[:0], p.row, mvcc.Min))
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
func (p *position) begins(at int) (bool, error) {
	b, err := p.f.cells.DataBlock(at)
	if err != nil {
		return false, err
	}
	return p.precedes(b, 0)
}
