package storetest

import (
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/schema"
)

// While a table is flushed its writers continue; when memory use reaches half of its limit they
// block until the flush has ended.
func TestWritersContinueDuringFlushUntilMemoryIsFull(t *testing.T) {
	const (
		limit      = 16 << 20
		batchBytes = 64 << 10
	)
	var accepted atomic.Int64
	var flushing sync.Once
	begun := make(chan struct{})
	opts := &oribi.Options{Manual: true, MemoryLimit: limit, Progress: func(string, int64, int64) {
		flushing.Do(func() {
			close(begun)
			for accepted.Load() < limit/4/batchBytes { // writers continue
				runtime.Gosched()
			}
			for range 200_000 { // and would continue without the limit
				runtime.Gosched()
			}
			if n := accepted.Load(); n > limit/2/batchBytes {
				t.Errorf("%d batches of %d bytes are in memory, want at most %d bytes", n, batchBytes, limit/2)
			}
		})
	}}
	store, err := oribi.Open(t.TempDir(), opts)
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	s, err := schema.New([]schema.Column{{Name: "k", Type: schema.Int64}, {Name: "v", Type: schema.String}}, 1)
	if err != nil {
		t.Fatal(err)
	}
	table, err := store.CreateTable("t", s)
	if err != nil {
		t.Fatal(err)
	}
	text := strings.Repeat("x", batchBytes/4)
	write := func(writer, n int) {
		b := store.NewBatch()
		for i := range n {
			for k := range 4 {
				b.Upsert(table, oribi.Row{"k": (writer*1000+i)*4 + k, "v": text})
			}
			if _, err := b.Commit(t.Context(), oribi.NoSync); err != nil {
				t.Error(err)
			}
			accepted.Add(1)
		}
	}
	write(0, 16)
	var all sync.WaitGroup
	all.Go(func() {
		defer flushing.Do(func() { close(begun) })
		if err := table.Flush(t.Context()); err != nil {
			t.Error(err)
		}
	})
	for w := range 3 {
		all.Go(func() {
			<-begun
			write(w, 200)
		})
	}
	all.Wait()
	if n, err := table.Count(t.Context()); err != nil || n != 3*200*4 {
		t.Errorf("%d rows, %v", n, err)
	}
}
