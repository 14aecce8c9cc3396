package demo

import (
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

// page prints prose and small tables. After the first write error it prints nothing more.
type page struct {
	out   io.Writer
	err   error
	held  [][]string // lines of the current table so far
	begun bool
}

// pageWidth is the width of the smallest usual terminal.
const pageWidth = 80

func (p *page) line(format string, args ...any) {
	if p.err == nil {
		_, p.err = fmt.Fprintf(p.out, format+"\n", args...)
	}
}

// title begins a section.
func (p *page) title(text string) {
	if p.begun {
		p.line("")
	}
	p.begun = true
	p.line("%s", text)
	p.line("%s", strings.Repeat("-", utf8.RuneCountInString(text)))
}

// text prints a paragraph, wrapped.
func (p *page) text(format string, args ...any) {
	line := ""
	for _, word := range strings.Fields(fmt.Sprintf(format, args...)) {
		if line != "" && utf8.RuneCountInString(line)+1+utf8.RuneCountInString(word) > pageWidth {
			p.line("%s", line)
			line = ""
		}
		if line != "" {
			line += " "
		}
		line += word
	}
	p.line("%s", line)
}

// rows adds a line to the table; the first line is its header.
func (p *page) rows(cells []string) { p.held = append(p.held, cells) }

// end prints the table: columns of numbers aligned to the right, others to the left.
func (p *page) end() {
	widths := make([]int, len(p.held[0]))
	right := make([]bool, len(widths))
	for i := range widths {
		right[i] = true
		for k, line := range p.held {
			widths[i] = max(widths[i], utf8.RuneCountInString(line[i]))
			if k > 0 && strings.Trim(line[i], "0123456789,–") != "" {
				right[i] = false
			}
		}
	}
	for _, line := range p.held {
		var b strings.Builder
		for i, s := range line {
			pad := strings.Repeat(" ", widths[i]-utf8.RuneCountInString(s))
			if right[i] {
				b.WriteString("  " + pad + s)
			} else {
				b.WriteString("  " + s + pad)
			}
		}
		p.line("%s", strings.TrimRight(b.String(), " "))
	}
	p.held = nil
}
