package carbondata

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/oribi-db/oribi/internal/memtest"
	"github.com/oribi-db/oribi/internal/must"
)

// deletion is a change to the golden table: rows of one data file that are deleted.
type deletion struct {
	segment, block string
	times          []string
	rows           [][]int // for each time: rows of the file
	status         string
	noStamps       bool
}

// pageRowsOfTable are the rows of each full page of the golden table.
const pageRowsOfTable = 100

func writeFile(t *testing.T, content string, path ...string) {
	t.Helper()
	must.Do(t, os.WriteFile(filepath.Join(path...), []byte(content), 0o644))
}

// writeDelta writes a file of deleted rows.
func writeDelta(t *testing.T, dir, block, time string, rows []int) {
	pages := map[string]map[string]any{}
	for _, row := range rows {
		key := fmt.Sprintf("0_%d", row/pageRowsOfTable)
		if pages[key] == nil {
			pages[key] = map[string]any{"id": "0", "pageId": row / pageRowsOfTable, "deletedRows": []int{}}
		}
		pages[key]["deletedRows"] = append(pages[key]["deletedRows"].([]int), row%pageRowsOfTable)
	}
	b := must.Get(json.Marshal(map[string]any{"blockletDetailsMap": pages, "blockName": block}))(t)
	writeFile(t, string(b), dir, block+"-"+time+deleteSuffix)
}

// deletedTable returns a copy of the golden table with deleted rows.
func deletedTable(t *testing.T, list []deletion) (dir string) {
	dir = filepath.Join(copyFolder(t, "table"), "db", "t")
	entries := []map[string]any{}
	for _, d := range list {
		for i, rows := range d.rows {
			writeDelta(t, filepath.Join(dir, "Fact", "Part0", "Segment_"+d.segment), d.block, d.times[i], rows)
		}
		first, last := "", ""
		if len(d.times) > 0 {
			first, last = d.times[0], d.times[len(d.times)-1]
		}
		e := map[string]any{"segmentName": d.segment, "blockName": d.block, "segmentStatus": d.status,
			"actualBlockName":           d.block + "-1700000100000.carbondata",
			"deleteDeltaStartTimestamp": first, "deleteDeltaEndTimestamp": last, "deletedRowsInBlock": "1"}
		if first != last && !d.noStamps {
			e["deltaFileStamps"] = d.times
		}
		entries = append(entries, e)
	}
	b := must.Get(json.Marshal(entries))(t)
	writeFile(t, string(b), dir, "Metadata", "tableupdatestatus-1700000200000")
	editFile(t, filepath.Join(dir, "Metadata", "tablestatus"),
		replace(`"loadName":"0"`, `"loadName":"0","updateStatusFileName":"tableupdatestatus-1700000200000"`))
	return dir
}

// Positions of the data files of the golden table in its rows.
var tableFiles = map[string]int{"0/part-0-0_batchno0-0-0": 0, "0/part-0-1_batchno0-0-0": 150,
	"1/part-0-0_batchno0-0-1": 300, "3/part-0-0_batchno0-0-3": 470, "end": 680}

func TestDeletedRowsOfATable(t *testing.T) {
	_, before := tableRows(t, filepath.Join(goldenDir(t), "table"))
	const block, other = "part-0-0_batchno0-0-0", "part-0-1_batchno0-0-0"
	for name, list := range map[string][]deletion{
		"nothing": {},
		"one delete": {{segment: "0", block: block, times: []string{"1700000104000"},
			rows: [][]int{{0, 99, 100, 149}}, status: "Success"}},
		"three deletes, times listed": {{segment: "3", block: "part-0-0_batchno0-0-3",
			times: []string{"1700000104000", "1700000105000", "1700000106000"},
			rows:  [][]int{{0, 209}, {1, 200, 100}, {0, 2}}, status: "Success"}},
		"times not listed": {{segment: "1", block: "part-0-0_batchno0-0-1",
			times: []string{"1700000104000", "1700000104500", "1700000106000"},
			rows:  [][]int{{5}, {6}, {107}}, status: "Success", noStamps: true}},
		"all rows of a file": {{segment: "0", block: other, status: "Marked for Delete"}},
		"two files": {{segment: "0", block: block, times: []string{"7"}, rows: [][]int{{3}}},
			{segment: "0", block: other, times: []string{"7"}, rows: [][]int{{4}}}},
		"another segment": {{segment: "0", block: "part-0-0_batchno0-0-1"},
			{segment: "1", block: block, times: []string{"9"}, rows: [][]int{{1}}},
			{segment: "2", block: "part-0-0_batchno0-0-2", times: []string{"9"}, rows: [][]int{{1}}}},
	} {
		t.Run(name, func(t *testing.T) {
			dir := deletedTable(t, list)
			// Files that the status does not name do not count.
			writeDelta(t, filepath.Join(dir, "Fact", "Part0", "Segment_1"), "part-0-0_batchno0-0-1",
				"1700000109000", []int{50, 51, 52})
			writeDelta(t, filepath.Join(dir, "Fact", "Part0", "Segment_0"), block, "1700000109000", []int{50, 51, 52})
			writeFile(t, `[{"segmentName":"0","blockName":"`+block+`","segmentStatus":"Compacted"}]`, dir, "Metadata",
				"tableupdatestatus-1700000300000")
			gone := map[int]bool{}
			for _, d := range list {
				first, ok := tableFiles[d.segment+"/"+d.block]
				if !ok {
					continue
				}
				for _, rows := range d.rows {
					for _, row := range rows {
						gone[first+row] = true
					}
				}
				for row := 0; d.status == "Marked for Delete" && row < 150; row++ {
					gone[first+row] = true
				}
			}
			var want [][]any
			for i, row := range before {
				if !gone[i] {
					want = append(want, row)
				}
			}
			if _, rows := tableRows(t, dir); !reflect.DeepEqual(rows, want) {
				t.Errorf("%d rows, want %d, or others", len(rows), len(want))
			}
		})
	}
}

// TestDeletedRowsAreReadOnce has many entries that name one file of deleted rows: reading it for
// each would take quadratic time.
func TestDeletedRowsAreReadOnce(t *testing.T) {
	rows := make([]int, 20000) // with repetitions
	one := deletion{segment: "0", block: "part-0-0_batchno0-0-0", times: []string{"7"},
		rows: [][]int{rows}, status: "Success"}
	list := []deletion{one}
	one.rows = nil
	for range 2000 {
		list = append(list, one)
	}
	dir := deletedTable(t, list)
	n := memtest.Allocated(func() {
		if _, rows := tableRows(t, dir); len(rows) != 679 {
			t.Errorf("%d rows", len(rows))
		}
	})
	if n > 32<<20 {
		t.Errorf("%d bytes allocated", n)
	}
}

func TestDamagedUpdateStatusIsRefused(t *testing.T) {
	const (
		block  = "part-0-0_batchno0-0-0"
		status = "Metadata/tableupdatestatus-1700000200000"
		delta  = "Fact/Part0/Segment_0/*" + deleteSuffix
	)
	dir := deletedTable(t,
		[]deletion{{segment: "0", block: block, times: []string{"1700000104000"},
			rows: [][]int{{3}}, status: "Success"}})
	checkDamage(t, dir, map[string]damage{
		"no file":               {status, remove, ErrCorrupt},
		"half":                  {status, half, ErrCorrupt},
		"garbage":               {status, garbage, ErrCorrupt},
		"an unknown status":     {status, replace("Success", "In Progress"), ErrUnsupported},
		"no segment":            {status, replace(`"segmentName":"0"`, `"segmentName":""`), ErrCorrupt},
		"a path":                {status, replace(`"blockName":"`, `"blockName":"../`), ErrCorrupt},
		"a time that is text":   {status, replace(`"1700000104000"`, `"170000010400x"`), ErrCorrupt},
		"a negative time":       {status, replace(`"1700000104000"`, `"-1700000104"`), ErrCorrupt},
		"another time":          {status, replace(`"1700000104000"`, `"1700000104001"`), ErrCorrupt},
		"no deleted rows":       {delta, remove, ErrCorrupt},
		"half of deleted rows":  {delta, half, ErrCorrupt},
		"rows of another file":  {delta, replace("part-0-0", "part-0-1"), ErrCorrupt},
		"a row after the page":  {delta, replace("[3]", "[100]"), ErrCorrupt},
		"a page after the last": {delta, replace("0_0", "0_2"), ErrCorrupt},
		"another one in segment": {"Metadata/tablestatus",
			replace(`"loadName":"3"`, `"loadName":"3","updateStatusFileName":"x"`), nil},
		"a second status file": {"Metadata/tablestatus", func(b []byte) []byte {
			b = replace(`"updateStatusFileName":"tableupdatestatus-1700000200000",`, "")(b)
			return replace(`"loadName":"3"`,
				`"loadName":"3","updateStatusFileName":"tableupdatestatus-1700000200000"`)(b)
		}, ErrCorrupt},
		"a path to the status": {"Metadata/tablestatus",
			replace("tableupdatestatus-17", "../tableupdatestatus-17"), ErrCorrupt},
	})
	t.Run("none of the files between two times", func(t *testing.T) {
		dir := deletedTable(t, []deletion{{segment: "0", block: block, times: []string{"1", "2"}, noStamps: true}})
		must.Fail(t, must.Err(readTable(dir)), ErrCorrupt)
	})
}

// TestStatusWithVersions reads tables without a file of the name tablestatus.
func TestStatusWithVersions(t *testing.T) {
	dir := filepath.Join(copyFolder(t, "table"), "db", "t")
	meta := filepath.Join(dir, "Metadata")
	must.Do(t, os.Rename(filepath.Join(meta, "tablestatus"),
		filepath.Join(meta, "tablestatus_1700000300000")))
	writeFile(t, "garbage", meta, "tablestatus_999999999999")       // older
	writeFile(t, "garbage", meta, "tablestatus_1c5e-not-a-version") // of an unfinished change
	writeFile(t, "garbage", meta, "tablestatus.history")
	must.Equal(t, must.Get(readTable(dir))(t), 680)
	writeFile(t, "garbage", meta, "tablestatus_1700000300001")
	must.Fail(t, must.Err(readTable(dir)), ErrCorrupt, "the newest version is damaged")
	writeFile(t, `[{"loadName":"0","loadStatus":"Success","segmentFile":"0_1700000100000.segment"}]`, meta,
		"tablestatus")
	must.Equal(t, must.Get(readTable(dir))(t), 300, "with a file without version")
}

// TestSegmentStatus reads the golden table with another status of segment 0, which has 300 of its
// 680 rows.
func TestSegmentStatus(t *testing.T) {
	dir := filepath.Join(copyFolder(t, "table"), "db", "t")
	path := filepath.Join(dir, "Metadata", "tablestatus")
	status := must.Get(os.ReadFile(path))(t)
	check := func(old, new string, want int) {
		t.Helper()
		writeFile(t, strings.Replace(string(status), old, new, 1), path)
		must.Equal(t, must.Get(readTable(dir))(t), want, new)
	}
	for status, want := range map[string]int{"Success": 680, "Partial Success": 680, "Marked for Update": 680,
		"Failure": 380, "Marked for Delete": 380, "Compacted": 380,
		"Overwrite In Progress": 380, "In Progress": 380, "Update": 380} {
		check(`"loadStatus":"Success"`, `"loadStatus":"`+status+`"`, want)
	}
	for visibility, want := range map[string]int{"true": 680, "false": 380, "": 680} {
		check(`"loadName":"0"`, `"loadName":"0","visibility":"`+visibility+`"`, want)
	}
}
