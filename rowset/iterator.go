package rowset

import (
	"fmt"
	"slices"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/cfile"
	"github.com/oribi-db/oribi/change"
	"github.com/oribi-db/oribi/delta"
	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/internal/parallel"
	"github.com/oribi-db/oribi/scan"
	"github.com/oribi-db/oribi/schema"
)

// Iterator scans one rowset in windows of row IDs [4096 k, 4096 (k+1)). It reads a window in parts
// if rows are long, if a key bound is inside the window, and at the beginning of a scan that may
// need only a few rows. A descending scan reads the windows from the last to the first; it reads
// each window as an ascending scan does, then reverses its rows. A consumer is offered more rows at
// once (see lookAhead).
//
// In each window, in this order: deletes clear bits of the selection; the filter runs, on encoded
// data except for the rows in which the snapshot sees a change of the column; if a row is left, the
// projected columns are read and changes applied to them. Source: tablet spec §8.5.
type Iterator struct {
	d      *DiskRowSet
	req    *scan.Request
	deltas *delta.Tracker
	// If span is not nil, only rows with a change in span are returned or, if still is set, only
	// rows without.
	span  *delta.Span
	still bool

	// Where the scan is. The first window is small and each is larger than the one before, so that a
	// scan which ends after a few rows has not read many, and a long scan has few windows.
	rows     batch.Ordinal // size of a whole window; 0 before the first
	part     batch.Ordinal // size of the next window, if smaller than rows
	returned int64         // rows up to now
	low      batch.Ordinal // rows [low, high) have keys in the request's range
	high     batch.Ordinal
	next     batch.Ordinal // rows [next, end) are still to be read
	end      batch.Ordinal
	from     batch.Ordinal // the current window: n rows at from
	n        int
	run      deadRun // the last one, see noteDead

	test    func(*batch.Predicate, batch.Bitmap) error // filterOne, if the request has a filter
	err     error
	*memory // nil after Close

	// consumer, if it is not nil, is offered each window before its columns are read: an aggregation
	// computes with the stored values. taken reports whether it took the last window.
	consumer scan.Consumer
	taken    bool

	counting *counting // what an explanation counts; nil if nothing is counted
}

// NewIterator scans the rowset for a request. It takes a reference that Close releases.
func (d *DiskRowSet) NewIterator(req *scan.Request) (*Iterator, error) {
	return d.newIterator(req, d.Tracker())
}

func (d *DiskRowSet) newIterator(req *scan.Request, deltas *delta.Tracker) (*Iterator, error) {
	n := len(d.Schema.Columns)
	if got := len(req.Schema().Columns); got != n {
		return nil, fmt.Errorf("rowset %d: request on a schema of %d columns, the rowset has %d: %w",
			d.Metadata().ID, got, n, fault.ErrSchema)
	}
	it := &Iterator{d: d, req: req, deltas: deltas, memory: newMemory(n, req)}
	if err := it.seekBounds(); err != nil {
		it.memory.release()
		return nil, err
	}
	var ids []schema.ColumnID // none are needed without a store of changes
	if len(deltas.Undo)+len(deltas.Redo) > 0 || deltas.Mem != nil {
		ids = it.columnIDs()
	}
	it.window.Reset(deltas, req.Snapshot(), ids)
	if !req.Filter().All() {
		it.test = it.filterOne
		it.planFilter()
	}
	if it.counting = it.newCounting(); it.counting != nil && it.test != nil {
		it.test = it.countedFilter
	}
	if req.Share() == nil {
		rows := req.Rows()
		if rows.To == 0 {
			rows.To = batch.Ordinal(d.Metadata().Rows)
		}
		it.take(rows)
	}
	d.Ref()
	return it, nil
}

// seekBounds sets it.low and it.high to the rows whose keys are in the request's range.
func (it *Iterator) seekBounds() (err error) {
	lower, upper := it.req.Bounds()
	it.high = batch.Ordinal(it.d.Metadata().Rows)
	if lower != nil {
		if it.low, _, err = it.d.seekWith(lower, it.pagesFrom(upper)); err != nil {
			return err
		}
	}
	if upper != nil {
		it.high, _, err = it.d.seekWith(upper, it.pagesTo())
	}
	return err
}

// take makes the rows of a range that have keys in the request's range the next ones.
func (it *Iterator) take(rows scan.RowRange) {
	it.next, it.end = max(rows.From, it.low), min(rows.To, it.high)
	it.counting.outside(int(rows.To-rows.From) - int(max(it.next, it.end)-it.next))
}

// takeMore takes further rows of a share, and reports whether there are any.
func (it *Iterator) takeMore() bool {
	share := it.req.Share()
	for share != nil && it.err == nil {
		rows, ok, err := share.Next()
		if it.err = err; !ok {
			return false
		}
		if it.take(rows); it.next < it.end {
			return true
		}
	}
	return false
}

// Seek skips the rows that were not returned yet and whose keys are below key, or above key in a
// descending scan.
func (it *Iterator) Seek(key []byte) error {
	row, exact, err := it.d.seek(key)
	switch {
	case err != nil:
		return err
	case !it.req.Descending():
		it.next = max(it.next, row)
	case exact:
		it.end = min(it.end, row+1)
	default:
		it.end = min(it.end, row)
	}
	return nil
}

// Offer offers the windows to c before their columns are read.
func (it *Iterator) Offer(c scan.Consumer) {
	if it.memory != nil {
		it.consumer, it.encoded.it = c, it
	}
}

// Next reads the next window that has a row in the result.
func (it *Iterator) Next() bool {
	if it.memory == nil {
		return false
	}
	if it.rows == 0 && it.err == nil {
		it.rows, it.err = it.d.windowOf(it.columnsRead, it.deltas)
		it.part = batch.Ordinal(it.req.FirstRows())
		if it.err == nil && (it.consumer != nil || it.part == batch.WindowRows && len(it.req.Columns()) == 0) {
			it.err = it.useOverlays()
		}
	}
	for it.err == nil && (it.passDead() || it.takeMore()) {
		if to, ok := it.looksAhead(); ok {
			it.lookAhead(to)
			continue
		}
		from, to := it.advance()
		var any bool
		if any, it.err = it.read(from, int(to-from)); any && it.err == nil {
			if it.req.Descending() {
				it.out.Selection.Reverse(it.out.Len)
			}
			it.returned += int64(it.out.Selected())
			return true
		}
	}
	return false
}

// advance returns the next window, rows [from, to). The caller has checked that there is one. The
// parts of a window grow, and none crosses the end of its window.
func (it *Iterator) advance() (from, to batch.Ordinal) {
	from, to = it.next, it.end
	part := batch.Ordinal(it.req.LimitRows(int(it.part), it.returned))
	if it.req.Descending() {
		from = max(from, (to-1)/it.rows*it.rows, to-min(to, part))
		it.end = from
	} else {
		to = min(to, (from/it.rows+1)*it.rows, from+part)
		it.next = to
	}
	it.part = batch.Ordinal(it.req.NextRows(int(it.part)))
	return from, to
}

// columnsRead returns the columns that a window may read, in the memory of it.cold. A column may
// occur twice.
func (it *Iterator) columnsRead() []int {
	it.cold = append(it.cold[:0], it.req.Columns()...)
	for p := range it.req.Filter().Tests() {
		it.cold = append(it.cold, it.d.Schema.IndexID(p.ID))
	}
	if it.req.Keys() {
		for i := range it.d.Schema.Keys {
			it.cold = append(it.cold, i)
		}
	}
	return it.cold
}

// columnIDs returns the IDs of the columns that a window may read, in ascending order.
func (it *Iterator) columnIDs() []schema.ColumnID {
	it.ids = slices.Grow(it.ids[:0], 1)
	for _, col := range it.columnsRead() {
		if col >= 0 {
			it.ids = append(it.ids, it.d.Schema.Columns[col].ID)
		}
	}
	slices.Sort(it.ids)
	return it.ids
}

// read fills the output from rows [from, from+n) and reports whether a row is left.
func (it *Iterator) read(from batch.Ordinal, n int) (bool, error) {
	sel := it.out.Selection.Resize(n)
	sel.SetRange(0, n)
	it.out.Selection, it.out.Len = sel, n
	if it.span != nil {
		if err := it.selectChanged(from, n, sel); err != nil || !sel.Any() {
			return false, err
		}
	}
	if err := it.window.Prepare(from, n); err != nil {
		return false, err
	}
	for _, c := range it.used {
		c.loaded, c.reversed = false, false
	}
	if it.window.ApplyDeletes(sel) && it.span == nil && it.window.DeadForGood() {
		it.noteDead(from, n, sel)
	}
	it.counting.visible(n, sel)
	if !sel.Any() {
		return false, nil
	}
	it.from, it.n, it.encoded.sel = from, n, sel
	it.place.reset(n)
	if any, err := it.choose(sel); err != nil || !any {
		return false, err
	}
	it.counting.selected(sel)
	if it.consumer != nil {
		var err error
		if it.taken, err = it.consumer(&it.encoded); it.taken || err != nil {
			it.counting.taken(sel)
			return false, err
		}
	}
	it.loadStored(from, n)
	if err := it.fetch(from, n); err != nil {
		return false, err
	}
	for i, col := range it.req.Columns() {
		v, err := it.result(col, from, n)
		if err != nil {
			return false, err
		}
		it.out.Columns[i] = v
	}
	return true, it.makeKeys(from, n)
}

// fetch reads concurrently what a window of few rows needs from the disk for the columns that it
// returns, so that it does not wait for one column after another. Whole windows read so much of
// each column that they would gain little.
func (it *Iterator) fetch(from batch.Ordinal, n int) error {
	if n >= it.req.MostRows()/2 || it.d.opts.Cache == nil {
		return nil
	}
	if err := it.addAllCold(from, n); err != nil || len(it.cold) < 2 {
		return err
	}
	return it.fetchCold(from, n)
}

// addAllCold sets it.cold to the columns that the window returns and that must be read from the disk.
func (it *Iterator) addAllCold(from batch.Ordinal, n int) error {
	it.cold = it.cold[:0]
	for _, col := range it.req.Columns() {
		if err := it.addCold(col, from, n); err != nil {
			return err
		}
	}
	for col := 0; it.req.Keys() && col < it.d.Schema.Keys; col++ {
		if err := it.addCold(col, from, n); err != nil {
			return err
		}
	}
	return nil
}

// fetchCold reads the columns in it.cold.
func (it *Iterator) fetchCold(from batch.Ordinal, n int) error {
	for _, col := range it.cold {
		it.column(col) // adds it: not to be done concurrently
	}
	return parallel.Each(len(it.cold), readsTogether, func(_, k int) error {
		r, err := it.reader(it.cold[k])
		if err != nil || r == nil {
			return err
		}
		return r.Fetch(from, n)
	})
}

// addCold adds col to it.cold if it must be read from the disk.
func (it *Iterator) addCold(col int, from batch.Ordinal, n int) error {
	c := &it.d.columns[col]
	if c.block == 0 || it.column(col).loaded || slices.Contains(it.cold, col) {
		return nil
	}
	if c.file.val.Load() != nil {
		r, err := it.reader(col)
		if err != nil || r.Cached(from, n) {
			return err
		}
	}
	it.cold = append(it.cold, col)
	return nil
}

// touchedRows returns the rows of the window whose cell of the column was changed, valid until the
// next call, and reports whether they are so few that encoded data is worth using for the others.
func (it *Iterator) touchedRows(id schema.ColumnID) (rows batch.Bitmap, few bool) {
	it.touched = it.touched.Resize(it.n)
	it.window.AddTouched(id, it.touched)
	return it.touched, it.touched.Count() <= it.n/4
}

// changedCells returns a vector with those cells of the window that were changed. The others are
// undefined. It is valid until the column is read.
func (it *Iterator) changedCells(col int) *batch.Vector {
	c, read := &it.d.Schema.Columns[col], it.column(col)
	v := &read.vector
	if !read.loaded { // else v has all cells
		v.Type = c.Type
		v.Reset(it.n)
		it.window.ApplyColumn(c.ID, v)
	}
	return v
}

// reader returns the column's reader; nil if the rowset has no such column.
func (it *Iterator) reader(col int) (*cfile.ColumnReader, error) {
	c := it.column(col)
	if !c.open {
		f, err := it.d.File(col)
		if err != nil || f == nil {
			return nil, err
		}
		c.reader.Reset(f)
		c.open = true
		if err := it.counting.open(col, &c.reader); err != nil {
			return nil, err
		}
	}
	return &c.reader, nil
}

// load returns the column's cells in this window with changes applied. It reads them once per
// window.
func (it *Iterator) load(col int, from batch.Ordinal, n int) (*batch.Vector, error) {
	read := it.column(col)
	v := &read.vector
	if read.loaded {
		return v, nil
	}
	c := &it.d.Schema.Columns[col]
	v.Type = c.Type
	if err := it.base(col, c, from, n, v); err != nil {
		return nil, err
	}
	if it.window.Touches(c.ID) {
		it.window.ApplyColumn(c.ID, v)
	}
	read.loaded = true
	return v, nil
}

func (it *Iterator) base(col int, c *schema.Column, from batch.Ordinal, n int, v *batch.Vector) error {
	r, err := it.reader(col)
	if err != nil {
		return err
	}
	if r == nil {
		v.Fill(n, c.ReadDefault)
		return nil
	}
	return readFull(r, it.d, c, from, n, v)
}

// makeKeys encodes the keys of the window's rows, if the request asks for them.
func (it *Iterator) makeKeys(from batch.Ordinal, n int) error {
	if !it.req.Keys() {
		return nil
	}
	if err := it.needKeyColumns(); err != nil {
		return err
	}
	it.keys = change.AppendVectorKeys(it.keys[:0:0], it.d.encoder, it.place.columns, 0, n)
	return nil
}

// Batch returns the current window, which is valid until the next call of Next, Seek or Close.
func (it *Iterator) Batch() *batch.RecordBatch { return &it.out }

// Keys returns the encoded keys of the current window's rows, nil if the request does not ask for
// them.
func (it *Iterator) Keys() [][]byte {
	if !it.req.Keys() {
		return nil
	}
	return it.keys
}

// Close releases the rowset.
func (it *Iterator) Close() error {
	if it.memory != nil {
		it.count()
		it.memory.release()
		it.memory = nil
		it.d.Unref()
	}
	return it.err
}
