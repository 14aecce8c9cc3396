package lab

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"maps"
	"slices"
	"sort"
	"time"

	"github.com/oribi-db/oribi/compaction"
	"github.com/oribi-db/oribi/internal/splice"
)

// simulation is a table of which only the bounds and sizes of rowsets are known.
//
// A row that was changed since the last flush is in one of the rowsets over its key; which one is
// drawn at random, each as likely as it has rows near the key.
//
// Operations, flushes and compactions look only at the rowsets that they change: there may be ten
// thousand of them. Lists of rowsets that are to be looked at later may contain some that are gone.
type simulation struct {
	costs    costs
	value    float64 // bytes of a value
	rowset   float64 // bytes at which a rowset is full
	history  int64   // operations, 0 = forever
	r        *random
	listener func(compaction.Event)

	sets []*simSet // ordered by first key, then by ID
	byID map[uint64]*simSet
	id   uint64 // of the rowset made last
	job  uint64 // of the last event
	ops  int64  // operations so far
	mem  map[int64]memRow
	seen compaction.Layout // the layout of sets that policies see, without the changes in unseen

	index   simIndex // of sets
	indexed bool     // index has all sets
	deleted bool     // rows were deleted since index was made

	unseen    []*simSet // changed since seen
	unflushed []*simSet // with changes in their delta mem stores
	maybeDue  []*simSet // changed since no delta compaction of them was due

	looked int64 // rowsets that flushes and compactions have looked at; for tests
}

const simulated = "simulated" // name of the table

// memRow is a row of the MemRowSet.
type memRow struct {
	changes int32 // updates and deletes after the insert
	deleted bool
}

func newSimulation(s *Spec, w *Workload, listener func(compaction.Event)) *simulation {
	return &simulation{costs: fitted, value: float64(w.ValueBytes), rowset: float64(s.RowSetBytes), history: w.History,
		r: newRandom(s.Seed, "rowset of a row"), listener: listener, mem: map[int64]memRow{},
		byID: map[uint64]*simSet{}, seen: compaction.Layout{Table: simulated}}
}

// floor returns the number of operations whose history is not needed.
func (s *simulation) floor() int64 {
	if s.history == 0 {
		return 0
	}
	return max(0, s.ops-s.history)
}

// layout returns what policies see. The caller must not change it. It is valid until the next
// change.
func (s *simulation) layout() compaction.Layout {
	if changed := s.taken(&s.unseen); len(changed) > 0 {
		for _, set := range changed {
			set.unseen = false
		}
		s.seen.Replace(s.positions(changed), s.infos(changed))
	}
	s.seen.RowSetBytes = int64(s.rowset)
	return s.seen
}

// taken empties a list of rowsets to be looked at, and returns those that are not gone, in order.
func (s *simulation) taken(list *[]*simSet) []*simSet {
	sets := slices.DeleteFunc(*list, func(set *simSet) bool { return set.gone })
	slices.SortFunc(sets, byKeys)
	s.looked += int64(len(sets))
	*list = nil
	return sets
}

// touch notes that a rowset has changed.
func (s *simulation) touch(set *simSet) {
	set.seen = nil
	if !set.unseen {
		set.unseen, s.unseen = true, append(s.unseen, set)
	}
	if !set.maybeDue {
		set.maybeDue, s.maybeDue = true, append(s.maybeDue, set)
	}
}

// positions returns the indexes of rowsets that are in order.
func (s *simulation) positions(sets []*simSet) []int {
	list := make([]int, len(sets))
	for i, set := range sets {
		list[i], _ = slices.BinarySearchFunc(s.sets, set, byKeys)
	}
	return list
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
	if set.memUpdates+set.memDeletes == 0 {
		s.unflushed = append(s.unflushed, set)
	}
	if o.kind == opUpdate {
		set.memUpdates++
	} else {
		set.memDeletes++
		set.live = max(0, set.live-1)
		s.deleted = true
		s.touch(set)
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
			set = &simSet{id: s.id, min: keyOf(key), base: m.RowSet, undoFiles: 1,
				undos: []aged{{op: s.ops}}, deletes: []aged{{op: s.ops}}}
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
	for _, set := range s.taken(&s.unflushed) {
		file := m.DeltaFile + float64(set.memUpdates)*m.change(s.value) + float64(set.memDeletes)*m.Delete
		set.redoBytes += file
		written += file
		set.redos++
		set.updates, set.changed = set.updates+set.memUpdates, s.ops
		set.deletes = joinAges(set.deletes, []aged{{s.ops, float64(set.memDeletes)}})
		set.memUpdates, set.memDeletes = 0, 0
		s.touch(set)
		changed = append(changed, set)
	}
	if changed != nil {
		s.event(compaction.DeltaFlush, "", nil, changed, 0, round(written))
	}
}

// replace removes rowsets, and adds others. Both are in order.
func (s *simulation) replace(old, new []*simSet) {
	s.layout() // none of the old ones is unseen afterwards
	s.looked += int64(len(old) + len(new))
	gone, at := s.positions(old), make([]int, len(new))
	for i, set := range new {
		at[i] = sort.Search(len(s.sets), func(k int) bool { return bytes.Compare(s.sets[k].min, set.min) > 0 })
	}
	s.seen.Replace(gone, s.infos(new))
	s.sets = splice.Edit(s.sets, gone, new, at)
	for _, set := range old {
		set.gone = true
		delete(s.byID, set.id)
	}
	for _, set := range new {
		s.byID[set.id] = set
		set.maybeDue, s.maybeDue = true, append(s.maybeDue, set)
		if set.memUpdates+set.memDeletes > 0 {
			s.unflushed = append(s.unflushed, set)
		}
	}
	s.indexed = s.indexed && !s.deleted && len(old) == 0 && s.index.add(new)
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
	s.listener(compaction.Event{Job: s.job, Time: clockStart.Add(time.Duration(s.ops) * time.Second), Kind: kind,
		Table: simulated, Why: why, Inputs: s.infos(inputs), Outputs: s.infos(outputs),
		RowsRead: rows, RowsWritten: rows, BytesWritten: written})
}
