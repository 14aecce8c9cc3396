package storetest

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/mvcc"
	"github.com/oribi-db/oribi/schema"
	"github.com/oribi-db/oribi/vfs/faultfs"
)

// create opens a new store with a table of sessions that expire at the time in until.
func (s *sessions) create(o *oribi.Options) {
	s.t.Helper()
	s.store = must.Get(oribi.Open("/sessions", o))(s.t)
	store := s.store
	s.t.Cleanup(func() { store.Close() })
	s.table = tableOf(s.t, store, "sessions", "k*:int64 v:int64? until:timestamp?", oribi.Expires("until", 0))
}

// A flush is canceled. A row of its MemRowSet is renewed. When the flush is tried again, the row as
// it was at the first attempt had expired before the history floor, but is still there.
func TestRetriedFlushKeepsRenewedRows(t *testing.T) {
	s := &sessions{fakeWall: newFakeWall(), t: t}
	disk := faultfs.New(s.mem)
	s.create(&oribi.Options{FS: disk, Clock: mvcc.NewHybridClock(s.time), History: time.Hour, Manual: true})
	s.put(1, 1, time.Minute)
	ctx, cancel := context.WithCancel(t.Context())
	disk.Watch(func(faultfs.Call) error {
		cancel()
		return nil
	})
	must.Fail(t, s.table.Flush(ctx), context.Canceled)
	disk.Watch(func(faultfs.Call) error { return nil })
	s.move(30 * time.Second)
	s.put(1, 2, 3*time.Hour)
	s.move(2 * time.Hour)
	must.Do(t, s.table.Flush(t.Context()))
	must.Equal(t, s.content(), "1=2 ", "after the flush")
}

// An ingest looks up the keys of expired rows, whose locks it does not hold, while a writer
// replaces the rows.
func TestIngestNextToRenewals(t *testing.T) {
	s := newSessions(t, 0)
	const keys = 64
	renew := func(opts ...oribi.CommitOption) error {
		b := s.store.NewBatch()
		for k := range keys {
			b.Upsert(s.table, s.row(k, k, -time.Second))
		}
		_, err := b.Commit(t.Context(), opts...)
		return err
	}
	s.put(keys, 0, 0)
	must.Do(t, renew())
	var stop atomic.Bool
	done := make(chan error)
	go func() {
		var err error
		for err == nil && !stop.Load() {
			err = renew(oribi.NoSync)
		}
		done <- err
	}()
	for range 2000 {
		columns := []*batch.Vector{batch.NewVector(schema.Int64, keys+1), batch.NewVector(schema.Int64, keys+1),
			batch.NewVector(schema.Timestamp, keys+1)}
		for i := range keys + 1 {
			batch.Values[int64](columns[0])[i] = int64(i)
		}
		must.Fail(t, must.Err2(s.table.Ingest(t.Context(), once(columns))), oribi.ErrKeyExists,
			"one row never expires")
	}
	stop.Store(true)
	must.Do(t, <-done)
}

// A row expires at each look at the clock. A commit that renews them all, and calls that replace
// the whole table, end all the same, long before the last row has expired.
func TestCommitsEndWhileRowsExpire(t *testing.T) {
	const rows = 500
	for name, change := range map[string]func(s *sessions) (mvcc.Timestamp, error){
		"commit": func(s *sessions) (mvcc.Timestamp, error) {
			b := s.store.NewBatch()
			for k := range rows {
				b.Upsert(s.table, s.row(k, k+1, time.Hour))
			}
			return b.Commit(t.Context())
		},
		"truncate": func(s *sessions) (mvcc.Timestamp, error) {
			res, err := s.table.Truncate(t.Context())
			return res.Timestamp, err
		},
		"restore": func(s *sessions) (mvcc.Timestamp, error) {
			res, err := s.table.RestoreTo(t.Context(), mvcc.FromTime(s.time().Add(-time.Hour)))
			return res.Timestamp, err
		},
	} {
		s := &sessions{fakeWall: newFakeWall(), t: t}
		s.create(&oribi.Options{FS: s.mem, Clock: mvcc.NewHybridClock(s.tick),
			History: oribi.HistoryForever, Manual: true})
		b := s.store.NewBatch()
		s.move(2 * time.Hour)
		start := s.time().Add(time.Minute)
		for k := range rows {
			b.Insert(s.table, oribi.Row{"k": k, "v": k, "until": start.Add(time.Duration(k) * time.Microsecond)})
		}
		must.Get(b.Commit(t.Context()))(t)
		s.move(start.Sub(s.time()))
		ts, err := change(s)
		if took := ts.Time().Sub(start); err != nil || took > rows/2*time.Microsecond {
			t.Errorf("%s: %v, after %v of the clock", name, err, took)
		}
	}
}
