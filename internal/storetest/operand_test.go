package storetest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/internal/seedtest"
	"github.com/oribi-db/oribi/mvcc"
	"github.com/oribi-db/oribi/schema"
	"github.com/oribi-db/oribi/vfs"
	"github.com/oribi-db/oribi/vfs/crashfs"
)

// operandColumns are the columns of operandModel, each with the kinds of operands that it takes.
const operandColumns = "k*:int64 a:int8? u:uint8=5 n:int64 d:decimal(5,2)? f:double? s:varchar(8)? b:binary?"

// operandModel has the rows of a table with operandColumns, computed with Go's own types: decimals as
// hundredths, nil for NULL.
type operandModel map[int64]oribi.Row

// bounds are the least and the greatest value of the columns of integers and decimals.
var bounds = map[string][2]int64{"a": {-128, 127}, "u": {0, 255}, "d": {-99999, 99999}}

// change is what an operation does to a column: it sets a value, or has an operand.
type operandChange struct {
	kind string // set, add, min, max, null, append
	v    any    // in the form of the model
}

var errRefused = errors.New("refused")

// after returns the value of a column after a change.
func (c operandChange) after(column string, before any) (any, error) {
	if c.kind == "set" {
		return c.v, nil
	}
	out := before
	switch {
	case before == nil:
		out = c.v
	case c.kind == "null":
	case c.kind == "append":
		out = before.(string) + c.v.(string)
	case c.kind == "add":
		switch x := before.(type) {
		case int64:
			out = x + c.v.(int64)
		case float64:
			out = x + c.v.(float64)
		}
	default:
		less := fmt.Sprint(c.v) < fmt.Sprint(before) // of strings
		switch x := before.(type) {
		case int64:
			less = c.v.(int64) < x
		case float64:
			less = c.v.(float64) < x
		}
		if c.v != before && less == (c.kind == "min") {
			out = c.v
		}
	}
	if b, ok := bounds[column]; ok && (out.(int64) < b[0] || out.(int64) > b[1]) || column == "s" && len(out.(string)) > 8 {
		return nil, errRefused
	}
	return out, nil
}

// given returns the change as a value of a Row.
func (c operandChange) given(column string) any {
	v := c.v
	if x, ok := v.(int64); ok && column == "d" {
		v = oribi.NewDecimal(x, 2)
	}
	switch c.kind {
	case "add":
		return oribi.Add(v)
	case "min":
		return oribi.Min(v)
	case "max":
		return oribi.Max(v)
	case "null":
		return oribi.SetIfNull(v)
	case "append":
		return oribi.Append(v)
	}
	return v
}

// operandOp is an operation of a write batch.
type operandOp struct {
	op      oribi.Op
	key     int64
	changes map[string]operandChange
}

func (o operandOp) row() oribi.Row {
	row := oribi.Row{"k": o.key}
	for column, c := range o.changes {
		row[column] = c.given(column)
	}
	return row
}

// apply carries out an operation, unless it is refused, and returns the results of its operands.
func (m operandModel) apply(o operandOp) (results oribi.Row, err error) {
	before, exists := m[o.key]
	switch o.op {
	case oribi.OpDelete:
		if !exists {
			return nil, errRefused
		}
		delete(m, o.key)
		return nil, nil
	case oribi.OpUpdate, oribi.OpUpdateIgnore:
		if !exists && o.op == oribi.OpUpdate {
			return nil, errRefused
		}
		if !exists {
			return nil, nil
		}
	default:
		if _, ok := o.changes["n"]; !exists && !ok {
			return nil, errRefused
		}
	}
	row := maps.Clone(before)
	if !exists {
		row = oribi.Row{"k": o.key, "u": int64(5), "a": nil, "d": nil, "f": nil, "s": nil, "b": nil}
	}
	results = oribi.Row{}
	for column, c := range o.changes {
		if row[column], err = c.after(column, row[column]); err != nil {
			return nil, err
		}
		if c.kind != "set" {
			results[column] = row[column]
		}
	}
	m[o.key] = row
	return results, nil
}

// modelValue returns a value of the store in the form of the model.
func modelValue(v any) any {
	switch x := v.(type) {
	case int8:
		return int64(x)
	case uint8:
		return int64(x)
	case oribi.Decimal:
		return int64(x.Unscaled.Lo)
	case []byte:
		return string(x)
	}
	return v
}

func randomOperandOp(r *rand.Rand) operandOp {
	o := operandOp{key: r.Int64N(12), changes: map[string]operandChange{}}
	o.op = []oribi.Op{oribi.OpUpsert, oribi.OpUpsert, oribi.OpUpdate, oribi.OpUpsertIgnore, oribi.OpUpdateIgnore,
		oribi.OpDelete}[r.IntN(6)]
	if o.op == oribi.OpDelete {
		return o
	}
	columns := []string{"a", "u", "n", "d", "f", "s", "b"}
	for len(o.changes) == 0 {
		for _, c := range columns {
			if r.IntN(3) == 0 {
				o.changes[c] = randomChange(r, c)
			}
		}
	}
	if r.IntN(4) > 0 && o.op != oribi.OpUpdate {
		o.changes["n"] = randomChange(r, "n")
	}
	return o
}

func randomChange(r *rand.Rand, column string) operandChange {
	var v any
	kinds := []string{"set", "add", "add", "min", "max", "null"}
	switch column {
	case "a", "u", "n":
		v = r.Int64N(61) - 20
	case "d":
		v = r.Int64N(30001) - 10000
	case "f":
		v = float64(r.IntN(1000))/8 - 20
	default:
		kinds = []string{"set", "append", "append", "min", "max", "null"}
		v = strings.Repeat(string(rune('a'+r.IntN(4))), r.IntN(4))
	}
	c := operandChange{kinds[r.IntN(len(kinds))], v}
	if x, ok := v.(int64); ok && column == "u" && c.kind != "add" {
		c.v = max(x, 0)
	}
	return c
}

// Random write batches with operands of each kind, in columns of each type, on rows in memory and in
// files: the rows, the results, the refused rows, and all earlier states are those of the model.
func TestOperandsMatchTheModel(t *testing.T) {
	for seed := range seedtest.Rounds[uint64](30, 6) {
		t.Run(fmt.Sprint("seed=", seed), func(t *testing.T) { checkOperands(t, rand.New(rand.NewPCG(seed, 72))) })
	}
}

func checkOperands(t *testing.T, r *rand.Rand) {
	ctx := context.Background()
	fs := vfs.NewMem()
	open := func() (*oribi.Store, *oribi.Table) {
		store := must.Get(oribi.Open("/o", &oribi.Options{FS: fs, Manual: true, History: oribi.HistoryForever}))(t)
		if table, err := store.Table("o"); err == nil {
			return store, table
		}
		return store, tableOf(t, store, "o", operandColumns)
	}
	store, table := open()
	defer func() { store.Close() }()
	m := operandModel{}
	states := map[mvcc.Timestamp]operandModel{}
	for step := range 150 {
		switch r.IntN(25) {
		case 0:
			must.Do(t, table.Flush(ctx))
		case 1:
			must.Do(t, table.Compact(ctx))
		case 2:
			must.Do(t, store.Close())
			store, table = open()
		}
		b, next := store.NewBatch(), maps.Clone(m)
		partial := r.IntN(2) == 0
		var results []oribi.Result
		var refused []int
		for i := range 1 + r.IntN(6) {
			o := randomOperandOp(r)
			b.Row(o.op, table, o.row())
			got, err := next.apply(o)
			if err != nil {
				refused = append(refused, i)
			}
			for _, c := range table.Schema().Columns {
				if v, ok := got[c.Name]; ok {
					results = append(results, oribi.Result{Row: i, Column: c.Name, Value: v})
				}
			}
		}
		if !partial && len(refused) > 0 {
			_, err := b.Commit(ctx)
			var row *oribi.RowError
			if !errors.As(err, &row) || row.Row != refused[0] {
				t.Fatalf("step %d: %v, want row %d to be refused", step, err, refused[0])
			}
			must.Equal(t, len(b.Results()), 0, "results of a batch that has failed")
			continue
		}
		ts := must.Get(b.CommitPartial(ctx))(t)
		var out []int
		for _, e := range b.Refused() {
			out = append(out, e.Row)
		}
		must.Equal(t, out, refused, "step", step, b.Refused())
		got := b.Results()
		for i := range got {
			got[i].Value = modelValue(got[i].Value)
		}
		must.Equal(t, got, results, "step", step)
		m, states[ts] = next, next
		compareOperands(t, table, m)
		if at := r.IntN(len(states)); step%10 == 0 {
			ts := slices.Sorted(maps.Keys(states))[at]
			compareOperands(t, table, states[ts], oribi.AsOf(ts))
		}
	}
	for ts, state := range states {
		compareOperands(t, table, state, oribi.AsOf(ts))
	}
	must.Do(t, store.Verify(ctx, nil))
}

func compareOperands(t *testing.T, table *oribi.Table, want operandModel, opts ...oribi.ScanOption) {
	t.Helper()
	n := 0
	for row := range must.All(t, table.Scan(context.Background(), opts...).Rows()) {
		for c, v := range row {
			row[c] = modelValue(v)
		}
		if n++; !reflect.DeepEqual(row, want[row["k"].(int64)]) {
			t.Fatalf("row %v, want %v", row, want[row["k"].(int64)])
		}
	}
	must.Equal(t, n, len(want), "rows")
}

// 32 goroutines add to one row, alone, in transactions, and to several columns at once: no increment is
// lost or refused, and the results of each kind of increment are 1 to its number, each once.
func TestConcurrentIncrementsCountOnce(t *testing.T) {
	ctx := context.Background()
	store := must.Get(oribi.Open("/i", &oribi.Options{FS: vfs.NewMem()}))(t)
	defer store.Close()
	table := tableOf(t, store, "counters", "k*:int64 batch:int64 tx:int64 both:int64?")
	const goroutines = 32
	rounds := seedtest.Rounds(60, 20)
	seen := make([][]int64, goroutines)
	var wg sync.WaitGroup
	for g := range goroutines {
		wg.Go(func() {
			b := store.NewBatch()
			for i := range rounds {
				b.Upsert(table, oribi.Row{"k": 1, "batch": oribi.Add(1), "both": oribi.Add(1), "tx": oribi.Add(0)})
				if _, err := b.Commit(ctx, oribi.NoSync); err != nil {
					t.Error(err)
					return
				}
				seen[g] = append(seen[g], b.Results()[0].Value.(int64))
				tx, err := store.Begin(ctx)
				if err != nil {
					t.Error(err)
					return
				}
				op := []oribi.Op{oribi.OpUpdate, oribi.OpUpsert}[(g+i)%2]
				err = tx.Row(op, table, oribi.Row{"k": 1, "tx": oribi.Add(1), "both": oribi.Add(1), "batch": oribi.Add(0)})
				if err == nil {
					_, err = tx.Commit(oribi.NoSync)
				}
				if err != nil {
					t.Error(err)
				}
				if g == 0 && i%8 == 0 {
					if err := table.Flush(ctx); err != nil {
						t.Error(err)
					}
				}
			}
		})
	}
	wg.Wait()
	n := int64(goroutines * rounds)
	must.Equal(t, must.Get(table.Get(ctx, 1))(t), oribi.Row{"k": int64(1), "batch": n, "tx": n, "both": 2 * n})
	all := slices.Sorted(slices.Values(slices.Concat(seen...)))
	for i, v := range all {
		must.Equal(t, v, int64(i+1), "results in order")
	}
}

// Operands that do not fit are refused when the row is added, results that do not fit by the commit, with
// table, key, column, and numbers; nothing changes.
func TestBadOperandsChangeNothing(t *testing.T) {
	ctx := context.Background()
	store := must.Get(oribi.Open("/b", &oribi.Options{FS: vfs.NewMem(), CellLimit: 10}))(t)
	defer store.Close()
	table := tableOf(t, store, "bad", operandColumns+" i:int32?! when:timestamp? flag:bool?")
	first := oribi.Row{"k": 1, "a": 127, "u": 0, "n": int64(1) << 62, "d": oribi.NewDecimal(99999, 2), "s": "12345678",
		"b": "0123456789", "i": 1, "when": nil, "flag": true, "f": 1e308}
	b := store.NewBatch()
	b.Insert(table, first)
	must.Get(b.Commit(ctx))(t)
	before := must.Get(table.Get(ctx, 1))(t)
	for _, c := range []struct {
		op     oribi.Op
		column string
		v      any
		text   string
		cause  error
	}{
		{oribi.OpUpdate, "a", oribi.Add(1), `row 0 of table "bad" key 1: column "a": 127 + 1 is out of range for int8`, oribi.ErrOverflow},
		{oribi.OpUpsert, "u", oribi.Add(-1), `column "u": 0 + -1 is out of range for uint8`, oribi.ErrOverflow},
		{oribi.OpUpsert, "d", oribi.Add(0.01), `column "d": 999.99 + 0.01 is out of range for decimal(5,2)`, oribi.ErrOverflow},
		{oribi.OpUpdateIgnore, "f", oribi.Add(1e308), `column "f": 1e+308 + 1e+308 is out of range for double`, oribi.ErrOverflow},
		{oribi.OpUpdate, "n", oribi.Add(int64(1) << 62), `+ 4611686018427387904 is out of range for int64`, oribi.ErrOverflow},
		{oribi.OpUpdate, "s", oribi.Append("x"), `column "s": Append: the result has 9 characters, varchar(8) has at most 8`, oribi.ErrOverflow},
		{oribi.OpUpdate, "b", oribi.Append("x"), `column "b": Append: 11 bytes, limit 10 (Options.CellLimit)`, oribi.ErrOverflow},
		{oribi.OpUpdate, "i", oribi.Add(1), `column "i": immutable`, oribi.ErrRow},
		{oribi.OpUpsert, "i", oribi.Max(1), `column "i": immutable`, oribi.ErrRow},
		{oribi.OpUpdate, "s", oribi.Add(1), `row 0 of table "bad": column "s": Add(1): Add does not take a column of type varchar(8)`, oribi.ErrRow},
		{oribi.OpUpdate, "when", oribi.Add(1), `Add does not take a column of type timestamp`, oribi.ErrRow},
		{oribi.OpUpdate, "flag", oribi.Add(1), `Add does not take a column of type bool`, oribi.ErrRow},
		{oribi.OpUpdate, "a", oribi.Append("x"), `column "a": Append('x'): Append does not take a column of type int8`, oribi.ErrRow},
		{oribi.OpUpdate, "a", oribi.Add("x"), `column "a": Add('x'): a string does not fit type int8`, oribi.ErrRow},
		{oribi.OpUpdate, "a", oribi.Add(0.5), `column "a": Add(0.5): 0.5 cannot be represented exactly as int8`, oribi.ErrRow},
		{oribi.OpUpdate, "a", oribi.Max(128), `column "a": Max(128): 128 is out of range for int8`, oribi.ErrRow},
		{oribi.OpUpdate, "a", oribi.SetIfNull(nil), `column "a": SetIfNull(NULL): an operand that is NULL`, oribi.ErrRow},
		{oribi.OpUpdate, "a", oribi.Operand{}, `column "a": an operand that is empty: use Add, Min`, oribi.ErrRow},
		{oribi.OpUpdate, "b", oribi.Append("0123456789X"), `column "b": 11 bytes, limit 10`, oribi.ErrRow},
		{oribi.OpUpdate, "k", oribi.Add(1), `column "k": Add in a key column, which takes values only`, oribi.ErrRow},
		{oribi.OpInsert, "a", oribi.Add(1), `column "a": Add in an insert, which takes values only: use an upsert`, oribi.ErrRow},
		{oribi.OpDelete, "a", oribi.Add(1), `column "a": a delete takes the key columns only`, oribi.ErrRow},
		{oribi.OpUpdate, "x", oribi.Add(1), `column "x": no such column`, oribi.ErrRow},
	} {
		b := store.NewBatch()
		row := oribi.Row{"k": 1}
		row[c.column] = c.v
		b.Row(c.op, table, row)
		_, err := b.Commit(ctx)
		must.Fail(t, err, c.cause, c.column, c.v)
		must.Fail(t, err, oribi.ErrRow, c.column, c.v)
		must.Contain(t, err.Error(), c.text)
		must.Equal(t, must.Get(table.Get(ctx, 1))(t), before, c.column, c.v)
	}
	_, err := table.Get(ctx, oribi.Key{oribi.Add(1)})
	must.Contain(t, err.Error(), "Operand does not fit type int64")
}

// A transaction that writes operands reads nothing, until it reads the row.
func TestOperandsInTransactions(t *testing.T) {
	ctx := context.Background()
	store := must.Get(oribi.Open("/x", &oribi.Options{FS: vfs.NewMem()}))(t)
	defer store.Close()
	table := tableOf(t, store, "x", "k*:int64 n:int8? s:string?")
	write := func(op oribi.Op, row oribi.Row) {
		t.Helper()
		b := store.NewBatch()
		b.Row(op, table, row)
		must.Get(b.Commit(ctx))(t)
	}
	n := func(row oribi.Row, err error) any { must.Do(t, err); return row["n"] }
	begin := func() *oribi.Tx { t.Helper(); return must.Get(store.Begin(ctx))(t) }
	write(oribi.OpInsert, oribi.Row{"k": 1, "n": 10})

	tx := begin()
	must.Do(t, tx.Update(table, oribi.Row{"k": 1, "n": oribi.Add(1)}))
	must.Do(t, tx.Upsert(table, oribi.Row{"k": 1, "n": oribi.Add(2)}))
	must.Do(t, tx.Upsert(table, oribi.Row{"k": 2, "n": oribi.Add(5)}))
	write(oribi.OpUpdate, oribi.Row{"k": 1, "n": 50})
	must.Get(tx.Commit())(t)
	must.Equal(t, n(table.Get(ctx, 1)), any(int8(53)), "another writer came in between")
	must.Equal(t, n(table.Get(ctx, 2)), any(int8(5)))

	tx = begin()
	must.Do(t, tx.Update(table, oribi.Row{"k": 1, "n": oribi.Add(1), "s": oribi.Append("a")}))
	must.Do(t, tx.Update(table, oribi.Row{"k": 1, "s": oribi.Append("b"), "n": oribi.Min(20)}))
	must.Equal(t, must.Get(tx.Get(table, 1))(t), oribi.Row{"k": int64(1), "n": int8(20), "s": "ab"})
	write(oribi.OpUpdate, oribi.Row{"k": 1, "n": oribi.Add(1)})
	must.Fail(t, must.Err(tx.Commit()), oribi.ErrConflict, "the row was read")

	tx = begin()
	must.Fail(t, tx.Update(table, oribi.Row{"k": 9, "n": oribi.Add(1)}), oribi.ErrNotFound)
	must.Do(t, tx.Update(table, oribi.Row{"k": 1, "n": oribi.Add(1)}))
	write(oribi.OpInsert, oribi.Row{"k": 9})
	must.Fail(t, must.Err(tx.Commit()), oribi.ErrConflict, "a row was missed that exists now")

	tx = begin()
	must.Do(t, tx.Update(table, oribi.Row{"k": 9, "n": oribi.Add(1)}))
	write(oribi.OpDelete, oribi.Row{"k": 9})
	must.Fail(t, must.Err(tx.Commit()), oribi.ErrConflict, "the row is gone")

	tx = begin()
	must.Do(t, tx.Update(table, oribi.Row{"k": 1, "n": oribi.Add(70)}))
	write(oribi.OpUpdate, oribi.Row{"k": 1, "n": 100})
	err := must.Err(tx.Commit())
	must.Fail(t, err, oribi.ErrOverflow)
	must.Contain(t, err.Error(), `key 1: column "n": 100 + 70`)

	// Sums of one row are one operation, also after a rollback to a savepoint.
	tx = begin()
	write(oribi.OpUpdate, oribi.Row{"k": 1, "n": 0})
	for range 3 {
		must.Do(t, tx.Upsert(table, oribi.Row{"k": 1, "n": oribi.Add(5)}))
	}
	sp := must.Get(tx.Savepoint())(t)
	for range 20 {
		must.Do(t, tx.Upsert(table, oribi.Row{"k": 1, "n": oribi.Add(5)}))
	}
	must.Do(t, tx.RollbackTo(sp))
	must.Do(t, tx.Upsert(table, oribi.Row{"k": 1, "n": oribi.Add(-4)}))
	must.Get(tx.Commit())(t)
	must.Equal(t, n(table.Get(ctx, 1)), any(int8(11)))

	// The results are those of the rows that were written and not undone, by their positions.
	tx = begin()
	must.Do(t, tx.Update(table, oribi.Row{"k": 1, "n": oribi.Add(1), "s": oribi.Append("c")}))
	must.Fail(t, tx.Insert(table, oribi.Row{"k": 2}), oribi.ErrKeyExists)
	sp = must.Get(tx.Savepoint())(t)
	must.Do(t, tx.Upsert(table, oribi.Row{"k": 1, "n": oribi.Add(50)}))
	must.Do(t, tx.RollbackTo(sp))
	must.Do(t, tx.DeleteRange(table, 5, 8))
	must.Do(t, tx.Upsert(table, oribi.Row{"k": 6, "n": 1}))
	must.Do(t, tx.Upsert(table, oribi.Row{"k": 2, "n": oribi.Add(3)}))
	must.Do(t, tx.Upsert(table, oribi.Row{"k": 2, "n": oribi.Add(4)}))
	must.Do(t, tx.Update(table, oribi.Row{"k": 1, "n": oribi.Max(2)}))
	must.Equal(t, len(tx.Results()), 0, "results before Commit")
	must.Get(tx.Commit())(t)
	must.Equal(t, tx.Results(), []oribi.Result{{Row: 0, Column: "n", Value: int8(12)}, {Row: 0, Column: "s", Value: "c"},
		{Row: 3, Column: "n", Value: int8(12)}, {Row: 4, Column: "n", Value: int8(12)}})
	tx = begin()
	must.Do(t, tx.Update(table, oribi.Row{"k": 1, "n": oribi.Add(-1), "s": nil}))
	must.Get(tx.Get(table, 1))(t)
	write(oribi.OpUpdate, oribi.Row{"k": 1, "s": "x"})
	must.Fail(t, must.Err(tx.Commit()), oribi.ErrConflict)
	must.Equal(t, len(tx.Results()), 0, "results of a transaction that has failed")

	// The write batch sees its own operations, conditions those before them.
	write(oribi.OpUpdate, oribi.Row{"k": 1, "n": 11})
	b := store.NewBatch()
	b.Update(table, oribi.Row{"k": 1, "n": oribi.Add(1)})
	must.Equal(t, n(b.Get(ctx, table, 1)), any(int8(12)))
	b.If(table, oribi.Row{"k": 1}, oribi.Eq("n", 12))
	b.UpdateIf(table, oribi.Row{"k": 1, "n": oribi.Add(1)}, oribi.Lt("n", 13))
	b.UpdateIf(table, oribi.Row{"k": 1, "n": oribi.Add(1)}, oribi.Lt("n", 13))
	must.Get(b.CommitPartial(ctx))(t)
	must.Equal(t, len(b.Refused()), 1)
	must.Equal(t, n(table.Get(ctx, 1)), any(int8(13)))
}

// UpdateWhere computes the new value of each row, and changes none if one does not fit.
func TestUpdateWhereWithOperands(t *testing.T) {
	ctx := context.Background()
	store := must.Get(oribi.Open("/w", &oribi.Options{FS: vfs.NewMem()}))(t)
	defer store.Close()
	table := tableOf(t, store, "w", "k*:int64 n:int8? s:string?")
	b := store.NewBatch()
	for k := range 100 {
		b.Insert(table, oribi.Row{"k": k, "n": k})
	}
	must.Get(b.Commit(ctx))(t)
	must.Do(t, table.Flush(ctx))
	sum := func() (sum int) {
		for row := range must.All(t, table.Scan(ctx).Rows()) {
			sum += int(row["n"].(int8))
		}
		return sum
	}
	must.Equal(t, sum(), 4950)
	res := must.Get(table.UpdateWhere(ctx, oribi.Row{"n": oribi.Add(10), "s": "x"}, oribi.Where(oribi.Lt("n", 50)),
		oribi.PieceBytes(1000)))(t)
	must.Equal(t, res.Rows, 50)
	must.Equal(t, sum(), 4950+500)
	err := must.Err(table.UpdateWhere(ctx, oribi.Row{"n": oribi.Add(30), "s": oribi.Append("y")}))
	must.Fail(t, err, oribi.ErrOverflow)
	must.Contain(t, err.Error(), `column "n": 98 + 30`)
	must.Equal(t, sum(), 4950+500)
	must.Equal(t, must.Get(table.UpdateWhere(ctx, oribi.Row{"n": oribi.Max(20)}))(t).Rows, 10)
	must.Fail(t, must.Err(table.UpdateWhere(ctx, oribi.Row{"s": oribi.Add(1)})), oribi.ErrSchema)
	must.Fail(t, must.Err(table.UpdateWhere(ctx, oribi.Row{"k": oribi.Add(1)})), oribi.ErrSchema)
}

// Operands find columns by their IDs if the table is altered before the commit.
func TestOperandsAfterAlter(t *testing.T) {
	ctx := context.Background()
	store := must.Get(oribi.Open("/a", &oribi.Options{FS: vfs.NewMem()}))(t)
	defer store.Close()
	table := tableOf(t, store, "a", "k*:int64 n:int64 gone:int64?")
	b := store.NewBatch()
	b.Upsert(table, oribi.Row{"k": 1, "n": oribi.Add(5), "gone": oribi.Add(1)})
	b.Upsert(table, oribi.Row{"k": 1, "n": oribi.Add(6)})
	b.Update(table, oribi.Row{"k": 1, "gone": oribi.Add(6)})
	b.UpdateIgnore(table, oribi.Row{"k": 1, "n": 100, "gone": oribi.Add(6)})
	must.Do(t, table.Alter(ctx, oribi.RenameColumn("n", "m"), oribi.DropColumn("gone"),
		oribi.AddColumn(schema.Column{Name: "n", Type: schema.String, Nullable: true})))
	must.Equal(t, must.Get(b.Get(ctx, table, 1))(t), oribi.Row{"k": int64(1), "m": int64(100), "n": nil})
	must.Get(b.Commit(ctx))(t)
	must.Equal(t, b.Results(), []oribi.Result{{Row: 0, Column: "m", Value: int64(5)}, {Row: 1, Column: "m", Value: int64(11)}})
	must.Equal(t, must.Get(table.Get(ctx, 1))(t), oribi.Row{"k": int64(1), "m": int64(100), "n": nil})
}

// Goroutines add to one row, each also to a row of its own, amid flushes, and the power is cut: the counter
// has each acknowledged increment, none twice, and is the sum of the rows.
func TestIncrementsCountOnceAfterCrashes(t *testing.T) {
	ctx := context.Background()
	disk := crashfs.New(vfs.NewMem())
	store := must.Get(oribi.Open("/c", &oribi.Options{FS: disk, Manual: true}))(t)
	table := tableOf(t, store, "counters", "k*:int64 n:int64")
	type crashed struct {
		least, most int64 // increments
		state       crashfs.State
	}
	var acknowledged, begun atomic.Int64
	var states []crashed
	rng := rand.New(rand.NewPCG(seedtest.Seed(t), 72))
	operations := 0
	disk.OnOperation(func(c crashfs.Operation) error {
		if operations++; operations%4 == 0 {
			least := acknowledged.Load() // of those after here, some may be durable
			for s := range c.Point().States(rng.Uint64(), 2) {
				states = append(states, crashed{least, begun.Load(), s})
			}
		}
		return nil
	})
	const goroutines = 4
	rounds := seedtest.Rounds(100, 30)
	var wg sync.WaitGroup
	for g := range goroutines {
		wg.Go(func() {
			b := store.NewBatch()
			for i := range rounds {
				b.Upsert(table, oribi.Row{"k": 0, "n": oribi.Add(1)})
				b.Upsert(table, oribi.Row{"k": 1 + g, "n": oribi.Add(1)})
				begun.Add(1)
				_, err := b.Commit(ctx)
				acknowledged.Add(1)
				if g == 0 && i%10 == 9 && err == nil {
					err = table.Flush(ctx)
				}
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	disk.OnOperation(nil)
	must.Do(t, store.Close())
	seen := map[int64]bool{}
	for _, c := range states {
		after := must.Get(oribi.Open("/c", &oribi.Options{FS: c.state.Image, Manual: true}))(t)
		rows := map[int64]int64{}
		for row := range must.All(t, must.Get(after.Table("counters"))(t).Scan(ctx).Rows()) {
			rows[row["k"].(int64)] = row["n"].(int64)
		}
		sum := int64(0)
		for g := range int64(goroutines) {
			sum += rows[1+g]
		}
		if n := rows[0]; n < c.least || n > c.most || n != sum {
			t.Errorf("%s: the counter is %d, of %d to %d increments; the sum is %d", c.state.Name, n, c.least, c.most, sum)
		}
		seen[rows[0]] = true
		must.Do(t, after.Close())
	}
	if len(seen) < 4 { // each goroutine's commits alone make more; the batches of several may share a write
		t.Errorf("%d different states", len(seen))
	}
}

// A field of a struct may be an operand; the zero one leaves its column unset.
func TestOperandsInStructs(t *testing.T) {
	ctx := context.Background()
	store := must.Get(oribi.Open("/s", &oribi.Options{FS: vfs.NewMem()}))(t)
	defer store.Close()
	table := tableOf(t, store, "s", "k*:int64 n:int64 s:string?")
	type visit struct {
		S oribi.Operand
		K int64
		N oribi.Operand
	}
	typed := must.Get(oribi.Typed[visit](table))(t)
	b := store.NewBatch()
	typed.InBatch(b).Add(oribi.OpUpsert, visit{K: 1, N: oribi.Add(1)}, visit{K: 1, N: oribi.Add(2), S: oribi.Append("a")},
		visit{K: 1, S: oribi.Append("b")})
	must.Get(b.Commit(ctx))(t)
	must.Equal(t, b.Results(), []oribi.Result{{Row: 0, Column: "n", Value: int64(1)}, {Row: 1, Column: "n", Value: int64(3)},
		{Row: 1, Column: "s", Value: "a"}, {Row: 2, Column: "s", Value: "ab"}})
	must.Get(oribi.Patch(ctx, table, visit{K: 1, N: oribi.Max(7)}))(t)
	must.Equal(t, must.Get(table.Get(ctx, 1))(t), oribi.Row{"k": int64(1), "n": int64(7), "s": "ab"})
	must.Fail(t, must.Err(oribi.Patch(ctx, table, visit{K: 1, N: oribi.Append("x")})), oribi.ErrRow)
	must.Fail(t, must.Err(oribi.Patch(ctx, table, visit{K: 1})), oribi.ErrRow, "no column is set")
	must.Fail(t, must.Err(typed.Get(ctx, 1)), oribi.ErrSchema, "an operand cannot be read")
}

// Goroutines add to columns that are in a unique index and in another one: what is not refused is in the rows
// and in the indexes, once.
func TestOperandsKeepIndexes(t *testing.T) {
	ctx := context.Background()
	store := must.Get(oribi.Open("/u", &oribi.Options{FS: vfs.NewMem()}))(t)
	defer store.Close()
	table := tableOf(t, store, "u", "k*:int64 n:int64 m:int64?", oribi.Unique("by_n", "n"), oribi.Index("by_m", "m"))
	const goroutines, keys = 8, 6
	rounds := seedtest.Rounds(100, 40)
	b := store.NewBatch()
	for k := range keys {
		b.Insert(table, oribi.Row{"k": k, "n": 10 * k})
	}
	must.Get(b.Commit(ctx))(t)
	var added, times, refused atomic.Int64
	var wg sync.WaitGroup
	for g := range goroutines {
		wg.Go(func() {
			rng := rand.New(rand.NewPCG(uint64(g), 72))
			b := store.NewBatch()
			for i := range rounds {
				deltas := map[int]int64{}
				for row := range 1 + rng.IntN(3) {
					deltas[row] = rng.Int64N(9) - 4
					b.Update(table, oribi.Row{"k": rng.IntN(keys), "n": oribi.Add(deltas[row]), "m": oribi.Add(1)})
				}
				if _, err := b.CommitPartial(ctx, oribi.NoSync); err != nil {
					t.Error(err)
				}
				for _, e := range b.Refused() {
					if delete(deltas, e.Row); !errors.Is(e, oribi.ErrNotUnique) {
						t.Error(e)
					}
					refused.Add(1)
				}
				for _, d := range deltas {
					added.Add(d)
					times.Add(1)
				}
				if len(b.Results()) != 2*len(deltas) {
					t.Errorf("%d results of %d rows", len(b.Results()), len(deltas))
				}
				if g == 0 && i%10 == 0 {
					if err := table.Flush(ctx); err != nil {
						t.Error(err)
					}
				}
			}
		})
	}
	wg.Wait()
	n, m := int64(0), int64(0)
	for row := range must.All(t, table.Scan(ctx).Rows()) {
		must.Equal(t, must.Get(table.GetBy(ctx, "by_n", row["n"]))(t), row)
		n, m = n+row["n"].(int64), m+row["m"].(int64)
	}
	must.Equal(t, n, 10*keys*(keys-1)/2+added.Load())
	must.Equal(t, m, times.Load())
	must.Do(t, store.Verify(ctx, func(f oribi.Finding) { t.Error(f) }))
	if refused.Load() == 0 {
		t.Error("no row was refused")
	}
}
