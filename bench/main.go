// Command bench measures the engine against what a user would take instead, as ratios within one run.
//
//	go run -C bench . list
//	go run -C bench . run [--scale small|full] [--rounds N] [workload…]
//
// Each peer of each workload runs in a process of its own, rounds interleaved; the answers of the peers are compared. Floors are
// met by the figure or by the ratio to the peer beside it. The modules in duckdb and parquet are the same with one more peer.
package main

import (
	"github.com/oribi-db/oribi/bench/cli"
	"github.com/oribi-db/oribi/bench/work"
)

func main() { cli.Main(work.All()) }
