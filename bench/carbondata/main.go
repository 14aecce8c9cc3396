// Command carbondata contains the peers carbondata-row and carbondata-vector, the two readers of
// CarbonData's SDK, and carbondata, its writer, in a Java program of ours. It is a separate program
// because it needs a JDK and Maven. The benchmarks build it if it takes part:
//
//	go run -C bench . run --peer carbondata
package main

import (
	"embed"
	"fmt"
	"os"
	"strings"

	"github.com/oribi-db/oribi/bench/harness"
	"github.com/oribi-db/oribi/bench/process"
	"github.com/oribi-db/oribi/bench/work"
)

func main() {
	var more []work.More
	for _, c := range work.CarbonReads {
		for _, name := range work.CarbonReaders {
			reader := strings.TrimPrefix(name, work.CarbonPeer+"-")
			more = append(more, work.More{Workload: c.Workload,
				Peer: harness.Peer{Name: name, Measure: func(env *harness.Env) (harness.Measurement, error) {
					return read(env, reader, &c)
				}}})
		}
	}
	for _, name := range []string{work.CarbonWrite, work.CarbonSize} {
		more = append(more, work.More{Workload: name, Peer: harness.Peer{Name: work.CarbonPeer, Measure: write}})
	}
	harness.Main(work.All(nil, more...), func(*harness.Env) error { return process.InstallClient(program) })
	fmt.Fprintln(os.Stderr, "carbondata: run it through the benchmarks: go run -C bench . run --peer carbondata")
	os.Exit(2)
}

// program is the client's source and its Maven dependencies.
//
//go:embed client
var program embed.FS
