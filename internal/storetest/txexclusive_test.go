package storetest

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"testing"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/vfs"
	"github.com/oribi-db/oribi/vfs/faultfs"
)

// sum adds the values of a table in a transaction.
func sum(tx *oribi.Tx, table *oribi.Table) (n int64, err error) {
	for row, err := range tx.Scan(table).Rows() {
		if err != nil {
			return 0, err
		}
		n += row["v"].(int64)
	}
	return n, nil
}

// While other goroutines change rows of two tables without pause, updates that read all rows of both,
// in different orders, end after at most four attempts, and at once with Exclusive. Their sums are
// those that the writers keep up.
func TestUpdatesEndNextToWriters(t *testing.T) {
	ctx := context.Background()
	store, first := txStore(t)
	second := numbersTable(t, store, "second")
	results := numbersTable(t, store, "results")
	rows := map[int64]int64{}
	for k := range int64(200) {
		rows[k] = 1
	}
	put(t, store, first, rows)
	put(t, store, second, rows)
	stop := make(chan struct{})
	var wg, writers sync.WaitGroup
	for g := range int64(2) {
		writers.Go(func() {
			for i := int64(0); ; i++ {
				select {
				case <-stop:
					return
				default:
				}
				b := store.NewBatch() // moves a part of a sum
				k := (i*7 + g) % 200
				b.Upsert(first, number(k, 1+i%5))
				b.Upsert(second, number(k, 1-i%5))
				if _, err := b.Commit(ctx, oribi.NoSync); err != nil {
					t.Error(err)
					return
				}
				if i%50 == 0 {
					if err := first.Flush(ctx); err != nil {
						t.Error(err)
					}
				}
			}
		})
	}
	for g := range int64(3) {
		wg.Go(func() {
			for i := range int64(10) {
				tables, attempts := []*oribi.Table{first, second}, 0
				if g == 1 {
					tables = []*oribi.Table{second, first}
				}
				opts, most := []oribi.UpdateOption{oribi.NoSync}, 4
				if g == 2 {
					opts, most = append(opts, oribi.Exclusive(), nil), 1
				}
				var got [2]int64
				err := store.Update(ctx, func(tx *oribi.Tx) (err error) {
					attempts++
					for j, table := range tables {
						if got[j], err = sum(tx, table); err != nil {
							return err
						}
						runtime.Gosched()
					}
					again, err := sum(tx, tables[0])
					if again != got[0] && err == nil {
						t.Errorf("a sum changes from %d to %d", got[0], again)
					}
					return errors.Join(err, tx.Upsert(results, number(100*g+i, got[0]+got[1])))
				}, opts...)
				if err != nil || attempts > most {
					t.Errorf("update %d of %d ends after %d attempts: %v", i, g, attempts, err)
				}
			}
		})
	}
	wg.Wait()
	close(stop)
	writers.Wait()
	for row := range must.All(t, results.Scan(ctx).Rows()) {
		must.Equal(t, row["v"].(int64), 400, "sum of update", row["k"])
	}
	must.Equal(t, must.Get(results.Count(ctx))(t), 30, "updates")
}

// An exclusive attempt that waits for a writer that it holds off goes on, and so does the writer: an
// update in its function, a flush, a compaction.
func TestExclusiveAttemptsDoNotWaitForever(t *testing.T) {
	ctx := context.Background()
	store, table := txStore(t)
	put(t, store, table, map[int64]int64{1: 1, 2: 2})
	inner := 0
	must.Do(t, store.Update(ctx, func(tx *oribi.Tx) error {
		if _, err := tx.Get(table, 1); err != nil {
			return err
		}
		inner++
		if err := errors.Join(table.Flush(ctx), table.Compact(ctx)); err != nil {
			return err
		}
		if inner > 1 {
			return tx.Upsert(table, number(3, 3))
		}
		return errors.Join(
			store.Update(ctx, func(tx *oribi.Tx) error {
				if _, err := tx.Get(table, 2); err != nil {
					return err
				}
				return tx.Upsert(table, number(2, 20))
			}, oribi.Exclusive(), oribi.NoSync),
			tx.Upsert(table, number(3, 3)))
	}, oribi.Exclusive(), oribi.NoSync))
	got := must.Get(numbersOf(table.Scan(ctx).Rows()))(t)
	must.Equal(t, got[2], 20, "value of the update in the function")
	must.Equal(t, got[3], 3, "value of the update")
	must.Equal(t, inner, 1, "attempts")
}

// Writers that an exclusive attempt holds off end with their context, and when the store is closed.
func TestHeldWritersEnd(t *testing.T) {
	ctx := context.Background()
	store := must.Get(oribi.Open("/tx", &oribi.Options{FS: vfs.NewMem(), Manual: true}))(t)
	table := numbersTable(t, store, "numbers")
	other := numbersTable(t, store, "others")
	held, leave := make(chan struct{}), make(chan struct{})
	done := make(chan error)
	go func() {
		done <- store.Update(ctx, func(tx *oribi.Tx) error {
			if _, err := tx.Has(table, 1); err != nil {
				return err
			}
			close(held)
			<-leave
			_, err := tx.Has(table, 2)
			return err
		}, oribi.Exclusive())
	}()
	<-held
	put(t, store, other, map[int64]int64{1: 1})
	write := func(ctx context.Context) error {
		b := store.NewBatch()
		b.Upsert(table, number(1, 1))
		_, err := b.Commit(ctx, oribi.NoSync)
		return err
	}
	canceled, cancel := context.WithCancel(ctx)
	waits := make(chan error)
	go func() { waits <- write(canceled) }()
	cancel()
	must.Fail(t, <-waits, context.Canceled)
	go func() { waits <- write(ctx) }()
	must.Do(t, store.Close())
	if err := <-waits; err != nil && !errors.Is(err, oribi.ErrClosed) { // nil: it has waited for very long
		t.Errorf("a writer that was held off: %v, want ErrClosed", err)
	}
	close(leave)
	must.Fail(t, <-done, oribi.ErrClosed)
}

// After a sync of the log has failed, the first read of an exclusive attempt in a table fails: it would
// wait for a batch that is never published. Other transactions read what was published before.
func TestExclusiveAttemptsOfAPoisonedStore(t *testing.T) {
	ctx := context.Background()
	disk := faultfs.New(vfs.NewMem())
	store := must.Get(oribi.Open("/store", &oribi.Options{FS: disk, Manual: true}))(t)
	defer store.Close()
	table := numbersTable(t, store, "t")
	put(t, store, table, map[int64]int64{1: 1})
	disk.Fail(faultfs.Rule{Ops: []faultfs.Op{faultfs.Sync}})
	b := store.NewBatch()
	b.Upsert(table, number(1, 2))
	must.Fail(t, must.Err(b.Commit(ctx)), oribi.ErrPoisoned)
	get := func(tx *oribi.Tx) error {
		row, err := tx.Get(table, 1)
		if err == nil && row["v"] != int64(1) {
			t.Error("read", row)
		}
		return err
	}
	err := errors.New("not called")
	store.Update(ctx, func(tx *oribi.Tx) error {
		err = get(tx)
		return err
	}, oribi.Exclusive())
	must.Fail(t, err, oribi.ErrPoisoned)
	tx := must.Get(store.Begin(ctx))(t)
	must.Do(t, get(tx))
	tx.Rollback()
}
