package storetest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/mvcc"
	"github.com/oribi-db/oribi/vfs"
	"github.com/oribi-db/oribi/vfs/faultfs"
)

// briefly is how long a read gets that must not answer.
const briefly = 30 * time.Millisecond

// countAsOf returns the number of rows of table numbers as of a time, which the store has some time
// to find out.
func countAsOf(t *testing.T, s *oribi.Store, ts mvcc.Timestamp, within time.Duration) (int64, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), within)
	defer cancel()
	numbers := must.Get(s.Table("numbers"))(t)
	return numbers.Count(ctx, oribi.AsOf(ts))
}

// A follower gives no answer as of a time up to which batches may still come: a writer is stopped
// after it has given a batch its timestamp. When the writer goes on, and says how far it has come,
// the follower answers, with the batch.
func TestFollowerWaitsForWriterThatIsStopped(t *testing.T) {
	needFollowers(t)
	for _, test := range []struct {
		name   string
		within time.Duration // the writer confirms four times a second, except in its critical section
		opts   []oribi.CommitOption
	}{{"sync=no", briefly, []oribi.CommitOption{oribi.NoSync}}, {"sync=yes", 600 * time.Millisecond, nil}} {
		t.Run(test.name, func(t *testing.T) { stoppedWriter(t, test.within, test.opts) })
	}
}

func stoppedWriter(t *testing.T, within time.Duration, opts []oribi.CommitOption) {
	mem := vfs.NewMem()
	disk := faultfs.New(mem)
	store := must.Get(oribi.Open("/store", &oribi.Options{FS: disk}))(t)
	defer store.Close()
	table := numbersTable(t, store, "numbers")
	fillNumbers(t, store, table, 0, 10)
	follower := openFollower(t, mem)

	var armed atomic.Bool
	stopped, goOn := make(chan struct{}), make(chan struct{})
	disk.Watch(func(c faultfs.Call) error {
		if strings.HasSuffix(c.Name, ".wal") && (c.Op == faultfs.Write || c.Op == faultfs.Copy) &&
			armed.CompareAndSwap(true, false) {
			close(stopped)
			<-goOn
		}
		return nil
	})
	armed.Store(true)
	committed := make(chan error, 1)
	go func() {
		b := store.NewBatch()
		b.Insert(table, oribi.Row{"k": 10, "v": -10})
		_, err := b.Commit(context.Background(), opts...)
		committed <- err
	}()
	<-stopped
	now := mvcc.FromTime(time.Now()) // after the timestamp of the batch
	if n, err := countAsOf(t, follower, now, within); err == nil {
		t.Errorf("while a batch from before is on its way, the answer is %d rows", n)
	}
	close(goOn)
	must.Do(t, <-committed)
	must.Equal(t, must.Get(countAsOf(t, follower, now, time.Minute))(t), 11, "rows")
}

// Without a writer a follower answers as of the present, at once. A writer that comes later gives
// its batches later timestamps.
func TestFollowerWithoutWriterAnswersUpToThePresent(t *testing.T) {
	needFollowers(t)
	dir := t.TempDir() + "/store"
	store := must.Get(oribi.Open(dir, nil))(t)
	table := numbersTable(t, store, "numbers")
	fillNumbers(t, store, table, 0, 10)
	must.Do(t, store.Close())
	follower := must.Get(oribi.Open(dir, &oribi.Options{Follow: true}))(t)
	defer follower.Close()
	now := mvcc.FromTime(time.Now())
	must.Equal(t, must.Get(countAsOf(t, follower, now, time.Minute))(t), 10, "rows")
	store = must.Get(oribi.Open(dir, nil))(t)
	defer store.Close()
	table = must.Get(store.Table("numbers"))(t)
	fillNumbers(t, store, table, 10, 20)
	must.Do(t, follower.Refresh(t.Context()))
	must.Equal(t, must.Get(countAsOf(t, follower, now, time.Minute))(t), 10, "later rows")
	must.Equal(t, countNumbers(t, follower), 20, "rows")
}

// The writer confirms the time for followers though it commits nothing, and the next writer, whose
// clock is behind, stays above that.
func TestWriterIsAboveConfirmedTime(t *testing.T) {
	needFollowers(t)
	mem := vfs.NewMem()
	open := func(o oribi.Options) *oribi.Store {
		o.FS = mem
		return must.Get(oribi.Open("/store", &o))(t)
	}
	store := open(oribi.Options{})
	fillNumbers(t, store, numbersTable(t, store, "numbers"), 0, 10)
	follower := open(oribi.Options{Follow: true})
	defer follower.Close()
	now := mvcc.FromTime(time.Now())
	must.Equal(t, must.Get(countAsOf(t, follower, now, time.Minute))(t), 10, "rows")
	must.Do(t, store.Close())
	behind := func() time.Time { return time.Now().Add(-time.Hour) }
	store = open(oribi.Options{Clock: mvcc.NewHybridClock(behind)})
	defer store.Close()
	table := must.Get(store.Table("numbers"))(t)
	b := store.NewBatch()
	b.Insert(table, oribi.Row{"k": 10, "v": -10})
	ts, err := b.Commit(t.Context())
	if err != nil || ts <= now {
		t.Errorf("the next batch has timestamp %v, %v; %v was confirmed", ts, err, now)
	}
}

// A follower's look for a writer is no reason for a writer not to open.
func TestWriterOpensNextToFollowersThatLook(t *testing.T) {
	needFollowers(t)
	dir := t.TempDir() + "/store"
	store := must.Get(oribi.Open(dir, nil))(t)
	stop, ended := make(chan struct{}), make(chan error, 2)
	for range cap(ended) {
		s := must.Get(oribi.Open(dir, &oribi.Options{Follow: true}))(t)
		go func() {
			defer s.Close()
			for {
				select {
				case <-stop:
					ended <- nil
					return
				default:
				}
				if err := s.Refresh(context.Background()); err != nil && !errors.Is(err, oribi.ErrLocked) {
					ended <- fmt.Errorf("refresh: %w", err)
					return
				}
			}
		}()
	}
	for range 20 {
		must.Do(t, store.Close())
		store = must.Get(oribi.Open(dir, nil))(t)
	}
	close(stop)
	for range cap(ended) {
		must.Do(t, <-ended)
	}
	must.Do(t, store.Close())
}
