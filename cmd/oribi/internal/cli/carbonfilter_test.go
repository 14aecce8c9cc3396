package cli

import (
	"encoding/json"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/oribi-db/oribi/carbondata"
	"github.com/oribi-db/oribi/cmd/oribi/internal/carbonlines"
	"github.com/oribi-db/oribi/internal/corpustest"
	"github.com/oribi-db/oribi/internal/jsonin"
	"github.com/oribi-db/oribi/internal/must"
)

// goldenFilter is a line of filters.jsonl.
type goldenFilter struct {
	Filter json.RawMessage
	Count  int
	Rows   [][2]int
}

// The rows that filters of the corpus select, as --filter-json and as --where.
func TestCarbonDumpFilters(t *testing.T) {
	asked := 0
	someGoldenCarbon(t, func(t *testing.T, g *goldenCarbon) {
		if g.Filters == 0 || g.Part != nil {
			return
		}
		rows := g.expected(t)
		types := map[string]*carbondata.Column{}
		for _, c := range g.Columns {
			typ := must.Get(carbonlines.ParseType(c[1]))(t)
			types[c[0]] = &typ
		}
		for i, line := range corpustest.Lines(t, filepath.Join(g.dir, "filters.jsonl")) {
			if testing.Short() && i%3 != 0 {
				continue
			}
			var f goldenFilter
			must.Do(t, json.Unmarshal([]byte(line), &f))
			var want strings.Builder
			for _, r := range f.Rows {
				for _, row := range rows[r[0] : r[0]+r[1]] {
					want.WriteString(row + "\n")
				}
			}
			asked++
			same(t, string(f.Filter), succeed(t, "carbondata", "dump", g.dir, "--filter-json", string(f.Filter)),
				want.String())
			where := expression(t, types, f.Filter)
			same(t, where, succeed(t, "carbondata", "dump", g.dir, "--where", where), want.String())
		}
	})
	if asked < 60 {
		t.Errorf("only %d filters: this test sees little", asked)
	}
}

// expression returns a filter as an expression for --where.
func expression(t *testing.T, types map[string]*carbondata.Column, filter []byte) string {
	var parts [][]byte
	for w := jsonin.Walk(filter); w.Next(); {
		parts = append(parts, jsonin.Trim(w.Value))
	}
	name := string(jsonin.String(parts[0]))
	if parts[1][0] == '[' {
		return "(" + expression(t, types, parts[1]) + " " + name + " " + expression(t, types, parts[2]) + ")"
	}
	column, op, c := strconv.Quote(name), string(jsonin.String(parts[1])), types[name]
	switch op {
	case "isnull":
		return column + " is null"
	case "notnull":
		return column + " is not null"
	case "startswith":
		text := strings.NewReplacer(`\`, `\\`, "%", `\%`, "_", `\_`, "'", "''").Replace(string(jsonin.String(parts[2])))
		return column + " like '" + text + "%'"
	case "in", "notin":
		var list []string
		for w := jsonin.Walk(parts[2]); w.Next(); {
			list = append(list, literal(t, c, w.Value))
		}
		return column + " " + strings.Replace(op, "notin", "not in", 1) + " (" + strings.Join(list, ", ") + ")"
	}
	return column + " " + op + " " + literal(t, c, parts[2])
}

func literal(t *testing.T, c *carbondata.Column, value []byte) string {
	text := string(appendGolden(t, nil, c, value))
	switch {
	case text[0] != '"', c.Type == carbondata.Binary:
		return strings.Trim(text, `"`)
	case c.Type == carbondata.Date:
		return "date '" + strings.Trim(text, `"`) + "'"
	}
	return "'" + strings.ReplaceAll(string(jsonin.String([]byte(text))), "'", "''") + "'"
}
