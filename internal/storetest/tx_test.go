package storetest

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/internal/seedtest"
	"github.com/oribi-db/oribi/mvcc"
	"github.com/oribi-db/oribi/schema"
	"github.com/oribi-db/oribi/vfs"
)

// txStore opens a store in memory with a table of two int64 columns, key k and value v.
func txStore(t *testing.T) (*oribi.Store, *oribi.Table) {
	t.Helper()
	store := must.Get(oribi.Open("/tx", &oribi.Options{FS: vfs.NewMem(), Manual: true, RowSetBytes: 1 << 12}))(t)
	t.Cleanup(func() { store.Close() })
	return store, numbersTable(t, store, "numbers")
}

func number(k, v int64) oribi.Row { return oribi.Row{"k": k, "v": v} }

// put commits rows of the given values.
func put(t testing.TB, store *oribi.Store, table *oribi.Table, rows map[int64]int64) mvcc.Timestamp {
	t.Helper()
	b := store.NewBatch()
	for k, v := range rows {
		b.Upsert(table, number(k, v))
	}
	ts := must.Get(b.Commit(context.Background(), oribi.NoSync))(t)
	return ts
}

func begin(t testing.TB, store *oribi.Store) *oribi.Tx {
	t.Helper()
	tx := must.Get(store.Begin(context.Background()))(t)
	t.Cleanup(tx.Rollback)
	return tx
}

// numbersOf collects rows of key k and value v.
func numbersOf(rows iter.Seq2[oribi.Row, error]) (map[int64]int64, error) {
	out := map[int64]int64{}
	for row, err := range rows {
		if err != nil {
			return nil, err
		}
		out[row["k"].(int64)] = row["v"].(int64)
	}
	return out, nil
}

func TestTransactionReadsItsSnapshotAndItsWrites(t *testing.T) {
	store, table := txStore(t)
	put(t, store, table, map[int64]int64{1: 10, 2: 20, 3: 30})
	tx := begin(t, store)
	put(t, store, table, map[int64]int64{1: 11, 4: 40})
	for _, step := range []struct {
		do   func() error
		want error
	}{
		{func() error { return tx.Insert(table, number(2, 0)) }, oribi.ErrKeyExists},
		{func() error { return tx.Insert(table, number(5, 50)) }, nil},
		{func() error { return tx.Insert(table, number(5, 51)) }, oribi.ErrKeyExists},
		{func() error { return tx.Update(table, number(6, 60)) }, oribi.ErrNotFound},
		{func() error { return tx.Update(table, number(5, 52)) }, nil},
		{func() error { return tx.Delete(table, oribi.Row{"k": 3}) }, nil},
		{func() error { return tx.Delete(table, oribi.Row{"k": 3}) }, oribi.ErrNotFound},
		{func() error { return tx.Upsert(table, oribi.Row{"k": 7, "v": "text"}) }, oribi.ErrRow},
	} {
		if err := step.do(); !errors.Is(err, step.want) {
			t.Errorf("error %v, want %v", err, step.want)
		}
	}
	want := map[int64]int64{1: 10, 2: 20, 5: 52}
	got, err := numbersOf(tx.Scan(table).Rows())
	if err != nil || !maps.Equal(got, want) {
		t.Errorf("scan: %v, %v, want %v", got, err, want)
	}
	for k := range int64(8) {
		row, err := tx.Get(table, k)
		if v, ok := want[k]; ok != (err == nil) || ok && row["v"] != v || !ok && !errors.Is(err, oribi.ErrNotFound) {
			t.Errorf("get of %d: %v, %v, want %d", k, row, err, v)
		}
	}
}

// The caller may compact and change each batch of a scan, also where the transaction has written
// rows between the rows of the table.
func TestBatchesOfATransactionMayBeChanged(t *testing.T) {
	store, table := txStore(t)
	rows := map[int64]int64{}
	for k := range int64(100) {
		if k%3 != 0 {
			rows[k] = k
		}
	}
	put(t, store, table, rows)
	must.Do(t, table.Flush(context.Background()))
	tx := begin(t, store)
	for k := int64(0); k < 100; k += 5 {
		must.Do(t, tx.Upsert(table, number(k, -k)))
		rows[k] = -k
	}
	for _, options := range [][]oribi.TxScanOption{nil, {oribi.Desc()}} {
		var got []int64
		for b, err := range tx.Scan(table, options...).Batches() {
			if err != nil {
				t.Fatal(err)
			}
			b.Compact()
			keys, values := batch.Values[int64](b.Columns[0]), batch.Values[int64](b.Columns[1])
			for i, k := range keys[:b.Len] {
				if values[i] != rows[k] {
					t.Errorf("key %d: value %d, want %d", k, values[i], rows[k])
				}
			}
			got = append(got, keys[:b.Len]...)
			clear(keys)
		}
		want := slices.Sorted(maps.Keys(rows))
		if options != nil {
			slices.Reverse(want)
		}
		if !slices.Equal(got, want) {
			t.Errorf("keys %v, want %v", got, want)
		}
	}
}

func TestTransactionConflictsWithChangesOfWhatItRead(t *testing.T) {
	get := func(k int64) func(*oribi.Tx, *oribi.Table) error {
		return func(tx *oribi.Tx, t *oribi.Table) error {
			if _, err := tx.Get(t, k); !errors.Is(err, oribi.ErrNotFound) {
				return err
			}
			return nil
		}
	}
	scan := func(n int, opts ...oribi.TxScanOption) func(*oribi.Tx, *oribi.Table) error {
		return func(tx *oribi.Tx, t *oribi.Table) error {
			read := 0
			for _, err := range tx.Scan(t, opts...).Rows() {
				if read++; err != nil || read == n {
					return err
				}
			}
			return nil
		}
	}
	firstBatch := func(tx *oribi.Tx, t *oribi.Table) error {
		for b, err := range tx.Scan(t, oribi.From(10), oribi.Limit(3)).Batches() {
			if err != nil {
				return err
			}
			b.Selection.Clear(b.Selection.Next(0))
			b.Compact()
			break
		}
		return nil
	}
	nothing := func(*oribi.Tx, *oribi.Table) error { return nil }
	cases := []struct {
		name     string
		read     func(*oribi.Tx, *oribi.Table) error
		change   int64 // the key that another writer changes
		conflict bool
	}{
		{"nothing", nothing, 20, false},
		{"row", get(20), 20, true},
		{"other row", get(20), 30, false},
		{"row that does not exist", get(25), 25, true},
		{"range", scan(-1, oribi.From(10), oribi.To(30)), 20, true},
		{"phantom", scan(-1, oribi.From(10), oribi.To(30)), 25, true},
		{"start of range", scan(-1, oribi.From(10), oribi.To(30)), 10, true},
		{"end of range", scan(-1, oribi.From(10), oribi.To(30)), 30, false},
		{"before range", scan(-1, oribi.From(10), oribi.To(30)), 9, false},
		{"limit", scan(-1, oribi.From(10), oribi.Limit(2)), 20, true},
		{"after limit", scan(-1, oribi.From(10), oribi.Limit(2)), 21, false},
		{"end of loop", scan(2), 20, true},
		{"after end of loop", scan(2), 21, false},
		{"descending limit", scan(-1, oribi.Desc(), oribi.Limit(2)), 30, true},
		{"after descending limit", scan(-1, oribi.Desc(), oribi.Limit(2)), 29, false},
		{"no row", scan(-1, oribi.Limit(0)), 20, false},
		{"whole table", scan(-1), 1000, true},
		{"batch that its reader has changed", firstBatch, 30, true},
		{"after a batch that its reader has changed", firstBatch, 31, false},
	}
	others := map[string]func(*testing.T, *oribi.Store, *oribi.Table, int64){
		"commit": func(t *testing.T, s *oribi.Store, table *oribi.Table, k int64) {
			put(t, s, table, map[int64]int64{k: -1})
		},
		"ingest": func(t *testing.T, s *oribi.Store, table *oribi.Table, k int64) {
			must.Get(table.DeleteRange(context.Background(), k, k+1))(t)
			column := func(v int64) *batch.Vector {
				out := &batch.Vector{Type: schema.Int64}
				out.AppendCell(binary.LittleEndian.AppendUint64(nil, uint64(v)))
				return out
			}
			must.Get2(table.Ingest(context.Background(), func(yield func([]*batch.Vector, error) bool) {
				yield([]*batch.Vector{column(k), column(-1)}, nil)
			}))(t)
		},
	}
	for name, other := range others {
		for _, c := range cases {
			t.Run(name+"/"+c.name, func(t *testing.T) {
				store, table := txStore(t)
				put(t, store, table, map[int64]int64{10: 1, 20: 2, 30: 3, 40: 4})
				tx := begin(t, store)
				must.Do(t, c.read(tx, table))
				must.Do(t, tx.Upsert(table, number(500_000, 0)))
				other(t, store, table, c.change)
				_, err := tx.Commit(oribi.NoSync)
				if c.conflict && !errors.Is(err, oribi.ErrConflict) || !c.conflict && err != nil {
					t.Errorf("commit: %v, want conflict: %v", err, c.conflict)
				}
				n, err := table.Count(context.Background(), oribi.From(500_000), oribi.To(500_001))
				if want := map[bool]int64{false: 1}[c.conflict]; err != nil || n != want {
					t.Errorf("%d rows of the transaction, %v, want %d", n, err, want)
				}
			})
		}
	}
}

// More changes follow than the store remembers, so it finds the changes to the transaction's reads
// in the table.
func TestTransactionConflictsWithChangesThatTheStoreHasForgotten(t *testing.T) {
	ctx := context.Background()
	store, table := txStore(t)
	put(t, store, table, map[int64]int64{10: 1, 20: 2, 30: 3, 40: 4})
	cases := []struct {
		name     string
		from, to int64 // the keys that the transaction reads
		conflict bool
	}{
		{"phantom", 20, 30, true},
		{"changed row", 30, 31, true},
		{"unchanged row", 20, 21, false},
		{"unchanged range", 10, 25, false},
	}
	var txs []*oribi.Tx
	for i, c := range cases {
		tx := begin(t, store)
		must.Get(numbersOf(tx.Scan(table, oribi.From(c.from), oribi.To(c.to)).Rows()))(t)
		must.Do(t, tx.Upsert(table, number(500_000+int64(i), 0)))
		txs = append(txs, tx)
	}
	put(t, store, table, map[int64]int64{25: -1, 30: -1})
	b := store.NewBatch()
	for i := range int64(300_000) {
		b.Upsert(table, number(1_000_000+i%10, i))
	}
	must.Get(b.Commit(ctx, oribi.NoSync))(t)
	for i, c := range cases {
		_, err := txs[i].Commit(oribi.NoSync)
		if c.conflict && !errors.Is(err, oribi.ErrConflict) || !c.conflict && err != nil {
			t.Errorf("%s: commit: %v, want conflict: %v", c.name, err, c.conflict)
		}
		n, err := table.Count(ctx, oribi.From(500_000+i), oribi.To(500_001+i))
		if want := map[bool]int64{false: 1}[c.conflict]; err != nil || n != want {
			t.Errorf("%s: %d rows of the transaction, %v, want %d", c.name, n, err, want)
		}
	}
}

func TestTransactionRefusesAnUpsertOfAnImmutableColumnAtOnce(t *testing.T) {
	store, table := txStore(t)
	put(t, store, table, map[int64]int64{1: 1})
	must.Do(t, table.Alter(context.Background(), oribi.SetImmutable("v", true)))
	tx := begin(t, store)
	if err := tx.Upsert(table, number(1, 2)); !errors.Is(err, oribi.ErrRow) {
		t.Errorf("upsert of a row: %v, want ErrRow", err)
	}
	if err := tx.Upsert(table, number(2, 2)); err != nil {
		t.Errorf("upsert of a new row: %v", err)
	}
	got, err := numbersOf(tx.Scan(table).Rows())
	if want := (map[int64]int64{1: 1, 2: 2}); err != nil || !maps.Equal(got, want) {
		t.Errorf("scan: %v, %v, want %v", got, err, want)
	}
	if _, err := tx.Commit(); err != nil {
		t.Error(err)
	}
}

// A refused operation leaves the transaction as it was: the next one on the table is of the schema
// of its time.
func TestRefusedOperationOfATransactionDoesNotKeepTheSchema(t *testing.T) {
	store, table := txStore(t)
	put(t, store, table, map[int64]int64{1: 1})
	tx := begin(t, store)
	if err := tx.Insert(table, number(1, 2)); !errors.Is(err, oribi.ErrKeyExists) {
		t.Fatalf("insert of a row that exists: %v", err)
	}
	must.Do(t, table.Alter(context.Background(),
		oribi.AddColumn(schema.Column{Name: "w", Type: schema.Int64, Nullable: true})))
	cell := func(n uint64) []byte { return binary.LittleEndian.AppendUint64(nil, n) }
	must.Do(t, tx.Cells(oribi.OpInsert, table, [][]byte{cell(2), cell(20), cell(200)}, nil))
	must.Get(tx.Commit())(t)
	row, err := table.Get(context.Background(), 2)
	if want := (oribi.Row{"k": int64(2), "v": int64(20), "w": int64(200)}); err != nil || !maps.Equal(row, want) {
		t.Errorf("row 2: %v, %v, want %v", row, err, want)
	}
}

func TestScanOfATransactionThatEndsReturnsAnError(t *testing.T) {
	store, table := txStore(t)
	put(t, store, table, map[int64]int64{1: 1, 3: 3})
	tx := begin(t, store)
	for _, k := range []int64{2, 4} {
		must.Do(t, tx.Upsert(table, number(k, k)))
	}
	var last error
	for _, last = range tx.Scan(table).Rows() {
		tx.Rollback()
	}
	if !errors.Is(last, oribi.ErrTxEnded) {
		t.Errorf("the scan ended with %v, want ErrTxEnded", last)
	}
}

func TestEndedTransactionsReturnErrors(t *testing.T) {
	store, table := txStore(t)
	ctx := context.Background()
	tx := begin(t, store)
	must.Do(t, tx.Upsert(table, number(1, 1)))
	must.Get(tx.Commit())(t)
	_, getErr := tx.Get(table, 1)
	_, scanErr := numbersOf(tx.Scan(table).Rows())
	_, commitErr := tx.Commit()
	for _, err := range []error{getErr, scanErr, commitErr, tx.Upsert(table, number(2, 2))} {
		if !errors.Is(err, oribi.ErrTxEnded) {
			t.Errorf("error %v, want ErrTxEnded", err)
		}
	}
	tx.Rollback()

	boom := errors.New("boom")
	err := store.Update(ctx, func(tx *oribi.Tx) error {
		if err := tx.Upsert(table, number(3, 3)); err != nil {
			return err
		}
		return boom
	})
	if n, _ := table.Count(ctx); err != boom || n != 1 {
		t.Errorf("update: %v, %d rows, want %v and 1 row", err, n, boom)
	}
	if info, err := store.Info(); err != nil || len(info.Snapshots) > 0 {
		t.Errorf("snapshots %v, %v, want none", info.Snapshots, err)
	}
}

// txRead is a read of a transaction: the rows of a range.
type txRead struct {
	from, to int64
	rows     map[int64]int64
}

// TestCommittedTransactionsReadTheStateBeforeTheirCommit runs transactions that read keys and
// ranges and write some keys, among write batches, ingests, flushes, and merges. Serializability in
// the order of timestamps means that all that a transaction has read was still so when it
// committed: as of one before its timestamp.
func TestCommittedTransactionsReadTheStateBeforeTheirCommit(t *testing.T) {
	store, table := txStore(t)
	seed := seedtest.Seed(t)
	ctx := context.Background()
	const keys = 40
	put(t, store, table, map[int64]int64{1: 1, 5: 5, 30: 30})
	type outcome struct {
		ts    mvcc.Timestamp
		reads []txRead
	}
	var mu sync.Mutex
	var outcomes []outcome
	conflicts := 0
	run := func(rng *rand.Rand) error {
		tx, err := store.Begin(ctx)
		if err != nil {
			return err
		}
		defer tx.Rollback()
		var reads []txRead
		for range 1 + rng.IntN(3) {
			from := rng.Int64N(keys)
			r := txRead{from: from, to: from + 1, rows: map[int64]int64{}}
			if rng.IntN(2) == 0 {
				row, err := tx.Get(table, from)
				if err != nil && !errors.Is(err, oribi.ErrNotFound) {
					return err
				}
				if err == nil {
					r.rows[from] = row["v"].(int64)
				}
			} else {
				r.to = from + rng.Int64N(10)
				if r.rows, err = numbersOf(tx.Scan(table, oribi.From(r.from), oribi.To(r.to)).Rows()); err != nil {
					return err
				}
			}
			reads = append(reads, r)
		}
		if rng.IntN(8) == 0 { // however the goroutines are scheduled, some transactions conflict
			b := store.NewBatch()
			b.Upsert(table, number(reads[0].from, rng.Int64N(1000)))
			if _, err := b.Commit(ctx, oribi.NoSync); err != nil {
				return err
			}
		}
		for range 1 + rng.IntN(3) {
			k := rng.Int64N(keys)
			if rng.IntN(4) == 0 {
				err = tx.Row(oribi.OpDeleteIgnore, table, oribi.Row{"k": k})
			} else {
				err = tx.Upsert(table, number(k, rng.Int64N(1000)))
			}
			if err != nil {
				return err
			}
		}
		ts, err := tx.Commit(oribi.NoSync)
		mu.Lock()
		defer mu.Unlock()
		switch {
		case errors.Is(err, oribi.ErrConflict):
			conflicts++
		case err != nil:
			return err
		default:
			outcomes = append(outcomes, outcome{ts, reads})
		}
		return nil
	}
	var wg sync.WaitGroup
	for g := range uint64(4) {
		wg.Go(func() {
			rng := rand.New(rand.NewPCG(seed, g))
			for i := range 300 {
				var err error
				switch n := rng.IntN(40); {
				case n == 0 && g == 0:
					err = table.Flush(ctx)
				case n == 1 && g == 0:
					err = table.Compact(ctx)
				case n == 2:
					_, err = table.DeleteRange(ctx, int64(i%keys), int64(i%keys+5))
				default:
					err = run(rng)
				}
				if err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	for _, o := range outcomes {
		for _, r := range o.reads {
			got, err := numbersOf(table.Scan(ctx, oribi.From(r.from), oribi.To(r.to), oribi.AsOf(o.ts-1)).Rows())
			if err != nil || !maps.Equal(got, r.rows) {
				t.Fatalf("transaction at %v read [%d, %d) as %v, it was %v, %v", o.ts, r.from, r.to, r.rows, got, err)
			}
		}
	}
	if len(outcomes) < 100 || conflicts == 0 {
		t.Errorf("%d transactions committed, %d conflicted", len(outcomes), conflicts)
	}
}

// TestScansOfATransactionMatchAMap compares scans in a transaction with a map, with rows of the
// table and of the transaction in every order.
func TestScansOfATransactionMatchAMap(t *testing.T) {
	store, table := txStore(t)
	rng := seedtest.Rand(t)
	for range 40 {
		model := map[int64]int64{}
		must.Get(table.Truncate(context.Background()))(t)
		for range rng.IntN(30) {
			model[rng.Int64N(60)] = rng.Int64N(10)
		}
		put(t, store, table, model)
		if rng.IntN(2) == 0 {
			must.Do(t, table.Flush(context.Background()))
		}
		tx := begin(t, store)
		for range rng.IntN(30) {
			k, v := rng.Int64N(60), rng.Int64N(10)
			var err error
			if rng.IntN(3) == 0 {
				err = tx.Row(oribi.OpDeleteIgnore, table, oribi.Row{"k": k})
				delete(model, k)
			} else {
				err = tx.Upsert(table, number(k, v))
				model[k] = v
			}
			if err != nil {
				t.Fatal(err)
			}
			if rng.IntN(4) == 0 {
				checkScan(t, rng, tx, table, model)
			}
		}
		checkScan(t, rng, tx, table, model)
		tx.Rollback()
	}
}

func checkScan(t *testing.T, rng *rand.Rand, tx *oribi.Tx, table *oribi.Table, model map[int64]int64) {
	t.Helper()
	from, to, least, limit, desc := rng.Int64N(60), rng.Int64N(70), rng.Int64N(10), rng.IntN(20), rng.IntN(2) == 0
	opts := []oribi.TxScanOption{oribi.From(from), oribi.To(to),
		oribi.Where(oribi.Ge("v", least)), oribi.Limit(int64(limit))}
	if desc {
		opts = append(opts, oribi.Desc())
	}
	var want, got []string
	keys := slices.Sorted(maps.Keys(model))
	if desc {
		slices.Reverse(keys)
	}
	for _, k := range keys {
		if k >= from && k < to && model[k] >= least && len(want) < limit {
			want = append(want, fmt.Sprint(k, model[k]))
		}
	}
	for row, err := range tx.Scan(table, opts...).Rows() {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, fmt.Sprint(row["k"], row["v"]))
	}
	if !slices.Equal(got, want) {
		t.Fatalf("[%d, %d), v >= %d, limit %d, descending %v: %v, want %v", from, to, least, limit, desc, got, want)
	}
}

// A transaction goes on while the schema of a table that it reads and writes changes, which is no
// conflict: its writes follow the IDs of their columns. If a table that it has written to is
// dropped, nothing is committed.
func TestTransactionAcrossSchemaChanges(t *testing.T) {
	ctx := context.Background()
	alter := func(changes ...oribi.Alteration) func(*oribi.Store, *oribi.Table) error {
		return func(_ *oribi.Store, t *oribi.Table) error { return t.Alter(ctx, changes...) }
	}
	w := schema.Column{Name: "w", Type: schema.Int64, Default: binary.LittleEndian.AppendUint64(nil, 7)}
	another := schema.Column{Name: "v", Type: schema.Int64, Nullable: true}
	for _, c := range []struct {
		name   string
		change func(*oribi.Store, *oribi.Table) error
		want   []oribi.Row // rows 1 to 3: one read, one updated, one inserted
		err    error       // of the commit
	}{
		{"a column is added", alter(oribi.AddColumn(w)),
			[]oribi.Row{{"k": int64(1), "v": int64(10), "w": int64(7)}, {"k": int64(2), "v": int64(21), "w": int64(7)},
				{"k": int64(3), "v": int64(30), "w": int64(7)}}, nil},
		{"a column is dropped", alter(oribi.DropColumn("v")),
			[]oribi.Row{{"k": int64(1)}, {"k": int64(2)}, {"k": int64(3)}}, nil},
		{"another column gets the name", alter(oribi.DropColumn("v"), oribi.AddColumn(another)),
			[]oribi.Row{{"k": int64(1), "v": nil}, {"k": int64(2), "v": nil}, {"k": int64(3), "v": nil}}, nil},
		{"a column is renamed", alter(oribi.RenameColumn("v", "w")),
			[]oribi.Row{{"k": int64(1), "w": int64(10)}, {"k": int64(2), "w": int64(21)},
				{"k": int64(3), "w": int64(30)}}, nil},
		{"the table is renamed", func(_ *oribi.Store, t *oribi.Table) error { return t.Rename(ctx, "renamed") },
			[]oribi.Row{{"k": int64(1), "v": int64(10)}, {"k": int64(2), "v": int64(21)},
				{"k": int64(3), "v": int64(30)}}, nil},
		{"the table is dropped", func(s *oribi.Store, t *oribi.Table) error {
			return s.DropTable(t.Name())
		}, nil, oribi.ErrNoTable},
	} {
		t.Run(c.name, func(t *testing.T) {
			store, table := txStore(t)
			other := numbersTable(t, store, "other")
			put(t, store, table, map[int64]int64{1: 10, 2: 20})
			tx := begin(t, store)
			rows, err := numbersOf(tx.Scan(table).Rows())
			if err != nil || len(rows) != 2 {
				t.Fatal(rows, err)
			}
			for _, err := range []error{tx.Update(table, number(2, 21)), tx.Insert(table, number(3, 30)),
				tx.Insert(other, number(9, 9))} {
				if err != nil {
					t.Fatal(err)
				}
			}
			must.Do(t, c.change(store, table))
			if c.want != nil {
				row, err := tx.Get(table, 3)
				if err != nil || !maps.Equal(row, c.want[2]) {
					t.Errorf("row 3 in the transaction: %v, %v, want %v", row, err, c.want[2])
				}
			}
			if _, err := tx.Commit(); !errors.Is(err, c.err) || (err == nil) != (c.err == nil) {
				t.Fatalf("commit: %v, want %v", err, c.err)
			}
			var got []oribi.Row
			for row, err := range table.Scan(ctx).Rows() {
				if err != nil && !errors.Is(err, oribi.ErrNoTable) {
					t.Fatal(err)
				}
				if err == nil {
					got = append(got, row)
				}
			}
			if !slices.EqualFunc(got, c.want, maps.Equal) {
				t.Errorf("rows %v, want %v", got, c.want)
			}
			if n, err := other.Count(ctx); err != nil || (n == 1) != (c.err == nil) {
				t.Errorf("%d rows in the other table, %v", n, err)
			}
		})
	}
	for _, changed := range []bool{false, true} { // before the drop
		t.Run(fmt.Sprintf("a table that was read is dropped, changed=%t", changed), func(t *testing.T) {
			store, table := txStore(t)
			other := numbersTable(t, store, "other")
			put(t, store, table, map[int64]int64{1: 10})
			tx := begin(t, store)
			must.Get(tx.Get(table, 1))(t)
			if changed {
				put(t, store, table, map[int64]int64{1: 11})
			}
			must.Do(t, errors.Join(tx.Insert(other, number(9, 9)), store.DropTable(table.Name())))
			if _, err := tx.Get(table, 1); !errors.Is(err, oribi.ErrNoTable) {
				t.Errorf("a read of the dropped table: %v", err)
			}
			if _, err := tx.Commit(); errors.Is(err, oribi.ErrConflict) != changed || (err == nil) == changed {
				t.Errorf("commit: %v", err)
			}
		})
	}
}
