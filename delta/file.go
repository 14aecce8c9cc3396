package delta

import (
	"fmt"
	"sync/atomic"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/block"
	"github.com/oribi-db/oribi/cfile"
	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/schema"
)

// File is an open delta file. It contains redos or undos; its position in a Tracker determines
// which, since the file does not record it. Safe for concurrent use. Source: tablet spec §6.6.
type File struct {
	ID block.ID

	cells *cfile.Reader
	stats Stats
	size  int64
	long  bool // changes are long, and there is a cache to keep them: see longCell

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
		return nil, fault.Corruptf("delta: block %d: cells of type %s, nullable %v, are no deltas", f.ID,
			info.Type, info.Nullable)
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
	f.long = f.cells.Cached() && f.Len() > 0 && f.size/f.Len() >= longCell
	return f, nil
}

// Stats returns the statistics recorded in the file. Columns is shared and read-only.
func (f *File) Stats() Stats { return f.stats }

// Len returns the number of deltas.
func (f *File) Len() int64 { return f.cells.Rows() }

// Bytes returns the size of the file.
func (f *File) Bytes() int64 { return f.size }

// Checksums reports whether the file has checksums, as all that this program writes.
func (f *File) Checksums() bool { return f.cells.Info().Checksums }

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
