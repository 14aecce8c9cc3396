package tablet

import (
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/bloom"
	"github.com/oribi-db/oribi/change"
	"github.com/oribi-db/oribi/internal/expiry"
	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/internal/record"
	"github.com/oribi-db/oribi/lsn"
	"github.com/oribi-db/oribi/mvcc"
	"github.com/oribi-db/oribi/schema"
)

// OpKind is the kind of an operation on a row. Source: tablet spec §12.4.
type OpKind uint8

// The eight operations. The Ignore kinds do nothing where the others are errors.
const (
	Insert OpKind = iota + 1
	Upsert
	Update
	Delete
	InsertIgnore
	UpsertIgnore
	UpdateIgnore
	DeleteIgnore
)

var opKindNames = [...]string{"", "insert", "upsert", "update", "delete", "insert_ignore", "upsert_ignore",
	"update_ignore", "delete_ignore", "if", "purge", "reindex"}

func (k OpKind) String() string { return opKindNames[k] }

// Ignores reports whether k does nothing where the others are errors.
func (k OpKind) Ignores() bool { return k >= InsertIgnore && k <= DeleteIgnore }

// Deletes reports whether an operation of kind k leaves no row, if it is accepted.
func (k OpKind) Deletes() bool { return k == Delete || k == DeleteIgnore }

// Op is one operation of a write batch, checked against the schema.
//
// Body is a row image for the inserts and upserts, a change list for the updates, nil for the
// deletes.
type Op struct {
	Kind  OpKind
	Index int // position in the write batch, for errors
	// Key is the encoded key. For an insert into a table with an auto-incrementing column, Prepare
	// replaces Key and the column's cell in Body.
	Key  []byte
	Body []byte
	// Set has a bit for each column that the caller gave a value; nil = all. Upserts only: an
	// existing row keeps the others.
	Set batch.Bitmap
	// Lacks is a column that an upsert did not set and a new row needs; empty = none.
	Lacks string
	// Check is the condition of a Check; of any other operation, the condition under which it is
	// carried out: if it is not met, an Ignore kind does nothing, and the others refuse the row
	// with ErrConflict. nil means no condition.
	Check *Condition
	// Operands are for columns of an update or upsert whose new cells depend on those before. Set does
	// not have these columns, nor does the Body of an update. nil means none.
	Operands *Operands
}

// ErrNotSet is the cause of a *change.RowError about a column that a new row needs.
var ErrNotSet = errors.New("not set, and the column has no default and is not nullable")

// ErrImmutable is the cause of a *change.RowError about an update of an immutable column.
var ErrImmutable = errors.New("immutable, and cannot be updated")

// Write is the part of a write batch that concerns one table, between Prepare and Release.
type Write struct {
	t     *Tablet
	state *tabletState // cannot be replaced before Release
	ops   []Op

	ranges []deletedRange // come before ops

	indexes *indexWrites // nil if the table has no indexes

	// By operation: what it does, and its key with the key's hash, made once for all filters.
	targets []target
	probes  []bloom.Probe

	// Rows that are locked: those in the stripes locked, or all rows of the table.
	locked    []uint16
	lockedAll bool

	// The order in which operations are looked up, see findAll. Most batches are small or sorted,
	// and have neither.
	order  []keyed // operations in key order, on one key in batch order; empty if ops is sorted
	before []int32 // for each operation, the previous one on the same key, or −1; set with order

	ahead []aheadEntry // of an index, by operation of the table; empty if there are few

	lists   []byte // change lists made of upserts and operands: the chunk being filled
	results []Result
	grown   int64  // bytes of the results of operands that append
	list    []byte // scratch of Apply
	column  string // the column that the last error of decide is about
	partial bool   // refused operations are left out
	Refused []*change.RowError

	serial    bool // t.autoMu is held
	exclusive bool // the gate is held by the caller

	// Rows that expire: whether an operation finds a row depends on the time as of which it is
	// decided. If the batch gets a timestamp at or above until, it must be decided again.
	AsOf    mvcc.Timestamp // the wanted time, unless it has passed; set before Resolve
	expires bool           // rows of the table expire, by rule
	rule    expiry.Rule    // on column clock
	clock   int
	now     mvcc.Timestamp // the time as of which the operations are decided
	until   mvcc.Timestamp // the earliest time at which a decision may differ
}

// writes has released Writes, whose slices are empty but keep their memory.
var writes = sync.Pool{New: func() any { return new(Write) }}

// maxKeptOps is the number of operations up to which the memory of a Write is kept.
const maxKeptOps = 1 << 10

// recycle makes a released Write available to later write batches.
func (w *Write) recycle() {
	if cap(w.targets) > maxKeptOps || cap(w.order) > maxKeptOps || cap(w.lists) > listChunk || cap(w.list) > listChunk ||
		cap(w.results) > maxKeptOps || cap(w.ahead) > maxKeptOps || w.t.Index() != nil && cap(w.ops) > maxKeptOps {
		return
	}
	clear(w.targets)
	clear(w.probes)
	clear(w.results)
	clear(w.ahead)
	var ops []Op // those of a table are the caller's
	if w.t.Index() != nil {
		clear(w.ops)
		ops = w.ops[:0]
	}
	*w = Write{ops: ops, ahead: w.ahead[:0], targets: w.targets[:0], probes: w.probes[:0], locked: w.locked[:0], order: w.order[:0],
		before: w.before[:0], lists: w.lists[:0], list: w.list[:0], results: w.results[:0]}
	writes.Put(w)
}

// target is the resolved form of an operation: what it changes, and where.
type target struct {
	kind change.Kind // 0 = nothing
	list change.List // of an update; of an insert with operands, the row image
	// at is the position of the row that an update or delete changes. If an insert replaces an
	// expired row, at is that row's position and at.live is set: the expired row is deleted first.
	at position
}

// image returns the row image of an insert or replacement.
func (to *target) image(op *Op) []byte {
	if to.list != nil {
		return to.list
	}
	return op.Body
}

// overExpired reports whether the operation inserts a row in place of an expired one.
func (to *target) overExpired() bool { return to.kind == change.Insert && to.at.live }

// Prepare keeps the state from being replaced, locks the rows and resolves each operation against
// the newest applied state and the earlier operations of the batch. It stops at the first row error
// and returns a *change.RowError. No lock is held then, and nothing has changed.
//
// With partial, it leaves out refused operations and lists them in Refused instead. A Check that
// fails refuses the whole batch nevertheless.
//
// ops are encoded by tableSchema; operations of an older version of the schema are converted. ops
// belong to the Write until Release. asOf is Write.AsOf.
func (t *Tablet) Prepare(ops []Op, tableSchema *TableSchema, partial bool, asOf mvcc.Timestamp) (*Write, error) {
	w, err := t.beginWrite()
	if err != nil {
		return nil, err
	}
	w.partial, w.AsOf = partial, asOf
	done := false
	defer func() {
		if !done {
			w.Release()
		}
	}()
	if err := w.Resolve(ops, tableSchema); err != nil {
		return nil, err
	}
	done = true
	return w, nil
}

// beginWrite keeps the state from being replaced until Release.
func (t *Tablet) beginWrite() (*Write, error) {
	t.gate.RLock()
	w := writes.Get().(*Write)
	w.t = t
	var err error
	if t.dropped.Load() {
		err = t.errDropped()
	} else {
		w.state, err = t.acquire()
	}
	if err != nil {
		t.gate.RUnlock()
		w.recycle()
		return nil, err
	}
	return w, nil
}

// PrepareAll begins a write batch whose operations depend on the whole table. It locks every row,
// including rows that do not exist: until Release, no other batch of the table is between its
// Prepare and the end of its Apply. The caller then calls Resolve, or Release.
//
// Before Release, the caller must not flush the table or wait for a flush. It may read the table
// and wait for publication: a batch that is in the log takes no more locks.
func (t *Tablet) PrepareAll() (*Write, error) {
	w, err := t.beginWrite()
	if err != nil {
		return nil, err
	}
	if w.state.schema.auto >= 0 {
		t.autoMu.Lock()
		w.serial = true
	}
	t.rows.lockAll()
	w.lockedAll = true
	return w, nil
}

// MaxTimestamp returns the newest timestamp of any change in the table, published or not. After
// PrepareAll, no change is added until Release.
func (w *Write) MaxTimestamp() mvcc.Timestamp { return w.state.maxTimestamp() }

// Resolve resolves the operations as Prepare does. After an error the caller still calls Release.
func (w *Write) Resolve(ops []Op, tableSchema *TableSchema) error {
	w.ops, w.targets = ops, slices.Grow(w.targets, len(ops))[:len(ops)]
	if len(ops) == 0 {
		return nil
	}
	if tableSchema != w.state.schema {
		ops = slices.Clone(ops) // a failed batch may be prepared again with the original operations
		if err := convert(ops, tableSchema, w.state.schema); err != nil {
			return fmt.Errorf("table %q: %w", w.t.Name(), err)
		}
		w.ops = ops
	}
	if err := w.assign(); err != nil {
		return err
	}
	if err := w.startExpiry(); err != nil {
		return err
	}
	w.probes = slices.Grow(w.probes, len(ops))
	for i := range ops {
		w.probes = append(w.probes, bloom.MakeProbe(ops[i].Key))
	}
	if !w.lockedAll && len(w.locked) == 0 {
		w.lock()
	}
	err := w.beginIndexes()
	switch {
	case err != nil:
		return err
	case w.indexes == nil:
		return w.resolve()
	}
	err = w.resolveIndexed()
	w.finishIndexes()
	return err
}

// lock locks the rows of all keys. The caller takes tables in the order of their numbers, so two
// batches never wait for each other.
func (w *Write) lock() {
	for i := range w.probes {
		w.locked = append(w.locked, uint16(w.probes[i].Hash()%stripeCount))
	}
	w.t.rows.lock(w.locked)
}

// Release unlocks the rows and allows the state to be replaced. w must not be used afterwards.
func (w *Write) Release() {
	for e := range w.Indexes {
		e.Release()
	}
	switch {
	case w.lockedAll:
		w.t.rows.unlockAll()
	case len(w.locked) > 0:
		w.t.rows.unlock(w.locked)
	}
	if w.serial {
		w.t.autoMu.Unlock()
	}
	w.state.release()
	if !w.exclusive {
		w.t.gate.RUnlock()
	}
	w.recycle()
}

// resolve decides the operations in the order of the batch.
func (w *Write) resolve() error {
	// positions has the position of each operation's key, at first before the operation, then after
	// it. If all keys differ, it stays nil: no operation sees the effect of another.
	var positions []position
	var err error
	appends := false // all keys of the batch come after the table's
	sorted := ascending(w.ops)
	switch {
	case sorted && w.state.endsBefore(w.ops[0].Key):
		// Loads in key order append to the table. No other batch can insert these keys: their rows
		// are locked.
		appends = true
	case !sorted || len(w.ops) >= sharedKeys:
		if positions, err = w.findAll(); err != nil {
			return fmt.Errorf("table %q: %w", w.t.Name(), err)
		}
		if w.indexes != nil {
			w.indexes.keepRows(w)
		}
	}
	if w.indexes != nil {
		if err := w.indexes.lookAhead(w); err != nil {
			return err
		}
	}
	for i := range w.ops {
		op := &w.ops[i]
		p, again := position{}, false
		switch {
		case positions != nil:
			j := w.before[i]
			if again = j >= 0; !again {
				j = int32(i)
			}
			p = positions[j]
		case !appends:
			if p, err = w.find(w.probes[i]); err != nil {
				return fmt.Errorf("table %q: %w", w.t.Name(), err)
			}
		}
		if len(w.ranges) > 0 && !again {
			p = w.after(p, op.Key)
		}
		after, err := p, error(nil)
		results := len(w.results)
		if op.Check != nil {
			err = w.check(i, p, again)
			if err != nil && !errors.Is(err, fault.ErrConflict) {
				return fmt.Errorf("table %q: %w", w.t.Name(), err)
			}
		}
		switch {
		case op.Kind == Check:
		case err == nil:
			if after, err = w.decide(i, p); err == nil && w.indexes != nil {
				var failed error
				if err, failed = w.index(i, p, again); failed != nil {
					return failed
				}
			}
		case op.Kind.Ignores():
			err = nil
		}
		switch {
		case err == nil:
		case w.partial && op.Kind != Check:
			w.Refused = append(w.Refused, w.rowError(op, err))
			w.targets[i], after, w.results = target{}, p, w.results[:results]
		default:
			return w.rowError(op, err)
		}
		if positions != nil {
			positions[i] = after
		}
		if w.targets[i].kind == 0 {
			if err := w.keepRow(i, p, again); err != nil {
				return err
			}
		}
	}
	return nil
}

// decide sets the target of operation i, whose key is at p, and returns the key's position after
// the operation.
func (w *Write) decide(i int, p position) (after position, err error) {
	op, to := &w.ops[i], &w.targets[i]
	to.at = p
	exists := w.exists(p)
	switch op.Kind {
	case Insert, InsertIgnore, Upsert, UpsertIgnore:
		switch {
		case !exists && op.Lacks != "":
			return p, ErrNotSet
		case !exists:
			if op.Operands != nil {
				if to.list, err = w.insertOperands(i); err != nil {
					return p, err
				}
			}
			to.kind = change.Insert
			return position{live: true, mem: w.state.mem, expires: w.expiryOfRow(to.image(op))}, nil
		case op.Kind == Insert:
			return p, fault.ErrKeyExists
		case op.Kind == InsertIgnore:
			return p, nil
		}
		if op.Set == nil && w.state.schema.replaceable {
			to.kind = change.Replace
			p.expires = w.expiryOfRow(op.Body)
			return p, nil
		}
		list, err := w.updateOf(op)
		if err == nil && op.Operands != nil {
			list, err = w.updateOperands(i, p, list)
		}
		if err == nil && len(list) > 0 {
			to.kind, to.list = change.Update, list
			p.expires = w.expiryAfter(p, list)
		}
		return p, err
	case Update, UpdateIgnore:
		list, column, err := w.state.schema.mutable(op)
		if err != nil {
			w.column = column
			return p, err
		}
		if exists {
			if op.Operands != nil {
				if list, err = w.updateOperands(i, p, list); err != nil {
					return p, err
				}
			}
			if len(list) > 0 { // else its columns were dropped, are immutable, or keep their cells
				to.kind, to.list = change.Update, list
				p.expires = w.expiryAfter(p, list)
			}
			return p, nil
		}
	case Delete, DeleteIgnore:
		if exists {
			to.kind = change.Delete
			return position{}, nil
		}
	case Purge:
		if p.live && !exists {
			to.kind = change.Delete
			return position{}, nil
		}
	}
	if op.Kind == Update || op.Kind == Delete {
		return p, fault.ErrNotFound
	}
	return p, nil
}

// mutable returns the change list of an update without its immutable columns. Unless the update is
// of the Ignore kind, these are an error, with the column's name.
func (sc *TableSchema) mutable(op *Op) (list change.List, column string, err error) {
	if !sc.immutable {
		return op.Body, "", nil
	}
	list, err = filterList(op.Body, func(id schema.ColumnID) (bool, error) {
		c := &sc.Schema.Columns[sc.Schema.IndexID(id)]
		if c.Immutable && op.Kind == Update {
			column = c.Name
			return false, ErrImmutable
		}
		return !c.Immutable, nil
	})
	return list, column, err
}

// updateOf returns an UPDATE of the columns that an upsert sets; nil if it sets only the key. It
// treats immutable columns as mutable does.
func (w *Write) updateOf(op *Op) (change.List, error) {
	s, rowFormat := w.state.schema.Schema, w.state.schema.RowFormat
	w.reserveList(len(op.Body) + (len(s.Columns)-s.Keys)*change.MaxColumnHeader + 1)
	start := len(w.lists)
	w.lists = change.AppendUpdateHeader(w.lists, change.Update)
	any := false
	for c := s.Keys; c < len(s.Columns); c++ {
		if op.Set == nil || op.Set.Get(c) {
			if s.Columns[c].Immutable {
				if op.Kind == Upsert {
					w.column = s.Columns[c].Name
					return nil, ErrImmutable
				}
				continue
			}
			w.lists = change.AppendColumn(w.lists, s.Columns[c].ID, rowFormat.Cell(op.Body, c))
			any = true
		}
	}
	if !any {
		w.lists = w.lists[:start]
		return nil, nil
	}
	return change.List(w.lists[start:len(w.lists):len(w.lists)]), nil
}

// listChunk is the maximum number of bytes allocated at once for change lists.
const listChunk = 64 << 10

// reserveList makes room in w.lists for size more bytes. If appending moved w.lists, the change
// lists that point into it would keep the old memory alive next to the new.
func (w *Write) reserveList(size int) {
	if cap(w.lists)-len(w.lists) < size {
		w.lists = make([]byte, 0, max(size, min(listChunk, size*len(w.ops))))
	}
}

func (w *Write) rowError(op *Op, cause error) *change.RowError {
	e := Refusal(op.Index, w.t.Name(), w.t.KeyText(op.Key), cause)
	switch cause {
	case ErrNotSet:
		e.Column = op.Lacks
	case ErrImmutable:
		e.Column = w.column
	}
	if twice, ok := errors.AsType[*change.NotUnique](cause); ok {
		twice.Other = w.t.KeyText(twice.Key)
	}
	return e
}

// Changes returns the number of operations that change something, and of rows in ranges that are
// deleted.
func (w *Write) Changes() int {
	n := 0
	for i := range w.ranges {
		n += int(w.ranges[i].rows)
	}
	for i := range w.targets {
		if w.targets[i].kind != 0 {
			n++
		}
	}
	return n
}

// Keys yields the encoded keys of the rows that the operations change, without those in ranges that are
// deleted, and without those of expired rows that are purged: no read sees a difference.
func (w *Write) Keys(yield func(key []byte) bool) {
	for i := range w.targets {
		if w.targets[i].kind != 0 && w.ops[i].Kind != Purge && !yield(w.ops[i].Key) {
			return
		}
	}
}

// Table returns the number of the table.
func (w *Write) Table() uint32 { return w.t.Number }

// Record appends the resolved operations to a log record, after RecordRanges of all tables.
func (w *Write) Record(r *record.Writer) {
	op := record.Op{Table: w.t.Number, SchemaVersion: w.state.schema.Version}
	for i := range w.targets {
		to := &w.targets[i]
		op.Kind, op.Key = to.kind, w.ops[i].Key
		switch to.kind {
		case 0:
			continue
		case change.Insert, change.Replace:
			if to.overExpired() {
				op.Kind, op.Body = change.Delete, nil
				r.Add(op)
				op.Kind = to.kind
			}
			op.Body = to.image(&w.ops[i])
		case change.Update:
			op.Body = to.list
		case change.Delete:
			op.Body = nil
		}
		r.Add(op)
	}
	w.recordIndexes(r)
}

// Apply carries out the operations, in the order of their keys. It cannot fail: it panics if a row
// is not where Prepare found it, which is a bug in this package.
func (w *Write) Apply(ts mvcc.Timestamp, lsn lsn.LSN) {
	w.raise()
	w.applyRanges(ts, lsn)
	for k := 0; k < len(w.targets); k++ {
		i := w.nth(k)
		to := &w.targets[i]
		list := to.list
		switch to.kind {
		case 0:
			continue
		case change.Insert:
			k += w.insert(k, ts, lsn) - 1
			continue
		case change.Delete:
			list = deleteList
		case change.Replace:
			w.list = change.AppendReplace(w.list[:0], w.ops[i].Body)
			list = w.list
		}
		w.change(i, ts, lsn, list)
	}
	w.applyIndexes(ts, lsn)
}

// change applies a change to the row of operation i, where Prepare has found it.
func (w *Write) change(i int, ts mvcc.Timestamp, lsn lsn.LSN, list change.List) {
	if at := w.targets[i].at; at.mem == nil {
		at.set.Apply(at.row, ts, lsn, list)
	} else if !at.mem.Mutate(w.ops[i].Key, ts, lsn, list) {
		panic(fmt.Sprintf("tablet: table %q: locked row %x is gone", w.t.Name(), w.ops[i].Key))
	}
}

// insertRun is the maximum number of rows inserted into the MemRowSet in one call.
const insertRun = 256

// insert applies the run of inserts that begins at the k-th operation in key order, and returns its
// length. The keys of a run differ: between two inserts of a key there is a delete of it, which an
// insert in place of an expired row has at its beginning.
func (w *Write) insert(k int, ts mvcc.Timestamp, lsn lsn.LSN) int {
	if i := w.nth(k); w.targets[i].overExpired() {
		w.change(i, ts, lsn, deleteList)
	}
	n := 1
	for n < insertRun && k+n < len(w.ops) {
		if to := &w.targets[w.nth(k+n)]; to.kind != change.Insert || to.overExpired() {
			break
		}
		n++
	}
	if n == 1 {
		op := &w.ops[w.nth(k)]
		w.state.mem.Insert(op.Key, ts, lsn, w.targets[w.nth(k)].image(op))
		return 1
	}
	w.insertMany(k, n, ts, lsn)
	return n
}

// insertMany inserts the n rows of a run, at most insertRun.
func (w *Write) insertMany(k, n int, ts mvcc.Timestamp, lsn lsn.LSN) {
	var keys, rows [insertRun][]byte
	for i := range n {
		op := &w.ops[w.nth(k+i)]
		keys[i], rows[i] = op.Key, w.targets[w.nth(k+i)].image(op)
	}
	w.state.mem.InsertMany(keys[:n], ts, lsn, rows[:n])
}

var deleteList = change.List(change.AppendDelete(nil))
