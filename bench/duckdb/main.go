// Command duckdb is the benchmarks with DuckDB as one more peer. It is a module of its own: DuckDB needs cgo and a large library.
//
//	CGO_ENABLED=1 go run -C bench/duckdb . run scan-sum load
package main

import (
	"github.com/oribi-db/oribi/bench/cli"
	"github.com/oribi-db/oribi/bench/work"
)

func main() {
	cli.Main(work.All(work.More{Workload: "scan-sum", Peer: peer}, work.More{Workload: "load", Peer: loadPeer}))
}
