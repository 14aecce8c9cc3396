package storetest

import (
	"context"
	"errors"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/internal/prooftest/isolation"
	"github.com/oribi-db/oribi/internal/seedtest"
	"github.com/oribi-db/oribi/schema"
	"github.com/oribi-db/oribi/vfs"
)

// cells is the content of a small table: the value of each key, 0 if it has no row.
type cells [6]int64

// txOp is one operation of a transaction and its result.
type txOp struct {
	kind     string // read, scan, back, write, delete
	key, end int    // back and scan read the keys in [key, end)
	limit    int    // of a scan
	value    int64  // written
	seen     cells  // the rows that a read or a scan has returned
}

// apply returns whether an operation has this result in a state, and the state after it.
func (op *txOp) apply(s cells) (bool, cells) {
	switch op.kind {
	case "write":
		s[op.key] = op.value
		return true, s
	case "delete":
		s[op.key] = 0
		return true, s
	}
	var want cells
	left := op.limit
	for i := range op.end - op.key {
		k := op.key + i
		if op.kind == "back" {
			k = op.end - 1 - i
		}
		if s[k] != 0 && left > 0 {
			want[k] = s[k]
			left--
		}
	}
	return op.seen == want, s
}

// transactions is the sequential specification of transactions over a small table: each is one
// operation. With porcupine's order of calls and returns, this is strict serializability.
var transactions = porcupine.Model{
	Init: func() any { return cells{} },
	Step: func(state, input, _ any) (ok bool, _ any) {
		s := state.(cells)
		for _, op := range input.([]txOp) {
			if ok, s = op.apply(s); !ok {
				return false, s
			}
		}
		return true, s
	},
}

// Transactions by several goroutines are strictly serializable, with concurrent flushes and
// compactions: each appears to take effect at one point between its begin and the end of its
// commit. Their shapes are those that anomalies need: updates of one row, of one of two rows that
// were read, and of a range that was counted.
func TestTransactionsAreLinearizable(t *testing.T) {
	rng := seedtest.Rand(t)
	all := int64(0) // of all histories: in one of them, transactions may happen to run one after another
	for range seedtest.Rounds(20, 6) {
		seed := rng.Uint64()
		history, conflicts := linearHistory(t, seed)
		must.Equal(t, porcupine.CheckOperationsTimeout(transactions, history, time.Minute), porcupine.Ok,
			"seed", seed, len(history), "transactions", conflicts, "conflicts")
		all += conflicts
	}
	if all == 0 {
		t.Error("no conflict in any history")
	}
}

// linearHistory runs transactions and returns those that have committed.
func linearHistory(t *testing.T, seed uint64) (history []porcupine.Operation, conflicts int64) {
	store := must.Get(oribi.Open("/store", &oribi.Options{FS: vfs.NewMem(), Manual: true}))(t)
	defer store.Close()
	table := tableOf(t, store, "cells", "k*:int32 v:int64")
	const clients, each = 4, 60
	var clock, value, refused atomic.Int64
	var mu sync.Mutex
	var wg sync.WaitGroup
	for id := range clients {
		r := rand.New(rand.NewPCG(seed, uint64(id)))
		wg.Go(func() {
			for i := range each {
				if id == 0 && i%10 == 9 {
					if err := errors.Join(table.Flush(context.Background()),
						table.Compact(context.Background())); err != nil {
						t.Error(err)
					}
					continue
				}
				op := porcupine.Operation{ClientId: id, Call: clock.Add(1)}
				ops, err := shapedTransaction(store, table, r, &value)
				op.Input, op.Return = ops, clock.Add(1)
				switch {
				case errors.Is(err, oribi.ErrConflict):
					refused.Add(1)
					continue
				case err != nil:
					t.Error(err)
					return
				}
				mu.Lock()
				history = append(history, op)
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	return history, refused.Load()
}

// shapedTransaction runs a transaction of one of some shapes, sometimes in an exclusive attempt.
func shapedTransaction(
	store *oribi.Store, table *oribi.Table, r *rand.Rand, value *atomic.Int64,
) (ops []txOp, err error) {
	ctx := isolation.Yielding{Context: context.Background()}
	shape := shapeOf(r, value)
	if r.IntN(5) == 0 {
		err = store.Update(ctx, func(tx *oribi.Tx) (err error) {
			ops, err = runShape(tx, table, shape)
			return err
		}, oribi.NoSync, oribi.Exclusive())
		return ops, err
	}
	tx, err := store.Begin(ctx)
	if err != nil {
		return nil, err
	}
	defer tx.Rollback()
	if ops, err = runShape(tx, table, shape); err == nil {
		_, err = tx.Commit(oribi.NoSync)
	}
	return ops, err
}

// shapeOf returns the operations of a transaction of one of some shapes.
func shapeOf(r *rand.Rand, value *atomic.Int64) (ops []txOp) {
	n := len(cells{})
	a, b := r.IntN(n), r.IntN(n)
	from, to := min(a, b), max(a, b)+1
	write := txOp{kind: "write", key: a, value: value.Add(1)}
	read := func(k int) txOp { return txOp{kind: "read", key: k, end: k + 1, limit: 1} }
	switch r.IntN(6) {
	case 0: // update a row
		ops = []txOp{read(a), write, read(a)}
	case 1: // update one of two rows
		ops = []txOp{read(a), read(b), write}
	case 2: // add a row to a range that was counted
		ops = []txOp{{kind: "scan", key: from, end: to, limit: n}, write}
	case 3: // delete a row of a range, then read the range
		ops = []txOp{{kind: "delete", key: b}, {kind: "back", key: from, end: to, limit: n}}
	case 4: // take the first row
		ops = []txOp{{kind: []string{"scan", "back"}[r.IntN(2)], key: from, end: to, limit: 1},
			{kind: "delete", key: -1}}
	default: // read only
		ops = []txOp{read(a), {kind: "scan", key: 0, end: n, limit: 1 + r.IntN(n)}}
	}
	return ops
}

// runShape carries out the operations and returns them with their results.
func runShape(tx *oribi.Tx, table *oribi.Table, shape []txOp) ([]txOp, error) {
	ops := slices.Clone(shape)
	for i := range ops {
		if ops[i].key < 0 { // the row that the scan has found
			if ops[i].key = slices.IndexFunc(ops[i-1].seen[:], func(v int64) bool { return v != 0 }); ops[i].key < 0 {
				ops = ops[:i]
				break
			}
		}
		if err := ops[i].run(tx, table); err != nil {
			return nil, err
		}
		runtime.Gosched() // so that transactions overlap
	}
	return ops, nil
}

// run runs an operation and notes its result.
func (op *txOp) run(tx *oribi.Tx, table *oribi.Table) error {
	switch op.kind {
	case "write":
		return tx.Upsert(table, oribi.Row{"k": op.key, "v": op.value})
	case "delete":
		return tx.Row(oribi.OpDeleteIgnore, table, oribi.Row{"k": op.key})
	case "read":
		row, err := tx.Get(table, op.key)
		if errors.Is(err, oribi.ErrNotFound) {
			return nil
		}
		if err == nil {
			op.seen[op.key] = row["v"].(int64)
		}
		return err
	}
	opts := []oribi.RowsOption{oribi.From(op.key), oribi.To(op.end), oribi.Limit(int64(op.limit))}
	if op.kind == "back" {
		opts = append(opts, oribi.Desc())
	}
	for row, err := range tx.Scan(table, opts...).Rows() {
		if err != nil {
			return err
		}
		op.seen[row["k"].(int32)] = row["v"].(int64)
	}
	return nil
}

// A transaction reads a row of which it has set all columns without the stored one, unless the row may be expired,
// or the table has got another column since.
func TestARowThatATransactionHasReplaced(t *testing.T) {
	ctx := context.Background()
	store, table := txStore(t)
	sessions := tableOf(t, store, "sessions", "k*:int64 until:timestamp", oribi.Expires("until", 0))
	tx := begin(t, store)
	must.Do(t, tx.Upsert(sessions, oribi.Row{"k": 1, "until": time.Now().Add(-time.Hour)}))
	must.Fail(t, must.Err(tx.Get(sessions, 1)), oribi.ErrNotFound)
	must.Do(t, tx.Upsert(table, number(1, 10)))
	must.Equal(t, must.Get(tx.Get(table, 1))(t)["v"], any(int64(10)))
	must.Do(t, table.Alter(ctx, oribi.AddColumn(schema.Column{Name: "w", Type: schema.Int64, Nullable: true}, 7)))
	must.Equal(t, must.Get(tx.Get(table, 1))(t)["w"], any(int64(7)))
	must.Do(t, tx.Delete(table, oribi.Row{"k": 1}))
	must.Fail(t, must.Err(tx.Get(table, 1)), oribi.ErrNotFound)
}
