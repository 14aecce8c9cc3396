package kudu

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/oribi-db/oribi/internal/corpustest"
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
