package delta

import (
	"fmt"
	"sync"

	"github.com/oribi-db/oribi/cfile"
	"github.com/oribi-db/oribi/internal/block"
	"github.com/oribi-db/oribi/internal/change"
	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/mvcc"
	"github.com/oribi-db/oribi/schema"
)

// File is an open file of deltas, redos or undos: which of the two it is its place in a Tracker says, not
// the file. Safe for concurrent use. Source: tablet spec §6.6.
type File struct {
	ID block.ID

	cells *cfile.Reader
	stats Stats
	size  int64
	spare sync.Pool // of *pointReader
}

// OpenFile opens the file that src holds, for as long as src is open.
// Errors: ErrUnsupported without value index or statistics; ErrCorrupt.
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

// Stats is what the file says that it holds; Columns is shared and read-only.
func (f *File) Stats() Stats { return f.stats }

// Len is the number of deltas.
func (f *File) Len() int64 { return f.cells.Rows() }

// Bytes is the length of the file.
func (f *File) Bytes() int64 { return f.size }

// redoRelevant tells whether a redo of the file can count for snap.
func (f *File) redoRelevant(snap mvcc.Timestamp) bool { return f.stats.Min < snap }

// undoRelevant tells whether an undo of the file can count for snap.
func (f *File) undoRelevant(snap mvcc.Timestamp) bool { return f.stats.Max >= snap }

// damaged puts the file's name before an error.
func (f *File) damaged(err error) error { return fmt.Errorf("delta: block %d: %w", f.ID, err) }

// pointReader reads single rows of a File, one after the other.
type pointReader struct {
	blocks *cfile.BlockIterator
	key    []byte
}

// eachOf hands the deltas of one row to use in the order of the file, checked against s. Of other rows it reads as
// many keys as a search takes. The lists hold as long as they are referenced. Errors: ErrCorrupt.
func (f *File) eachOf(row uint32, s *schema.Schema, use func(d change.Delta)) error {
	p, _ := f.spare.Get().(*pointReader)
	if p == nil {
		p = &pointReader{blocks: f.cells.Blocks()}
	}
	defer func() {
		p.blocks.Release()
		f.spare.Put(p)
	}()

	p.key = appendKey(p.key[:0], row, mvcc.Min)
	p.blocks.SeekAtOrBefore(p.key)
	for p.blocks.Enter() {
		i, err := p.find(row)
		for ; i < p.blocks.Len() && err == nil; i++ {
			var d change.Delta
			if d, err = p.delta(i); err != nil {
				break
			}
			if d.Row != row {
				return nil
			}
			if err = d.List.Check(s); err == nil {
				use(d)
			}
		}
		if err != nil {
			return f.damaged(err)
		}
	}
	if err := p.blocks.Err(); err != nil {
		return fmt.Errorf("delta: %w", err)
	}
	return nil
}

// find is the index of the first delta of row or a later one in the cblock at hand, or behind its last.
func (p *pointReader) find(row uint32) (int, error) {
	lo, hi := 0, p.blocks.Len()
	for lo < hi {
		mid := int(uint(lo+hi) >> 1)
		cell, err := p.blocks.Cell(mid)
		if err != nil {
			return 0, err
		}
		at, _, err := parseRow(cell)
		if err != nil {
			return 0, err
		}
		if at < row {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	return lo, nil
}

// delta is delta i of the cblock at hand.
func (p *pointReader) delta(i int) (change.Delta, error) {
	cell, err := p.blocks.Cell(i)
	if err != nil {
		return change.Delta{}, err
	}
	return parseDelta(cell)
}
