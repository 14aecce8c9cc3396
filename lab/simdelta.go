package lab

import "github.com/oribi-db/oribi/compaction"

// deltas compacts the delta files of all rowsets.
func (s *simulation) deltas(kind compaction.Kind, why string) error {
	if kind == compaction.UndoGC {
		s.collectUndos()
		return nil
	}
	m := &s.costs
	var changed []*simSet
	written := 0.0
	for _, set := range s.sets {
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
		set.seen = nil
		changed = append(changed, set)
	}
	if changed != nil {
		s.seen = nil
		s.event(kind, why, nil, changed, 0, round(written))
	}
	return nil
}

// collectUndos drops undo files and rowsets that history no longer needs.
func (s *simulation) collectUndos() {
	if s.history == 0 {
		return
	}
	floor := s.floor()
	var changed, gone []*simSet
	for _, set := range s.sets {
		switch {
		case set.live == 0 && set.memUpdates+set.memDeletes == 0 && set.changed < floor:
			gone = append(gone, set)
		case set.undoFiles > 0 && (len(set.undos) == 0 || set.undos[len(set.undos)-1].op < floor):
			set.undos, set.undoFiles, set.seen = nil, 0, nil
			changed = append(changed, set)
		}
	}
	if gone != nil || changed != nil {
		if changed != nil {
			s.seen = nil
		}
		s.replace(gone, nil)
		s.event(compaction.UndoGC, "", gone, changed, 0, 0)
	}
}
