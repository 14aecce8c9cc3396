package cli

import (
	"fmt"
	"os"
	"strings"
)

// progressBar shows the progress of a run: a bar on a terminal, otherwise a line for each workload.
type progressBar struct {
	out      *os.File
	quiet    bool
	shown    bool
	workload string
}

const barWidth = 30

func (b *progressBar) step(step, all int, what string) {
	if b.quiet {
		return
	}
	workload, _, _ := strings.Cut(what, ":")
	if !terminal(b.out) {
		if workload != b.workload {
			fmt.Fprintf(b.out, "bench: %d of %d: %s\n", step, all, workload)
		}
		b.workload = workload
		return
	}
	done := barWidth
	if all > 0 {
		done = barWidth * min(step, all) / all
	}
	fmt.Fprintf(b.out, "\r\x1b[K[%s%s] %d/%d %s", strings.Repeat("#", done),
		strings.Repeat(".", barWidth-done), step, all, what)
	b.shown = true
}

// end removes the bar.
func (b *progressBar) end() {
	if b.shown {
		fmt.Fprint(b.out, "\r\x1b[K")
	}
}

func terminal(f *os.File) bool {
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}
