// Package work holds the workloads, a file each, and the peers that do them.
//
// Every peer gets what a user would give it: Pebble an encoded key and one value a row, with a cache as large as the store's
// memory limit and its defaults else; DuckDB, a peer that another module adds since it needs cgo, a table in a file and one thread.
package work

import "github.com/oribi-db/oribi/bench/harness"

const (
	storeMemory = 256 << 20             // the store's default limit; Pebble's cache gets the same
	peakLimit   = storeMemory + 128<<20 // of resident memory
	lineitem    = "lineitem.tbl"        // input: rows as text
	treeBatches = "tree.jsonl"          // input: write batches
	storeDir    = "store"               // in a peer's directory
	batchRows   = 1000                  // rows in a write batch
)

// All is the list of workloads, with more peers for scan-sum.
func All(scanPeers ...harness.Peer) []harness.Workload {
	return []harness.Workload{apply(), scanSum(scanPeers), get(), getSpread(), memInsert(), write(), open()}
}
