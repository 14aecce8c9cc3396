package storetest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/oribi-db/oribi"
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
	columns, err := schema.New([]schema.Column{{Name: "k", Type: schema.Int64},
		{Name: "v", Type: schema.Int64, Nullable: true},
		{Name: "until", Type: schema.Timestamp, Nullable: true}}, 1)
	if err == nil {
		s.table, err = s.store.CreateTable("sessions", columns, append(opts, oribi.Expires("until", age))...)
	}
	if err != nil {
		t.Fatal(err)
	}
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
	ts := must.Get(b.Commit(context.Background()))(s.t)
	return ts
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
		if err != nil {
			s.t.Fatal(err)
		}
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

// TestRowsExpire reads rows before and after they expire, in memory and in files.
func TestRowsExpire(t *testing.T) {
	ctx := context.Background()
	for _, flushed := range []bool{false, true} {
		s := newSessions(t, time.Minute, oribi.History(oribi.HistoryForever))
		s.put(1, 10, time.Hour)
		s.put(2, 20, 2*time.Hour)
		before := s.put(3, 30, 0)
		if flushed {
			must.Do(t, s.table.Flush(ctx))
		}
		s.move(time.Hour + time.Minute - time.Microsecond)
		if got := s.content(); got != "1=10 2=20 3=30 " {
			t.Errorf("a microsecond early: %s", got)
		}
		s.move(time.Microsecond)
		if got := s.content(); got != "2=20 3=30 " {
			t.Errorf("at the expiry of 1: %s", got)
		}
		if got := s.content(oribi.AsOf(before)); got != "1=10 2=20 3=30 " {
			t.Errorf("as of the beginning: %s", got)
		}
		if _, err := s.table.Get(ctx, 1); !errors.Is(err, oribi.ErrNotFound) {
			t.Errorf("get 1: %v", err)
		}
		if ok, err := s.table.Has(ctx, 1); ok || err != nil {
			t.Errorf("has 1: %v, %v", ok, err)
		}
		if row, err := s.table.Get(ctx, 1, oribi.AsOf(before), oribi.Columns("v")); err != nil ||
			len(row) != 1 || row["v"] != int64(10) {
			t.Errorf("get 1 as of the beginning: %v, %v", row, err)
		}
		if row, err := s.table.Get(ctx, 2, oribi.Columns("v")); err != nil || len(row) != 1 {
			t.Errorf("get 2: %v, %v", row, err)
		}
		s.store.Close()
		s.open()
		if got := s.content(); got != "2=20 3=30 " {
			t.Errorf("reopened: %s", got)
		}
		s.put(1, 11, time.Hour)
		if got := s.content(); got != "1=11 2=20 3=30 " {
			t.Errorf("renewed: %s", got)
		}
	}
}

// TestWritesTakeExpiredRowsForAbsent applies each operation to an expired row.
func TestWritesTakeExpiredRowsForAbsent(t *testing.T) {
	ctx := context.Background()
	for _, flushed := range []bool{false, true} {
		for _, test := range []struct {
			name string
			add  func(b *oribi.Batch, t *oribi.Table)
			err  error
			want string
		}{
			{"insert", func(b *oribi.Batch, t *oribi.Table) { b.Insert(t, oribi.Row{"k": 1, "v": 2}) }, nil, "1=2 "},
			{"insert twice", func(b *oribi.Batch, t *oribi.Table) {
				b.Insert(t, oribi.Row{"k": 1, "v": 2})
				b.Insert(t, oribi.Row{"k": 1, "v": 3})
			}, oribi.ErrKeyExists, ""},
			{"upsert", func(b *oribi.Batch, t *oribi.Table) { b.Upsert(t, oribi.Row{"k": 1}) }, nil, "1=<nil> "},
			{"update", func(b *oribi.Batch, t *oribi.Table) {
				b.Update(t, oribi.Row{"k": 1, "v": 2})
			}, oribi.ErrNotFound, ""},
			{"delete", func(b *oribi.Batch, t *oribi.Table) { b.Delete(t, oribi.Row{"k": 1}) }, oribi.ErrNotFound, ""},
			{"update_ignore", func(b *oribi.Batch, t *oribi.Table) {
				b.UpdateIgnore(t, oribi.Row{"k": 1, "v": 2, "until": nil})
			}, nil, ""},
			{"if", func(b *oribi.Batch, t *oribi.Table) { b.If(t, oribi.Row{"k": 1}) }, oribi.ErrConflict, ""},
			{"if absent", func(b *oribi.Batch, t *oribi.Table) {
				b.IfAbsent(t, oribi.Row{"k": 1})
				b.InsertIgnore(t, oribi.Row{"k": 1, "v": 5})
			}, nil, "1=5 "},
			{"expired when inserted", func(b *oribi.Batch, t *oribi.Table) {
				b.Insert(t, oribi.Row{"k": 2, "v": 2, "until": time.Unix(5, 0)})
				b.Insert(t, oribi.Row{"k": 2, "v": 3, "until": time.Unix(5, 0)})
				b.Insert(t, oribi.Row{"k": 2, "v": 4})
				b.Update(t, oribi.Row{"k": 2, "v": 5, "until": time.Unix(5, 0)})
				b.Insert(t, oribi.Row{"k": 2, "v": 6})
				b.If(t, oribi.Row{"k": 2}, oribi.Eq("v", 6))
			}, nil, "2=6 "},
		} {
			t.Run(fmt.Sprintf("%s/flushed=%v", test.name, flushed), func(t *testing.T) {
				s := newSessions(t, 0)
				s.put(1, 1, time.Minute)
				if flushed {
					must.Do(t, s.table.Flush(ctx))
				}
				s.move(time.Minute)
				b := s.store.NewBatch()
				test.add(b, s.table)
				if _, err := b.Commit(ctx); !errors.Is(err, test.err) {
					t.Errorf("%v, want %v", err, test.err)
				}
				for range 2 {
					if got := s.content(); got != test.want {
						t.Errorf("%q, want %q", got, test.want)
					}
					s.store.Close()
					s.open()
				}
			})
		}
	}
}

// TestTransactionConflictsIfWhatItReadExpires commits a transaction after a row has expired: a row
// that it has read or written, or a row that no read has returned.
func TestTransactionConflictsIfWhatItReadExpires(t *testing.T) {
	ctx := context.Background()
	for _, test := range []struct {
		name string
		read func(s *sessions, tx *oribi.Tx) error
		want error
	}{
		{"get", func(s *sessions, tx *oribi.Tx) error {
			_, err := tx.Get(s.table, 1, oribi.Columns("v"))
			return err
		}, oribi.ErrConflict},
		{"has", func(s *sessions, tx *oribi.Tx) error {
			_, err := tx.Has(s.table, 1)
			return err
		}, oribi.ErrConflict},
		{"get of another row", func(s *sessions, tx *oribi.Tx) error {
			_, err := tx.Get(s.table, 2)
			return err
		}, nil},
		{"scan", func(s *sessions, tx *oribi.Tx) error {
			for row, err := range tx.Scan(s.table, oribi.Columns("v")).Rows() {
				if err != nil || len(row) != 1 {
					return fmt.Errorf("%v, %w", row, err)
				}
			}
			return nil
		}, oribi.ErrConflict},
		{"scan with a predicate", func(s *sessions, tx *oribi.Tx) error {
			for row, err := range tx.Scan(s.table, oribi.Where(oribi.Eq("v", 20))).Rows() {
				if err != nil || row["v"] != int64(20) {
					return fmt.Errorf("%v, %w", row, err)
				}
			}
			return nil
		}, nil},
		{"update", func(s *sessions, tx *oribi.Tx) error {
			return tx.Update(s.table, oribi.Row{"k": 1, "v": 5})
		}, oribi.ErrConflict},
		{"its own row", func(s *sessions, tx *oribi.Tx) error {
			if err := tx.Insert(s.table, s.row(4, 4, time.Second)); err != nil {
				return err
			}
			return tx.Update(s.table, oribi.Row{"k": 4, "v": 5})
		}, oribi.ErrConflict},
		{"its own row, expired", func(s *sessions, tx *oribi.Tx) error {
			if err := tx.Insert(s.table, s.row(4, 4, -time.Second)); err != nil {
				return err
			}
			return tx.Insert(s.table, s.row(4, 5, time.Hour))
		}, nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := newSessions(t, 0)
			s.put(1, 10, time.Minute)
			s.put(2, 20, time.Hour)
			s.move(time.Minute - time.Microsecond)
			tx := must.Get(s.store.Begin(ctx))(t)
			must.Do(t, test.read(s, tx))
			must.Do(t, tx.Upsert(s.table, oribi.Row{"k": 3, "v": 30}))
			s.move(time.Second)
			if _, err := tx.Commit(); !errors.Is(err, test.want) {
				t.Errorf("%v, want %v", err, test.want)
			}
			if err := s.store.Update(ctx, func(tx *oribi.Tx) error {
				if _, err := tx.Get(s.table, 1); !errors.Is(err, oribi.ErrNotFound) {
					return fmt.Errorf("the expired row: %v", err)
				}
				return tx.Insert(s.table, oribi.Row{"k": 1, "v": 7})
			}); err != nil {
				t.Error(err)
			}
		})
	}
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
	columns := must.Get(schema.New([]schema.Column{{Name: "k", Type: schema.Int64},
		{Name: "until", Type: schema.Timestamp}}, 1))(t)
	s.table = must.Get(store.CreateTable("sessions", columns, oribi.Expires("until", 0)))(t)
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
			if _, err := table.Get(ctx, k, oribi.AsOf(ts)); err != nil {
				t.Errorf("row %d, read by a transaction, as of its commit: %v", k, err)
			}
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
		ts := must.Get(b.Commit(ctx, oribi.AllowPartial))(t)
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

// TestExpiredRowsStayAbsentWhenTheRuleEnds changes and clears the rule of a table, with rows in
// memory, in files, and in both, and compares the states of all times before and after.
func TestExpiredRowsStayAbsentWhenTheRuleEnds(t *testing.T) {
	ctx := context.Background()
	s := newSessions(t, 0, oribi.History(oribi.HistoryForever))
	var times []mvcc.Timestamp
	var states []string
	note := func() {
		sn := must.Get(s.store.Snapshot(ctx))(t)
		times = append(times, sn.Timestamp())
		states = append(states, s.content(oribi.AsOf(sn.Timestamp())))
		sn.Close()
	}
	alter := func(c oribi.Alteration) {
		t.Helper()
		must.Do(t, s.table.Alter(ctx, c))
		note()
	}
	s.put(1, 1, time.Second)
	s.put(2, 2, time.Minute)
	must.Do(t, s.table.Flush(ctx))
	s.put(3, 3, time.Second)
	s.put(4, 4, time.Minute)
	note()
	s.move(time.Second)
	note()
	alter(oribi.SetExpires("until", time.Hour))
	alter(oribi.SetExpires("until", time.Second))
	s.move(time.Minute)
	note()
	alter(oribi.ClearExpires())
	s.move(time.Hour)
	note()
	if got := fmt.Sprint(states); got != "[1=1 2=2 3=3 4=4  2=2 4=4  2=2 4=4  2=2 4=4    ]" {
		t.Errorf("states %s", got)
	}
	if err := s.table.Alter(ctx, oribi.DropColumn("until")); !errors.Is(err, oribi.ErrSchema) {
		t.Errorf("drop of the column: %v", err)
	}
	must.Do(t, s.table.Alter(ctx, oribi.RenameColumn("until", "late"),
		oribi.SetExpires("late", time.Minute)))
	if e := s.table.Properties().Expiry; e.Column != "late" || e.Age != time.Minute || e.Since <= times[len(times)-1] {
		t.Errorf("expiry %+v", e)
	}
	for range 2 {
		for i, at := range times {
			if got := s.content(oribi.AsOf(at)); got != states[i] {
				t.Errorf("state %d: %q, want %q", i, got, states[i])
			}
		}
		if got := s.content(); got != "" {
			t.Errorf("an hour later: %s", got)
		}
		must.Do(t, s.table.Compact(ctx))
		s.store.Close()
		s.open()
	}
	text, at := historyOf(t, s.table, 1)
	if text != "delete <nil>, insert 1, " || !at[0].Time().Equal(at[1].Time().Add(time.Second)) {
		t.Errorf("history %s at %v", text, at)
	}
	diff := ""
	for d, err := range s.table.Diff(ctx, times[0], times[1]) {
		if err != nil {
			t.Fatal(err)
		}
		diff += fmt.Sprintf("%v %v ", d.Kind, d.KeyRow()["k"])
	}
	if diff != "delete 1 delete 3 " {
		t.Errorf("difference %s", diff)
	}
}

// TestCompactionsDropExpiredRows compacts rows that expired before the history floor, and others
// that expire later or never, one of them after it was changed.
func TestCompactionsDropExpiredRows(t *testing.T) {
	ctx := context.Background()
	for _, flushed := range []bool{false, true} {
		s := newSessions(t, 0) // an hour of history
		s.put(1, 1, time.Minute)
		s.put(2, 2, 90*time.Minute)
		s.put(3, 3, time.Minute)
		s.put(4, 4, 0)
		s.move(time.Second)
		if flushed {
			must.Do(t, s.table.Flush(ctx))
		}
		s.put(3, 5, 100*time.Minute)
		s.move(2 * time.Hour)
		want := s.content()
		must.Do(t, s.table.Compact(ctx))
		if err := s.table.Compact(ctx); err != nil { // a redo is in the base now
			t.Fatal(err)
		}
		st, err := s.table.Stats(false)
		if err != nil || st.LiveRows != 3 {
			t.Errorf("%d rows are stored, want 3: %v", st.LiveRows, err)
		}
		s.move(time.Hour)
		s.put(2, 6, time.Hour)
		must.Do(t, s.table.Compact(ctx))
		if st, err = s.table.Stats(false); err != nil || st.LiveRows != 2 {
			t.Errorf("%d rows are stored, want 2: %v", st.LiveRows, err)
		}
		if got := s.content(); want != "4=4 " || got != "2=6 4=4 " {
			t.Errorf("%s, then %s", want, got)
		}
		if err := s.store.Verify(ctx, func(f oribi.Finding) { t.Error(f) }); err != nil {
			t.Error(err)
		}
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
	columns, err := schema.New([]schema.Column{{Name: "k", Type: schema.Int64}, {Name: "v", Type: schema.Int64},
		{Name: "until", Type: schema.Timestamp}}, 1)
	if err == nil {
		s.table, err = store.CreateTable("sessions", columns, oribi.Expires("until", 0))
	}
	if err != nil {
		t.Fatal(err)
	}
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
