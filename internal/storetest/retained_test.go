package storetest

import (
	"context"
	"errors"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/internal/seedtest"
	"github.com/oribi-db/oribi/mvcc"
)

// retention is a table with a short history, next to the states that it had after each commit.
type retention struct {
	t      *testing.T
	r      *rand.Rand
	w      *fakeWall
	store  *oribi.Store
	table  *oribi.Table
	times  []mvcc.Timestamp
	states []map[int64]int64 // after times
	open   []*oribi.Snapshot
}

// commit changes some of the few keys.
func (m *retention) commit() {
	b := m.store.NewBatch()
	state := map[int64]int64{}
	if n := len(m.states); n > 0 {
		state = maps.Clone(m.states[n-1])
	}
	for range 1 + m.r.IntN(4) {
		k, v := m.r.Int64N(8), m.r.Int64N(1000)
		if _, ok := state[k]; ok && m.r.IntN(3) == 0 {
			b.DeleteIgnore(m.table, oribi.Row{"k": k})
			delete(state, k)
		} else {
			b.Upsert(m.table, oribi.Row{"k": k, "v": v})
			state[k] = v
		}
	}
	m.times, m.states = append(m.times, must.Get(b.Commit(context.Background(), oribi.NoSync))(m.t)), append(m.states, state)
}

// at returns the state as of a timestamp.
func (m *retention) at(ts mvcc.Timestamp) map[int64]int64 {
	i, found := slices.BinarySearch(m.times, ts)
	if found {
		i++
	}
	if i == 0 {
		return map[int64]int64{}
	}
	return m.states[i-1]
}

func (m *retention) rewrite() {
	ctx, table := context.Background(), m.table
	var err error
	switch m.r.IntN(6) {
	case 0:
		err = table.Flush(ctx)
	case 1:
		_, err = table.FlushDeltas(ctx)
	case 2:
		_, err = table.CompactMinor(ctx)
	case 3:
		_, err = table.CompactMajor(ctx)
	case 4:
		_, err = table.CollectUndos(ctx)
	default:
		err = table.Compact(ctx)
	}
	must.Do(m.t, err)
}

func (m *retention) read(at oribi.ReadOption) (map[int64]int64, error) {
	got := map[int64]int64{}
	for row, err := range m.table.Scan(context.Background(), at).Rows() {
		if err != nil {
			return nil, err
		}
		got[row["k"].(int64)] = row["v"].(int64)
	}
	return got, nil
}

// diff checks the differences of two states, which can both be read.
func (m *retention) diff(from, to mvcc.Timestamp) {
	got := maps.Clone(m.at(from))
	for d, err := range m.table.Diff(context.Background(), from, to) {
		must.Do(m.t, err)
		k := d.KeyRow()["k"].(int64)
		if delete(got, k); d.After != nil {
			got[k] = d.AfterRow()["v"].(int64)
		}
	}
	must.Equal(m.t, got, m.at(to), "differences", from, to)
}

// history checks the versions of a key that a read at ts sees: the first one is the row at ts.
func (m *retention) history(k int64, at oribi.ReadOption, ts mvcc.Timestamp) {
	first := true
	for v, err := range m.table.History(context.Background(), k, at) {
		if errors.Is(err, oribi.ErrNotFound) {
			break
		}
		must.Do(m.t, err)
		if !first && v.Timestamp == 0 {
			break
		}
		if !first {
			ts = v.Timestamp
		}
		value, ok := m.at(ts)[k]
		must.Equal(m.t, v.Cells != nil, ok, "key", k, "at", ts, "exists")
		if ok {
			must.Equal(m.t, v.Row()["v"], any(value), "key", k, "at", ts)
		}
		if first = false; v.Timestamp > ts {
			m.t.Fatalf("a read at %v sees a version of %v", ts, v.Timestamp)
		}
	}
}

func (m *retention) check() {
	now := max(m.times[len(m.times)-1], m.table.Properties().HistoryFloor)
	m.history(m.r.Int64N(8), oribi.Latest(), now)
	for i, sn := range m.open {
		must.Equal(m.t, must.Get(m.read(oribi.At(sn)))(m.t), m.at(sn.Timestamp()), "at a snapshot")
		m.diff(sn.Timestamp(), max(now, sn.Timestamp()))
		m.history(m.r.Int64N(8), oribi.At(sn), sn.Timestamp())
		if i > 0 {
			m.diff(m.open[i-1].Timestamp(), sn.Timestamp())
		}
	}
	for _, ts := range m.times {
		got, err := m.read(oribi.AsOf(ts))
		pinned := slices.ContainsFunc(m.open, func(sn *oribi.Snapshot) bool { return sn.Timestamp() == ts })
		if ts < m.table.Properties().HistoryFloor && !pinned {
			must.Fail(m.t, err, oribi.ErrTooOld, "below the floor")
			continue
		}
		must.Do(m.t, err)
		must.Equal(m.t, got, m.at(ts), "as of", ts)
	}
}

// Snapshots of a table with a history of one hour are open for hours. What they see, and each state
// of the last hour, is compared with a model, and so are the differences between them.
func TestSnapshotsReadTheirStateAmidDroppedHistory(t *testing.T) {
	r := seedtest.Rand(t)
	for range seedtest.Rounds(12, 4) {
		w := newFakeWall()
		store, table := floorStore(t, w)
		m := &retention{t: t, r: r, w: w, store: store, table: table}
		for range 150 {
			switch n := r.IntN(12); {
			case n < 5 || len(m.times) == 0:
				m.commit()
			case n < 6:
				w.move(time.Duration(r.IntN(90)) * time.Minute)
			case n < 7 && len(m.open) < 4:
				m.open = append(m.open, must.Get(store.Snapshot(t.Context()))(t))
			case n < 8 && len(m.open) > 2:
				i := r.IntN(len(m.open))
				must.Do(t, m.open[i].Close())
				m.open = slices.Delete(m.open, i, i+1)
			case n < 9:
				m.check()
			default:
				m.rewrite()
			}
		}
		m.check()
		must.Do(t, store.Close())
	}
}

// A snapshot costs one version of a row, however often the row has changed since.
func TestSnapshotKeepsOneVersionOfARow(t *testing.T) {
	ctx := context.Background()
	w := newFakeWall()
	store, table := floorStore(t, w)
	defer store.Close()
	putNumber(t, store, table, 1, 0)
	sn := must.Get(store.Snapshot(ctx))(t)
	whole := must.Get(store.Snapshot(ctx, oribi.KeepHistory()))(t)
	for v := range 10_000 {
		putNumber(t, store, table, 1, v+1)
	}
	undos := func() int64 {
		putNumber(t, store, table, 1, -1)
		w.move(2 * time.Hour)
		must.Do(t, table.Compact(ctx))
		return must.Get(store.Metrics())(t).Pins.UndoBytes
	}
	all := undos()
	if all < 10_000 {
		t.Errorf("a snapshot with KeepHistory keeps %d bytes", all)
	}
	must.Do(t, whole.Close())
	if one := undos(); one == 0 || one > 1000 {
		t.Errorf("a snapshot keeps %d bytes, all history has %d", one, all)
	}
	wantValue(t, table, 0, oribi.At(sn))
	wantValue(t, table, -1)
}
