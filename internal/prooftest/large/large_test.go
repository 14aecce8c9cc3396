package large

import (
	"testing"

	"github.com/oribi-db/oribi/internal/must"
)

// A small run does all that a large one does.
func TestRun(t *testing.T) {
	c, err := Run{Dir: t.TempDir(), Rows: 100_000, Gets: 3000, Updates: 300, Progress: func(s string) { t.Log(s) }}.Do()
	must.Do(t, err)
	must.Equal(t, []int64{c.Rows, c.Scanned, c.Gets, c.Updates, c.Copies}, []int64{100_000, 200_000, 6300, 300, 1},
		"rows, scanned rows, gets, updates, backups")
	if c.Disk == 0 {
		t.Error("no disk is used")
	}
}
