package tablet

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/oribi-db/oribi/bloom"
	"github.com/oribi-db/oribi/change"
	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/internal/record"
	"github.com/oribi-db/oribi/keyenc"
	"github.com/oribi-db/oribi/lsn"
	"github.com/oribi-db/oribi/mvcc"
	"github.com/oribi-db/oribi/schema"
)

// Reindex is an operation that changes no row. It adds the entries of a row to indexes that are being built.
const Reindex OpKind = Purge + 1

// indexWrites are the changes of a table's indexes that follow from the operations of a Write. They are made
// while the operations are decided, since an operation that would give a unique index two rows with the same
// cells is refused, and the later ones must not see its effect.
//
// Entries of an index that is not unique need no locks: an entry contains the key of its row, which is
// locked. Entries of a unique index are locked when they are met. If another batch holds one, this one gives
// back the entries that it has, locks all entries of its unique indexes, and decides its operations again:
//
//	batch 1:  locks row a, entry x                  entry y is held: all entries
//	batch 2:               locks row b, entry y      entry x is held: gives y back, all entries (waits for 1)
type indexWrites struct {
	plan   *indexPlan
	parts  []indexPart
	rows   [][][]byte // by operation: the watched cells of its row afterwards, nil for no row; nil if all keys differ
	many   bool       // the batch has several operations
	buf    []byte     // keys and images of entries: the chunk being filled
	locked bool       // all entries of unique indexes are

	// The watched cells of the present row, unless rows keeps them.
	before, after [][]byte
}

// indexPart is the write batch of one index.
type indexPart struct {
	*IndexColumns
	w      *Write
	own    *stripes   // of w, unless all are locked
	met    metEntries // that may be met again
	sparse bool       // w inserts only entries that do not exist

	apart bool // each operation deletes, or inserts the entry in w.ahead alone, which differs from all others there

	from, to []byte   // the entry of the present row before and after the present operation; nil for none
	was      metEntry // to before the operation, if known
	known    bool
}

// metEntry is an entry after the operations so far.
type metEntry struct {
	position
	op int // the last one that inserted or replaced it; below 0 for none
}

// metEntries are the entries that the operations of a write batch have met.
type metEntries struct {
	list []struct {
		metEntry
		key  []byte
		next int // in list, of an entry whose key has the same hash; below 0 for none
	}
	first map[uint64]int // by hash of the key: index in list
}

func (m *metEntries) find(p bloom.Probe) *metEntry {
	i, ok := m.first[p.Hash()]
	if !ok {
		return nil
	}
	for ; i >= 0; i = m.list[i].next {
		if e := &m.list[i]; bytes.Equal(e.key, p.Key) {
			return &e.metEntry
		}
	}
	return nil
}

// set sets the entry with the key of p, which m refers to.
func (m *metEntries) set(p bloom.Probe, at metEntry) {
	if e := m.find(p); e != nil {
		*e = at
		return
	}
	if m.first == nil {
		m.first = map[uint64]int{}
	}
	next, ok := m.first[p.Hash()]
	if !ok {
		next = -1
	}
	m.first[p.Hash()] = len(m.list)
	m.list = append(m.list, struct {
		metEntry
		key  []byte
		next int
	}{at, p.Key, next})
}

// errEntryHeld is the error of an operation on an entry of a unique index that another batch has locked.
var errEntryHeld = errors.New("an index entry is locked")

// beginIndexes begins the write batches of the table's indexes.
func (w *Write) beginIndexes() error {
	for {
		plan := w.t.indexPlan(w.state.schema)
		if plan == nil {
			return nil
		}
		w.indexes = &indexWrites{plan: plan, many: len(w.ops) > 1}
		err := w.indexes.begin(w)
		if !errors.Is(err, fault.ErrNoTable) || slices.Equal(w.t.Indexes(), plan.list) {
			return err
		}
		for e := range w.Indexes { // an index was dropped
			e.Release()
		}
		w.indexes = nil
	}
}

func (x *indexWrites) begin(w *Write) error {
	plan := x.plan
	for i := range plan.indexes {
		c := &plan.indexes[i]
		entries, err := c.Table.beginWrite()
		if err != nil {
			return err
		}
		p := indexPart{IndexColumns: c, w: entries}
		entries.rule, entries.expires = entries.state.schema.Expiry.Current()
		entries.until, entries.now = mvcc.Max, w.now
		if entries.expires {
			entries.clock = entries.state.schema.Schema.IndexID(entries.rule.Column)
		}
		row := c.Table.Index()
		p.sparse = !row.Unique && !row.Building && !entries.expires
		x.parts = append(x.parts, p)
	}
	return nil
}

// resolveIndexed is resolve of a table that has indexes.
func (w *Write) resolveIndexed() error {
	err := w.resolve()
	if err != errEntryHeld {
		return err
	}
	x := w.indexes
	for i := range x.parts {
		x.parts[i].unlock()
	}
	for i := range x.parts {
		if p := &x.parts[i]; p.Table.Index().Unique {
			p.w.t.rows.lockAll()
			p.w.lockedAll = true
		}
	}
	x.locked, x.rows = true, nil
	for i := range x.parts {
		p := &x.parts[i]
		p.met, p.w.ops, p.w.targets = metEntries{}, p.w.ops[:0], p.w.targets[:0]
		p.w.ahead, p.w.order, p.apart, p.w.until = p.w.ahead[:0], p.w.order[:0], false, mvcc.Max
	}
	clear(w.targets)
	w.Refused, w.order, w.before, w.results, w.grown = nil, w.order[:0], w.before[:0], w.results[:0], 0
	return w.resolve()
}

// unlock gives back the entries that are locked.
func (p *indexPart) unlock() {
	if len(p.w.locked) > 0 {
		p.w.t.rows.unlock(p.w.locked)
	}
	p.w.locked, p.own = p.w.locked[:0], nil
}

// index adds the changes of the indexes that follow from operation i, which is decided, to their write
// batches. p is the position of its key before, again whether the batch has an earlier operation on it.
// refused is the cause for which the operation is refused; then nothing is added.
func (w *Write) index(i int, p position, again bool) (refused, err error) {
	x, op, to := w.indexes, &w.ops[i], &w.targets[i]
	if to.kind == 0 && (op.Kind != Reindex || !w.exists(p)) ||
		to.kind == change.Update && x.rows == nil && !x.touches(w.state.schema, to.list) {
		return nil, nil
	}
	before, err := w.watched(i, p, again)
	if err != nil {
		return nil, err
	}
	after := x.rowAfter(w.state.schema, op, to, before)
	if to.kind != change.Delete && !w.exists(p) {
		before = nil // its entries expire with it
	}
	if refused, err = x.changeAll(i, op, to, before, after); refused == nil && err == nil && x.rows != nil {
		x.rows[i] = after
	}
	return refused, err
}

// keepRow notes the row of operation i, which does nothing.
func (w *Write) keepRow(i int, p position, again bool) (err error) {
	if w.indexes != nil && w.indexes.rows != nil {
		w.indexes.rows[i], err = w.watched(i, p, again)
	}
	return err
}

// keepRows makes the rows be kept, if operations are on the same key.
func (x *indexWrites) keepRows(w *Write) {
	if slices.ContainsFunc(w.before, func(j int32) bool { return j >= 0 }) {
		x.rows = make([][][]byte, len(w.ops))
	}
}

// changeAll adds the changes of a row's entries, unless an index refuses the row.
func (x *indexWrites) changeAll(i int, op *Op, to *target, before, after [][]byte) (refused, err error) {
	for k := range x.parts {
		p := &x.parts[k]
		if p.from, p.to, p.known = nil, nil, false; op.Kind == Reindex && !p.Table.Index().Building {
			continue
		}
		p.from = x.entry(p, op.Key, before)
		if len(p.w.ahead) > 0 && to.hasBody() {
			p.to = p.w.ahead[i].key
		} else {
			p.to = x.entry(p, op.Key, after)
		}
		if n := len(p.to); n > schema.MaxKeyBytes {
			return entryTooLong(p.Table, n), nil
		}
		if !p.Table.Index().Unique {
			continue
		}
		if refused, err = x.checkUnique(p, i, op); refused != nil || err != nil {
			return refused, err
		}
	}
	for k := range x.parts {
		if err := x.change(&x.parts[k], i, op, before, after); err != nil {
			return nil, err
		}
	}
	return nil, nil
}

// touches reports whether an update sets a column on which entries depend.
func (x *indexWrites) touches(sc *TableSchema, list change.List) bool {
	columns := list.Columns()
	for id, _, ok := columns.Next(); ok; id, _, ok = columns.Next() {
		if slices.Contains(x.plan.watched, sc.Schema.IndexID(id)) {
			return true
		}
	}
	return false
}

// watched returns the watched cells of the row of operation i before it, nil if there is no row, not even an
// expired one.
func (w *Write) watched(i int, p position, again bool) (cells [][]byte, err error) {
	x := w.indexes
	switch {
	case again:
		return x.rows[w.before[i]], nil
	case !p.live:
		return nil, nil
	case p.mem != nil:
		image, _ := p.mem.NewestRow(w.ops[i].Key)
		x.before = x.cellsOf(x.kept(x.before), w.state.schema, image)
		return x.before, nil
	}
	cells, _, err = p.set.Get(w.probes[i], mvcc.Everything, x.plan.watched, nil)
	if err != nil {
		err = fmt.Errorf("table %q: %w", w.t.Name(), err)
	}
	return cells, err
}

// kept returns memory for the watched cells of a row: that of cells, unless rows keeps them.
func (x *indexWrites) kept(cells [][]byte) [][]byte {
	if x.rows != nil {
		return make([][]byte, 0, len(x.plan.watched))
	}
	return cells[:0]
}

// cellsOf appends the watched cells of a row image to dst.
func (x *indexWrites) cellsOf(dst [][]byte, sc *TableSchema, image []byte) [][]byte {
	for _, c := range x.plan.watched {
		dst = append(dst, sc.RowFormat.Cell(image, c))
	}
	return dst
}

// rowAfter returns the watched cells of a row after an operation, given those before it.
func (x *indexWrites) rowAfter(sc *TableSchema, op *Op, to *target, before [][]byte) [][]byte {
	switch to.kind {
	case change.Insert, change.Replace:
		x.after = x.cellsOf(x.kept(x.after), sc, to.image(op))
		return x.after
	case change.Delete:
		return nil
	case change.Update:
		after := append(x.kept(x.after), before...)
		columns := to.list.Columns()
		for id, cell, ok := columns.Next(); ok; id, cell, ok = columns.Next() {
			if i := slices.Index(x.plan.watched, sc.Schema.IndexID(id)); i >= 0 {
				after[i] = cell
			}
		}
		x.after = after
		return after
	}
	return before
}

// entry returns the key of the entry of a row with the given watched cells, nil for no row.
func (x *indexWrites) entry(p *indexPart, key []byte, cells [][]byte) []byte {
	if cells == nil {
		return nil
	}
	size := len(key) + 2*len(p.at) + 16
	for _, i := range p.IndexColumns.at {
		size += 2*len(cells[i]) + 2
	}
	x.reserve(size)
	start := len(x.buf)
	x.buf = p.appendEntry(x.buf, key, cells)
	return x.buf[start:len(x.buf):len(x.buf)]
}

// reserve makes room in x.buf for size more bytes. What is in it does not move.
func (x *indexWrites) reserve(size int) {
	if cap(x.buf)-len(x.buf) < size {
		x.buf = make([]byte, 0, max(size, min(listChunk, max(256, 2*cap(x.buf)))))
	}
}

// checkUnique locks the present entries, and returns a *change.NotUnique if another row has the new entry.
func (x *indexWrites) checkUnique(p *indexPart, i int, op *Op) (refused, err error) {
	for _, key := range [2][]byte{p.from, p.to} {
		if err := x.lock(p, key); err != nil {
			return nil, err
		}
	}
	if p.to == nil || bytes.Equal(p.from, p.to) && !p.Table.Index().Building {
		return nil, nil
	}
	p.was, err = p.find(i, bloom.MakeProbe(p.to))
	if p.known = err == nil; err != nil || !p.w.exists(p.was.position) {
		return nil, err
	}
	other, err := p.rowOf(p.was)
	if err != nil || bytes.Equal(other, op.Key) { // of an index that is being built
		return nil, err
	}
	return &change.NotUnique{Index: p.Table.Index().Name, Key: bytes.Clone(other)}, nil
}

// lock locks an entry; nil is none. Errors: errEntryHeld.
func (x *indexWrites) lock(p *indexPart, key []byte) error {
	if x.locked || key == nil {
		return nil
	}
	stripe := uint16(bloom.MakeProbe(key).Hash() % stripeCount)
	if p.own == nil {
		p.own = new(stripes)
	}
	if p.own[stripe/64]>>(stripe%64)&1 != 0 {
		return nil
	}
	if !p.w.t.rows.tryLock(stripe) {
		return errEntryHeld
	}
	p.own[stripe/64] |= 1 << (stripe % 64)
	p.w.locked = append(p.w.locked, stripe)
	return nil
}

// find returns an entry, which may be the one of w.ahead for operation i of the table, after the operations so far.
func (p *indexPart) find(i int, probe bloom.Probe) (metEntry, error) {
	if at := p.met.find(probe); at != nil {
		return *at, nil
	}
	if len(p.w.ahead) > 0 && bytes.Equal(p.w.ahead[i].key, probe.Key) {
		return metEntry{p.w.ahead[i].position, -1}, nil
	}
	at, err := p.w.find(probe)
	return metEntry{at, -1}, p.errorf(err)
}

func (p *indexPart) errorf(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("index %q: %w", p.Table.Index().Name, err)
}

// rowOf returns the encoded key of the row of p.to, which exists.
func (p *indexPart) rowOf(at metEntry) ([]byte, error) {
	sc := p.w.state.schema
	i := sc.Schema.Index(RowColumn)
	if at.op >= 0 {
		return sc.RowFormat.Cell(p.w.ops[at.op].Body, i), nil
	}
	cells, err := p.w.cellsAt(p.to, at.position)
	if err != nil {
		return nil, p.errorf(err)
	}
	return cells[i], nil
}

// change adds the operations on the present entries to the write batch of an index.
func (x *indexWrites) change(p *indexPart, i int, op *Op, before, after [][]byte) error {
	clock := x.plan.clock
	switch same := bytes.Equal(p.from, p.to); {
	case p.from == nil || op.Kind == Reindex:
	case same && (clock < 0 || equalCells(before[clock], after[clock])):
		return nil
	case !same:
		kind := DeleteIgnore
		if op.Kind == Purge {
			kind = Purge
		}
		if err := x.add(p, i, Op{Kind: kind, Index: op.Index, Key: p.from}); err != nil {
			return err
		}
	}
	if p.to == nil {
		return nil
	}
	kind := Upsert
	if op.Kind == Reindex {
		kind = InsertIgnore
	}
	var few [3][]byte
	cells := append(few[:0], p.to)
	if p.Table.Index().Unique {
		row := op.Key
		if row == nil { // a key may be empty
			row = []byte{}
		}
		cells = append(cells, row)
	}
	if clock >= 0 {
		cells = append(cells, after[clock])
	}
	x.reserve(64 + len(p.to) + len(op.Key))
	start := len(x.buf)
	x.buf = p.w.state.schema.RowFormat.AppendRow(x.buf, cells)
	return x.add(p, i, Op{Kind: kind, Index: op.Index, Key: p.to, Body: x.buf[start:len(x.buf):len(x.buf)]})
}

// add adds an operation on an entry, because of operation i of the table.
func (x *indexWrites) add(p *indexPart, i int, op Op) error {
	w, at, insert := p.w, metEntry{op: -1}, op.Body != nil
	var probe bloom.Probe
	meets := x.many && (!p.sparse || x.rows != nil) && !(insert && p.known && p.apart && x.rows == nil)
	looks := !insert || !p.known && !p.sparse
	if meets || looks {
		probe = bloom.MakeProbe(op.Key)
	}
	switch {
	case looks:
		var err error
		if at, err = p.find(i, probe); err != nil {
			return err
		}
	case p.known:
		at = p.was
	}
	n := len(w.ops)
	w.ops, w.targets = append(w.ops, op), append(w.targets, target{})
	after, err := w.decide(n, at.position)
	if err != nil || !meets {
		return err
	}
	at = metEntry{after, -1}
	if insert {
		at.op = n
	}
	p.met.set(probe, at)
	return nil
}

// finishIndexes puts the operations on entries in the order in which they are applied.
func (w *Write) finishIndexes() {
	for i := range w.indexes.parts {
		e := w.indexes.parts[i].w
		if len(e.order) > 0 && e.asAhead() {
			continue
		}
		if e.order = e.order[:0]; !ascending(e.ops) {
			e.sort()
		}
	}
}

// sort makes the order of the operations: by key, on one key in batch order.
func (w *Write) sort() {
	w.order = sortKeys(w.order, len(w.ops), func(i int) []byte { return w.ops[i].Key })
}

// sortKeys appends the numbers below n to order, by key, those of one key in ascending order.
func sortKeys(order []keyed, n int, key func(i int) []byte) []keyed {
	start := len(order)
	order = slices.Grow(order, n)
	for i := range n {
		order = append(order, keyed{keyenc.Head(key(i)), int32(i)})
	}
	slices.SortFunc(order[start:], func(a, b keyed) int {
		if a.head != b.head {
			return cmp.Compare(a.head, b.head)
		}
		return cmp.Or(bytes.Compare(key(int(a.op)), key(int(b.op))), cmp.Compare(a.op, b.op))
	})
	return order
}

// Indexes yields the parts of the write batch that concern indexes of the table.
func (w *Write) Indexes(yield func(*Write) bool) {
	if w.indexes == nil {
		return
	}
	for i := range w.indexes.parts {
		if !yield(w.indexes.parts[i].w) {
			return
		}
	}
}

// recordIndexes appends the operations on entries to a log record.
func (w *Write) recordIndexes(r *record.Writer) {
	for e := range w.Indexes {
		e.Record(r)
	}
}

func (w *Write) applyIndexes(ts mvcc.Timestamp, lsn lsn.LSN) {
	for e := range w.Indexes {
		e.Apply(ts, lsn)
	}
}
