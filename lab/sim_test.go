package lab

import (
	"bytes"
	"reflect"
	"slices"
	"testing"

	"github.com/oribi-db/oribi/compaction"
	"github.com/oribi-db/oribi/internal/invariant"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/internal/seedtest"
)

// checkSim checks what is true of every simulated table: rowsets are in order, their numbers make
// sense, and the live rows are the rows that the operations leave.
func checkSim(t *testing.T, s *simulation, live int64) {
	t.Helper()
	l := s.layout()
	// What is kept of the rowsets agrees with them.
	if !slices.IsSortedFunc(s.sets, byKeys) || len(s.byID) != len(s.sets) ||
		!reflect.DeepEqual(l.RowSets, s.infos(s.sets)) {
		t.Fatalf("%d rowsets, %d by their IDs, %d in the layout", len(s.sets), len(s.byID), len(l.RowSets))
	}
	var sum int64
	for i := range l.RowSets {
		r := &l.RowSets[i]
		if i > 0 && bytes.Compare(l.RowSets[i-1].MinKey, r.MinKey) > 0 {
			t.Fatalf("%d begins at %x, the next at %x", l.RowSets[i-1].ID, l.RowSets[i-1].MinKey, r.MinKey)
		}
		if bytes.Compare(r.MinKey, r.MaxKey) > 0 || r.LiveRows < 0 || r.LiveRows > r.Rows ||
			r.Bytes < r.RedoBytes+r.UndoBytes || r.RedoBytes < 0 {
			t.Fatalf("%+v", r)
		}
		sum += r.LiveRows
	}
	for _, row := range s.mem {
		if !row.deleted {
			sum++
		}
	}
	must.Equal(t, sum, live, "live rows")
}

func TestSimulationKeepsAllRows(t *testing.T) {
	for _, name := range []string{"uniform", "zipf", "time-series", "hot-updates", "old-deletes"} {
		t.Run(name, func(t *testing.T) {
			r := seedtest.Rand(t)
			spec := &Spec{RowSetBytes: 8 << 10, Workloads: []Workload{{Name: name, Keys: 2000, Operations: 6000}}}
			spec.fill()
			w := &spec.Workloads[0]
			written := int64(0)
			s := newSimulation(spec, w, func(e compaction.Event) { written += e.BytesWritten })
			var ops stream
			for _, k := range kinds {
				if k.Name == name {
					ops = k.stream(w, r)
				}
			}
			live := int64(0)
			for i := range w.Operations {
				o := ops.next()
				live += [3]int64{1, 0, -1}[o.kind]
				must.Do(t, s.apply(o))
				if i%300 != 299 {
					continue
				}
				s.flush()
				checkSim(t, s, live)
				for _, kind := range []compaction.Kind{compaction.UndoGC, compaction.MinorDelta,
					compaction.MajorDelta}[:r.IntN(4)] {
					s.deltas(kind, "")
					checkSim(t, s, live)
				}
				if c := (compaction.Overlap{}).Pick(s.layout(), 1<<20); len(c.RowSets) > 0 {
					checkMerge(t, s, c)
					checkSim(t, s, live)
				}
			}
			if written < 1500*w.ValueBytes {
				t.Errorf("%d bytes written", written)
			}
		})
	}
}

// checkMerge merges and checks that the outputs are side by side within the inputs.
func checkMerge(t *testing.T, s *simulation, c compaction.Choice) {
	t.Helper()
	var in, out compaction.Event
	s.listener = func(e compaction.Event) { in, out = e, e }
	before := depth(s.layout())
	must.Do(t, s.merge(c))
	var first, last []byte
	for _, r := range in.Inputs {
		if first == nil || bytes.Compare(r.MinKey, first) < 0 {
			first = r.MinKey
		}
		if bytes.Compare(r.MaxKey, last) > 0 {
			last = r.MaxKey
		}
	}
	for i, r := range out.Outputs {
		if bytes.Compare(r.MinKey, first) < 0 || bytes.Compare(r.MaxKey, last) > 0 ||
			i > 0 && bytes.Compare(out.Outputs[i-1].MaxKey, r.MinKey) >= 0 {
			t.Fatalf("%+v of %x to %x", out.Outputs, first, last)
		}
	}
	if after := depth(s.layout()); after > before {
		t.Fatalf("depth %v, then %v", before, after)
	}
}

// Each rowset that a merge writes has a row, also where the history of a row is larger than a
// rowset, and together they have the rows of the inputs.
func TestSimulationSplitsIntoRowSetsWithRows(t *testing.T) {
	spec := parsed(t, `{"rowset_bytes":"16KB","workloads":[{"name":"zipf"}],"policies":[{"name":"none"}]}`)
	s := newSimulation(spec, &spec.Workloads[0], func(compaction.Event) {})
	keys := newKeyShares([]*simSet{{min: []byte{0, 0, 0, 0}, max: []byte{9, 9, 9, 9}, base: 1}})
	for _, rows := range []int64{1, 2, 3, 5, 7, 100, 9999} {
		for _, history := range []float64{0, 1e3, 1e5, 1e7} {
			all := &simSet{rows: rows, live: rows, base: float64(rows) * 120, undos: []aged{{1, history}}}
			got := simSet{}
			for _, set := range s.split(all, keys) {
				if set.rows < 1 {
					t.Errorf("%d rows with %v bytes of history: a rowset of %d rows", rows, history, set.rows)
				}
				got.rows, got.live = got.rows+set.rows, got.live+set.live
			}
			must.Equal(t, got.rows, rows, "rows after the split")
			must.Equal(t, got.live, rows, "live rows after the split")
		}
	}
}

// Rows that are older than the history leave no bytes.
func TestSimulationForgetsHistory(t *testing.T) {
	spec := &Spec{Workloads: []Workload{{Name: "old-deletes", Keys: 1000, Operations: 20000, History: 500}}}
	spec.fill()
	run := func(history int64) int64 {
		w := spec.Workloads[0]
		w.History = history
		s := newSimulation(spec, &w, func(compaction.Event) {})
		ops := newOldDeletes(&w, nil)
		for range w.Operations {
			s.apply(ops.next())
			if s.ops%500 == 0 {
				s.flush()
				s.deltas(compaction.UndoGC, "")
				var all compaction.Choice
				for _, r := range s.layout().RowSets {
					all.RowSets = append(all.RowSets, r.ID)
				}
				if len(all.RowSets) > 1 {
					must.Do(t, s.merge(all))
				}
			}
		}
		return measure(s.layout(), nil).Bytes
	}
	short, forever := run(500), run(0)
	if short*4 > forever {
		t.Errorf("%d bytes with a short history, %d with all of it", short, forever)
	}
}

// A choice that the engine would refuse is an error.
func TestSimulationRefusesWrongChoices(t *testing.T) {
	spec := &Spec{Workloads: []Workload{{Name: "uniform"}}}
	spec.fill()
	s := newSimulation(spec, &spec.Workloads[0], func(compaction.Event) {})
	must.Refuse(t, s.merge(compaction.Choice{RowSets: []uint64{1, 2}}), "merged rowsets that there are not")
	must.Refuse(t, s.apply(op{opUpdate, 7}), "updated a row that there is not")
}

// Flushes and merges look at the rowsets that they change, however many there are.
func TestSimulationLooksAtWhatChanges(t *testing.T) {
	if invariant.Race {
		t.Skip("takes long, and starts no goroutine")
	}
	spec := parsed(t, `{"seed":7,"flush_bytes":"12KB","rowset_bytes":"16KB","workloads":[{"name":"uniform","keys":100000,"operations":60000}],
		"policies":[{"name":"none"},{"name":"tiered","budget":"256KB"}]}`)
	for i := range spec.Policies {
		policy := must.Get(spec.Policies[i].policy())(t)
		r := &Result{Policy: spec.Policies[i].Label}
		w := &spec.Workloads[0]
		x := &experiment{spec: spec, workload: w, source: operations{w}, policy: policy,
			budget: int64(spec.Policies[i].Budget), result: r}
		must.Do(t, x.run(t.Context(), func(int64) {}))
		changed := int64(0)
		for e := range must.All(t, compaction.ReadEvents(&r.events)) {
			changed += int64(len(e.Inputs) + len(e.Outputs))
		}
		sim := x.table.(*simulation)
		if sim.looked > 4*changed || len(sim.sets) < 200 {
			t.Errorf("%s: looked at rowsets %d times, of %d in the end, for %d changes of them", r.Policy,
				sim.looked, len(sim.sets), changed)
		}
	}
}
