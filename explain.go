package oribi

import (
	"github.com/oribi-db/oribi/scan"
	"github.com/oribi-db/oribi/scaninfo"
	"github.com/oribi-db/oribi/schema"
)

// Explanation describes what a scan, a count, or an aggregate did: what it read, what it skipped
// and why, and how it tested each predicate. The option Explain and Scan.Explain return one. Its
// parts are counts of rowsets, of rows, of each predicate, and of each column.
type (
	Explanation     = scaninfo.Explanation
	RowSetCounts    = scaninfo.RowSetCounts
	RowCounts       = scaninfo.RowCounts
	PredicateCounts = scaninfo.PredicateCounts
	ColumnCounts    = scaninfo.ColumnCounts
)

// Explain makes a read set *e to an explanation of what it did, when it ends: for a scan at the end
// of the loop over its rows, also if the loop was left early or there was an error. If the read
// fails before it reads rows, or does not run, *e does not change. A read that is explained is
// slower: it tests predicates one by one. A nil e has no effect.
func Explain(e *Explanation) CountOption {
	return countOption(func(o *readOptions) {
		if e != nil {
			o.explain = e
		}
	})
}

// Explain runs the scan to its end and describes what it did, without returning the rows. To get
// both, give Table.Scan the option Explain. Together with an error, the explanation describes the
// read up to then; it is nil if nothing was read.
func (sc *Scan) Explain() (*Explanation, error) {
	to, e := sc.o.explain, new(Explanation)
	sc.o.explain = e
	defer func() { sc.o.explain = to }()
	var failed error
	for _, err := range sc.Batches() {
		failed = err
	}
	if e.Table == "" { // it did not begin to read
		return nil, failed
	}
	if to != nil {
		*to = *e
	}
	return e, failed
}

// record begins the explanation of a scan with options o, and makes o count. verb is the use of the
// rows.
func (sc *Scan) record(verb string, v *view, o *scan.Options) *scaninfo.Recorder {
	s := v.TableSchema.Schema
	r := scaninfo.Begin(sc.o.explain, sc.t.tab.Name(), verb, s, whereText(s, sc.o.where), o)
	if v.Clock() >= 0 { // the test for expired rows was added last
		r.MarkExpiry()
	}
	return r
}

// whereText returns predicates in the syntax of SQL.
func whereText(s *schema.Schema, where []Predicate) string {
	if len(where) == 0 {
		return ""
	}
	p := And(where...)
	readable := p.p.Readable(s)
	return readable.String()
}

// ExplainScan makes *e the explanation of a scan of rows that are in no store, as those of a
// kudu.Table. s is their schema and where are the predicates of o.Filter, for the text. It sets
// o.Stats, with which the caller makes the scan; the iterator that wrap returns for it sets *e when
// it is closed, and ends after o.Limit rows, unless that is 0.
func ExplainScan(
	e *Explanation, table string, s *schema.Schema, where []Predicate, o *scan.Options,
) (wrap func(scan.Iterator) scan.Iterator) {
	r, limit := scaninfo.Begin(e, table, "returned", s, whereText(s, where), o), int64(-1)
	if o.Limit > 0 {
		limit = o.Limit
	}
	return func(it scan.Iterator) scan.Iterator {
		if limit >= 0 {
			it = scan.Limit(it, limit)
		}
		return r.Scan(it, limit)
	}
}
