package client

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/internal/kudurow"
	pb "github.com/oribi-db/oribi/internal/kudurpcpb"
	"github.com/oribi-db/oribi/mvcc"
	"github.com/oribi-db/oribi/schema"
)

// ScanOptions are what a scan reads. The zero value reads all rows and columns as they are now.
type ScanOptions struct {
	// Columns are the names of the columns, in the order of the result. nil is all of the table. Count
	// needs none.
	Columns []string
	// Where are tests that all rows of the result pass. Their columns need not be in Columns; their Type
	// and ID are set. Servers apply what they can, the scan the rest. Tablets that have no such rows, by
	// the partitioning, are not asked. With tests, rows of a range partition that another client has added
	// in the last minutes may be missing.
	Where []batch.Predicate
	// At is the time of the result: it has what was written before At. 0 is now, and has all that this
	// client has written.
	At mvcc.Timestamp
	// From, if not 0, asks for the rows that were changed from this time on and before At, as they are at
	// At, each once. The result has one more column, Deleted, the last one. A row that was inserted and
	// deleted meanwhile is not in it. Where then has tests of key columns only.
	From mvcc.Timestamp
	// AltersAddOnly allows From for a table that was altered. It says that all alterations since From have
	// only added columns or range partitions, or changed names, comments, or options: after others,
	// servers report rows as deleted that are not.
	AltersAddOnly bool
	// Ordered asks for the rows of each tablet in the order of their keys, and for all rows of a tablet
	// before those of the next one. Such a scan goes on elsewhere when a server fails; others fail if
	// rows of that tablet were returned before. A scan with From is so.
	Ordered bool
	// Start and Stop bound the keys: cells of the first columns of the key, Start inclusive and Stop
	// exclusive; nil is no bound.
	Start, Stop [][]byte
	// Limit is the number of rows after which the scan ends; 0 is none.
	Limit int64
	// Tablet, if not empty, is the ID of the only tablet to read.
	Tablet string
	// Followers prefers replicas that do not lead, which spares the leaders.
	Followers bool
	// Tablets is how many tablets are read at a time, unless the scan is ordered; 0 is 4.
	Tablets int
	// BatchBytes is about how many bytes an answer has: 0 is 1 MiB, servers send at most 8 MiB.
	BatchBytes int
	// MemoryBytes bounds the answers that were not yet returned; 0 is 32 MiB.
	MemoryBytes int
	// NoCache leaves the servers' caches alone, for a read of a whole table that is not repeated.
	NoCache bool
	// Timeout is the longest time for the next rows of a tablet, with all repetitions; 0 is 60 s.
	Timeout time.Duration
}

// Deleted is the name of the column of a scan with From that has 1 for rows that were deleted. If the
// table has a column of that name, more underscores precede it.
const Deleted = "_deleted"

// plan is a scan as requests have it.
type plan struct {
	o        ScanOptions
	columns  []schema.Column // of the answers
	n        int             // how many of them are in the result: the others are for tests
	request  *pb.NewScanRequestPB
	features []uint32
	tests    *kudurow.Tests
	at       []int // the column of each of tests.Client
	ticks    func(time.Duration) (<-chan time.Time, func())
}

const (
	defaultScanBatch  = 1 << 20
	maxScanBatch      = 8 << 20
	defaultScanMemory = 32 << 20
	defaultTablets    = 4
)

func (o ScanOptions) withDefaults() (ScanOptions, error) {
	if o.Limit < 0 || o.Tablets < 0 || o.BatchBytes < 0 || o.MemoryBytes < 0 || o.Timeout < 0 {
		return o, errors.New("scan: an option is negative")
	}
	if o.From != 0 {
		if o.At != 0 && o.At < o.From {
			return o, fmt.Errorf("scan: from %d, which is after %d", o.From, o.At)
		}
		o.Ordered = true
	}
	if o.Tablets == 0 {
		o.Tablets = defaultTablets
	}
	if o.Ordered {
		o.Tablets = 1
	}
	if o.BatchBytes == 0 {
		o.BatchBytes = defaultScanBatch
	}
	if o.MemoryBytes == 0 {
		o.MemoryBytes = defaultScanMemory
	}
	o.BatchBytes = min(o.BatchBytes, maxScanBatch)
	if o.Timeout == 0 {
		o.Timeout = defaultTimeout
	}
	return o, nil
}

// plan translates options, except for the times.
func (t *Table) plan(o ScanOptions) (*plan, error) {
	o, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	p := &plan{o: o, request: &pb.NewScanRequestPB{}, ticks: ticks}
	if p.tests, err = kudurow.Predicates(t.Schema, o.Where); err != nil {
		return nil, err
	}
	if err := p.addColumns(t.Schema); err != nil {
		return nil, err
	}
	if o.From != 0 {
		for _, where := range o.Where {
			if t.Schema.Index(where.Column) >= t.Schema.Keys {
				return nil, fmt.Errorf("scan of changes: a test of column %q, which is not in the key, would miss rows "+
					"that pass it no more", where.Column)
			}
		}
	}
	r := p.request
	if r.StartPrimaryKey, err = bound(t.Schema, o.Start); err != nil {
		return nil, fmt.Errorf("scan: start: %w", err)
	}
	if r.StopPrimaryKey, err = bound(t.Schema, o.Stop); err != nil {
		return nil, fmt.Errorf("scan: stop: %w", err)
	}
	p.setRequest()
	return p, nil
}

// addColumns sets the columns of the answers.
func (p *plan) addColumns(s *schema.Schema) error {
	p.columns = slices.Clone(s.Columns)
	if p.o.Columns != nil {
		at, err := s.Project(p.o.Columns)
		if err != nil {
			return err
		}
		p.columns = make([]schema.Column, len(at))
		for i, c := range at {
			p.columns[i] = s.Columns[c]
			if slices.Contains(at[:i], c) {
				return fmt.Errorf("scan: column %q appears twice: %w", s.Columns[c].Name, ErrSchema)
			}
		}
	}
	for i := range p.columns { // as columns of a result, not of a table
		c := &p.columns[i]
		c.Key, c.AutoIncrement, c.Default = false, false, nil
	}
	p.n = len(p.columns)
	wire := kudurow.Projection(p.columns)
	if p.o.From != 0 {
		name := Deleted
		for s.Index(name) >= 0 {
			name = "_" + name
		}
		wire = append(wire, kudurow.Deleted(name))
		p.columns = append(p.columns, schema.Column{Name: name, Type: schema.Bool, ID: -1})
		p.n++
	}
	for i := range p.tests.Client {
		name := p.tests.Client[i].Column
		at := slices.IndexFunc(p.columns, func(c schema.Column) bool { return c.Name == name })
		if at < 0 {
			c := s.Columns[s.Index(name)]
			at = len(p.columns)
			p.columns = append(p.columns, c)
			wire = append(wire, kudurow.Projection([]schema.Column{c})...)
		}
		p.at = append(p.at, at)
	}
	p.request.ProjectedColumns = wire
	return nil
}

// columnarRows is the flag of requests that asks for columns.
const columnarRows = 2 // wire format: never change

// setRequest sets what does not depend on columns and times.
func (p *plan) setRequest() {
	r := p.request
	r.ColumnPredicates = p.tests.Server
	flags := uint64(columnarRows)
	r.RowFormatFlags = &flags
	p.features = []uint32{uint32(pb.TabletServerFeature_COLUMNAR_LAYOUT)}
	if len(r.ColumnPredicates) > 0 {
		p.features = append(p.features, uint32(pb.TabletServerFeature_COLUMN_PREDICATES))
	}
	if p.o.Limit > 0 && len(p.tests.Client) == 0 {
		limit := uint64(p.o.Limit)
		r.Limit = &limit
	}
	cache := !p.o.NoCache
	r.CacheBlocks = &cache
	mode, order := int32(pb.ReadMode_READ_AT_SNAPSHOT), int32(pb.OrderMode_UNORDERED)
	if p.o.Ordered {
		order = int32(pb.OrderMode_ORDERED)
	}
	r.ReadMode, r.OrderMode = &mode, &order
}

// pruner returns what says which tablets have rows of the scan, nil for all.
func (p *plan) pruner(t *Table) *kudurow.Pruner {
	if len(p.o.Where) == 0 {
		return nil
	}
	return t.partitioner.Pruner(t.Schema, p.tests.Server)
}

// setTimes sets the times of the scan.
func (p *plan) setTimes(at mvcc.Timestamp) {
	p.o.At = at
	snapshot := uint64(at)
	p.request.SnapTimestamp = &snapshot
	if p.o.From != 0 {
		from := uint64(p.o.From)
		p.request.SnapStartTimestamp = &from
	}
}

// bound returns the least key whose first columns have the given cells, nil without cells.
func bound(s *schema.Schema, cells [][]byte) ([]byte, error) {
	if cells == nil {
		return nil, nil
	}
	return kudurow.NewEncoder(s).Least(cells)
}
