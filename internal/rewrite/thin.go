package rewrite

import (
	"slices"

	"github.com/oribi-db/oribi/change"
	"github.com/oribi-db/oribi/mvcc"
	"github.com/oribi-db/oribi/schema"
)

// thinner drops the undos that no retained state needs.
type thinner struct {
	mvcc.Retained
	folder *folder
	joined []joinedCell // by column, memory of join
}

type joinedCell struct {
	id   schema.ColumnID
	cell []byte
}

// thin appends to dst what retained states need of the undos of one row, newest first. dst may be
// the memory in front of undo. An undo at ts leads to the state before ts.
//
//	undos                 @12 a=7  @9 a=6  @8 b=5  @6 DELETE  @4 REINSERT  @3 DELETE  @1 REINSERT
//	floor 10, points 7, 2 @12 a=7  @9 a=6,b=5      @6 DELETE                          @1 REINSERT
//
// The UPDATEs between two retained states become one, at the newest timestamp: that is when the
// later state began. A life in which no retained state is goes. The other lives keep their bounds,
// which copies in other rowsets are compared with.
func (t *thinner) thin(dst, undo []change.Delta) []change.Delta {
	for len(undo) > 0 {
		d := undo[0]
		at, ok := t.Before(d.TS)
		if !ok {
			break
		}
		n := 1
		switch {
		case d.TS > t.Floor:
		case d.List.Kind() == change.Update:
			for n < len(undo) && undo[n].TS > at && undo[n].List.Kind() == change.Update {
				n++
			}
			if n > 1 {
				if d.List = t.join(undo[:n]); d.List == nil {
					undo = undo[n:]
					continue
				}
			}
		case d.List.Kind() == change.Reinsert:
			if skip := t.unseen(undo, at); skip > 0 {
				undo = undo[skip:]
				continue
			}
		}
		dst, undo = append(dst, d), undo[n:]
	}
	return dst
}

// thinRows is thin for the undos of several rows, in place.
func (t *thinner) thinRows(undo []change.Delta) []change.Delta {
	out := undo[:0]
	for len(undo) > 0 {
		n := 1
		for n < len(undo) && undo[n].Row == undo[0].Row {
			n++
		}
		out, undo = t.thin(out, undo[:n]), undo[n:]
	}
	return out
}

// unseen returns the number of undos of the life that the first one, a REINSERT, ends, if no
// retained state is in it, else 0. at is the newest retained state before its end.
func (t *thinner) unseen(undo []change.Delta, at mvcc.Timestamp) int {
	begin := slices.IndexFunc(undo, func(d change.Delta) bool { return d.List.Kind() == change.Delete })
	if begin < 0 || at >= undo[begin].TS {
		return 0
	}
	// The life before has the cells of this one where its own REINSERT sets none.
	if begin+1 < len(undo) && !t.folder.complete(undo[begin+1].List) {
		return 0
	}
	return begin + 1
}

// sees reports whether a retained state has the row of a copy.
func (t *thinner) sees(v *version) bool {
	if v.deleted == nil || v.deleted.TS > t.Floor {
		return true
	}
	end, alive := v.deleted.TS, true
	for i := range v.undo {
		switch d := &v.undo[i]; d.List.Kind() {
		case change.Delete:
			if at, ok := t.Before(end); ok && at >= d.TS {
				return true
			}
			alive = false
		case change.Reinsert:
			end, alive = d.TS, true
		}
	}
	_, ok := t.Before(end)
	return ok && alive
}

// join returns one UPDATE with the effect of several, which are newest first; nil if all their columns were
// dropped.
func (t *thinner) join(undo []change.Delta) change.List {
	f := t.folder
	if t.joined == nil {
		t.joined = make([]joinedCell, len(f.setBy))
	}
	f.updates++
	for i := range undo {
		for r := undo[i].List.Columns(); ; {
			id, cell, ok := r.Next()
			if !ok {
				break
			}
			if c := f.index(id); c >= 0 {
				t.joined[c], f.setBy[c] = joinedCell{id, cell}, f.updates
			}
		}
	}
	if !slices.Contains(f.setBy, f.updates) {
		return nil
	}
	start := f.begin()
	f.lists = change.AppendUpdateHeader(f.lists, change.Update)
	for c, j := range t.joined {
		if f.setBy[c] == f.updates {
			f.lists = change.AppendColumn(f.lists, j.id, j.cell)
		}
	}
	return f.list(start)
}

// complete reports whether a REINSERT sets all columns but the key.
func (f *folder) complete(list change.List) bool {
	n := 0
	for r := list.Columns(); ; {
		id, _, ok := r.Next()
		if !ok {
			return n == len(f.schema.Columns)-f.schema.Keys
		}
		if f.index(id) >= f.schema.Keys {
			n++
		}
	}
}
