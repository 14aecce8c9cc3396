package store

import (
	"context"
	"errors"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/oribi-db/oribi/block"
	"github.com/oribi-db/oribi/blockmanager"
	"github.com/oribi-db/oribi/cache"
	"github.com/oribi-db/oribi/internal/budget"
	"github.com/oribi-db/oribi/internal/exclusive"
	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/internal/meta"
	"github.com/oribi-db/oribi/internal/storedir"
	"github.com/oribi-db/oribi/internal/tablet"
	"github.com/oribi-db/oribi/internal/txmemory"
	"github.com/oribi-db/oribi/internal/wal"
	"github.com/oribi-db/oribi/lsn"
	"github.com/oribi-db/oribi/rowset"
	"github.com/oribi-db/oribi/storeinfo"
)

// Core is what writers and readers of a store have in common: the files, the memory, and the tables.
type Core struct {
	*Timeline
	Dir          storedir.Dir
	Instance     *storedir.Instance
	Options      Options
	Blocks       *blockmanager.Manager
	Cache        *cache.Cache
	Reads        *budget.Gate // memory of blocks that are being read
	Budget       *budget.Budget
	Transactions *txmemory.Pool
	Exclusive    *exclusive.Tables
	Scanning     atomic.Int64 // about how many bytes scans take at most that run in their caller's goroutine
	Pins         *Pins
	Counters     *Counters
	opened       atomic.Int64 // bytes of open files of rowsets
	merges       sync.Mutex   // of fitMerge
	installs     atomic.Uint64
	Recovery     storeinfo.Recovery
	Tail         atomic.Pointer[wal.Tail] // as Replay, or Follower.Refresh, found it

	// InDoubt says that replay found the announcement of a change outside the log that has not
	// come.
	InDoubt bool

	host     tablet.Store                                 // the store as its tablets see it
	lastJob  atomic.Uint64                                // number of the newest job or stall
	throttle func(ctx context.Context, bytes int64) error // of the writes of compactions; nil if they are not limited

	// metaMu serializes metadata commits, from the computation of log_start on.
	metaMu sync.Mutex
	stored meta.Store // under metaMu

	tablesMu sync.RWMutex
	tables   map[string]*Table // by name
	ordered  []*Table          // the tables, ordered by name; nil after a change, until sorted is called
}

// readsShare: 1/readsShare of the memory limit is for blocks that are being read, before they are
// in the cache.
const readsShare = 16

// newCore returns the core of a store that is not open.
func newCore(d storedir.Dir, o Options) *Core {
	b := budget.New(o.MemoryLimit)
	t := NewTimeline(o.Clock)
	return &Core{Timeline: t, Dir: d, Options: o, Budget: b, Cache: NewCache(b, o.MemoryLimit),
		Reads: budget.NewGate(o.MemoryLimit / readsShare), Transactions: txmemory.New(o.BatchLimit()),
		Exclusive: exclusive.New(exclusive.Patience), Pins: NewPins(t), Counters: newCounters(),
		tables: map[string]*Table{}}
}

// NextJob returns the number of a new job or stall.
func (c *Core) NextJob() uint64 { return c.lastJob.Add(1) }

// LogTarget returns the length of the log above which whatever pins it is flushed. A flush frees
// whole segments only, and not the newest: if that alone were above the target, each write batch
// would be flushed.
func (c *Core) LogTarget() int64 { return max(c.Options.LogLimit, 2*c.Options.LogSegmentBytes) }

// LogOptions returns the options of the log.
func (c *Core) LogOptions() wal.Options {
	return wal.Options{FS: c.Dir.FS, Dir: c.Dir.File(storedir.LogName), Instance: c.Instance.ID,
		Logger:       c.Options.Logger,
		Durable:      func(upTo lsn.LSN) { c.Durable(upTo) }, // Begin comes later than this call
		SegmentBytes: c.Options.LogSegmentBytes}
}

// Tablets returns all tables, ordered by name.
func (c *Core) Tablets() []*tablet.Tablet {
	tables := c.sorted()
	out := make([]*tablet.Tablet, len(tables))
	for i, t := range tables {
		out[i] = t.Tablet
	}
	return out
}

// Faces returns the handles of all tables except those with index entries, ordered by name.
func (c *Core) Faces() []any {
	tables := c.sorted()
	out := make([]any, 0, len(tables))
	for _, t := range tables {
		if t.Index() == nil {
			out = append(out, t.face)
		}
	}
	return out
}

// sorted returns all tables, ordered by name. The caller must not modify the slice.
func (c *Core) sorted() []*Table {
	c.tablesMu.RLock()
	out := c.ordered
	c.tablesMu.RUnlock()
	if out != nil {
		return out
	}
	c.tablesMu.Lock()
	defer c.tablesMu.Unlock()
	c.ordered = slices.SortedFunc(maps.Values(c.tables), func(a, b *Table) int {
		return strings.Compare(a.Name(), b.Name())
	})
	return c.ordered
}

// changeTables calls change, which changes the names of tables or which tables there are.
func (c *Core) changeTables(change func()) {
	c.tablesMu.Lock()
	defer c.tablesMu.Unlock()
	change()
	c.ordered = nil
	c.link()
}

// link gives each table the tables with the entries of its indexes. The caller has locked tablesMu.
func (c *Core) link() {
	of := map[uint32][]*Table{}
	for _, t := range c.tables {
		if x := t.Index(); x != nil {
			of[x.Of] = append(of[x.Of], t)
		}
	}
	for _, t := range c.tables {
		list := of[t.Number]
		if len(list) == 0 && len(t.Indexes()) == 0 {
			continue
		}
		slices.SortFunc(list, func(a, b *Table) int { return strings.Compare(a.Index().Name, b.Index().Name) })
		tabs := make([]*tablet.Tablet, len(list))
		for i := range list {
			tabs[i] = list[i].Tablet
		}
		t.indexes.Store(&list)
		t.SetIndexes(tabs)
	}
}

// Face returns the handle of the table with a name, nil if no table has the name.
func (c *Core) Face(name string) any {
	c.tablesMu.RLock()
	defer c.tablesMu.RUnlock()
	if t := c.tables[name]; t != nil {
		return t.face
	}
	return nil
}

// Stored returns the metadata row of the store.
func (c *Core) Stored() meta.Store {
	c.metaMu.Lock()
	defer c.metaMu.Unlock()
	return c.stored
}

// load opens the tables of the metadata.
func (c *Core) load() error {
	stored, rows, err := c.readTables(nil)
	if err != nil {
		return err
	}
	c.stored = stored
	for _, row := range rows {
		if c.tables[row.Name] != nil {
			return fault.Corruptf("metadata: two tables are named %q", row.Name)
		}
		tab, err := c.openTable(row)
		if err != nil {
			return err
		}
		c.tables[row.Name] = c.newTable(tab)
	}
	return c.checkIndexes()
}

// checkIndexes links the tables with index entries to the tables that they index. Errors: ErrCorrupt.
func (c *Core) checkIndexes() error {
	tables := map[uint32]*Table{}
	for _, t := range c.tables {
		tables[t.Number] = t
	}
	for _, t := range c.tables {
		x := t.Index()
		if x == nil {
			continue
		}
		of := tables[x.Of]
		if of == nil || of.Index() != nil {
			return fault.Corruptf("metadata: index %q is of table %d, which does not exist", x.Name, x.Of)
		}
		for _, id := range x.Columns {
			if of.Schema().Schema.IndexID(id) < 0 {
				return fault.Corruptf("metadata: table %q: index %q is of a column with id %d, which does not exist",
					of.Name(), x.Name, id)
			}
		}
	}
	c.link()
	return nil
}

func (c *Core) newTable(tab *tablet.Tablet) *Table {
	t := &Table{Tablet: tab}
	t.face = c.Options.Face(t)
	return t
}

func (c *Core) closeTables() {
	for _, t := range c.tables {
		t.Tablet.Close()
	}
}

// openTable opens a table of the metadata.
func (c *Core) openTable(row *meta.Table) (*tablet.Tablet, error) {
	sets, err := c.rowSets(row, nil)
	if err != nil {
		return nil, err
	}
	return tablet.Open(c.TabletOptions(), row, sets)
}

// nextOf returns the next state of a follower's table; see tablet.Tablet.Next.
func (c *Core) nextOf(t *Table, row *meta.Table, changed map[uint64]bool, hasUpTo lsn.LSN) (*tablet.Next, error) {
	have := map[uint64]*rowset.Metadata{}
	for _, m := range t.RowSetMetadata() {
		if hasUpTo > 0 && !changed[m.ID] {
			have[m.ID] = m
		}
	}
	sets, err := c.rowSets(row, have)
	if err != nil {
		return nil, err
	}
	return t.Next(row, sets, changed, hasUpTo)
}

// rowSets returns the metadata of the rowsets of a table. Those in have need not be decoded.
func (c *Core) rowSets(row *meta.Table, have map[uint64]*rowset.Metadata) (sets []*rowset.Metadata, err error) {
	err = c.Blocks.Rows(meta.RowSetPrefix(row.Number), func(key, value []byte) error {
		if _, _, id, err := meta.ParseKey(key); err == nil && have[id] != nil {
			sets = append(sets, have[id])
			return nil
		}
		set, err := rowset.DecodeMetadata(value)
		if err == nil && set.ID >= row.NextRowSetID {
			return fault.Corruptf("metadata: table %q: rowset %d, want less than %d", row.Name, set.ID,
				row.NextRowSetID)
		}
		sets = append(sets, set)
		return err
	})
	return sets, err
}

// readTables decodes the rows of the store and of the tables. have, if it is not nil, returns the
// metadata of a table that need not be decoded, or nil.
func (c *Core) readTables(have func(number uint32) *meta.Table) (stored meta.Store, rows []*meta.Table, err error) {
	found := false
	err = c.Blocks.Rows(meta.StoreKey(), func(_, value []byte) error {
		row, err := meta.DecodeStore(value)
		if err == nil {
			stored, found = *row, true
		}
		return err
	})
	if err == nil && !found {
		err = fault.Corruptf("metadata: no row of the store")
	}
	if err != nil {
		return stored, nil, err
	}
	err = c.Blocks.Rows(meta.TablePrefix(), func(key, value []byte) error {
		if have != nil {
			if _, number, _, err := meta.ParseKey(key); err == nil {
				if row := have(number); row != nil {
					rows = append(rows, row)
					return nil
				}
			}
		}
		row, err := meta.DecodeTable(value)
		if n := len(rows); err == nil && n > 0 && reflect.DeepEqual(rows[n-1].Schema, row.Schema) {
			row.Schema = rows[n-1].Schema // thousands of tables may have the same columns
		}
		rows = append(rows, row)
		return err
	})
	return stored, rows, err
}

// TabletOptions returns the options of the tables.
func (c *Core) TabletOptions() tablet.Options {
	return tablet.Options{
		Store: c.host,
		RowSets: rowset.Options{Blocks: openBlocks{c.Blocks}, Cache: c.Cache, Grow: c.Budget.Grower(budget.Delta),
			Reads: c.Reads, Opened: c.countOpened},
		GrowMem:     c.Budget.Grower(budget.MemRowSet),
		GrowFlush:   c.Budget.Grower(budget.Compaction),
		GrowMerge:   c.Budget.Grower(budget.Merge),
		TargetBytes: c.Options.RowSetBytes,
		FitMerge:    c.fitMerge,

		RecompressAfter: c.Options.RecompressAfter,
		Logger:          c.Options.Logger,
		Progress:        c.Options.Progress,
		Throttle:        c.throttle,
	}
}

// openedShare: open files count up to 1/openedShare of the memory limit, so that thousands of small tables
// leave room for rows.
const openedShare = 8

// countOpened counts the memory of files that were opened, or with a negative n, closed.
func (c *Core) countOpened(n int64) {
	limit := c.Options.MemoryLimit / openedShare
	after := c.opened.Add(n)
	c.Budget.Reserve(budget.Metadata, min(after, limit)-min(after-n, limit))
}

// fitMerge reserves the memory in which the next merge reads rowsets: at most what others leave of a
// quarter of the memory limit, or a sixteenth if that is more. Two merges that begin at once do not
// both take the same bytes.
func (c *Core) fitMerge(fit func(limit int64) (bytes int64, err error)) error {
	c.merges.Lock()
	defer c.merges.Unlock()
	limit := c.Options.MemoryLimit
	bytes, err := fit(max(limit/4-c.Budget.UsedBy(budget.Merge), limit/16))
	if err == nil {
		c.Budget.Reserve(budget.Merge, bytes)
	}
	return err
}

// openBlocks adapts the block manager to the interface of package rowset.
type openBlocks struct{ m *blockmanager.Manager }

func (o openBlocks) OpenBlock(id block.ID) (rowset.Block, error) { return o.m.OpenBlock(id) }

func (o openBlocks) OpenTail(id block.ID, n int64) (rowset.Block, error) { return o.m.OpenTail(id, n) }

func isNoSpace(err error) bool { return errors.Is(err, fault.ErrNoSpace) }
