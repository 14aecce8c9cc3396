package live

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/kudu/client"
	"github.com/oribi-db/oribi/mvcc"
	"github.com/oribi-db/oribi/schema"
)

// Follow pulls a table as Pull does, unless that was done, and then reads what has changed in the
// cluster again and again, until ctx ends, which is no error. A reading becomes visible as one write
// batch with its position, or as several if it is larger than a batch may be.
//
// Changes are read by the servers' lists of changes where those are right: as long as the table is not
// altered and has the same tablets, see client.ScanOptions.AltersAddOnly. After other alterations, and
// when the cluster no longer has the history, both tables are compared and the copy is repaired. Columns
// that were added or dropped in the cluster are added to the copy, or dropped from it.
//
// Errors: as for Pull.
func Follow(ctx context.Context, c *client.Client, table string, s *oribi.Store, name string, o *PullOptions) error {
	p, err := newPuller(ctx, c, table, s, name, o)
	if err != nil {
		return err
	}
	if !p.origin.Copied {
		err = p.copy(ctx)
		if err == nil {
			p.o.Progress(p.pulled())
		}
	}
	for err == nil {
		if err = p.read(ctx); err == nil {
			p.o.Progress(p.pulled())
			if p.o.Once {
				return nil
			}
			err = pause(ctx, p.o.Interval)
		}
	}
	return unlessEnded(ctx, err)
}

// read brings the copy to the present state of the cluster's table.
func (p *puller) read(ctx context.Context) error {
	before := p.origin
	if err := p.open(ctx); err != nil {
		return err
	}
	if err := p.look(ctx); err != nil {
		return err
	}
	if err := p.open(ctx); err != nil { // its schema is not older than the version
		return err
	}
	at, err := p.from.Now(ctx)
	if err != nil {
		return err
	}
	if err := p.alter(ctx); err != nil {
		return err
	}
	same := before.Version == p.origin.Version && slices.Equal(before.Tablets, p.origin.Tablets)
	if same && !before.Partial && (p.origin.Version == 0 || p.o.AltersAddOnly) {
		err := p.changes(ctx, at)
		if !errors.Is(err, client.ErrTooOld) {
			return err
		}
	}
	return p.repair(ctx, at)
}

// open reads the description of the cluster's table.
func (p *puller) open(ctx context.Context) error {
	now, err := p.cluster.OpenTable(ctx, p.name)
	if err == nil && now.ID != p.origin.Target {
		err = fmt.Errorf("table %q has the ID %s, not %s: %w", p.name, now.ID, p.origin.Target, ErrOtherTable)
	}
	if err == nil {
		p.from = now
	}
	return err
}

// alter gives the copy the columns of the cluster's table.
func (p *puller) alter(ctx context.Context) error {
	here, there := p.t.Schema(), p.from.Schema
	var steps []oribi.Alteration
	dropped := map[string]bool{}
	for i := range here.Columns {
		c, at := &here.Columns[i], there.Index(here.Columns[i].Name)
		if at < 0 || i >= here.Keys && (c.TypeName() != there.Columns[at].TypeName() || c.Nullable != there.Columns[at].Nullable) {
			dropped[c.Name] = true
			steps = append(steps, oribi.DropColumn(c.Name))
		}
	}
	for i := range there.Columns {
		if c := there.Columns[i]; here.Index(c.Name) < 0 || dropped[c.Name] {
			c.ID = 0
			steps = append(steps, oribi.AddColumn(c))
		}
	}
	if len(steps) > 0 {
		if err := p.t.Alter(ctx, steps...); err != nil {
			return fmt.Errorf("alter table %q as in the cluster: %w", p.origin.Table, err)
		}
	}
	if err := mismatch(p.t.Schema(), there); err != nil {
		return fmt.Errorf("table %q of the cluster: %w", p.name, err)
	}
	return nil
}

// changes writes what has changed since the last reading.
func (p *puller) changes(ctx context.Context, at mvcc.Timestamp) error {
	columns := p.t.Schema().Columns
	o := client.ScanOptions{From: p.origin.At, At: at, AltersAddOnly: p.o.AltersAddOnly, NoCache: true}
	for i := range columns {
		o.Columns = append(o.Columns, columns[i].Name)
	}
	scan, err := p.from.Scan(ctx, o)
	if err != nil {
		return err
	}
	defer scan.Close()
	w := p.writes()
	cells := make([][]byte, len(columns))
	for scan.Next() {
		b := scan.Batch()
		deleted := b.Columns[len(columns)]
		for i := range b.Rows() {
			for c := range cells {
				cells[c] = b.Columns[c].Cell(i)
			}
			if err := w.add(ctx, cells, deleted.Cell(i)[0] != 0); err != nil {
				return err
			}
		}
	}
	if err := scan.Close(); err != nil {
		return err
	}
	return w.end(ctx, at)
}

// repair makes the copy equal to a state of the cluster's table.
func (p *puller) repair(ctx context.Context, at mvcc.Timestamp) error {
	w := p.writes()
	for d, err := range Compare(ctx, p.t, p.from, CompareOptions{There: at}) {
		if err != nil {
			return err
		}
		cells := d.There
		if cells == nil {
			cells = d.Here
		}
		if err := w.add(ctx, cells, d.There == nil); err != nil {
			return err
		}
	}
	return w.end(ctx, at)
}

// pullWrites are the writes of a reading.
type pullWrites struct {
	p       *puller
	b       *oribi.Batch
	set     []bool
	key     []bool
	replace bool // rows are deleted first, since the table has immutable columns
}

func (p *puller) writes() *pullWrites {
	s := p.t.Schema()
	w := &pullWrites{p: p, b: p.s.NewBatch(), set: make([]bool, len(s.Columns)), key: make([]bool, len(s.Columns)),
		replace: slices.ContainsFunc(s.Columns, func(c schema.Column) bool { return c.Immutable })}
	for i := range w.set {
		w.set[i], w.key[i] = true, i < s.Keys
	}
	return w
}

// fullBatch is the default of PullOptions.batchBytes.
const fullBatch int64 = 8 << 20

// add writes what a row is, or that it is gone.
func (w *pullWrites) add(ctx context.Context, cells [][]byte, gone bool) error {
	if gone || w.replace {
		w.b.Cells(oribi.OpDeleteIgnore, w.p.t, cells, w.key)
	}
	if !gone {
		w.b.Cells(oribi.OpUpsert, w.p.t, cells, w.set)
	}
	w.p.rows++
	if w.b.Bytes() < w.p.o.batchBytes {
		return w.b.Err()
	}
	partial := w.p.origin
	partial.Partial = true
	w.p.origins.InBatch(w.b).Upsert(partial)
	_, err := w.b.Commit(ctx)
	w.b = w.p.s.NewBatch()
	return err
}

// end commits the rest with the position.
func (w *pullWrites) end(ctx context.Context, at mvcc.Timestamp) error {
	w.p.origin.At, w.p.origin.Partial = at, false
	w.p.origins.InBatch(w.b).Upsert(w.p.origin)
	_, err := w.b.Commit(ctx)
	return err
}
