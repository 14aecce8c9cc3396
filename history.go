package oribi

import (
	"context"
	"fmt"
	"iter"

	"github.com/oribi-db/oribi/internal/bind"
	"github.com/oribi-db/oribi/internal/tablet"
	"github.com/oribi-db/oribi/mvcc"
	"github.com/oribi-db/oribi/schema"
)

// ChangeKind is the kind of a change of a row between two timestamps.
type ChangeKind uint8

// The kinds of changes. The kind depends only on whether the row existed before and after: a row
// that was deleted and inserted again in one batch was updated.
const (
	Inserted ChangeKind = iota + 1
	Updated
	Deleted
	Base // no change: the row when the history begins
)

var changeNames = [...]string{"", "insert", "update", "delete", "base"}

// String returns "insert", "update", "delete", or "base".
func (k ChangeKind) String() string {
	if int(k) >= len(changeNames) {
		return fmt.Sprintf("change %d", uint8(k))
	}
	return changeNames[k]
}

func kindOf(before, after bool) ChangeKind {
	switch {
	case !before:
		return Inserted
	case !after:
		return Deleted
	}
	return Updated
}

// Version is one version of a row: its content from Timestamp on.
type Version struct {
	Timestamp mvcc.Timestamp // of the write batch; 0 for Base
	Kind      ChangeKind
	Columns   []schema.Column // the columns read
	Cells     [][]byte        // of Columns, nil for NULL; nil if the row was deleted. Must not be modified
}

// Row returns the version as a Row, or nil if the row was deleted.
func (v *Version) Row() Row { return rowOf(v.Columns, v.Cells) }

// Difference is a row whose content differs between two timestamps.
type Difference struct {
	Kind       ChangeKind
	KeyColumns []schema.Column
	Key        [][]byte
	Columns    []schema.Column // the columns read
	Before     [][]byte        // of Columns, nil for NULL; nil if there was no row. Valid until the next step
	After      [][]byte        // likewise

	encoded []byte // the key, encoded; valid until the next step
}

// KeyRow returns the key columns of the row.
func (d *Difference) KeyRow() Row { return rowOf(d.KeyColumns, d.Key) }

// BeforeRow returns the row as of the earlier timestamp, or nil if it did not exist.
func (d *Difference) BeforeRow() Row { return rowOf(d.Columns, d.Before) }

// AfterRow returns the row as of the later timestamp, or nil if it did not exist.
func (d *Difference) AfterRow() Row { return rowOf(d.Columns, d.After) }

func rowOf(columns []schema.Column, cells [][]byte) Row {
	if cells == nil {
		return nil
	}
	cols := make([]int, len(columns))
	for i := range cols {
		cols[i] = i
	}
	return bind.Row(columns, cols, cells)
}

// History reads the versions of one row, newest first: one for each timestamp at which the content
// of the columns read changed. If the row already existed when the table's history begins, the last
// version is the row at that time, with kind Base. Flushes and compactions do not change the
// answer. All versions are found before the first step, under one snapshot.
//
// AsOf and At leave out newer versions. Errors come as the only step: ErrNotFound if there is no
// version; the errors of Get.
func (t *Table) History(ctx context.Context, key any, opts ...GetOption) iter.Seq2[Version, error] {
	return t.versions(ctx, key, collect(opts))
}

func (t *Table) versions(ctx context.Context, key any, o readOptions) iter.Seq2[Version, error] {
	return func(yield func(Version, error) bool) {
		h, columns, encoded, err := t.history(ctx, key, o)
		for tries := 0; err != nil && t.store.core.Restarts(ctx, o.asOf, err, tries); tries++ {
			h, columns, encoded, err = t.history(ctx, key, o)
		}
		for n := 0; ; n++ {
			var v tablet.RowVersion
			ok := false
			if err == nil {
				if err = t.store.interrupted(ctx); err != nil {
					err = callErr(fmt.Sprintf("history: table %q", t.tab.Name()), err)
				}
			}
			if err == nil {
				if v, ok, err = h.Next(); err != nil {
					err = callErr(fmt.Sprintf("history: table %q", t.tab.Name()), err)
				}
			}
			if err == nil && !ok && n == 0 {
				err = callErr("history", t.missing(encoded))
			}
			switch {
			case err != nil:
				yield(Version{}, err)
				return
			case !ok:
				return
			}
			out := Version{Timestamp: v.TS, Kind: kindOf(v.Before, v.Cells != nil), Columns: columns, Cells: v.Cells}
			if v.TS == 0 {
				out.Kind = Base
			}
			if !yield(out, nil) {
				return
			}
		}
	}
}

// history collects the versions of a row, and returns the columns read and the encoded key.
func (t *Table) history(
	ctx context.Context, key any, o readOptions,
) (*tablet.RowHistory, []schema.Column, []byte, error) {
	// The history above this floor stays until the versions are collected.
	s := t.store
	since := s.core.Pins.PinOldest(t.tab)
	defer s.core.Pins.UnpinOldest(since)
	var v view
	err := t.read(ctx, &o, &v)
	if err != nil {
		return nil, nil, nil, err
	}
	defer t.done(&v)
	cols, err := t.project(v.TableSchema, &o)
	if err != nil {
		return nil, nil, nil, err
	}
	encoded, err := t.appendKey(nil, v.TableSchema, key, false)
	if err != nil {
		return nil, nil, nil, err
	}
	h, err := v.History(encoded, since, cols)
	if err != nil {
		return nil, nil, nil, callErr(fmt.Sprintf("history: table %q", t.tab.Name()), err)
	}
	return h, columnsOf(v.Schema, cols), encoded, nil
}

func columnsOf(s *schema.Schema, cols []int) []schema.Column {
	out := make([]schema.Column, len(cols))
	for i, c := range cols {
		out[i] = s.Columns[c]
	}
	return out
}

// Diff reads the rows whose content in the columns read differs between the states AsOf(from) and
// AsOf(to), in key order unless Desc is given. It skips rowsets and windows of rows that did not
// change in between. A Difference is valid until the next step; its cells of variable width, and
// the results of its Row methods, may be kept.
//
// Errors come as the last step: from is above to; the errors of AsOf.
func (t *Table) Diff(ctx context.Context, from, to mvcc.Timestamp, opts ...RowsOption) iter.Seq2[Difference, error] {
	return t.differences(ctx, from, to, collect(opts))
}

func (t *Table) differences(ctx context.Context, from, to mvcc.Timestamp, o readOptions) iter.Seq2[Difference, error] {
	return func(yield func(Difference, error) bool) {
		err := t.diff(ctx, from, to, o, nil, yield)
		if err != nil {
			yield(Difference{}, err)
		}
	}
}

// diff passes the differences of rows with keys above after, which is encoded, to yield; nil for
// all rows. The caller passes on the error.
func (t *Table) diff(
	ctx context.Context, from, to mvcc.Timestamp, o readOptions, after []byte, yield func(Difference, error) bool,
) error {
	if from > to {
		return fmt.Errorf("oribi: diff: table %q: from %v is after to %v", t.tab.Name(), from, to)
	}
	sc := &Scan{t: t, ctx: ctx, o: o, after: after}
	sc.o.asOf, sc.o.at = true, from
	v, d, cols, err := sc.startDiff(to)
	if err != nil {
		return err
	}
	defer v.unpin()
	defer d.Close()
	out := Difference{KeyColumns: v.Schema.Columns[:v.Schema.Keys], Columns: columnsOf(v.Schema, cols)}
	for left := o.limit; left != 0 && sc.interrupted() == nil && d.Next(); left-- {
		out.encoded = d.Key()
		if out.Key, err = v.Encoder.Decode(out.encoded); err != nil {
			return fmt.Errorf("oribi: diff: table %q: %w", t.tab.Name(), err)
		}
		out.Before, out.After = d.Before(), d.After()
		out.Kind = kindOf(out.Before != nil, out.After != nil)
		if !yield(out, nil) {
			return nil
		}
	}
	if err = d.Close(); err == nil {
		err = sc.interrupted()
	}
	if err != nil {
		return callErr(fmt.Sprintf("diff: table %q", t.tab.Name()), err)
	}
	return nil
}

// startDiff opens a view of the state that sc reads, and begins the comparison with another
// timestamp.
func (sc *Scan) startDiff(to mvcc.Timestamp) (v view, d *tablet.Diff, cols []int, err error) {
	t := sc.t
	if err := t.store.enter(); err != nil {
		return v, nil, nil, err
	}
	defer t.store.leave()
	if err = t.store.checkTimestamp(to); err == nil {
		err = t.store.core.Pass(sc.ctx, to)
	}
	if err == nil {
		err = t.store.core.Await(sc.ctx, to)
	}
	if err != nil {
		return v, nil, nil, fmt.Errorf("oribi: table %q: read at %v: %w", t.tab.Name(), to, err)
	}
	pins := t.store.core.Pins
	// The view keeps what it sees of to.
	same, err := pins.PinEqual(t.tab, to)
	if err != nil {
		return v, nil, nil, fmt.Errorf("oribi: table %q: read at %v: %w", t.tab.Name(), to, err)
	}
	defer pins.Unpin(same)
	if v, err = t.view(sc.ctx, &sc.o, true); err != nil {
		return v, nil, nil, err
	}
	req, err := sc.request(&v, new(bounds))
	if err == nil && sc.o.orderBy != "" {
		err = t.errorf(fmt.Errorf("index %q: %w", sc.o.orderBy, errOrder))
	}
	if err != nil {
		v.Release()
		return v, nil, nil, err
	}
	req.Descending = sc.o.order == descendingOrder
	sc.skipDone(&req)
	return v, v.Diff(req, mvcc.AsOf(same)), req.Columns, nil
}
