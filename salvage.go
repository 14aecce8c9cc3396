package oribi

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"

	"github.com/oribi-db/oribi/blockmanager"
	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/internal/store"
	"github.com/oribi-db/oribi/internal/storedir"
	"github.com/oribi-db/oribi/rowset"
)

// Loss is something that Salvage could not read, or that contradicts what it has read.
type Loss struct {
	Table string // empty: no table, or all
	File  string // within the store's directory; empty: several files contradict one another
	Block uint64 // 0: no block is concerned
	Rows  int64  // rows of which some version is lost, or has NULL in the place of a value; −1: unknown
	Lost  string // the loss and its reason
}

// SalvageOption is an option of Salvage: FillNull or SalvageProgress. A nil option has no effect.
type SalvageOption func(*salvageOptions)

type salvageOptions struct {
	fillNull bool
	progress func(done, total int64)
}

// FillNull makes Salvage keep rows of which cells of nullable columns cannot be read, with NULL in
// these cells.
func FillNull() SalvageOption { return func(o *salvageOptions) { o.fillNull = true } }

// SalvageProgress makes Salvage call progress periodically with the bytes of blocks so far and in
// all. A block is read twice, and counts twice.
func SalvageProgress(progress func(done, total int64)) SalvageOption {
	return func(o *salvageOptions) { o.progress = progress }
}

// Salvage makes a new store in out from all that can be read of a damaged one in dir: tables, rows,
// and their versions. It calls report for each loss; without any, the new store has the same
// content. out must not exist, or be an empty directory, as for Checkpoint. It is complete whether
// something was lost or not. Of o it uses FS, Logger, MemoryLimit, RowSetBytes and LogSegmentBytes;
// nil means the defaults.
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
//
// It reads dir as a reader does, with a shared lock, and writes nothing there. Errors: fs.ErrExist
// if out is anything else; ErrNotStore; ErrLocked; ErrUnsupported; ErrCorrupt if nothing can be
// read; ErrNoSpace; ctx.Err(); the errors of the file system. After an error there is no out, or it
// is empty.
func Salvage(
	ctx context.Context, dir, out string, o *Options, report func(Loss), options ...SalvageOption,
) (CopyResult, error) {
	if err := o.Validate(); err != nil {
		return CopyResult{}, err
	}
	filled := o.filled()
	filled.ReadOnly = true
	if report == nil {
		report = func(Loss) {}
	}
	v := &salvager{ctx: ctx, report: report, bad: map[blockID]error{}, blocks: map[blockID]salvagedBlock{},
		tables: map[uint32]*salvagedTable{}}
	for _, option := range options {
		if option != nil {
			option(&v.o)
		}
	}
	v.s = &Store{opts: filled}
	v.s.core = store.New(dir, v.s.options())
	if err := storedir.MayCopyTo(filled.FS, out, v.s.core.Dir.Path); err != nil {
		return CopyResult{}, callErr("salvage", err)
	}
	defer v.s.core.Abandon()
	if err := v.open(); err != nil {
		return CopyResult{}, fmt.Errorf("oribi: salvage: %s: %w", dir, err)
	}
	c, err := store.WriteImage(ctx, out, v, imageOptions(&filled, nil))
	return c, callErr("salvage", err)
}

// salvager salvages one store. It is the ImageSource of the new store.
type salvager struct {
	ctx    context.Context
	s      *Store // the damaged one
	o      salvageOptions
	report func(Loss)

	blocks map[blockID]salvagedBlock
	bad    map[blockID]error // damaged blocks
	older  bool              // there was newer metadata
	tables map[uint32]*salvagedTable
	whole  []blockmanager.BlockInfo // to be copied, by ID
	rows   []blockmanager.Row       // of the new store
	log    logSalvager
	done   int64
	total  int64
}

// salvagedBlock is a block of the damaged store.
type salvagedBlock struct {
	blockmanager.BlockInfo
	file string
}

// lose reports a loss on account of a block.
func (v *salvager) lose(table string, id blockID, rows int64, lost string) {
	l := Loss{Table: table, File: storedir.MetaName, Block: uint64(id), Rows: rows, Lost: lost}
	if b, ok := v.blocks[id]; ok {
		l.File = b.file
	}
	if err := v.bad[id]; err != nil {
		l.Lost += ": " + err.Error()
	}
	v.report(l)
}

// open opens the damaged store and finds its damaged blocks.
func (v *salvager) open() (err error) {
	s := v.s
	if err := s.lockDamaged(); err != nil {
		return err
	}
	if err := v.identify(); err != nil {
		return err
	}
	if s.core.Blocks, err = blockmanager.OpenDamaged(s.core.BlockOptions(), v.damaged); err != nil {
		return err
	}
	s.core.Instance.BlockSize = s.core.Blocks.BlockSize()
	if err := v.checkBlocks(); err != nil {
		return err
	}
	s.core.Options.Lose = v.loseRowSet
	if err := s.core.LoadTables(); err != nil {
		return err
	}
	for _, t := range s.sortedTables() {
		v.table(t.tab.Number).set(t)
	}
	v.log.v = v
	return v.log.survey()
}

// damaged notes a damaged file.
func (v *salvager) damaged(d blockmanager.Damage) {
	if d.Lost {
		v.older = true
		v.report(Loss{File: d.File, Rows: -1, Lost: d.Problem})
		return
	}
	v.s.opts.Logger.Warn("damaged file", "file", d.File, "problem", d.Problem)
}

// identify finds out which store it is.
func (v *salvager) identify() error {
	s := v.s
	instance, err := s.core.Dir.Instance()
	if s.core.Instance = instance; err == nil || errors.Is(err, fault.ErrUnsupported) {
		return err
	}
	id, jerr := blockmanager.Identity(s.opts.FS, s.core.Dir.Path)
	if jerr != nil {
		return fmt.Errorf("%w; %w", err, jerr)
	}
	s.core.Instance = &storedir.Instance{ID: id}
	v.damaged(blockmanager.Damage{File: storedir.InstanceName, Problem: err.Error()})
	return nil
}

// lockDamaged locks the store for reading, as far as its files exist.
func (s *Store) lockDamaged() error {
	names, err := s.opts.FS.List(s.core.Dir.Path)
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("no such directory: %w", fault.ErrNotStore)
	} else if err != nil {
		return err
	}
	if !slices.Contains(names, storedir.InstanceName) && !slices.Contains(names, storedir.DataName) {
		return fmt.Errorf("the directory contains neither %s nor %s: %w", storedir.InstanceName, storedir.DataName,
			fault.ErrNotStore)
	}
	if s.core.Locks, err = s.core.Dir.Lock(true); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := s.core.Locks.LockInstance(); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// checkBlocks reads all blocks, in the order of files and offsets.
func (v *salvager) checkBlocks() error {
	for _, b := range v.s.core.Blocks.Blocks() {
		v.blocks[b.ID] = salvagedBlock{BlockInfo: b}
		v.total += 2 * b.Length
	}
	for _, at := range v.s.core.Blocks.BlockLocations() {
		if err := v.ctx.Err(); err != nil {
			return err
		}
		b := v.blocks[at.ID]
		b.file = at.File
		v.blocks[at.ID] = b
		r, err := v.s.core.Blocks.ReadBlock(at.ID)
		if err == nil {
			_, err = io.Copy(io.Discard, r)
			r.Close()
		}
		if err != nil && !rowset.Unreadable(err) {
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
	if v.done += bytes; v.o.progress != nil {
		v.o.progress(min(v.done, v.total), v.total)
	}
}
