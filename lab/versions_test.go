package lab

import (
	"bytes"
	"strings"
	"testing"

	"github.com/oribi-db/oribi/internal/must"
)

// What reads of a version read follows from where compactions put it: redos lead forward from the
// base, undos back.
func TestReadsOfVersionsCostWhatLeadsToThem(t *testing.T) {
	const last = 3
	s := parsed(t,
		`{"engine":"real","workloads":[{"name":"versions","keys":600,"versions":3}],"policies":[{"name":"none"}]}`)
	results := resultsOf(t, s)
	bytesOf := map[string][]int64{} // of scans, by version
	for _, c := range results[0].Reads {
		must.Equal(t, c.Rows, 600, c, "rows")
		if bytesOf[c.Stage] == nil {
			bytesOf[c.Stage] = make([]int64, last+1)
		}
		bytesOf[c.Stage][c.Version] = c.ScanBytes
	}
	for version := 1; version < last; version++ {
		if a, b := bytesOf["flush"][version], bytesOf["flush"][version+1]; a >= b {
			t.Errorf("flushed: %d bytes as of version %d, %d as of the next", a, version, b)
		}
		for _, stage := range []string{"major", "merge"} {
			if a, b := bytesOf[stage][version], bytesOf[stage][last]; a <= 2*b {
				t.Errorf("%s: %d bytes as of version %d, %d as of the last", stage, a, version, b)
			}
		}
	}
	if a, b := bytesOf["minor"][last], bytesOf["major"][last]; a <= 2*b {
		t.Errorf("the last version: %d bytes before the major compaction, %d after", a, b)
	}
	samples := results[0].Samples
	if before, after := samples[len(samples)-2].Bytes, samples[len(samples)-1].Bytes; before <= 2*after {
		t.Errorf("%d bytes before the history was dropped, %d after", before, after)
	}
	var page, table bytes.Buffer
	must.Do(t, WriteReport(&page, s, results))
	must.Contain(t, page.String(), "Bytes that a scan reads", "the report has no figures of reads")
	must.Do(t, writeReads(&table, results))
	must.Equal(t, strings.Count(table.String(), "\n"), 1+4*last+1, &table)
}
