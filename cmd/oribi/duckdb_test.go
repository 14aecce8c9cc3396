package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/internal/pythontest"
)

// answerProgram answers queries over a Parquet file, which are lines of JSON on stdin, in DuckDB.
// It prints the rows of each as a line of JSON.
const answerProgram = `
import sys, json, duckdb
c = duckdb.connect()
c.execute("set timezone='UTC'")
c.execute("create table t as select * from read_parquet(?)", [sys.argv[1]])
for line in sys.stdin:
    rows = c.execute(json.loads(line)).fetchall()
    print(json.dumps([[None if v is None else str(v) for v in row] for row in rows]))
`

// question is a command that reads table t, and the same in SQL.
type question struct {
	args []string
	sql  string
}

// What is in order, in groups, in periods, different, or like a pattern, DuckDB finds too.
func TestScansCountsAndGroupsAreThoseOfDuckDB(t *testing.T) {
	program := pythontest.Find(t, "duckdb")
	for seed := range uint64(2) {
		t.Run(fmt.Sprint("seed=", seed), func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 1))
			dir := t.TempDir()
			store, file := filepath.Join(dir, "store"), filepath.Join(dir, "t.parquet")
			randomTable(t, r, store)
			if _, errs, code := run(t, nil, "table", "export", store, "t", file); code != 0 {
				t.Fatal(errs)
			}
			list := questions(r)
			var in bytes.Buffer
			for _, q := range list {
				json.NewEncoder(&in).Encode(q.sql)
			}
			var errs bytes.Buffer
			cmd := exec.Command(program, "-c", answerProgram, file)
			cmd.Stdin, cmd.Stderr = &in, &errs
			out, err := cmd.Output()
			must.Do(t, err, errs.String())
			answers := json.NewDecoder(bytes.NewReader(out))
			for _, q := range list {
				var want [][]*string
				must.Do(t, answers.Decode(&want))
				var out, errs bytes.Buffer
				if code := runInside(t, append([]string{"table", q.args[0], store, "t"}, q.args[1:]...),
					nil, &out, &errs); code != 0 {
					t.Fatalf("oribi table %q: %s", q.args, &errs)
				}
				got := rowsOf(t, out.String())
				if !slices.EqualFunc(got, want, sameRow) {
					t.Errorf("oribi table %q, %s:\ngot  %s\nwant %s", q.args, q.sql, textOf(got), textOf(want))
				}
			}
		})
	}
}

// randomTable makes a store with a table t, whose rows are in files, in changes of these, and in
// memory.
func randomTable(t *testing.T, r *rand.Rand, store string) {
	succeed(t, nil, "store", "init", store)
	succeed(t, strings.NewReader(`{"columns":[{"name":"id","type":"int32","key":true},{"name":"i","type":"int64","nullable":true},{"name":"u","type":"uint64"},
		{"name":"dec","type":"decimal(12,2)","nullable":true},{"name":"f","type":"double","nullable":true},{"name":"g","type":"double","nullable":true},{"name":"s","type":"string","nullable":true},
		{"name":"few","type":"varchar(9)","nullable":true},{"name":"b","type":"bool","nullable":true},{"name":"d","type":"date","nullable":true},
		{"name":"ts","type":"timestamp","nullable":true}]}`), "table", "create", store, "t", "--schema", "-")
	for _, ids := range [][2]int{{0, 3000}, {2800, 4000}, {1000, 1500}} {
		var lines bytes.Buffer
		for id := ids[0]; id < ids[1]; id++ {
			json.NewEncoder(&lines).Encode(randomRow(r, id))
		}
		if _, errs, code := run(t, &lines, "table", "load", store, "t", "-", "--input-format", "jsonl",
			"--mode", "upsert"); code != 0 {
			t.Fatal(errs)
		}
		if ids[0] == 0 {
			succeed(t, nil, "table", "flush", store, "t")
		}
	}
	succeed(t, nil, "table", "delete", store, "t", "--where", "id between 1400 and 1450")
	succeed(t, nil, "table", "update", store, "t", "--where", "id < 300", "--set", "i=null", "--set", "few=öl")
}

var letters = []string{"a", "b", "ab", "ö", "日", "🦒", "%", "_", `\`, "'", "Z", " "}

func randomText(r *rand.Rand) string {
	var s strings.Builder
	for range r.IntN(7) {
		s.WriteString(letters[r.IntN(len(letters))])
	}
	return s.String()
}

// randomRow returns a row, with times before and after 1970, often close to the ends of periods. No
// condition tests g, since DuckDB's NaN is greater than all numbers and equal to itself there.
func randomRow(r *rand.Rand, id int) map[string]any {
	edges := []int64{0, -62135596800e6, 253402300799999999, 951782400e6, -2203891200e6, 1767225600e6, 3600e6}
	at := edges[r.IntN(len(edges))] + int64(r.IntN(5)-2)*r.Int64N(3)
	if r.IntN(2) == 0 || at < edges[1] || at > edges[2] {
		at = r.Int64N(4e15) - 2e15
	}
	f := math.Round((r.Float64()-0.5)*2e6) / 8
	g := any(f / 3)
	if r.IntN(90) == 0 {
		g = []string{"NaN", "+Inf", "-Inf"}[r.IntN(3)]
	}
	row := map[string]any{
		"id": id, "i": r.IntN(50) - 25, "u": r.Uint64(), "dec": fmt.Sprintf("%d.%02d", r.IntN(9)-4, r.IntN(100)),
		"f": f, "g": g, "s": randomText(r),
		"few": []string{"x", "öl", "", "10%"}[r.IntN(4)], "b": r.IntN(2) == 0,
		"d": []string{"1969-12-31", "1970-01-01", "0001-01-01", "2000-02-29", "1899-12-31"}[r.IntN(5)], "ts": at,
	}
	for _, name := range []string{"i", "dec", "f", "g", "s", "few", "b", "d", "ts"} {
		if r.IntN(12) == 0 {
			row[name] = nil
		}
	}
	return row
}

// questions returns commands with the same in SQL.
func questions(r *rand.Rand) (list []question) {
	columns := []string{"i", "u", "dec", "f", "g", "s", "few", "b", "d", "ts"}
	for _, c := range columns {
		condition := randomCondition(r, 0)
		n := 1 + r.IntN(200)
		read := selected("id") + ", " + selected(c)
		list = append(list,
			question{[]string{"scan", "--columns", "id," + c, "--order", c, "--limit", strconv.Itoa(n)},
				fmt.Sprintf("select %s from t order by %s nulls last, id limit %d", read, c, n)},
			question{[]string{"scan", "--columns", "id," + c, "--order", c, "--desc", "--limit",
				strconv.Itoa(n), "--where", condition},
				fmt.Sprintf("select %s from t where %s order by %s desc nulls last, id limit %d",
					read, inSQL(condition), c, n)},
			question{[]string{"count", "--distinct", c}, fmt.Sprintf("select count(distinct %s) from t", c)},
			question{[]string{"count", "--distinct", c, "--where", condition},
				fmt.Sprintf("select count(distinct %s) from t where %s", c, inSQL(condition))},
			question{[]string{"count", "--where", condition}, "select count(*) from t where " + inSQL(condition)},
		)
	}
	for range 12 {
		by, flags, figures := randomGroups(r), []string{}, []string{"count(*)"}
		for _, c := range []string{"i", "dec", "f", "u", "g"} {
			of := []string{"sum", "avg", "min", "max"}[r.IntN(4)]
			flags, figures = append(flags, "--"+of, c), append(figures, of+"("+c+")")
		}
		condition := randomCondition(r, 0)
		groups, keys, order := groupsInSQL(by)
		args := append([]string{"agg", "--by", strings.Join(by, ","), "--where", condition, "--count"}, flags...)
		from := fmt.Sprintf("from t where %s group by %s", inSQL(condition), keys)
		n := 1 + r.IntN(9)
		list = append(list,
			question{args, fmt.Sprintf("select %s, %s %s order by %s", groups,
				strings.Join(figures, ", "), from, order)},
			question{append(args, "--top", strconv.Itoa(n)),
				fmt.Sprintf("select %s, %s %s order by count(*) desc, %s limit %d", groups,
					strings.Join(figures, ", "), from, order, n)},
		)
	}
	for range 40 {
		condition := randomCondition(r, 2)
		list = append(list, question{[]string{"count", "--where", condition},
			"select count(*) from t where " + inSQL(condition)})
	}
	return list
}

// selected returns the expression whose text equals the command's output for the column.
func selected(column string) string {
	switch column {
	case "ts":
		return "epoch_us(ts)"
	case "d":
		return "d::varchar"
	}
	return column
}

func randomGroups(r *rand.Rand) (by []string) {
	all := []string{"few", "b", "i", "d", "year(ts)", "month(ts)", "day(ts)", "hour(ts)", "year(d)",
		"month(d)", "day(d)", "hour(d)"}
	r.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	return all[:1+r.IntN(2)]
}

// groupsInSQL returns what to select, to group by, and to order by.
func groupsInSQL(by []string) (groups, keys, order string) {
	var g, k, o []string
	for _, b := range by {
		key := b
		if period, column, ok := strings.Cut(strings.TrimSuffix(b, ")"), "("); ok {
			length := map[string]int{"year": 4, "month": 7, "day": 10, "hour": 13}[period]
			key = fmt.Sprintf("left(replace(%s::timestamp::varchar, ' ', 'T'), %d)", column, length)
			g = append(g, key)
		} else {
			g = append(g, selected(b))
		}
		k, o = append(k, key), append(o, key+" nulls last")
	}
	return strings.Join(g, ", "), strings.Join(k, ", "), strings.Join(o, ", ")
}

// randomCondition returns an expression of --where, which may be up to depth levels deep.
func randomCondition(r *rand.Rand, depth int) string {
	if depth > 0 {
		a, b := randomCondition(r, depth-1), randomCondition(r, depth-1)
		return []string{a + " and " + b, a + " or " + b, "not (" + a + ")",
			"(" + a + " or not " + b + ") and " + a}[r.IntN(4)]
	}
	quote := func(s string) string { return "'" + strings.ReplaceAll(s, "'", "''") + "'" }
	literals := map[string]func() string{
		"i":   func() string { return strconv.Itoa(r.IntN(60) - 30) },
		"u":   func() string { return strconv.FormatUint(r.Uint64(), 10) },
		"dec": func() string { return fmt.Sprintf("%d.%02d", r.IntN(9)-4, r.IntN(100)) },
		"f":   func() string { return strconv.FormatFloat(math.Round((r.Float64()-0.5)*2e6)/8, 'f', 3, 64) },
		"s":   func() string { return quote(randomText(r)) },
		"few": func() string { return quote([]string{"x", "öl", "", "10%", "ö"}[r.IntN(5)]) },
		"d":   func() string { return "date '" + []string{"1969-12-31", "1970-01-01", "1899-12-31"}[r.IntN(3)] + "'" },
		"ts": func() string {
			return "timestamp '" + []string{"1970-01-01 00:00:00", "2000-02-29 00:00:00", "1969-12-31 23:59:59.999999",
				"2026-01-01 00:00:00"}[r.IntN(4)] + "'"
		},
	}
	c := []string{"i", "u", "dec", "f", "s", "few", "d", "ts"}[r.IntN(8)]
	literal := literals[c]
	op := []string{"=", "!=", "<>", "<", "<=", ">", ">="}[r.IntN(7)]
	switch r.IntN(6) {
	case 0:
		return c + " " + op + " " + literal()
	case 1:
		return literal() + " " + op + " " + c
	case 2:
		return c + []string{" between ", " not between "}[r.IntN(2)] + literal() + " and " + literal()
	case 3:
		return c + []string{" in (", " not in ("}[r.IntN(2)] + literal() + ", " + literal() + ")"
	case 4:
		return c + []string{" is null", " is not null"}[r.IntN(2)]
	}
	pattern := ""
	for range r.IntN(5) {
		text := letters[r.IntN(len(letters))]
		if strings.Contains(`%_\`, text) && (text != "%" || r.IntN(2) == 0) {
			text = `\` + text
		}
		pattern += []string{"", "%"}[r.IntN(2)] + text
	}
	return []string{"s", "few"}[r.IntN(2)] + []string{" like ",
		" not like "}[r.IntN(2)] + quote(pattern+[]string{"", "%"}[r.IntN(2)])
}

// inSQL returns a condition as DuckDB takes it, which has no escape character by default.
func inSQL(condition string) string {
	var out strings.Builder
	for rest := condition; rest != ""; {
		before, after, ok := strings.Cut(rest, "like '")
		out.WriteString(before)
		if rest = after; !ok {
			break
		}
		end := 0 // of the pattern, in which two quotes are one
		for ; rest[end] != '\'' || strings.HasPrefix(rest[end:], "''"); end++ {
			if rest[end] == '\'' {
				end++
			}
		}
		out.WriteString("like '" + rest[:end] + `' escape '\'`)
		rest = rest[end+1:]
	}
	return "(" + out.String() + ")"
}

// rowsOf parses what the command prints: a number, or objects.
func rowsOf(t *testing.T, out string) (rows [][]*string) {
	for line := range strings.Lines(out) {
		dec := json.NewDecoder(strings.NewReader(line))
		dec.UseNumber()
		var row []*string
		for name := !strings.HasPrefix(line, "{"); ; {
			v, err := dec.Token()
			if err != nil {
				break
			}
			if _, ok := v.(json.Delim); ok {
				continue
			}
			if name = !name; name && strings.HasPrefix(line, "{") {
				continue
			}
			if v == nil {
				row = append(row, nil)
				continue
			}
			s := fmt.Sprint(v)
			row = append(row, &s)
		}
		rows = append(rows, row)
	}
	return rows
}

// sameRow compares a row of ours with one of DuckDB. Sums of floats are rounded otherwise there.
func sameRow(got, want []*string) bool {
	return slices.EqualFunc(got, want, func(g, w *string) bool {
		if sameValue(g, w) {
			return true
		}
		if g == nil || w == nil {
			return false
		}
		a, errA := strconv.ParseFloat(*g, 64)
		b, errB := strconv.ParseFloat(*w, 64)
		return errA == nil && errB == nil && strings.Contains(*g+*w, ".") && math.Abs(a-b) <= 1e-8*max(1, math.Abs(b))
	})
}

func textOf(rows [][]*string) string {
	var out strings.Builder
	for _, row := range rows[:min(len(rows), 40)] {
		for _, v := range row {
			fmt.Fprintf(&out, "%q ", text(v))
		}
		out.WriteString("; ")
	}
	return out.String()
}
