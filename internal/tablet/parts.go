package tablet

import (
	"fmt"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/scan"
)

// partRows is the number of rows of a rowset in one part of a scan: few enough that goroutines end
// at about the same time, and so many that opening the columns again costs little.
const partRows = 16 * batch.WindowRows

// Parts returns a scan without order as parts that can be read concurrently: a share of the rows of
// a MemRowSet, or a range of rows of a rowset. The parts of a MemRowSet divide its rows a window at
// a time: one alone returns all of them, and a part that is opened late may return none. v must not be released while one of them is in use.
// Like Scan, it ignores the schema and the snapshot in the options. Errors: those of
// scan.NewRequest.
func (v View) Parts(o scan.Options) ([]scan.Opener, error) {
	st := v.state
	o.Schema, o.Snapshot, o.Rows = v.Schema, v.snap, scan.RowRange{}
	r, err := scan.NewRequest(o)
	if err != nil {
		return nil, fmt.Errorf("table %q: %w", v.table, err)
	}
	if o.Stats != nil {
		o.Stats.Layout = st.layoutOf(o.Lower, o.Upper)
	}
	var parts []scan.Opener
	for _, m := range st.mems {
		n := (m.Len() + batch.WindowRows - 1) / batch.WindowRows
		if n == 0 {
			continue
		}
		rows := m.Share(v.snap, o.Lower, o.Upper)
		for range n {
			parts = append(parts, func() (scan.Iterator, error) { return st.newMemIterator(rows.NewIterator(), r), nil })
		}
	}
	for _, d := range st.tree.Range(nil, o.Lower, o.Upper) {
		rows := batch.Ordinal(d.Metadata().Rows)
		for from := batch.Ordinal(0); from < rows; from += min(partRows, rows-from) {
			parts = append(parts, func() (scan.Iterator, error) {
				o := o
				o.Rows = scan.RowRange{From: from, To: from + min(partRows, rows-from)}
				r, err := scan.NewRequest(o)
				if err != nil {
					return nil, err
				}
				return d.NewIterator(r)
			})
		}
	}
	return parts, nil
}
