package rowunion

import (
	"github.com/oribi-db/oribi/change"
	"github.com/oribi-db/oribi/memrowset"
	"github.com/oribi-db/oribi/mvcc"
	"github.com/oribi-db/oribi/rowset"
	"github.com/oribi-db/oribi/scan"
)

// Union is all sets of rows that are read as one. It is immutable.
type Union struct {
	Tree   *rowset.Tree
	Mems   []*memrowset.MemRowSet
	Format *change.RowFormat // of the rows in Mems
}

// InMemory returns the number of MemRowSets that are not empty.
func (u Union) InMemory() (n int) {
	for _, m := range u.Mems {
		if m.Len() > 0 {
			n++
		}
	}
	return n
}

// Layout describes the sets for a scan of the keys [lower, upper).
func (u Union) Layout(lower, upper []byte) (l scan.Layout) {
	l.MemRowSets = u.InMemory()
	for _, d := range u.Tree.Sets {
		l.RowSets++
		l.FileRows += d.Metadata().Rows
	}
	l.Outside, l.OutsideRows = l.RowSets, l.FileRows
	for _, d := range u.Tree.Range(nil, lower, upper) {
		l.Outside--
		l.OutsideRows -= d.Metadata().Rows
	}
	return l
}

// MemIterators returns iterators over the MemRowSets that are not empty.
func (u Union) MemIterators(r *scan.Request) (mems []*MemIterator) {
	for _, m := range u.Mems {
		if m.Len() > 0 {
			lower, upper := r.Bounds()
			it := keptMems.Get().(*MemIterator)
			it.it.Reset(m, r.Snapshot(), lower, upper, r.Descending())
			mems = append(mems, it.begin(u.Format, r))
		}
	}
	return mems
}

// Scan returns the rows of a request: if ordered, in key order over all sets, which may descend;
// otherwise one set after another.
func (u Union) Scan(r *scan.Request, ordered bool) scan.Iterator {
	lower, upper := r.Bounds()
	sets, disjoint := u.Tree.Disjoint(lower, upper)
	if !disjoint {
		sets = u.Tree.Range(nil, lower, upper)
	}
	mems := u.MemIterators(r)
	if ordered {
		return InOrder(r, sets, mems, OpenRowSet)
	}
	return AnyOrder(r, sets, mems)
}

// Changed returns the rows with changes that to sees and from does not, as of both. begin and end are
// the requests as of from and to. They have the same columns, bounds, and order, and ask for keys.
//
// A rowset whose statistics show no such change is not opened; a window without one is not read.
// Both scans read the same deltas, so they omit the same unchanged rows. The Join keeps two batches in
// memory for each rowset that contains the current key.
func (u Union) Changed(from, to mvcc.Snapshot, begin, end *scan.Request) *Join {
	lower, upper := begin.Bounds()
	changed := map[*rowset.DiskRowSet]rowset.Changed{}
	var sets []*rowset.DiskRowSet
	for _, set := range u.Tree.Range(nil, lower, upper) {
		if c, ok := set.Changed(from, to); ok {
			changed[set] = c
			sets = append(sets, set)
		}
	}
	open := func(set *rowset.DiskRowSet, r *scan.Request) (scan.Iterator, error) {
		return changed[set].NewIterator(r)
	}
	as := func(r *scan.Request) scan.Iterator {
		var mems []*MemIterator
		for _, mem := range u.Mems {
			if !from.Sees(mem.MaxTimestamp()) {
				it := mem.NewIterator(r.Snapshot(), lower, upper, r.Descending())
				it.ChangedIn(from, to)
				mems = append(mems, NewMemIterator(u.Format, it, r))
			}
		}
		return InOrder(r, sets, mems, open)
	}
	return NewJoin(begin, as(begin), as(end))
}
