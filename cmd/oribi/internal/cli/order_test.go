package cli

import (
	"cmp"
	"fmt"
	"github.com/oribi-db/oribi/internal/must"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// orderedRow is a row of the model: the values of its columns as numbers or strings, nil for NULL.
type orderedRow struct {
	id     int
	values map[string]any
}

// compareModel is the order of two values of the model, neither NULL.
func compareModel(a, b any) int {
	switch a := a.(type) {
	case string:
		return strings.Compare(a, b.(string))
	case int:
		return cmp.Compare(a, b.(int))
	}
	x, y := a.(float64), b.(float64)
	switch {
	case math.IsNaN(x) || math.IsNaN(y):
		return cmp.Compare(b2i(math.IsNaN(x)), b2i(math.IsNaN(y)))
	case x < y:
		return -1
	case x > y:
		return 1
	}
	return 0
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}

// orderedTable makes a table t in a new store, and its rows in key order, part of them in files.
func orderedTable(t *testing.T, r *rand.Rand, n int) (store string, rows []orderedRow) {
	t.Helper()
	dir := t.TempDir()
	store = filepath.Join(dir, "s")
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		must.Do(t, os.WriteFile(path, []byte(text), 0o666))
		return path
	}
	succeed(t, "store", "init", store)
	succeed(t, "table", "create", store, "t", "--schema", file("schema", `{"columns":[{"name":"id","type":"int32","key":true},
		{"name":"i","type":"int64","nullable":true},{"name":"f","type":"double","nullable":true},{"name":"s","type":"string","nullable":true},
		{"name":"d","type":"decimal(9,2)","nullable":true},{"name":"day","type":"date","nullable":true}]}`))
	floats := []float64{math.NaN(), math.Inf(1), math.Inf(-1), math.Copysign(0, -1), 0, 1.5, -2, 7}
	texts := map[bool]*strings.Builder{false: {}, true: {}}
	for _, b := range texts {
		b.WriteString("id,i,f,s,d,day\n")
	}
	for id := range n {
		i, f, s, d, day := r.IntN(40)-20, floats[r.IntN(len(floats))], fmt.Sprintf("%03b", r.IntN(64)),
			r.IntN(2000)-1000, r.IntN(20)-10
		row := orderedRow{id, map[string]any{"i": i, "f": f, "s": s, "d": d, "day": day}}
		fields := []string{fmt.Sprint(id), fmt.Sprint(i), strings.TrimPrefix(fmt.Sprint(f), "+"), s,
			fmt.Sprintf("%.2f", float64(d)/100), carbonDate(day).Format("2006-01-02")}
		if math.Signbit(f) && f == 0 {
			fields[2] = "-0"
		}
		for k, name := range []string{"i", "f", "s", "d", "day"} {
			if r.IntN(6) == 0 {
				row.values[name], fields[k+1] = nil, ""
			}
		}
		rows = append(rows, row)
		fmt.Fprintln(texts[r.IntN(2) == 0], strings.Join(fields, ","))
	}
	for half, b := range texts {
		command(nil, "table", "load", store, "t", file(fmt.Sprint(half), b.String()))
		if half {
			succeed(t, "table", "flush", store, "t")
		}
	}
	must.Equal(t, succeed(t, "table", "count", store, "t"), fmt.Sprintln(n), n)
	return store, rows
}

// The oracle is a stable sort of all rows, which are in key order.
func TestScanInOrderOfColumnAgreesWithSort(t *testing.T) {
	r := rand.New(rand.NewPCG(36, 4))
	store, rows := orderedTable(t, r, 500)
	for round := range 60 {
		by := []string{"i", "f", "s", "d", "day"}[round%5]
		descending, limit := r.IntN(2) == 0, []int{1, 7, 100, 499, 500, 501, 100_000}[r.IntN(7)]
		args := []string{"table", "scan", store, "t", "--order", by, "--limit", fmt.Sprint(limit),
			"--columns", "id", "--format", "csv"}
		selected := slices.Clone(rows)
		if descending {
			args = append(args, "--desc")
		}
		if r.IntN(3) == 0 {
			args = append(args, "--where", "id >= 250")
			selected = selected[250:]
		}
		slices.SortStableFunc(selected, func(x, y orderedRow) int {
			a, b := x.values[by], y.values[by]
			switch {
			case a == nil || b == nil:
				return cmp.Compare(b2i(a == nil), b2i(b == nil))
			case descending:
				return compareModel(b, a)
			}
			return compareModel(a, b)
		})
		want := "id\n"
		for _, row := range selected[:min(limit, len(selected))] {
			want += fmt.Sprintln(row.id)
		}
		same(t, strings.Join(args[4:], " "), succeed(t, args...), want)
	}
}

func TestTopGroupsAndDistinctAgreeWithModel(t *testing.T) {
	store, rows := orderedTable(t, rand.New(rand.NewPCG(36, 5)), 500)
	type group struct {
		key   any
		count int
	}
	var groups []group
	for _, row := range rows {
		g := slices.IndexFunc(groups, func(g group) bool { return g.key == row.values["i"] })
		if g < 0 {
			g, groups = len(groups), append(groups, group{key: row.values["i"]})
		}
		groups[g].count++
	}
	distinct := 0
	for _, g := range groups {
		distinct += b2i(g.key != nil)
	}
	same(t, "distinct", succeed(t, "table", "count", store, "t", "--distinct", "i"), fmt.Sprintln(distinct))
	slices.SortFunc(groups, func(x, y group) int {
		if order := cmp.Compare(y.count, x.count); order != 0 || x.key == nil || y.key == nil {
			return cmp.Or(order, cmp.Compare(b2i(x.key == nil), b2i(y.key == nil)))
		}
		return compareModel(x.key, y.key)
	})
	for _, top := range []int{1, 5, len(groups), 1000} {
		want := ""
		for _, g := range groups[:min(top, len(groups))] {
			key := fmt.Sprint(g.key)
			if g.key == nil {
				key = "null"
			}
			want += fmt.Sprintf("{\"i\":%s,\"count\":%d}\n", key, g.count)
		}
		same(t, fmt.Sprint("top ", top),
			succeed(t, "table", "agg", store, "t", "--by", "i", "--count", "--top", fmt.Sprint(top)), want)
	}
}

// The oracle is package time, which formats each time; texts of years of four digits are in the
// order of time.
func TestGroupsByPeriodAgreeWithModel(t *testing.T) {
	r := rand.New(rand.NewPCG(36, 6))
	dir := t.TempDir()
	store, file := filepath.Join(dir, "s"), filepath.Join(dir, "rows.csv")
	succeed(t, "store", "init", store)
	text, times := "id,ts,g,d\n", []*time.Time{}
	for id := range 3000 {
		at := time.Date(1969, 12, 30, 0, 0, 0, 0,
			time.UTC).Add(time.Duration(r.Int64N(int64(100 * time.Hour)))).Truncate(time.Microsecond)
		if id%3 == 0 {
			at = at.AddDate(r.IntN(2000)-1000, r.IntN(12), 0)
		}
		if id%10 == 9 {
			times = append(times, nil)
			text += fmt.Sprintf("%d,,%d,\n", id, id%2)
			continue
		}
		times = append(times, &at)
		text += fmt.Sprintf("%d,%s,%d,%s\n", id, at.Format("2006-01-02T15:04:05.000000Z"),
			id%2, at.Format(time.DateOnly))
	}
	must.Do(t, os.WriteFile(file, []byte(text), 0o666))
	for _, stored := range []bool{false, true} {
		if stored {
			succeed(t, "table", "flush", store, "t")
		} else {
			exits(t, 0, "table", "load", store, "t", file, "--create", "--key", "id")
		}
		for period, layout := range map[string]string{"year": "2006", "month": "2006-01",
			"day": "2006-01-02", "hour": "2006-01-02T15"} {
			for _, column := range []string{"ts", "d"} {
				counts := map[string]int{}
				for id, at := range times {
					key := "~" // NULL is last
					if at != nil {
						key = at.Format(layout)
						if column == "d" {
							key = at.Truncate(24 * time.Hour).Format(layout)
						}
					}
					counts[fmt.Sprintf("%s,%d", key, id%2)]++
				}
				want := fmt.Sprintf("%s(%s),g,count\n", period, column)
				for _, key := range slices.Sorted(maps.Keys(counts)) {
					want += fmt.Sprintf("%s,%d\n", strings.TrimPrefix(key, "~"), counts[key])
				}
				args := []string{"table", "agg", store, "t", "--by",
					fmt.Sprintf("%s(%s),g", period, column), "--count", "--format", "csv"}
				same(t, fmt.Sprint(period, column, stored), succeed(t, args...), want)
			}
		}
	}
}
