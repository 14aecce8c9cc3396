package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// The page of figures contains the tables of one or more runs between two marks, and the tables
// themselves are kept in testdata. Both paths start at the engine's module.
const (
	figuresPage = "docs/performance.md"
	keptTable   = "bench/testdata/table.md"

	beginMark = "<!-- The text up to the end mark is " + keptTable + ": go run -C bench . page -->\n"
	endMark   = "<!-- end -->\n"
)

// writePage keeps the tables in the files from, one after the other, unless there are none, and
// puts the kept tables into the page of figures. The kept file may be one of from.
func writePage(root string, from ...string) error {
	kept, page := filepath.Join(root, filepath.FromSlash(keptTable)), filepath.Join(root, filepath.FromSlash(figuresPage))
	if len(from) > 0 {
		tables := make([]string, len(from))
		for i, name := range from {
			table, err := os.ReadFile(name)
			if err != nil {
				return err
			}
			tables[i] = strings.TrimSpace(string(table)) + "\n"
		}
		if err := os.WriteFile(kept, []byte(strings.Join(tables, "\n")), 0o644); err != nil {
			return err
		}
	}
	table, err := os.ReadFile(kept)
	if err != nil {
		return err
	}
	text, err := os.ReadFile(page)
	if err != nil {
		return err
	}
	written, err := withTable(string(text), string(table))
	if err != nil {
		return fmt.Errorf("%s: %w", page, err)
	}
	return os.WriteFile(page, []byte(written), 0o644)
}

// withTable returns a page with the text between its marks replaced by a table.
func withTable(page, table string) (string, error) {
	before, rest, ok := strings.Cut(page, beginMark)
	_, after, end := strings.Cut(rest, endMark)
	if !ok || !end {
		return "", fmt.Errorf("want the marks %q and %q", strings.TrimSpace(beginMark), strings.TrimSpace(endMark))
	}
	return before + beginMark + "\n" + strings.TrimSpace(table) + "\n\n" + endMark + after, nil
}
