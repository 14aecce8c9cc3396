package kudu

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/oribi-db/oribi/block"
	"github.com/oribi-db/oribi/cache"
	"github.com/oribi-db/oribi/internal/budget"
	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/internal/kudufs"
	"github.com/oribi-db/oribi/internal/kudupb"
	"github.com/oribi-db/oribi/rowset"
	"github.com/oribi-db/oribi/vfs"
)

// Options change how a directory is read. The zero value is the default.
type Options struct {
	// Warn is called with one line for each circumstance that may make an answer incomplete: a
	// server that uses the directory, history that may be gone, operations whose fate the directory
	// does not show. nil disables it.
	Warn func(text string)
	// CacheBytes is the memory for decoded pieces of files. Default: 64 MiB.
	CacheBytes int64
	// LogBytes bounds the memory for the rows and changes that are only in the logs of the open
	// tables: a server had them in memory, and had not flushed them. A table that needs more is not
	// opened. Default: 4 GiB.
	LogBytes int64
	// FS is the file system. Default: vfs.OS.
	FS vfs.FS
}

// Directory is a server's directories, open for reading.
type Directory struct {
	fs      *kudufs.Directory
	warn    func(text string)
	cache   *cache.Cache
	memory  *budget.Budget // of rows and changes that only logs have
	tablets []Tablet
}

// Tablet describes a tablet by its superblock.
type Tablet struct {
	ID    string
	Table string // name; "" if the superblock cannot be read
	State string // as READY, TOMBSTONED; "" if the superblock cannot be read
	// Err is why the superblock cannot be read; nil if it can.
	Err error

	super *kudupb.TabletSuperBlockPB
}

// Readable reports whether the tablet has rows to read: its superblock can be read, and it is not a
// tombstone.
func (t *Tablet) Readable() bool {
	return t.super != nil && t.super.GetTabletDataState() == int32(kudupb.TabletDataState_TABLET_DATA_READY)
}

// Open reads the metadata in dir. dir is the only root of a server, or all its roots are
// directories in it. Damage of a container of blocks or of a superblock is no error here, but in
// reads that need it. Errors: ErrNotStore, ErrUnsupported, ErrCorrupt; errors of the file system.
func Open(dir string, o Options) (*Directory, error) {
	if o.FS == nil {
		o.FS = vfs.OS
	}
	if o.CacheBytes == 0 {
		o.CacheBytes = 64 << 20
	}
	if o.LogBytes == 0 {
		o.LogBytes = 4 << 30
	}
	if o.Warn == nil {
		o.Warn = func(string) {}
	}
	files, err := kudufs.Open(o.FS, dir)
	if err != nil {
		return nil, fmt.Errorf("kudu: %w", err)
	}
	d := &Directory{fs: files, warn: o.Warn, cache: cache.New(o.CacheBytes), memory: budget.New(o.LogBytes)}
	ids, _, err := files.Tablets()
	if err != nil {
		return nil, fmt.Errorf("kudu: %w", err)
	}
	for _, id := range ids {
		t := Tablet{ID: id}
		if t.super, t.Err = files.Superblock(id); t.Err == nil {
			t.Table, t.State = t.super.GetTableName(), stateName(t.super.GetTabletDataState())
		}
		d.tablets = append(d.tablets, t)
	}
	slices.SortFunc(d.tablets, func(a, b Tablet) int {
		return cmp.Or(cmp.Compare(a.Table, b.Table), cmp.Compare(a.ID, b.ID))
	})
	if files.InUse() {
		d.warn(dir + " is in use by a server; what it changes now may be missing or damaged in the answer")
	}
	return d, nil
}

// stateName returns Kudu's name of a tablet's state without its prefix.
func stateName(state int32) string {
	name, ok := kudupb.TabletDataState_name[state]
	if !ok {
		return fmt.Sprint(state)
	}
	return name[len("TABLET_DATA_"):]
}

// Close releases the memory of the directory. Its tables are closed before.
func (d *Directory) Close() error { return nil }

// Tablets returns all tablets, by table and ID. The caller must not change it.
func (d *Directory) Tablets() []Tablet { return d.tablets }

// Open opens a table by its name, with all its tablets in the directory, or one tablet by its ID.
// It reads the logs of the tablets into memory. Errors: ErrNoTable if there is neither; ErrNotFound
// for a tombstone, and for a table that has only those; ErrLogMemory; ErrCorrupt, ErrUnsupported;
// errors of the context and of the file system.
func (d *Directory) Open(ctx context.Context, what string) (*Table, error) {
	chosen, err := d.choose(what)
	if err != nil {
		return nil, fmt.Errorf("kudu: %w", err)
	}
	t, err := d.openTable(ctx, chosen)
	if err != nil {
		return nil, fmt.Errorf("kudu: %w", err)
	}
	return t, nil
}

// choose returns the tablets that what names and that have rows.
func (d *Directory) choose(what string) ([]*Tablet, error) {
	var found, damaged []*Tablet
	there := false
	for i := range d.tablets {
		t := &d.tablets[i]
		switch {
		case t.ID == what && t.Err != nil:
			return nil, t.Err
		case t.ID == what && !t.Readable():
			return nil, fmt.Errorf("tablet %s is %s: it has no rows: %w", what, t.State, fault.ErrNotFound)
		case t.ID == what:
			return []*Tablet{t}, nil
		case t.Err != nil:
			damaged = append(damaged, t)
		case t.Table == what:
			there = true
			if t.Readable() {
				found = append(found, t)
			} else {
				d.warn(fmt.Sprintf("tablet %s of table %q is %s and has no rows here", t.ID, what, t.State))
			}
		}
	}
	switch {
	case len(damaged) > 0 && there:
		return nil, fmt.Errorf("tablet %s may be one of table %q: %w", damaged[0].ID, what, damaged[0].Err)
	case len(damaged) > 0:
		return nil, fmt.Errorf("no table or tablet %q, unless tablet %s is one: %w", what,
			damaged[0].ID, damaged[0].Err)
	case !there:
		return nil, fmt.Errorf("%q is neither a table nor a tablet: %w", what, fault.ErrNoTable)
	case len(found) == 0:
		return nil, fmt.Errorf("table %q has only tablets without rows here: %w", what, fault.ErrNotFound)
	}
	if id := found[0].super.TableId; slices.ContainsFunc(found, func(t *Tablet) bool {
		return !bytes.Equal(t.super.TableId, id)
	}) {
		return nil, fmt.Errorf("%q is the name of two tables: give the IDs of tablets", what)
	}
	return found, nil
}

// blocks adapts the blocks of a directory to the interface rowset.Blocks.
type blocks struct{ fs *kudufs.Directory }

func (b blocks) OpenBlock(id block.ID) (rowset.Block, error) {
	src, err := b.fs.OpenBlock(id)
	if err != nil {
		return nil, err
	}
	return src, nil
}
