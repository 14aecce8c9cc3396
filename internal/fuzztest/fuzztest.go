// Package fuzztest runs fuzz targets many millions of times.
//
// A target passes its body to Run instead of (*testing.F).Fuzz. "go test" and "go test -fuzz" work
// as usual. With -fuzztest.executions the body is called that often in this process, on inputs made
// by random changes from the target's seeds and its committed corpus. This ignores coverage, so one
// execution finds less than one of Go's engine, but ten to a hundred times as many run in the same
// time. The two complement each other: see internal/proof.
//
//	go test ./internal/encoding -run '^FuzzPlain$' -fuzztest.executions 1000000 -fuzztest.seed 7
//
// The input of an execution depends only on the seed, the execution's number and the corpus. An
// input that fails is written to testdata/fuzz, where Go's engine would write it and "go test"
// finds it, and its seed and number are printed; -fuzztest.first repeats that one execution.
//
// An execution also fails if it panics, takes a minute or more, or allocates more than 256 MiB.
package fuzztest

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"reflect"
	"testing"
	"time"
)

var (
	executionsFlag = flag.Int64("fuzztest.executions", 0,
		"how often the fuzz target's body is called on changed inputs; 0 is not at all")
	seedFlag  = flag.Uint64("fuzztest.seed", 0, "seed of the changes; 0 takes a new one")
	firstFlag = flag.Int64("fuzztest.first", 0, "number of the first execution, from 0")
	forFlag   = flag.Duration("fuzztest.for", 0, "stop after so long, even before the last execution; 0 is never")
)

// Run is f.Fuzz(body), or its replacement with -fuzztest.executions. The body is as for f.Fuzz,
// func(*testing.T, ...), with the same types of inputs. It must not keep or change its inputs, nor
// call t.Cleanup or t.TempDir, whose work would accumulate over all executions.
func Run(f *testing.F, body any) {
	f.Helper()
	if *executionsFlag <= 0 {
		f.Fuzz(body)
		return
	}
	l := &loop{name: f.Name(), body: reflect.ValueOf(body), seed: *seedFlag, first: *firstFlag,
		executions: *executionsFlag, within: *forFlag}
	if l.seed == 0 {
		l.seed = rand.Uint64() >> 16
	}
	// f gives no access to the seeds of f.Add, nor to a T for the body. A call of f.Fuzz provides
	// both: it calls its argument once for each seed. The first of these calls waits, as a parallel
	// test does, until f.Fuzz has made them all.
	f.Fuzz(reflect.MakeFunc(l.body.Type(), func(args []reflect.Value) []reflect.Value {
		l.seeds = append(l.seeds, args[1:])
		if len(l.seeds) == 1 {
			t := args[0].Interface().(*testing.T)
			t.Parallel()
			l.run(t)
		}
		return nil
	}).Interface())
	if len(l.seeds) == 0 {
		f.Fatal("the target has no seeds to change")
	}
}

// tell prints lines that internal/proof reads; t.Log would print them at the end, and only if the
// test passes.
func (l *loop) tell(done int64, took time.Duration) {
	fmt.Printf("fuzztest: seed %d: %d executions\n", l.seed, done)
	fmt.Printf("fuzztest: %s: %.0f a second, at most %d KiB allocated in one\n", l.name,
		float64(done)/max(took.Seconds(), 1e-9), l.most>>10)
}
