package tablet

import (
	"slices"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/bloom"
	"github.com/oribi-db/oribi/change"
	"github.com/oribi-db/oribi/mvcc"
	"github.com/oribi-db/oribi/scan"
)

// setExpired sets which rows are expired as of the view's snapshot.
func (v *View) setExpired() {
	if len(v.Expiry) == 0 {
		return
	}
	if v.expired, v.expires = v.Expiry.At(v.snap.Newest()); v.expires {
		v.clock = v.Schema.IndexID(v.expired.Column)
	}
}

// asOf returns v as of another snapshot, which is not below the state's floor. It is not another
// reference to the state.
func (v View) asOf(snap mvcc.Snapshot) View {
	v.snap = snap
	v.setExpired()
	return v
}

// Expired reports whether a row with these cells, one for each column, is expired in the state that
// v sees.
func (v View) Expired(cells [][]byte) bool {
	return v.expires && cells != nil && v.expired.Expired(cells[v.clock])
}

// Alive returns f for the rows that are not expired.
func (v View) Alive(f batch.Filter) batch.Filter {
	if !v.expires {
		return f
	}
	return batch.And(f, v.expired.Alive(&v.Schema.Columns[v.clock]))
}

// Gone returns f for the rows that are expired.
func (v View) Gone(f batch.Filter) batch.Filter {
	if !v.expires {
		return batch.Or()
	}
	return batch.And(f, v.expired.Gone(&v.Schema.Columns[v.clock]))
}

// GetUntil is Get that also returns the timestamp as of which the row is expired by the rule of the
// state that v sees; mvcc.Max for never.
func (v View) GetUntil(key []byte, cols []int, dst [][]byte) (cells [][]byte, until mvcc.Timestamp, found bool,
	err error) {
	if !v.expires {
		cells, found, err = v.stored(key, cols, dst)
		return cells, mvcc.Max, found, err
	}
	at, all := slices.Index(cols, v.clock), len(dst)+len(cols)
	if at < 0 {
		at, cols = len(cols), append(slices.Clip(cols), v.clock)
	}
	n := len(dst)
	cells, found, err = v.stored(key, cols, dst)
	if err != nil || !found || v.expired.Expired(cells[n+at]) {
		return dst, mvcc.Max, false, err
	}
	return cells[:all], v.expired.Expiry(cells[n+at]), true, nil
}

// Until returns the timestamp as of which a row with these cells, one for each column, is expired,
// as GetUntil does.
func (v View) Until(cells [][]byte) mvcc.Timestamp {
	if !v.expires || cells == nil {
		return mvcc.Max
	}
	return v.UntilCell(cells[v.clock])
}

// Clock returns the index of the column by which rows expire; −1 if they do not in the state that v
// sees.
func (v View) Clock() int {
	if !v.expires {
		return -1
	}
	return v.clock
}

// UntilCell is Until for a row with that cell in the column Clock.
func (v View) UntilCell(cell []byte) mvcc.Timestamp { return v.expired.Expiry(cell) }

// expiredRows iterates over the rows that are expired as of a later snapshot and exist as of a
// view's snapshot, in key order.
type expiredRows struct {
	view View // as of the earlier snapshot
	cols []int
	it   scan.Iterator // the rows that are expired as of the later one
	row  int           // of the current batch; below 0: there is none
	done bool

	key   []byte // of the current row; nil before the first row and after the last
	cells [][]byte
}

// newExpiredRows returns the rows in the bounds of o that exist as of v, and are expired as of to; nil
// if no rows expire.
func (v View) newExpiredRows(o scan.Options, to mvcc.Snapshot) (*expiredRows, error) {
	later := v.asOf(to)
	if !later.expires {
		return nil, nil
	}
	// Of a row that was not changed in between, both snapshots see the same cells.
	filter := v.Alive(later.expired.Gone(&v.Schema.Columns[later.clock]))
	r, err := scan.NewRequest(scan.Options{Schema: v.Schema, Filter: filter, Lower: o.Lower, Upper: o.Upper,
		Descending: o.Descending, Snapshot: to, Keys: true})
	if err != nil {
		return nil, err
	}
	// not nil, even of no columns
	return &expiredRows{view: v, cols: o.Columns, it: v.state.union().Scan(r, true), row: -1,
		cells: make([][]byte, 0, len(o.Columns))}, nil
}

// next moves to the next row.
func (e *expiredRows) next() error {
	e.key = nil
	for !e.done {
		if e.row >= 0 {
			e.row = e.it.Batch().Selection.Next(e.row + 1)
		}
		if e.row < 0 {
			if !e.it.Next() {
				e.done = true
				return e.it.Close()
			}
			e.row = e.it.Batch().Selection.Next(0)
		}
		key := e.it.Keys()[e.row]
		cells, found, err := e.view.Get(key, e.cols, e.cells[:0])
		if err != nil {
			return err
		}
		if e.cells = cells; found {
			e.key = key
			return nil
		}
	}
	return nil
}

// startExpiry sets the time as of which the operations are decided, if the table's rows expire.
func (w *Write) startExpiry() (err error) {
	sc := w.state.schema
	w.until = mvcc.Max
	if w.rule, w.expires = sc.Expiry.Current(); w.expires {
		w.clock = sc.Schema.IndexID(w.rule.Column)
		w.now, err = w.t.opts.Store.Timestamp()
		w.now = max(w.now, w.AsOf)
	}
	return err
}

// find returns the position of the live version of a key, which may be an expired row.
func (w *Write) find(probe bloom.Probe) (position, error) {
	p, err := w.state.find(probe)
	if !w.expires || !p.live || err != nil {
		return p, err
	}
	if p.mem != nil {
		row, live := p.mem.NewestRow(probe.Key)
		if !live {
			return position{}, nil
		}
		p.expires = w.expiryOfRow(row)
		return p, nil
	}
	var few [1][]byte
	cells, found, err := p.set.Get(probe, mvcc.Everything, []int{w.clock}, few[:0])
	if err == nil && !found {
		return position{}, nil
	}
	if err == nil {
		p.expires = w.rule.Expiry(cells[0])
	}
	return p, err
}

// exists reports whether there is a row at p as of w.now.
func (w *Write) exists(p position) bool {
	if !w.expires || !p.live {
		return p.live
	}
	if p.expires <= w.now {
		return false
	}
	w.until = min(w.until, p.expires)
	return true
}

// Expired reports whether a row that the operations were decided by is expired as of ts: then they
// may have to be decided in another way.
func (w *Write) Expired(ts mvcc.Timestamp) bool {
	for e := range w.Indexes {
		if e.Expired(ts) {
			return true
		}
	}
	return w.expires && w.until <= ts
}

// expiryOfRow returns when a row with this image expires. The result is not used unless w.expires
// is set.
func (w *Write) expiryOfRow(image []byte) mvcc.Timestamp {
	if !w.expires {
		return mvcc.Max
	}
	return w.rule.Expiry(w.state.schema.RowFormat.Cell(image, w.clock))
}

// expiryAfter returns when the row at p expires after an update.
func (w *Write) expiryAfter(p position, list change.List) mvcc.Timestamp {
	if !w.expires {
		return p.expires
	}
	columns := list.Columns()
	for id, cell, ok := columns.Next(); ok; id, cell, ok = columns.Next() {
		if id == w.rule.Column {
			return w.rule.Expiry(cell)
		}
	}
	return p.expires
}
