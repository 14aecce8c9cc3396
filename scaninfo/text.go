package scaninfo

import (
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/oribi-db/oribi/internal/bind"
	"github.com/oribi-db/oribi/internal/celltext"
)

// String returns the explanation as text of several lines for people. Its form may change.
func (e *Explanation) String() string {
	var b strings.Builder
	e.writeSummary(&b)
	if e.FromCounters {
		return b.String()
	}
	sections := append([]section{e.rowSets(), e.rows()}, e.predicates()...)
	width := 0
	for _, s := range sections {
		width = max(width, s.width())
	}
	for _, s := range sections {
		s.write(&b, width)
	}
	e.writeColumns(&b)
	return b.String()
}

func (e *Explanation) writeSummary(b *strings.Builder) {
	fmt.Fprintf(b, "table %q: %s %s in %s", celltext.Printable(e.Table), plural(e.Returned, "row"), e.verb,
		durationText(e.Time))
	if e.Workers > 1 {
		fmt.Fprintf(b, " by %d goroutines", e.Workers)
	}
	if e.Index != "" {
		fmt.Fprintf(b, ", of %s that index %q found", plural(e.Keys, "key"), celltext.Printable(e.Index))
	}
	if e.FromCounters {
		b.WriteString(", from counters: no row was read")
	}
	if !e.Complete {
		b.WriteString("; the read was not complete")
	}
	if e.Where != "" {
		fmt.Fprintf(b, "\nwhere %s", e.Where)
	}
	for _, x := range e.Indexes {
		used := "not used"
		if x.Index == e.Index {
			used = "used"
		}
		fmt.Fprintf(b, "\nindex %q, %s: %s", celltext.Printable(x.Index), used, x.Reason)
	}
	b.WriteString("\n")
}

// section is a title and some counts.
type section struct {
	title string
	lines []countLine
}

type countLine struct {
	n    int64
	text string
}

// add adds a count unless it is 0.
func (s *section) add(n int64, text string) {
	if n != 0 {
		s.lines = append(s.lines, countLine{n, text})
	}
}

// width returns the number of characters of the longest count.
func (s *section) width() (w int) {
	for _, l := range s.lines {
		w = max(w, len(grouped(l.n)))
	}
	return w
}

// write writes a section whose counts have the given width.
func (s *section) write(b *strings.Builder, width int) {
	fmt.Fprintf(b, "\n%s\n", s.title)
	for _, l := range s.lines {
		fmt.Fprintf(b, "  %*s  %s\n", width, grouped(l.n), l.text)
	}
}

func (e *Explanation) rowSets() section {
	r := &e.RowSets
	s := section{title: "rowsets: " + strconv.Itoa(r.Disk+r.Memory)}
	s.add(int64(r.Outside), "on disk, skipped: all keys are outside of the key range")
	s.add(int64(r.NotReached), "on disk, not read: the read ended before")
	s.add(int64(r.Read), "on disk, read")
	s.add(int64(r.Memory), "in memory")
	return s
}

func (e *Explanation) rows() section {
	r := &e.Rows
	s := section{title: "rows: " + grouped(r.Disk+r.Memory)}
	if r.Memory > 0 {
		s.title += ", " + grouped(r.Memory) + " of them in memory"
	}
	s.add(r.Outside, "skipped: outside of the key range")
	s.add(r.NotReached, "not read: the read ended before")
	s.add(r.Invisible, "invisible: deleted, or inserted after the time that is read")
	s.add(r.Excluded, "excluded by predicates")
	s.add(r.NotReturned, "not "+e.verb+": the read ended before")
	if r.Stored > 0 {
		s.add(r.Stored, e.verb+" from values as they are stored")
		s.add(r.Decoded, e.verb+" from decoded columns")
	} else {
		s.add(r.Decoded, e.verb)
	}
	return s
}

// predicates returns a section for each predicate.
func (e *Explanation) predicates() (sections []section) {
	for i := range e.Predicates {
		p := &e.Predicates[i]
		s := section{title: fmt.Sprintf("predicate %d of %d: %s", i+1, len(e.Predicates), p.Predicate)}
		if p.Tested == 0 {
			s.lines = []countLine{{0, "rows were left to test"}}
		}
		s.add(p.Tested, fmt.Sprintf("rows were left to test; it is true for %s (%s)", grouped(p.Passed),
			percent(p.Selectivity())))
		s.add(p.Schema, "decided by the schema")
		s.add(p.ZoneMap, "decided by the zone map, without reading the values")
		s.add(p.Dictionary, "decided by the words of the dictionary")
		s.add(p.Planes, "decided by bits that all values of a chunk share")
		s.add(p.Stored, "tested as they are stored, without decoding them")
		s.add(p.Decoded, "decoded, then tested")
		s.add(p.Changed, "changed since the flush, tested with the new value")
		s.add(p.Memory, "tested in memory")
		s.add(p.Untested, "passed without a test, because the filter excludes little")
		sections = append(sections, s)
	}
	return sections
}

// writeColumns writes a table of the columns.
func (e *Explanation) writeColumns(b *strings.Builder) {
	if len(e.Columns) == 0 {
		return
	}
	b.WriteString("\ncolumns: their cblocks in the rowsets that were read, by the most that was done with each\n")
	table := [][]string{{"column", "cblocks", "outside", "skipped", "zone map", "as stored", "decoded",
		"cells decoded"}}
	for i := range e.Columns {
		c := &e.Columns[i]
		line := []string{bind.QuoteName(c.Column)}
		for _, n := range []int64{c.Blocks, c.Outside, c.Skipped, c.ZoneMap, c.Stored, c.Decoded, c.Cells} {
			line = append(line, grouped(n))
		}
		table = append(table, line)
	}
	widths := make([]int, len(table[0]))
	for _, line := range table {
		for i, cell := range line {
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	for _, line := range table {
		fmt.Fprintf(b, "  %-*s", widths[0], line[0])
		for i, cell := range line[1:] {
			fmt.Fprintf(b, "  %*s", widths[i+1], cell)
		}
		b.WriteString("\n")
	}
}

// grouped returns n with commas between groups of three digits.
func grouped(n int64) string {
	text := strconv.FormatInt(n, 10)
	for at := len(text) - 3; at > 0 && text[at-1] != '-'; at -= 3 {
		text = text[:at] + "," + text[at:]
	}
	return text
}

func plural(n int64, noun string) string {
	if n != 1 {
		noun += "s"
	}
	return grouped(n) + " " + noun
}

func percent(share float64) string {
	switch {
	case share == 0 || share == 1:
		return fmt.Sprintf("%.0f %%", 100*share)
	case share < 0.001:
		return "below 0.1 %"
	case share > 0.999:
		return "above 99.9 %"
	}
	return fmt.Sprintf("%.1f %%", 100*share)
}

// durationText returns a duration with three digits.
func durationText(d time.Duration) string {
	unit, name := time.Second, "s"
	switch {
	case d < time.Millisecond:
		unit, name = time.Microsecond, "µs"
	case d < time.Second:
		unit, name = time.Millisecond, "ms"
	}
	x := float64(d) / float64(unit)
	decimals := 2
	for limit := 10.0; x >= limit && decimals > 0; limit *= 10 {
		decimals--
	}
	return strconv.FormatFloat(x, 'f', decimals, 64) + " " + name
}
