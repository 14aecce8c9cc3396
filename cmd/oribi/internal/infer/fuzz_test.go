package infer

import (
	"context"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/oribi-db/oribi/cmd/oribi/internal/csvin"
	"github.com/oribi-db/oribi/internal/cell"
	"github.com/oribi-db/oribi/internal/fuzztest"
	"github.com/oribi-db/oribi/internal/jsonin"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/schema"
)

// Whatever a file of CSV contains, the types that are inferred take all of its values.
func FuzzTypesOfCSVTakeItsValues(f *testing.F) {
	for _, text := range []string{
		"k,v\n1,1.0\n2,2.25\n", "a,b\r1,\"x\"\r,\n", "a\n9223372036854775808\n-0\n1e+300\n",
		"t\n2026-01-01 00:00:00+00:00\n2026-01-01T00:00:00.123456789Z\n",
		"b\nTrue\nfalse\n", "d\n2024-02-29\n0001-01-01\n", "x\ninf\n-Infinity\nnan\n0.1234567890123456789\n1\n",
	} {
		f.Add(text)
	}
	fuzztest.Run(f, func(t *testing.T, text string) {
		for _, exact := range []bool{false, true} {
			columns, err := CSV(context.Background(), strings.NewReader(text), Options{Delimiter: ',', Exact: exact})
			if err != nil {
				return
			}
			s, err := columns.Schema(columns.Names()[:1])
			if err != nil {
				return
			}
			columns.Reasons(s)
			r := csvin.NewReader(strings.NewReader(text), ',')
			must.Get(r.Header(csvin.Names{}))(t)
			for {
				err := r.Next()
				if _, bad := err.(*csvin.BadRecord); bad {
					continue
				}
				if err != nil {
					break
				}
				for i, field := range r.Fit(len(s.Columns)) {
					if len(r.Fit(len(s.Columns))) != len(s.Columns) || len(field.Text) == 0 || !utf8.Valid(field.Text) {
						continue
					}
					must.Do(t, must.Err(cell.FromField(nil, &s.Columns[i], field.Text)), text, field.Text)
				}
			}
		}
	})
}

// The same of JSON, except for numbers that no double has.
func FuzzTypesOfJSONTakeItsValues(f *testing.F) {
	for _, text := range []string{
		`{"k":1,"v":1.0}` + "\n" + `{"k":2,"v":2.25}`, `[{"a":9223372036854775808},{"a":-0},{"a":1e300}]`,
		`{"t":"2026-01-01 00:00:00+00:00","d":"2024-02-29"}`,
		`{"n":{"x":[1,2]},"m":"1.50","b":true}`, `[{"x":"NaN"},{"x":0.1234567890123456789},{"x":1}]`,
	} {
		f.Add(text)
	}
	fuzztest.Run(f, func(t *testing.T, text string) {
		for _, exact := range []bool{false, true} {
			columns, err := JSON(context.Background(), strings.NewReader(text), Options{Exact: exact})
			if err != nil || len(columns.Names()) == 0 {
				return
			}
			s, err := columns.Schema(columns.Names()[:1])
			if err != nil {
				return
			}
			columns.Reasons(s)
			records := jsonin.NewRecords(strings.NewReader(text), csvin.MaxRecordBytes)
			for {
				object, err := records.Next()
				if _, bad := err.(*jsonin.Error); bad || err == nil && object[0] != '{' {
					continue
				}
				if err != nil {
					break
				}
				for w := jsonin.Walk(object); w.Next(); {
					c := &s.Columns[s.Index(string(w.Name))]
					if c.Type == schema.String || jsonin.IsNull(w.Value) || string(w.Value) == `""` {
						continue // takes all values; is no value
					}
					if _, err := strconv.ParseFloat(string(w.Value), 64); c.Type == schema.Double &&
						err != nil && w.Value[0] != '"' {
						continue
					}
					must.Do(t, must.Err(cell.FromJSON(nil, c, w.Value)), text, c.TypeName(), w.Value)
				}
			}
		}
	})
}
