package carbondata

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/oribi-db/oribi/internal/must"
)

// copyFolder copies what CarbonData wrote of a golden folder, but no locks, into a new one.
func copyFolder(t *testing.T, folder string) string {
	from, dir := filepath.Join(goldenDir(t), folder), t.TempDir()
	must.Do(t, filepath.WalkDir(from, func(path string, e os.DirEntry, err error) error {
		to := dir + strings.TrimPrefix(path, from)
		switch {
		case err != nil || path == from:
			return err
		case e.Name() == "LockFiles":
			return filepath.SkipDir
		case e.IsDir():
			return os.Mkdir(to, 0o755)
		case strings.Contains(e.Name(), ".json"): // what the corpus says about the folder
			return nil
		}
		b, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		return os.WriteFile(to, b, 0o644)
	}))
	return dir
}

// readTable returns how many rows the table at path has.
func readTable(path string) (n int, err error) {
	table, err := Open(path)
	if err != nil {
		return 0, err
	}
	defer table.Close()
	for _, err := range table.Rows(context.Background(), ScanOptions{}) {
		if err != nil {
			return n, err
		}
		n++
	}
	return n, nil
}

// damage is a change to one file of a folder: new bytes, or nil to remove it.
type damage struct {
	file   string
	change func([]byte) []byte
	want   error
}

func remove([]byte) []byte { return nil }

func half(b []byte) []byte { return b[:len(b)/2] }

func garbage([]byte) []byte { return []byte("garbage") }

func replace(old, new string) func([]byte) []byte {
	return func(b []byte) []byte { return bytes.ReplaceAll(b, []byte(old), []byte(new)) }
}

// checkDamage makes the changes in dir, one at a time, and reads the table there.
func checkDamage(t *testing.T, dir string, cases map[string]damage) {
	for name, d := range cases {
		t.Run(name, func(t *testing.T) {
			checkOneDamage(t, dir, d)
		})
	}
}

// checkOneDamage makes the change in dir, reads the table there, and takes the change back.
func checkOneDamage(t *testing.T, dir string, d damage) {
	paths, err := filepath.Glob(filepath.Join(dir, d.file))
	if err != nil || len(paths) == 0 {
		t.Fatalf("%s: %v", d.file, err)
	}
	old := must.Get(os.ReadFile(paths[0]))(t)
	b := d.change(old)
	if bytes.Equal(b, old) {
		t.Fatal("nothing was changed")
	}
	if b != nil {
		err = os.WriteFile(paths[0], b, 0o644)
	} else {
		err = os.Remove(paths[0])
	}
	must.Do(t, err)
	defer writeFile(t, string(old), paths[0])
	n, err := readTable(dir)
	if !errors.Is(err, d.want) || strings.Contains(fmt.Sprint(err), "Go value") {
		t.Errorf("%d rows, %v, want %v", n, err, d.want)
	}
	t.Log(err)
}

func TestDamagedTablesAreRefused(t *testing.T) {
	const (
		status  = "db/t/Metadata/tablestatus"
		schema  = "db/t/Metadata/schema"
		segment = "db/t/Metadata/segments/0_1700000100000.segment"
		merged  = "db/t/Fact/Part0/Segment_1/*.carbonindexmerge"
		index   = "db/t/Fact/Part0/Segment_0/0_*.carbonindex"
		data    = "db/t/Fact/Part0/Segment_0/part-0-1*.carbondata"
	)
	checkDamage(t, copyFolder(t, "table"), map[string]damage{
		"no tablestatus":      {status, remove, ErrCorrupt},
		"half of tablestatus": {status, half, ErrCorrupt},
		"no list of segments": {status, func([]byte) []byte { return []byte("{}") }, ErrCorrupt},
		"an unknown status":   {status, replace("Marked for Delete", "Marked"), ErrUnsupported},
		"a streaming segment": {status, replace("Marked for Delete", "Streaming"), ErrUnsupported},
		"a segment of Parquet files": {status,
			replace(`"loadName":"0"`, `"loadName":"0","fileFormat":"parquet"`), ErrUnsupported},
		"a segment in another system": {status,
			replace(`"segmentFile":"0_1700000100000.segment"`, `"path":"hdfs://x/y"`), ErrUnsupported},
		"no update status": {status,
			replace(`"loadName":"0"`, `"loadName":"0","updateStatusFileName":"x"`), ErrCorrupt},
		"a segment file in a directory": {status,
			replace("0_1700000100000.segment", "../segments/0_1700000100000.segment"), ErrCorrupt},
		"no schema file":              {schema, remove, ErrCorrupt},
		"half of the schema file":     {schema, half, ErrCorrupt},
		"no segment file":             {segment, remove, ErrCorrupt},
		"half of a segment file":      {segment, half, ErrCorrupt},
		"a folder above the table":    {segment, replace("/Fact", "/../Fact"), ErrCorrupt},
		"no merged index file":        {merged, remove, ErrCorrupt},
		"half of a merged index file": {merged, half, ErrCorrupt},
		"garbage as an index file":    {index, garbage, ErrCorrupt},
		"half of an index file":       {index, half, ErrCorrupt},
		"no data file":                {data, remove, ErrCorrupt},
		"half of a data file":         {data, half, ErrCorrupt},
	})
}

func TestFilesThatNoSegmentNamesAreIgnored(t *testing.T) {
	for _, file := range []string{"db/t/Metadata/segments/2_1700000102000.segment",
		"db/t/Metadata/segments/1_1700000101000.segment", "db/t/Fact/Part0/Segment_2/*.carbondata"} {
		dir := copyFolder(t, "table")
		paths, _ := filepath.Glob(filepath.Join(dir, file))
		must.Equal(t, len(paths), 1, file, paths)
		must.Do(t, os.WriteFile(paths[0], []byte("garbage"), 0o644))
		must.Equal(t, must.Get(readTable(dir))(t), 680, file)
	}
}

func TestOpenRefusesTwoTables(t *testing.T) {
	dir := copyFolder(t, "table")
	must.Do(t, os.CopyFS(filepath.Join(dir, "db", "u"), os.DirFS(filepath.Join(dir, "db", "t"))))
	if _, err := readTable(dir); err == nil || !strings.Contains(err.Error(), "more than one table") ||
		errors.Is(err, ErrUnsupported) {
		t.Errorf("two tables below the folder: %v", err)
	}
	must.Equal(t, must.Get(readTable(filepath.Join(dir, "db", "u")))(t), 680, "one of two")
}

func TestOpenWithoutDataFiles(t *testing.T) {
	must.Fail(t, must.Err(Open(t.TempDir())), os.ErrNotExist, "an empty folder")
}

func TestDamagedDeletesAreRefused(t *testing.T) {
	checkDamage(t, copyFolder(t, "iud-update"), map[string]damage{
		"half":                {"*.deletedelta", half, ErrCorrupt},
		"a row past the page": {"*.deletedelta", replace("[4,", "[400,"), ErrCorrupt},
		"a negative row":      {"*.deletedelta", replace("[4,", "[-4,"), ErrCorrupt},
		"a page that is not":  {"*.deletedelta", replace(`"0_2"`, `"0_9"`), ErrCorrupt},
		"a key without page":  {"*.deletedelta", replace(`"0_2"`, `"0"`), ErrCorrupt},
		"another data file":   {"*.deletedelta", replace("part-0-0", "part-0-1"), ErrCorrupt},
		"no data file":        {"part-0-0*.carbondata", remove, ErrCorrupt},
	})
}
