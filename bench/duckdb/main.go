// Command duckdb has the peers that are DuckDB. It is a module of its own, since DuckDB needs cgo
// and a large library; the benchmarks build it when they want it:
//
//	go run -C bench . run --peer duckdb
package main

import (
	"fmt"
	"os"

	"github.com/oribi-db/oribi/bench/harness"
	"github.com/oribi-db/oribi/bench/peer"
	"github.com/oribi-db/oribi/bench/work"
)

func main() {
	drivers := []peer.Driver{newDriver("duckdb-1", 1, appendRows), newDriver("duckdb-2", 2, appendRows), newDriver("duckdb-arrow", 1, insertArrow)}
	harness.Main(work.All(drivers, work.More{Workload: "load", Peer: loadPeer}))
	fmt.Fprintln(os.Stderr, "duckdb: to be started by the benchmarks: go run -C bench . run --peer duckdb")
	os.Exit(2)
}
