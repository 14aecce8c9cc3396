// Package peer contains the systems that the benchmarks compare, the engine and others that a user
// might choose, with common interfaces so that each workload is written once.
//
// A Driver opens one peer. All peers get the same resources: CacheBytes of cache if they have their
// own cache (bbolt uses the page cache), all CPUs, and one of two levels of durability: with sync,
// a write is durable when the call returns; without it, the write may still be in the page cache.
// Each peer stores a row as its users would:
//
//	oribi                  typed columns
//	pebble, bbolt, badger  one value per row, fixed-width fields first: inputs.Item.AppendValue; an
//	                       update of a column reads the value, changes eight bytes of it and writes it
//	pebble-versions        the same under keys with a timestamp (package cockroachkvs); a read seeks
//	                       the newest version, and nothing is overwritten
//	sqlite, duckdb         a table with the primary key; decimals as integers of hundredths, dates as days
//	kudu                   the same in a server, accessed by a client
//	parquet-go, arrow-go   a file of rows in key order, Snappy; only bulk loads and queries
package peer

import (
	"io"
	"iter"
	"time"

	"github.com/oribi-db/oribi/bench/inputs"
)

// CacheBytes is the cache size of each peer, equal to the engine's default memory limit.
const CacheBytes = 256 << 20

// Can is the set of operations that a peer supports. A workload runs with the peers that support
// what it needs.
type Can uint

const (
	Load   Can = 1 << iota // bulk load of lineitem in any order: Lineitem.Load
	Sorted                 // Lineitem.Load of rows in key order
	Write                  // Lineitem.Upsert, UpdateTax
	Point                  // Lineitem.Get, GetMany, Range
	Query                  // Lineitem.Query
	KV                     // Records
	Pairs                  // Records with values of any size, which are read and replaced as a whole
	Shared                 // Records supports several writing goroutines
)

// Driver opens one kind of peer.
type Driver struct {
	Name string
	Ours bool
	// nested module that contains the peer, in a program that only names it: the peer cannot be
	// opened there
	Module string
	Can    Can
	Remote bool // Lineitem returns a Remote
	// Lineitem opens lineitem in dir. It creates it if dir is empty.
	Lineitem func(dir string) (Lineitem, error)
	// Records opens records in dir. It creates them if dir is empty.
	Records func(dir string, sync bool) (Records, error)
}

// Lineitem is a table of rows with the key (orderkey, linenumber). Not safe for concurrent use.
type Lineitem interface {
	// Load inserts rows into the empty table by the peer's fastest method, not necessarily
	// atomically; rising reports whether they are in key order.
	Load(rows iter.Seq2[*inputs.Item, error], rising bool) error
	// Upsert writes full rows in one batch, without sync.
	Upsert(items []inputs.Item) error
	// UpdateTax sets one column of existing rows in one batch, without sync.
	UpdateTax(keys []inputs.Key, tax int64) error
	// Get reads all columns of a row.
	Get(key inputs.Key, it *inputs.Item) (found bool, err error)
	// GetMany reads existing rows and passes them to use in any order.
	GetMany(keys []inputs.Key, use func(it *inputs.Item)) error
	// Range reads all columns of up to n rows from a key on, in key order.
	Range(from inputs.Key, n int, use func(it *inputs.Item)) error
	// Query answers a query over all rows.
	Query(q Question) (*Answer, error)
	// FinishWork completes the peer's background work: flush, compact, checkpoint.
	FinishWork() error
	// Close makes everything durable.
	io.Closer
}

// Remote is a Lineitem whose work is done by other processes. Opening starts them and closing ends
// them; neither is measured.
type Remote interface {
	Lineitem
	// Processes returns the processes that are measured.
	Processes() []int
	// Sync makes all writes durable.
	Sync() error
	// Warm announces calls, each with per of the keys. It makes each of them at least twice, for at
	// least the given time, and returns the checksum of one round.
	Warm(call Call, keys []inputs.Key, per int, enough time.Duration) (sum int64, err error)
	// Run makes at least n of these calls at random, for at least the given time, and times them
	// where the work is done.
	Run(least int, enough time.Duration) (calls int, took time.Duration, err error)
}

// Call is a call that is too short to be requested from another process each time. Package work
// defines its checksum.
type Call string

// Kinds of calls.
const (
	CallGet   Call = "get"   // one row
	CallMiss  Call = "miss"  // one absent row
	CallMany  Call = "many"  // rows by their keys
	CallRange Call = "range" // 100 rows from a key on
)

// Size of a record of YCSB.
const (
	Fields     = 10
	FieldBytes = 100
)

// Records are keys with Fields values of FieldBytes each. Key-value stores keep them as one value.
type Records interface {
	// Put writes full records in one batch, and replaces existing ones.
	Put(keys, values [][]byte) error
	// Read returns the record's values, one after another, valid until the next call; nil if there
	// is no record.
	Read(key []byte) ([]byte, error)
	// Update sets one field of an existing record.
	Update(key []byte, field int, value []byte) error
	// Scan calls use with up to n records from a key on, in key order.
	Scan(from []byte, n int, use func(key, value []byte)) error
	FinishWork() error
	io.Closer
}

// EachChunk calls use with n rows at a time. Their memory is reused for the next ones.
func EachChunk(rows iter.Seq2[*inputs.Item, error], n int, use func(items []inputs.Item) error) error {
	items := make([]inputs.Item, 0, n)
	for it, err := range rows {
		if err != nil {
			return err
		}
		if items = append(items, *it); len(items) == n {
			if err := use(items); err != nil {
				return err
			}
			items = items[:0]
		}
	}
	if len(items) == 0 {
		return nil
	}
	return use(items)
}

// Chunk is the number of rows that peers get at a time.
const Chunk = 1000
