package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/big"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/internal/pythontest"
)

// frameProgram writes a frame of pandas to files in the directory of its argument, and prints for
// each file what DuckDB reads: a line with the file, the types by column, and the rows as text.
const frameProgram = `
import sys, os, json, warnings
import numpy as np, pandas as pd, duckdb
warnings.simplefilter("ignore")
os.chdir(sys.argv[1])
time = lambda *texts: pd.to_datetime(list(texts), format="ISO8601")
df = pd.DataFrame({
 "id": [1, 2, 3],
 "f": [1.0, 2.25, -3.5],
 "gap": [1.0, np.nan, 30.0],
 "tiny": [1e-7, 1e16, 0.1 + 0.2],
 "inf": [np.inf, -np.inf, 1.0],
 "zero": [-0.0, 0.0, 0.5],
 "b": [True, False, True],
 "maybe": pd.Series([True, None, False], dtype=object),
 "int": pd.Series([7, None, -7], dtype="Int64"),
 "big": np.array([2**63, 1, 2**64 - 1], dtype=np.uint64),
 "code": ["007", "+5", "1e5"],
 "word": ["nan", "inf", None],
 "t": time("2026-01-01 10:00:00.5", "2026-01-02", "1969-12-31 23:59:59.999999"),
 "tz": time("2026-01-01 10:00:00", "2026-01-02", "2026-01-03").tz_localize("UTC"),
 "day": time("2026-01-01", "0001-01-01", "9999-12-31"),
})
nested = df.assign(n=[{"x": [1, "y"]}, [1, 2.5], None])
df.to_csv("frame.csv", index=False)
nested.to_json("records.json", orient="records", double_precision=15)
nested.to_json("lines.jsonl", orient="records", lines=True, double_precision=15, date_format="iso", date_unit="us")
df.to_parquet("frame.parquet")
for file in ["frame.csv", "records.json", "lines.jsonl", "frame.parquet"]:
    duckdb.sql("set timezone='UTC'")
    r = duckdb.sql(f"select * from '{file}' order by id")
    rows = [[None if v is None else str(v) for v in row] for row in r.fetchall()]
    print(json.dumps({"file": file, "columns": r.columns, "types": [str(t) for t in r.types], "rows": rows}))
`

// read is a file as a program has read it: columns, types, and rows.
type read struct {
	File    string
	Columns []string
	Types   []string
	Rows    [][]*string
}

// like are our types for values of DuckDB's type, in the order of preference.
var like = map[string]string{
	"BIGINT": "int64", "DOUBLE": "double decimal", "VARCHAR": "string", "JSON": "string", "BOOLEAN": "bool",
	"HUGEINT": "int64 decimal(38,0)", "UBIGINT": "uint64", "TIMESTAMP": "timestamp",
	"TIMESTAMP WITH TIME ZONE": "timestamp", "DATE": "date",
}

// better are columns with a better type than DuckDB's, by file and column.
var better = map[string]string{
	"frame.csv inf": "double", "frame.csv word": "string", // inf is a number next to numbers only
	"lines.jsonl t": "timestamp", "lines.jsonl day": "timestamp", // which are text to it
}

// Frames of pandas have the same types and values as DuckDB reads, or better ones.
func TestPandasFramesLoadAsInDuckDB(t *testing.T) {
	program, dir := pythontest.Find(t, "pandas", "pyarrow", "duckdb"), t.TempDir()
	var errs bytes.Buffer
	cmd := exec.Command(program, "-c", frameProgram, dir)
	cmd.Stderr = &errs
	out, err := cmd.Output()
	must.Do(t, err, errs.String())
	store := filepath.Join(dir, "store")
	succeed(t, nil, "store", "init", store)
	for line := range strings.Lines(string(out)) {
		var want read
		must.Do(t, json.Unmarshal([]byte(line), &want))
		if _, errs, code := run(t, nil, "table", "load", store, want.File, filepath.Join(dir, want.File),
			"--create", "--key", "id"); code != 0 {
			t.Errorf("%s: %s", want.File, errs)
			continue
		}
		types := typesOf(t, store, want.File)
		var rows []map[string]json.RawMessage
		if err := json.Unmarshal([]byte(succeed(t, nil, "table", "scan", store, want.File, "--format", "json")),
			&rows); err != nil || len(rows) != len(want.Rows) {
			t.Fatalf("%s: %d rows, %v", want.File, len(rows), err)
		}
		for c, name := range want.Columns {
			place := want.File + " " + name
			allowed, isBetter := better[place]
			if !isBetter {
				allowed = like[want.Types[c]]
			}
			if got := types[name]; !strings.Contains(" "+allowed, " "+strings.SplitN(got, "(", 2)[0]) {
				t.Errorf("%s is %s, want %s, for DuckDB's %s", place, got, allowed, want.Types[c])
			}
			for i, row := range rows {
				if got, want := plainValue(row[name], types[name]), want.Rows[i][c]; !sameValue(got, want) {
					t.Errorf("%s, row %d: %s, want %s", place, i, text(got), text(want))
				}
			}
		}
	}
}

// typesOf returns the types of a table's columns.
func typesOf(t *testing.T, store, table string) map[string]string {
	t.Helper()
	var described struct {
		Columns []struct{ Name, Type string }
	}
	must.Do(t, json.Unmarshal([]byte(succeed(t, nil, "table", "describe", store, table, "--format", "json")),
		&described))
	types := map[string]string{}
	for _, c := range described.Columns {
		types[c.Name] = c.Type
	}
	return types
}

// plainValue returns a value as text, nil for null.
func plainValue(value json.RawMessage, typeName string) *string {
	if string(value) == "null" {
		return nil
	}
	s := string(value)
	if s[0] == '"' {
		json.Unmarshal(value, &s)
	}
	if typeName == "timestamp" {
		micros, _ := new(big.Int).SetString(s, 10)
		s = fmt.Sprintf("%d µs", micros)
	}
	return &s
}

func text(s *string) string {
	if s == nil {
		return "null"
	}
	return *s
}

// sameValue compares a value of ours with the text that Python prints for DuckDB's.
func sameValue(got, want *string) bool {
	if got == nil || want == nil {
		return got == want
	}
	g, w := *got, *want
	if micros, ok := strings.CutSuffix(g, " µs"); ok {
		return micros == microsOf(w)
	}
	if g == w || strings.EqualFold(g, w) && (g == "true" || g == "false") ||
		strings.EqualFold(strings.TrimPrefix(g, "+"), w) {
		return true
	}
	a, ok := new(big.Rat).SetString(g)
	b, also := new(big.Rat).SetString(w)
	return ok && also && a.Cmp(b) == 0 && strings.HasPrefix(g, "-") == strings.HasPrefix(w, "-")
}

// microsOf parses the forms in which Python and pandas write times.
func microsOf(text string) string {
	for _, layout := range []string{"2006-01-02 15:04:05", "2006-01-02 15:04:05-07:00",
		"2006-01-02T15:04:05Z07:00", "2006-01-02T15:04:05"} {
		if at, err := time.Parse(layout, text); err == nil {
			return strconv.FormatInt(at.UnixMicro(), 10)
		}
	}
	return text
}
