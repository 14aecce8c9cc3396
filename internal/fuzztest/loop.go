package fuzztest

import (
	"fmt"
	"os"
	"reflect"
	"runtime/metrics"
	"sync/atomic"
	"testing"
	"time"
)

const (
	maxAllocation = 256 << 20   // bytes, in one execution
	maxTime       = time.Minute // for one execution: far above what a body takes on a busy machine
)

// loop calls one body on a sequence of inputs.
type loop struct {
	name       string
	body       reflect.Value
	seeds      [][]reflect.Value // each has one value per input of the body
	seed       uint64
	first      int64
	executions int64
	within     time.Duration

	m    *mutator
	most uint64 // largest number of bytes that an execution allocated
	at   atomic.Int64
}

// run calls the body. It keeps an input that fails, whether the body reports the failure, ends its
// goroutine or panics: hence the deferred call.
func (l *loop) run(t *testing.T) {
	l.m = newMutator(l.seeds)
	begin := time.Now()
	i := l.first
	l.at.Store(i)
	whole := false
	defer func() {
		if !whole || t.Failed() {
			l.keep(i)
		}
	}()
	stop := l.watch()
	defer stop()
	args := make([]reflect.Value, 1+len(l.seeds[0]))
	args[0] = reflect.ValueOf(t)
	before := allocated()
	for ; i < l.first+l.executions && !t.Failed(); i++ {
		if l.within > 0 && i%64 == 0 && time.Since(begin) >= l.within {
			break
		}
		l.at.Store(i)
		l.m.input(l.seed, uint64(i), args[1:])
		l.body.Call(args)
		now := allocated()
		if l.most = max(l.most, now-before); now-before > maxAllocation {
			t.Errorf("%d bytes are allocated, the limit is %d", now-before, maxAllocation)
		}
		if before = now; t.Failed() {
			break // leaves i at the input that failed
		}
	}
	whole = true
	l.tell(i-l.first, time.Since(begin))
}

// allocated returns the total number of heap bytes allocated so far.
func allocated() uint64 {
	sample := [1]metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
	metrics.Read(sample[:])
	return sample[0].Value.Uint64()
}

// watch ends the process if an execution hangs: nothing else can.
func (l *loop) watch() (stop func()) {
	done := make(chan struct{})
	go func() {
		tick := time.NewTicker(maxTime / 4)
		defer tick.Stop()
		last, since := int64(-1), time.Now()
		for {
			select {
			case <-done:
				return
			case now := <-tick.C:
				switch i := l.at.Load(); {
				case i != last:
					last, since = i, now
				case now.Sub(since) >= maxTime:
					l.keep(i)
					panic(fmt.Sprintf("fuzztest: %s: seed %d: execution %d hangs", l.name, l.seed, i))
				}
			}
		}
	}()
	return func() { close(done) }
}

// keep writes the input of an execution to the corpus and prints how to repeat it.
func (l *loop) keep(i int64) {
	args := make([]reflect.Value, len(l.seeds[0]))
	newMutator(l.seeds).input(l.seed, uint64(i), args) // made again: the body may have changed its copy
	fmt.Fprintf(os.Stderr,
		"fuzztest: %s: seed %d: execution %d fails; again: -run '^%s$' -fuzztest.seed %d -fuzztest.first "+
			"%d -fuzztest.executions 1\n",
		l.name, l.seed, i, l.name, l.seed, i)
	name, err := writeInput(l.name, args)
	if err != nil {
		fmt.Fprintf(os.Stderr, "fuzztest: the input cannot be written: %v\n", err)
		return
	}
	fmt.Fprintf(os.Stderr, "fuzztest: its input is written to %s\n", name)
}
