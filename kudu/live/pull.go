package live

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"time"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/kudu/client"
	"github.com/oribi-db/oribi/mvcc"
	"github.com/oribi-db/oribi/schema"
)

// PullsTable is the table of a store that has, for each table that was pulled into it, where it comes
// from and up to which time of the cluster it has its rows.
const PullsTable = "kudu_pulls"

// PullOptions are how a table of a cluster is read. A nil *PullOptions and zero fields mean the defaults.
type PullOptions struct {
	// At is the time of the cluster's that Pull copies: all that was written before. 0 is now.
	At mvcc.Timestamp
	// Interval is the time from one reading of changes to the next: 0 is 5 s.
	Interval time.Duration
	// AltersAddOnly says that the table's alterations only added, see client.ScanOptions.
	AltersAddOnly bool
	// Once ends Follow after one reading.
	Once bool
	// Progress, if not nil, is called after each reading.
	Progress func(Pulled)

	batchBytes int64 // size of a write batch after which another one begins
}

// Pulled is a copy of a cluster's table.
type Pulled struct {
	Table string         // its name in the store
	Rows  int64          // that were written by this call
	At    mvcc.Timestamp // the time of the cluster's up to which the copy has all changes, exclusively
}

const pullInterval = 5 * time.Second

func (o *PullOptions) withDefaults() PullOptions {
	var with PullOptions
	if o != nil {
		with = *o
	}
	if with.Interval <= 0 {
		with.Interval = pullInterval
	}
	if with.Progress == nil {
		with.Progress = func(Pulled) {}
	}
	if with.batchBytes == 0 {
		with.batchBytes = fullBatch
	}
	return with
}

// origin is a row of PullsTable.
type origin struct {
	Table   string         `oribi:"table,key"`
	Here    string         `oribi:"here"`    // ID of the store's table; empty: it is being made
	Cluster string         `oribi:"cluster"` // ID
	Target  string         `oribi:"target"`  // ID of the cluster's table
	At      mvcc.Timestamp `oribi:"at"`
	Version int64          `oribi:"version"` // of the schema
	Tablets []string       `oribi:"tablets"` // IDs, ascending
	Copied  bool           `oribi:"copied"`  // the table has all rows as of At
	Partial bool           `oribi:"partial"` // and some that are later
}

// puller copies a table of a cluster into a store.
type puller struct {
	cluster *client.Client
	name    string // of the cluster's table
	s       *oribi.Store
	o       PullOptions
	origins *oribi.TableOf[origin]
	from    *client.Table
	origin  origin
	t       *oribi.Table // nil: it does not exist yet
	rows    int64
}

// Pull copies a table of a cluster, as it is at one time, into a new table of a store; an empty name is
// the name of the cluster's table. A call that goes on after an interrupted one begins again. The rows become
// visible together.
//
// Errors: ErrExists if the store has a table of that name, unless an interrupted Pull has made it;
// ErrOtherTable; ErrTooOld and ErrFuture for At; those of packages oribi and client.
func Pull(ctx context.Context, c *client.Client, table string, s *oribi.Store, name string, o *PullOptions) (Pulled, error) {
	p, err := newPuller(ctx, c, table, s, name, o)
	if err != nil {
		return Pulled{}, err
	}
	if p.origin.Copied {
		return Pulled{}, fmt.Errorf("table %q was pulled already: Follow goes on with it: %w", p.origin.Table, oribi.ErrExists)
	}
	err = p.copy(ctx)
	return p.pulled(), err
}

func (p *puller) pulled() Pulled {
	return Pulled{Table: p.origin.Table, Rows: p.rows, At: p.origin.At}
}

func newPuller(
	ctx context.Context, c *client.Client, table string, s *oribi.Store, name string, o *PullOptions,
) (*puller, error) {
	p := &puller{cluster: c, name: table, s: s, o: o.withDefaults()}
	var err error
	if p.origins, err = oribi.OpenTable[origin](s, PullsTable); err != nil {
		return nil, err
	}
	if p.from, err = c.OpenTable(ctx, table); err != nil {
		return nil, err
	}
	if name == "" {
		name = p.from.Name
	}
	return p, p.find(ctx, name)
}

// find sets the table of the store and what is known of it.
func (p *puller) find(ctx context.Context, name string) (err error) {
	fresh := origin{Table: name, Cluster: p.cluster.ID(), Target: p.from.ID}
	p.origin, err = p.origins.Get(ctx, name)
	known := err == nil
	if !known && !errors.Is(err, oribi.ErrNotFound) {
		return err
	}
	p.t, err = p.s.Table(name)
	switch {
	case errors.Is(err, oribi.ErrNoTable): // or it was dropped since
		p.origin, p.t = fresh, nil
		return nil
	case err != nil:
		return err
	case !known || p.origin.Here != "" && p.origin.Here != p.t.Properties().ID:
		return fmt.Errorf("table %q was not pulled from a cluster: %w", name, oribi.ErrExists)
	case p.origin.Cluster != fresh.Cluster || p.origin.Target != fresh.Target:
		return fmt.Errorf("table %q comes from table %s of cluster %s: %w", name, p.origin.Target, p.origin.Cluster,
			ErrOtherTable)
	case p.origin.Here == "": // an interrupted call has made it, unless it has rows
		if n, err := p.t.Count(ctx); err != nil {
			return err
		} else if n > 0 {
			return fmt.Errorf("table %q was not pulled from a cluster: %w", name, oribi.ErrExists)
		}
	}
	return nil
}

// copy makes the first copy.
func (p *puller) copy(ctx context.Context) (err error) {
	if err := p.look(ctx); err != nil {
		return err
	}
	if p.origin.At = p.o.At; p.o.At == 0 {
		if p.origin.At, err = p.from.Now(ctx); err != nil {
			return err
		}
	}
	p.origin.Here = ""
	if _, err := p.origins.Put(ctx, p.origin); err != nil {
		return err
	}
	if p.t != nil { // of an interrupted call, perhaps with other columns
		if err := p.s.DropTable(p.origin.Table); err != nil {
			return err
		}
	}
	if p.t, err = p.s.CreateTable(p.origin.Table, p.from.Schema, oribi.Comment(p.from.Comment)); err != nil {
		return err
	}
	p.origin.Here = p.t.Properties().ID
	if _, err := p.origins.Put(ctx, p.origin); err != nil {
		return err
	}
	rows, err := p.ingest(ctx)
	if err != nil {
		return err
	}
	p.rows += rows
	p.origin.Copied = true
	_, err = p.origins.Put(ctx, p.origin)
	return err
}

// look sets what may differ at the cluster from one reading to the next.
func (p *puller) look(ctx context.Context) error {
	version, err := p.from.SchemaVersion(ctx)
	if err != nil {
		return err
	}
	p.origin.Version = int64(version)
	p.origin.Tablets, err = p.from.Tablets(ctx)
	slices.Sort(p.origin.Tablets)
	return err
}

// ingestRows is how many rows are ingested together.
const ingestRows = 4096

// ingest writes the rows of the cluster's table, in the order of their keys.
func (p *puller) ingest(ctx context.Context) (rows int64, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	columns := p.t.Schema().Columns
	c := comparison{columns: columns, keys: p.t.Schema().Keys}
	remote, err := c.remote(ctx, p.from, p.origin.At)
	if err != nil {
		return 0, err
	}
	defer remote.close()
	_, rows, err = p.t.Ingest(ctx, vectorsOf(columns, remote))
	return rows, err
}

func vectorsOf(columns []schema.Column, remote *merged) iter.Seq2[[]*batch.Vector, error] {
	return func(yield func([]*batch.Vector, error) bool) {
		b := batch.New(columns, 0)
		for {
			r, err := remote.next()
			if err != nil {
				yield(nil, err)
				return
			}
			if r != nil {
				for i, v := range b.Columns {
					v.AppendCell(owned(v, r.cells[i]))
				}
				b.Len++
			}
			if b.Len == ingestRows || r == nil && b.Len > 0 {
				if !yield(b.Columns, nil) {
					return
				}
				b = batch.New(columns, 0)
			}
			if r == nil {
				return
			}
		}
	}
}

// owned returns a cell that later rows of the cluster do not overwrite.
func owned(v *batch.Vector, cell []byte) []byte {
	if !v.Type.Variable() {
		return cell // is copied
	}
	return bytes.Clone(cell)
}
