// Command kudu contains the peer kudu: a server of Apache Kudu on the loopback interface, and a
// Java program of ours that uses Kudu's client; kudu-columnar is the same with another form of rows
// in answers to scans. It is a separate program because few machines have Kudu's server. The
// benchmarks build it if it takes part:
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
	harness.Main(work.All([]peer.Driver{driver(homeOfProgram)}, scans(homeOfProgram)...), ready)
	fmt.Fprintln(os.Stderr, "kudu: run it through the benchmarks: go run -C bench . run --peer kudu")
	os.Exit(2)
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
