package storetest

import (
	"context"
	"fmt"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/internal/must"
)

// benchStore opens a store on disk with tables of flushed rows.
func benchStore(b *testing.B, tables int) (dir string, store *oribi.Store, list []*oribi.Table) {
	b.Helper()
	dir = filepath.Join(b.TempDir(), "store")
	store = must.Get(oribi.Open(dir, &oribi.Options{Manual: true}))(b)
	b.Cleanup(func() { store.Close() })
	for i := range tables {
		t := tableOf(b, store, fmt.Sprintf("t%d", i), "k*:int64 v:int64")
		list = append(list, t)
		benchRows(b, store, t, 0, 1000, 1000)
		must.Do(b, t.Flush(context.Background()))
	}
	return dir, store, list
}

// benchRows inserts rows from on, so many per batch.
func benchRows(b *testing.B, store *oribi.Store, t *oribi.Table, from, n, perBatch int) {
	for k := from; k < from+n; {
		batch := store.NewBatch()
		for end := min(k+perBatch, from+n); k < end; k++ {
			batch.Insert(t, oribi.Row{"k": k, "v": -k})
		}
		must.Do(b, must.Err(batch.Commit(context.Background(), oribi.NoSync)))
	}
}

// BenchmarkOpenFollower compares opening a follower with a read-only open of the same closed store,
// which has rows in files and in the log.
func BenchmarkOpenFollower(b *testing.B) {
	for _, follow := range []bool{false, true} {
		b.Run(fmt.Sprintf("follow=%v", follow), func(b *testing.B) {
			dir, store, tables := benchStore(b, 10)
			benchRows(b, store, tables[0], 1000, 2000, 10)
			must.Do(b, store.Close())
			for b.Loop() {
				s, err := oribi.Open(dir, &oribi.Options{ReadOnly: !follow, Follow: follow})
				must.Do(b, err)
				s.Close()
			}
		})
	}
}

// BenchmarkRefresh measures a refresh after 1,000 new rows in the log, and one after a flush.
func BenchmarkRefresh(b *testing.B) {
	for _, flush := range []bool{false, true} {
		b.Run(fmt.Sprintf("flush=%v", flush), func(b *testing.B) {
			dir, store, tables := benchStore(b, 10)
			s, err := oribi.Open(dir, &oribi.Options{Follow: true})
			must.Do(b, err)
			defer s.Close()
			next := 1000
			for b.Loop() {
				b.StopTimer()
				benchRows(b, store, tables[0], next, 1000, 10)
				next += 1000
				if flush {
					must.Do(b, tables[0].Flush(context.Background()))
				}
				b.StartTimer()
				must.Do(b, s.Refresh(context.Background()))
			}
		})
	}
}

// BenchmarkWriterWithFollowers measures commits of ten rows next to followers that refresh ten
// times a second.
func BenchmarkWriterWithFollowers(b *testing.B) {
	for _, followers := range []int{0, 4} {
		b.Run(fmt.Sprintf("followers=%d", followers), func(b *testing.B) {
			dir, store, tables := benchStore(b, 10)
			ctx, cancel := context.WithCancel(context.Background())
			var running sync.WaitGroup
			for range followers {
				s, err := oribi.Open(dir, &oribi.Options{Follow: true})
				must.Do(b, err)
				running.Go(func() {
					defer s.Close()
					for ctx.Err() == nil {
						if err := s.Refresh(ctx); err != nil && ctx.Err() == nil {
							b.Error(err)
						}
						time.Sleep(100 * time.Millisecond)
					}
				})
			}
			next := 1000
			for b.Loop() {
				benchRows(b, store, tables[0], next, 10, 10)
				next += 10
			}
			cancel()
			running.Wait()
		})
	}
}

// BenchmarkRefreshOfManyRowSets measures a refresh after a flush of one row of a table, next to
// which the store has many rowsets: of the same table, or of others.
func BenchmarkRefreshOfManyRowSets(b *testing.B) {
	for _, rowsets := range []int{10, 1000} {
		b.Run(fmt.Sprintf("rowsets=%d", rowsets), func(b *testing.B) {
			dir, store, tables := benchStore(b, 2)
			next := 1000
			flush := func() {
				benchRows(b, store, tables[0], next, 1, 1)
				next++
				must.Do(b, tables[0].Flush(context.Background()))
			}
			for range rowsets {
				flush()
			}
			s, err := oribi.Open(dir, &oribi.Options{Follow: true})
			must.Do(b, err)
			defer s.Close()
			for b.Loop() {
				b.StopTimer()
				flush()
				b.StartTimer()
				must.Do(b, s.Refresh(context.Background()))
			}
		})
	}
}
