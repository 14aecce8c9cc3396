package live

import (
	"context"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/kudu/client"
	"github.com/oribi-db/oribi/mvcc"
	"github.com/oribi-db/oribi/schema"
)

// writer writes rows of a store's table to a cluster's table, whose columns it alters as those of the
// table are altered.
type writer struct {
	t       *oribi.Table
	cluster *client.Client
	o       Options
	pos     *position
	keep    Position
	lock    io.Closer // of keep; nil: it has none

	target  *client.Table
	session *client.Session
	given   []schema.Column // of the table that the target has
	from    []schema.Column // of the changes for which at is
	at      []int           // for each column of the target: its index in from; -1: none
	cells   [][]byte        // memory
	replace bool            // rows are deleted first, since the target has immutable columns

	version uint32    // of the target's schema
	ahead   bool      // rows were sent that are later than the position
	rows    int64     // sent
	pending int64     // sent since the last position
	failed  int64     // see Status
	since   time.Time // when the first one of pending was committed
}

func newWriter(ctx context.Context, s *oribi.Store, t *oribi.Table, to Target, o *Options) (_ *writer, err error) {
	w := &writer{t: t, cluster: to.Cluster, o: o.withDefaults()}
	defer func() {
		if err != nil {
			w.close()
		}
	}()
	now := t.Schema() // it may be altered meanwhile
	if w.target, err = to.open(ctx, t, now); err != nil {
		return nil, err
	}
	if w.keep, err = to.position(s, t, w.target); err != nil {
		return nil, err
	}
	if k, ok := w.keep.(interface{ lock() (io.Closer, error) }); ok {
		if w.lock, err = k.lock(); err != nil {
			return nil, err
		}
	}
	if w.pos, err = loadPosition(w.keep); err != nil {
		return nil, err
	}
	fresh := position{Table: t.Properties().ID, Cluster: to.Cluster.ID(), Target: w.target.ID}
	switch {
	case w.pos == nil:
		if err := mismatch(now, w.target.Schema); err != nil {
			return nil, fmt.Errorf("table %q of the cluster: %w", w.target.Name, err)
		}
		fresh.Columns = pairs(now, w.target.Schema)
		w.pos = &fresh
		if err := w.savePosition(); err != nil { // the table may be altered before the copy goes on
			return nil, err
		}
	case w.pos.Table != fresh.Table || w.pos.Cluster != fresh.Cluster || w.pos.Target != fresh.Target:
		return nil, w.otherTable(w.target)
	}
	if err := w.settle(ctx); err != nil {
		return nil, err
	}
	if err := w.alter(ctx); err != nil {
		return nil, err
	}
	return w, nil
}

// close ends the session, and lets other processes make the copy.
func (w *writer) close() {
	w.endSession()
	if w.lock != nil {
		w.lock.Close()
	}
}

func (w *writer) endSession() {
	if w.session != nil {
		w.session.Close()
		w.session = nil
	}
}

// align sets where the cells of changes with certain columns are in the target's rows. If those are not
// the columns that the target was given, it alters the target. The changes may be older than that: they
// lack new columns, which then have their defaults.
func (w *writer) align(ctx context.Context, columns []schema.Column) error {
	if w.from != nil && sameColumns(w.from, columns) {
		return nil
	}
	if !sameColumns(w.given, columns) && !sameColumns(w.given, w.t.Schema().Columns) {
		if err := w.alter(ctx); err != nil {
			return err
		}
	}
	w.from = slices.Clone(columns)
	w.at = w.at[:0]
	for i := range w.target.Schema.Columns {
		id := uint32(w.target.Schema.Columns[i].ID)
		w.at = append(w.at, slices.IndexFunc(columns, func(c schema.Column) bool {
			there, given := w.pos.Columns[uint32(c.ID)]
			return given && there == id
		}))
	}
	return nil
}

// change writes what a row is after a change.
func (w *writer) change(ctx context.Context, d *oribi.Difference, committed mvcc.Timestamp) error {
	if err := w.align(ctx, d.Columns); err != nil {
		return err
	}
	if w.pending == 0 {
		w.since = committed.Time()
	}
	w.ahead = true
	set := batch.MakeBitmap(len(w.at))
	w.cells = append(w.cells[:0], make([][]byte, len(w.at))...)
	copy(w.cells, d.Key)
	if d.After == nil || w.replace {
		if err := w.session.Apply(ctx, client.DeleteIgnore, w.cells); err != nil {
			return err
		}
	}
	if d.After != nil {
		for i, at := range w.at {
			if at >= 0 {
				set.Set(i)
				w.cells[i] = d.After[at]
			}
		}
		if err := w.session.ApplySet(ctx, client.Upsert, w.cells, set); err != nil {
			return err
		}
	}
	w.rows++
	w.pending++
	return nil
}

// flush waits until all that was sent is written.
func (w *writer) flush(ctx context.Context) error {
	if w.session == nil { // an alteration has failed, before which all was written
		return nil
	}
	done, err := w.session.Flush(ctx)
	if err != nil {
		return err
	}
	w.pos.Written = max(w.pos.Written, done.Timestamp)
	return refused(w.target.Name, &done)
}

// save flushes, then makes the position durable.
func (w *writer) save(ctx context.Context) error {
	if err := w.flush(ctx); err != nil {
		return err
	}
	if err := w.savePosition(); err != nil {
		return err
	}
	w.pending = 0
	w.o.Progress(w.status(0))
	return w.unaltered(ctx)
}

func (w *writer) savePosition() error {
	if err := w.pos.save(w.keep); err != nil {
		return fmt.Errorf("position of the copy of table %q: %w", w.t.Name(), err)
	}
	return nil
}

// status returns how far the copy is, with a number of changes that were not sent yet.
func (w *writer) status(unsent int) Status {
	s := Status{Timestamp: w.pos.Done, Written: w.pos.Written, Rows: w.rows, Behind: w.pending + int64(unsent),
		Failed: w.failed}
	if w.pending > 0 {
		s.Lag = max(0, time.Since(w.since))
	}
	return s
}
