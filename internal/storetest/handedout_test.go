package storetest

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/internal/prooftest/files"
	"github.com/oribi-db/oribi/mvcc"
	"github.com/oribi-db/oribi/salvage"
	"github.com/oribi-db/oribi/schema"
	"github.com/oribi-db/oribi/vfs"
	"github.com/oribi-db/oribi/vfs/crashfs"
)

// handingOut returns timestamps that a store gives to a caller, in each way in which it does that.
// No batch is committed after one of them.
var handingOut = map[string]func(ctx context.Context, s *sessions) (mvcc.Timestamp, error){
	"empty batch": func(ctx context.Context, s *sessions) (mvcc.Timestamp, error) {
		return s.store.NewBatch().Commit(ctx)
	},
	"empty batch, NoSync": func(ctx context.Context, s *sessions) (mvcc.Timestamp, error) {
		return s.store.NewBatch().Commit(ctx, oribi.NoSync)
	},
	"batch that changes nothing": func(ctx context.Context, s *sessions) (mvcc.Timestamp, error) {
		b := s.store.NewBatch()
		b.DeleteIgnore(s.table, oribi.Row{"k": 99})
		b.InsertIgnore(s.table, s.row(1, 5, 0))
		return b.Commit(ctx)
	},
	"batch whose rows are refused": func(ctx context.Context, s *sessions) (mvcc.Timestamp, error) {
		b := s.store.NewBatch()
		b.Delete(s.table, oribi.Row{"k": 99})
		return b.CommitPartial(ctx)
	},
	"ingest without rows": func(ctx context.Context, s *sessions) (mvcc.Timestamp, error) {
		ts, _, err := s.table.Ingest(ctx, steps(nil))
		return ts, err
	},
	"AdvanceClock": func(_ context.Context, s *sessions) (mvcc.Timestamp, error) {
		ts := mvcc.FromTime(s.time().Add(5 * time.Second))
		return ts, s.store.AdvanceClock(ts)
	},
	"AdvanceClock to a time that was read": func(ctx context.Context, s *sessions) (mvcc.Timestamp, error) {
		ts := mvcc.FromTime(s.time())
		if _, err := s.table.Count(ctx, oribi.AsOf(ts)); err != nil {
			return 0, err
		}
		return ts, s.store.AdvanceClock(ts)
	},
	"transaction that changes nothing": func(ctx context.Context, s *sessions) (mvcc.Timestamp, error) {
		tx, err := s.store.Begin(ctx)
		if err != nil {
			return 0, err
		}
		return tx.Commit()
	},
	"transaction with writes that change nothing": func(ctx context.Context, s *sessions) (mvcc.Timestamp, error) {
		tx, err := s.store.Begin(ctx)
		if err != nil {
			return 0, err
		}
		if err := tx.Row(oribi.OpDeleteIgnore, s.table, oribi.Row{"k": 99}); err != nil {
			return 0, err
		}
		return tx.Commit()
	},
	"snapshot": func(ctx context.Context, s *sessions) (mvcc.Timestamp, error) {
		sn, err := s.store.Snapshot(ctx)
		if err != nil {
			return 0, err
		}
		defer sn.Close()
		return sn.Timestamp(), nil
	},
	"image": func(ctx context.Context, s *sessions) (mvcc.Timestamp, error) {
		im, err := s.store.Image(ctx)
		if err != nil {
			return 0, err
		}
		return im.Info().Timestamp, im.Close()
	},
}

// A timestamp that a call has returned is below the timestamps of all later batches, also if the
// process is killed and the machine's clock has gone back.
func TestReturnedTimestampsSurviveKill(t *testing.T) {
	for name, call := range handingOut {
		t.Run(name, func(t *testing.T) {
			// the newest state of a table whose rows expire is its state at the present time
			s := newSessions(t, 0)
			before := s.put(1, 1, time.Hour)
			s.move(minute)
			ts, err := call(t.Context(), s)
			if err != nil || ts < before {
				t.Fatalf("%v after %v, %v", ts, before, err)
			}
			s.mem = s.mem.Clone() // a kill
			s.move(-time.Hour)
			s.open()
			if visible := s.store.Visible(); visible < ts {
				t.Errorf("%v is visible, want at least %v", visible, ts)
			}
			if next := s.put(2, 2, 0); next <= ts {
				t.Errorf("a batch after the kill is at %v; before, %v was returned", next, ts)
			}
			must.Equal(t, must.Get(s.table.Count(t.Context(), oribi.AsOf(ts)))(t), 1,
				"rows as of the returned timestamp")
		})
	}
}

// Calls that return no timestamp if they change nothing write nothing then.
func TestBulkCallsThatChangeNothingWriteNothing(t *testing.T) {
	s := newSessions(t, 0)
	s.put(1, 1, time.Hour)
	s.move(minute)
	want := s.written()
	for name, call := range map[string]func() (oribi.BulkResult, error){
		"UpdateWhere": func() (oribi.BulkResult, error) {
			return s.table.UpdateWhere(t.Context(), oribi.Row{"v": 1}, oribi.Where(oribi.Eq("v", 7)))
		},
		"UpdateWhere, the same": func() (oribi.BulkResult, error) {
			return s.table.UpdateWhere(t.Context(), oribi.Row{"v": 1}, oribi.Where(oribi.Eq("v", 7)), oribi.InPieces())
		},
		"DeleteWhere": func() (oribi.BulkResult, error) {
			return s.table.DeleteWhere(t.Context(), oribi.Where(oribi.Eq("v", 7)))
		},
		"DeleteRange": func() (oribi.BulkResult, error) { return s.table.DeleteRange(t.Context(), 50, nil) },
		"RestoreTo": func() (oribi.BulkResult, error) {
			return s.table.RestoreTo(t.Context(), s.store.Visible())
		},
	} {
		if res, err := call(); err != nil || res.Rows != 0 || res.Timestamp != 0 {
			t.Errorf("%s: %+v, %v", name, res, err)
		}
		must.Equal(t, s.written(), want, name, "records in the log")
	}
	if _, err := s.table.Count(t.Context()); err != nil || s.written() != want {
		t.Errorf("a read has written, %v", err)
	}
}

// written returns how many records are in the log.
func (s *sessions) written() int64 {
	s.t.Helper()
	other := must.Get(oribi.Open("/sessions", &oribi.Options{FS: s.mem.Clone(), ReadOnly: true}))(s.t)
	defer other.Close()
	return other.Recovery().Batches
}

// A history with kills and power cuts: all timestamps that were returned ascend, except timestamps
// of batches that a power cut has taken, and a follower that was there all the time sees each
// batch.
func TestTimestampsAscendThroughCrashes(t *testing.T) {
	needFollowers(t)
	seeds := 40
	if testing.Short() {
		seeds = 12
	}
	for seed := range uint64(seeds) {
		must.Do(t, ascend(t.Context(), rand.New(rand.NewPCG(seed, 36))), "seed", seed)
	}
}

// ascending is a store with the timestamps that it has returned.
type ascending struct {
	r      *rand.Rand
	wall   *fakeWall
	disk   *crashfs.FS
	store  *oribi.Store
	table  *oribi.Table
	follow *oribi.Store // nil: none
	last   mvcc.Timestamp
	synced mvcc.Timestamp // what a power cut leaves is at least up to here
	rows   int            // in the table; no row is deleted
	at     []rowCount     // rows as of returned timestamps
}

type rowCount struct {
	ts   mvcc.Timestamp
	rows int
}

func ascend(ctx context.Context, r *rand.Rand) (err error) {
	a := &ascending{r: r, wall: newFakeWall(), disk: crashfs.New(vfs.NewMem())}
	defer func() {
		err = errors.Join(err, a.close())
	}()
	if err := a.open(); err != nil {
		return err
	}
	for range 80 {
		if err := a.step(ctx); err != nil {
			return err
		}
	}
	return a.check(ctx, a.store)
}

func (a *ascending) open() (err error) {
	o := &oribi.Options{FS: a.disk, Clock: mvcc.NewHybridClock(a.wall.time), Manual: true, LogSegmentBytes: 4096}
	if a.store, err = oribi.Open("/store", o); err != nil {
		return err
	}
	if a.table, err = a.store.Table("t"); errors.Is(err, oribi.ErrNoTable) {
		var columns *schema.Schema
		if columns, err = parseSchema([]string{"k*:int64", "v:int64"}); err == nil {
			a.table, err = a.store.CreateTable("t", columns)
		}
	}
	return err
}

func (a *ascending) close() error {
	var errs []error
	if a.follow != nil {
		errs = append(errs, a.follow.Close())
		a.follow = nil
	}
	if a.store != nil {
		errs = append(errs, a.store.Close())
	}
	return errors.Join(errs...)
}

// returned notes a timestamp that the store has returned.
func (a *ascending) returned(ts mvcc.Timestamp, durable bool) error {
	if ts <= a.last {
		return fmt.Errorf("timestamp %v after %v", ts, a.last)
	}
	a.last = ts
	a.at = append(a.at, rowCount{ts, a.rows})
	if durable {
		a.synced = ts
	}
	return nil
}

func (a *ascending) step(ctx context.Context) error {
	a.wall.move(time.Duration(a.r.Int64N(int64(time.Minute))) - 20*time.Second)
	sync := a.r.IntN(3) == 0
	var opts []oribi.CommitOption
	if !sync {
		opts = append(opts, oribi.NoSync)
	}
	switch kind := a.r.IntN(20); {
	case kind < 6:
		b := a.store.NewBatch()
		b.Insert(a.table, oribi.Row{"k": a.rows, "v": kind})
		ts, err := b.Commit(ctx, opts...)
		if err != nil {
			return err
		}
		a.rows++
		return a.returned(ts, sync)
	case kind < 12:
		b := a.store.NewBatch()
		if kind%2 == 0 {
			b.DeleteIgnore(a.table, oribi.Row{"k": -1})
		}
		ts, err := b.Commit(ctx, opts...)
		if err != nil {
			return err
		}
		return a.returned(ts, sync)
	case kind == 12:
		ts := mvcc.FromTime(a.wall.time().Add(5 * time.Second))
		if err := a.store.AdvanceClock(ts); err != nil || ts <= a.last {
			return err
		}
		return a.returned(ts, false)
	case kind == 13:
		_, _, err := a.store.StepBackgroundWork(ctx)
		return err
	case kind == 14:
		a.synced = a.last
		return a.table.Flush(ctx)
	case kind == 15:
		return a.look(ctx)
	case kind == 16:
		if err := a.close(); err != nil {
			return err
		}
		a.synced = a.last
		return a.open()
	}
	return a.crash(ctx)
}

// look refreshes a follower, or opens it, and compares it.
func (a *ascending) look(ctx context.Context) (err error) {
	if a.follow == nil {
		a.follow, err = oribi.Open("/store",
			&oribi.Options{FS: a.disk, Follow: true, Clock: mvcc.NewHybridClock(a.wall.time)})
	} else {
		err = a.follow.Refresh(ctx)
	}
	if err != nil {
		return fmt.Errorf("follower: %w", err)
	}
	if got := a.follow.Visible(); got < a.last {
		return fmt.Errorf("the follower sees %v, the writer has returned %v", got, a.last)
	}
	return a.check(ctx, a.follow)
}

// crash kills the process, or cuts the power, and opens the store with a clock that has gone back.
func (a *ascending) crash(ctx context.Context) error {
	image := a.disk.Read()
	if a.r.IntN(2) == 0 {
		for state := range a.disk.Point().States(a.r.Uint64(), 4) {
			if state.FlushForgotten {
				continue
			}
			if image = state.Image; a.r.IntN(3) == 0 {
				break
			}
		}
	}
	if err := a.close(); err != nil { // on the old disk
		return err
	}
	a.disk = crashfs.New(image)
	a.wall.move(-time.Hour)
	if err := a.open(); err != nil {
		return err
	}
	visible := a.store.Visible()
	if visible < a.synced {
		return fmt.Errorf("after a crash %v is visible, %v was durable", visible, a.synced)
	}
	n, err := a.table.Count(ctx)
	if err != nil {
		return err
	}
	// Batches are lost from one on. The metadata may name the time of a later one.
	a.at = slices.DeleteFunc(a.at, func(at rowCount) bool { return at.rows > int(n) || at.ts > visible })
	a.last, a.rows = mvcc.Min, int(n)
	if n := len(a.at); n > 0 {
		a.last = a.at[n-1].ts
	}
	if a.last < a.synced {
		return fmt.Errorf("after a crash there are %d rows, as of %v; %v was durable", n, a.last, a.synced)
	}
	a.synced = a.last
	return a.check(ctx, a.store)
}

// check compares the number of rows now and as of the timestamps.
func (a *ascending) check(ctx context.Context, s *oribi.Store) error {
	t, err := s.Table("t")
	if err != nil {
		return err
	}
	if n, err := t.Count(ctx); err != nil || n != int64(a.rows) {
		return fmt.Errorf("%d rows, want %d, %w", n, a.rows, err)
	}
	for range min(len(a.at), 5) {
		at := a.at[a.r.IntN(len(a.at))]
		if n, err := t.Count(ctx, oribi.AsOf(at.ts)); err != nil || n != int64(at.rows) {
			return fmt.Errorf("as of %v: %d rows, want %d, %w", at.ts, n, at.rows, err)
		}
	}
	return nil
}

// A salvaged store's batches are above the timestamps that the damaged one had returned.
func TestSalvageKeepsReturnedTimestamps(t *testing.T) {
	for _, damaged := range []string{"nothing", "a batch", "another empty batch"} {
		t.Run(damaged, func(t *testing.T) {
			w := newFakeWall()
			store := must.Get(oribi.Open("/store",
				&oribi.Options{FS: w.mem, Clock: mvcc.NewHybridClock(w.time), Manual: true}))(t)
			defer store.Close()
			table := numbersTable(t, store, "t")
			putNumber(t, store, table, 1, 1)
			second := putNumber(t, store, table, 2, 2)
			empties := make([]mvcc.Timestamp, 3)
			for i := range empties {
				w.move(minute)
				empties[i] = must.Get(store.NewBatch().Commit(t.Context()))(t)
			}
			w.mem = w.mem.Clone() // a kill
			switch damaged {
			case "a batch":
				flipInLog(t, w.mem, second)
			case "another empty batch":
				flipInLog(t, w.mem, empties[1])
			}
			var losses []salvage.Loss
			must.Get(salvage.Run(t.Context(), "/store", "/out", &oribi.Options{FS: w.mem}, func(l salvage.Loss) {
				losses = append(losses, l)
			}))(t)
			must.Equal(t, damaged == "nothing", len(losses) == 0, "losses", losses)
			w.move(-time.Hour)
			for range 2 { // the second time after a kill
				out := must.Get(oribi.Open("/out",
					&oribi.Options{FS: w.mem, Clock: mvcc.NewHybridClock(w.time), Manual: true}))(t)
				if ts := putNumber(t, out, numbersTable(t, out, "t"), 3, 3); ts <= empties[2] {
					t.Errorf("a batch of the salvaged store is at %v; %v was returned before", ts, empties[2])
				}
				if n, err := numbersTable(t, out, "t").Count(t.Context(), oribi.AsOf(empties[2])); err != nil || n > 2 {
					t.Errorf("as of %v the salvaged store has %d rows, %v", empties[2], n, err)
				}
				w.mem = w.mem.Clone()
				defer out.Close()
			}
		})
	}
}

// A log of nothing but empty batches does not grow without end, neither in memory of an open store
// nor at Close. The timestamps of the batches are kept.
func TestLogOfEmptyBatchesIsRemoved(t *testing.T) {
	w := newFakeWall()
	open := func() *oribi.Store {
		store := must.Get(oribi.Open("/store",
			&oribi.Options{FS: w.mem, Clock: mvcc.NewHybridClock(w.time), Manual: true, LogSegmentBytes: 4096}))(t)
		return store
	}
	store := open()
	table := numbersTable(t, store, "t")
	fillNumbers(t, store, table, 0, 3)
	must.Do(t, table.Flush(t.Context()))
	var last mvcc.Timestamp
	for range 2000 {
		var err error
		last, err = store.NewBatch().Commit(t.Context(), oribi.NoSync)
		must.Do(t, err)
		for ran := true; ran; {
			_, ran, err = store.StepBackgroundWork(t.Context())
			must.Do(t, err)
		}
		if info, err := store.Info(); err != nil || info.Bytes.Log > 6*4096 {
			t.Fatalf("the log has %d bytes, %v", info.Bytes.Log, err)
		}
	}
	fillNumbers(t, store, table, 3, 4) // in the log only
	w.mem = w.mem.Clone()
	store.Close()
	w.move(-time.Hour)
	for range 2 {
		store = open()
		table = numbersTable(t, store, "t")
		must.Equal(t, must.Get(table.Count(t.Context()))(t), 4, "rows")
		must.Equal(t, must.Get(table.Count(t.Context(), oribi.AsOf(last)))(t), 3, "rows as of the last empty batch")
		ts, err := store.NewBatch().Commit(t.Context())
		if err != nil || ts <= last {
			t.Errorf("%v after %v, %v", ts, last, err)
		}
		must.Do(t, store.Close())
	}
}

// flipInLog damages the record of a timestamp in the log of /store.
func flipInLog(t *testing.T, mem *vfs.Mem, ts mvcc.Timestamp) {
	t.Helper()
	names := must.Get(mem.List("/store/wal"))(t)
	want := binary.LittleEndian.AppendUint64(nil, uint64(ts))
	for _, name := range names {
		name = "/store/wal/" + name
		b := must.Get(files.ReadFile(mem, name))(t)
		if at := bytes.Index(b, want); at >= 0 {
			for i := range len(want) { // a single bit would be repaired
				flipByte(t, mem, name, int64(at+i))
			}
			return
		}
	}
	t.Fatalf("no record of %v", ts)
}
