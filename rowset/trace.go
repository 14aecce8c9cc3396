package rowset

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/block"
	"github.com/oribi-db/oribi/bloom"
	"github.com/oribi-db/oribi/cache"
	"github.com/oribi-db/oribi/delta"
	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/internal/keydir"
	"github.com/oribi-db/oribi/mvcc"
)

// Trace describes how a read finds a key: it searches the MemRowSets, then the rowsets on disk
// whose bounds contain the key, until it has found the row.
type Trace struct {
	InMemory bool // a MemRowSet has the row, so no rowset on disk is searched
	Expired  bool // and the row there is expired as of the snapshot

	Memory []MemTrace  // the MemRowSets that are searched
	Steps  []TraceStep // the rowsets that are searched, up to the rowset with the row

	RowSets int // on disk, of the table
	Outside int // of these, those that are not searched because their bounds exclude the key
}

// NotSearched returns the number of rowsets whose bounds contain the key and that are not searched,
// because the row is found before.
func (t *Trace) NotSearched() int { return t.RowSets - t.Outside - len(t.Steps) }

// MemTrace is the search of one MemRowSet.
type MemTrace struct {
	Rows    int  // in the set, deleted ones included
	Found   bool // one of them has the key, and was inserted before the snapshot
	Live    bool // the row exists as of the snapshot
	Changes int  // of the row, up to the snapshot
}

// TraceStep is the search of one rowset. It describes the first read after the store was opened,
// which finds nothing in the cache; Directory, Excluded, Cached and Marked describe what is there now.
type TraceStep struct {
	RowSet  uint64        // the rowset's ID
	Filter  bool          // neither the bloom file nor a key directory excludes the key: the key index is asked
	Found   bool          // the key index contains the key
	Row     batch.Ordinal // its row ID, if Found
	Live    bool          // the row is stored as of the snapshot
	Expired bool          // but it is expired then

	// Redos and Undos count the changes of the row that are applied to its base cells: redos lead
	// from the flush to the snapshot, undos back to it. Older changes that cannot have an effect
	// are not applied.
	Redos, Undos int

	RowFile bool // the row is read from the row file, but for byte strings that its pages lack

	Directory bool // the key directory is in the cache: a read asks it instead of the bloom file
	Excluded  bool // and it excludes the key
	Cached    bool // the row is in the cache, in one piece
	Marked    int  // so many columns are read by marks in the cache: a part of a cblock each

	Reads []FileReads   // of the files that are read, key files first
	Time  time.Duration // of the search, the reads included
}

// Totals returns the number of reads of files, and their bytes.
func (s *TraceStep) Totals() (reads int, bytes int64) {
	for _, r := range s.Reads {
		reads, bytes = reads+r.Reads, bytes+r.Bytes
	}
	return reads, bytes
}

// FileReads counts the reads of one file of a rowset.
type FileReads struct {
	File  string // such as: bloom file, key index, row file, column "name", redo file
	Block block.ID
	Reads int
	Bytes int64
}

// Explain does what Get does with a copy of the rowset that has its own, empty cache, and describes
// it. The copy runs the code of Get, so that there is no second version of it, and Get itself stays
// free of counters. Errors: as Get.
func (d *DiskRowSet) Explain(
	p bloom.Probe, snap mvcc.Snapshot, cols []int,
) (step TraceStep, cells [][]byte, err error) {
	st := d.State()
	step = TraceStep{RowSet: st.Meta.ID}
	step.Directory, step.Excluded = d.peekDirectory(p)
	step.Cached = d.cachedRow(p) != nil
	files := &countedBlocks{Blocks: d.opts.Blocks, of: d, reads: map[block.ID]*FileReads{}}
	o := Options{Blocks: files, Reads: d.opts.Reads}
	if c := d.opts.Cache; c != nil {
		o.Cache = cache.New(c.Limit()) // some decisions depend on the limit
	}
	c, err := Open(d.Schema, st.Meta, o)
	if err != nil {
		return step, nil, err
	}
	defer c.Unref()
	deltas := *c.Tracker()
	deltas.Mem = st.Deltas.Mem
	c.SetStores(st.Meta, &deltas)
	files.reset() // of a store that is open, the delta files are open, too
	begin := time.Now()
	cells, err = c.explain(p, snap, cols, &step)
	step.Time = time.Since(begin)
	if step.Live && !step.RowFile && !step.Cached {
		step.Marked = d.marked(step.Row, cols)
	}
	step.Reads = files.list(d)
	return step, cells, err
}

// explain is Get of a copy.
func (d *DiskRowSet) explain(p bloom.Probe, snap mvcc.Snapshot, cols []int, step *TraceStep) ([][]byte, error) {
	l := lookup{base: true, cols: cols}
	found, err := l.find(d, p)
	step.Found, step.Filter = found, l.asked || found
	if err != nil || !found {
		return nil, err
	}
	step.Row = l.row
	var state delta.RowState
	err = d.Tracker().RowAt(l.row, snap, &state)
	step.Redos, step.Undos = state.Applied()
	if err != nil || state.Deleted {
		return nil, err
	}
	step.Live, step.RowFile = true, l.image != nil
	return d.appendCells(nil, &l, p.Key, &state, cols)
}

// marked returns how many of the columns cols, apart from those of the key, have a cell that is read by
// marks.
func (d *DiskRowSet) marked(row batch.Ordinal, cols []int) (n int) {
	for _, col := range cols {
		if r := d.columns[col].file.val.Load(); col >= d.Schema.Keys && r != nil && (*r).Marked(row) {
			n++
		}
	}
	return n
}

// peekDirectory reports whether the key directory is in the cache, and whether it excludes a key.
func (d *DiskRowSet) peekDirectory(p bloom.Probe) (there, excluded bool) {
	if d.opts.Cache == nil || !d.directory.kept.Load() {
		return false, false
	}
	dir, there := d.opts.Cache.Get(d.directoryKey())
	if there {
		_, has := newCandidates(dir.(*keydir.Directory), p)
		excluded = !has
	}
	return there, excluded
}

// countedBlocks counts the reads of blocks. It is a TailBlocks, and safe for concurrent use.
type countedBlocks struct {
	Blocks
	of *DiskRowSet

	mu    sync.Mutex
	reads map[block.ID]*FileReads
}

func (b *countedBlocks) reset() {
	b.mu.Lock()
	defer b.mu.Unlock()
	clear(b.reads)
}

func (b *countedBlocks) add(id block.ID, reads, bytes int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	r := b.reads[id]
	if r == nil {
		r = &FileReads{Block: id}
		b.reads[id] = r
	}
	r.Reads += reads
	r.Bytes += int64(bytes)
}

// OpenBlock implements Blocks.
func (b *countedBlocks) OpenBlock(id block.ID) (Block, error) { return b.OpenTail(id, 0) }

// OpenTail implements TailBlocks.
func (b *countedBlocks) OpenTail(id block.ID, n int64) (src Block, err error) {
	if tails, ok := b.Blocks.(TailBlocks); ok {
		src, err = tails.OpenTail(id, n)
	} else {
		src, err = b.Blocks.OpenBlock(id)
	}
	if errors.Is(err, fault.ErrNotFound) { // dropped: before that, the rowset has opened all of its files
		if kept := b.of.openedBlock(id); kept != nil {
			src, err = keptBlock{kept}, nil
		}
	}
	if err != nil {
		return nil, err
	}
	return &countedBlock{src, b}, nil
}

// keptBlock is a block that another rowset closes.
type keptBlock struct{ Block }

func (keptBlock) Close() error { return nil }

// countedBlock is a block whose reads are counted. It is a block.Tailed.
type countedBlock struct {
	Block
	to *countedBlocks
}

// ReadAt implements io.ReaderAt.
func (b *countedBlock) ReadAt(p []byte, off int64) (int, error) {
	n, err := b.Block.ReadAt(p, off)
	b.to.add(b.ID(), 1, n)
	return n, err
}

// TakeTail implements block.Tailed: the tail was read when the block was opened.
func (b *countedBlock) TakeTail() []byte {
	t, ok := b.Block.(block.Tailed)
	if !ok {
		return nil
	}
	tail := t.TakeTail()
	if tail != nil {
		b.to.add(b.ID(), 1, len(tail))
	}
	return tail
}

// list returns the counts of all files that were read: the files of keys, the row file, the columns
// in the order of the schema, then the delta files.
func (b *countedBlocks) list(d *DiskRowSet) []FileReads {
	b.mu.Lock()
	defer b.mu.Unlock()
	m := d.Metadata()
	names := []FileReads{{File: "key directory", Block: m.KeyDirectory}, {File: "bloom file", Block: m.Bloom},
		{File: "key index", Block: m.KeyIndex}, {File: "row file", Block: m.RowFile}}
	for i := range d.Schema.Columns {
		names = append(names,
			FileReads{File: fmt.Sprintf("column %q", d.Schema.Columns[i].Name), Block: d.columns[i].block})
	}
	for _, id := range m.Redo {
		names = append(names, FileReads{File: "redo file", Block: id})
	}
	for _, id := range m.Undo {
		names = append(names, FileReads{File: "undo file", Block: id})
	}
	var out []FileReads
	for _, n := range names {
		if r := b.reads[n.Block]; r != nil && n.Block != 0 {
			out = append(out, FileReads{File: n.File, Block: n.Block, Reads: r.Reads, Bytes: r.Bytes})
			delete(b.reads, n.Block)
		}
	}
	rest := len(out)
	for _, r := range b.reads { // of files that were replaced meanwhile
		out = append(out, FileReads{File: "other file", Block: r.Block, Reads: r.Reads, Bytes: r.Bytes})
	}
	slices.SortFunc(out[rest:], func(a, b FileReads) int { return cmp.Compare(a.Block, b.Block) })
	return out
}
