package lab

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/oribi-db/oribi/compaction"
)

// simulation is a table of which only the bounds and sizes of rowsets are known.
//
// A row that was changed since the last flush is in one of the rowsets over its key; which one is
// drawn at random, each as likely as it has rows near the key.
type simulation struct {
	costs    costs
	value    float64 // bytes of a value
	rowset   float64 // bytes at which a rowset is full
	history  int64   // operations, 0 = forever
	r        *random
	listener func(compaction.Event)

	sets    []*simSet // ordered by first key, then by ID
	byID    map[uint64]*simSet
	id      uint64 // of the rowset made last
	job     uint64 // of the last event
	ops     int64  // operations so far
	mem     map[int64]memRow
	index   simIndex // of sets
	indexed bool     // index has all sets
	deleted bool     // rows were deleted since index was made

	seen    *compaction.Layout // what policies see of sets, but for added and changed; nil: not known
	added   []*simSet          // in order
	changed []*simSet          // their sizes
}

const simulated = "simulated" // name of the table

// memRow is a row of the MemRowSet.
type memRow struct {
	changes int32 // updates and deletes after the insert
	deleted bool
}

func newSimulation(s *Spec, w *Workload, listener func(compaction.Event)) *simulation {
	return &simulation{costs: fitted, value: float64(w.ValueBytes), rowset: float64(s.RowSetBytes), history: w.History,
		r: newRandom(s.Seed, "rowset of a row"), listener: listener, mem: map[int64]memRow{}, byID: map[uint64]*simSet{}}
}

// floor returns the number of operations whose history is not needed.
func (s *simulation) floor() int64 {
	if s.history == 0 {
		return 0
	}
	return max(0, s.ops-s.history)
}

// layout returns what policies see. The caller must not change it.
func (s *simulation) layout() compaction.Layout {
	switch {
	case s.seen == nil:
		l := compaction.Layout{Table: simulated, RowSetBytes: int64(s.rowset)}.Replace(nil, s.infos(s.sets))
		s.seen = &l
	case len(s.added)+len(s.changed) > 0:
		var old []uint64
		for _, set := range s.changed {
			old = append(old, set.id)
			set.listed = false
		}
		new := slices.Concat(s.added, s.changed)
		slices.SortFunc(new, byKeys)
		l := s.seen.Replace(old, s.infos(new))
		s.seen, s.added, s.changed = &l, s.added[:0], s.changed[:0]
	}
	return *s.seen
}

// change is called after a change of a rowset.
func (s *simulation) change(set *simSet) {
	set.seen = nil
	if !set.listed {
		set.listed = true
		s.changed = append(s.changed, set)
	}
}

// byKeys compares rowsets by first key, then by ID.
func byKeys(a, b *simSet) int {
	return cmp.Or(bytes.Compare(a.min, b.min), cmp.Compare(a.id, b.id))
}

func (s *simulation) close() error { return nil }

// keyOf returns an encoded key of type int64.
func keyOf(key int64) []byte { return binary.BigEndian.AppendUint64(nil, uint64(key)^1<<63) }

// keyFrom returns the key of keyOf.
func keyFrom(key []byte) int64 { return int64(binary.BigEndian.Uint64(key) ^ 1<<63) }

func (s *simulation) apply(o op) error {
	s.ops++
	row, inMemory := s.mem[o.key]
	switch {
	case o.kind == opInsert:
		if inMemory {
			row.changes++ // it was deleted
		}
		row.deleted = false
		s.mem[o.key] = row
		return nil
	case inMemory && !row.deleted:
		row.changes++
		row.deleted = o.kind == opDelete
		s.mem[o.key] = row
		return nil
	}
	if !s.indexed {
		s.index.build(s.sets)
		s.indexed, s.deleted = true, false
	}
	set := s.index.rowset(o.key, s.r)
	if set == nil {
		return fmt.Errorf("no rowset has the row %d", o.key)
	}
	if o.kind == opUpdate {
		set.memUpdates++
	} else {
		set.memDeletes++
		set.live = max(0, set.live-1)
		s.deleted = true
		s.change(set)
	}
	return nil
}

// flush writes the rows and changes in memory.
func (s *simulation) flush() error {
	s.flushRows()
	s.flushDeltas()
	return nil
}

func (s *simulation) flushRows() {
	if len(s.mem) == 0 {
		return
	}
	keys := slices.Sorted(maps.Keys(s.mem))
	var outputs []*simSet
	m := &s.costs
	var set *simSet
	for _, key := range keys {
		if set == nil || m.full(set.rows, set.base+set.undoBytes(m), s.rowset) {
			s.id++
			set = &simSet{id: s.id, min: keyOf(key), base: m.RowSet, undoFiles: 1, undos: []aged{{op: s.ops}}, deletes: []aged{{op: s.ops}}}
			outputs = append(outputs, set)
		}
		row := s.mem[key]
		set.rows++
		set.max = keyOf(key)
		set.base += m.row(s.value)
		undo := m.Birth + float64(row.changes)*m.change(s.value)
		if row.deleted {
			set.deletes[0].n++
		} else {
			set.live++
		}
		set.undos[0].n += undo
	}
	for _, set := range outputs {
		set.fold(m, s.value)
		set.changed = s.ops
	}
	clear(s.mem)
	s.replace(nil, outputs)
	s.report(compaction.Flush, "", nil, outputs, int64(len(keys)))
}

func (s *simulation) flushDeltas() {
	m := &s.costs
	var changed []*simSet
	written := 0.0
	for _, set := range s.sets {
		if set.memUpdates+set.memDeletes == 0 {
			continue
		}
		file := m.DeltaFile + float64(set.memUpdates)*m.change(s.value) + float64(set.memDeletes)*m.Delete
		set.redoBytes += file
		written += file
		set.redos++
		set.updates, set.changed = set.updates+set.memUpdates, s.ops
		set.deletes = joinAges(set.deletes, []aged{{s.ops, float64(set.memDeletes)}})
		set.memUpdates, set.memDeletes = 0, 0
		s.change(set)
		changed = append(changed, set)
	}
	if changed != nil {
		s.event(compaction.DeltaFlush, "", nil, changed, 0, round(written))
	}
}

// replace removes rowsets, and adds others that are in order.
func (s *simulation) replace(old, new []*simSet) {
	switch {
	case s.seen == nil:
	case len(old) == 0:
		s.added = append(s.added, new...)
	default:
		ids := make([]uint64, len(old))
		for i, set := range old {
			ids[i] = set.id
		}
		l := s.layout().Replace(ids, s.infos(new))
		s.seen = &l
	}
	for _, set := range old {
		if i, found := slices.BinarySearchFunc(s.sets, set, byKeys); found {
			s.sets = slices.Delete(s.sets, i, i+1)
		}
		delete(s.byID, set.id)
	}
	for _, set := range new {
		i, _ := slices.BinarySearchFunc(s.sets, set, byKeys)
		s.sets = slices.Insert(s.sets, i, set)
		s.byID[set.id] = set
	}
	s.indexed = s.indexed && !s.deleted && len(old) == 0 && s.index.add(new)
}

// some returns the rowsets with some IDs, in order. IDs of no rowset are ignored.
func (s *simulation) some(ids []uint64) (sets []*simSet) {
	for _, id := range ids {
		if set := s.byID[id]; set != nil {
			sets = append(sets, set)
		}
	}
	slices.SortFunc(sets, byKeys)
	return sets
}

// infos returns what policies see of rowsets.
func (s *simulation) infos(sets []*simSet) (list []compaction.RowSetInfo) {
	for _, set := range sets {
		list = append(list, *set.info(&s.costs))
	}
	return list
}

// report sends an event about new rowsets.
func (s *simulation) report(kind compaction.Kind, why string, inputs, outputs []*simSet, rows int64) {
	var n int64
	for _, set := range outputs {
		n += set.info(&s.costs).Bytes
	}
	s.event(kind, why, inputs, outputs, rows, n)
}

func (s *simulation) event(kind compaction.Kind, why string, inputs, outputs []*simSet, rows, written int64) {
	s.job++
	s.listener(compaction.Event{Job: s.job, Time: clockStart.Add(time.Duration(s.ops) * time.Second), Kind: kind, Table: simulated, Why: why, Inputs: s.infos(inputs), Outputs: s.infos(outputs),
		RowsRead: rows, RowsWritten: rows, BytesWritten: written})
}
