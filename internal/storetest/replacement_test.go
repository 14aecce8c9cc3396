package storetest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/internal/seedtest"
	"github.com/oribi-db/oribi/mvcc"
	"github.com/oribi-db/oribi/schema"
	"github.com/oribi-db/oribi/vfs"
)

// twin is a store that replaces rows by upserts of all columns, or by updates of all columns. Both
// forms have the same effect, and are stored differently.
type twin struct {
	t       *testing.T
	upserts bool
	mem     *vfs.Mem
	store   *oribi.Store
	table   *oribi.Table
	columns []string // besides k, v and s
	live    map[int]bool
}

func newTwin(t *testing.T, upserts bool) *twin {
	w := &twin{t: t, upserts: upserts, mem: vfs.NewMem(), live: map[int]bool{}}
	w.open()
	w.table = tableOf(t, w.store, "t", "k*:int32 v:int64 s:string?=default")
	return w
}

func (w *twin) open() {
	w.t.Helper()
	// so both stores have the same timestamps
	clock := mvcc.NewHybridClock(func() time.Time { return time.Unix(1e9, 0) })
	store, err := oribi.Open("/twin",
		&oribi.Options{FS: w.mem, Clock: clock, History: oribi.HistoryForever, Manual: true, RowSetBytes: 1 << 12})
	must.Do(w.t, err)
	w.store = store
	w.table, _ = store.Table("t")
}

// kill continues with the disk that a killed process would have left.
func (w *twin) kill() {
	w.t.Helper()
	old := w.store
	w.mem = w.mem.Clone()
	w.open()
	old.Close()
}

// row returns a row with all columns set.
func (w *twin) row(r *rand.Rand, k int) oribi.Row {
	row := oribi.Row{"k": k, "v": r.IntN(3), "s": nil}
	if n := r.IntN(4); n > 0 {
		row["s"] = strings.Repeat("x", n-1)
	}
	for _, name := range w.columns {
		row[name] = r.IntN(2)
	}
	return row
}

// write commits a batch, whose operations may change a row several times.
func (w *twin) write(r *rand.Rand) {
	w.t.Helper()
	b := w.store.NewBatch()
	for range 1 + r.IntN(6) {
		k := r.IntN(12)
		row := w.row(r, k)
		switch what := r.IntN(8); {
		case what == 0:
			b.DeleteIgnore(w.table, oribi.Row{"k": k})
			w.live[k] = false
		case what == 1: // not all columns
			delete(row, "s")
			b.Upsert(w.table, row)
			w.live[k] = true
		case what == 2:
			b.UpdateIgnore(w.table, oribi.Row{"k": k, "v": 10 + r.IntN(3)})
		case w.upserts:
			b.Upsert(w.table, row)
			w.live[k] = true
		case w.live[k]:
			b.Update(w.table, row)
		default:
			b.Insert(w.table, row)
			w.live[k] = true
		}
	}
	must.Get(b.Commit(context.Background(), oribi.NoSync))(w.t)
}

func (w *twin) step(r *rand.Rand, i int) {
	w.t.Helper()
	ctx := context.Background()
	var err error
	switch r.IntN(12) {
	case 0:
		err = w.table.Flush(ctx)
	case 1:
		_, err = w.table.FlushDeltas(ctx)
	case 2:
		err = w.table.Compact(ctx)
	case 3:
		_, err = w.table.CompactMajor(ctx, "v")
	case 4:
		name := fmt.Sprint("added", i)
		w.columns = append(w.columns, name)
		err = w.table.Alter(ctx, oribi.AddColumn(schema.Column{Name: name, Type: schema.Int8, Default: []byte{7}}))
	case 5:
		if len(w.columns) > 0 {
			err = w.table.Alter(ctx, oribi.DropColumn(w.columns[0]))
			w.columns = w.columns[1:]
		}
	case 6:
		w.kill()
	}
	must.Do(w.t, err)
}

// text returns all that can be read: each state, each history, and each difference to the newest.
func (w *twin) text() string {
	ctx := context.Background()
	var out strings.Builder
	newest := w.store.Visible()
	var times []mvcc.Timestamp
	for k := range 12 {
		for v, err := range w.table.History(ctx, k) {
			if errors.Is(err, oribi.ErrNotFound) {
				continue
			}
			must.Do(w.t, err)
			fmt.Fprintln(&out, k, uint64(v.Timestamp), v.Kind, v.Row())
			times = append(times, v.Timestamp)
		}
	}
	for _, ts := range times {
		if ts == 0 {
			continue
		}
		for row, err := range w.table.Scan(ctx, oribi.AsOf(ts)).Rows() {
			must.Do(w.t, err)
			fmt.Fprintln(&out, uint64(ts), row)
		}
		for d, err := range w.table.Diff(ctx, ts, newest) {
			must.Do(w.t, err)
			fmt.Fprintln(&out, uint64(ts), d.Kind, d.KeyRow(), d.BeforeRow(), d.AfterRow())
		}
	}
	return out.String()
}

// A row that an upsert replaces reads, at each time and in each history, like one of which an
// update set all columns: in memory, in files, after alterations, and after a kill.
func TestReplacedRowsReadLikeUpdatedRows(t *testing.T) {
	seeds := seedtest.Rand(t)
	for range 3 {
		seed := seeds.Uint64()
		var twins [2]*twin
		for i := range twins {
			twins[i] = newTwin(t, i == 0)
		}
		for i := range 16 {
			for _, w := range twins {
				r := rand.New(rand.NewPCG(seed, uint64(i)))
				w.write(r)
				w.step(r, i)
			}
			if i%8 != 7 {
				continue
			}
			got, want := twins[0].text(), twins[1].text()
			must.Equal(t, got, want, "seed", seed, "step", i, "upserts, and updates")
		}
		for _, w := range twins {
			w.store.Close()
		}
	}
}
