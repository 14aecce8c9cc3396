package kudu

import (
	"context"
	"fmt"
	"math"
	"sync"
	"time"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/change"
	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/internal/kuduschema"
	"github.com/oribi-db/oribi/internal/rewrite"
	"github.com/oribi-db/oribi/internal/rowunion"
	"github.com/oribi-db/oribi/keyenc"
	"github.com/oribi-db/oribi/memrowset"
	"github.com/oribi-db/oribi/mvcc"
	"github.com/oribi-db/oribi/rowset"
	"github.com/oribi-db/oribi/scan"
	"github.com/oribi-db/oribi/schema"
)

// Table has the rows of all tablets that a directory has of one table, or the rows of one tablet.
type Table struct {
	Name          string
	Schema        *schema.Schema // the last one of the table
	SchemaVersion uint32

	tablets []*tablet
	union   rowunion.Union
	warn    func(text string)
	warned  sync.Once
}

// openTable opens tablets of one table.
func (d *Directory) openTable(ctx context.Context, from []*Tablet) (*Table, error) {
	last := newestSchema(from)
	s, err := kuduschema.FromMessage(last.super.Schema)
	if err != nil {
		return nil, fmt.Errorf("tablet %s: %w", last.ID, err)
	}
	table := &Table{Name: last.Table, Schema: s, SchemaVersion: last.super.GetSchemaVersion(), warn: d.warn}
	var sets []*rowset.DiskRowSet
	var mems []*memrowset.MemRowSet
	for _, f := range from {
		t, err := d.openTablet(ctx, f, s)
		if err != nil {
			table.Close()
			return nil, err
		}
		table.tablets = append(table.tablets, t)
		sets = append(sets, t.sets...)
		mems = append(mems, t.mem)
	}
	// A key is in one tablet only, so the rowsets of all tablets can be read as the rowsets of one.
	table.union = rowunion.Union{Tree: rowset.NewTree(sets), Mems: mems, Format: change.NewRowFormat(s)}
	return table, nil
}

// Close closes the files of the table. Its iterators are closed before.
func (t *Table) Close() error {
	for _, tablet := range t.tablets {
		tablet.close()
	}
	t.tablets = nil
	return nil
}

// LiveRows returns the number of rows as of the newest operation, as the tablets count them.
// Tablets of old servers have no count: their rows are read. Errors: ErrCorrupt; errors of the
// context and of the file system.
func (t *Table) LiveRows(ctx context.Context) (n int64, err error) {
	for _, tablet := range t.tablets {
		if tablet.super.GetSupportsLiveRowCount() {
			n += tablet.liveRows()
			continue
		}
		rows, err := tablet.readRows(ctx)
		if err != nil {
			return 0, fmt.Errorf("kudu: tablet %s: %w", tablet.id, err)
		}
		n += rows
	}
	return n, nil
}

// defaultRetention is how long a server keeps history if the table does not say, in seconds.
const defaultRetention = 7 * 24 * 60 * 60

// Newest returns the timestamp of the newest operation, as far as the directory shows.
func (t *Table) Newest() mvcc.Timestamp {
	newest := mvcc.Min
	for _, tablet := range t.tablets {
		newest = max(newest, tablet.newest)
		for _, set := range tablet.sets {
			newest = max(newest, set.Tracker().MaxTimestamp())
			for _, undo := range set.Tracker().Undo {
				newest = max(newest, undo.Stats().Max)
			}
		}
	}
	return newest
}

// KeptSince returns the time from which on the table's history is complete, as far as the directory
// shows: the time of the newest operation less the table's retention. Reads of earlier times may
// lack rows and changes; they give a warning.
func (t *Table) KeptSince() mvcc.Timestamp {
	newest, retention := t.Newest(), int64(math.MaxInt64)
	for _, tablet := range t.tablets {
		seconds := int64(defaultRetention)
		if c := tablet.super.ExtraConfig; c != nil && c.HistoryMaxAgeSec != nil {
			seconds = int64(c.GetHistoryMaxAgeSec())
		}
		if seconds >= 0 {
			retention = min(retention, seconds)
		}
	}
	if retention > newest.Micros()/1_000_000 {
		return mvcc.Min
	}
	return mvcc.FromMicros(newest.Micros() - retention*1_000_000)
}

// warnOld warns of a read at a time of which history may be gone.
func (t *Table) warnOld(snap mvcc.Snapshot) {
	if since := t.KeptSince(); !snap.Sees(since) {
		t.warned.Do(func() {
			t.warn(fmt.Sprintf("table %q keeps history since %s (%d): rows and changes of earlier times may be missing",
				t.Name, since.Time().UTC().Format(time.RFC3339Nano), uint64(since)))
		})
	}
}

// Scan returns the rows of all tablets: if ordered, in order of the encoded primary key, which may
// descend; otherwise in any order. It uses the table's schema, whatever o has, and reads only the
// keys for which the filter can be true. The caller closes the iterator. Errors: the errors of
// scan.NewRequest.
func (t *Table) Scan(o scan.Options, ordered bool) (scan.Iterator, error) {
	o.Schema = t.Schema
	o.BoundByFilter(t.Schema, keyenc.NewEncoder(t.Schema))
	r, err := scan.NewRequest(o)
	if err != nil {
		return nil, fmt.Errorf("kudu: table %q: %w", t.Name, err)
	}
	t.warnOld(o.Snapshot)
	if o.Stats != nil {
		o.Stats.Layout = t.union.Layout(o.Lower, o.Upper)
	}
	return t.union.Scan(r, ordered), nil
}

// Diff iterates over the rows that were changed between two times, in order of the encoded primary
// key, as a diff scan of Kudu returns them: a row that was changed and changed back is among them;
// a row that exists at neither time is not. Not safe for concurrent use.
type Diff struct {
	table string
	join  *rowunion.Join
}

// Diff returns the rows that have changes which to sees and from does not. cols are the columns of
// After and Before, as indexes in the schema. The caller closes the Diff. Errors: ErrSchema if
// there is no such column.
func (t *Table) Diff(from, to mvcc.Snapshot, cols []int) (*Diff, error) {
	from = min(from, to)
	var r [2]*scan.Request
	for i, snap := range [2]mvcc.Snapshot{from, to} {
		var err error
		if r[i], err = scan.NewRequest(scan.Options{Schema: t.Schema, Columns: cols, Filter: batch.Filter{},
			Snapshot: snap, Keys: true}); err != nil {
			return nil, fmt.Errorf("kudu: table %q: %w", t.Name, err)
		}
	}
	t.warnOld(from)
	return &Diff{t.Name, t.union.Changed(from, to, r[0], r[1])}, nil
}

// Next advances to the next row, and reports whether there is one.
func (d *Diff) Next() bool { return d.join.Next() }

// Key returns the encoded key of the current row. It is never overwritten.
func (d *Diff) Key() []byte { return d.join.Key() }

// Before returns the row's cells as of the earlier time; nil if there was no row. They are valid
// until the next call of Next.
func (d *Diff) Before() [][]byte { return d.join.Before() }

// After returns the row's cells as of the later time; nil if there was no row. They are valid until
// the next call of Next.
func (d *Diff) After() [][]byte { return d.join.After() }

// Close ends the iteration and returns its first error. It may be called twice.
func (d *Diff) Close() error {
	if err := d.join.Close(); err != nil {
		return fmt.Errorf("kudu: table %q: %w", d.table, err)
	}
	return nil
}

// Version is the content of a row from one timestamp until its next version.
type Version struct {
	TS     mvcc.Timestamp // 0 if it is older than the history that the files have
	Cells  [][]byte       // of all columns; nil if the row was deleted
	Before bool           // there was a row just before TS
}

// History calls yield with the versions of the row with an encoded key, newest first, until it
// returns false. Cells are never overwritten. Errors: ErrNotFound if there has never been a row
// with the key, as far as the files show; ErrCorrupt.
func (t *Table) History(key []byte, yield func(Version) bool) error {
	cols := make([]int, len(t.Schema.Columns))
	for i := range cols {
		cols[i] = i
	}
	h, err := t.union.History(rowunion.HistoryOptions{Key: key, Snapshot: mvcc.Everything, Cols: cols,
		NewPast: newPast})
	if err != nil {
		return fmt.Errorf("kudu: table %q: %w", t.Name, err)
	}
	if h.Copies() == 0 {
		return fmt.Errorf("kudu: table %q: %w", t.Name, fault.ErrNotFound)
	}
	for {
		v, ok, err := h.Next()
		if err != nil {
			return fmt.Errorf("kudu: table %q: %w", t.Name, err)
		}
		if !ok || !yield(Version{v.TS, v.Cells, v.Before}) {
			return nil
		}
	}
}

func newPast(s *schema.Schema, cells [][]byte, undo, redo []change.Delta) (rowunion.Past, error) {
	return rewrite.NewPast(s, cells, undo, redo)
}
