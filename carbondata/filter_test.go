package carbondata

import (
	"bytes"
	"cmp"
	"errors"
	"math"
	"math/rand/v2"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/internal/seedtest"
)

// truth is a truth value of SQL.
type truth int

const (
	no truth = iota
	unknown
	yes
)

func truthOf(b bool) truth {
	if b {
		return yes
	}
	return no
}

// model evaluates a filter for a row by its definition.
func model(f Filter, row map[string]any, varchar map[string]bool) truth {
	switch f.op {
	case opAnd, opOr:
		result := yes
		if f.op == opOr {
			result = no
		}
		for _, child := range f.children {
			if v := model(child, row, varchar); f.op == opAnd {
				result = min(result, v)
			} else {
				result = max(result, v)
			}
		}
		return result
	case opNot:
		return yes - model(f.children[0], row, varchar)
	}
	v := row[f.column]
	switch f.op {
	case opIsNull:
		return truthOf(v == nil || varchar[f.column] && v == "")
	case opNotNull:
		return yes - model(IsNull(f.column), row, varchar)
	}
	if v == nil {
		return unknown
	}
	if f.op == opHasPrefix {
		return truthOf(strings.HasPrefix(modelText(v), f.values[0].(string)))
	}
	if f.op == opLike {
		return truthOf(modelPattern(f).MatchString(latin1(modelText(v))))
	}
	for _, w := range f.values {
		order, ordered := modelCompare(v, w)
		holds := false
		switch f.op {
		case opEq, opIn:
			holds = ordered && order == 0
		case opNe:
			holds = !ordered || order != 0
		case opLt:
			holds = ordered && order < 0
		case opLe:
			holds = ordered && order <= 0
		case opGt:
			holds = ordered && order > 0
		case opGe:
			holds = ordered && order >= 0
		}
		if holds {
			return yes
		}
	}
	return no
}

func modelText(v any) string {
	if b, ok := v.([]byte); ok {
		return string(b)
	}
	return v.(string)
}

// modelCompare compares two values of a column. NaN is not ordered.
func modelCompare(v, w any) (order int, ordered bool) {
	switch v := v.(type) {
	case bool:
		return int(truthOf(v) - truthOf(w.(bool))), true
	case string, []byte:
		return strings.Compare(modelText(v), modelText(w)), true
	case batch.Int128:
		return v.Cmp(w.(batch.Int128)), true
	case float32, float64:
		a, b := reflect.ValueOf(v).Float(), reflect.ValueOf(w).Float()
		return cmp.Compare(a, b), !math.IsNaN(a) && !math.IsNaN(b)
	}
	return cmp.Compare(reflect.ValueOf(v).Int(), reflect.ValueOf(w).Int()), true
}

// randomFilters makes filters for a table from values in its rows and others near to them.
type randomFilters struct {
	*rand.Rand
	columns []Column
	rows    [][]any
}

// selected returns the rows that a filter selects by its definition.
func (r *randomFilters) selected(f Filter) (rows [][]any) {
	varchar := map[string]bool{}
	for _, c := range r.columns {
		varchar[c.Name] = c.Type == Varchar
	}
	for _, row := range r.rows {
		named := map[string]any{}
		for i, c := range r.columns {
			named[c.Name] = row[i]
		}
		if model(f, named, varchar) == yes {
			rows = append(rows, row)
		}
	}
	return rows
}

// modelPattern returns the regular expression of a Like, for texts whose characters are bytes: a
// value may be no valid UTF-8, of which a regular expression knows nothing.
func modelPattern(f Filter) *regexp.Regexp {
	var parts []string
	for _, v := range f.values {
		parts = append(parts, regexp.QuoteMeta(latin1(v.(string))))
	}
	return regexp.MustCompile(`(?s)\A` + strings.Join(parts, ".*") + `\z`)
}

// latin1 returns a text with a character for each byte.
func latin1(s string) string {
	var out strings.Builder
	for _, c := range []byte(s) {
		out.WriteRune(rune(c))
	}
	return out.String()
}

func (r *randomFilters) filter(depth int) Filter {
	if depth > 0 {
		switch r.IntN(6) {
		case 0:
			return And(r.filter(depth-1), r.filter(depth-1))
		case 1:
			return Or(r.filter(depth-1), r.filter(depth-1))
		case 2:
			return Not(r.filter(depth - 1))
		}
	}
	i := r.IntN(len(r.columns))
	name := r.columns[i].Name
	if _, values := testedType(&r.columns[i]); !values || r.IntN(8) == 0 {
		return test([]operator{opIsNull, opNotNull}[r.IntN(2)], name)
	}
	if r.IntN(4) == 0 {
		return In(name, r.value(i), r.value(i), r.value(i))
	}
	v := r.value(i)
	if s, ok := v.(string); ok && r.IntN(3) == 0 {
		i := r.IntN(len(s) + 1)
		j := i + r.IntN(len(s)+1-i)
		switch r.IntN(3) {
		case 0:
			return Like(name, "", s[i:j], "")
		case 1:
			return Like(name, s[:i], s[j:])
		}
		return HasPrefix(name, s[:i])
	}
	return test(opEq+operator(r.IntN(6)), name, v)
}

// value returns a value of a column, or a value near to it.
func (r *randomFilters) value(i int) any {
	var v any
	for range 20 {
		if v = r.rows[r.IntN(len(r.rows))][i]; v != nil {
			break
		}
	}
	if v == nil || r.IntN(10) == 0 {
		v = r.special(r.columns[i].Type)
	}
	if r.IntN(3) > 0 {
		return v
	}
	step := int64(r.IntN(3) - 1)
	switch x := v.(type) {
	case int8:
		return x + int8(step)
	case int16:
		return x + int16(step)
	case int32:
		return x + int32(step)
	case int64:
		return x + step
	case Days:
		return x + Days(step)
	case Micros:
		return x + Micros(step)
	case float32:
		return x + float32(step)/8
	case float64:
		return x + float64(step)/8
	case string:
		return x[:r.IntN(len(x)+1)] + string(rune('a'+r.IntN(26)))
	}
	return v
}

// special returns a value that is often treated in a special way.
func (r *randomFilters) special(typ Type) any {
	pick := r.IntN(3)
	switch typ {
	case Boolean:
		return pick > 0
	case Byte:
		return []int8{0, math.MinInt8, math.MaxInt8}[pick]
	case Short:
		return []int16{0, math.MinInt16, math.MaxInt16}[pick]
	case Int:
		return []int32{0, math.MinInt32, math.MaxInt32}[pick]
	case Long:
		return []int64{0, math.MinInt64, math.MaxInt64}[pick]
	case Float:
		return []float32{0, float32(math.Copysign(0, -1)), float32(math.NaN())}[pick]
	case Double:
		return []float64{0, math.Copysign(0, -1), math.NaN()}[pick]
	case Decimal:
		return batch.Int128Of([]int64{0, -1, 1}[pick])
	case Date:
		return []Days{0, 1 - dateZero, math.MaxInt32}[pick]
	case Timestamp:
		return []Micros{0, math.MinInt64, math.MaxInt64}[pick]
	case Binary:
		return []byte{}
	}
	return []string{"", nullText, "zzzz"}[pick]
}

// checkFilters compares the rows that random filters select with those that a model selects, with
// and without bounds, dictionaries, and searches. It returns what was skipped.
func checkFilters(t *testing.T, table *Table, all [][]any, rounds int) (skipped ScanStats) {
	random := &randomFilters{rand.New(rand.NewPCG(3, uint64(len(all)))), table.Schema(), all}
	for range rounds {
		f := random.filter(3)
		want := random.selected(f)
		for _, o := range []ScanOptions{{Filter: f, Stats: new(ScanStats)}, {Filter: f, noPruning: true}} {
			got := scanRows(t, table, o)
			if !sameRows(got, want) {
				t.Fatalf("%s: %d rows, want %d, without pruning: %v", filterText(f), len(got), len(want), o.noPruning)
			}
			if o.Stats != nil {
				skipped.Files += o.Stats.Files - o.Stats.FilesRead
				skipped.Blocklets += o.Stats.Blocklets - o.Stats.BlockletsRead
				skipped.Pages += o.Stats.Pages - o.Stats.PagesRead
			}
		}
	}
	return skipped
}

func TestRandomFiltersSelectWhatTheirDefinitionSays(t *testing.T) {
	var skipped ScanStats
	rounds := seedtest.Needed(15, 4)
	smallFolders(t, func(t *testing.T, g goldenFolder, table *Table) {
		n := checkFilters(t, table, scanRows(t, table, ScanOptions{}), rounds)
		skipped.Files += n.Files
		skipped.Blocklets += n.Blocklets
		skipped.Pages += n.Pages
	})
	if t.Log(skipped); skipped.Files < int64(3*rounds) || skipped.Blocklets < int64(8*rounds) ||
		skipped.Pages < int64(50*rounds) {
		t.Errorf("skipped only %+v", skipped)
	}
}

// sameRows reports whether rows have the same values; NaN is the same as NaN.
func sameRows(a, b [][]any) bool {
	return slices.EqualFunc(a, b, func(a, b []any) bool { return slices.EqualFunc(a, b, sameValue) })
}

func sameValue(a, b any) bool {
	switch x := a.(type) {
	case []any:
		y, ok := b.([]any)
		return ok && (x == nil) == (y == nil) && slices.EqualFunc(x, y, sameValue)
	case []byte:
		y, ok := b.([]byte)
		return ok && (x == nil) == (y == nil) && bytes.Equal(x, y)
	case float32:
		y, ok := b.(float32)
		return ok && (x == y || x != x && y != y)
	case float64:
		y, ok := b.(float64)
		return ok && (x == y || x != x && y != y)
	}
	switch b.(type) {
	case []any, []byte:
		return false
	}
	return a == b
}

func TestFiltersOfWrongTypesAreRefused(t *testing.T) {
	table := must.Get(Open(goldenDir(t) + "/primitives-snappy"))(t)
	defer table.Close()
	structs := must.Get(Open(goldenDir(t) + "/struct-types"))(t)
	defer structs.Close()
	nested := structs.Schema()[1].Name
	for name, c := range map[string]struct {
		table *Table
		f     Filter
		want  error
	}{
		"no column":       {table, Eq("nothing", 1), ErrNoColumn},
		"text":            {table, Eq("id", "1"), ErrSchema},
		"nil":             {table, Eq("s", nil), ErrSchema},
		"a number":        {table, In("s", "a", 1), ErrSchema},
		"a fraction":      {table, Lt("id", 1.5), ErrSchema},
		"a date":          {table, Lt("id", Days(1)), ErrSchema},
		"a bool":          {table, Ge("f64", true), ErrSchema},
		"a prefix":        {table, HasPrefix("id", "1"), ErrSchema},
		"a pattern":       {table, Like("id", "", "1"), ErrSchema},
		"a single part":   {table, Like("s", "1"), ErrSchema},
		"a large float":   {table, Gt("f32", 1e300), ErrSchema},
		"inside":          {table, And(Not(Or(Eq("flag", 1)))), ErrSchema},
		"a struct":        {structs, Eq(nested, 1), ErrSchema},
		"prefix of array": {structs, HasPrefix(nested, ""), ErrSchema},
	} {
		rows := 0
		for _, err := range c.table.Rows(t.Context(), ScanOptions{Filter: c.f}) {
			if rows++; !errors.Is(err, c.want) {
				t.Errorf("%s: %v, want %v", name, err, c.want)
			}
		}
		must.Equal(t, rows, 1, name)
	}
}

// TestIntegersOutOfTheRangeOfAColumn compares with values that the column cannot have.
func TestIntegersOutOfTheRangeOfAColumn(t *testing.T) {
	table, err := Open(goldenDir(t) + "/int-null") // 125 of 200 rows of each column are not null
	must.Do(t, err)
	defer table.Close()
	for text, want := range map[string]int{
		`["a", "<", 32768]`:                             125,
		`["a", "<=", 32768]`:                            125,
		`["a", "!=", 32768]`:                            125,
		`["a", ">", 32768]`:                             0,
		`["a", ">=", 32768]`:                            0,
		`["a", "=", 32768]`:                             0,
		`["a", "<", -32769]`:                            0,
		`["a", ">", -32769]`:                            125,
		`["not", ["a", ">", -32769]]`:                   0,
		`["not", ["a", "<", -32769]]`:                   125,
		`["a", "in", [-32769, 32768]]`:                  0,
		`["a", "notin", [-32769, 32768]]`:               125,
		`["c", "<", 9223372036854775808]`:               125,
		`["c", ">", 1` + strings.Repeat("0", 90) + `]`:  0,
		`["c", ">", -1` + strings.Repeat("0", 90) + `]`: 125,
	} {
		f := must.Get(ParseFilter([]byte(text)))(t)
		must.Equal(t, len(scanRows(t, table, ScanOptions{Filter: f})), want, text)
	}
}
