package tablet

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/oribi-db/oribi/compaction"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/internal/seedtest"
)

// policyFunc is a policy that is a function.
type policyFunc func(compaction.Layout) compaction.Choice

func (f policyFunc) Pick(l compaction.Layout, _ int64) compaction.Choice { return f(l) }

func choose(ids ...uint64) policyFunc {
	return func(compaction.Layout) compaction.Choice {
		return compaction.Choice{RowSets: ids, Why: "a test"}
	}
}

// threeRowSets flushes rowsets 1 to 3, which overlap.
func threeRowSets(t *testing.T) *testStore {
	w := newTestStore(t, testSchema)
	for i := range 3 {
		w.mustCommit(w.op(Insert, i, i, ""), w.op(Insert, 100+i, i, ""))
		w.flush()
	}
	w.events = nil
	return w
}

// What a policy must not choose is an event with an error. The table stays as it was and can be
// merged.
func TestPoliciesThatFailAreReported(t *testing.T) {
	for _, test := range []struct {
		name   string
		policy policyFunc
		want   string
		err    error
	}{
		{"unknown", choose(1, 77), "rowset 77", compaction.ErrNotFound},
		{"twice", choose(1, 2, 1), "rowset 1 is chosen twice", nil},
		{"one", choose(2), "a merge of 1 rowsets, want two or more", nil},
		{"panic", func(l compaction.Layout) compaction.Choice { panic(l.Table + ": planned") }, "planned", nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := threeRowSets(t)
			rows := w.scan(latest, true)
			_, err := w.tab.MergeBy(t.Context(), test.policy, 1<<20)
			if err == nil || !strings.Contains(err.Error(), test.want) || test.err != nil && !errors.Is(err, test.err) {
				t.Errorf("%v, want %q", err, test.want)
			}
			must.Equal(t, len(w.events), 1, "events")
			e := w.events[0]
			if e.Kind != compaction.Merge || e.Why == "" || !errors.Is(e.Err, err) ||
				len(e.Before.RowSets) != 3 || len(e.After.RowSets) != 3 || len(e.Inputs)+len(e.Outputs) > 0 {
				t.Errorf("%+v", e)
			}
			must.Equal(t, w.scan(latest, true), rows)
			res, err := w.tab.MergeBy(t.Context(), compaction.Leveled{}, 1<<20)
			if err != nil || res.RowSetsBefore != 3 || res.RowSetsAfter != 1 || res.BytesWritten == 0 {
				t.Errorf("%+v, %v", res, err)
			}
			w.checkStored()
		})
	}
}

// A choice that was made of an older layout is refused as a whole.
func TestMergeRefusesRowSetsThatAreGone(t *testing.T) {
	w := threeRowSets(t)
	old := compaction.Choice{RowSets: []uint64{1, 2}}
	must.Do(t, w.tab.Merge(t.Context(), old))
	old.RowSets[0] = 3
	if err := w.tab.Merge(t.Context(), old); !errors.Is(err, compaction.ErrNotFound) || len(w.events) != 2 ||
		w.events[1].Err == nil {
		t.Errorf("%v, events %v", err, w.events)
	}
	must.Equal(t, len(w.tab.Info().RowSets), 2, "rowsets")
	must.Do(t, w.tab.Merge(t.Context(), compaction.Choice{}))
	must.Equal(t, len(w.events), 2, "events")
}

// A policy that always merges all rowsets ends, although the merge writes more than one.
func TestMergeByEndsWhenItWouldRepeatItself(t *testing.T) {
	w := newTestStore(t, testSchema)
	for i := range 2 {
		var ops []Op
		for k := range 3000 {
			ops = append(ops, w.op(Insert, 2*k+i, k, strings.Repeat("x", 50)))
		}
		w.mustCommit(ops...)
		w.flush()
	}
	w.events = nil
	calls := 0
	res, err := w.tab.MergeBy(t.Context(), policyFunc(func(l compaction.Layout) (c compaction.Choice) {
		for _, r := range l.RowSets {
			c.RowSets = append(c.RowSets, r.ID)
		}
		clear(l.RowSets) // the layout is the policy's own
		calls++
		return c
	}), 1<<20)
	if err != nil || calls != 2 || len(w.events) != 1 || res.RowSetsAfter < 2 ||
		len(w.events[0].Before.RowSets[0].MinKey) == 0 {
		t.Errorf("%+v, %v, %d picks, %d events", res, err, calls, len(w.events))
	}
}

// A layout is the policy's or the caller's own: changing its keys changes neither the table nor
// what an event says.
func TestLayoutsShareNothingWithTheTable(t *testing.T) {
	w := threeRowSets(t)
	rows, want := w.scan(latest, true), w.tab.Info()
	scribble := func(l compaction.Layout) {
		for _, r := range l.RowSets {
			r.MinKey[0] ^= 0xff
			r.MaxKey[0] ^= 0xff
		}
	}
	scribble(w.tab.Info())
	_, err := w.tab.MergeBy(t.Context(), policyFunc(func(l compaction.Layout) compaction.Choice {
		scribble(l)
		return compaction.Choice{RowSets: []uint64{77}}
	}), 1<<20)
	must.Refuse(t, err)
	must.Equal(t, len(w.events), 1, "events")
	for name, got := range map[string]compaction.Layout{"table": w.tab.Info(), "event": w.events[0].Before} {
		must.Equal(t, got, want, name)
	}
	must.Equal(t, w.scan(latest, true), rows)
	w.checkStored()
}

// Policies that merge what they have merged before end, whichever rowsets they take in turn.
func TestMergeByEndsWhenPoliciesAlternate(t *testing.T) {
	for _, first := range []bool{true, false} {
		w := newTestStore(t, testSchema)
		for i := range 4 {
			var ops []Op
			for k := range 1500 {
				ops = append(ops, w.op(Insert, 4*k+i, k, strings.Repeat("x", 50)))
			}
			w.mustCommit(ops...)
			w.flush()
		}
		calls := 0
		res, err := w.tab.MergeBy(t.Context(), policyFunc(func(l compaction.Layout) (c compaction.Choice) {
			if calls++; calls > 50 || len(l.RowSets) < 2 {
				return c
			}
			var ids []uint64
			for _, r := range l.RowSets {
				ids = append(ids, r.ID)
			}
			slices.Sort(ids)
			if c.RowSets = ids[:2]; !first {
				c.RowSets = ids[len(ids)-2:]
			}
			return c
		}), 1<<20)
		if err != nil || calls > 50 {
			t.Errorf("first %v: %+v, %v, %d picks", first, res, err, calls)
		}
	}
}

// A mergeSeries counts the pairs of rowsets that overlap, ordered by first key as in a layout.
func TestMergeSeriesCountsOverlaps(t *testing.T) {
	random := seedtest.Rand(t)
	for range 200 {
		var l compaction.Layout
		for range random.IntN(12) {
			from := random.IntN(20)
			l.RowSets = append(l.RowSets,
				compaction.RowSetInfo{MinKey: []byte{byte(from)}, MaxKey: []byte{byte(from + random.IntN(8))}})
		}
		slices.SortFunc(l.RowSets, func(a, b compaction.RowSetInfo) int { return bytes.Compare(a.MinKey, b.MinKey) })
		want := 0
		for i, a := range l.RowSets {
			for _, b := range l.RowSets[:i] {
				if bytes.Compare(a.MinKey, b.MaxKey) <= 0 && bytes.Compare(b.MinKey, a.MaxKey) <= 0 {
					want++
				}
			}
		}
		r := newMergeSeries()
		r.observe(l)
		must.Equal(t, r.overlaps, want, "overlaps of", l.RowSets)
	}
}
