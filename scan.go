package oribi

import (
	"bytes"
	"context"
	"fmt"
	"iter"
	"slices"
	"time"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/internal/bind"
	"github.com/oribi-db/oribi/internal/tablet"
	"github.com/oribi-db/oribi/keyenc"
	"github.com/oribi-db/oribi/scan"
	"github.com/oribi-db/oribi/scaninfo"
	"github.com/oribi-db/oribi/schema"
)

// Scan is a scan that has not begun yet. Batches, Rows, or Cells runs it, once.
type Scan struct {
	t   *Table
	ctx context.Context
	o   readOptions

	rows    bool // the caller gets the rows: InBloom may rest
	single  bool // it gets them one by one, and may end after any
	expired bool // it reads the rows that are expired, instead of the others

	keys  bool   // the iterator returns the rows' keys, too
	after []byte // encoded: the scan reads only rows with keys above it; nil for all rows
	tx    scanTx // the transaction of which the scan is a part, or nil

	by      *byIndex // that finds the rows to look at; nil for none
	choices []scaninfo.IndexChoice

	tracked interface{ stop(row int) } // the running scan of tx, or nil
}

// scanTx is a transaction as its scans see it.
type scanTx interface {
	// reading returns an error if the transaction has ended or cannot read the table.
	reading(t *Table) error
	// state returns the state that the transaction reads.
	state() *Snapshot
	// scan returns an iterator over the rows of sc, which it adds to the read set.
	scan(sc *Scan, v view, o scan.Options) (scan.Iterator, error)
}

// Scan reads rows, in key order unless Desc, AnyOrder, or OrderBy is given. Errors come with the first step
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
	return sc.tx == nil && sc.t.store.core.Restarts(sc.ctx, sc.o.asOf, err, tries)
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
			return yield(bind.Row(b.Schema, cols, cells), nil)
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
	sc.single = true
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

// stop is called when the caller wants no row of the current batch after row i.
func (sc *Scan) stop(i int) {
	if sc.tracked != nil {
		sc.tracked.stop(i)
	}
}

// start returns the iterator over the rows of the scan.
func (sc *Scan) start() (scan.Iterator, error) {
	if sc.tx != nil {
		if err := sc.tx.reading(sc.t); err != nil {
			return nil, err
		}
		At(sc.tx.state()).apply(&sc.o)
	}
	s := sc.t.store
	if err := s.enter(); err != nil {
		return nil, err
	}
	defer s.leave()
	begin := time.Now()
	defer s.core.Counters.BeganScan(begin)
	run := &pinnedScan{}
	v, o, err := sc.open(&run.bounds)
	if err != nil {
		return nil, err
	}
	var r *scaninfo.Recorder
	if sc.o.explain != nil {
		r = newRecorder(sc.t, &sc.o, "returned", &v, &o)
		sc.explainIndex(r)
	}
	var it scan.Iterator = run
	if sc.o.workers > 1 {
		p, err := newPartsScan(sc.ctx, s, sc.o.workers, v, o)
		if err != nil {
			return nil, err
		}
		it = &partsIterator{scan.Parallel(p.parts, p.workers), p}
		r.SetWorkers(p.workers)
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
		run.store, run.bytes = s, min(int64(len(o.Columns))*workerColumnBytes, maxScanBytes)
		s.core.Scanning.Add(run.bytes)
	}
	if sc.o.limit >= 0 {
		it = scan.Limit(it, sc.o.limit)
	}
	if r != nil {
		r.Timed(begin)
		it = r.Scan(it, sc.o.limit)
	}
	return it, nil
}

// open returns the table as the scan sees it, and what the scan asks of it, with bounds that may be
// in the memory of b. The store was entered.
func (sc *Scan) open(b *bounds) (v view, o scan.Options, err error) {
	if v, err = sc.t.view(sc.ctx, &sc.o, true); err != nil {
		return v, o, err
	}
	if o, err = sc.request(&v, b); err == nil && sc.o.workers > 0 && (sc.o.order != anyOrder || sc.o.orderBy != "") {
		err = sc.errorf(errWorkersOrder)
	}
	if err != nil {
		v.Release()
		return v, o, err
	}
	if sc.expired {
		o.Filter = v.Gone(o.Filter)
	} else {
		o.Filter = v.Alive(o.Filter)
	}
	o.Limit, o.Keys, o.Descending = max(sc.o.limit, 0), sc.keys, sc.o.order == descendingOrder
	if o.Limit == 0 && sc.single && sc.o.order != anyOrder {
		// Batches grow: a loop that ends early has read little more than it got.
		o.Limit, o.MostRows = cursorRows, cursorMost
	}
	sc.skipDone(&o)
	if !sc.expired {
		if err = sc.chooseIndex(&v, &o); err != nil {
			v.Release()
		}
	}
	return v, o, err
}

// chooseIndex chooses the index that finds the rows of the scan, or none.
func (sc *Scan) chooseIndex(v *view, o *scan.Options) (err error) {
	c := indexChooser{t: sc.t, ctx: sc.ctx, v: v, read: &sc.o, o: o}
	sc.by, err = c.choose()
	if sc.choices = c.choices; sc.by != nil {
		v.also = sc.by.release
		sc.by.lookUp(sc.ctx, o)
	}
	return err
}

func (sc *Scan) explainIndex(r *scaninfo.Recorder) {
	if sc.by != nil {
		r.ByIndex(sc.by.table.Index().Name, sc.by.keys)
	}
	r.Choices(sc.choices)
}

// cursorRows is the number of rows that a cursor, or a loop over single rows, reads at first.
const cursorRows = 16

// cursorMost is the maximum number of rows that they read at once without a filter: what a processor's first
// cache has room for. With a filter, larger batches are tested in less time.
const cursorMost = 512

// skipDone leaves out the rows up to sc.after.
func (sc *Scan) skipDone(o *scan.Options) {
	if sc.after == nil {
		return
	}
	if next := append(slices.Clip(sc.after), 0); bytes.Compare(next, o.Lower) > 0 {
		o.Lower = next
	}
}

// pinnedScan pins the history that it reads until it is closed.
type pinnedScan struct {
	scan.Iterator
	view   view
	bounds bounds
	store  *Store
	bytes  int64 // that it counts in store.Core.Scanning
}

// maxScanBytes is about how much memory a scan of a wide table takes, apart from the cache: a cblock
// of each column, and the cells of a few windows. Wide tables have small cblocks and windows.
const maxScanBytes = 24 << 20

// bounds is memory for the encoded bounds of a key range. Most keys fit.
type bounds struct{ lower, upper [40]byte }

func (s *pinnedScan) Close() error {
	err := s.Iterator.Close()
	s.view.unpin()
	s.store.core.Scanning.Add(-s.bytes)
	s.bytes = 0
	return err
}

// request resolves the names in the options by the schema of the read. The bounds of the result may
// be in the memory of b.
func (sc *Scan) request(v *view, b *bounds) (req scan.Options, err error) {
	t, tableSchema := sc.t, v.TableSchema
	if req.Columns, err = t.project(tableSchema, &sc.o); err != nil {
		return req, err
	}
	if req.Filter, err = t.filter(tableSchema.Schema, sc.o.where, sc.rows); err != nil {
		return req, err
	}
	if req.Lower, req.Upper, err = t.keyRange(b, tableSchema, &sc.o); err == nil && len(sc.o.where) > 0 {
		req.BoundByFilter(tableSchema.Schema, tableSchema.Encoder)
	}
	return req, err
}

// keyRange returns the encoded bounds of the keys that From, To, Prefix, Above, and Below select, which may be in the
// memory of b; nil = no bound.
func (t *Table) keyRange(b *bounds, tableSchema *tablet.TableSchema, o *readOptions) (lower, upper []byte, err error) {
	var r scan.Options
	if r.Lower, err = t.bound(b.lower[:0], tableSchema, o.lower); err != nil {
		return nil, nil, err
	}
	if r.Upper, err = t.bound(b.upper[:0], tableSchema, o.upper); err != nil {
		return nil, nil, err
	}
	if o.prefix != nil {
		prefix, err := t.bound([]byte{}, tableSchema, o.prefix)
		if err != nil {
			return nil, nil, err
		}
		r.Narrow(prefix, keyenc.PrefixEnd(prefix))
	}
	if o.orderBy == "" && (o.above != nil || o.below != nil) {
		lower, upper, err := t.keysBetween(tableSchema, o)
		if err != nil {
			return nil, nil, err
		}
		r.Narrow(lower, upper)
	}
	return r.Lower, r.Upper, nil
}

// startParts begins the scan, as start does. verb says what is done with the rows.
func (sc *Scan) startParts(verb string) (*partsScan, error) {
	begin := time.Now()
	s := sc.t.store
	if err := s.enter(); err != nil {
		return nil, err
	}
	defer s.leave()
	defer s.core.Counters.BeganScan(begin)
	v, o, err := sc.open(new(bounds))
	if err != nil {
		return nil, err
	}
	var r *scaninfo.Recorder
	if sc.o.explain != nil {
		r = newRecorder(sc.t, &sc.o, verb, &v, &o)
		sc.explainIndex(r)
	}
	p, err := newPartsScan(sc.ctx, s, sc.o.workers, v, o)
	if err != nil {
		return nil, err
	}
	p.explain = r
	r.Timed(begin)
	return p, nil
}

// Explain runs the scan to its end and describes what it did, without returning the rows. To get
// both, give Table.Scan the option Explain. Together with an error, the explanation describes the
// read up to then; it is nil if nothing was read.
func (sc *Scan) Explain() (*Explanation, error) {
	to, e := sc.o.explain, new(Explanation)
	sc.o.explain = e
	defer func() { sc.o.explain = to }()
	var failed error
	for _, err := range sc.Batches() {
		failed = err
	}
	if e.Table == "" { // it did not begin to read
		return nil, failed
	}
	if to != nil {
		*to = *e
	}
	return e, failed
}
