package live

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/kudu/client"
	"github.com/oribi-db/oribi/mvcc"
	"github.com/oribi-db/oribi/schema"
)

// Target is the table of a cluster to which a table of a store is copied.
type Target struct {
	Cluster *client.Client
	// Table is its name; empty is the name in the store. If it does not exist, it is created with the
	// same columns.
	Table string
	// Partitioning and Replicas are for a new table; nil and 0 are Propose's and the cluster's.
	Partitioning *client.Partitioning
	Replicas     int
	// Position keeps how far the copy has come. nil is a file in the directory PositionDir of the
	// store's, one for each table of a cluster. A store in memory has no such directory.
	Position Position
}

// Options are how rows are copied. A nil *Options and zero fields mean the defaults.
type Options struct {
	// Interval is the longest time from the arrival of a change to the position that has it: 0 is a
	// second. Rows is how many changes arrive before, at most: 0 is 100,000.
	Interval time.Duration
	Rows     int
	// Settle is how long a copy waits that goes on after a kill, so that no rows of the killed process
	// arrive after its own: 0 is 11 s, which is longer than servers keep a request.
	Settle time.Duration
	// Once ends Sync when nothing is behind.
	Once bool
	// Session is how rows are written.
	Session client.SessionOptions
	// Note, if not nil, is called with a sentence about what the copy does for a long time.
	Note func(text string)
	// Progress, if not nil, is called after each position that was saved, and once in an Interval.
	Progress func(Status)
}

// Status is how far a copy is.
type Status struct {
	// Timestamp is the timestamp of the store up to which everything has arrived; while the first copy is
	// made, it is 0.
	Timestamp mvcc.Timestamp
	// Written is the highest timestamp that the cluster has given to what was written: a scan of the
	// cluster's table at Written+1 has all of it.
	Written mvcc.Timestamp
	Rows    int64         // that were sent since the call
	Behind  int64         // changes that were sent and have not arrived, and batches that wait
	Lag     time.Duration // since the oldest change that was sent and has not arrived; else 0
	Failed  int64         // how often Sync has begun anew, since servers could not be reached
}

const (
	defaultInterval = time.Second
	defaultRows     = 100_000
	defaultSettle   = 11 * time.Second
)

func (o *Options) withDefaults() Options {
	var with Options
	if o != nil {
		with = *o
	}
	if with.Interval <= 0 {
		with.Interval = defaultInterval
	}
	if with.Rows <= 0 {
		with.Rows = defaultRows
	}
	if with.Settle == 0 {
		with.Settle = defaultSettle
	}
	if with.Note == nil {
		with.Note = func(string) {}
	}
	if with.Progress == nil {
		with.Progress = func(Status) {}
	}
	return with
}

// rowsOfTablet is for how many rows Propose proposes a tablet: Kudu's own advice is 10 GB a tablet at
// most, and few tablets a server.
const rowsOfTablet = 50_000_000

// Propose returns a partitioning for a table with a number of rows in a cluster with a number of tablet
// servers: by a hash of the key, so that writes of ascending keys reach all servers.
func Propose(columns []string, rows int64, servers int) client.Partitioning {
	buckets := max(2, 2*servers, int(rows/rowsOfTablet))
	return client.Partitioning{Hash: []client.Hash{{Columns: columns, Buckets: min(buckets, 60*max(servers, 1))}}}
}

// open opens the target's table, or creates it with certain columns.
func (to *Target) open(ctx context.Context, t *oribi.Table, s *schema.Schema) (*client.Table, error) {
	if list := Unsuitable(t); list != nil {
		return nil, unsupported("table %q cannot be copied to Kudu: %s", t.Name(), strings.Join(list, "; "))
	}
	name := to.Table
	if name == "" {
		name = t.Name()
	}
	table, err := to.Cluster.OpenTable(ctx, name)
	if errors.Is(err, client.ErrNoTable) {
		table, err = to.create(ctx, t, s, name)
		if errors.Is(err, client.ErrExists) { // since then: by a call that was killed
			table, err = to.Cluster.OpenTable(ctx, name)
		}
	}
	if err != nil {
		return nil, err
	}
	return table, nil
}

func (to *Target) create(ctx context.Context, t *oribi.Table, s *schema.Schema, name string) (*client.Table, error) {
	spec := &client.TableSpec{Name: name, Schema: s, Replicas: to.Replicas, Comment: t.Properties().Comment}
	if to.Partitioning != nil {
		spec.Partitioning = *to.Partitioning
		return to.Cluster.CreateTable(ctx, spec)
	}
	servers, err := to.Cluster.Servers(ctx)
	if err != nil {
		return nil, err
	}
	stats, err := t.Stats(false)
	if err != nil {
		return nil, err
	}
	var keys []string
	for i := range s.Keys {
		if c := &s.Columns[i]; !c.AutoIncrement {
			keys = append(keys, c.Name)
		}
	}
	spec.Partitioning = Propose(keys, stats.LiveRows, len(servers))
	return to.Cluster.CreateTable(ctx, spec)
}

// position returns where the position of a copy is kept.
func (to *Target) position(s *oribi.Store, t *oribi.Table, target *client.Table) (Position, error) {
	if to.Position != nil {
		return to.Position, nil
	}
	if _, err := os.Stat(s.Dir()); err != nil {
		return nil, fmt.Errorf("the position of the copy has no place: set Target.Position: %w", err)
	}
	return positionIn(s.Dir(), t.Properties().ID, to.Cluster.ID(), target.ID), nil
}
