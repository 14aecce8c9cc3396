// Command bench compares the engine with the systems that a user might choose instead, as ratios
// within one run.
//
//	go run -C bench . list
//	go run -C bench . run [--scale small|hour|night] [--workload NAME]… [--peer NAME]…
//	    [--rounds N] [--out DIR] [--resume] [--profile DIR]
//	go run -C bench . compare OLD NEW
//	go run -C bench . page [RESULTS]
//
// Each peer of each workload runs in its own process, and rounds are interleaved. The answers of
// the peers are compared. A floor is met by the figure or by the ratio to the named peer. Peers
// that need large modules, or a server, are in duckdb, arrow, kudu, hbase and carbondata; run
// builds them if they take part.
package main

import (
	"github.com/oribi-db/oribi/bench/cli"
	"github.com/oribi-db/oribi/bench/work"
)

func main() { cli.Main(work.All(nil)) }
