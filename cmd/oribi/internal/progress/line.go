package progress

import (
	"fmt"
	"strings"
	"time"

	"github.com/oribi-db/oribi/internal/figures"
)

// line returns the text to show at a time, one column narrower than the terminal, since in the last
// column the cursor may wrap. If the terminal is narrow, line omits the bar first, then the text at
// the end.
func (b *Bar) line(now time.Time) string {
	o := &b.options
	done, total, count := b.done.Load(), b.total.Load(), b.count.Load()
	if total > 0 {
		done = min(done, total)
	}
	parts := []string{o.What}
	if total > 0 {
		parts = append(parts, fmt.Sprintf("%3d%%", percent(done, total)),
			number(done, o.Unit)+" of "+number(total, o.Unit))
	} else {
		parts = append(parts, number(done, o.Unit))
	}
	elapsed := now.Sub(b.began).Seconds()
	if o.Counted != "" {
		parts = append(parts, number(count, Plain)+" "+o.Counted,
			number(int64(float64(count)/elapsed), Plain)+" "+o.Counted+"/s")
	} else {
		parts = append(parts, number(int64(float64(done)/elapsed), o.Unit)+"/s")
	}
	if total > 0 && done > 0 {
		left := time.Duration(elapsed * float64(total-done) / float64(done) * float64(time.Second))
		parts = append(parts, duration(left)+" left")
	}
	return fit(parts, done, total, max(o.Width()-1, 1))
}

// Lengths of the bar between its brackets.
const (
	leastBar = 8
	mostBar  = 30
)

// fit joins the parts with blanks, with a bar after the first one if there is a total and enough
// room.
func fit(parts []string, done, total int64, width int) string {
	text := strings.Join(parts, "  ")
	if room := width - len(text) - len("  []"); total > 0 && room >= leastBar {
		n := min(room, mostBar)
		full := int(float64(n) * (float64(done) / float64(total)))
		return parts[0] + "  [" + strings.Repeat("=", full) + strings.Repeat(" ", n-full) + "]" + text[len(parts[0]):]
	}
	for len(parts) > 1 && len(text) > width {
		parts = parts[:len(parts)-1]
		text = strings.Join(parts, "  ")
	}
	return text[:min(len(text), width)]
}

// percent rounds down: 100 means done.
func percent(done, total int64) int { return int(float64(done) / float64(total) * 100) }

// number formats n in a unit.
func number(n int64, u Unit) string {
	if u == Bytes {
		return figures.Size(n)
	}
	return figures.Thousands(n)
}

// duration formats the time left: seconds, then minutes and seconds, then hours and minutes.
func duration(d time.Duration) string {
	s := int64((d + time.Second - 1) / time.Second)
	switch {
	case s < 60:
		return fmt.Sprintf("%d s", s)
	case s < 60*60:
		return fmt.Sprintf("%d:%02d min", s/60, s%60)
	}
	return fmt.Sprintf("%d:%02d h", s/3600, s/60%60)
}
