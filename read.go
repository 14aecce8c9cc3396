package oribi

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"time"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/internal/tablet"
	"github.com/oribi-db/oribi/keyenc"
	"github.com/oribi-db/oribi/mvcc"
	"github.com/oribi-db/oribi/scan"
	"github.com/oribi-db/oribi/schema"
)

// Key is the values of the key columns, in schema order.
type Key []any

// maxWidth is the largest width of a cell of fixed width, in bytes.
const maxWidth = 16

// appendKey appends the encoding of a key that is given as a Go value, a Key, a Row, or cells
// ([][]byte). If prefix is set, the key may lack its last columns.
func (t *Table) appendKey(dst []byte, tableSchema *tablet.TableSchema, key any, prefix bool) ([]byte, error) {
	s := tableSchema.Schema
	switch k := key.(type) {
	case [][]byte:
		if len(k) == 0 || len(k) > s.Keys || len(k) < s.Keys && !prefix {
			return nil, t.keyError("", fmt.Errorf("%d cells, the key has %d columns", len(k), s.Keys))
		}
		for i, cell := range k {
			if err := t.checkKeyCell(&s.Columns[i], cell); err != nil {
				return nil, err
			}
		}
		return tableSchema.Encoder.AppendPrefix(dst, k), nil
	case Row:
		values, err := t.keyValues(s, k)
		if err != nil {
			return nil, err
		}
		return t.appendKeyOf(dst, tableSchema, values, prefix)
	case Key:
		return t.appendKeyOf(dst, tableSchema, k, prefix)
	}
	return t.appendKeyOf(dst, tableSchema, []any{key}, prefix)
}

// keyValues returns the values of a Row that is a key or its first columns.
func (t *Table) keyValues(s *schema.Schema, key Row) (values []any, err error) {
	for i := 0; i < s.Keys && len(values) < len(key); i++ {
		v, ok := key[s.Columns[i].Name]
		if !ok {
			return nil, t.keyRowError(s, key)
		}
		values = append(values, v)
	}
	if len(values) != len(key) {
		return nil, t.keyRowError(s, key)
	}
	return values, nil
}

// appendKeyOf is appendKey for the values of the key columns.
func (t *Table) appendKeyOf(dst []byte, tableSchema *tablet.TableSchema, values []any, prefix bool) ([]byte, error) {
	s := tableSchema.Schema
	if len(values) == 0 || len(values) > s.Keys || len(values) < s.Keys && !prefix {
		return nil, t.keyError("", fmt.Errorf("%d values, the key has %d columns", len(values), s.Keys))
	}
	for i, v := range values {
		cell, err := appendValue(scratch(dst), &s.Columns[i], v)
		if err != nil {
			return nil, t.keyError(s.Columns[i].Name, err)
		}
		if cell == nil {
			return nil, t.keyError(s.Columns[i].Name, errNullKey)
		}
		dst = tableSchema.Encoder.AppendCell(dst, i, cell)
	}
	return dst, nil
}

// scratch returns memory for a cell that is about to be appended to dst: the end of dst's memory,
// if that has room for both.
func scratch(dst []byte) []byte {
	if at := cap(dst) - maxWidth; at >= len(dst)+maxWidth {
		return dst[at:at]
	}
	return make([]byte, 0, maxWidth)
}

// keyRowError returns the error for a Row that is not a key: it has a column that is not in the
// key, or lacks one before a column that it has.
func (t *Table) keyRowError(s *schema.Schema, key Row) error {
	for _, name := range slices.Sorted(maps.Keys(key)) {
		switch i := s.Index(name); {
		case i < 0:
			return t.keyError(name, s.NoColumn(name))
		case i >= s.Keys:
			return t.keyError(name, errors.New("the column is not in the key"))
		}
	}
	for _, c := range s.Columns[:s.Keys] {
		if _, ok := key[c.Name]; !ok {
			return t.keyError(c.Name, errors.New("the key column is not set"))
		}
	}
	return nil // unreachable: key is a key
}

var errNullKey = errors.New("NULL in a column that is not nullable")

func (t *Table) checkKeyCell(c *schema.Column, cell []byte) error {
	if cell == nil {
		return t.keyError(c.Name, errNullKey)
	}
	if err := checkCell(c, cell); err != nil {
		return t.keyError(c.Name, err)
	}
	return nil
}

func (t *Table) keyError(column string, cause error) error {
	return fmt.Errorf("oribi: key: %w", &RowError{Table: t.tab.Name(), Column: column, Cause: cause})
}

// view is one state of the table as a read sees it. It pins the history that the read needs until
// Release.
type view struct {
	tablet.View
	pins *pins // nil: nothing is pinned
	ts   mvcc.Timestamp
	get  time.Duration // when a read of one row began that is timed; else 0
}

func (v *view) Release() {
	v.View.Release()
	v.unpin()
}

// unpin unpins the history alone.
func (v *view) unpin() {
	if v.pins != nil {
		v.pins.unpin(v.ts)
		v.pins = nil
	}
}

// view returns the table as a read with options o sees it, see setView.
func (t *Table) view(ctx context.Context, o *readOptions, long bool) (view, error) {
	var v view
	err := t.setView(ctx, o, long, &v)
	return v, err
}

// setView sets v to the table as a read with options o sees it. The columns of the read are found
// in the view's schema. If long is set, it also pins the history of the newest state: a read of one
// row ends before any of that grows too old.
func (t *Table) setView(ctx context.Context, o *readOptions, long bool, v *view) error {
	snap := tablet.Snapshot{Latest: !o.asOf}
	switch {
	case o.asOf:
		if err := t.pin(ctx, o); err != nil {
			return fmt.Errorf("oribi: table %q: read at %v: %w", t.tab.Name(), o.at, err)
		}
		v.pins, v.ts = t.store.pins, o.at
	case long:
		v.pins = t.store.pins
		v.ts = v.pins.pinLatest(t.tab.Number, t.newest())
	default:
		v.ts = t.newest()
	}
	snap.At = mvcc.AsOf(v.ts)
	if o.snapshot != nil && o.snapshot.store.opts.Follow {
		if kept, ok := o.snapshot.state(t); ok {
			v.View = kept
			return nil
		}
	}
	if err := t.tab.SetView(&v.View, snap); err != nil {
		v.unpin()
		return callErr("", err)
	}
	return nil
}

// pin pins the history that a read at o.at needs, and waits until all that the read sees is
// published.
func (t *Table) pin(ctx context.Context, o *readOptions) error {
	s := t.store
	if sn := o.snapshot; sn != nil {
		if sn.store != s {
			return fmt.Errorf("snapshot %q belongs to another store", sn.name)
		}
		return s.pins.pinSnapshot(t.tab.Number, sn)
	}
	err := s.advance(ctx, o.at)
	if err == nil {
		err = s.pins.pin(t.tab.Number, t.oldest(), o.at)
	}
	if err != nil {
		return err
	}
	waited := false
	defer func() {
		if !waited {
			s.pins.unpin(o.at)
		}
	}()
	err = s.waitPublished(ctx, o.at)
	waited = err == nil
	return err
}

// oldest returns the timestamp at which the table's history begins by its age.
func (t *Table) oldest() mvcc.Timestamp {
	return historyFloor(t.store.clock, t.tab.Metadata().HistorySec)
}

// project returns the indexes of the columns to read.
func (t *Table) project(tableSchema *tablet.TableSchema, o *readOptions) ([]int, error) {
	if o.fit != nil {
		cols, err := o.fit(tableSchema)
		return cols, callErr("", err)
	}
	if o.all {
		return tableSchema.All, nil
	}
	cols, err := tableSchema.Schema.Project(o.columns)
	for i := range cols {
		if err == nil && slices.Contains(cols[:i], cols[i]) {
			err = fmt.Errorf("column %q appears twice: %w", o.columns[i], fault.ErrSchema)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("oribi: table %q: %w", t.tab.Name(), err)
	}
	return cols, nil
}

// Get reads one row. key is a Go value if the key has one column; otherwise it is a Key or a Row of
// the key columns.
//
// Errors: ErrNotFound if there is no such row; those of AsOf and At; ErrRow for a key that does not
// fit; ErrCorrupt; ErrClosed; ctx.Err().
func (t *Table) Get(ctx context.Context, key any, opts ...GetOption) (Row, error) {
	for tries := 0; ; tries++ {
		row, err := t.getRow(ctx, key, opts)
		if err == nil || !restarts(ctx, t, opts, err, tries) {
			return row, err
		}
	}
}

func (t *Table) getRow(ctx context.Context, key any, opts []GetOption) (Row, error) {
	k := keyReads.Get().(*keyRead)
	defer k.release()
	collectInto(&k.o, opts)
	var v view
	if err := t.read(ctx, &k.o, &v); err != nil {
		return nil, err
	}
	defer t.done(&v)
	cols, err := t.project(v.TableSchema, &k.o)
	if err != nil {
		return nil, err
	}
	var few [fewCells][]byte
	cells, err := t.get(&v, k, key, cols, few[:0])
	if err != nil {
		return nil, err
	}
	return newRow(v.Schema.Columns, cols, cells), nil
}

// read begins a read of one row and sets v to the state that it sees; done ends it.
func (t *Table) read(ctx context.Context, o *readOptions, v *view) error {
	if err := t.store.enter(); err != nil {
		return err
	}
	begun := false
	defer func() {
		if !begun { // also if the context or the clock panics
			t.store.leave()
		}
	}()
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("oribi: table %q: %w", t.tab.Name(), err)
	}
	v.get = t.store.counters.beginGet()
	err := t.setView(ctx, o, false, v)
	begun = err == nil
	return err
}

func (t *Table) done(v *view) {
	v.Release()
	if c := t.store.counters; v.get != 0 {
		c.getTime.Record(c.now() - v.get)
	}
	t.store.leave()
}

// fewCells is how many cells of a row fit on the stack.
const fewCells = 32

// newRow returns a row of cells: cells[i] belongs to columns[cols[i]]. Its strings share one
// allocation.
func newRow(columns []schema.Column, cols []int, cells [][]byte) Row {
	var few [256]byte
	texts := few[:0]
	for i, col := range cols {
		if isText(columns[col].Type) {
			texts = append(texts, cells[i]...)
		}
	}
	text, row := string(texts), make(Row, len(cols))
	for i, col := range cols {
		c, cell := &columns[col], cells[i]
		if cell == nil || !isText(c.Type) {
			row[c.Name] = valueOf(c, cell)
			continue
		}
		row[c.Name], text = text[:len(cell)], text[len(cell):]
	}
	return row
}

// GetCells is like Get but returns the columns read and their cells, nil for NULL. They must not be
// modified.
func (t *Table) GetCells(ctx context.Context, key any, opts ...GetOption) (columns []schema.Column, cells [][]byte, err error) {
	for tries := 0; ; tries++ {
		columns, cells, err = t.getCells(ctx, key, opts)
		if err == nil || !restarts(ctx, t, opts, err, tries) {
			return columns, cells, err
		}
	}
}

func (t *Table) getCells(ctx context.Context, key any, opts []GetOption) (columns []schema.Column, cells [][]byte, err error) {
	k := keyReads.Get().(*keyRead)
	defer k.release()
	collectInto(&k.o, opts)
	var v view
	if err := t.read(ctx, &k.o, &v); err != nil {
		return nil, nil, err
	}
	defer t.done(&v)
	cols, err := t.project(v.TableSchema, &k.o)
	if err != nil {
		return nil, nil, err
	}
	if cells, err = t.get(&v, k, key, cols, nil); err != nil {
		return nil, nil, err
	}
	return k.o.columnsOf(v.TableSchema, cols), cells, nil
}

// columnsOf returns the columns with the indexes cols, which project returned. They must not be
// modified.
func (o *readOptions) columnsOf(tableSchema *tablet.TableSchema, cols []int) []schema.Column {
	if o.all {
		return tableSchema.Schema.Columns
	}
	columns := make([]schema.Column, len(cols))
	for i, c := range cols {
		columns[i] = tableSchema.Schema.Columns[c]
	}
	return columns
}

// get appends the cells of one row to dst. k is memory for its encoded key.
func (t *Table) get(v *view, k *keyRead, key any, columns []int, dst [][]byte) ([][]byte, error) {
	encoded, err := t.appendKey(k.key[:0], v.TableSchema, key, false)
	if err != nil {
		return nil, err
	}
	k.key = encoded
	cells, found, err := v.Get(encoded, columns, dst)
	if err != nil {
		return nil, fmt.Errorf("oribi: %w", err)
	}
	if !found {
		return nil, t.missing(encoded)
	}
	return cells, nil
}

// missingRow is the ErrNotFound of a row with an encoded key. Its text is built only when it is
// needed: most callers only test for ErrNotFound, and building the text takes longer than finding
// out that there is no row.
type missingRow struct {
	tab *tablet.Tablet
	key shortKey
}

// missingLong is missingRow for a longer key.
type missingLong struct {
	tab *tablet.Tablet
	key []byte
}

// shortKey is a key with its length in the last byte: with it, a missingRow takes 32 bytes.
type shortKey [24]byte

// missing returns the error for a key without a row. It copies the key.
func (t *Table) missing(key []byte) error {
	if len(key) >= len(shortKey{}) {
		return &missingLong{t.tab, bytes.Clone(key)}
	}
	m := &missingRow{tab: t.tab}
	m.key[len(m.key)-1] = byte(copy(m.key[:], key))
	return m
}

func (m *missingRow) Error() string {
	return (&missingLong{m.tab, m.key[:m.key[len(m.key)-1]]}).Error()
}

func (m *missingLong) Error() string {
	return fmt.Sprintf("oribi: table %q: key %s: %v", m.tab.Name(), m.tab.KeyText(m.key), fault.ErrNotFound)
}

func (m *missingRow) Unwrap() error  { return fault.ErrNotFound }
func (m *missingLong) Unwrap() error { return fault.ErrNotFound }

// Scan is a scan that has not begun yet. Batches, Rows, or Cells runs it, once.
type Scan struct {
	t   *Table
	ctx context.Context
	o   readOptions

	rows    bool // the caller gets the rows: InBloom may rest
	expired bool // it reads the rows that are expired, instead of the others

	keys  bool   // the iterator returns the rows' keys, too
	after []byte // encoded: the scan reads only rows with keys above it; nil: all
	tx    *Tx    // the transaction of which the scan is a part; nil: none

	tracked *trackedScan // the running scan of tx
}

// Scan reads rows, in key order unless Desc or AnyOrder is given. Errors come with the first step
// or any later one: those of the options, ErrCorrupt, ErrClosed, ctx.Err().
func (t *Table) Scan(ctx context.Context, opts ...ScanOption) *Scan {
	sc := &Scan{t: t, ctx: ctx, rows: true}
	collectInto(&sc.o, opts)
	return sc
}

// Batches runs the scan and yields its rows in record batches. A batch is valid until the next step
// or the end of the loop, after which later scans reuse its memory; its byte strings may be kept.
// The rows of the result are those whose bit in Selection is 1. Arrays come as cells (see
// schema.ArrayElements and batch.Vector.AppendUnpacked). An error comes as the last step.
func (sc *Scan) Batches() iter.Seq2[*batch.RecordBatch, error] {
	return func(yield func(*batch.RecordBatch, error) bool) {
		for tries := 0; ; tries++ {
			yielded, err := sc.run(yield)
			if err == nil {
				return
			}
			if yielded || !sc.restarts(err, tries) {
				yield(nil, err)
				return
			}
		}
	}
}

// run runs the scan, and reports whether it has yielded a batch. err is nil if yield has ended it.
func (sc *Scan) run(yield func(*batch.RecordBatch, error) bool) (yielded bool, err error) {
	it, err := sc.start()
	if err != nil {
		return false, err
	}
	defer it.Close()
	for sc.next(it) {
		yielded = true
		if !yield(it.Batch(), nil) {
			return true, nil
		}
	}
	if err = it.Close(); err == nil {
		err = sc.interrupted()
	}
	return yielded, sc.errorf(err)
}

// restarts reports whether a scan that failed may begin again, see Store.restarts. A scan that has
// yielded rows may not.
func (sc *Scan) restarts(err error, tries int) bool {
	return sc.tx == nil && sc.t.store.restarts(sc.ctx, sc.o.asOf, err, tries)
}

// OwnedBatches is like Batches, but the batches belong to the caller: no later step or scan reuses
// their memory. If a caller does not keep them, Batches takes less time.
func (sc *Scan) OwnedBatches() iter.Seq2[*batch.RecordBatch, error] {
	return func(yield func(*batch.RecordBatch, error) bool) {
		for b, err := range sc.Batches() {
			if err == nil {
				b = b.Take()
			}
			if !yield(b, err) {
				return
			}
		}
	}
}

// Table returns the table that the scan reads.
func (sc *Scan) Table() *Table { return sc.t }

// Columns returns the columns of the scan's batches, by the table's present schema. They must not
// be modified. Errors: ErrNoColumn, ErrSchema, as of the scan itself.
func (sc *Scan) Columns() ([]schema.Column, error) {
	tableSchema := sc.t.tab.Schema()
	cols, err := sc.t.project(tableSchema, &sc.o)
	if err != nil {
		return nil, err
	}
	return sc.o.columnsOf(tableSchema, cols), nil
}

func (sc *Scan) errorf(err error) error {
	return sc.t.errorf(err)
}

// Rows runs the scan and yields its rows one by one. After each row, it stops with an error if ctx
// is canceled or the store is closed.
func (sc *Scan) Rows() iter.Seq2[Row, error] {
	return func(yield func(Row, error) bool) {
		var cols []int
		sc.cells(func(b *batch.RecordBatch, cells [][]byte, err error) bool {
			if err != nil {
				return yield(nil, err)
			}
			for c := len(cols); c < len(cells); c++ {
				cols = append(cols, c)
			}
			return yield(newRow(b.Schema, cols, cells), nil)
		})
	}
}

// Cells is like Rows but yields the cells of each row, nil for NULL, in the order of Columns or of
// the schema. The slice is valid until the next step. The byte strings in it may be kept, and must
// not be modified.
func (sc *Scan) Cells() iter.Seq2[[][]byte, error] {
	return func(yield func([][]byte, error) bool) {
		sc.cells(func(_ *batch.RecordBatch, cells [][]byte, err error) bool { return yield(cells, err) })
	}
}

// cells runs the scan and calls yield with the cells of each row and the batch with the row, or
// with an error as the last step.
func (sc *Scan) cells(yield func(b *batch.RecordBatch, cells [][]byte, err error) bool) {
	var cells [][]byte
	for b, err := range sc.Batches() {
		if err != nil {
			yield(nil, nil, err)
			return
		}
		for i := b.Selection.Next(0); i >= 0; i = b.Selection.Next(i + 1) {
			cells = cells[:0]
			for _, v := range b.Columns {
				cells = append(cells, v.Cell(i))
			}
			if !yield(b, cells, nil) {
				sc.stop(i)
				return
			}
			if err := sc.interrupted(); err != nil {
				yield(nil, nil, sc.errorf(err))
				return
			}
		}
	}
}

// next advances the iterator unless the store is closed or the context is canceled.
func (sc *Scan) next(it scan.Iterator) bool {
	return sc.interrupted() == nil && it.Next()
}

func (sc *Scan) interrupted() error {
	return sc.t.store.interrupted(sc.ctx)
}

// interrupted returns the error with which an iteration ends at its next step: ErrClosed, or ctx's.
func (s *Store) interrupted(ctx context.Context) error {
	if s.closed.Load() {
		return fault.ErrClosed
	}
	return ctx.Err()
}

// stop is called when the caller wants no row of the current batch after row i.
func (sc *Scan) stop(i int) {
	if sc.tracked != nil {
		sc.tracked.stop(i)
	}
}

// start returns the iterator over the rows of the scan.
func (sc *Scan) start() (scan.Iterator, error) {
	if sc.tx != nil {
		if err := sc.tx.ready(sc.t); err != nil {
			return nil, err
		}
	}
	s := sc.t.store
	if err := s.enter(); err != nil {
		return nil, err
	}
	defer s.leave()
	begin := time.Now()
	defer func() { s.counters.scans.Record(time.Since(begin)) }()
	run := &pinnedScan{}
	v, o, err := sc.open(&run.bounds)
	if err != nil {
		return nil, err
	}
	var x *explaining
	if sc.o.explain != nil {
		x = sc.newExplaining(&v, &o)
	}
	var it scan.Iterator = run
	if sc.o.workers > 1 {
		p, err := sc.newPartsScan(v, o)
		if err != nil {
			return nil, err
		}
		it = &partsIterator{scan.Parallel(p.parts, p.workers), p}
		x.workers(p.workers)
	} else {
		run.view = v
		if sc.tx == nil {
			run.Iterator, err = v.Scan(o, sc.o.order != anyOrder)
		} else {
			run.Iterator, err = sc.tx.scan(sc, v, o)
		}
		if err != nil {
			v.unpin()
			return nil, fmt.Errorf("oribi: %w", err)
		}
	}
	if sc.o.limit >= 0 {
		it = scan.Limit(it, sc.o.limit)
	}
	if x != nil {
		x.timed(begin)
		it = &explainedScan{Iterator: it, x: x, limit: sc.o.limit}
	}
	return it, nil
}

// open returns the table as the scan sees it, and what the scan asks of it, with bounds that may be
// in the memory of b. The store was entered.
func (sc *Scan) open(b *bounds) (v view, o scan.Options, err error) {
	if v, err = sc.t.view(sc.ctx, &sc.o, true); err != nil {
		return v, o, err
	}
	if o, err = sc.request(&v, b); err == nil && sc.o.workers > 0 && sc.o.order != anyOrder {
		err = sc.errorf(errWorkersOrder)
	}
	if err != nil {
		v.Release()
		return v, o, err
	}
	o.Limit, o.Keys, o.Descending = max(sc.o.limit, 0), sc.keys, sc.o.order == descendingOrder
	if sc.after != nil {
		if next := append(slices.Clip(sc.after), 0); bytes.Compare(next, o.Lower) > 0 {
			o.Lower = next
		}
	}
	return v, o, nil
}

// pinnedScan pins the history that it reads until it is closed.
type pinnedScan struct {
	scan.Iterator
	view   view
	bounds bounds
}

// bounds is memory for the encoded bounds of a key range. Most keys fit.
type bounds struct{ lower, upper [40]byte }

func (s *pinnedScan) Close() error {
	err := s.Iterator.Close()
	s.view.unpin()
	return err
}

// request resolves the names in the options by the schema of the read, and excludes the rows that
// are expired as of it. The bounds of the result may be in the memory of b.
func (sc *Scan) request(v *view, b *bounds) (req scan.Options, err error) {
	t, tableSchema := sc.t, v.TableSchema
	if req.Columns, err = t.project(tableSchema, &sc.o); err != nil {
		return req, err
	}
	if req.Filter, err = t.bindTo(binder{tableSchema.Schema, sc.rows}, sc.o.where); err != nil {
		return req, err
	}
	if req.Lower, err = t.bound(b.lower[:0], tableSchema, sc.o.lower); err != nil {
		return req, err
	}
	if req.Upper, err = t.bound(b.upper[:0], tableSchema, sc.o.upper); err != nil {
		return req, err
	}
	if len(sc.o.where) > 0 {
		req.BoundByFilter(tableSchema.Schema, tableSchema.Encoder)
	}
	if sc.expired {
		req.Filter = v.Gone(req.Filter)
	} else {
		req.Filter = v.Alive(req.Filter)
	}
	if sc.o.prefix == nil {
		return req, nil
	}
	prefix, err := t.bound([]byte{}, tableSchema, sc.o.prefix)
	if err != nil {
		return req, err
	}
	req.Narrow(prefix, keyenc.PrefixEnd(prefix))
	return req, nil
}

// bound encodes a bound of a key range, in the memory of buf if that is large enough; it returns
// nil if there is none.
func (t *Table) bound(buf []byte, tableSchema *tablet.TableSchema, key any) ([]byte, error) {
	if key == nil {
		return nil, nil
	}
	return t.appendKey(buf, tableSchema, key, true)
}

// Count returns the number of rows. Without options, it adds up counters and reads no rows, unless
// rows of the table expire, or write batches are in flight that it must not count yet.
func (t *Table) Count(ctx context.Context, opts ...CountOption) (int64, error) {
	o := collect(opts)
	return t.count(ctx, &o)
}

// count is Count. It changes o.
func (t *Table) count(ctx context.Context, o *readOptions) (int64, error) {
	begin := time.Now()
	if !o.asOf && !t.expires() && o.lower == nil && o.upper == nil && o.prefix == nil && len(o.where) == 0 {
		if err := t.store.enter(); err != nil {
			return 0, err
		}
		n, ok := t.published()
		t.store.leave()
		if err := ctx.Err(); err != nil {
			return 0, fmt.Errorf("oribi: table %q: %w", t.tab.Name(), err)
		}
		if ok {
			if e := o.explain; e != nil {
				*e = Explanation{Table: t.tab.Name(), Returned: n, Complete: true, FromCounters: true, Time: time.Since(begin), verb: "counted"}
			}
			return n, nil
		}
	}
	o.columns, o.all, o.order = nil, false, anyOrder
	for tries := 0; ; tries++ {
		n, err := (&Scan{t: t, ctx: ctx, o: *o}).count()
		if err == nil || !t.store.restarts(ctx, o.asOf, err, tries) {
			return n, err
		}
	}
}

// count returns the number of rows.
func (sc *Scan) count() (int64, error) {
	p, err := sc.startParts("counted")
	if err != nil {
		return 0, err
	}
	defer p.close()
	counts := make([]int64, p.workers)
	err = p.each(nil, func(worker int, b *batch.RecordBatch) error {
		counts[worker] += int64(b.Selected())
		return nil
	})
	n := int64(0)
	for _, c := range counts {
		n += c
	}
	return n, sc.errorf(err)
}

// published returns the number of live rows. ok reports whether the counters show the published
// state: no batch was between log and publication, and none entered the log while they were read.
func (t *Table) published() (n int64, ok bool) {
	s := t.store
	last := s.lastLSN.Load()
	if s.pub.FirstUnpublished() <= last {
		return 0, false
	}
	n = t.tab.LiveRows()
	return n, s.lastLSN.Load() == last
}
