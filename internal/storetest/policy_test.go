package storetest

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/compaction"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/vfs"
)

// faultyPolicy makes another mistake each time.
type faultyPolicy struct {
	calls atomic.Int64
	only  string // the table; empty for all
}

func (p *faultyPolicy) Pick(l compaction.Layout, budget int64) compaction.Choice {
	if len(l.RowSets) < 2 || p.only != "" && l.Table != p.only {
		return compaction.Choice{}
	}
	ids := []uint64{l.RowSets[0].ID, l.RowSets[1].ID}
	switch p.calls.Add(1) {
	case 1:
		ids[1] = 1 << 40
	case 2:
		ids[1] = ids[0]
	case 3:
		ids = ids[:1]
	case 4:
		panic(plannedPanic)
	default:
		return compaction.Overlap{Depth: 2}.Pick(l, budget)
	}
	return compaction.Choice{RowSets: ids, Why: "a test"}
}

// A policy that makes mistakes in the background is reported to the listener, and is asked again
// after the next flush. The store continues.
func TestFaultyPolicyInTheBackground(t *testing.T) {
	ctx := context.Background()
	merges := make(chan oribi.Event, 100)
	store := must.Get(oribi.Open("/store",
		&oribi.Options{FS: vfs.NewMem(), FlushBytes: 1 << 13, Policy: &faultyPolicy{}, Listener: func(e oribi.Event) {
			if e.Kind == compaction.Merge && !e.Begin {
				merges <- e
			}
		}}))(t)
	defer store.Close()
	table := numbersTable(t, store, "t")
	next := 0
	write := func() {
		t.Helper()
		b := store.NewBatch()
		for range 200 {
			b.Insert(table, oribi.Row{"k": next * 7919 % 100_003, "v": next})
			next++
		}
		must.Get(b.Commit(ctx))(t)
		// The flush is over when the policy is asked, or after this one.
		must.Do(t, table.Flush(ctx))
	}
	write()
	for _, want := range []string{"rowset 1099511627776: not found", "is chosen twice", "1 rowsets", plannedPanic, ""} {
		var e oribi.Event
		within(t, minute, func() {
			for ok := false; !ok; {
				write()
				select {
				case e = <-merges:
					ok = true
				default:
				}
			}
		})
		if want == "" && e.Err != nil || want != "" && (e.Err == nil || !strings.Contains(e.Err.Error(), want)) {
			t.Fatalf("error %v, want %q", e.Err, want)
		}
	}
	must.Equal(t, must.Get(table.Count(ctx))(t), int64(next), "rows")
}
