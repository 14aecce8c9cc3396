package kudu

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/oribi-db/oribi/internal/corpustest"
	"github.com/oribi-db/oribi/internal/kudufs"
)

// Tablets, states, rowsets, orphans and partitions are those that Kudu's own tools print.
func TestDescriptionsMatchKudusTools(t *testing.T) {
	for _, name := range goldenCases(t, "keys", "tombstone", "small-containers") {
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
		if err != nil {
			t.Fatal(err)
		}
		d := c.open(t)
		if n := len(d.Tablets()); n != len(manifest.Tablets) {
			t.Errorf("%s: %d tablets, want %d", name, n, len(manifest.Tablets))
		}
		for _, want := range manifest.Tablets {
			about, err := d.Describe(want.ID)
			if err != nil {
				t.Fatal(err)
			}
			got := about.Tablets[0]
			if about.Table != want.Table || "TABLET_DATA_"+got.State != want.State || len(got.RowSets) != want.RowSets ||
				len(got.Orphaned) != want.Orphaned || len(got.Partition.Buckets) != len(want.Partition.Buckets) {
				t.Errorf("%s: %s is %+v, want %+v", name, want.ID, got, want)
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

// The superblocks of old servers do not count rows.
func TestSizesWithoutCounts(t *testing.T) {
	for _, name := range []string{"redo-files", "unflushed-deltas", "ghosts"} {
		c := readCase(t, name)
		fsys, tablet := c.unpack(t), c.Tablets[0].ID
		rows := func() int64 {
			d, err := Open("/fs", Options{FS: fsys})
			if err != nil {
				t.Fatal(err)
			}
			for i := range d.Tablets() {
				if about := &d.Tablets()[i]; about.ID == tablet {
					s, err := d.Sizes(t.Context(), about)
					if err != nil {
						t.Fatal(err)
					}
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
		if got := rows(); got != want {
			t.Errorf("%s: %d rows, the counts say %d", name, got, want)
		}
	}
}
