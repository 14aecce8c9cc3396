package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// docs/performance.md contains the tables of one or more runs between two marks, and README.md a
// few rows of them; testdata contains the same tables. The paths are relative to the engine's
// module.
const (
	figuresPage = "docs/performance.md"
	readmePage  = "README.md"
	keptTable   = "bench/testdata/table.md"

	beginMark  = "<!-- The text up to the end mark is " + keptTable + ": go run -C bench . page -->\n"
	readmeMark = "<!-- The rows up to the end mark are of " + keptTable + ": go run -C bench . page -->\n"
	endMark    = "<!-- end -->\n"
)

// readmeRows are the workloads in README.md.
var readmeRows = []struct{ workload, about string }{
	{"get", "read of a row by key, cached"},
	{"range-20", "read of 20 rows by a range of keys, cached"},
	{"sum", "scan: sum of one column, one thread"},
	{"load-sorted", "load of rows in key order, 16 columns"},
}

// writePages copies the tables in the files from, which may be empty, to testdata, one after
// another. Then it puts the tables in testdata into docs/performance.md, and rows of them into
// README.md. The file in testdata may be one of from.
func writePages(root string, from ...string) error {
	path := func(name string) string { return filepath.Join(root, filepath.FromSlash(name)) }
	if len(from) > 0 {
		tables := make([]string, len(from))
		for i, name := range from {
			table, err := os.ReadFile(name)
			if err != nil {
				return err
			}
			tables[i] = strings.TrimSpace(string(table)) + "\n"
		}
		if err := os.WriteFile(path(keptTable), []byte(strings.Join(tables, "\n")), 0o644); err != nil {
			return err
		}
	}
	table, err := os.ReadFile(path(keptTable))
	if err != nil {
		return err
	}
	rows, err := readmeTable(string(table))
	if err != nil {
		return err
	}
	for _, p := range []struct{ name, begin, text string }{{figuresPage, beginMark, string(table)},
		{readmePage, readmeMark, rows}} {
		text, err := os.ReadFile(path(p.name))
		if err != nil {
			return err
		}
		written, err := between(string(text), p.begin, p.text)
		if err != nil {
			return fmt.Errorf("%s: %w", p.name, err)
		}
		if err := os.WriteFile(path(p.name), []byte(written), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// between returns a page in which text replaces what is between the mark begin and the end mark.
func between(page, begin, text string) (string, error) {
	before, rest, ok := strings.Cut(page, begin)
	_, after, end := strings.Cut(rest, endMark)
	if !ok || !end {
		return "", fmt.Errorf("the page lacks the marks %q and %q",
			strings.TrimSpace(begin), strings.TrimSpace(endMark))
	}
	return before + begin + "\n" + strings.TrimSpace(text) + "\n\n" + endMark + after, nil
}

// readmeTable returns the table of README.md: rows of the tables of runs.
func readmeTable(tables string) (string, error) {
	var b strings.Builder
	b.WriteString("| measured | Oribi | best other program | ratio |\n|---|---:|---:|---:|\n")
	for _, r := range readmeRows {
		_, row, found := strings.Cut(tables, "\n| "+r.workload+" | ")
		row, _, _ = strings.Cut(row, "\n")
		cells := strings.Split(row, " | ") // unit, ours, figure, best peer, figure, ratio, …
		if !found || len(cells) < 6 {
			return "", fmt.Errorf("%s has no row %q", keptTable, r.workload)
		}
		ratio, _, _ := strings.Cut(cells[5], " ")
		fmt.Fprintf(&b, "| %s | %s %s | %s: %s %s | %s |\n", r.about, cells[2], cells[0],
			cells[3], cells[4], cells[0], ratio)
	}
	return b.String(), nil
}
