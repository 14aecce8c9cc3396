package storetest

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/compaction"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/mvcc"
	"github.com/oribi-db/oribi/schema"
	"github.com/oribi-db/oribi/vfs"
)

// ingestStore opens a store that has a table numbers with small rowsets. It also returns the events
// that the listener received at the ends of jobs.
func ingestStore(t *testing.T, fsys vfs.FS) (*oribi.Store, *oribi.Table, *[]oribi.Event) {
	t.Helper()
	var events []oribi.Event
	store := must.Get(oribi.Open("/store",
		&oribi.Options{FS: fsys, History: oribi.HistoryForever, Manual: true, RowSetBytes: 1 << 13,
			Listener: func(e oribi.Event) {
				if !e.Begin {
					events = append(events, e)
				}
			}}))(t)
	t.Cleanup(func() { store.Close() })
	return store, numbersTable(t, store, "numbers"), &events
}

// numbers returns vectors of rows k, 10 × k.
func numbers(keys ...int64) []*batch.Vector {
	k, v := batch.NewVector(schema.Int64, len(keys)), batch.NewVector(schema.Int64, len(keys))
	for i, key := range keys {
		batch.Values[int64](k)[i], batch.Values[int64](v)[i] = key, 10*key
	}
	return []*batch.Vector{k, v}
}

// steps yields the elements of parts, and calls between before each but the first.
func steps(between func(), parts ...[]*batch.Vector) iter.Seq2[[]*batch.Vector, error] {
	return func(yield func([]*batch.Vector, error) bool) {
		for i, p := range parts {
			if i > 0 && between != nil {
				between()
			}
			if !yield(p, nil) {
				return
			}
		}
	}
}

func span(from, to int64) (keys []int64) {
	for k := from; k < to; k++ {
		keys = append(keys, k)
	}
	return keys
}

// allKeys returns the keys of a table.
func allKeys(t *testing.T, table *oribi.Table, opts ...oribi.ScanOption) (keys []int64) {
	t.Helper()
	for b := range must.All(t, table.Scan(context.Background(), opts...).Batches()) {
		for i := b.Selection.Next(0); i >= 0; i = b.Selection.Next(i + 1) {
			keys = append(keys, batch.Values[int64](b.Columns[0])[i])
		}
	}
	return keys
}

func commitRows(t *testing.T, store *oribi.Store, op oribi.Op, table *oribi.Table, keys ...int64) mvcc.Timestamp {
	t.Helper()
	b := store.NewBatch()
	for _, k := range keys {
		row := oribi.Row{"k": k}
		if op != oribi.OpDelete {
			row["v"] = -k
		}
		b.Row(op, table, row)
	}
	return must.Get(b.Commit(context.Background()))(t)
}

func TestIngestCommitsAllRowSetsAtOneTimestamp(t *testing.T) {
	ctx := context.Background()
	mem := vfs.NewMem()
	store, table, events := ingestStore(t, mem)
	before := commitRows(t, store, oribi.OpInsert, table, -5, 100000)
	ts, n, err := table.Ingest(ctx, steps(nil, numbers(span(0, 9000)...), numbers(), numbers(span(9000, 9003)...)))
	if err != nil || n != 9003 || ts <= before {
		t.Fatalf("%d rows at %d, after %d: %v", n, uint64(ts), uint64(before), err)
	}
	want := append(append([]int64{-5}, span(0, 9003)...), 100000)
	must.Equal(t, allKeys(t, table), want, "keys", len(want))
	must.Equal(t, allKeys(t, table, oribi.AsOf(ts-1)), []int64{-5, 100000}, "keys just before")
	must.Equal(t, allKeys(t, table, oribi.AsOf(ts)), want, "keys at the timestamp")
	layout := table.Layout()
	if len(layout.RowSets) < 2 || len(*events) != 1 {
		t.Fatalf("%d rowsets, %d events", len(layout.RowSets), len(*events))
	}
	if e := (*events)[0]; e.Kind != compaction.Ingest || e.Err != nil || e.RowsWritten != 9003 || e.BytesWritten == 0 ||
		len(e.Outputs) != len(layout.RowSets) || len(e.Before.RowSets) != 0 ||
		len(e.After.RowSets) != len(layout.RowSets) {
		t.Errorf("event %+v", e)
	}
	// The rows are not in the log, but survive a power cut: their files and metadata are synced,
	// and the anchor is up to date.
	store2, table2, _ := ingestStore(t, mem.Crash())
	must.Equal(t, allKeys(t, table2, oribi.AsOf(ts)), want, "keys after a power cut")
	if next := commitRows(t, store2, oribi.OpUpdate, table2, 3); next <= ts {
		t.Errorf("timestamp %d comes after %d", uint64(next), uint64(ts))
	}
	must.Do(t, table2.Compact(ctx))
	must.Equal(t, allKeys(t, table2, oribi.AsOf(ts-1)), []int64{-5, 100000},
		"keys just before, after a compaction")
}

func TestIngestAndInsertRefuseTheSameRows(t *testing.T) {
	ctx := context.Background()
	store := must.Get(oribi.Open("/store", &oribi.Options{FS: vfs.NewMem(), Manual: true}))(t)
	defer store.Close()
	table := tableOf(t, store, "t", "k*:string v:varchar(3) n:int32? d:int8=9")
	text := func(typ schema.Type, cells ...string) *batch.Vector {
		v := batch.NewVector(typ, len(cells))
		for i, c := range cells {
			if c != "NULL" {
				v.Bytes[i] = []byte(c)
			} else {
				v.SetCell(i, nil)
			}
		}
		return v
	}
	good := []*batch.Vector{text(schema.String, "a", "b"), text(schema.Varchar, "x", "y"), nil, nil}
	with := func(i int, v *batch.Vector) []*batch.Vector {
		bad := slices.Clone(good)
		bad[i] = v
		return bad
	}
	for _, c := range []struct {
		name   string
		parts  [][]*batch.Vector
		row    int
		column string
	}{
		{"too few vectors", [][]*batch.Vector{good[:2]}, 0, ""},
		{"a vector of another type", [][]*batch.Vector{with(1, text(schema.String, "x", "y"))}, 0, ""},
		{"vectors of different lengths", [][]*batch.Vector{with(1, text(schema.Varchar, "x"))}, 0, ""},
		{"no value and no default", [][]*batch.Vector{with(1, nil)}, 0, "v"},
		{"no key", [][]*batch.Vector{with(0, nil)}, 0, ""},
		{"NULL", [][]*batch.Vector{with(1, text(schema.Varchar, "x", "NULL"))}, 1, "v"},
		{"NULL in the key", [][]*batch.Vector{with(0, text(schema.String, "a", "NULL"))}, 1, "k"},
		{"invalid UTF-8", [][]*batch.Vector{with(1, text(schema.Varchar, "x", "\xff"))}, 1, "v"},
		{"too long", [][]*batch.Vector{with(1, text(schema.Varchar, "abcd", "x"))}, 0, "v"},
		{"a long key", [][]*batch.Vector{with(0, text(schema.String, "a", strings.Repeat("b", schema.MaxKeyBytes+1)))},
			1, ""},
		{"a key twice", [][]*batch.Vector{with(0, text(schema.String, "a", "a"))}, 1, ""},
		{"descending keys", [][]*batch.Vector{with(0, text(schema.String, "b", "a"))}, 1, ""},
		{"descending keys from one step to the next", [][]*batch.Vector{good, good}, 2, ""},
	} {
		ts, n, err := table.Ingest(ctx, steps(nil, c.parts...))
		var re *oribi.RowError
		if !errors.As(err, &re) || !errors.Is(err, oribi.ErrRow) || re.Row != c.row || re.Column != c.column ||
			re.Table != "t" || ts != 0 || n != 0 {
			t.Errorf("%s: %v", c.name, err)
		}
	}
	if s, err := table.Stats(false); err != nil || s.LiveRows != 0 || s.RowSets != 0 {
		t.Errorf("the ingest left something: %+v, %v", s, err)
	}
	must.Get2(table.Ingest(ctx, steps(nil, good)))(t)
	row := must.Get(table.Get(ctx, "b"))(t)
	must.Equal(t, fmt.Sprint(row), "map[d:9 k:b n:<nil> v:y]")
}

// Keys that writers insert during an ingest are found, also after they were flushed and merged:
// keys after the rows ingested so far, before them, and among those that the ingest already
// checked.
func TestIngestFindsKeysOfConcurrentInserts(t *testing.T) {
	ctx := context.Background()
	for name, move := range map[string]func(*oribi.Table) error{
		"in memory": func(*oribi.Table) error { return nil },
		"flushed":   func(table *oribi.Table) error { return table.Flush(ctx) },
		"merged": func(table *oribi.Table) error {
			return errors.Join(table.Flush(ctx), table.Compact(ctx))
		},
	} {
		for _, k := range []int64{5, 6, 10005} {
			store, table, _ := ingestStore(t, vfs.NewMem())
			commitRows(t, store, oribi.OpInsert, table, -1, 6, 20000)
			must.Do(t, table.Flush(ctx))
			commitRows(t, store, oribi.OpDelete, table, 6)
			ts, n, err := table.Ingest(ctx, steps(func() {
				commitRows(t, store, oribi.OpInsert, table, k)
				must.Do(t, move(table))
			}, numbers(span(0, 5000)...), numbers(span(10000, 15000)...)))
			var re *oribi.RowError
			if !errors.Is(err, oribi.ErrKeyExists) || !errors.As(err, &re) || ts != 0 || n != 0 {
				t.Fatalf("%s, key %d: %v", name, k, err)
			}
			must.Equal(t, re.Row, map[int64]int{5: 5, 6: 6, 10005: 5005}[k], name, "key", k, "row")
			must.Equal(t, allKeys(t, table), slices.Sorted(slices.Values([]int64{-1, k, 20000})),
				name, "key", k)
			// Without that key all other rows are accepted; a concurrent insert and delete does not
			// matter.
			_, n, err = table.Ingest(ctx, steps(func() {
				commitRows(t, store, oribi.OpDelete, table, k)
				commitRows(t, store, oribi.OpInsert, table, 7)
				commitRows(t, store, oribi.OpDelete, table, 7)
				must.Do(t, move(table))
			}, numbers(0), numbers(span(1, 9)...)))
			must.Do(t, err)
			must.Equal(t, n, 9, name, "key", k)
		}
	}
}

// With concurrent writers, ingests, flushes and compactions, each key has one winner. Meant for
// -race.
func TestConcurrentIngestsAndInsertsOfAKeyHaveOneWinner(t *testing.T) {
	store, table := busyStore(t, vfs.NewMem())
	c := newCrew(t)
	const keys = 3000
	var mu sync.Mutex
	won := map[int64]int64{} // key to the value that was accepted
	var id, ingests atomic.Int64
	ctx := context.Background()
	claim := func(value int64, accepted []int64) error {
		mu.Lock()
		defer mu.Unlock()
		for _, k := range accepted {
			if old, ok := won[k]; ok {
				return fmt.Errorf("key %d was taken for %d and for %d", k, old, value)
			}
			won[k] = value
		}
		return nil
	}
	rows := func(chosen []int64, value int64) []*batch.Vector {
		v := numbers(chosen...)
		for i := range chosen {
			batch.Values[int64](v[1])[i] = value
		}
		return v
	}
	c.each(2, func(r *rand.Rand) error {
		value, from := id.Add(1), r.Int64N(keys)
		chosen := span(from, from+1+r.Int64N(3))
		b := store.NewBatch()
		b.Vectors(oribi.OpInsert, table, rows(chosen, value))
		if _, err := b.Commit(ctx, oribi.NoSync); errors.Is(err, oribi.ErrKeyExists) {
			return nil
		} else if err != nil {
			return err
		}
		return claim(value, chosen)
	})
	c.each(2, func(r *rand.Rand) error {
		value := id.Add(1)
		var chosen []int64
		for k := r.Int64N(keys); k < keys && len(chosen) < 4; k += 1 + r.Int64N(5) {
			chosen = append(chosen, k)
		}
		half := len(chosen) / 2
		_, _, err := table.Ingest(ctx, steps(nil, rows(chosen[:half], value), rows(chosen[half:], value)))
		ingests.Add(1)
		if errors.Is(err, oribi.ErrKeyExists) {
			return nil
		} else if err != nil {
			return err
		}
		return claim(value, chosen)
	})
	c.work(proofTime(200 * time.Millisecond))
	for b := range must.All(t, table.Scan(ctx).Batches()) {
		for i := b.Selection.Next(0); i >= 0; i = b.Selection.Next(i + 1) {
			k, v := batch.Values[int64](b.Columns[0])[i], batch.Values[int64](b.Columns[1])[i]
			must.Equal(t, won[k], v, "key", k, "has", v, "won by")
			delete(won, k)
		}
	}
	if len(won) > 0 || ingests.Load() == 0 {
		t.Errorf("%d keys are missing; %d ingests", len(won), ingests.Load())
	}
	must.Do(t, store.Close())
}

func TestAbortedIngestLeavesNothing(t *testing.T) {
	ctx := context.Background()
	mem := vfs.NewMem()
	store, table, events := ingestStore(t, mem)
	cause := errors.New("the source failed")
	failing := func(yield func([]*batch.Vector, error) bool) {
		_ = yield(numbers(span(0, 9000)...), nil) && yield(nil, cause)
	}
	must.Fail(t, must.Err2(table.Ingest(ctx, failing)), cause, "the error of the source")
	canceled, cancel := context.WithCancel(ctx)
	must.Fail(t, must.Err2(table.Ingest(canceled, steps(cancel, numbers(1), numbers(2)))), context.Canceled,
		"canceled")
	other := numbersTable(t, store, "other")
	drop := func() {
		must.Do(t, store.DropTable("other"))
	}
	must.Fail(t, must.Err2(other.Ingest(ctx, steps(drop, numbers(1), numbers(2)))), oribi.ErrNoTable,
		"dropped during the ingest")
	must.Fail(t, must.Err2(other.Ingest(ctx, steps(nil))), oribi.ErrNoTable, "dropped before")
	if s, err := table.Stats(false); err != nil || s.LiveRows != 0 || s.RowSets != 0 || len(*events) != 0 {
		t.Errorf("the ingest left something: %+v, %v, %d events", s, err, len(*events))
	}
	last := store.Visible()
	if ts, n, err := table.Ingest(ctx, steps(nil, numbers())); err != nil || n != 0 || ts <= last {
		t.Errorf("no rows: %d at %d, %v", n, uint64(ts), err)
	}
	must.Do(t, store.Close())
	must.Fail(t, must.Err2(table.Ingest(ctx, steps(nil, numbers(1)))), oribi.ErrClosed, "closed")
	reader := must.Get(oribi.Open("/store", &oribi.Options{FS: mem, ReadOnly: true}))(t)
	defer reader.Close()
	must.Fail(t, must.Err2(numbersTable(t, reader, "numbers").Ingest(ctx,
		steps(nil, numbers(1)))), oribi.ErrReadOnly, "read-only")
}

type typedRow struct {
	Host string `oribi:"host,key"`
	At   int64  `oribi:"at,key"`
	Text *string
	Raw  []byte
}

// The memory of a struct is reused for the next one: the ingest must not keep any of it.
func TestTypedIngestTakesStructs(t *testing.T) {
	ctx := context.Background()
	store := must.Get(oribi.Open("/store", &oribi.Options{FS: vfs.NewMem(), Manual: true}))(t)
	defer store.Close()
	columns := must.Get(oribi.SchemaOf[typedRow]())(t)
	plain := must.Get(store.CreateTable("t", columns))(t)
	table := must.Get(oribi.Typed[typedRow](plain))(t)
	const n = 10000
	text, raw := "", make([]byte, 8)
	_, got, err := table.Ingest(ctx, func(yield func(typedRow) bool) {
		for i := range n {
			row := typedRow{Host: fmt.Sprintf("h%03d", i/100), At: int64(i % 100), Raw: raw[:i%9]}
			binary.BigEndian.PutUint64(raw, uint64(i))
			if text = fmt.Sprint(i); i%3 > 0 {
				row.Text = &text
			}
			if !yield(row) {
				return
			}
		}
	})
	must.Do(t, err)
	must.Equal(t, got, n, "rows")
	i := 0
	for row := range must.All(t, table.Scan(ctx)) {
		binary.BigEndian.PutUint64(raw, uint64(i))
		if row.Host != fmt.Sprintf("h%03d", i/100) || row.At != int64(i%100) || (row.Text == nil) != (i%3 == 0) ||
			row.Text != nil && *row.Text != fmt.Sprint(i) || string(row.Raw) != string(raw[:i%9]) {
			t.Fatalf("row %d is %+v", i, row)
		}
		i++
	}
	must.Equal(t, i, n, "rows")
	bad := slices.Values([]typedRow{{Host: "z"}, {Host: "\xff"}})
	var re *oribi.RowError
	if _, _, err := table.Ingest(ctx, bad); !errors.As(err, &re) || re.Row != 1 || re.Column != "host" {
		t.Errorf("a bad string: %v", err)
	}
}
