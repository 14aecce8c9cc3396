package live

import (
	"bytes"
	"context"
	"fmt"
	"iter"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/keyenc"
	"github.com/oribi-db/oribi/kudu/client"
	"github.com/oribi-db/oribi/mvcc"
	"github.com/oribi-db/oribi/schema"
)

// Difference is a row in which a table of a store and one of a cluster differ.
type Difference struct {
	KeyColumns []schema.Column
	Key        [][]byte
	Columns    []schema.Column // those of the store's table
	Here       [][]byte        // of the store's table, by column, nil for NULL; nil if the row is missing
	There      [][]byte        // likewise of the cluster's table
}

// CompareOptions are which states are compared. The zero value is both tables as they are now.
type CompareOptions struct {
	Here  mvcc.Timestamp // of the store's table; 0 is now
	There mvcc.Timestamp // of the cluster's table, which has what was written before; 0 is now
}

// Compare yields the rows in which two tables differ, in the order of their keys: the columns of the
// store's table are compared, byte by byte. Each difference is valid until the next step. An error comes
// as the last step: of reads of both tables, or if the columns do not match.
//
// All rows of both tables are read. It takes 32 MiB for the answers of the servers, however many rows
// and tablets there are, or 64 KiB for each tablet if that is more.
func Compare(ctx context.Context, t *oribi.Table, there *client.Table, o CompareOptions) iter.Seq2[*Difference, error] {
	return func(yield func(*Difference, error) bool) {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		s := t.Schema()
		c := comparison{columns: s.Columns, keys: s.Keys}
		if err := mismatch(s, there.Schema); err != nil {
			yield(nil, fmt.Errorf("table %q of the cluster: %w", there.Name, err))
			return
		}
		remote, err := c.remote(ctx, there, o.There)
		if err != nil {
			yield(nil, err)
			return
		}
		defer remote.close()
		local, stop := iter.Pull2(c.local(ctx, t, o.Here))
		defer stop()
		if err := c.run(local, remote, func(d *Difference) bool { return yield(d, nil) }); err != nil {
			yield(nil, err)
		}
	}
}

// comparison compares rows of columns.
type comparison struct {
	columns []schema.Column
	keys    int
}

// row is a row with its encoded key. Both are valid until the next row of the same source.
type row struct {
	key   []byte
	cells [][]byte
}

// local yields the rows of a store's table.
func (c *comparison) local(ctx context.Context, t *oribi.Table, at mvcc.Timestamp) iter.Seq2[*row, error] {
	return func(yield func(*row, error) bool) {
		var opts []oribi.ScanOption
		if at != 0 {
			opts = append(opts, oribi.AsOf(at))
		}
		encoder := keyenc.NewEncoder(t.Schema())
		r := &row{}
		for b, err := range t.Scan(ctx, opts...).Batches() {
			if err == nil && !sameColumns(b.Schema, c.columns) {
				err = fmt.Errorf("table %q was altered since the comparison began", t.Name())
			}
			if err != nil {
				yield(nil, err)
				return
			}
			for i := range b.Rows() {
				if r.set(encoder, c.keys, b, i); !yield(r, nil) {
					return
				}
			}
		}
	}
}

func (r *row) set(e *keyenc.Encoder, keys int, b *batch.RecordBatch, i int) {
	r.cells = r.cells[:0]
	for _, v := range b.Columns {
		r.cells = append(r.cells, v.Cell(i))
	}
	r.key = e.AppendKey(r.key[:0], r.cells[:keys])
}

// run yields the differences until yield returns false.
func (c *comparison) run(local func() (*row, error, bool), remote *merged, yield func(*Difference) bool) error {
	here, err, more := local()
	there, err2 := remote.next()
	for {
		if err != nil || err2 != nil {
			if err == nil {
				err = err2
			}
			return err
		}
		if !more {
			here = nil
		}
		if here == nil && there == nil {
			return nil
		}
		order := 0
		switch {
		case here == nil:
			order = 1
		case there == nil:
			order = -1
		default:
			order = bytes.Compare(here.key, there.key)
		}
		d := Difference{KeyColumns: c.columns[:c.keys], Columns: c.columns}
		if order <= 0 {
			d.Here, d.Key = here.cells, here.cells[:c.keys]
		}
		if order >= 0 {
			d.There, d.Key = there.cells, there.cells[:c.keys]
		}
		if !equalCells(d.Here, d.There) && !yield(&d) {
			return nil
		}
		if order <= 0 {
			here, err, more = local()
		}
		if order >= 0 {
			there, err2 = remote.next()
		}
	}
}

// equalCells reports whether two rows, neither of which is missing, have the same cells.
func equalCells(a, b [][]byte) bool {
	if a == nil || b == nil {
		return false
	}
	for i := range a {
		if (a[i] == nil) != (b[i] == nil) || !bytes.Equal(a[i], b[i]) {
			return false
		}
	}
	return true
}

// repair makes the target equal to a state of the store. What was sent has arrived; the target as it is
// now also has what a copy that was killed has sent.
func (w *writer) repair(ctx context.Context, here mvcc.Timestamp) error {
	w.o.Note(fmt.Sprintf("comparing table %q with its copy", w.t.Name()))
	for {
		if err := w.align(ctx, w.t.Schema().Columns); err != nil {
			return err
		}
		err := w.compare(ctx, here)
		if err == nil {
			break
		}
		if sameColumns(w.given, w.t.Schema().Columns) {
			return err
		}
	}
	if err := w.flush(ctx); err != nil {
		return err
	}
	w.pos.Repair, w.ahead = false, false
	return w.save(ctx)
}

// compare sends the rows in which the target differs.
func (w *writer) compare(ctx context.Context, here mvcc.Timestamp) error {
	for d, err := range Compare(ctx, w.t, w.target, CompareOptions{Here: here}) {
		if err != nil {
			return err
		}
		fix := oribi.Difference{Columns: d.Columns, KeyColumns: d.KeyColumns, Key: d.Key, After: d.Here}
		if err := w.change(ctx, &fix, here); err != nil {
			return err
		}
	}
	return nil
}
