package storetest

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/bits-and-blooms/bloom/v3"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/internal/seedtest"
	"github.com/oribi-db/oribi/schema"
	"github.com/oribi-db/oribi/vfs"
)

// truth is a value of SQL's three-valued logic.
type truth int

const (
	no truth = iota - 1
	unknown
	yes
)

func truthOf(b bool) truth {
	if b {
		return yes
	}
	return no
}

// condition is a predicate with the function that decides it for one row.
type condition struct {
	predicate oribi.Predicate
	of        func(row oribi.Row) truth
}

// comparison is a condition on one column. holds is called with a value that is not NULL.
func comparison(column string, p oribi.Predicate, holds func(v any) bool) condition {
	return condition{p, func(row oribi.Row) truth {
		if row[column] == nil {
			return unknown
		}
		return truthOf(holds(row[column]))
	}}
}

// predicateColumns has a column of each kind of comparison, most with NULLs.
func predicateColumns(t *testing.T) *schema.Schema {
	t.Helper()
	s := must.Get(schema.New([]schema.Column{{Name: "k", Type: schema.Int64},
		{Name: "n", Type: schema.Int32, Nullable: true},
		{Name: "full", Type: schema.Int64}, {Name: "f", Type: schema.Double, Nullable: true},
		{Name: "s", Type: schema.String, Nullable: true}}, 1))(t)
	return s
}

var predicateTexts = []string{"", "a", "ab", "abc", "b", "ba", "c\xc3\xbf", "c\xc3\xbfz"}

func randomPredicateRow(r *rand.Rand, k int64) oribi.Row {
	row := oribi.Row{"k": k, "n": nil, "full": int64(r.IntN(6)), "f": nil, "s": nil}
	if r.IntN(4) > 0 {
		row["n"] = int32(r.IntN(6))
	}
	if r.IntN(4) > 0 {
		row["f"] = []float64{math.NaN(), math.Inf(-1), -1.5, 0, math.Copysign(0, -1), 2, math.Inf(1)}[r.IntN(7)]
	}
	if r.IntN(4) > 0 {
		row["s"] = predicateTexts[r.IntN(len(predicateTexts))]
	}
	return row
}

func asFloat(v any) float64 {
	switch x := v.(type) {
	case int32:
		return float64(x)
	case int64:
		return float64(x)
	}
	return v.(float64)
}

// randomCondition returns a tree of at most the given number of levels.
func randomCondition(r *rand.Rand, levels int) condition {
	if levels > 1 && r.IntN(3) > 0 {
		var predicates []oribi.Predicate
		var parts []condition
		for range r.IntN(4) {
			parts = append(parts, randomCondition(r, levels-1))
			predicates = append(predicates, parts[len(parts)-1].predicate)
		}
		switch r.IntN(3) {
		case 0:
			return condition{oribi.And(predicates...), func(row oribi.Row) truth {
				out := yes
				for _, c := range parts {
					out = min(out, c.of(row))
				}
				return out
			}}
		case 1:
			return condition{oribi.Or(predicates...), func(row oribi.Row) truth {
				out := no
				for _, c := range parts {
					out = max(out, c.of(row))
				}
				return out
			}}
		}
		c := randomCondition(r, levels-1)
		return condition{oribi.Not(c.predicate), func(row oribi.Row) truth { return -c.of(row) }}
	}
	if r.IntN(4) == 0 {
		return randomTextCondition(r)
	}
	column := []string{"n", "full", "f"}[r.IntN(3)]
	a := r.IntN(6)
	x := float64(a)
	switch r.IntN(10) {
	case 0:
		return comparison(column, oribi.Eq(column, a), func(v any) bool { return asFloat(v) == x })
	case 1:
		return comparison(column, oribi.Ne(column, a), func(v any) bool { return asFloat(v) != x })
	case 2:
		return comparison(column, oribi.Lt(column, a), func(v any) bool { return asFloat(v) < x })
	case 3:
		return comparison(column, oribi.Le(column, a), func(v any) bool { return asFloat(v) <= x })
	case 4:
		return comparison(column, oribi.Gt(column, a), func(v any) bool { return asFloat(v) > x })
	case 5:
		return comparison(column, oribi.Ge(column, a), func(v any) bool { return asFloat(v) >= x })
	case 6:
		b := r.IntN(6)
		return comparison(column, oribi.Between(column, a, b), func(v any) bool {
			return asFloat(v) >= x && asFloat(v) <= float64(b)
		})
	case 7:
		values := []int{a, r.IntN(6), r.IntN(6)}[:r.IntN(4)]
		return comparison(column, oribi.In(column, values...), func(v any) bool {
			return slices.ContainsFunc(values, func(i int) bool { return asFloat(v) == float64(i) })
		})
	case 8:
		return condition{oribi.IsNull(column), func(row oribi.Row) truth { return truthOf(row[column] == nil) }}
	}
	return condition{oribi.NotNull(column), func(row oribi.Row) truth { return truthOf(row[column] != nil) }}
}

func randomTextCondition(r *rand.Rand) condition {
	text := predicateTexts[r.IntN(len(predicateTexts))]
	switch r.IntN(6) {
	case 0:
		return comparison("s", oribi.HasPrefix("s", text), func(v any) bool {
			return strings.HasPrefix(v.(string), text)
		})
	case 1:
		return comparison("s", oribi.Eq("s", text), func(v any) bool { return v == text })
	case 2:
		filter := bloom.New(1<<16, 4) // so large that no false positives occur here
		filter.AddString(text)
		return comparison("s", oribi.InBloom("s", filter), func(v any) bool { return v == text })
	case 3:
		return comparison("s", oribi.HasSuffix("s", text), func(v any) bool {
			return strings.HasSuffix(v.(string), text)
		})
	case 4:
		return comparison("s", oribi.Contains("s", text), func(v any) bool {
			return strings.Contains(v.(string), text)
		})
	}
	return comparison("s", oribi.Ge("s", text), func(v any) bool { return v.(string) >= text })
}

// predicateTable has rows in files, in files with changes, and in memory.
func predicateTable(t *testing.T, r *rand.Rand) (*oribi.Store, *oribi.Table, map[int64]oribi.Row) {
	t.Helper()
	store := must.Get(oribi.Open("/p", &oribi.Options{FS: vfs.NewMem(), Manual: true}))(t)
	t.Cleanup(func() { store.Close() })
	table := must.Get(store.CreateTable("p", predicateColumns(t)))(t)
	rows := map[int64]oribi.Row{}
	for range 3 {
		b := store.NewBatch()
		for range 2000 {
			k := int64(r.IntN(6000))
			rows[k] = randomPredicateRow(r, k)
			b.Upsert(table, rows[k])
		}
		must.Get(b.Commit(t.Context(), oribi.NoSync))(t)
		if r.IntN(3) > 0 {
			must.Do(t, table.Flush(t.Context()))
		}
	}
	return store, table, rows
}

func TestPredicatesMatchSQLLogic(t *testing.T) {
	r := seedtest.Rand(t)
	_, table, rows := predicateTable(t, r)
	for range seedtest.Rounds(300, 300) {
		c := randomCondition(r, 4)
		var want []int64
		for k, row := range rows {
			if c.of(row) == yes {
				want = append(want, k)
			}
		}
		slices.Sort(want)
		var got []int64
		for row, err := range table.Scan(t.Context(), oribi.Columns("k"), oribi.Where(c.predicate)).Rows() {
			must.Do(t, err, c.predicate)
			got = append(got, row["k"].(int64))
		}
		must.Equal(t, got, want, c.predicate, "rows", len(want))
		n := must.Get(table.Count(t.Context(), oribi.Where(c.predicate)))(t)
		must.Equal(t, n, int64(len(want)), c.predicate, "counted rows")
	}
}

// A condition of a write batch gives the same result as in a scan.
func TestConditionsMatchSQLLogic(t *testing.T) {
	r := seedtest.Rand(t)
	store, table, rows := predicateTable(t, r)
	for k, row := range rows {
		c := randomCondition(r, 3)
		b := store.NewBatch()
		b.If(table, oribi.Row{"k": k}, c.predicate)
		_, err := b.Commit(t.Context(), oribi.NoSync)
		if want := c.of(row) == yes; want != (err == nil) || err != nil && !errors.Is(err, oribi.ErrConflict) {
			t.Fatalf("row %v: %v: %v, want %v", row, c.predicate, err, want)
		}
	}
}

func TestPredicateReadsLikeSQL(t *testing.T) {
	date := time.Date(2024, 2, 29, 0, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		p    oribi.Predicate
		want string
	}{
		{oribi.Predicate{}, "TRUE"},
		{oribi.Or(), "FALSE"},
		{oribi.And(oribi.Eq("country", "JP"), oribi.Gt("qty", 90)), "country = 'JP' AND qty > 90"},
		{oribi.Or(oribi.Eq("a", 1), oribi.And(oribi.Ne("b", 2.5), oribi.Le("c", true))),
			"a = 1 OR (b <> 2.5 AND c <= TRUE)"},
		{oribi.And(oribi.Lt("a", 1), oribi.And(oribi.Or(oribi.Ge("b", 2), oribi.IsNull("b")))),
			"a < 1 AND (b >= 2 OR b IS NULL)"},
		{oribi.And(oribi.Lt("a", 1), oribi.And(oribi.Eq("b", 1), oribi.NotNull("c"))),
			"a < 1 AND b = 1 AND c IS NOT NULL"},
		{oribi.Not(oribi.Or(oribi.Eq("a", 1), oribi.Eq("a", 2))), "NOT (a = 1 OR a = 2)"},
		{oribi.In("n", 1, 2, 3), "n IN (1, 2, 3)"},
		{oribi.Between("d", date, oribi.NewDecimal(150, 2)), "d BETWEEN '2024-02-29T00:00:00Z' AND 1.50"},
		{oribi.HasPrefix("s", `50%_\`), `s LIKE '50\%\_\\%'`},
		{oribi.HasPrefix("s", []byte{0, 255}), "starts_with(s, X'00ff')"},
		{oribi.Eq("odd \"name", "it's"), `"odd ""name" = 'it''s'`},
		{oribi.Eq("s", "a\nb\u202e\""), `s = E'a\nb\u202e"'`},
		{oribi.Eq("b", oribi.Cell{1, 2}), "b = X'0102'"},
		{oribi.Eq("n", nil), "n = NULL"},
		{oribi.InBloom("n", bloom.New(64, 1)), "n IN bloom(64 bits)"},
	} {
		must.Equal(t, c.p.String(), c.want)
	}
}

func TestPredicateKeepsItsValues(t *testing.T) {
	text, number, list := []byte("ab"), 1, []oribi.Predicate{oribi.Eq("n", 1), oribi.Eq("n", 2)}
	all := []oribi.Predicate{oribi.Eq("b", text), oribi.Eq("n", &number), oribi.And(list...), oribi.In("b", text),
		oribi.Eq("b", oribi.Cell(text))}
	before := fmt.Sprint(all)
	text[0], number, list[0] = 'z', 7, oribi.IsNull("n")
	must.Equal(t, fmt.Sprint(all), before, "predicates changed with the caller's values", before)
}

func TestPredicateErrorsComeWithTheRead(t *testing.T) {
	store, table, _ := predicateTable(t, seedtest.Rand(t))
	for _, c := range []struct {
		p    oribi.Predicate
		want error
		text string
	}{
		{oribi.Eq("nope", 1), oribi.ErrNoColumn, `oribi: table "p": column "nope"`},
		{oribi.Not(oribi.Or(oribi.Eq("n", 1), oribi.IsNull("nope"))), oribi.ErrNoColumn, `"nope"`},
		{oribi.Eq("n", "one"), oribi.ErrSchema, `column "n": value 'one': a string does not fit type int32`},
		{oribi.Gt("n", 1<<40), oribi.ErrSchema, "1099511627776"},
		{oribi.Gt("n", 1.5), oribi.ErrSchema, "1.5 cannot be represented exactly as int32"},
		{oribi.Eq("n", nil), oribi.ErrSchema, "use IsNull"},
		{oribi.In[any]("n", 1, nil), oribi.ErrSchema, "use IsNull"},
		{oribi.HasPrefix("n", 1), oribi.ErrSchema, "int32 has no prefixes"},
		{oribi.Contains("n", "1"), oribi.ErrSchema, `column "n": type int32 has no text to search`},
		{oribi.HasSuffix("s", nil), oribi.ErrSchema, "use IsNull"},
		{oribi.Contains("s", 5), oribi.ErrSchema, "does not fit"},
		{oribi.InBloom("n", nil), oribi.ErrSchema, "filter"},
		{oribi.Eq("s", "\xff"), oribi.ErrSchema, "UTF-8"},
		{oribi.Eq("n", oribi.Cell{1}), oribi.ErrSchema, "a cell of 1 bytes"},
	} {
		_, count := table.Count(t.Context(), oribi.Where(c.p))
		b := store.NewBatch()
		b.If(table, oribi.Row{"k": 1}, c.p)
		_, commit := b.Commit(t.Context())
		for _, err := range []error{count, commit} {
			if !errors.Is(err, c.want) || !strings.Contains(fmt.Sprint(err), c.text) ||
				strings.Count(err.Error(), "oribi:") != 1 {
				t.Errorf("%v: %v, want %q", c.p, err, c.text)
			}
		}
	}
}

// One predicate works on tables whose columns differ in type.
func TestPredicateFitsEveryNumericColumn(t *testing.T) {
	store := must.Get(oribi.Open("/n", &oribi.Options{FS: vfs.NewMem(), Manual: true}))(t)
	defer store.Close()
	two := oribi.Between("v", 1.5, 2)
	for i, c := range []schema.Column{{Type: schema.Double}, {Type: schema.Float},
		{Type: schema.Decimal64, Precision: 12, Scale: 1}} {
		table := valueTable(t, store, fmt.Sprint(i), c)
		b := store.NewBatch()
		for k, v := range []any{1, 1.5, 2.0, float32(2.5), int8(3)} {
			b.Insert(table, oribi.Row{"k": k, "v": v})
		}
		must.Get(b.Commit(t.Context()))(t)
		must.Equal(t, must.Get(table.Count(t.Context(), oribi.Where(two)))(t), 2, c.Type, "rows")
	}
}

func valueTable(t *testing.T, store *oribi.Store, name string, c schema.Column) *oribi.Table {
	t.Helper()
	c.Name = "v"
	s := must.Get(schema.New([]schema.Column{{Name: "k", Type: schema.Int64}, c}, 1))(t)
	return must.Get(store.CreateTable(name, s))(t)
}

// Numbers are accepted in rows if the column can represent them exactly, and refused otherwise.
func TestValuesOfRowsAreExact(t *testing.T) {
	store := must.Get(oribi.Open("/v", &oribi.Options{FS: vfs.NewMem(), Manual: true}))(t)
	defer store.Close()
	int8s, uint64s, int128s := schema.Column{Type: schema.Int8}, schema.Column{Type: schema.Uint64},
		schema.Column{Type: schema.Int128}
	floats, doubles := schema.Column{Type: schema.Float}, schema.Column{Type: schema.Double}
	tenths, times := schema.Column{Type: schema.Decimal32, Precision: 3, Scale: 1},
		schema.Column{Type: schema.Timestamp}
	wide := func(hi int64, lo uint64) oribi.Int128 { return oribi.Int128{Hi: hi, Lo: lo} }
	at := time.Date(2024, 2, 29, 1, 2, 3, 4000, time.UTC)
	type named float32
	for i, c := range []struct {
		column schema.Column
		in     any
		want   any // nil: refused
	}{
		{int8s, 5, int8(5)}, {int8s, -128.0, int8(-128)}, {int8s, float32(2), int8(2)}, {int8s, 128, nil},
		{int8s, 0.5, nil}, {int8s, math.NaN(), nil},
		{int8s, math.Inf(1), nil}, {uint64s, math.Ldexp(1, 63), uint64(1 << 63)},
		{uint64s, math.Ldexp(1, 64), nil}, {uint64s, -1.0, nil},
		{int128s, math.Ldexp(-3, 70), wide(-192, 0)}, {int128s, -1.0, wide(-1, math.MaxUint64)},
		{int128s, math.Ldexp(1, 127), nil},
		{doubles, 5, 5.0}, {doubles, 1 << 53, float64(1 << 53)}, {doubles, 1<<53 + 1, nil},
		{doubles, int64(math.MinInt64), math.Ldexp(-1, 63)},
		{doubles, wide(math.MinInt64, 0), math.Ldexp(-1, 127)},
		{doubles, wide(1, 1), nil}, {doubles, uint8(255), 255.0},
		{floats, 1 << 24, float32(1 << 24)}, {floats, 1<<24 + 1, nil}, {floats, 1e39, nil}, {floats, -1e39, nil},
		{floats, math.Inf(1), float32(math.Inf(1))},
		{floats, 0.1, float32(0.1)}, {floats, named(0.1), float32(0.1)},
		{tenths, 1.5, oribi.NewDecimal(15, 1)}, {tenths, 0.1, oribi.NewDecimal(1, 1)},
		{tenths, float32(0.1), oribi.NewDecimal(1, 1)},
		{tenths, named(0.1), oribi.NewDecimal(1, 1)}, {tenths, -7, oribi.NewDecimal(-70, 1)}, {tenths, 1.55, nil},
		{tenths, 100.0, nil}, {tenths, 1e300, nil},
		{tenths, 0.0, oribi.NewDecimal(0, 1)}, {tenths, 1e-300, nil}, {tenths, math.NaN(), nil},
		{tenths, 5e1, oribi.NewDecimal(500, 1)},
		{times, at, at}, {times, at.Add(1), at}, {times, at.Add(-999), at.Add(-1000)}, {int8s, oribi.Cell{7}, int8(7)},
		{int8s, oribi.Cell{7, 0}, nil},
	} {
		table := valueTable(t, store, fmt.Sprint(i), c.column)
		b := store.NewBatch()
		b.Insert(table, oribi.Row{"k": 1, "v": c.in})
		_, err := b.Commit(t.Context(), oribi.NoSync)
		_, counted := table.Count(t.Context(), oribi.Where(oribi.Eq("v", c.in)))
		if c.want == nil {
			if !errors.Is(err, oribi.ErrRow) || !errors.Is(counted, oribi.ErrSchema) {
				t.Errorf("%v (%T) into %s: %v, in a predicate %v", c.in, c.in, c.column.Type, err, counted)
			}
			continue
		}
		row, got := table.Get(t.Context(), 1)
		if err := errors.Join(err, counted, got); err != nil || row["v"] != c.want {
			t.Errorf("%v (%T) into %s: %v (%T), %v", c.in, c.in, c.column.Type, row["v"], row["v"], err)
		}
	}
}

// Patterns are searched in dictionaries, in front-coded and plain blocks, and in memory, of
// strings, varchars, and binaries. The model is a regular expression.
func TestPatternsAreThoseOfAModel(t *testing.T) {
	r := seedtest.Rand(t)
	columns := []schema.Column{{Name: "k", Type: schema.String}}
	for i, encoding := range []schema.Encoding{schema.Dictionary, schema.Plain, schema.Prefix} {
		for _, typ := range []schema.Type{schema.String, schema.Binary, schema.Varchar} {
			c := schema.Column{Name: fmt.Sprintf("c%d%s", i, typ), Type: typ, Nullable: true, Encoding: encoding}
			if typ == schema.Varchar {
				c.Length = 9
			}
			columns = append(columns, c)
		}
	}
	s := must.Get(schema.New(columns, 1))(t)
	store := must.Get(oribi.Open("/p", &oribi.Options{FS: vfs.NewMem(), Manual: true}))(t)
	defer store.Close()
	table := must.Get(store.CreateTable("p", s))(t)
	text := func(most int) string {
		var b strings.Builder
		for range r.IntN(most + 1) {
			b.WriteString([]string{"a", "b", "ab", "%", "_", `\`, "é"}[r.IntN(7)])
		}
		return b.String()
	}
	rows := map[string]oribi.Row{}
	for part := range 3 {
		b := store.NewBatch()
		for i := range 500 {
			row := oribi.Row{"k": fmt.Sprintf("%s/%d", text(4), i)}
			for _, c := range s.Columns[1:] {
				if row[c.Name] = nil; r.IntN(5) > 0 {
					row[c.Name] = text(4)
				}
			}
			rows[row["k"].(string)] = row
			b.Upsert(table, row)
		}
		must.Get(b.Commit(t.Context(), oribi.NoSync))(t)
		if part < 2 {
			must.Do(t, table.Flush(t.Context()))
		}
	}
	for range 300 {
		c := s.Columns[r.IntN(len(s.Columns))]
		var parts, model []string
		for range 1 + r.IntN(4) {
			parts = append(parts, text(2))
			model = append(model, regexp.QuoteMeta(parts[len(parts)-1]))
		}
		for i, part := range parts {
			parts[i] = strings.NewReplacer(`\`, `\\`, "%", `\%`, "_", `\_`).Replace(part)
		}
		matcher := regexp.MustCompile(`(?s)\A` + strings.Join(model, ".*") + `\z`)
		pattern := strings.Join(parts, "%")
		if c.Type == schema.Varchar && len(parts) == 1 && len(parts[0]) > 9 {
			continue // a value that the column cannot have
		}
		not := ""
		if r.IntN(3) == 0 {
			not = "not "
		}
		expression := fmt.Sprintf("%s %slike '%s'", c.Name, not, pattern)
		p, err := oribi.ParsePredicate(s.Columns, expression)
		must.Do(t, err, expression)
		want := int64(0)
		for _, row := range rows {
			if v, ok := row[c.Name].(string); ok && matcher.MatchString(v) == (not == "") {
				want++
			}
		}
		got, err := table.Count(t.Context(), oribi.Where(p))
		must.Do(t, err)
		must.Equal(t, got, want, expression, "rows")
		var explained oribi.Explanation
		found := int64(0)
		for range must.All(t, table.Scan(t.Context(), oribi.Where(p), oribi.Explain(&explained)).Rows()) {
			found++
		}
		if found != want || explained.String() == "" {
			t.Fatalf("%s: scan of %d rows, want %d", expression, found, want)
		}
	}
}

func TestPatternsInTheSyntaxOfSQL(t *testing.T) {
	for _, c := range []struct {
		p    oribi.Predicate
		want string
	}{
		{oribi.Contains("s", "50%"), `s LIKE '%50\%%'`},
		{oribi.HasSuffix("s", "it's"), "s LIKE '%it''s'"},
		{oribi.Not(oribi.Contains("s", []byte{0xff})), "NOT (like(s, '', X'ff', ''))"},
	} {
		must.Equal(t, c.p.String(), c.want)
	}
}
