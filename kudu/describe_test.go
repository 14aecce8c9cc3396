package kudu

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/oribi-db/oribi/internal/corpustest"
	"github.com/oribi-db/oribi/internal/kudufs"
	"github.com/oribi-db/oribi/internal/must"
)

// Tablets, states, rowsets, orphans and partitions are those that Kudu's own tools print.
func TestDescriptionsMatchKudusTools(t *testing.T) {
	for _, name := range goldenCases(t, "keys", "tombstone", "small-containers", "wal-only") {
		c := readCase(t, name)
		var manifest struct {
			Tablets []struct {
				ID, Table, State string
				RowSets          int `json:"rowsets"`
				Orphaned         int `json:"orphaned_blocks"`
				Partition        struct {
					Buckets []int32 `json:"hash_buckets"`
				}
			}
		}
		text, err := os.ReadFile(filepath.Join(corpustest.Dir(t), "golden", "kudu", name, "manifest.json"))
		if err == nil {
			err = json.Unmarshal(text, &manifest)
		}
		must.Do(t, err)
		d := c.open(t)
		must.Equal(t, len(d.Tablets()), len(manifest.Tablets), name)
		for _, want := range manifest.Tablets {
			about := must.Get(d.Describe(want.ID))(t)
			got := about.Tablets[0]
			if about.Table != want.Table || "TABLET_DATA_"+got.State != want.State ||
				len(got.RowSets) != want.RowSets ||
				len(got.Orphaned) != want.Orphaned || len(got.Partition.Buckets) != len(want.Partition.Buckets) {
				t.Errorf("%s: %s is %+v, want %+v", name, want.ID, got, want)
			}
			// The dump of that log is of an unfinished copy.
			if last, ok := lastLogged(t, c.Dir, want.ID); ok && name != "recovery-dir" &&
				(got.LastOperation == nil ||
					fmt.Sprintf("%d.%d", got.LastOperation.Term, got.LastOperation.Index) != last) {
				t.Errorf("%s: tablet %s: the last operation is %v, want %s", name, want.ID, got.LastOperation, last)
			}
			for _, r := range got.RowSets {
				for _, column := range r.Columns {
					if column.Bytes == nil {
						t.Errorf("%s: tablet %s: block %d is missing", name, want.ID, column.ID)
					}
				}
			}
		}
	}
}

// lastLogged returns the ID of the last operation of a tablet's log by "kudu wal dump".
func lastLogged(t *testing.T, dir, tablet string) (id string, ok bool) {
	t.Helper()
	dumps := must.Get(filepath.Glob(filepath.Join(dir, "tools", "wal."+tablet[:8]+".*")))(t)
	slices.Sort(dumps) // by segment
	for _, name := range dumps {
		for _, line := range corpustest.Lines(t, name) {
			if at, kind, _ := strings.Cut(line, "\t"); strings.HasPrefix(kind, "REPLICATE") {
				id, _, ok = strings.Cut(at, "@")
			}
		}
	}
	return id, ok
}

// The superblocks of old servers do not count rows.
func TestSizesWithoutCounts(t *testing.T) {
	for _, name := range []string{"redo-files", "unflushed-deltas", "ghosts"} {
		c := readCase(t, name)
		fsys, tablet := c.unpack(t), c.Tablets[0].ID
		rows := func() int64 {
			d := must.Get(Open("/fs", Options{FS: fsys}))(t)
			for i := range d.Tablets() {
				if about := &d.Tablets()[i]; about.ID == tablet {
					s := must.Get(d.Sizes(t.Context(), about))(t)
					return s.Rows
				}
			}
			return -1
		}
		want, super := rows(), superblockOf(t, fsys, tablet)
		super.SupportsLiveRowCount = nil
		for _, r := range super.Rowsets {
			r.LiveRowCount = nil
		}
		overwrite(t, fsys, "/fs/ts/tablet-meta/"+tablet, kudufs.AppendContainer(nil, kudufs.SuperblockKind, super))
		must.Equal(t, rows(), want, name)
	}
}
