package scan

import (
	"sync"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/schema"
)

// Stats counts what the iterators of a scan do. Each iterator counts for itself and adds its Counts
// when it is closed, so iterators in several goroutines may share Stats. The fields may be read
// when all iterators are closed.
type Stats struct {
	Layout  Layout
	Rows    RowCounts
	Tests   []batch.TestCounts // of the filter's predicates, in the order of Filter.Tests
	Columns map[schema.ColumnID]*ColumnCounts

	mu         sync.Mutex
	predicates []*batch.Predicate
	read       map[any]bool // rowsets
}

// Layout is the table as the scan finds it.
type Layout struct {
	MemRowSets  int   // that are not empty
	RowSets     int   // on disk
	Outside     int   // of these, those whose keys are all outside of the scan's range
	FileRows    int64 // rows of all rowsets on disk, deleted ones included
	OutsideRows int64 // of these, the rows of rowsets outside of the range
}

// RowCounts counts rows. File and Memory together are the sum of Invisible, Excluded and Selected.
type RowCounts struct {
	Outside   int64 // rows outside of the scan's range in rowsets that were opened
	File      int64 // rows of rowsets on disk that were read, or passed over because they are known to be deleted
	Memory    int64 // rows that were read from MemRowSets, without those that the snapshot does not see
	Invisible int64 // rows that the snapshot does not see: deleted, or inserted later
	Excluded  int64 // rows for which the filter is false
	Selected  int64 // the other rows
	Stored    int64 // of these, rows whose values were used as they are stored (see Consumer)
}

func (c *RowCounts) add(o *RowCounts) {
	c.Outside += o.Outside
	c.File += o.File
	c.Memory += o.Memory
	c.Invisible += o.Invisible
	c.Excluded += o.Excluded
	c.Selected += o.Selected
	c.Stored += o.Stored
}

// ColumnCounts counts the cblocks and cells of a column in the rowsets that were opened.
type ColumnCounts struct {
	Decoded int64                    // cells
	Blocks  map[any][]batch.BlockUse // by rowset: the use of each cblock
}

// Uses returns the number of cblocks of each use.
func (c *ColumnCounts) Uses() (n [batch.BlockUses]int64) {
	for _, uses := range c.Blocks {
		for _, u := range uses {
			n[u]++
		}
	}
	return n
}

// NewStats returns Stats for a scan with filter f.
func NewStats(f *batch.Filter) *Stats {
	s := &Stats{Columns: map[schema.ColumnID]*ColumnCounts{}, read: map[any]bool{}}
	for p := range f.Tests() {
		s.predicates = append(s.predicates, p)
	}
	s.Tests = make([]batch.TestCounts, len(s.predicates))
	return s
}

// Reset sets all counts but the layout to 0, for a scan that begins again.
func (s *Stats) Reset() {
	s.Rows = RowCounts{}
	clear(s.Tests)
	clear(s.Columns)
	clear(s.read)
}

// RowSetsRead returns the number of rowsets on disk that were opened.
func (s *Stats) RowSetsRead() int { return len(s.read) }

// Counts is the part of one iterator. Not safe for concurrent use.
type Counts struct {
	Rows  RowCounts
	stats *Stats
	tests []batch.TestCounts
	saved []batch.TestCounts
}

// NewCounts returns Counts of an iterator for r, nil if the scan does not count.
func (r *Request) NewCounts() *Counts {
	s := r.o.Stats
	if s == nil {
		return nil
	}
	return &Counts{stats: s, tests: make([]batch.TestCounts, len(s.predicates))}
}

// Test returns the counts of p, which may be the test that replaces a predicate while it rests, nil
// for a predicate that is not part of the filter.
func (c *Counts) Test(p *batch.Predicate) (t *batch.TestCounts, rests bool) {
	for i, q := range c.stats.predicates {
		if ok, rests := p.For(q); ok {
			return &c.tests[i], rests
		}
	}
	return new(batch.TestCounts), false
}

// Mark marks a point to which Undo can return.
func (c *Counts) Mark() { c.saved = append(c.saved[:0], c.tests...) }

// Undo forgets the tests since the last call of Mark.
func (c *Counts) Undo() { copy(c.tests, c.saved) }

// Add adds c to the Stats and resets it.
func (c *Counts) Add() {
	s := c.stats
	s.mu.Lock()
	defer s.mu.Unlock()
	s.Rows.add(&c.Rows)
	for i := range c.tests {
		s.Tests[i].Add(&c.tests[i])
	}
	c.Rows = RowCounts{}
	clear(c.tests)
}

// AddRowSet adds a rowset that was opened. rowset identifies it: it is the same value for all
// iterators over the rowset, and another one for other rowsets, which may have its ID in other tablets.
func (c *Counts) AddRowSet(rowset any) {
	c.stats.mu.Lock()
	defer c.stats.mu.Unlock()
	c.stats.read[rowset] = true
}

// AddColumn adds what was done with a column of a rowset: the number of cells decoded and the use
// of each cblock. rowset is as in AddRowSet.
func (c *Counts) AddColumn(rowset any, id schema.ColumnID, decoded int64, uses []batch.BlockUse) {
	s := c.stats
	s.mu.Lock()
	defer s.mu.Unlock()
	column := s.Columns[id]
	if column == nil {
		column = &ColumnCounts{Blocks: map[any][]batch.BlockUse{}}
		s.Columns[id] = column
	}
	column.Decoded += decoded
	before := column.Blocks[rowset]
	if before == nil {
		before = make([]batch.BlockUse, len(uses))
		column.Blocks[rowset] = before
	}
	for i, u := range uses { // several iterators may read parts of one rowset
		before[i] = max(before[i], u)
	}
}
