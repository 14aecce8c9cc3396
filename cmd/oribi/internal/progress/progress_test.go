package progress

import (
	"bytes"
	"github.com/oribi-db/oribi/internal/must"
	"strings"
	"testing"
	"time"
)

var start = time.Unix(1_000_000, 0)

func TestLine(t *testing.T) {
	for _, c := range []struct {
		name        string
		options     Options
		done, count int64
		after       time.Duration
		width       int
		want        string
	}{
		{"bytes and rows", Options{What: "load", Total: 400 << 20, Unit: Bytes, Counted: "rows"}, 100 << 20,
			1_000_000, 2 * time.Second, 110,
			"load  [=======                       ]   25%  100.0 MiB of 400.0 MiB  1,000,000 rows  500,000 rows/s  6 " +
				"s left"},
		{"room for a short bar", Options{What: "load", Total: 400 << 20, Unit: Bytes, Counted: "rows"}, 100 << 20,
			1_000_000, 2 * time.Second, 90,
			"load  [==        ]   25%  100.0 MiB of 400.0 MiB  1,000,000 rows  500,000 rows/s  6 s left"},
		{"no room for a bar", Options{What: "load", Total: 400 << 20, Unit: Bytes, Counted: "rows"}, 100 << 20,
			1_000_000, 2 * time.Second, 78,
			"load   25%  100.0 MiB of 400.0 MiB  1,000,000 rows  500,000 rows/s  6 s left"},
		{"narrow", Options{What: "load", Total: 400 << 20, Unit: Bytes, Counted: "rows"}, 100 << 20,
			1_000_000, 2 * time.Second, 40,
			"load   25%  100.0 MiB of 400.0 MiB"},
		{"a very narrow terminal", Options{What: "load", Total: 400}, 100, 0, 2 * time.Second, 3, "loa"},
		{"no total", Options{What: "apply", Unit: Bytes, Counted: "batches"}, 3 << 30, 1500, 3 * time.Second, 79,
			"apply  3.0 GiB  1,500 batches  500 batches/s"},
		{"plain", Options{What: "compact", Total: 8000}, 1000, 0, 10 * time.Second, 79,
			"compact  [===                     ]   12%  1,000 of 8,000  100/s  1:10 min left"},
		{"nothing done", Options{What: "verify", Total: 100, Unit: Bytes}, 0, 0, 2 * time.Second, 79,
			"verify  [                              ]    0%  0 B of 100 B  0 B/s"},
		{"more done than the total", Options{What: "v", Total: 100}, 300, 0, 2 * time.Second, 79,
			"v  [==============================]  100%  100 of 100  50/s  0 s left"},
	} {
		c.options.Width = func() int { return c.width + 1 }
		b := newBar(c.options, start)
		b.Set(c.done)
		b.Count(c.count)
		if got := b.line(start.Add(c.after)); got != c.want || len(got) > c.width {
			t.Errorf("%s: got\n%q, want\n%q", c.name, got, c.want)
		}
	}
}

// Nothing is painted in the first second, and the painted line is removed at the end.
func TestBarAppearsAfterASecondAndIsErased(t *testing.T) {
	for _, c := range []struct {
		ticks []time.Duration
		want  []string
	}{
		{nil, nil},
		{[]time.Duration{showAfter / 2, showAfter - 1}, nil},
		{[]time.Duration{showAfter - 1, showAfter, 2 * showAfter},
			[]string{"sum  50  50/s", clearLine + "sum  50  25/s", clearLine}},
	} {
		var out bytes.Buffer
		b := newBar(Options{Out: &out, What: "sum"}, start)
		b.Add(20)
		b.Add(30)
		ticks := make(chan time.Time)
		b.stopped.Go(func() { b.paintAt(ticks) })
		for _, after := range c.ticks {
			ticks <- start.Add(after)
		}
		b.Stop()
		b.Stop()
		must.Equal(t, out.String(), strings.Join(c.want, ""), c.ticks)
	}
}

// A terminal that became narrower shows the line on several rows: all of them are removed.
func TestBarRemovesAllRowsOfALineAfterTheTerminalShrank(t *testing.T) {
	var out bytes.Buffer
	width := 80
	b := newBar(Options{Out: &out, What: "sum", Width: func() int { return width }}, start)
	b.shown = 70
	width = 30
	must.Equal(t, b.erase(), clearLine+"\x1b[A"+clearLine+"\x1b[A"+clearLine, "70 characters on a terminal of 30")
	must.Equal(t, b.erase(), "")
}

func TestNilBarDoesNothing(t *testing.T) {
	var b *Bar
	b.Set(1)
	b.Add(1)
	b.Count(1)
	b.SetTotal(1)
	b.Stop()
}

func TestDurations(t *testing.T) {
	for d, want := range map[time.Duration]string{0: "0 s", 1: "1 s",
		59 * time.Second: "59 s", 60 * time.Second: "1:00 min",
		3599 * time.Second: "59:59 min", time.Hour: "1:00 h", 25*time.Hour + 61*time.Second: "25:01 h"} {
		must.Equal(t, duration(d), want, d)
	}
}
