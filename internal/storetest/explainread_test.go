package storetest

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/internal/prooftest/history"
	"github.com/oribi-db/oribi/mvcc"
	"github.com/oribi-db/oribi/rowset"
	"github.com/oribi-db/oribi/schema"
	"github.com/oribi-db/oribi/vfs"
)

// readTable returns a table whose rowsets are known; every row has k in n.
//
//	rowset       keys
//	0            0, 3, 6, … 2997
//	1            1, 4, 7, … 2998
//	2            2, 5, 8, … 2999
//	3            10000 … 10999
//	in memory    20000 … 20009
//
// Row 4 was inserted after inserted, and changed at changed: word in one batch and n in another.
// Row 7 was deleted then.
func readTable(t *testing.T, options ...oribi.TableOption) (table *oribi.Table, inserted, changed mvcc.Timestamp) {
	t.Helper()
	store := must.Get(
		oribi.Open("/store", &oribi.Options{FS: vfs.NewMem(), Clock: mvcc.NewLogicalClock(1), Manual: true}))(t)
	t.Cleanup(func() { store.Close() })
	table = tableOf(t, store, "t", "k*:int64 n:int64 word:string?", options...)
	commit := func(fill func(b *oribi.Batch)) mvcc.Timestamp {
		t.Helper()
		b := store.NewBatch()
		fill(b)
		return must.Get(b.Commit(t.Context()))(t)
	}
	put := func(from, step, n int) mvcc.Timestamp {
		return commit(func(b *oribi.Batch) {
			for i := range n {
				b.Insert(table, oribi.Row{"k": from + i*step, "n": from + i*step, "word": "word"})
			}
		})
	}
	for _, from := range []int{0, 1, 2, 10000} {
		step := 3
		if from == 10000 {
			step = 1
		}
		ts := put(from, step, 1000)
		if from == 0 {
			inserted = ts
		}
		must.Do(t, table.Flush(t.Context()))
	}
	commit(func(b *oribi.Batch) { b.Update(table, oribi.Row{"k": 4, "word": "other"}) })
	changed = commit(func(b *oribi.Batch) {
		b.Update(table, oribi.Row{"k": 4, "n": 44})
		b.Delete(table, oribi.Row{"k": 7})
	})
	must.Get(table.FlushDeltas(t.Context()))(t)
	put(20000, 1, 10)
	commit(func(b *oribi.Batch) { b.Update(table, oribi.Row{"k": 20001, "n": 1}) })
	return table, inserted, changed
}

// filesRead returns the names of the files that a step reads.
func filesRead(step *rowset.TraceStep) (names []string) {
	for _, r := range step.Reads {
		if r.Reads < 1 || r.Bytes < 1 || r.Block == 0 {
			names = append(names, "not read: ")
		}
		names = append(names, r.File)
	}
	return names
}

func TestExplainSaysHowARowIsFound(t *testing.T) {
	history.Usual()
	table, inserted, changed := readTable(t)
	explain := func(key int, opts ...oribi.GetOption) oribi.Trace {
		t.Helper()
		return must.Get(table.Explain(t.Context(), key, opts...))(t)
	}
	keyFiles := []string{"bloom file", `column "k"`}

	trace := explain(4)
	if trace.InMemory || len(trace.Memory) != 1 || trace.Memory[0].Found || trace.Memory[0].Rows != 10 ||
		trace.RowSets != 4 || trace.Outside != 1 || trace.NotSearched() != 1 || len(trace.Steps) != 2 {
		t.Fatalf("key 4: %+v", trace)
	}
	if s := &trace.Steps[0]; s.RowSet != 2 || s.Filter || s.Found || s.Live ||
		!slices.Equal(filesRead(s), []string{"bloom file"}) {
		t.Errorf("key 4: a rowset that does not have it: %+v", s)
	}
	if s := &trace.Steps[1]; s.RowSet != 1 || !s.Filter || !s.Found || s.Row != 1 || !s.Live || s.Redos != 2 ||
		s.Undos != 0 || s.RowFile || !slices.Equal(filesRead(s), append(slices.Clip(keyFiles), "redo file")) {
		t.Errorf("key 4: the rowset that has it: %+v", s)
	}
	reads, bytes := trace.Steps[1].Totals()
	if reads < 3 || bytes < 1000 {
		t.Errorf("key 4: %d reads, %d bytes", reads, bytes)
	}
	columns := append(slices.Clip(keyFiles), `column "n"`, `column "word"`, "redo file")
	for range 2 { // what was read before is read again
		if s := explain(10).Steps[1]; !slices.Equal(filesRead(&s), columns) || !s.Live || s.Redos != 0 {
			t.Errorf("key 10, which no change concerns: %+v", s)
		}
	}
	if s := explain(10, oribi.Columns()).Steps[1]; !slices.Equal(filesRead(&s),
		append(slices.Clip(keyFiles), "redo file")) || !s.Live {
		t.Errorf("key 10 without columns: %+v", s)
	}
	if s := explain(4, oribi.AsOf(changed-1)).Steps[1]; s.Redos != 1 || s.Undos != 0 || !s.Live {
		t.Errorf("key 4 before its last change: %+v", s)
	}
	past := explain(4, oribi.AsOf(inserted))
	if s := past.Steps[1]; len(past.Steps) != 3 || !s.Found || s.Live || s.Redos != 0 || s.Undos != 1 {
		t.Errorf("key 4 before it was inserted: %+v", past)
	}
	if trace := explain(7); len(trace.Steps) != 3 || !trace.Steps[1].Found ||
		trace.Steps[1].Live || trace.Steps[1].Redos != 1 {
		t.Errorf("key 7, deleted: %+v", trace)
	}
	if trace := explain(5000); len(trace.Steps) != 0 || trace.Outside != 4 || trace.NotSearched() != 0 {
		t.Errorf("key 5000, between rowsets: %+v", trace)
	}
	trace = explain(20001)
	if m := trace.Memory[0]; !trace.InMemory || !m.Found || !m.Live || m.Changes != 1 || len(trace.Steps) != 0 {
		t.Errorf("key 20001, in memory: %+v", trace)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	must.Fail(t, must.Err(table.Explain(ctx, 4)), context.Canceled, "canceled")
}

func TestExplainSaysWhetherARowFileIsRead(t *testing.T) {
	table, _, _ := readTable(t, oribi.RowFile(schema.FullRowFile))
	trace := must.Get(table.Explain(t.Context(), 4))(t)
	if s := trace.Steps[len(trace.Steps)-1]; !s.Live || !s.RowFile || !slices.Contains(filesRead(&s), "row file") ||
		slices.Contains(filesRead(&s), `column "word"`) {
		t.Errorf("%+v", s)
	}
}

// TestExplainAgreesWithGet compares both for every key, as of several times.
func TestExplainAgreesWithGet(t *testing.T) {
	table, inserted, changed := readTable(t)
	for _, at := range []oribi.ReadOption{oribi.Latest(), oribi.AsOf(inserted),
		oribi.AsOf(changed - 1), oribi.AsOf(changed)} {
		for _, from := range []int{0, 2980, 9990, 10990, 19995} {
			for key := from; key < from+25; key++ {
				_, err := table.Get(t.Context(), key, at)
				found := err == nil
				if err != nil && !errors.Is(err, oribi.ErrNotFound) {
					t.Fatal(err)
				}
				trace := must.Get(table.Explain(t.Context(), key, at))(t)
				live := trace.InMemory
				for i, s := range trace.Steps {
					if live = live || s.Live; s.Live && (i != len(trace.Steps)-1 || !s.Found || !s.Filter) {
						t.Errorf("key %d: %+v", key, trace)
					}
				}
				if live != found || trace.RowSets != trace.Outside+len(trace.Steps)+trace.NotSearched() {
					t.Errorf("key %d: found %t, explained as %+v", key, found, trace)
				}
			}
		}
	}
}

// TestExplainWithConcurrentCompactions explains reads while the files that they read are replaced.
func TestExplainWithConcurrentCompactions(t *testing.T) {
	table, _, _ := readTable(t)
	done := make(chan error, 1)
	go func() {
		for range 20 {
			_, err := table.UpdateWhere(t.Context(), oribi.Row{"word": "new"}, oribi.From(0), oribi.To(50))
			if err == nil {
				err = table.Compact(t.Context())
			}
			if err != nil {
				done <- err
				return
			}
		}
		done <- nil
	}()
	for n := 0; ; n++ {
		trace, err := table.Explain(t.Context(), 4)
		must.Do(t, err, "after", n)
		must.Equal(t, trace.Steps[len(trace.Steps)-1].Live, true, "after", n, trace)
		select {
		case err := <-done:
			must.Do(t, err)
			return
		default:
		}
	}
}

func TestParsePredicate(t *testing.T) {
	table, _, _ := readTable(t)
	for expression, want := range map[string]int64{
		"n > 10995 and n < 20000": 4, "k = 4": 1, "n = 44 or word = 'other'": 2, "not (n < 20000)": 9,
		"k in (1, 2, 7)": 2, "k between 0 and 9": 9,
		"word like 'oth%'": 1, "word is null": 0, "word is not null and k < 10": 9,
	} {
		p, err := oribi.ParsePredicate(table.Schema().Columns, expression)
		if err != nil {
			t.Errorf("%s: %v", expression, err)
			continue
		}
		must.Equal(t, must.Get(table.Count(t.Context(), oribi.Where(p)))(t), want, expression, "rows")
	}
	if _, err := oribi.ParsePredicate(table.Schema().Columns, "n >"); err == nil ||
		err.Error() != "oribi: expression: byte 4: want a literal, not the end" {
		t.Errorf("n >: %v", err)
	}
}
