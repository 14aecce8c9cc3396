package carbondata

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/oribi-db/oribi/internal/must"
)

// TestDamagedPageAmongManyColumns damages a long page of one column: whether columns are read
// together or one after another, the error names it.
func TestDamagedPageAmongManyColumns(t *testing.T) {
	from := filepath.Join(goldenDir(t), "lineitem")
	dir := t.TempDir()
	must.Do(t, os.CopyFS(dir, os.DirFS(from)))
	names := must.Get(filepath.Glob(filepath.Join(dir, "*"+dataSuffix)))(t)
	must.Equal(t, len(names), 1)
	table := must.Get(Open(dir))(t)
	defer table.Close()
	f := table.files[0].File
	place := must.Get(table.column("l_commitdate"))(t)
	c := must.Get(
		f.readChunk(&f.blocklets[1], f.columns[table.files[0].columns[place]].first, &memory{left: 1 << 20}))(t)
	content := must.Get(os.ReadFile(names[0]))(t)
	content[c.pages[0].offset] ^= 1 // the length of the uncompressed page
	must.Do(t, os.Chmod(names[0], 0o600))
	must.Do(t, os.WriteFile(names[0], content, 0o600))
	for _, procs := range []int{1, 4} {
		before := runtime.GOMAXPROCS(procs)
		var rows int
		var err error
		for _, err = range table.Rows(t.Context(), ScanOptions{}) {
			if err == nil {
				rows++
			}
		}
		runtime.GOMAXPROCS(before)
		must.Fail(t, err, ErrCorrupt, procs, rows)
		must.Contain(t, fmt.Sprint(err), `blocklet 1: column "l_commitdate": page 0`, procs, rows)
		must.Equal(t, rows, f.blocklets[0].rows, procs)
	}
}
