package scaninfo

import (
	"cmp"
	"slices"
	"time"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/internal/bind"
	"github.com/oribi-db/oribi/scan"
	"github.com/oribi-db/oribi/schema"
)

// Recorder fills an Explanation while a read runs. The methods of a nil Recorder do nothing.
type Recorder struct {
	// Complete reports whether the read came to its end. The caller sets it before Finish.
	Complete bool

	to     *Explanation
	e      Explanation
	stats  *scan.Stats
	schema *schema.Schema
	tests  []PredicateCounts
	keys   func() int64 // that an index has found; nil if no index is used
}

// Begin begins the explanation of a scan of a table with schema s, and makes o count. verb is the
// use of the rows, such as "returned", and where is the text of the predicates. Finish sets *to.
func Begin(to *Explanation, table, verb string, s *schema.Schema, where string, o *scan.Options) *Recorder {
	r := &Recorder{to: to, stats: scan.NewStats(&o.Filter), schema: s}
	o.Stats = r.stats
	r.e = Explanation{Table: table, Where: where, Workers: 1, verb: verb}
	for p := range o.Filter.Tests() {
		r.tests = append(r.tests, PredicateCounts{Predicate: bind.TestText(s, p), Column: p.Column})
	}
	return r
}

// MarkExpiry says that the last test of the filter is the test for rows that expire.
func (r *Recorder) MarkExpiry() {
	if n := len(r.tests); n > 0 {
		r.tests[n-1].Predicate += " (rows that expire)"
	}
}

// Scan returns it, with an explanation that is finished when the scan is closed. limit is the
// maximum number of its rows; below 0 there is none.
func (r *Recorder) Scan(it scan.Iterator, limit int64) scan.Iterator {
	return &explainedScan{Iterator: it, r: r, limit: limit}
}

// Timed adds the time since from to the time of the read.
func (r *Recorder) Timed(from time.Time) {
	if r != nil {
		r.e.Time += time.Since(from)
	}
}

// SetWorkers sets the number of goroutines.
func (r *Recorder) SetWorkers(n int) {
	if r != nil {
		r.e.Workers = n
	}
}

// ByIndex says that an index finds the keys of the rows that are read. keys returns how many it has found.
func (r *Recorder) ByIndex(name string, keys func() int64) {
	if r != nil {
		r.e.Index, r.keys = name, keys
	}
}

// Choices sets why indexes were used, and why not.
func (r *Recorder) Choices(list []IndexChoice) {
	if r != nil {
		r.e.Indexes = list
	}
}

// Restart clears the counts of a read that begins again.
func (r *Recorder) Restart() {
	if r != nil {
		r.stats.Reset()
	}
}

// Finish sets the explanation, after all iterators were closed. If returned is negative, all
// selected rows were returned.
func (r *Recorder) Finish(returned int64) {
	s := r.stats
	if returned < 0 {
		returned = s.Rows.Selected
	}
	e := &r.e
	if r.keys != nil {
		e.Keys = r.keys()
	}
	e.Returned, e.Complete = returned, r.Complete
	l := &s.Layout
	e.RowSets = RowSetCounts{Memory: l.MemRowSets, Disk: l.RowSets, Outside: l.Outside, Read: s.RowSetsRead()}
	e.RowSets.NotReached = l.RowSets - l.Outside - e.RowSets.Read
	rows := &s.Rows
	e.Rows = RowCounts{
		Disk: l.FileRows, Memory: rows.Memory, Outside: l.OutsideRows + rows.Outside, Invisible: rows.Invisible,
		Excluded:    rows.Excluded,
		NotReturned: rows.Selected - returned, Decoded: returned - rows.Stored, Stored: rows.Stored,
	}
	e.Rows.NotReached = e.Rows.Disk - e.Rows.Outside - rows.File
	e.Predicates = slices.Clone(r.tests)
	for i := range e.Predicates {
		e.Predicates[i].set(&s.Tests[i])
	}
	// Each test reduces the rows that are left for the next one.
	slices.SortStableFunc(e.Predicates, func(a, b PredicateCounts) int { return cmp.Compare(b.Tested, a.Tested) })
	for i := range r.schema.Columns {
		c := &r.schema.Columns[i]
		if counts := s.Columns[c.ID]; counts != nil {
			e.Columns = append(e.Columns, columnCounts(c.Name, counts))
		}
	}
	*r.to = *e
}

func (p *PredicateCounts) set(t *batch.TestCounts) {
	p.Tested, p.Passed = t.Tested, t.Passed
	p.Schema, p.ZoneMap, p.Dictionary, p.Planes, p.Stored = t.Schema, t.ZoneMap, t.Dictionary, t.Planes, t.Stored
	p.Decoded, p.Changed, p.Memory, p.Untested = t.Decoded, t.Changed, t.Memory, t.Untested
}

func columnCounts(name string, counts *scan.ColumnCounts) ColumnCounts {
	uses := counts.Uses()
	c := ColumnCounts{
		Column: name, Outside: uses[batch.BlockOutside], Skipped: uses[batch.BlockSkipped],
		ZoneMap: uses[batch.BlockZoneMap],
		Stored:  uses[batch.BlockStored], Decoded: uses[batch.BlockDecoded], Cells: counts.Decoded,
	}
	for _, n := range uses {
		c.Blocks += n
	}
	return c
}

// explainedScan explains the scan that it returns.
type explainedScan struct {
	scan.Iterator
	r        *Recorder // nil: closed
	returned int64
	limit    int64 // below 0: none
}

func (s *explainedScan) Next() bool {
	from := time.Now()
	ok := s.Iterator.Next()
	if s.r == nil {
		return ok
	}
	s.r.Timed(from)
	if s.r.Complete = !ok; ok { // complete unless Close returns an error
		s.returned += int64(s.Batch().Selected())
	}
	return ok
}

func (s *explainedScan) Close() error {
	from := time.Now()
	err := s.Iterator.Close()
	if r := s.r; r != nil {
		s.r = nil
		r.Timed(from)
		r.Complete = err == nil && (r.Complete || s.returned == s.limit)
		r.Finish(s.returned)
	}
	return err
}
