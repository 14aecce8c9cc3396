package oribi

import (
	"context"
	"fmt"
	"iter"
	"reflect"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/change"
	"github.com/oribi-db/oribi/internal/bind"
	"github.com/oribi-db/oribi/internal/budget"
	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/internal/tablet"
	"github.com/oribi-db/oribi/mvcc"
	"github.com/oribi-db/oribi/schema"
)

// Ingest inserts rows that arrive in key order directly into files, durably: all of them at one
// timestamp, or none.
//
// It loads more rows than fit into a write batch. Each step of batches yields one vector per column
// of the table, in schema order, all of the same length, best some thousand cells. A nil vector is
// a column that is not set, as in Batch.Vectors. The vectors may be reused from the next step on.
// Keys must ascend strictly from row to row, also across steps. batches may use the store. An error
// from batches ends the ingest and is returned.
//
// Values of an auto-incrementing column must be given, as in an upsert, since an ingest restores
// rows that already had theirs. Later inserts continue above them.
//
// ts is the timestamp of the rows, and rows their number. Without rows, a new timestamp is
// returned, as by an empty write batch. The memory in use depends on the files being written, not
// on the number of rows. The table's writers continue until nearly all of the rows are on disk,
// then wait for one or two syncs. Write batches of all tables that are committed during this time
// become visible after the rows.
//
// The entries of indexes are collected, at most a sixteenth of Options.MemoryLimit of them, before
// they are sorted and written.
//
// Errors: ErrRow for a refused row, whose *RowError counts rows over the whole ingest: a row that
// no insert accepts, a key that does not ascend, or, with ErrKeyExists, a key that exists or that
// another writer has inserted during the ingest, or, with ErrNotUnique, values of a unique index
// that another row has. ErrConflict if the schema or an index was altered during the ingest; ErrNoTable if the table was dropped; ErrReadOnly; ErrNoSpace; ErrPoisoned; ErrClosed;
// ctx.Err(). After an error nothing has changed, except after ErrPoisoned, when the next Open
// decides.
func (t *Table) Ingest(
	ctx context.Context, batches iter.Seq2[[]*batch.Vector, error],
) (ts mvcc.Timestamp, rows int64, err error) {
	return t.ingest(ctx, func(*tablet.TableSchema) (iter.Seq2[[]*batch.Vector, error], error) { return batches, nil })
}

// ingest is Ingest of the vectors that make returns for the current schema.
func (t *Table) ingest(
	ctx context.Context, make func(*tablet.TableSchema) (iter.Seq2[[]*batch.Vector, error], error),
) (mvcc.Timestamp, int64, error) {
	s := t.store
	if err := s.enterWriting(); err != nil {
		return 0, 0, err
	}
	defer s.leave()
	if err := ctx.Err(); err != nil {
		return 0, 0, callErr(fmt.Sprintf("ingest into table %q", t.tab.Name()), err)
	}
	into, err := t.tab.BeginIngest()
	if err != nil {
		return 0, 0, callErr(fmt.Sprintf("ingest into table %q", t.tab.Name()), err)
	}
	defer into.Abort()
	into.Purge = func(tab *tablet.Tablet, keys [][]byte) error {
		of := t
		for _, entries := range t.entry.Indexes() {
			if entries.Tablet == tab {
				of = &Table{store: s, tab: tab, entry: entries}
			}
		}
		return of.purgeKeys(ctx, keys)
	}
	ts := mvcc.Min
	batches, err := make(into.Schema)
	if err == nil && batches == nil {
		err = fmt.Errorf("no rows to iterate over: nil: %w", fault.ErrRow)
	}
	if err == nil {
		ts, err = t.fill(ctx, into, batches)
	}
	if err != nil {
		return 0, 0, callErr(fmt.Sprintf("ingest into table %q", t.tab.Name()), s.refusal(ctx, err, s.core.LastLSN()))
	}
	s.core.Background.Poke()
	return ts, into.Rows(), nil
}

// fill passes all vectors on and finishes.
func (t *Table) fill(
	ctx context.Context, into *tablet.Ingest, batches iter.Seq2[[]*batch.Vector, error],
) (mvcc.Timestamp, error) {
	columns := into.Schema.Schema.Columns
	limit := t.store.opts.MemoryLimit
	buffers := min(int64(len(columns))*ingestColumnBytes, limit/8)
	if len(t.tab.Indexes()) > 0 {
		into.IndexBytes = limit / 16
		buffers += into.IndexBytes
	}
	t.store.core.Budget.Reserve(budget.Compaction, buffers)
	defer t.store.core.Budget.Release(budget.Compaction, buffers)
	g := ingester{t: t, into: into, window: change.Rows{Batch: batch.New(columns, 0)}}
	for vectors, err := range batches {
		if err == nil {
			err = ctx.Err()
		}
		if err == nil {
			err = t.store.core.HasSpace()
		}
		if err == nil {
			err = g.add(vectors)
		}
		if err != nil {
			return 0, err
		}
	}
	if into.Rows() == 0 {
		return t.store.commit(ctx, t.store.NewBatch(), true, false)
	}
	return into.Finish(ctx)
}

// ingestColumnBytes estimates the memory for writing one column's file: an open cblock and the
// sink's buffer.
const ingestColumnBytes = 512 << 10

// ingester checks vectors and passes them on, one window of rows at a time.
type ingester struct {
	t      *Table
	into   *tablet.Ingest
	window change.Rows
}

func (g *ingester) rowError(row int, column string, cause error) error {
	return &RowError{Row: int(g.into.Rows()) + row, Table: g.t.tab.Name(), Column: column, Cause: cause}
}

func (g *ingester) add(vectors []*batch.Vector) error {
	s := g.into.Schema.Schema
	// The values of an auto-incrementing column are given, which an insert would refuse.
	n, err := checkVectors(s, OpUpsert, vectors)
	if err != nil {
		return g.rowError(0, "", err)
	}
	vectors, row, column, err := bind.PackArrays(s, vectors, g.t.store.opts.CellLimit)
	if err != nil {
		return g.rowError(row, column, err)
	}
	for i, v := range vectors {
		c := &s.Columns[i]
		if v == nil && c.Required() {
			return g.rowError(0, c.Name, tablet.ErrNotSet)
		}
		if v == nil {
			continue
		}
		if row, err := bind.CheckVector(c, v, g.t.store.opts.CellLimit); err != nil {
			return g.rowError(row, c.Name, err)
		}
	}
	for from := 0; from < n; from += batch.WindowRows {
		if err := g.addWindow(vectors, from, min(n, from+batch.WindowRows)); err != nil {
			return err
		}
	}
	return nil
}

// addWindow passes rows [from, to) on.
func (g *ingester) addWindow(vectors []*batch.Vector, from, to int) error {
	tableSchema, w := g.into.Schema, &g.window
	w.Batch.Reset(0)
	w.Batch.Len = to - from
	for i, v := range w.Batch.Columns {
		if vectors[i] != nil {
			v.AppendCoded(vectors[i], from, to)
		} else {
			v.Fill(to-from, tableSchema.Schema.Columns[i].Unset())
		}
	}
	w.Keys = change.AppendVectorKeys(w.Keys[:0], tableSchema.Encoder, w.Batch.Columns, 0, w.Batch.Len)
	for i, k := range w.Keys {
		if len(k) > schema.MaxKeyBytes {
			return g.rowError(i, "", errKeyTooLong(len(k)))
		}
	}
	if err := g.checkRows(); err != nil {
		return err
	}
	return g.into.Append(w)
}

// checkRows refuses rows that are too long. It measures single rows only if one may be too long.
func (g *ingester) checkRows() error {
	columns := g.window.Batch.Columns
	fixed, longest := 0, 0
	for _, v := range columns {
		if v.Type.Variable() {
			longest += g.t.store.opts.CellLimit
		} else {
			fixed += v.Type.Width()
		}
	}
	if fixed+longest <= maxRowBytes/2 {
		return nil
	}
	for i := range g.window.Batch.Len {
		n := g.into.Schema.RowFormat.Size(columns, i)
		if n > maxRowBytes {
			return g.rowError(i, "", errRowTooLong(n))
		}
	}
	return nil
}

// Ingest inserts rows that arrive in key order, as Table.Ingest does. Columns without a field are
// not set. A row may be reused from the next step on.
func (t *TableOf[T]) Ingest(ctx context.Context, rows iter.Seq[T]) (ts mvcc.Timestamp, n int64, err error) {
	return t.Table.ingest(ctx, func(tableSchema *tablet.TableSchema) (iter.Seq2[[]*batch.Vector, error], error) {
		b, err := t.bindFor(OpUpsert, tableSchema)
		if err != nil {
			return nil, err
		}
		if rows == nil {
			return nil, nil
		}
		return t.vectors(b, rows), nil
	})
}

// vectors collects rows into vectors of a window's length, or shorter ones if the rows are long.
func (t *TableOf[T]) vectors(b *bind.Binding, rows iter.Seq[T]) iter.Seq2[[]*batch.Vector, error] {
	return func(yield func([]*batch.Vector, error) bool) {
		s := b.Schema
		columns := make([]*batch.Vector, len(s.Columns))
		for _, col := range b.Columns {
			columns[col] = &batch.Vector{Type: s.Columns[col].Type}
		}
		var texts []byte // of the byte strings in columns; never moved
		var value [bind.MaxWidth]byte
		before, n, size := 0, 0, 0 // rows passed on, rows in columns, bytes of their byte strings
		for row := range rows {
			v := reflect.ValueOf(&row).Elem()
			for k := range b.Fields {
				f := &b.Fields[k]
				cell, err := f.Put(value[:0], v)
				if err != nil {
					yield(nil, &RowError{Row: before + n, Table: t.Table.tab.Name(), Column: s.Columns[f.Column].Name,
						Cause: err})
					return
				}
				if s.Columns[f.Column].Type.Variable() {
					size += len(cell)
					texts, cell = appendText(texts, cell)
				}
				columns[f.Column].AppendCell(cell)
			}
			if n++; n < batch.WindowRows && size < ingestTextBytes {
				continue
			}
			if !yield(columns, nil) {
				return
			}
			for _, col := range b.Columns {
				columns[col].Reset(0)
			}
			before, n, size, texts = before+n, 0, 0, texts[:0]
		}
		if n > 0 {
			yield(columns, nil)
		}
	}
}

// ingestTextBytes is how many bytes of byte strings TableOf.Ingest collects before it passes them
// on.
const ingestTextBytes = 4 << 20

const textBufferBytes = 64 << 10 // of appendText, at least

// appendText appends a copy of text to buf, or to a new buffer if it does not fit, so that slices
// of buf stay valid. nil stays nil.
func appendText(buf, text []byte) (grown, copied []byte) {
	if len(text) == 0 {
		return buf, text
	}
	if cap(buf)-len(buf) < len(text) {
		buf = make([]byte, 0, max(len(text), textBufferBytes))
	}
	at := len(buf)
	buf = append(buf, text...)
	return buf, buf[at:len(buf):len(buf)]
}
