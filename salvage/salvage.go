// Package salvage makes a new store from all that can be read of a damaged one.
//
//	done, err := salvage.Run(ctx, "orders", "saved", nil, func(l salvage.Loss) {
//		log.Printf("%+v", l)
//	})
//
// Files without damage are copied with their history. Of a rowset with damaged files, each version
// of a row is kept whose cells can all be read: one bad cblock costs only the rows whose cells or
// changes it has, and only the versions that need these. The time of a lost version looks as if the
// row had not existed then. With FillNull, versions that lack only cells of nullable columns have
// NULL there. Rows that missing records of the log may have changed are as before.
//
// Each key has one sequence of versions in the new store. Where files and log contradict each
// other, since the end of a version is lost, the version that began later counts, and the older one
// ends at the last time of which it is known that it existed.
package salvage

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"slices"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/block"
	"github.com/oribi-db/oribi/blockmanager"
	"github.com/oribi-db/oribi/internal/budget"
	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/internal/meta"
	"github.com/oribi-db/oribi/internal/salvage/damaged"
	"github.com/oribi-db/oribi/internal/store"
	"github.com/oribi-db/oribi/internal/storedir"
	"github.com/oribi-db/oribi/lsn"
	"github.com/oribi-db/oribi/mvcc"
	"github.com/oribi-db/oribi/rowset"
	"github.com/oribi-db/oribi/vfs"
)

// Errors that callers may test for.
var (
	ErrNotStore    = fault.ErrNotStore
	ErrLocked      = fault.ErrLocked
	ErrCorrupt     = fault.ErrCorrupt
	ErrUnsupported = fault.ErrUnsupported // a newer format
	ErrNoSpace     = fault.ErrNoSpace
)

// Loss is something that Run could not read, or that contradicts what it has read.
type Loss struct {
	Table string // empty: no table, or all
	File  string // within the store's directory; empty: several files contradict one another
	Block uint64 // 0: no block is concerned
	Rows  int64  // rows of which some version is lost, or has NULL in the place of a value; −1: unknown
	Lost  string // the loss and its reason
}

// Option is an option of Run: FillNull or Progress. A nil option has no effect.
type Option func(*options)

type options struct {
	fillNull bool
	progress oribi.Progress
}

// FillNull makes Run keep rows of which cells of nullable columns cannot be read, with NULL in
// these cells.
func FillNull() Option { return func(o *options) { o.fillNull = true } }

// Progress makes Run call progress periodically with the bytes of blocks so far and in all. A block
// is read twice, and counts twice.
func Progress(progress oribi.Progress) Option {
	return func(o *options) { o.progress = progress }
}

// Run makes a new store in out from all that can be read of a damaged one in dir: tables, rows, and
// their versions. It calls report for each loss, unless report is nil; without any, the new store
// has the same content. out must not exist, or be an empty directory, as for Store.Checkpoint. It
// is complete whether something was lost or not. Of o it uses FS, Logger, MemoryLimit, RowSetBytes
// and LogSegmentBytes; nil means the defaults.
//
// It reads dir as a reader does, with a shared lock, and writes nothing there. Errors: fs.ErrExist
// if out is anything else; ErrNotStore; ErrLocked; ErrUnsupported; ErrCorrupt if nothing can be
// read; ErrNoSpace; ctx.Err(); the errors of the file system. After an error there is no out, or it
// is empty.
func Run(
	ctx context.Context, dir, out string, o *oribi.Options, report func(Loss), opts ...Option,
) (oribi.CopyResult, error) {
	if err := o.Validate(); err != nil {
		return oribi.CopyResult{}, err
	}
	v := newSalvager(ctx, dir, o, report)
	for _, opt := range opts {
		if opt != nil {
			opt(&v.options)
		}
	}
	if err := storedir.MayCopyTo(v.dir.FS, out, v.dir.Path); err != nil {
		return oribi.CopyResult{}, fault.Call("salvage", err)
	}
	defer v.close()
	if err := v.open(); err != nil {
		return oribi.CopyResult{}, fault.Call("salvage: "+dir, err)
	}
	c, err := store.WriteImage(ctx, out, v, store.ImageOptions{FS: v.o.FS, Logger: v.o.Logger,
		LogSegmentBytes: v.o.LogSegmentBytes, Progress: func(_, _ int64) {}})
	return c, fault.Call("salvage", err)
}

// defaultMemoryLimit is the default of Options.MemoryLimit.
const defaultMemoryLimit = 256 << 20

// readsShare: 1/readsShare of the memory limit is for blocks that are being read, before they are
// in the cache.
const readsShare = 16

// newSalvager returns the salvager of a store that is not open.
func newSalvager(ctx context.Context, dir string, o *oribi.Options, report func(Loss)) *salvager {
	v := &salvager{ctx: ctx, report: report, bad: map[block.ID]error{}, infos: map[block.ID]blockInfo{},
		tables: map[uint32]*table{}}
	if o != nil {
		v.o = oribi.Options{FS: o.FS, Logger: o.Logger, MemoryLimit: o.MemoryLimit, RowSetBytes: o.RowSetBytes,
			LogSegmentBytes: o.LogSegmentBytes}
	}
	if v.o.FS == nil {
		v.o.FS = vfs.OS
	}
	if v.o.Logger == nil {
		v.o.Logger = slog.New(slog.DiscardHandler)
	}
	if v.o.MemoryLimit == 0 {
		v.o.MemoryLimit = defaultMemoryLimit
	}
	if v.report == nil {
		v.report = func(Loss) {}
	}
	v.dir = storedir.At(v.o.FS, dir, v.o.Logger)
	v.budget = budget.New(v.o.MemoryLimit)
	v.log.v = v
	return v
}

// salvager salvages one store. It is the ImageSource of the new store.
type salvager struct {
	ctx     context.Context
	o       oribi.Options // with defaults
	options options
	report  func(Loss)
	dir     storedir.Dir // of the damaged store
	locks   *storedir.Locks
	budget  *budget.Budget

	instance *storedir.Instance
	blocks   *blockmanager.Manager
	rowSets  rowset.Options
	stored   meta.Store
	newest   mvcc.Timestamp // of all write batches
	last     lsn.LSN        // of the log

	infos  map[block.ID]blockInfo
	bad    map[block.ID]error // damaged blocks
	older  bool               // there was newer metadata
	tables map[uint32]*table
	// indexes are the metadata rows of tables with index entries. These are not read: the next Open of the
	// new store adds the entries of the rows that are left.
	indexes []*meta.Table
	whole   []blockmanager.BlockInfo // to be copied, by ID
	rows    []blockmanager.Row       // of the new store
	log     logReader
	done    int64
	total   int64
}

// blockInfo is a block of the damaged store.
type blockInfo struct {
	blockmanager.BlockInfo
	file string
}

// lose reports a loss on account of a block.
func (v *salvager) lose(table string, id block.ID, rows int64, lost string) {
	l := Loss{Table: table, File: storedir.MetaName, Block: uint64(id), Rows: rows, Lost: lost}
	if b, ok := v.infos[id]; ok {
		l.File = b.file
	}
	if err := v.bad[id]; err != nil {
		l.Lost += ": " + err.Error()
	}
	v.report(l)
}

// open opens the damaged store and finds its damaged blocks.
func (v *salvager) open() (err error) {
	if err := v.lock(); err != nil {
		return err
	}
	if err := v.identify(); err != nil {
		return err
	}
	v.blocks, err = blockmanager.OpenDamaged(blockmanager.Options{FS: v.o.FS, Dir: v.dir.Path,
		Instance: v.instance.ID, ReadOnly: true, BlockSize: v.instance.BlockSize, Logger: v.o.Logger}, v.damaged)
	if err != nil {
		return err
	}
	v.instance.BlockSize = v.blocks.BlockSize()
	if err := v.checkBlocks(); err != nil {
		return err
	}
	v.rowSets = rowset.Options{Blocks: openBlocks{v.blocks}, Cache: store.NewCache(v.budget, v.o.MemoryLimit),
		Reads: budget.NewGate(v.o.MemoryLimit / readsShare)}
	if err := v.load(); err != nil {
		return err
	}
	return v.log.survey()
}

// close closes the damaged store.
func (v *salvager) close() {
	for _, t := range v.tables {
		for _, d := range t.sets {
			d.Close()
		}
	}
	if v.blocks != nil {
		v.blocks.Close() // nothing was written, so an error does not matter
	}
	v.locks.Release()
}

// openBlocks adapts the block manager to the interface of package rowset.
type openBlocks struct{ m *blockmanager.Manager }

func (o openBlocks) OpenBlock(id block.ID) (rowset.Block, error) { return o.m.OpenBlock(id) }

// damaged notes a damaged file.
func (v *salvager) damaged(d blockmanager.Damage) {
	if d.Lost {
		v.older = true
		v.report(Loss{File: d.File, Rows: -1, Lost: d.Problem})
		return
	}
	v.o.Logger.Warn("damaged file", "file", d.File, "problem", d.Problem)
}

// identify finds out which store it is.
func (v *salvager) identify() error {
	instance, err := v.dir.Instance()
	if v.instance = instance; err == nil || errors.Is(err, fault.ErrUnsupported) {
		return err
	}
	id, jerr := blockmanager.Identity(v.o.FS, v.dir.Path)
	if jerr != nil {
		return fmt.Errorf("%w; %w", err, jerr)
	}
	v.instance = &storedir.Instance{ID: id}
	v.damaged(blockmanager.Damage{File: storedir.InstanceName, Problem: err.Error()})
	return nil
}

// lock locks the store for reading, as far as its files exist.
func (v *salvager) lock() error {
	names, err := v.o.FS.List(v.dir.Path)
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("no such directory: %w", fault.ErrNotStore)
	} else if err != nil {
		return err
	}
	if !slices.Contains(names, storedir.InstanceName) && !slices.Contains(names, storedir.DataName) {
		return fmt.Errorf("the directory contains neither %s nor %s: %w", storedir.InstanceName, storedir.DataName,
			fault.ErrNotStore)
	}
	if v.locks, err = v.dir.Lock(true); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := v.locks.LockInstance(); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// checkBlocks reads all blocks, in the order of files and offsets.
func (v *salvager) checkBlocks() error {
	for _, b := range v.blocks.Blocks() {
		v.infos[b.ID] = blockInfo{BlockInfo: b}
		v.total += 2 * b.Length
	}
	for _, at := range v.blocks.BlockLocations() {
		if err := v.ctx.Err(); err != nil {
			return err
		}
		b := v.infos[at.ID]
		b.file = at.File
		v.infos[at.ID] = b
		r, err := v.blocks.ReadBlock(at.ID)
		if err == nil {
			_, err = io.Copy(io.Discard, r)
			r.Close()
		}
		if err != nil && !damaged.Unreadable(err) {
			return err
		}
		if err != nil {
			v.bad[at.ID] = err
		}
		v.advance(at.Length)
	}
	return nil
}

func (v *salvager) advance(bytes int64) {
	if v.done += bytes; v.options.progress != nil {
		v.options.progress(min(v.done, v.total), v.total)
	}
}
