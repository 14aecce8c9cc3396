package tablet

import (
	"fmt"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/internal/rowunion"
	"github.com/oribi-db/oribi/scan"
)

// partRows is the number of rows of a rowset that a part of a scan takes at a time: few enough that
// goroutines end at about the same time, and as many as are offered to a consumer at once.
const partRows = 16 * batch.WindowRows

// Parts returns a scan without order as parts that can be read concurrently. The parts share the
// rows of a MemRowSet, a window at a time, or of a rowset: a part that is read alone returns all of
// them, and a part that is opened late may return none. So the parts can be read once. v must not
// be released while one of them is in use. pause is called before a part takes rows of a rowset;
// its errors end it.
//
// Like Scan, Parts ignores the schema and the snapshot in the options. It returns the errors of
// scan.NewRequest.
func (v View) Parts(o scan.Options, pause func() error) ([]scan.Opener, error) {
	st := v.state
	o.Schema, o.Snapshot, o.Rows, o.TableBytes = v.Schema, v.snap, scan.RowRange{}, st.tree.Bytes
	r, err := scan.NewRequest(o)
	if err != nil {
		return nil, fmt.Errorf("table %q: %w", v.of.Name(), err)
	}
	if o.Only != nil {
		return []scan.Opener{func() (scan.Iterator, error) { return newKeyScan(r, &v, &o, false), nil }}, nil
	}
	if o.Stats != nil {
		o.Stats.Layout = st.union().Layout(o.Lower, o.Upper)
	}
	var parts []scan.Opener
	for _, m := range st.mems {
		n := (m.Len() + batch.WindowRows - 1) / batch.WindowRows
		if n == 0 {
			continue
		}
		rows := m.Share(v.snap, o.Lower, o.Upper)
		for range n {
			parts = append(parts, func() (scan.Iterator, error) {
				return rowunion.NewMemIterator(v.RowFormat, rows.NewIterator(), r), nil
			})
		}
	}
	for _, d := range st.tree.Range(nil, o.Lower, o.Upper) {
		if d.Dead(v.snap) {
			continue
		}
		rows := batch.Ordinal(d.Metadata().Rows)
		o := o
		o.Share = scan.NewRowShare(rows, partRows, pause)
		r, err := scan.NewRequest(o)
		if err != nil {
			return nil, fmt.Errorf("table %q: %w", v.of.Name(), err)
		}
		for range (rows + partRows - 1) / partRows {
			parts = append(parts, func() (scan.Iterator, error) {
				if o.Share.Empty() {
					return scan.Concat(r), nil
				}
				return d.NewIterator(r)
			})
		}
	}
	return parts, nil
}
