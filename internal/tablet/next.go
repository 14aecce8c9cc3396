package tablet

import (
	"bytes"

	"github.com/oribi-db/oribi/internal/meta"
	"github.com/oribi-db/oribi/lsn"
	"github.com/oribi-db/oribi/memrowset"
	"github.com/oribi-db/oribi/rowset"
)

// Next is the argument of OpenNext: a follower's table, and the changes since its state.
type Next struct {
	Of      *Tablet
	Changed map[uint64]bool // the rowsets whose metadata rows have changed, or have come
	UpTo    lsn.LSN         // Of has the operations of the log up to here
}

// kept has the stores that a table shares with the table before, see OpenNext.
type kept struct {
	upTo lsn.LSN
	mem  *memrowset.MemRowSet // nil if it is not shared
	sets map[*rowset.DiskRowSet]bool
}

// has reports whether a rowset has an operation, or knows that it is another's.
func (k *kept) has(d *rowset.DiskRowSet, lsn lsn.LSN) bool {
	return d.Metadata().IncludedLSN >= lsn || lsn <= k.upTo && k.sets[d]
}

// OpenNext is Open for a table that a follower has in an earlier state. It keeps the parts that the
// metadata has not changed, with their open files, and with the operations that they have:
//
//	schema      if it is the same
//	MemRowSet   if the schema and the flushed LSN are: it has the inserts after that, and their changes
//	rowset      if the schema and the rowset's row are, with its delta mem store
//
// The log must be replayed from the LSN on that OpenNext returns; up to n.UpTo, the Replayer
// applies operations only to stores that are not kept. That is exact, as with a rowset whose
// included LSN is that high: when an operation was logged, its row was live in one store, so it is
// live in none of the others when its turn comes.
//
// The result must be passed to Replace of n.Of, or to Discard.
func OpenNext(o Options, row *meta.Table, sets []*rowset.Metadata, n Next) (t *Tablet, from lsn.LSN, err error) {
	st, err := n.Of.acquire()
	if err != nil {
		return nil, 0, err
	}
	defer st.release()
	if !sameSchema(n.Of.Metadata(), row) {
		if t, err = Open(o, row, sets); err != nil {
			return nil, 0, err
		}
		return t, needs(row, nil, sets, func(uint64) bool { return false }), nil
	}
	k := kept{upTo: n.UpTo, sets: map[*rowset.DiskRowSet]bool{}}
	if n.Of.Metadata().FlushedLSN == row.FlushedLSN && st.frozen == nil {
		k.mem = st.mem
	}
	have := map[uint64]*rowset.DiskRowSet{}
	for _, d := range st.tree.Sets {
		if id := d.Metadata().ID; !n.Changed[id] {
			have[id] = d
		}
	}
	t, err = open(o, row, sets, &previous{schema: st.schema, deltaMem: n.Of.deltaMem.Load(), sets: have, kept: k})
	if err != nil {
		return nil, 0, err
	}
	return t, needs(row, k.mem, sets, func(id uint64) bool { return have[id] != nil }), nil
}

// needs returns the lowest LSN that the stores which are not kept may lack.
func needs(row *meta.Table, mem *memrowset.MemRowSet, sets []*rowset.Metadata, kept func(id uint64) bool) lsn.LSN {
	from := lsn.Max
	if mem == nil {
		from = row.FlushedLSN + 1
	}
	for _, m := range sets {
		if !kept(m.ID) {
			from = min(from, m.IncludedLSN+1)
		}
	}
	return from
}

// sameSchema reports whether two rows of a table differ only in settings on which its stores do not
// depend.
func sameSchema(a, b *meta.Table) bool {
	copied := *b
	copied.Name, copied.Comment = a.Name, a.Comment
	copied.HistorySec, copied.HistoryFloor = a.HistorySec, a.HistoryFloor
	copied.FlushedLSN, copied.NextRowSetID = a.FlushedLSN, a.NextRowSetID
	copied.AutoIncrement, copied.RowFile = a.AutoIncrement, a.RowFile
	return bytes.Equal(a.Encode(), copied.Encode())
}
