// Command hbase contains the peer hbase: HBase's own reader of HFiles, in a Java program of ours.
// It is a separate program because it needs a JDK and Maven. The benchmarks build it if it takes
// part:
//
//	go run -C bench . run --peer hbase
package main

import (
	"embed"
	"fmt"
	"os"

	"github.com/oribi-db/oribi/bench/harness"
	"github.com/oribi-db/oribi/bench/process"
	"github.com/oribi-db/oribi/bench/work"
)

func main() {
	var more []work.More
	for _, c := range work.HFileCases {
		more = append(more, work.More{Workload: c.Scan(), Peer: harness.Peer{Name: "hbase", Measure: measure(c, scan)}},
			work.More{Workload: c.Get(), Peer: harness.Peer{Name: "hbase", Measure: measure(c, get)}})
	}
	harness.Main(work.All(nil, more...), func(*harness.Env) error { return process.InstallClient(program) })
	fmt.Fprintln(os.Stderr, "hbase: run it through the benchmarks: go run -C bench . run --peer hbase")
	os.Exit(2)
}

// program is the client's source and its Maven dependencies.
//
//go:embed client
var program embed.FS
