package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// The page of figures contains the table of one run between two marks, and the table itself is kept
// in testdata. Both paths start at the engine's module.
const (
	figuresPage = "docs/performance.md"
	keptTable   = "bench/testdata/table.md"

	beginMark = "<!-- The text up to the end mark is " + keptTable + ": go run -C bench . page -->\n"
	endMark   = "<!-- end -->\n"
)

// writePage keeps the table in the file from, unless it is "", and puts the kept table into the
// page of figures.
func writePage(root, from string) error {
	kept, page := filepath.Join(root, filepath.FromSlash(keptTable)), filepath.Join(root, filepath.FromSlash(figuresPage))
	if from != "" {
		table, err := os.ReadFile(from)
		if err != nil {
			return err
		}
		if err := os.WriteFile(kept, table, 0o644); err != nil {
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
