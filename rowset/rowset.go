// Package rowset implements a DiskRowSet, a sorted set of rows on disk: a column file for each
// column, a key index, a bloom file, and the changes since the flush (redo) and before it (undo) in
// delta files and a delta mem store.
//
// A Writer writes the files of one rowset from rows in key order. Open opens a DiskRowSet from its
// metadata. Find looks up a key, Get reads one row as of a snapshot, NewIterator scans, and
// Histories returns the rows with all their versions, for compactions. A Tree finds the rowsets
// that may contain a key.
//
// A DiskRowSet is safe for concurrent use. Its base data never changes; its list of delta stores is
// immutable and replaced as a whole. It is reference-counted with Ref and Unref; the last Unref
// closes the files.
//
// Source: tablet spec §8, §10. Simpler than Kudu: files are opened on first use and then stay open;
// one key index reader serves bounds, lookups and ranges; there are no per-thread bloom caches.
package rowset

import (
	"fmt"
	"io"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/block"
	"github.com/oribi-db/oribi/bloom"
	"github.com/oribi-db/oribi/cache"
	"github.com/oribi-db/oribi/cfile"
	"github.com/oribi-db/oribi/change"
	"github.com/oribi-db/oribi/delta"
	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/internal/parallel"
	"github.com/oribi-db/oribi/keyenc"
	"github.com/oribi-db/oribi/lsn"
	"github.com/oribi-db/oribi/mvcc"
	"github.com/oribi-db/oribi/schema"
)

// Blocks opens committed blocks.
type Blocks interface {
	OpenBlock(id block.ID) (Block, error)
}

// TailBlocks are Blocks that read as much of a block's end at opening as the caller wants.
// Options.Blocks may be TailBlocks.
type TailBlocks interface {
	Blocks
	// OpenTail opens a block.Tailed whose tail has at least n bytes, or is the whole block.
	OpenTail(id block.ID, n int64) (Block, error)
}

// Block is the bytes of one block until it is closed.
type Block interface {
	block.Source
	io.Closer
}

// Options are shared by all rowsets of a store.
type Options struct {
	Blocks Blocks
	Cache  *cache.Cache  // of cblocks; nil = none
	Grow   func(n int64) // called with the bytes that delta mem stores allocate; nil disables it
	Reads  cfile.Limiter // of the memory of concurrent reads; nil = none

	// Opened is called with the bytes that open files take, and with -n when they are closed. nil
	// disables it.
	Opened func(n int64)

	// Damaged is called once for a rowset whose row file or key directory, in block id, is damaged.
	// What it contains is read from other files instead. nil disables it.
	Damaged func(rowset uint64, id block.ID, err error)
}

// DiskRowSet is an open rowset.
type DiskRowSet struct {
	Schema *schema.Schema

	opts        Options
	encoder     *keyenc.Encoder
	rowFormat   *change.RowFormat // of base rows in the cache
	columns     []column          // by index in Schema
	newest      block.ID          // of the columns' blocks
	index       lazy[*cfile.Reader]
	filter      lazy[*bloom.Reader]
	rows        lazy[*rowFile]
	directory   directory
	found       atomic.Int32             // see usuallyFinds
	dead        atomic.Pointer[deadRows] // nil: no block is known to be dead
	deadAs      atomic.Uint64            // the timestamp as of which all rows are known to be dead; 0: none
	overlayMu   sync.Mutex               // held while overlays are made
	overlayScan atomic.Pointer[overlayScan]
	rowsOff     atomic.Bool // the row file is damaged so that it does not open
	rowsNoted   atomic.Bool // the row file is damaged; Options.Damaged was called

	// state is replaced by flushes of deltas and delta compactions, which hold the tablet's locks.
	// Readers load it once.
	state atomic.Pointer[State]
	memMu sync.Mutex // guards the creation of the delta mem store

	refs    atomic.Int64
	closeMu sync.Mutex
	opened  []openedBlock // so far
}

// State has the metadata and the delta stores of a rowset. It is immutable.
type State struct {
	Meta   *Metadata // the last committed metadata
	Deltas *delta.Tracker
}

// column is one column of the schema in this rowset.
type column struct {
	block block.ID // 0: the rowset was written before the column was added
	file  lazy[*cfile.Reader]
}

// lazy is a value that is created on first use. Errors are not kept: the next call tries again.
type lazy[T any] struct {
	val atomic.Pointer[T]
	mu  sync.Mutex
}

func (l *lazy[T]) get(open func() (T, error)) (T, error) {
	if v := l.val.Load(); v != nil {
		return *v, nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if v := l.val.Load(); v != nil {
		return *v, nil
	}
	v, err := open()
	if err != nil {
		return v, err
	}
	l.val.Store(&v)
	return v, nil
}

// Open opens a rowset with one reference. It opens only the delta files; all other files are opened
// on first use. A column of s that the rowset lacks reads as its read default, or as NULL. Errors:
// ErrCorrupt. Source: tablet spec §8.7.
func Open(s *schema.Schema, m *Metadata, o Options) (*DiskRowSet, error) {
	d := &DiskRowSet{Schema: s, opts: o, encoder: keyenc.NewEncoder(s), rowFormat: change.NewRowFormat(s),
		columns: make([]column, len(s.Columns))}
	d.state.Store(&State{Meta: m, Deltas: &delta.Tracker{Schema: s}})
	d.refs.Store(1)
	for _, c := range m.Columns {
		if i := s.IndexID(c.ID); i >= 0 {
			d.columns[i].block = c.Block
			d.newest = max(d.newest, c.Block)
		}
	}
	for i := range s.Columns {
		c := &s.Columns[i]
		if d.columns[i].block == 0 && (i < s.Keys || !c.Nullable && c.ReadDefault == nil) {
			return nil, fault.Corruptf("rowset %d: no file for column %q, which is not nullable and has no default",
				m.ID, c.Name)
		}
	}
	if !s.SingleKey() && m.KeyIndex == 0 {
		return nil, fault.Corruptf("rowset %d: no key index", m.ID)
	}
	t := &delta.Tracker{Schema: s}
	t.SetBirths(m.Births)
	err := d.openDeltas(&t.Undo, m.Undo)
	if err == nil {
		err = d.openDeltas(&t.Redo, m.Redo)
	}
	if err != nil {
		d.Unref()
		return nil, err
	}
	d.state.Store(&State{Meta: m, Deltas: t})
	return d, nil
}

func (d *DiskRowSet) openDeltas(dst *[]*delta.File, ids []block.ID) error {
	for _, id := range ids {
		f, err := d.OpenDelta(id)
		if err != nil {
			return err
		}
		*dst = append(*dst, f)
	}
	return nil
}

// OpenDelta opens a delta file of the rowset.
func (d *DiskRowSet) OpenDelta(id block.ID) (*delta.File, error) {
	return openBlock(d, id, func(src block.Source) (*delta.File, error) {
		return delta.OpenFile(src, d.readerOptions())
	})
}

// readerOptions returns the options of all files but the row file.
func (d *DiskRowSet) readerOptions() cfile.ReaderOptions {
	return cfile.ReaderOptions{Cache: d.opts.Cache, NoHeader: true, Limit: d.opts.Reads}
}

// openBlock opens a block and calls open for its content. Unless open fails, the block stays open
// until the rowset is closed.
func openBlock[R any](d *DiskRowSet, id block.ID, open func(block.Source) (R, error)) (r R, err error) {
	src, err := d.opts.Blocks.OpenBlock(id)
	return openSource(d, id, src, err, open)
}

// openedBlock is a block that stays open until the rowset is closed.
type openedBlock struct {
	id  block.ID
	src Block
}

// openedBlock returns a block that is open, nil if it is not.
func (d *DiskRowSet) openedBlock(id block.ID) Block {
	d.closeMu.Lock()
	defer d.closeMu.Unlock()
	for _, o := range d.opened {
		if o.id == id {
			return o.src
		}
	}
	return nil
}

// openSource is openBlock of a block that was opened, or failed to open with err.
func openSource[R any](
	d *DiskRowSet, id block.ID, src Block, err error, open func(block.Source) (R, error),
) (r R, _ error) {
	if err == nil {
		if r, err = open(src); err != nil {
			src.Close()
		}
	}
	if err != nil {
		return r, fmt.Errorf("rowset %d: %w", d.Metadata().ID, err)
	}
	d.closeMu.Lock()
	d.opened = append(d.opened, openedBlock{id, src})
	d.closeMu.Unlock()
	d.countOpened(1)
	return r, nil
}

// openBytes is about how much memory an open file takes: its footer, and the ends of its indexes.
const openBytes = 4 << 10

func (d *DiskRowSet) countOpened(files int) {
	if d.opts.Opened != nil && files != 0 {
		d.opts.Opened(int64(files) * openBytes)
	}
}

// openFile opens a cfile, which must have as many values as the rowset has rows. what describes it
// in errors.
func (d *DiskRowSet) openFile(id block.ID, what string, check func(info cfile.Info) error) (*cfile.Reader, error) {
	return openBlock(d, id, func(src block.Source) (*cfile.Reader, error) {
		o := d.readerOptions()
		o.Arrays = true
		r, err := cfile.Open(src, o)
		if err != nil {
			return nil, err
		}
		if err := check(r.Info()); err != nil {
			return nil, fmt.Errorf("block %d: %s %w", id, what, err)
		}
		if r.Rows() != d.Metadata().Rows {
			return nil, fault.Corruptf("block %d: %s has %d rows, want %d", id, what, r.Rows(), d.Metadata().Rows)
		}
		return r, nil
	})
}

// Metadata returns the rowset's metadata as of the last commit. It is immutable.
func (d *DiskRowSet) Metadata() *Metadata { return d.state.Load().Meta }

// Ref adds a reference to the rowset.
func (d *DiskRowSet) Ref() { d.refs.Add(1) }

// Shared reports whether there is more than one reference.
func (d *DiskRowSet) Shared() bool { return d.refs.Load() > 1 }

// Unref releases a reference; the last one closes the files.
func (d *DiskRowSet) Unref() {
	if d.refs.Add(-1) > 0 {
		return
	}
	d.closeMu.Lock()
	defer d.closeMu.Unlock()
	for _, o := range d.opened {
		o.src.Close() // nothing was written, so an error does not matter
	}
	d.countOpened(-len(d.opened))
	d.opened = nil
}

// File returns the reader of a column by its index in the schema; nil if the rowset does not have
// the column. Errors: ErrCorrupt if the file does not fit the column.
func (d *DiskRowSet) File(col int) (*cfile.Reader, error) {
	c := &d.columns[col]
	if c.block == 0 {
		return nil, nil
	}
	if v := c.file.val.Load(); v != nil {
		return *v, nil
	}
	return c.file.get(func() (*cfile.Reader, error) {
		want := &d.Schema.Columns[col]
		return d.openFile(c.block, fmt.Sprintf("column %q", want.Name), func(info cfile.Info) error {
			switch {
			case info.Type != want.Stored() || info.Array != (want.Type == schema.Array):
				return fault.Corruptf("has type %s, arrays %t, want %s", info.Type, info.Array, want.TypeName())
			case info.Nullable && !want.Nullable:
				return fault.Corruptf("is nullable")
			}
			return nil
		})
	})
}

// KeyFile returns the reader of the key index: the ad hoc index of a compound key, or the key
// column itself.
func (d *DiskRowSet) KeyFile() (*cfile.Reader, error) {
	if d.Schema.SingleKey() {
		return d.File(0)
	}
	if v := d.index.val.Load(); v != nil {
		return *v, nil
	}
	return d.index.get(func() (*cfile.Reader, error) {
		return d.openFile(d.Metadata().KeyIndex, "the key index", func(info cfile.Info) error {
			if info.Type != schema.Binary || info.Nullable || info.Array {
				return fault.Corruptf("has type %s, nullable %t", info.Type, info.Nullable)
			}
			return nil
		})
	})
}

// Filter returns the reader of the bloom file.
func (d *DiskRowSet) Filter() (*bloom.Reader, error) {
	if v := d.filter.val.Load(); v != nil {
		return *v, nil
	}
	return d.filter.get(func() (*bloom.Reader, error) {
		return openBlock(d, d.Metadata().Bloom, func(src block.Source) (*bloom.Reader, error) {
			return bloom.Open(src, d.readerOptions())
		})
	})
}

// OpenFiles opens all files that are not open yet, so that readers can continue after the metadata
// no longer refers to their blocks. If a file does not open, its reader gets the error.
func (d *DiskRowSet) OpenFiles() { d.openFilesBut(nil) }

// OpenDropped is OpenFiles of the files whose blocks next, the metadata of a successor, does not
// have.
func (d *DiskRowSet) OpenDropped(next *Metadata) { d.openFilesBut(next.Blocks(nil)) }

// openFilesBut opens all files except those in some blocks.
func (d *DiskRowSet) openFilesBut(blocks []block.ID) {
	wanted := func(id block.ID) bool { return id != 0 && !slices.Contains(blocks, id) }
	for i := range d.columns {
		if wanted(d.columns[i].block) {
			d.File(i)
		}
	}
	m := d.Metadata()
	if wanted(m.KeyIndex) {
		d.KeyFile()
	}
	if wanted(m.Bloom) {
		d.Filter()
	}
	if wanted(m.RowFile) {
		d.rowFile()
	}
	if wanted(m.KeyDirectory) {
		d.directoryBlock(0)
	}
}

// Tracker returns the current list of delta stores.
func (d *DiskRowSet) Tracker() *delta.Tracker { return d.state.Load().Deltas }

// State returns the current metadata and delta stores, which belong together.
func (d *DiskRowSet) State() *State { return d.state.Load() }

// SetStores replaces the metadata and the list of delta stores. The caller excludes writers of the
// table.
func (d *DiskRowSet) SetStores(m *Metadata, t *delta.Tracker) {
	d.state.Store(&State{Meta: m, Deltas: t})
}

// seek finds the first row at or after an encoded key.
func (d *DiskRowSet) seek(key []byte) (row batch.Ordinal, exact bool, err error) {
	return d.seekWith(key, nil)
}

// seekWith is seek for a scan, which gets the pages near the row if they are read; pages may be nil.
func (d *DiskRowSet) seekWith(key []byte, pages *nearPages) (row batch.Ordinal, exact bool, err error) {
	if d.prefersPages() {
		if f := d.openStored(); f != nil {
			if row, exact, err = d.seekPage(f, key, pages); err == nil {
				return row, exact, nil
			}
			d.noteDamage(err)
		}
	}
	return d.seekIndex(key)
}

// seekIndex is seek in the key index.
func (d *DiskRowSet) seekIndex(key []byte) (row batch.Ordinal, exact bool, err error) {
	index, err := d.KeyFile()
	if err != nil {
		return 0, false, err
	}
	if d.Schema.SingleKey() && !d.Schema.Columns[0].Type.Variable() {
		return d.seekInteger(index, key)
	}
	return index.Seek(key)
}

// seekInteger seeks in a fixed-width key column, whose cells are not the encoded keys. A range
// bound may be shorter or longer than an encoded key; it is replaced by the first complete key at
// or after it.
func (d *DiskRowSet) seekInteger(index *cfile.Reader, key []byte) (row batch.Ordinal, exact bool, err error) {
	width := d.Schema.Columns[0].Type.Width()
	whole := len(key) == width
	if !whole {
		bound := make([]byte, width)
		longer := copy(bound, key) < len(key)
		if longer && !increment(bound) {
			return batch.Ordinal(d.Metadata().Rows), false, nil
		}
		key = bound
	}
	row, exact, err = index.Seek(d.encoder.AppendInteger(make([]byte, 0, width), key))
	return row, exact && whole, err
}

// increment adds one to a big-endian integer and reports whether it did not overflow.
func increment(b []byte) bool {
	for i := len(b) - 1; i >= 0; i-- {
		if b[i]++; b[i] != 0 {
			return true
		}
	}
	return false
}

// Live reports whether the row exists after its newest change.
func (d *DiskRowSet) Live(row batch.Ordinal) (bool, error) { return d.Tracker().Live(row) }

// Apply adds a change to the delta mem store, which the first change creates. The caller holds the
// row's lock and prevents a concurrent replacement of the store.
func (d *DiskRowSet) Apply(row batch.Ordinal, ts mvcc.Timestamp, lsn lsn.LSN, list change.List) {
	t := d.Tracker()
	if t.Mem == nil {
		t = d.makeMem()
	}
	t.Mem.Apply(row, ts, lsn, list)
}

func (d *DiskRowSet) makeMem() *delta.Tracker {
	d.memMu.Lock()
	defer d.memMu.Unlock()
	t := *d.Tracker()
	if t.Mem == nil {
		t.Mem = delta.NewMemStore(d.rowFormat, d.opts.Grow)
		d.state.Store(&State{Meta: d.Metadata(), Deltas: &t})
	}
	return d.Tracker()
}

// StartChangeLog starts the change log of the delta mem store, which is created if necessary, and
// returns the store. The caller excludes writers of the table.
func (d *DiskRowSet) StartChangeLog() *delta.MemStore {
	m := d.makeMem().Mem
	m.StartChangeLog()
	return m
}

// Get appends the cells cols of the row with an encoded key, as of a snapshot, to dst; nil for
// NULL. If there is no such row, found is false and dst is unchanged. Cells are never overwritten.
func (d *DiskRowSet) Get(
	p bloom.Probe, snap mvcc.Snapshot, cols []int, dst [][]byte,
) (cells [][]byte, found bool, err error) {
	return d.GetNear(p, snap, cols, dst, nil)
}

// GetNear is Get of one of several keys; near may be nil.
func (d *DiskRowSet) GetNear(
	p bloom.Probe, snap mvcc.Snapshot, cols []int, dst [][]byte, near *Near,
) (cells [][]byte, found bool, err error) {
	l := lookup{near: near, base: true, cols: cols}
	if found, err = l.find(d, p); err != nil || !found {
		return dst, false, err
	}
	state := rowStates.Get().(*delta.RowState)
	defer releaseState(state)
	if err := d.Tracker().RowAt(l.row, snap, state); err != nil || state.Deleted {
		return dst, false, err
	}
	if cells, err = d.appendCells(dst, &l, p.Key, state, cols); err != nil {
		return dst, false, err
	}
	if (l.image == nil || l.missing != nil) && !state.Changed() && d.isWhole(cols) {
		d.keepRow(p, l.row, cells[len(dst):])
	}
	return cells, true, nil
}

// Has reports whether there is a row with an encoded key, as of a snapshot. It reads only the columns
// of the key, or pages of the row file.
func (d *DiskRowSet) Has(p bloom.Probe, snap mvcc.Snapshot) (bool, error) {
	row, found, err := d.Find(p)
	if err != nil || !found {
		return false, err
	}
	state := rowStates.Get().(*delta.RowState)
	defer releaseState(state)
	err = d.Tracker().RowAt(row, snap, state)
	return err == nil && !state.Deleted, err
}

// rowStates keeps the memory of reads of one row.
var rowStates = sync.Pool{New: func() any { return new(delta.RowState) }}

func releaseState(s *delta.RowState) {
	s.Reset()
	rowStates.Put(s)
}

// appendCells appends cells of the row of a lookup, which has the given key: from its changes, from the
// image of the lookup, from the key, or from the files of the columns that the image lacks.
func (d *DiskRowSet) appendCells(
	dst [][]byte, l *lookup, key []byte, state *delta.RowState, cols []int,
) (_ [][]byte, err error) {
	dst = slices.Grow(dst, len(cols))
	before := len(dst)
	var cold []int
	var keyCells [][]byte // decoded once they are needed
	var disk diskTimer
	for i, col := range cols {
		cell, ok := state.Cell(d.Schema.Columns[col].ID)
		switch {
		case ok:
		case l.image != nil && (l.missing == nil || !l.missing[col]):
			cell = d.rowFormat.Cell(l.image, col)
		case col < d.Schema.Keys:
			if keyCells == nil {
				if keyCells, err = d.encoder.Decode(key); err != nil {
					return nil, err
				}
			}
			cell = keyCells[col]
		default:
			if !disk.slow {
				disk.begin()
				if cell, ok, err = d.quickCell(l.row, col); err != nil {
					return nil, err
				}
				disk.end()
			}
			if !ok {
				cold = append(cold, i)
			}
		}
		dst = append(dst, cell)
	}
	if cold != nil {
		cells, err := d.readCold(l.row, cols, cold) // not into dst, which may be on the stack
		if err != nil {
			return nil, err
		}
		for k, i := range cold {
			dst[before+i] = cells[k]
		}
	}
	return dst, nil
}

// diskTimer finds out whether reads of parts of cblocks wait for the disk. If so, those that are left are
// made in parallel; if the parts are in the system's memory, that would take longer than reading them. It
// measures the first reads only, since looking at the clock takes time, too.
type diskTimer struct {
	reads int
	start time.Time
	slow  bool
}

const (
	timedReads = 2
	slowReads  = 100 * time.Microsecond // of timedReads
)

func (t *diskTimer) begin() {
	if t.reads++; t.reads == 1 {
		t.start = time.Now()
	}
}

func (t *diskTimer) end() {
	if t.reads == timedReads {
		t.slow = time.Since(t.start) > slowReads
	}
}

// Key returns the encoded key of a row. Errors: ErrCorrupt.
func (d *DiskRowSet) Key(row batch.Ordinal) ([]byte, error) {
	cells := make([][]byte, d.Schema.Keys)
	for i := range cells {
		var err error
		if cells[i], err = d.cell(row, i); err != nil {
			return nil, err
		}
	}
	return d.encoder.AppendKey(nil, cells), nil
}

// readsTogether is the number of columns that are read in parallel if their cblocks are not in
// memory: the disk gets several requests at a time, and all CPUs verify and decompress.
const readsTogether = 8

// readCold returns the cells of a row's columns cols[i] for all i in cold.
func (d *DiskRowSet) readCold(row batch.Ordinal, cols, cold []int) ([][]byte, error) {
	workers := readsTogether
	if d.opts.Cache == nil {
		workers = 1 // everything is always read
	}
	cells := make([][]byte, len(cold))
	return cells, parallel.Each(len(cold), workers, func(_, k int) (err error) {
		cells[k], err = d.cell(row, cols[cold[k]])
		return err
	})
}

// quickCell is like cell if that reads at most a part of a cblock; otherwise ok is false.
func (d *DiskRowSet) quickCell(row batch.Ordinal, col int) (cell []byte, ok bool, err error) {
	c := &d.columns[col]
	if c.block == 0 {
		return d.Schema.Columns[col].ReadDefault, true, nil
	}
	r := c.file.val.Load()
	if r == nil {
		return nil, false, nil
	}
	if cell, ok, err = (*r).QuickCell(row); ok && err == nil {
		err = d.checkCell(row, col, cell)
	}
	return cell, ok, err
}

// checkCell returns an error for NULL in a column that is not nullable.
func (d *DiskRowSet) checkCell(row batch.Ordinal, col int, cell []byte) error {
	if c := &d.Schema.Columns[col]; cell == nil && !c.Nullable {
		return fault.Corruptf("rowset %d: column %q: row %d is NULL", d.Metadata().ID, c.Name, row)
	}
	return nil
}

// cell reads one cell of the base data.
func (d *DiskRowSet) cell(row batch.Ordinal, col int) ([]byte, error) {
	c := &d.Schema.Columns[col]
	r, err := d.File(col)
	if err != nil {
		return nil, err
	}
	if r == nil {
		return c.ReadDefault, nil
	}
	var cell []byte
	if c.Type == schema.Array {
		cell, err = arrayCell(r, d, c, row)
	} else {
		cell, err = r.Cell(row)
	}
	if err == nil {
		err = d.checkCell(row, col, cell)
	}
	return cell, err
}

// CheckFiles reads and verifies every file but the row file and the key directory, which are
// redundant: see CheckRowFile and CheckKeyDirectory.
// On an error id is the damaged block.
func (d *DiskRowSet) CheckFiles() (id block.ID, err error) {
	for _, f := range d.checks() {
		if err := f.verify(); err != nil {
			return f.id, err
		}
	}
	return 0, nil
}

// fileCheck verifies one file.
type fileCheck struct {
	id     block.ID
	verify func() error
}

// checks lists the files that CheckFiles verifies.
func (d *DiskRowSet) checks() []fileCheck {
	var list []fileCheck
	add := func(id block.ID, open func() (*cfile.Reader, error)) {
		list = append(list, fileCheck{id, func() error {
			r, err := open()
			if err == nil {
				err = r.Verify()
			}
			return err
		}})
	}
	for i := range d.columns {
		if id := d.columns[i].block; id != 0 {
			add(id, func() (*cfile.Reader, error) { return d.File(i) })
		}
	}
	m := d.Metadata()
	if !d.Schema.SingleKey() {
		add(m.KeyIndex, d.KeyFile)
	}
	list = append(list, fileCheck{m.Bloom, func() error {
		filter, err := d.Filter()
		if err == nil {
			err = filter.Verify()
		}
		return err
	}})
	t := d.Tracker()
	for i, f := range append(append([]*delta.File{}, t.Undo...), t.Redo...) {
		list = append(list, fileCheck{f.ID, func() error {
			return f.Verify(d.Schema, uint64(m.Rows), i < len(t.Undo))
		}})
	}
	return list
}
