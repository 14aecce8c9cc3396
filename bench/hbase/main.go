// Command hbase has the peer hbase: HBase's own reader of HFiles, in a program of ours in Java. It
// is a program apart, since it needs a JDK and Maven; the benchmarks build it when they want it:
//
//	go run -C bench . run --peer hbase
package main

import (
	"fmt"
	"os"

	"github.com/oribi-db/oribi/bench/harness"
	"github.com/oribi-db/oribi/bench/work"
)

func main() {
	var more []work.More
	for _, c := range work.HFileCases {
		more = append(more, work.More{Workload: c.Scan(), Peer: harness.Peer{Name: "hbase", Measure: measure(c, scan)}},
			work.More{Workload: c.Get(), Peer: harness.Peer{Name: "hbase", Measure: measure(c, get)}})
	}
	harness.Main(work.All(nil, more...), ready)
	fmt.Fprintln(os.Stderr, "hbase: to be started by the benchmarks: go run -C bench . run --peer hbase")
	os.Exit(2)
}

// ready fetches and compiles what the peer needs.
func ready(*harness.Env) error {
	home, err := homeOfProgram()
	if err != nil {
		return err
	}
	return install(home)
}

// homeOfProgram is the directory, next to this program, of what ready makes.
func homeOfProgram() (string, error) {
	self, err := os.Executable()
	return self + ".files", err
}
