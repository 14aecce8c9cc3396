// Command bench measures the engine against what a user would take instead, as ratios within one
// run.
//
//	go run -C bench . list
//	go run -C bench . run [--scale small|hour|night] [--workload NAME]… [--peer NAME]… [--rounds N] [--out DIR] [--profile DIR]
//	go run -C bench . compare OLD NEW
//	go run -C bench . page [TABLE]…
//
// Each peer of each workload runs in a process of its own, rounds interleaved; the answers of the
// peers are compared. Floors are met by the figure or by the ratio to the peer beside it. Peers
// that need large modules, or a server, live in duckdb, arrow and kudu, which run builds when it
// wants them.
package main

import (
	"github.com/oribi-db/oribi/bench/cli"
	"github.com/oribi-db/oribi/bench/work"
)

func main() { cli.Main(work.All(nil)) }
