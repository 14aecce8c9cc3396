// Command duckdb contains the DuckDB peers. It is a separate module because DuckDB needs cgo and a
// large library. The benchmarks build it if it takes part:
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
	drivers := []peer.Driver{newDriver("duckdb-1", 1, appendRows), newDriver("duckdb-2", 2, appendRows),
		newDriver("duckdb-arrow", 1, insertArrow)}
	harness.Main(work.All(drivers, work.More{Workload: "load", Peer: loadPeer},
		work.More{Workload: work.LoadParquet, Peer: loadParquetPeer}))
	fmt.Fprintln(os.Stderr, "duckdb: run it through the benchmarks: go run -C bench . run --peer duckdb")
	os.Exit(2)
}
