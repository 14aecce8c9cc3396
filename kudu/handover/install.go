package handover

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/internal/kudufs"
	"github.com/oribi-db/oribi/internal/kudupb"
	"github.com/oribi-db/oribi/mvcc"
	"github.com/oribi-db/oribi/rowset"
	"github.com/oribi-db/oribi/schema"
	"github.com/oribi-db/oribi/vfs"
)

// InstallOptions change how a table is installed. The zero value is the default.
type InstallOptions struct {
	// PartitionOnly installs only the rows of the tablet's partition, which are written again with
	// their history. Otherwise a row outside the partition is an error.
	PartitionOnly bool
	// Warn is called with one line for each thing that the server will do differently from the
	// store, for replicas elsewhere, and for entries that are missing in the tablet's log. nil
	// disables it.
	Warn func(text string)
	// FS is the file system of the server. Default: vfs.OS.
	FS vfs.FS
}

// Install flushes a table and puts its rows, with their history, into an empty tablet of a stopped
// Kudu tablet server. dir is the only root of the server, or all its roots are directories in it.
//
// The tablet has no rowsets, and its log no writes. It has the columns of the table, with its own
// IDs. Install checks everything before it writes. It writes new blocks, with IDs above all others,
// and last replaces the superblock: a crash leaves the tablet as it was or complete. Blocks that
// nothing refers to may remain; "kudu fs check --repair" removes them. The tablet keeps its log,
// replicas, term, data directories, and settings. Other replicas of the tablet must be deleted, so
// that they copy this one.
//
// Errors: ErrLocked if the server is running; ErrNotStore; ErrNotFound if there is no such tablet;
// ErrUnsupported for array columns; ErrCorrupt; errors of oribi.Table.Flush and of the file system.
// Source: tablet spec §11, blockmanager spec §4.
func Install(ctx context.Context, table *oribi.Table, dir, tablet string, o InstallOptions) (r Result, err error) {
	if o.FS == nil {
		o.FS = vfs.OS
	}
	if o.Warn == nil {
		o.Warn = func(string) {}
	}
	fail := func(err error) (Result, error) {
		return Result{}, fmt.Errorf("kudu: install table %q: %w", table.Name(), err)
	}
	d, err := kudufs.OpenExclusive(o.FS, dir)
	if err != nil {
		return fail(err)
	}
	err = table.Files(ctx, func(s *schema.Schema, sets iter.Seq2[rowset.Files, error]) error {
		in := installation{ctx: ctx, options: o, d: d, tablet: tablet, table: table, schema: s, sets: sets}
		if err := in.check(); err != nil {
			return err
		}
		r, err = in.write()
		return err
	})
	if err = errors.Join(err, d.Unlock()); err != nil {
		return fail(err)
	}
	return r, nil
}

// installation is the state of Install.
type installation struct {
	ctx     context.Context
	options InstallOptions
	d       *kudufs.Directory
	tablet  string
	table   *oribi.Table
	schema  *schema.Schema // of the table
	sets    iter.Seq2[rowset.Files, error]

	super     *kudupb.TabletSuperBlockPB
	voters    int                                 // replicas of the tablet
	ids       map[schema.ColumnID]schema.ColumnID // of the tablet's columns, by the table's
	defaults  map[schema.ColumnID]bool            // columns of which all rowsets need files: the read defaults differ
	partition *partition
}

// check reads the table and the tablet, and returns why the one cannot become the other.
func (in *installation) check() (err error) {
	if err := checkTypes(in.schema); err != nil {
		return err
	}
	if err := in.checkTarget(); err != nil {
		return fmt.Errorf("tablet %s: %w", in.tablet, err)
	}
	if in.partition, err = newPartition(in.super); err != nil {
		return fmt.Errorf("tablet %s: %w", in.tablet, err)
	}
	now := mvcc.EndOf(time.Now())
	for f, err := range in.sets {
		if err == nil {
			err = in.checkRowSet(f, now)
		}
		if err != nil {
			return err
		}
	}
	in.warnOfRetention()
	if in.voters > 1 {
		in.options.Warn(fmt.Sprintf("tablet %s has %d voters: the other replicas must be deleted before they start, "+
			"so that they copy this one; otherwise they differ from it without any error",
			in.tablet, in.voters))
	}
	return nil
}

// checkRowSet checks what depends on the rows.
func (in *installation) checkRowSet(f rowset.Files, now mvcc.Timestamp) error {
	m := f.Metadata
	if m.MaxTimestamp > now {
		return fmt.Errorf("the table has changes at %d, which is ahead of the clock", uint64(m.MaxTimestamp))
	}
	for _, id := range slices.Sorted(maps.Keys(in.defaults)) {
		if !slices.ContainsFunc(m.Columns, func(c rowset.ColumnBlock) bool { return c.ID == id }) {
			c := &in.schema.Columns[in.schema.IndexID(id)]
			return fmt.Errorf("column %q was added to the table with another default than the tablet's", c.Name)
		}
	}
	if in.options.PartitionOnly || in.partition.isAll() {
		return nil
	}
	d, err := rowset.Open(in.schema, m, rowset.Options{Blocks: f.Blocks})
	if err != nil {
		return err
	}
	defer d.Unref()
	return in.partition.check(in.ctx, d)
}

// defaultRetention is a server's retention of tables that have none of their own.
const defaultRetention = 7 * 24 * time.Hour

// warnOfRetention warns if the server will drop history that the table keeps.
func (in *installation) warnOfRetention() {
	keep := defaultRetention
	if c := in.super.GetExtraConfig(); c != nil && c.HistoryMaxAgeSec != nil {
		keep = time.Duration(c.GetHistoryMaxAgeSec()) * time.Second
	}
	have := in.table.Properties().History
	if keep < 0 || have >= 0 && have <= keep {
		return
	}
	text := "all history"
	if have >= 0 {
		text = "history of " + have.String()
	}
	in.options.Warn(fmt.Sprintf("the table keeps %s, the tablet %s: the server drops what is older", text, keep))
}

// write copies the rowsets and replaces the superblock.
func (in *installation) write() (Result, error) {
	w, err := in.d.NewWriter(in.super.GetDataDirGroup().GetUuids())
	if err != nil {
		return Result{}, err
	}
	out := outgoing{ctx: in.ctx, writer: w, schema: in.schema, ids: in.ids}
	for f, err := range in.sets {
		if err == nil {
			err = in.add(&out, f)
		}
		if err != nil {
			return Result{}, errors.Join(err, w.Abort())
		}
	}
	if err := w.Commit(); err != nil {
		return Result{}, errors.Join(err, w.Abort())
	}
	// From here on, the superblock on disk may be the new one even if an error is returned: the
	// blocks stay.
	m := proto.CloneOf(in.super)
	out.setRowSets(m)
	if err := in.d.ReplaceSuperblock(in.tablet, m); err != nil {
		return Result{}, err
	}
	return out.result(in.tablet), nil
}

// add copies a rowset, or the rows of it that belong to the partition.
func (in *installation) add(out *outgoing, f rowset.Files) error {
	if !in.options.PartitionOnly || in.partition.isAll() {
		return out.add(f)
	}
	return out.addPart(f, in.partition)
}
