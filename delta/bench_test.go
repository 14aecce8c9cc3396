package delta

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/block"
	"github.com/oribi-db/oribi/cache"
	"github.com/oribi-db/oribi/cfile"
	"github.com/oribi-db/oribi/change"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/lsn"
	"github.com/oribi-db/oribi/mvcc"
	"github.com/oribi-db/oribi/schema"
)

// Each change sets one int32 column; rows are picked from 1 million, with a fixed seed.
const benchRows = 1 << 20

func BenchmarkMemStoreApply(b *testing.B) {
	list := setInt(11, 5)
	for name, row := range map[string]func(rnd *rand.Rand, i int) int{
		"random":    func(rnd *rand.Rand, i int) int { return rnd.IntN(benchRows) },
		"ascending": func(rnd *rand.Rand, i int) int { return i % benchRows },
		"one":       func(rnd *rand.Rand, i int) int { return 7 },
	} {
		b.Run("rows="+name, func(b *testing.B) {
			rnd := rand.New(rand.NewPCG(1, 2))
			m := NewMemStore(nil, nil)
			i := 0
			for b.Loop() {
				if i&(benchRows-1) == 0 {
					m = NewMemStore(nil, nil) // as large as a store gets before it is flushed
				}
				m.Apply(batch.Ordinal(row(rnd, i)), mvcc.Timestamp(i+1), lsn.LSN(i+1), list)
				i++
			}
			if m.Len() == 0 {
				b.Fatal("nothing was applied")
			}
		})
	}
}

// benchTracker changes one in every `every` rows, in a mem store or in a file.
func benchTracker(b *testing.B, store string, every int) *Tracker {
	tracker := &Tracker{Schema: testSchema}
	deltas := someUpdates(benchRows/every, every, 1)
	if store == "mem" {
		tracker.Mem = memOf(deltas)
		return tracker
	}
	sink := &block.Memory{Number: 1}
	w := must.Get(NewWriter(sink, false))(b)
	for _, d := range deltas {
		must.Do(b, w.Append(d))
	}
	must.Get(w.Finish())(b)
	f := must.Get(OpenFile(sink, cfile.ReaderOptions{Cache: cache.New(64 << 20)}))(b)
	tracker.Redo = []*File{f}
	return tracker
}

// BenchmarkWindow applies the changes of a column to 1 million rows, window by window.
func BenchmarkWindow(b *testing.B) {
	for _, store := range []string{"mem", "file"} {
		for _, every := range []int{1, 10, 100} {
			b.Run(fmt.Sprintf("store=%s/changed=%g", store, 1/float64(every)), func(b *testing.B) {
				tracker := benchTracker(b, store, every)
				v := batch.NewVector(schema.Int32, batch.WindowRows)
				var sum int64
				for b.Loop() {
					w := tracker.NewWindow(mvcc.Everything)
					for from := 0; from < benchRows; from += batch.WindowRows {
						must.Do(b, w.Prepare(batch.Ordinal(from), batch.WindowRows))
						w.ApplyColumn(11, v)
						sum += int64(batch.Values[int32](v)[0])
					}
				}
				if sum == 0 {
					b.Fatal("nothing was applied")
				}
				b.ReportMetric(float64(benchRows)*float64(b.N)/b.Elapsed().Seconds(), "rows/s")
				b.ReportMetric(float64(benchRows/every)*float64(b.N)/b.Elapsed().Seconds(), "changes/s")
			})
		}
	}
}

func BenchmarkRowAt(b *testing.B) {
	for _, store := range []string{"mem", "file"} {
		b.Run("store="+store, func(b *testing.B) {
			tracker := benchTracker(b, store, 10)
			rnd := rand.New(rand.NewPCG(1, 2))
			var r RowState
			changed := 0
			for b.Loop() {
				must.Do(b, tracker.RowAt(batch.Ordinal(rnd.IntN(benchRows)), mvcc.Everything, &r))
				if r.Changed() {
					changed++
				}
			}
			if b.N > 1000 && changed == 0 {
				b.Fatal("no row was changed")
			}
		})
	}
}

func BenchmarkWriter(b *testing.B) {
	deltas := someUpdates(1<<16, 3, 6963200000000000000)
	var bytes int64
	for b.Loop() {
		sink := new(block.Memory)
		w, err := NewWriter(sink, false)
		must.Do(b, err)
		for _, d := range deltas {
			must.Do(b, w.Append(change.Delta{Row: d.Row, TS: d.TS, List: d.List}))
		}
		must.Do(b, must.Err(w.Finish()))
		bytes = sink.Size()
	}
	b.ReportMetric(float64(len(deltas))*float64(b.N)/b.Elapsed().Seconds(), "changes/s")
	b.ReportMetric(float64(bytes)/float64(len(deltas)), "bytes/change")
}
