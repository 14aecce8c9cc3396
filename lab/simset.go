package lab

import (
	"bytes"
	"cmp"
	"math"

	"github.com/oribi-db/oribi/compaction"
)

// simSet is a rowset of a simulation.
type simSet struct {
	id       uint64
	min, max []byte // encoded keys, inclusive

	rows, live int64
	base       float64 // bytes of the base data

	updates   int64   // in redo files
	deletes   []aged  // likewise, from old to new
	redos     int     // redo files
	changed   int64   // operations before the newest redo
	redoBytes float64 // of the files

	undos     []aged // bytes, from old to new
	undoFiles int

	memUpdates, memDeletes int64 // in the delta mem store

	seen *compaction.RowSetInfo // what policies see; nil after a change

	unseen, maybeDue bool // it is in these lists of the simulation
	gone             bool // it was replaced
}

// byKeys orders rowsets by first key, then by ID.
func byKeys(a, b *simSet) int {
	return cmp.Or(bytes.Compare(a.min, b.min), cmp.Compare(a.id, b.id))
}

// aged is an amount of something whose newest part was made after so many operations.
type aged struct {
	op int64
	n  float64
}

// maxAges is the number of groups by age into which the undos or deletes of a rowset are divided.
const maxAges = 16

// joinAges merges two lists and keeps the groups few. Groups that are joined count as young as the
// younger one, as the entries of one file do.
func joinAges(a, b []aged) []aged {
	var all []aged
	for len(a)+len(b) > 0 {
		next := &a
		if len(a) == 0 || len(b) > 0 && b[0].op < a[0].op {
			next = &b
		}
		u := (*next)[0]
		*next = (*next)[1:]
		if last := len(all) - 1; last >= 0 && all[last].op == u.op {
			all[last].n += u.n
		} else if u.n > 0 {
			all = append(all, u)
		}
	}
	for len(all) > maxAges {
		kept := all[:0]
		for i := 0; i < len(all); i += 2 {
			u := all[i]
			if i+1 < len(all) {
				u = aged{all[i+1].op, u.n + all[i+1].n}
			}
			kept = append(kept, u)
		}
		all = kept
	}
	return all
}

// since returns the groups that are not older than floor.
func since(floor int64, list []aged) []aged {
	for len(list) > 0 && list[0].op < floor {
		list = list[1:]
	}
	return list
}

// amount returns the sum of the groups.
func amount(list []aged) (n float64) {
	for _, a := range list {
		n += a.n
	}
	return n
}

// share returns a part of each group.
func share(part float64, list []aged) (out []aged) {
	for _, a := range list {
		out = append(out, aged{a.op, a.n * part})
	}
	return out
}

// undoBytes returns the size of the undo files.
func (s *simSet) undoBytes(m *costs) float64 {
	return m.DeltaFile*float64(s.undoFiles) + amount(s.undos)
}

// info returns what a policy sees of the rowset.
func (s *simSet) info(m *costs) *compaction.RowSetInfo {
	if s.seen == nil {
		undo := s.undoBytes(m)
		s.seen = &compaction.RowSetInfo{ID: s.id, MinKey: s.min, MaxKey: s.max, Rows: s.rows, LiveRows: s.live,
			Bytes: round(s.base) + round(s.redoBytes) + round(undo), Redos: s.redos, Undos: s.undoFiles,
			RedoBytes: round(s.redoBytes), UndoBytes: round(undo)}
	}
	return s.seen
}

func round(x float64) int64 { return int64(math.Round(x)) }

// fold applies the redos to the base, as a major delta compaction and a merge do. Updates become
// undos; deletes stay.
func (s *simSet) fold(m *costs, value float64) {
	if s.updates > 0 {
		old := float64(s.updates) * m.change(value)
		if *m == (costs{}) { // rowsets of a log: an old value is as large as the new one
			old = s.redoBytes
		}
		s.undos = joinAges(s.undos, []aged{{s.changed, old}})
		s.undoFiles++
	}
	s.updates, s.redos, s.redoBytes = 0, 0, 0
	if n := amount(s.deletes); n > 0 {
		s.redos, s.redoBytes = 1, m.DeltaFile+m.Delete*n
	}
}
