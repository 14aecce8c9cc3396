// Command kudu has the peer kudu: a server of Apache Kudu on the loopback interface and a program
// of our own in Java that asks it, through Kudu's client. It is a program of its own, since what it
// needs is found on few machines; the benchmarks build it when they want it:
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
	harness.Main(work.All([]peer.Driver{driver(homeOfProgram)}), ready)
	fmt.Fprintln(os.Stderr, "kudu: to be started by the benchmarks: go run -C bench . run --peer kudu")
	os.Exit(2)
}

// ready makes what the peer needs, and has a server start and stop.
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

// homeOfProgram is the directory, beside this program, of what ready makes.
func homeOfProgram() (string, error) {
	self, err := os.Executable()
	return self + ".files", err
}
