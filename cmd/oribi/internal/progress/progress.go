// Package progress shows on a terminal how far a piece of work has come: done of total, rate, time
// left.
//
//	bar := progress.Start(progress.Options{Out: os.Stderr, What: "load", Total: size, Unit: progress.Bytes, Counted: "rows"})
//	defer bar.Stop()
//	…
//	bar.Set(offset)
//	bar.Count(int64(rows))
//
// The line appears once the work has taken a second and is painted again a few times a second by a
// goroutine of the bar's own; Stop takes it away, so that what is printed next begins on an empty
// line. Set, Add and Count are a few atomic operations and may be called from several goroutines. A
// nil *Bar is one that nobody sees: all its methods do nothing.
package progress

import (
	"io"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// Unit says how numbers of a bar are written.
type Unit uint8

// The units.
const (
	Plain Unit = iota // things, with commas
	Bytes             // in KiB, MiB, GiB
)

// Options describe a bar.
type Options struct {
	Out     io.Writer  // a terminal
	Width   func() int // columns of the terminal, asked at each painting; nil = 80
	What    string     // name of the work: "load"
	Total   int64      // 0 = not known (yet): no bar and no time left, but what is done and the rate
	Unit    Unit       // of Total and of what Set and Add tell
	Counted string     // what Count counts, "rows": the rate is told in these then; "" = nothing is counted besides
}

// Times. Work shorter than showAfter shows nothing.
const (
	showAfter  = time.Second
	paintEvery = 200 * time.Millisecond
)

// Bar shows one piece of work.
type Bar struct {
	options            Options
	began              time.Time
	total, done, count atomic.Int64

	stop    chan struct{}
	stopped sync.WaitGroup
	once    sync.Once
	shown   int // bytes of the line on the terminal, 0 = none; the painting goroutine's, then Stop's
}

// Start begins to show a piece of work that begins now.
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

// Set tells how much is done in all.
func (b *Bar) Set(done int64) {
	if b != nil {
		b.done.Store(done)
	}
}

// Add tells that more is done.
func (b *Bar) Add(n int64) {
	if b != nil {
		b.done.Add(n)
	}
}

// SetTotal tells how much there is to do, when that was not known at the start.
func (b *Bar) SetTotal(total int64) {
	if b != nil {
		b.total.Store(total)
	}
}

// Count tells how many of the things that Options.Counted names are done in all.
func (b *Bar) Count(n int64) {
	if b != nil {
		b.count.Store(n)
	}
}

// Stop takes the line away. It may be called twice.
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

// clearLine goes to the start of a row and empties it.
const clearLine = "\r\x1b[K"

// erase removes the line that is shown. A terminal that has become narrower since shows it on several
// rows, with the cursor on the last.
func (b *Bar) erase() string {
	if b.shown == 0 {
		return ""
	}
	rows := (b.shown - 1) / max(b.options.Width(), 1)
	b.shown = 0
	return clearLine + strings.Repeat("\x1b[A"+clearLine, rows)
}

// paintAt paints at each tick until the bar stops.
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
			b.shown = len(line) // ASCII alone
			io.WriteString(b.options.Out, erase+line)
		}
	}
}
