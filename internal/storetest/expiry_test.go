package storetest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/mvcc"
	"github.com/oribi-db/oribi/schema"
)

// sessions is a store with a table whose rows expire by their column until.
type sessions struct {
	*fakeWall
	t     *testing.T
	store *oribi.Store
	table *oribi.Table
}

func newSessions(t *testing.T, age time.Duration, opts ...oribi.TableOption) *sessions {
	t.Helper()
	s := &sessions{fakeWall: newFakeWall(), t: t}
	s.open()
	s.table = tableOf(t, s.store, "sessions",
		"k*:int64 v:int64? until:timestamp?", append(opts, oribi.Expires("until", age))...)
	return s
}

func (s *sessions) open() {
	s.t.Helper()
	store := must.Get(oribi.Open("/sessions",
		&oribi.Options{FS: s.mem, Clock: mvcc.NewHybridClock(s.time), History: time.Hour, Manual: true}))(s.t)
	s.store = store
	s.t.Cleanup(func() { store.Close() })
	s.table, _ = store.Table("sessions")
}

// put upserts a row that expires after d, or never if d is 0.
func (s *sessions) put(k, v int, d time.Duration) mvcc.Timestamp {
	s.t.Helper()
	b := s.store.NewBatch()
	b.Upsert(s.table, s.row(k, v, d))
	return must.Get(b.Commit(context.Background()))(s.t)
}

func (s *sessions) row(k, v int, d time.Duration) oribi.Row {
	row := oribi.Row{"k": k, "v": v, "until": nil}
	if d != 0 {
		row["until"] = s.time().Add(d)
	}
	return row
}

// content returns the rows that the reads of the newest state return, which have to agree.
func (s *sessions) content(opts ...oribi.CountOption) string {
	s.t.Helper()
	ctx := context.Background()
	text, n := "", int64(0)
	var scanned []oribi.ScanOption
	var aggregated []oribi.AggregateOption
	for _, o := range opts {
		scanned, aggregated = append(scanned, o), append(aggregated, o)
	}
	for row, err := range s.table.Scan(ctx, scanned...).Rows() {
		must.Do(s.t, err)
		n++
		text += fmt.Sprintf("%v=%v ", row["k"], row["v"])
	}
	if got, err := s.table.Count(ctx, opts...); got != n || err != nil {
		s.t.Errorf("count %d, %v; the scan has %s", got, err, text)
	}
	r := must.Get(s.table.Aggregate(ctx, []oribi.Aggregate{oribi.CountRows(), oribi.CountOf("k")}, aggregated...))(s.t)
	if v := r.Groups[0].Values; fmt.Sprint(v) != fmt.Sprint([]int64{n, n}) {
		s.t.Errorf("aggregate %v; the scan has %s", v, text)
	}
	return text
}

// tick is a wall clock that moves a microsecond with each look at it.
func (s *sessions) tick() time.Time {
	s.move(time.Microsecond)
	return s.time()
}

// tickingTable returns a table of rows that expire, in a store whose clock moves between all steps
// of a commit.
func tickingTable(t *testing.T) (*sessions, *oribi.Table) {
	t.Helper()
	s := &sessions{fakeWall: newFakeWall(), t: t}
	store := must.Get(oribi.Open("/sessions",
		&oribi.Options{FS: s.mem, Clock: mvcc.NewHybridClock(s.tick), History: oribi.HistoryForever, Manual: true}))(t)
	t.Cleanup(func() { store.Close() })
	s.table = tableOf(t, store, "sessions", "k*:int64 until:timestamp", oribi.Expires("until", 0))
	s.store = store
	return s, s.table
}

// A transaction that is committed has read rows that its timestamp still sees.
func TestTransactionsCommitBeforeTheirRowsExpire(t *testing.T) {
	ctx := context.Background()
	s, table := tickingTable(t)
	committed, refused := 0, 0
	for k := range 300 {
		b := s.store.NewBatch()
		b.Insert(table, oribi.Row{"k": k, "until": s.time().Add(time.Duration(k%30+2) * time.Microsecond)})
		must.Get(b.Commit(ctx))(t)
		tx := must.Get(s.store.Begin(ctx))(t)
		if _, err := tx.Get(table, k); errors.Is(err, oribi.ErrNotFound) {
			tx.Rollback()
			continue
		}
		must.Do(t, tx.Insert(table, oribi.Row{"k": -k - 1, "until": s.time().Add(time.Hour)}))
		switch ts, err := tx.Commit(); {
		case err == nil:
			committed++
			must.Do(t, must.Err(table.Get(ctx, k, oribi.AsOf(ts))),
				"row", k, "read by a transaction, as of its commit")
		case errors.Is(err, oribi.ErrConflict):
			refused++
		default:
			t.Fatal(err)
		}
	}
	if committed == 0 || refused == 0 {
		t.Errorf("%d transactions were committed, %d refused", committed, refused)
	}
}

// An ingest purges the expired rows whose keys it has, also if it is refused then. A transaction that has
// read their range does not notice.
func TestPurgedRowsAreNoConflict(t *testing.T) {
	ctx := context.Background()
	s := newSessions(t, 0)
	s.put(1, 1, time.Second)
	s.put(2, 2, 0)
	s.move(time.Minute)
	tx := must.Get(s.store.Begin(ctx))(t)
	defer tx.Rollback()
	for row := range must.All(t, tx.Scan(s.table).Rows()) {
		must.Equal(t, row["k"].(int64), 2, "row")
	}
	must.Fail(t, must.Err2(s.table.Ingest(ctx, func(yield func([]*batch.Vector, error) bool) {
		for key := range int64(2) {
			columns := []*batch.Vector{batch.NewVector(schema.Int64, 1), batch.NewVector(schema.Int64, 1),
				batch.NewVector(schema.Timestamp, 1)}
			batch.Values[int64](columns[0])[0] = 1 + key
			if !yield(columns, nil) {
				return
			}
		}
	})), oribi.ErrKeyExists)
	must.Do(t, tx.Insert(s.table, s.row(3, 3, 0)))
	must.Get(tx.Commit())(t)
	must.Equal(t, s.content(), "2=2 3=3 ")
}

// TestCommitsDecideAsOfTheirOwnTimestamp commits write batches while their rows expire. Whether a
// delete finds its row has to agree with the timestamp.
func TestCommitsDecideAsOfTheirOwnTimestamp(t *testing.T) {
	ctx := context.Background()
	s, table := tickingTable(t)
	late := 0
	for k := range 200 {
		expires := s.time().Add(time.Duration(k%20+2) * time.Microsecond)
		b := s.store.NewBatch()
		b.Insert(table, oribi.Row{"k": k, "until": expires})
		must.Get(b.Commit(ctx))(t)
		b.Delete(table, oribi.Row{"k": k})
		b.Insert(table, oribi.Row{"k": -k - 1, "until": expires})
		ts := must.Get(b.CommitPartial(ctx))(t)
		deleted := len(b.Refused()) == 0
		expired := !ts.Time().Before(expires)
		if expired {
			late++
		}
		if deleted == expired {
			t.Errorf("row %d expires at %v, deleted at %v: %v", k, expires, ts, deleted)
		}
	}
	if late == 0 || late == 200 {
		t.Errorf("%d of 200 rows were deleted too late", late)
	}
}

// TestRuleEndsWhileRowsExpire clears the rule of a table whose rows expire meanwhile: the clock
// moves between all steps. The state just before the end of the rule has to be that after it.
func TestRuleEndsWhileRowsExpire(t *testing.T) {
	ctx := context.Background()
	s := &sessions{fakeWall: newFakeWall(), t: t}
	store := must.Get(oribi.Open("/sessions",
		&oribi.Options{FS: s.mem, Clock: mvcc.NewHybridClock(s.tick), History: oribi.HistoryForever, Manual: true}))(t)
	defer store.Close()
	s.table = tableOf(t, store, "sessions", "k*:int64 v:int64 until:timestamp", oribi.Expires("until", 0))
	b, begin := store.NewBatch(), s.time()
	for k := range 100 {
		b.Insert(s.table, oribi.Row{"k": k, "v": k, "until": begin.Add(time.Duration(k) * time.Microsecond)})
	}
	must.Get(b.Commit(ctx))(t)
	must.Do(t, s.table.Alter(ctx, oribi.ClearExpires()))
	since := s.table.Properties().Expiry.Since
	before, after := s.content(oribi.AsOf(since-1)), s.content()
	if before != after || after == "" || strings.HasPrefix(after, "0=") {
		t.Errorf("before the end of the rule: %s\nafter it: %s", before, after)
	}
}
