// Package isolation runs concurrent transactions and checks, without regard to timestamps, that
// some order of them explains all that they have read.
//
// Transactions read and append to lists, each in one row, and read, add to and delete from sets,
// whose elements are rows that are read by ranges of keys, by cursors, or by indexes, and deleted one by one or by
// ranges of keys. Each element is written once. So what a
// read has seen determines which transactions came before it and which did not: a cycle of such
// dependencies is a lost update, a write skew, a phantom, or the like. See check. At the same time,
// rows are flushed and compacted.
//
// A seed determines what each goroutine does, not how they are scheduled.
package isolation

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/schema"
	"github.com/oribi-db/oribi/vfs"
)

// Yielding is a context that lets other goroutines run when it is asked for its error, which a
// commit does between its steps.
type Yielding struct{ context.Context }

// Err returns the error of the context after other goroutines had time to run.
func (c Yielding) Err() error {
	for range 4 {
		runtime.Gosched()
	}
	return c.Context.Err()
}

// Counts is the work of a run.
type Counts struct {
	Transactions int64 // that were committed
	Conflicts    int64
	Reads        int64 // of committed transactions
	Jobs         int64 // flushes and compactions
}

const (
	byElement = "by_element"
	bySet     = "by_set"
)

const (
	lists   = 4
	sets    = 3
	writers = 4
)

// run is one run.
type run struct {
	store *oribi.Store
	lists *oribi.Table // key list, value its elements
	sets  *oribi.Table // key set and element
	plain *oribi.Table // set 0, without indexes

	clock   atomic.Int64
	element atomic.Int64

	mu     sync.Mutex
	rival  *rivals          // of which one goroutine knows
	ranges map[element]bool // blocks of set 0 that a transaction deletes
	txs    []transaction
	counts Counts
}

// Run runs about so many transactions in some goroutines. The error describes reads that no order
// of the transactions explains.
func Run(seed uint64, transactions int) (Counts, error) {
	r, err := open()
	if err != nil {
		return Counts{}, err
	}
	defer r.store.Close()
	var wg sync.WaitGroup
	errs := make([]error, writers)
	for g := range writers {
		wg.Go(func() {
			rng := rand.New(rand.NewPCG(seed, uint64(g)))
			for i := 0; i < transactions/writers && errs[g] == nil; i++ {
				if g == 0 && i%20 == 19 {
					errs[g] = r.job(rng)
				} else {
					errs[g] = r.transaction(rng)
				}
			}
		})
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		return r.counts, err
	}
	last, err := r.last()
	if err != nil {
		return r.counts, err
	}
	return r.counts, check(r.txs, last)
}

func open() (*run, error) {
	store, err := oribi.Open("/isolation", &oribi.Options{FS: vfs.NewMem(), Manual: true, RowSetBytes: 1 << 13})
	if err != nil {
		return nil, err
	}
	r := &run{store: store, ranges: map[element]bool{}}
	create := func(name string, columns []schema.Column, keys int, opts ...oribi.TableOption) *oribi.Table {
		var t *oribi.Table
		s, e := schema.New(columns, keys)
		if e == nil {
			t, e = store.CreateTable(name, s, opts...)
		}
		err = errors.Join(err, e)
		return t
	}
	r.lists = create("lists", []schema.Column{{Name: "list", Type: schema.Int32},
		{Name: "elements", Type: schema.Binary}}, 1)
	r.sets = create("sets", []schema.Column{{Name: "set", Type: schema.Int32}, {Name: "element", Type: schema.Int64}},
		2, oribi.Unique(byElement, "element"), oribi.Index(bySet, "set", "element"))
	r.plain = create("plain", []schema.Column{{Name: "set", Type: schema.Int32}, {Name: "element", Type: schema.Int64}}, 2)
	if err != nil {
		store.Close()
		return nil, err
	}
	return r, nil
}

// job flushes or compacts a table.
func (r *run) job(rng *rand.Rand) (err error) {
	table, ctx := []*oribi.Table{r.lists, r.sets, r.plain}[rng.IntN(3)], context.Background()
	switch rng.IntN(4) {
	case 0:
		err = table.Compact(ctx)
	case 1:
		_, err = table.CompactMajor(ctx)
	default:
		err = table.Flush(ctx)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.counts.Jobs++
	return err
}

// transaction runs one transaction of a few operations, some in an exclusive attempt, and records it
// if it commits.
func (r *run) transaction(rng *rand.Rand) error {
	ctx := Yielding{context.Background()}
	begin := r.clock.Add(1)
	var t transaction
	do := func(tx *oribi.Tx) error {
		t = transaction{begin: begin, adds: map[element]int{}, append: map[element]int{}}
		for range 1 + rng.IntN(4) {
			do := r.operation
			if rng.IntN(6) == 0 {
				do = r.undone
			}
			if err := do(rng, tx, &t); err != nil {
				return err
			}
			runtime.Gosched() // so that transactions overlap
		}
		return nil
	}
	var err error
	if rng.IntN(4) == 0 {
		err = r.store.Update(ctx, do, oribi.NoSync, oribi.Exclusive())
	} else {
		err = r.once(ctx, do)
	}
	t.end = r.clock.Add(1)
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case errors.Is(err, oribi.ErrConflict):
		r.counts.Conflicts++
		return nil
	case err != nil:
		return err
	}
	r.txs = append(r.txs, t)
	r.counts.Transactions++
	r.counts.Reads += int64(len(t.lists) + len(t.sets))
	return nil
}

// once runs a transaction without another attempt.
func (r *run) once(ctx context.Context, do func(*oribi.Tx) error) error {
	tx, err := r.store.Begin(ctx)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	if err := do(tx); err != nil {
		return err
	}
	_, err = tx.Commit(oribi.NoSync)
	return err
}

// operation does one operation of a transaction.
func (r *run) operation(rng *rand.Rand, tx *oribi.Tx, t *transaction) error {
	switch rng.IntN(9) {
	case 7: // delete a part of set 0
		return r.deleteRange(rng, tx, t)
	case 8: // add an element unless there is another one, of which a rival does the same
		return r.claim(rng, tx, t)
	case 6: // look for an element
		return r.look(tx, t, element(max(1, r.element.Load()-rng.Int64N(20))))
	case 0: // read
		_, err := r.list(tx, t, rng.IntN(lists))
		return err
	case 1: // append
		list := rng.IntN(lists)
		seen, err := r.list(tx, t, list)
		if err != nil {
			return err
		}
		e := element(r.element.Add(1))
		t.append[e] = list
		var cell []byte
		for _, old := range append(seen, e) {
			cell = binary.BigEndian.AppendUint64(cell, uint64(old))
		}
		return tx.Upsert(r.lists, oribi.Row{"list": list, "elements": cell})
	case 2: // delete the first element of a part of a set
		set := rng.IntN(sets)
		from := element(rng.Int64N(r.element.Load() + 1))
		for e, err := range r.scan(tx, t, set, from, from+50) {
			if err != nil {
				return err
			}
			if _, own := t.adds[e]; own {
				return nil // it would leave no trace
			}
			t.gone = append(t.gone, e)
			return tx.Delete(r.table(set), oribi.Row{"set": set, "element": int64(e)})
		}
		return nil
	case 3: // add
		return r.add(tx, t, rng.IntN(sets), element(r.element.Add(1)))
	}
	set, from, n := rng.IntN(sets), element(0), element(1)<<40
	if rng.IntN(2) == 0 { // the newest elements, and those to come
		from = element(max(0, r.element.Load()-rng.Int64N(60)))
	}
	for _, err := range r.scan(tx, t, set, from, from+n) {
		if err != nil {
			return err
		}
	}
	return nil
}

// table returns the table of a set.
func (r *run) table(set int) *oribi.Table {
	if set == 0 {
		return r.plain
	}
	return r.sets
}

// add adds an element to a set.
func (r *run) add(tx *oribi.Tx, t *transaction, set int, e element) error {
	t.adds[e] = set
	return tx.Upsert(r.table(set), oribi.Row{"set": set, "element": int64(e)})
}

// blockSize is the number of elements in a range that is deleted.
const blockSize = 16

// deleteRange deletes a block of set 0, which includes elements that other transactions add, unless one has
// done so already: each element is in at most one range.
func (r *run) deleteRange(rng *rand.Rand, tx *oribi.Tx, t *transaction) error {
	block := element(r.element.Load())/blockSize - element(rng.Int64N(3)) + 1
	r.mu.Lock()
	taken := block < 0 || r.ranges[block]
	r.ranges[block] = true
	r.mu.Unlock()
	if taken {
		return nil
	}
	d := setRange{block * blockSize, (block + 1) * blockSize}
	maps.DeleteFunc(t.adds, func(e element, set int) bool { return set == 0 && d.has(e) })
	t.ranges = append(t.ranges, d)
	return tx.DeleteRange(r.plain, oribi.Key{0, int64(d.from)}, oribi.Key{0, int64(d.to)})
}

// rivals are two elements, each of which is added if the other is not found.
type rivals struct {
	elements [2]element
	set      int // not 0
}

// claim looks for one of two rivals by the index, and adds the other one unless it finds it. The next caller
// takes the other part: of two transactions that overlap, one must conflict.
func (r *run) claim(rng *rand.Rand, tx *oribi.Tx, t *transaction) error {
	r.mu.Lock()
	mine, c := 1, r.rival
	r.rival = nil
	if c == nil {
		mine, c = 0, &rivals{[2]element{element(r.element.Add(1)), element(r.element.Add(1))}, 1 + rng.IntN(sets-1)}
		r.rival = c
	}
	r.mu.Unlock()
	if err := r.look(tx, t, c.elements[1-mine]); err != nil {
		return err
	}
	runtime.Gosched()
	return r.add(tx, t, c.set, c.elements[mine])
}

// undone does two operations of a transaction and rolls it back to the savepoint before. Their reads
// stay.
func (r *run) undone(rng *rand.Rand, tx *oribi.Tx, t *transaction) error {
	before, err := tx.Savepoint()
	if err != nil {
		return err
	}
	part := *t
	part.adds, part.append, part.gone = maps.Clone(t.adds), maps.Clone(t.append), slices.Clone(t.gone)
	part.ranges = slices.Clone(t.ranges)
	for range 2 {
		if err := r.operation(rng, tx, &part); err != nil {
			return err
		}
	}
	t.lists, t.sets = part.lists, part.sets
	return tx.RollbackTo(before)
}

// list reads a list. The elements that the transaction itself has appended are not part of the
// read.
func (r *run) list(tx *oribi.Tx, t *transaction, list int) (seen []element, err error) {
	row, err := tx.Get(r.lists, list)
	if err != nil && !errors.Is(err, oribi.ErrNotFound) {
		return nil, err
	}
	if err == nil {
		for cell := row["elements"].([]byte); len(cell) > 0; cell = cell[8:] {
			seen = append(seen, element(binary.BigEndian.Uint64(cell)))
		}
	}
	own := len(seen)
	for own > 0 && isIn(t.append, seen[own-1]) {
		own--
	}
	t.lists = append(t.lists, listRead{list, seen[:own:own]})
	return seen, nil
}

// look reads whether an element is in its set, by the index: that is a read of a part of each set.
func (r *run) look(tx *oribi.Tx, t *transaction, e element) error {
	row, err := tx.GetBy(r.sets, byElement, int64(e))
	if err != nil && !errors.Is(err, oribi.ErrNotFound) {
		return err
	}
	for set := 1; set < sets; set++ {
		read := setRead{set: set, from: e, to: e + 1, seen: map[element]bool{}}
		here := err == nil && row["set"] == int32(set)
		if here && !isIn(t.adds, e) || slices.Contains(t.gone, e) && r.within(t, &read, e) {
			read.seen[e] = true
		}
		t.sets = append(t.sets, read)
	}
	return nil
}

func isIn(m map[element]int, e element) bool {
	_, ok := m[e]
	return ok
}

// scan reads the elements of a set in [from, to), and records the read up to where the loop ends.
// Elements that the transaction itself has added or deleted are not part of the read.
func (r *run) scan(tx *oribi.Tx, t *transaction, set int, from, to element) func(func(element, error) bool) {
	return func(yield func(element, error) bool) {
		read := setRead{set: set, from: from, to: to, seen: map[element]bool{}}
		for _, e := range t.gone {
			read.seen[e] = true // it was there
		}
		for e := range read.seen {
			if !r.within(t, &read, e) {
				delete(read.seen, e)
			}
		}
		for e, err := range r.elements(tx, set, from, to) {
			if err != nil {
				yield(0, err)
				return
			}
			if !isIn(t.adds, e) {
				read.seen[e] = true
			}
			if !yield(e, nil) {
				read.to = e + 1
				for gone := range read.seen {
					if gone >= read.to {
						delete(read.seen, gone)
					}
				}
				break
			}
		}
		t.sets = append(t.sets, read.without(t.ranges)...)
	}
}

// elements reads the elements of a set in [from, to), by key, by a cursor, or by an index.
func (r *run) elements(tx *oribi.Tx, set int, from, to element) func(func(element, error) bool) {
	bounds := []oribi.RangeOption{oribi.From(oribi.Key{set, int64(from)}), oribi.To(oribi.Key{set, int64(to)})}
	where := oribi.Where(oribi.Eq("set", set), oribi.Ge("element", int64(from)), oribi.Lt("element", int64(to)))
	opts := []oribi.RowsOption{bounds[0], bounds[1]}
	switch {
	case from%4 == 1 && set > 0:
		opts = []oribi.RowsOption{where, oribi.OrderBy(bySet)}
	case from%4 == 2 && set > 0:
		opts = []oribi.RowsOption{where, oribi.Using(bySet)}
	case from%4 == 3:
		return func(yield func(element, error) bool) {
			c := tx.Cursor(r.table(set), bounds[0], bounds[1])
			defer c.Close()
			for c.Next() {
				if !yield(element(c.Key()[1].(int64)), nil) {
					return
				}
			}
			if c.Err() != nil {
				yield(0, c.Err())
			}
		}
	}
	return func(yield func(element, error) bool) {
		for row, err := range tx.Scan(r.table(set), opts...).Rows() {
			e := element(0)
			if err == nil {
				e = element(row["element"].(int64))
			}
			if !yield(e, err) {
				return
			}
		}
	}
}

// within reports whether an element that the transaction has deleted is in the range of a read: one
// of its reads has seen it there.
func (r *run) within(t *transaction, read *setRead, e element) bool {
	if e < read.from || e >= read.to {
		return false
	}
	for _, s := range t.sets {
		if s.set == read.set && s.seen[e] {
			return true
		}
	}
	return false
}

// last reads everything.
func (r *run) last() (t transaction, err error) {
	t.begin = r.clock.Add(1)
	tx, err := r.store.Begin(context.Background())
	if err != nil {
		return t, err
	}
	defer tx.Rollback()
	for list := range lists {
		if _, err := r.list(tx, &t, list); err != nil {
			return t, err
		}
	}
	for set := range sets {
		for _, err := range r.scan(tx, &t, set, 0, 1<<40) {
			if err != nil {
				return t, err
			}
		}
	}
	t.end = r.clock.Add(1)
	if r.counts.Transactions == 0 {
		return t, fmt.Errorf("no transaction was committed")
	}
	return t, nil
}
