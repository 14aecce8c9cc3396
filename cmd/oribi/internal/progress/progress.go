// Package progress shows on a terminal how far an operation has come: done of total, rate, time
// left.
//
//	bar := progress.Start(progress.Options{
//		Out: os.Stderr, What: "load", Total: size, Unit: progress.Bytes, Counted: "rows",
//	})
//	defer bar.Stop()
//	…
//	bar.Set(offset)
//	bar.Count(int64(rows))
//
// The line appears once the operation has run for a second. A goroutine of the bar repaints it a
// few times per second. Stop removes it, so that the next output begins on an empty line. Set, Add
// and Count are a few atomic operations and may be called concurrently. A nil *Bar shows nothing:
// all its methods do nothing.
package progress

import (
	"io"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// Unit is the format of a bar's numbers.
type Unit uint8

// The units.
const (
	Plain Unit = iota // items, with commas
	Bytes             // in KiB, MiB, GiB
)

// Options describe a bar.
type Options struct {
	Out     io.Writer  // a terminal
	Width   func() int // columns of the terminal, called at each repaint; nil = 80
	What    string     // name of the operation: "load"
	Total   int64      // 0 = not known (yet): shows only what is done and the rate, no bar and no time left
	Unit    Unit       // of Total and of the arguments of Set and Add
	Counted string     // what Count counts, such as "rows": the rate is then in these; "" = Count is not used
}

// Times. An operation shorter than showAfter shows nothing.
const (
	showAfter  = time.Second
	paintEvery = 200 * time.Millisecond
)

// Bar shows the progress of one operation.
type Bar struct {
	options            Options
	began              time.Time
	total, done, count atomic.Int64

	stop    chan struct{}
	stopped sync.WaitGroup
	once    sync.Once
	shown   int // bytes of the line on the terminal, 0 = none; owned by the painting goroutine, then by Stop
}

// Start starts the bar of an operation that begins now.
func Start(o Options) *Bar {
	b := newBar(o, time.Now())
	ticker := time.NewTicker(paintEvery)
	b.stopped.Go(func() {
		defer ticker.Stop()
		b.paintAt(ticker.C)
	})
	return b
}

func newBar(o Options, now time.Time) *Bar {
	if o.Width == nil {
		o.Width = func() int { return 80 }
	}
	b := &Bar{options: o, began: now, stop: make(chan struct{})}
	b.total.Store(o.Total)
	return b
}

// Set sets how much is done in total.
func (b *Bar) Set(done int64) {
	if b != nil {
		b.done.Store(done)
	}
}

// Add adds n to the amount done.
func (b *Bar) Add(n int64) {
	if b != nil {
		b.done.Add(n)
	}
}

// SetTotal sets the total, if it was not known at the start.
func (b *Bar) SetTotal(total int64) {
	if b != nil {
		b.total.Store(total)
	}
}

// Count sets how many of the items that Options.Counted names are done in total.
func (b *Bar) Count(n int64) {
	if b != nil {
		b.count.Store(n)
	}
}

// Stop removes the line. It may be called twice.
func (b *Bar) Stop() {
	if b == nil {
		return
	}
	b.once.Do(func() {
		close(b.stop)
		b.stopped.Wait()
		io.WriteString(b.options.Out, b.erase()) // a terminal that cannot be written to shows no bar either
	})
}

// clearLine moves to the start of a row and clears it.
const clearLine = "\r\x1b[K"

// erase returns the text that removes the line. If the terminal has become narrower, the line
// occupies several rows, with the cursor on the last.
func (b *Bar) erase() string {
	if b.shown == 0 {
		return ""
	}
	rows := (b.shown - 1) / max(b.options.Width(), 1)
	b.shown = 0
	return clearLine + strings.Repeat("\x1b[A"+clearLine, rows)
}

// paintAt repaints at each tick until the bar stops.
func (b *Bar) paintAt(ticks <-chan time.Time) {
	for {
		select {
		case <-b.stop:
			return
		case now := <-ticks:
			if now.Sub(b.began) < showAfter {
				continue
			}
			erase, line := b.erase(), b.line(now)
			b.shown = len(line) // the line is ASCII
			io.WriteString(b.options.Out, erase+line)
		}
	}
}
