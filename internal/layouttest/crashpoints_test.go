package layouttest

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/oribi-db/oribi/internal/must"
)

// TestEachCrashPointNamesItsTest checks the table of docs/safety.md: its rows are in
// order, and each links a test or states that it does not apply. TestLinksOfPagesExist checks that
// the linked files declare the tests.
func TestEachCrashPointNamesItsTest(t *testing.T) {
	const points = 39
	text := must.Get(os.ReadFile(filepath.Join(moduleRoot(t), "docs", "safety.md")))(t)
	row := 0
	for line := range strings.Lines(string(text)) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		n, err := strconv.Atoi(strings.TrimSpace(cells[0]))
		if err != nil || len(cells) != 5 {
			continue
		}
		if row++; n != row {
			t.Errorf("found row %d, want row %d", n, row)
		}
		links := link.FindAllStringSubmatch(cells[4], -1)
		for _, l := range links {
			if !strings.HasPrefix(l[1], "`Test") || !strings.HasSuffix(l[2], "_test.go") {
				t.Errorf("row %d: %s is not a test", n, l[0])
			}
		}
		must.Equal(t, !strings.Contains(cells[3], "does not apply"), len(links) > 0, n)
	}
	must.Equal(t, row, points)
}
