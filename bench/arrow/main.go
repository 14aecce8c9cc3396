// Command arrow contains the peer arrow-go, a reader and writer of Parquet. It is a separate module
// because arrow-go takes minutes to compile. The benchmarks build it if it takes part:
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
	fmt.Fprintln(os.Stderr, "arrow: run it through the benchmarks: go run -C bench . run --peer arrow-go")
	os.Exit(2)
}
