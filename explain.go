package oribi

import (
	"github.com/oribi-db/oribi/scan"
	"github.com/oribi-db/oribi/scaninfo"
	"github.com/oribi-db/oribi/schema"
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

// newRecorder begins the explanation of a read of a table with options o, and makes the scan of it
// count. verb is the use of the rows.
func newRecorder(t *Table, o *readOptions, verb string, v *view, sc *scan.Options) *scaninfo.Recorder {
	s := v.TableSchema.Schema
	r := scaninfo.Begin(o.explain, t.tab.Name(), verb, s, whereText(s, o.where), sc)
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

// ExplainScan makes *e the explanation of a scan of rows that are in no store, as the rows of a
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
