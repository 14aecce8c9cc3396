package arrowio

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"sync/atomic"
	"testing"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/internal/must"
)

// counting returns a function that returns pointers to 0, 1, … up to n, and the number of its
// calls.
func counting(n int) (next func() *int, calls *atomic.Int64) {
	calls = new(atomic.Int64)
	return func() *int {
		i := int(calls.Add(1)) - 1
		if i == n {
			return nil
		}
		return &i
	}, calls
}

func TestAheadReturnsAllInOrder(t *testing.T) {
	for _, n := range []int{0, 1, 2, 100} {
		next, _ := counting(n)
		want := 0
		for v := range ahead(next) {
			must.Equal(t, *v, want)
			want++
		}
		must.Equal(t, n, want)
	}
}

// The goroutine makes up to two values that the caller has not taken, and ends with the iteration.
func TestAheadIsBoundedAndEnds(t *testing.T) {
	next, calls := counting(1000)
	for v := range ahead(next) {
		if made := calls.Load(); made > int64(*v)+3 {
			t.Fatalf("%d values made, %d taken", made, *v+1)
		}
		if *v == 500 {
			break
		}
	}
	made := calls.Load()
	if again := calls.Load(); again != made || made > 504 {
		t.Errorf("%d values made, then %d", made, again)
	}
}

// A call of next that runs when the iteration ends has returned afterwards.
func TestAheadWaits(t *testing.T) {
	begun, stopping := make(chan bool), make(chan bool)
	var returned atomic.Bool
	next, calls := counting(1000)
	for range ahead(func() *int {
		if calls.Load() == 1 {
			close(begun)
			<-stopping
			for range 1000 {
				runtime.Gosched()
			}
			returned.Store(true)
		}
		return next()
	}) {
		<-begun
		close(stopping)
		break
	}
	must.Equal(t, returned.Load(), true, "the iteration ended before the call")
}

func TestAheadPassesPanicsOn(t *testing.T) {
	next, _ := counting(3)
	defer func() {
		if r := recover(); r != "broken" {
			t.Errorf("recovered %v", r)
		}
	}()
	for range ahead(func() *int {
		v := next()
		if v == nil {
			panic("broken")
		}
		return v
	}) {
	}
	t.Error("no panic")
}

// However an ingest ends, all memory is freed and the file may be closed: nothing reads it any
// more.
func TestIngestEndsTheReader(t *testing.T) {
	store := openStore(t)
	table := everyTable(t, store, "t", 4000, 21)
	data := exported(t, "parquet", table.Scan(context.Background()), nil)
	broken := errors.New("broken")
	for name, c := range map[string]struct {
		left   int  // reads
		exists bool // one of the keys
		cancel bool
		want   error
	}{
		"all": {left: 1 << 30}, "damaged reader": {left: 60, want: broken},
		"existing key": {left: 1 << 30, exists: true, want: oribi.ErrKeyExists},
		"canceled":     {left: 1 << 30, cancel: true, want: context.Canceled},
	} {
		t.Run(name, func(t *testing.T) {
			mem := checked(t)
			in := &brokenReader{ReaderAt: bytes.NewReader(data), left: c.left, err: broken}
			f := must.Get(OpenParquet(in, int64(len(data)), OpenOptions{Allocator: mem}))(t)
			s := must.Get(f.Definition().Table())(t)
			into := must.Get(store.CreateTable(fmt.Sprint("into ", name), s))(t)
			if c.exists {
				some := must.Get(NewReader(table.Scan(context.Background(), oribi.Where(oribi.Gt("k", 1_000_000_000)),
					oribi.Limit(1)), ReaderOptions{}))(t)
				must.Get2(Ingest(context.Background(), into, some))(t)
				some.Release()
			}
			before := len(rowsOf(t, into))
			ctx, cancel := context.WithCancel(context.Background())
			defer cancel()
			rows := must.Get(f.Read(ctx, ReadOptions{}))(t)
			if c.cancel {
				stop := 3
				in.ReaderAt = readerAt(func(p []byte, off int64) (int, error) {
					if stop--; stop == 0 {
						cancel()
					}
					return bytes.NewReader(data).ReadAt(p, off)
				})
			}
			_, n, err := Ingest(context.Background(), into, rows)
			if !errors.Is(err, c.want) || c.want == nil && n != int64(len(rowsOf(t, table))) {
				t.Errorf("%d rows, %v, want %v", n, err, c.want)
			}
			if after := len(rowsOf(t, into)); c.want != nil && after != before {
				t.Errorf("%d rows after a failed ingest, before %d", after, before)
			}
			in.left = -1 << 30 // a later read would fail
			rows.Release()
			f.Close()
		})
	}
}

type readerAt func(p []byte, off int64) (int, error)

func (f readerAt) ReadAt(p []byte, off int64) (int, error) { return f(p, off) }

var _ io.ReaderAt = readerAt(nil)

// The batches of an ingest equal the batches of Batches, also with a filter.
func TestIngestedBatchesAreOwned(t *testing.T) {
	store, mem := openStore(t), checked(t)
	table := everyTable(t, store, "t", 4000, 22)
	for format := range formats {
		data := exported(t, format, table.Scan(context.Background()), mem)
		where := oribi.Gt("k", 0)
		f, rows := opened(t, format, data, mem, ReadOptions{Where: []oribi.Predicate{where}})
		var kept []*batch.RecordBatch
		var got []string
		for b := range rows.owned() {
			if b.Selected() < b.Len {
				b = rows.dense(b)
			}
			if rows.in.owned() {
				kept = append(kept, b) // must not change while others are read
			} else {
				got = selectedRows(got, b)
			}
		}
		for _, b := range kept {
			got = selectedRows(got, b)
		}
		if rows.Err() != nil {
			t.Fatal(rows.Err())
		}
		want := rowsOf(t, table, oribi.Where(where))
		same(t, format, got, want)
		rows.Release()
		f.Close()
	}
}
