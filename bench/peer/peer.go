// Package peer is what the benchmarks compare: the engine and what a user would take instead,
// behind small interfaces, so that a workload is written once.
//
// A Driver opens one peer. All peers get the same: CacheBytes of cache where they have a cache of
// their own (bbolt has none, it reads through the system's), all processors, and a durability that
// is one of two: Sync, where a write is on the disk when it returns, and without it, where the
// system may still hold it. Of the row each takes what its users would give it:
//
//	oribi            typed columns
//	pebble, bbolt, badger   one value a row, fields of fixed width first: inputs.Item.AppendValue; an update of a column reads the value,
//	                 changes eight bytes of it and writes it
//	pebble-versions  the same under keys with a timestamp (package cockroachkvs); a read seeks the newest, nothing is overwritten
//	sqlite, duckdb   a table with the primary key; decimals as integers of a hundredth, dates as days
//	kudu             a table with the primary key, in a server that a client asks; likewise
//	parquet-go, arrow-go   a file of rows in key order, Snappy; only what reads and loads in bulk
package peer

import (
	"io"
	"iter"
	"time"

	"github.com/oribi-db/oribi/bench/inputs"
)

// CacheBytes is the cache that a peer gets, as large as the engine's default memory limit.
const CacheBytes = 256 << 20

// Can is what a driver's peer can do; a workload runs with the peers that can do what it needs.
type Can uint

const (
	Load   Can = 1 << iota // bulk load of lineitem in any order: Lineitem.Load
	Sorted                 // Lineitem.Load of rows in key order
	Write                  // Lineitem.Upsert, UpdateTax
	Point                  // Lineitem.Get, GetMany, Range
	Query                  // Lineitem.Query
	KV                     // Records
	Shared                 // Records may be written by several goroutines
)

// Driver opens one kind of peer.
type Driver struct {
	Name   string
	Ours   bool
	Module string // nested module that has it, where it is named without being there: nothing can be opened then
	Can    Can
	Remote bool // Lineitem gives a Remote
	// Lineitem opens lineitem in dir, making it if dir is empty.
	Lineitem func(dir string) (Lineitem, error)
	// Records opens records in dir, making them if dir is empty.
	Records func(dir string, sync bool) (Records, error)
}

// Lineitem is a table of rows with the key (orderkey, linenumber). It is for one goroutine.
type Lineitem interface {
	// Load inserts rows into the empty table by the peer's fastest way, not necessarily at once;
	// rising tells whether they come in key order.
	Load(rows iter.Seq2[*inputs.Item, error], rising bool) error
	// Upsert writes whole rows, not synced, together.
	Upsert(items []inputs.Item) error
	// UpdateTax sets one column of rows that are there, not synced, together.
	UpdateTax(keys []inputs.Key, tax int64) error
	// Get reads all columns of a row.
	Get(key inputs.Key, it *inputs.Item) (found bool, err error)
	// GetMany reads rows that are there, in any order.
	GetMany(keys []inputs.Key, use func(it *inputs.Item)) error
	// Range reads up to n rows from a key on, in key order, all columns.
	Range(from inputs.Key, n int, use func(it *inputs.Item)) error
	// Query answers a query over all rows.
	Query(q Question) (*Answer, error)
	// Settle does what the peer would do in its own time: flush, compact, checkpoint.
	Settle() error
	// Close makes all durable.
	io.Closer
}

// Remote is a Lineitem whose work other processes do. Opening starts them, which is not measured,
// closing ends them.
type Remote interface {
	Lineitem
	// Processes are those that count.
	Processes() []int
	// Sync makes durable what was written.
	Sync() error
	// Warm tells of calls, each of per of the keys, and makes each of them at least twice and for
	// at least so long; it gives what one round of them adds up to.
	Warm(call Call, keys []inputs.Key, per int, enough time.Duration) (sum int64, err error)
	// Run makes such calls at random, at least so many and for at least so long. It takes the time
	// where the work is done.
	Run(least int, enough time.Duration) (calls int, took time.Duration, err error)
}

// Call is one that is too short for being asked of another process. What calls add up to is that of
// package work.
type Call string

// The calls.
const (
	CallGet   Call = "get"   // one row
	CallMiss  Call = "miss"  // one that is not there
	CallMany  Call = "many"  // rows by their keys
	CallRange Call = "range" // 100 rows from a key on
)

// Fields of a record of YCSB.
const (
	Fields     = 10
	FieldBytes = 100
)

// Records are keys with Fields values of FieldBytes each: one value of all of them for stores of
// keys and values.
type Records interface {
	// Put writes records, whole ones, together; they may be there.
	Put(keys, values [][]byte) error
	// Read gives the record's values, one after the other; they hold until the next call. nil:
	// there is none.
	Read(key []byte) ([]byte, error)
	// Update sets one field of a record that is there.
	Update(key []byte, field int, value []byte) error
	// Scan gives up to n records from a key on, in key order.
	Scan(from []byte, n int, use func(key, value []byte)) error
	Settle() error
	io.Closer
}

// EachChunk gathers rows n at a time. They are used again for the next ones.
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

// Chunk is how many rows peers are given at a time.
const Chunk = 1000
