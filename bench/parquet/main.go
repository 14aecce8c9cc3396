// Command parquet is the benchmarks with arrow-go's Parquet reader as one more peer. It is a module of its own: arrow-go takes minutes to
// compile.
//
//	go run -C bench/parquet . run column-decode
package main

import (
	"github.com/oribi-db/oribi/bench/cli"
	"github.com/oribi-db/oribi/bench/work"
)

func main() { cli.Main(work.All(work.More{Workload: "column-decode", Peer: peer})) }
