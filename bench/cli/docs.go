package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// docs/performance.md contains the tables of one or more runs between two marks; testdata contains
// the same tables. Both paths are relative to the engine's module.
const (
	figuresPage = "docs/performance.md"
	keptTable   = "bench/testdata/table.md"

	beginMark = "<!-- The text up to the end mark is " + keptTable + ": go run -C bench . page -->\n"
	endMark   = "<!-- end -->\n"
)

// writePage copies the tables in the files from, if there are any, to testdata, one after another.
// Then it puts the tables in testdata into docs/performance.md. The file in testdata may be one of
// from.
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

// withTable returns a page in which a table replaces the text between the marks.
func withTable(page, table string) (string, error) {
	before, rest, ok := strings.Cut(page, beginMark)
	_, after, end := strings.Cut(rest, endMark)
	if !ok || !end {
		return "", fmt.Errorf("the page lacks the marks %q and %q", strings.TrimSpace(beginMark), strings.TrimSpace(endMark))
	}
	return before + beginMark + "\n" + strings.TrimSpace(table) + "\n\n" + endMark + after, nil
}
