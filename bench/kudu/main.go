// Command kudu contains the peer kudu: a server of Apache Kudu on the loopback interface, with package
// kudu/client; kudu and kudu-columnar are also the two forms in which it answers scans. Other workloads
// compare that client with Kudu's own, which a Java program of ours uses. It is a separate program because
// few machines have Kudu's server. The benchmarks build it if it takes part:
//
//	go run -C bench . run --peer kudu
package main

import (
	"fmt"
	"os"

	"github.com/oribi-db/oribi/bench/harness"
	"github.com/oribi-db/oribi/bench/peer"
	"github.com/oribi-db/oribi/bench/work"
)

func main() {
	harness.Main(work.All([]peer.Driver{driver(homeOfProgram)}, peers(homeOfProgram)...), ready)
	fmt.Fprintln(os.Stderr, "kudu: run it through the benchmarks: go run -C bench . run --peer kudu")
	os.Exit(2)
}

// peers returns the peers of this program, except those of a driver.
func peers(home func() (string, error)) []work.More {
	lag := work.More{Workload: work.KuduSyncLag, Peer: harness.Peer{Name: "oribi",
		Measure: func(env *harness.Env) (harness.Measurement, error) { return measureSync(env, home) }}}
	return append(append(scans(home), clients(home)...), lag)
}

// ready makes what the peer needs, and starts and stops a server as a check.
func ready(env *harness.Env) error {
	home, err := homeOfProgram()
	if err == nil {
		err = install(env.Corpus, home)
	}
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "oribi-bench-kudu-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	l, err := open(home, dir)
	if err != nil {
		return err
	}
	return l.Close()
}

// homeOfProgram is the directory, next to this program, that ready fills.
func homeOfProgram() (string, error) {
	self, err := os.Executable()
	return self + ".files", err
}
