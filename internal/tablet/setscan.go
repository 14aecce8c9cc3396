package tablet

import (
	"github.com/oribi-db/oribi/internal/rowunion"
	"github.com/oribi-db/oribi/rowset"
	"github.com/oribi-db/oribi/scan"
)

// union returns the state's sets of rows.
func (st *tabletState) union() rowunion.Union {
	return rowunion.Union{Tree: st.tree, Mems: st.mems, Format: st.schema.RowFormat}
}

// setScan returns the rows of rowsets that do not overlap, in the order of the request. It releases
// the state at Close. Most short scans are such: they cost two allocations here, this one and the
// iterator of a rowset.
type setScan struct {
	scan.Sequence
	r     *scan.Request
	left  []*rowset.DiskRowSet // not opened yet, in key order
	state *tabletState         // nil after Close
}

func newSetScan(r *scan.Request, sets []*rowset.DiskRowSet, st *tabletState) *setScan {
	s := &setScan{r: r, left: sets, state: st}
	s.Init(r, s)
	return s
}

// Open opens the next rowset that may have a row in the result.
func (s *setScan) Open() (scan.Iterator, error) {
	for n := len(s.left); n > 0; n = len(s.left) {
		next := s.left[0]
		if s.r.Descending() {
			next, s.left = s.left[n-1], s.left[:n-1]
		} else {
			s.left = s.left[1:]
		}
		if !next.Dead(s.r.Snapshot()) {
			return rowunion.OpenRowSet(next, s.r)
		}
	}
	return nil, nil
}

func (s *setScan) Close() error {
	err := s.Sequence.Close()
	if s.state != nil {
		s.state.release()
		s.state = nil
	}
	return err
}
