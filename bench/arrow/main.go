// Command arrow has the peer arrow-go, a reader and writer of Parquet. It is a module of its own,
// since arrow-go takes minutes to compile; the benchmarks build it when they want it:
//
//	go run -C bench . run --peer arrow-go
package main

import (
	"fmt"
	"os"

	"github.com/oribi-db/oribi/bench/harness"
	"github.com/oribi-db/oribi/bench/peer"
	"github.com/oribi-db/oribi/bench/work"
)

func main() {
	harness.Main(work.All([]peer.Driver{driver}, work.More{Workload: "column-decode", Peer: decodePeer}))
	fmt.Fprintln(os.Stderr, "arrow: to be started by the benchmarks: go run -C bench . run --peer arrow-go")
	os.Exit(2)
}
