// Package work holds the workloads, a file each, and the peers that do them.
//
// Every peer gets what a user would give it: Pebble an encoded key and one value a row, with a cache as large as the store's
// memory limit and its defaults else; DuckDB, a peer that another module adds since it needs cgo, a table in a file and one thread; Parquet,
// which comes from another module since arrow-go is large, its writer's defaults and Snappy.
package work

import "github.com/oribi-db/oribi/bench/harness"

const (
	storeMemory = 256 << 20             // the store's default limit; Pebble's cache gets the same
	peakLimit   = storeMemory + 128<<20 // of resident memory
	Lineitem    = "lineitem.tbl"        // input: rows as text
	treeBatches = "tree.jsonl"          // input: write batches
	storeDir    = "store"               // in a peer's directory
	batchRows   = 1000                  // rows in a write batch
)

// More is a peer that another module adds to a workload.
type More struct {
	Workload string
	Peer     harness.Peer
}

// All is the list of workloads, with the peers of other modules.
func All(more ...More) []harness.Workload {
	of := func(workload string) (peers []harness.Peer) {
		for _, m := range more {
			if m.Workload == workload {
				peers = append(peers, m.Peer)
			}
		}
		return peers
	}
	return []harness.Workload{apply(), scanSum(of("scan-sum")), get(), getSpread(), memInsert(), write(), commitOne(), syncOne(), syncMany(), scanDeltas(), hotKey(), open(), openMany(), replay(), getStart(),
		load(of("load")), loadPackages(), scanCSV(), columnDecode(of("column-decode"))}
}
