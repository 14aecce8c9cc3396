package tablet

import (
	"slices"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/bloom"
	"github.com/oribi-db/oribi/change"
	"github.com/oribi-db/oribi/internal/meta"
	"github.com/oribi-db/oribi/mvcc"
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

// GetUntil is Get that also returns the timestamp as of which the row is expired by the rule of the
// state that v sees; mvcc.Max for never.
func (v View) GetUntil(key []byte, cols []int, dst [][]byte) (cells [][]byte, until mvcc.Timestamp, found bool, err error) {
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

// startExpiry sets the time as of which the operations are decided, if the table's rows expire.
func (w *Write) startExpiry() (err error) {
	sc := w.state.schema
	w.until = mvcc.Max
	if w.rule, w.expires = sc.Expiry.Current(); w.expires {
		w.clock = sc.Schema.IndexID(w.rule.Column)
		w.now, err = w.t.opts.Store.Timestamp()
	}
	return err
}

// find returns the position of the live version of a key, which may be that of an expired row.
func (w *Write) find(probe bloom.Probe) (position, error) {
	p, err := w.state.find(probe)
	if !w.expires || !p.live || err != nil {
		return p, err
	}
	if p.mem != nil {
		row, _ := p.mem.NewestRow(probe.Key)
		p.expires = w.expiryOfRow(row)
		return p, nil
	}
	var few [1][]byte
	cells, _, err := p.set.Get(probe, mvcc.Everything, []int{w.clock}, few[:0])
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
func (w *Write) Expired(ts mvcc.Timestamp) bool { return w.expires && w.until <= ts }

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

// beginRule gives the last entry of row.Expiry, which an Alter has added, its timestamp: that of an
// empty batch. The caller calls publish when readers see the new rule: until then, none reads as of
// the timestamp or a later one.
func (t *Tablet) beginRule(row *meta.Table) (publish func(), err error) {
	n := len(row.Expiry) - 1
	ts, _, publish, err := t.opts.Store.AppendEmpty(t.Number)
	if err != nil {
		return nil, err
	}
	row.Expiry = slices.Clone(row.Expiry)
	row.Expiry[n].From = ts
	return publish, nil
}
