package lab

import "github.com/oribi-db/oribi/compaction"

// columns is the number of columns of the table. Updates change one of them.
const columns = 2

// dueDeltas describes the rowsets of which a delta compaction is due. A rowset of which none was
// due is looked at again after it has changed, and by collectUndos, since time alone makes only
// history stale.
func (s *simulation) dueDeltas() (due []compaction.DeltaInfo) {
	for _, set := range s.taken(&s.maybeDue) {
		info := s.deltaInfo(set)
		if set.maybeDue = isDue(info); set.maybeDue {
			due, s.maybeDue = append(due, info), append(s.maybeDue, set)
		}
	}
	return due
}

// deltaInfo describes a rowset to the rules for delta compactions.
func (s *simulation) deltaInfo(set *simSet) compaction.DeltaInfo {
	info := compaction.DeltaInfo{RowSet: set.id, Rows: set.rows, BaseBytes: round(set.base),
		RedoBytes: round(set.redoBytes), Redos: set.redos, OfColumns: columns, Gone: s.gone(set)}
	if set.updates > 0 {
		info.Updated = updatedValue(info.BaseBytes, info.RedoBytes)
	}
	if s.stale(set) {
		info.StaleUndos, info.StaleBytes = set.undoFiles, round(set.undoBytes(&s.costs))
	}
	return info
}

// updatedValue describes the changes of the values, which are nearly all of the base.
func updatedValue(base, redo int64) []compaction.UpdatedColumn {
	return []compaction.UpdatedColumn{{Name: "value", Bytes: base, Redo: redo}}
}

// gone reports whether no readable snapshot sees any row of the rowset.
func (s *simulation) gone(set *simSet) bool {
	return s.history > 0 && set.live == 0 && set.memUpdates+set.memDeletes == 0 && set.changed < s.floor()
}

// stale reports whether no readable snapshot needs the undo files of the rowset.
func (s *simulation) stale(set *simSet) bool {
	return s.history > 0 && set.undoFiles > 0 && (len(set.undos) == 0 || set.undos[len(set.undos)-1].op < s.floor())
}

// deltas compacts the delta files of all rowsets.
func (s *simulation) deltas(kind compaction.Kind, why string) error {
	return s.compactSets(kind, why, s.sets)
}

// compact carries out a delta compaction.
func (s *simulation) compact(c compaction.DeltaChoice) error {
	if c.Kind == compaction.UndoGC {
		return s.deltas(c.Kind, c.Why)
	}
	return s.compactSets(c.Kind, c.Why, []*simSet{s.byID[c.RowSet]})
}

// compactSets compacts the delta files of some rowsets; undo GC is for all.
func (s *simulation) compactSets(kind compaction.Kind, why string, sets []*simSet) error {
	if kind == compaction.UndoGC {
		s.collectUndos()
		return nil
	}
	m := &s.costs
	var changed []*simSet
	written := 0.0
	for _, set := range sets {
		switch {
		case kind == compaction.MinorDelta && set.redos > 1:
			set.redoBytes -= float64(set.redos-1) * m.DeltaFile
			set.redos = 1
			written += set.redoBytes
		case kind == compaction.MajorDelta && set.updates > 0:
			before := set.undoBytes(m)
			set.fold(m, s.value)
			set.undos = since(s.floor(), set.undos)
			written += set.base + set.redoBytes + max(0, set.undoBytes(m)-before)
		default:
			continue
		}
		s.touch(set)
		changed = append(changed, set)
	}
	if changed != nil {
		s.event(kind, why, nil, changed, 0, round(written))
	}
	return nil
}

// collectUndos drops undo files and rowsets that history no longer needs.
func (s *simulation) collectUndos() {
	if s.history == 0 {
		return
	}
	var changed, gone []*simSet
	for _, set := range s.sets {
		switch {
		case s.gone(set):
			gone = append(gone, set)
		case s.stale(set):
			set.undos, set.undoFiles = nil, 0
			s.touch(set)
			changed = append(changed, set)
		}
	}
	if gone != nil || changed != nil {
		if gone != nil {
			s.replace(gone, nil)
		}
		s.event(compaction.UndoGC, "", gone, changed, 0, 0)
	}
}
