package carbondata

import (
	"encoding/json"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"testing"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/internal/must"
)

// setSegment changes where segment 0 of a table is, of the files in Fact/Part0/Segment_0.
func setSegment(t *testing.T, dir string, locations map[string]any) {
	t.Helper()
	b := must.Get(json.Marshal(map[string]any{"locationMap": locations}))(t)
	writeFile(t, string(b), dir, "Metadata", "segments", "0_1700000100000.segment")
}

// moveTask moves a task's files of segment 0 to another folder.
func moveTask(t *testing.T, dir, task, to string) {
	t.Helper()
	must.Do(t, os.MkdirAll(to, 0o755))
	for _, name := range []string{task + "_batchno0-0-0-1700000100000.carbonindex",
		"part-0-" + task + "_batchno0-0-0-1700000100000.snappy.carbondata"} {
		must.Do(t, os.Rename(filepath.Join(dir, "Fact", "Part0", "Segment_0", name),
			filepath.Join(to, name)))
	}
}

// folder is the value of a folder in a segment file.
func folder(relative bool, files []string, partitions ...string) map[string]any {
	return map[string]any{"files": files, "partitions": partitions, "status": "Success", "isRelative": relative}
}

func indexName(task string) string { return task + "_batchno0-0-0-1700000100000.carbonindex" }

// TestPartitions reads a table whose segment 0 has its two files in folders of partitions, one of
// them elsewhere.
func TestPartitions(t *testing.T) {
	_, want := tableRows(t, filepath.Join(goldenDir(t), "table"))
	dir := filepath.Join(copyFolder(t, "table"), "db", "t")
	outside := t.TempDir()
	moveTask(t, dir, "0", filepath.Join(dir, "day=2020-01-01", "note=x"))
	moveTask(t, dir, "1", filepath.Join(outside, "day=2021-01-01"))
	locations := map[string]any{
		"/day=2020-01-01/note=x": folder(true,
			[]string{indexName("0")}, "day=2020-01-01", "note=x"),
		filepath.Join(outside, "day=2021-01-01"): folder(false, []string{indexName("1")}, "day=2021-01-01"),
		"/day=2022-01-01": map[string]any{"files": []string{"x.carbonindex"},
			"status": "Marked for Delete", "isRelative": true},
		"s3a://bucket/deleted/day=__HIVE_DEFAULT__/x": map[string]any{"files": []string{},
			"status": "Marked for Delete"},
	}
	setSegment(t, dir, locations)
	if _, rows := tableRows(t, dir); !reflect.DeepEqual(rows, want) {
		t.Errorf("%d rows, want %d, or others", len(rows), len(want))
	}
	for name, c := range map[string]struct {
		key, folder string
		err         error
	}{
		"another file system": {"s3a://bucket/day=3", "", ErrUnsupported},
		"a relative path":     {"day=3", "", ErrCorrupt},
		"no such folder":      {filepath.Join(outside, "day=3"), "", ErrCorrupt},
	} {
		more := maps.Clone(locations)
		more[c.key] = folder(false, []string{indexName("7")}, "day=3")
		setSegment(t, dir, more)
		must.Fail(t, must.Err(readTable(dir)), c.err, name)
	}
	setSegment(t, dir, locations)
	editSchema(t, dir, func(columns []anyStruct) []anyStruct {
		for _, c := range columns {
			if string(c[columnName].([]byte)) == "day" {
				c[columnID] = []byte("not in the files")
			}
		}
		return columns
	})
	must.Fail(t, must.Err(readTable(dir)), ErrUnsupported, "a partition column that is not in the files")
}

// TestSegmentFiles reads segment files of other forms.
func TestSegmentFiles(t *testing.T) {
	const place = "/Fact/Part0/Segment_0"
	dir := filepath.Join(copyFolder(t, "table"), "db", "t")
	both := []string{indexName("0"), indexName("1")}
	for name, c := range map[string]struct {
		locations map[string]any
		rows      int
		err       error
	}{
		"two indexes":             {map[string]any{place: folder(true, both)}, 680, nil},
		"without a leading slash": {map[string]any{place[1:]: folder(true, both)}, 680, nil},
		"no folders":              {map[string]any{}, 380, nil},
		"one index":               {map[string]any{place: folder(true, both[:1])}, 530, nil},
		"no locationMap":          {nil, 0, ErrCorrupt},
		"an unknown status": {map[string]any{place: map[string]any{"files": both, "status": "New",
			"isRelative": true}}, 0, ErrUnsupported},
		"no index": {map[string]any{place: folder(true, nil)}, 0, ErrCorrupt},
		"a data file as an index": {map[string]any{place: folder(true,
			[]string{"part-0-0_batchno0-0-0-1700000100000.snappy.carbondata"})}, 0, ErrCorrupt},
		"an index with a path": {map[string]any{place: folder(true, []string{"../Segment_0/" + both[0]})}, 0,
			ErrCorrupt},
		"a folder above the table":  {map[string]any{"/../t/Fact": folder(true, both)}, 0, ErrCorrupt},
		"the same index twice":      {map[string]any{place: folder(true, []string{both[0], both[0]})}, 0, ErrCorrupt},
		"a partition without value": {map[string]any{place: folder(true, both, "day")}, 0, ErrCorrupt},
	} {
		t.Run(name, func(t *testing.T) {
			setSegment(t, dir, c.locations)
			if n, err := readTable(dir); !errors.Is(err, c.err) || err == nil && n != c.rows {
				t.Errorf("%d rows, %v, want %d, %v", n, err, c.rows, c.err)
			}
		})
	}
}

// TestFilesOfAFlatFolder reads a segment whose files are in the table's folder itself.
func TestFilesOfAFlatFolder(t *testing.T) {
	dir := filepath.Join(copyFolder(t, "table"), "db", "t")
	moveTask(t, dir, "0", dir)
	setSegment(t, dir, map[string]any{"/": folder(true, []string{indexName("0")})})
	must.Equal(t, must.Get(readTable(dir))(t), 530)
}

// TestMergedIndexWithOthers reads a segment with a merged index file and more index files, as an
// update leaves it. An index file that was merged need not exist.
func TestMergedIndexWithOthers(t *testing.T) {
	dir := filepath.Join(copyFolder(t, "table"), "db", "t")
	segment := filepath.Join(dir, "Fact", "Part0", "Segment_1")
	moveTask(t, dir, "1", segment)
	setSegment(t, dir, map[string]any{"/Fact/Part0/Segment_0": folder(true, []string{indexName("0")})})
	f := folder(true, []string{"0_batchno0-0-1-1700000101000.carbonindex", indexName("1")})
	f["mergeFileName"] = "1_1700000101000.carbonindexmerge"
	b := must.Get(json.Marshal(map[string]any{"locationMap": map[string]any{"/Fact/Part0/Segment_1": f}}))(t)
	writeFile(t, string(b), dir, "Metadata", "segments", "1_1795265262559.segment")
	must.Equal(t, must.Get(readTable(dir))(t), 680)
	must.Do(t, os.Remove(filepath.Join(segment, indexName("1"))))
	must.Fail(t, must.Err(readTable(dir)), ErrCorrupt, "without an index file that is not merged")
}

// setStatus changes tablestatus, a list of segments.
func setStatus(t *testing.T, dir string, edit func(segments []map[string]any) []map[string]any) {
	t.Helper()
	editFile(t, filepath.Join(dir, "Metadata", "tablestatus"), func(b []byte) []byte {
		var segments []map[string]any
		must.Do(t, json.Unmarshal(b, &segments))
		b = must.Get(json.Marshal(edit(segments)))(t)
		return b
	})
}

// TestFilesInTwoSegments names the same data files in two segments, and in two folders of one
// segment.
func TestFilesInTwoSegments(t *testing.T) {
	dir := filepath.Join(copyFolder(t, "table"), "db", "t")
	setStatus(t, dir, func(segments []map[string]any) []map[string]any {
		again := maps.Clone(segments[0])
		again["loadName"] = "7"
		return append(segments, again)
	})
	must.Fail(t, must.Err(readTable(dir)), ErrCorrupt, "two segments")
	dir = filepath.Join(copyFolder(t, "table"), "db", "t")
	files := []string{indexName("0"), indexName("1")}
	setSegment(t, dir, map[string]any{"/Fact/Part0/Segment_0": folder(true, files),
		"Fact/Part0/Segment_0/": folder(true, files)})
	must.Fail(t, must.Err(readTable(dir)), ErrCorrupt, "two folders")
}

// TestSegmentsWithoutSegmentFile lists the folders of segments.
func TestSegmentsWithoutSegmentFile(t *testing.T) {
	_, want := tableRows(t, filepath.Join(goldenDir(t), "table"))
	dir := filepath.Join(copyFolder(t, "table"), "db", "t")
	setStatus(t, dir, func(segments []map[string]any) []map[string]any {
		for _, s := range segments {
			delete(s, "segmentFile")
		}
		return segments
	})
	if _, rows := tableRows(t, dir); !reflect.DeepEqual(rows, want) {
		t.Errorf("%d rows, want %d, or others", len(rows), len(want))
	}
	// An index file of another time is from a load that failed; without the newest one it counts.
	zero := filepath.Join(dir, "Fact", "Part0", "Segment_0")
	writeFile(t, "garbage", zero, "0_batchno0-0-0-1600000000000.carbonindex")
	// In segment 1 an older merged index file does not count, and the merged ones do not either.
	one := filepath.Join(dir, "Fact", "Part0", "Segment_1")
	writeFile(t, "garbage", one, "1_1600000000000.carbonindexmerge")
	writeFile(t, "garbage", one, "0_batchno0-0-1-1700000101000.carbonindex")
	if _, rows := tableRows(t, dir); !reflect.DeepEqual(rows, want) {
		t.Errorf("with old index files: %d rows, want %d, or others", len(rows), len(want))
	}
	must.Do(t, os.RemoveAll(zero))
	must.Fail(t, must.Err(readTable(dir)), ErrCorrupt, "without the folder")
	must.Do(t, os.Mkdir(zero, 0o755))
	must.Fail(t, must.Err(readTable(dir)), ErrCorrupt, "with an empty folder")
}

// TestUpdatedSegmentWithoutSegmentFile adds files of segment 3 to segment 0, as an update at that
// time would, and files of an update that failed.
func TestUpdatedSegmentWithoutSegmentFile(t *testing.T) {
	dir := filepath.Join(copyFolder(t, "table"), "db", "t")
	must.Do(t, os.CopyFS(filepath.Join(dir, "Fact", "Part0", "Segment_0"),
		os.DirFS(filepath.Join(goldenDir(t), "table/db/t/Fact/Part0/Segment_3"))))
	for name, c := range map[string]struct {
		start, end any
		rows       int
		err        error
	}{
		"in the time of the updates": {"1700000102500", "1700000103500", 510, nil},
		"before the updates":         {"1700000103001", "1700000103500", 300, nil},
		"after the updates":          {"1700000102500", "1700000102999", 300, nil},
		"no times":                   {nil, nil, 210, nil}, // the newest
		"a time that is text":        {"x", "1700000103500", 0, ErrCorrupt},
	} {
		t.Run(name, func(t *testing.T) {
			setStatus(t, dir, func(segments []map[string]any) []map[string]any {
				delete(segments[0], "segmentFile")
				delete(segments[0], "updateDeltaStartTimestamp")
				delete(segments[0], "updateDeltaEndTimestamp")
				if c.start != nil {
					segments[0]["updateDeltaStartTimestamp"], segments[0]["updateDeltaEndTimestamp"] = c.start, c.end
				}
				return segments[:1]
			})
			if n, err := readTable(dir); !errors.Is(err, c.err) || err == nil && n != c.rows {
				t.Errorf("%d rows, %v, want %d, %v", n, err, c.rows, c.err)
			}
		})
	}
}

// TestSegmentOutsideOfTheTable adds a folder of the SDK as a segment, with columns of its own names
// as IDs, and deleted rows.
func TestSegmentOutsideOfTheTable(t *testing.T) {
	for folderName, uri := range map[string]string{"sdk-1.4.1-sorted": "", "sdk-2.0.1-sorted": "file:",
		"one-row": "file://", "primitives-pages": ""} {
		t.Run(folderName, func(t *testing.T) {
			_, before := tableRows(t, filepath.Join(goldenDir(t), "table"))
			columns, added := tableRows(t, filepath.Join(goldenDir(t), folderName))
			place := slices.IndexFunc(columns, func(c Column) bool { return c.Name == "id" })
			dir, outside := filepath.Join(copyFolder(t, "table"), "db", "t"), copyFolder(t, folderName)
			setStatus(t, dir, func(segments []map[string]any) []map[string]any {
				return append(segments, map[string]any{"loadName": "4", "loadStatus": "Success",
					"path": uri + outside, "segmentFile": ""})
			})
			editSchema(t, dir, func(columns []anyStruct) []anyStruct {
				for _, c := range columns {
					c[columnInvisible] = string(c[columnName].([]byte)) != "id"
					c[columnType] = i32(int(Long)) // wider than in all files
				}
				return columns
			})
			_, rows := tableRows(t, dir)
			must.Equal(t, len(rows), len(before)+len(added), folderName)
			for i, row := range rows {
				want := []any{nil}
				from, at := before, 0
				if i >= len(before) {
					from, at = added[i-len(before):], place
				} else {
					from = before[i:]
				}
				if id, ok := from[0][at].(int32); ok {
					want[0] = int64(id)
				}
				must.Equal(t, row, want, folderName, i)
			}
		})
	}
}

// TestWiderDecimals reads DECIMAL(12,3) and DECIMAL(30,6) of added files as wider ones.
func TestWiderDecimals(t *testing.T) {
	for _, folderName := range []string{"primitives-pages", "all-null", "sdk-1.4.1-plain"} {
		columns, want := tableRows(t, filepath.Join(goldenDir(t), folderName))
		dir, outside := filepath.Join(copyFolder(t, "table"), "db", "t"), copyFolder(t, folderName)
		setStatus(t, dir, func([]map[string]any) []map[string]any {
			return []map[string]any{{"loadName": "4", "loadStatus": "Success", "path": outside}}
		})
		var wide []int
		editSchema(t, dir, func([]anyStruct) (list []anyStruct) {
			for i, c := range columns {
				if c.Type == Decimal {
					n := newColumn(c.Name, Decimal, false, i)
					n[columnPrecision], n[columnScale] = i32(c.Precision+5), i32(c.Scale+2)
					list, wide = append(list, n), append(wide, i)
				}
			}
			return list
		})
		_, rows := tableRows(t, dir)
		if len(rows) != len(want) || len(wide) == 0 {
			t.Fatalf("%s: %d rows of %d columns, want %d", folderName, len(rows), len(wide), len(want))
		}
		for n, row := range rows {
			for i, place := range wide {
				if want[n][place] == nil && row[i] == nil {
					continue
				}
				w := want[n][place].(batch.Int128)
				for range 2 {
					w, _ = w.Mul10()
				}
				if row[i] != w {
					t.Fatalf("%s: row %d: %v, want %v", folderName, n, row[i], w)
				}
			}
		}
	}
}

// TestMergedSegments reads segments that name the segment that they were merged into.
func TestMergedSegments(t *testing.T) {
	dir := filepath.Join(copyFolder(t, "table"), "db", "t")
	setStatus(t, dir, func(segments []map[string]any) []map[string]any {
		for _, s := range segments[:3] {
			delete(s, "segmentFile")
			s["loadStatus"], s["mergedLoadName"] = "Success", "3"
		}
		return segments[:3]
	})
	must.Equal(t, must.Get(readTable(dir))(t), 210)
}
