package oribi

import (
	"github.com/oribi-db/oribi/block"
	"github.com/oribi-db/oribi/blockmanager"
	"github.com/oribi-db/oribi/compaction"
	"github.com/oribi-db/oribi/rowset"
)

// RowSets returns the metadata of the table's rowsets on disk, ordered by first key: their blocks,
// bounds and counts. It must not be modified. Store.OpenBlock opens the blocks.
func (t *Table) RowSets() []*rowset.Metadata { return t.tab.RowSetMetadata() }

// OpenBlock opens a block: a column file, a delta file, or another file of a rowset, as its
// metadata says. The caller closes it. It stays readable until then or until Close, also after a
// compaction has dropped it.
//
// Errors: ErrNotFound if there is no such block, or no more; ErrTooOld in a follower that has to
// be refreshed; ErrCorrupt; ErrClosed.
func (s *Store) OpenBlock(id block.ID) (blockmanager.Source, error) {
	if err := s.enter(); err != nil {
		return nil, err
	}
	defer s.leave()
	src, err := s.core.Blocks.OpenBlock(id)
	if err != nil {
		return nil, callErr("open block", s.core.OutOfDate(err))
	}
	return src, nil
}

// BlockBytes appends the sizes of blocks, in bytes, to dst: −1 for a block that does not exist, or
// no more. It reads no file.
func (s *Store) BlockBytes(dst []int64, ids ...block.ID) []int64 {
	return s.core.Blocks.Lengths(dst, ids...)
}

// Unflushed is the memory of a table's rows and changes that are not in files yet, in bytes.
type Unflushed struct {
	Rows    int64
	Changes int64 // of rows on disk
}

// Unflushed returns the memory of the table.
func (t *Table) Unflushed() (u Unflushed) {
	u.Rows, u.Changes = t.tab.MemBytes()
	return u
}

// DeltasDue returns the delta compactions of the table that are due, without those whose rowsets
// other compactions rewrite now. Background work does one of them at a time, in the order that
// docs/compaction.md describes. Errors: ErrNoTable; ErrClosed.
func (t *Table) DeltasDue() ([]compaction.DeltaChoice, error) {
	if err := t.store.enter(); err != nil {
		return nil, err
	}
	defer t.store.leave()
	infos, err := t.tab.Deltas(nil)
	if err != nil {
		return nil, t.errorf(err)
	}
	due, _ := compaction.PickDeltas(infos)
	return due, nil
}
