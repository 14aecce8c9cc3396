package storetest

import (
	"context"
	"iter"
	"math"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/internal/celltext"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/schema"
	"github.com/oribi-db/oribi/vfs"
)

// typeCase is a column type with some values, in ascending order if it can be in a key, in each of
// the forms in which the store accepts and returns them.
type typeCase struct {
	name   string // of the type, as schema files have it
	values []any  // of the Go type that a struct's field has
	rows   []any  // the values in the form that a Row contains
	json   []string
}

// valuesOf returns the case of a type whose struct field is a T. row converts a value to the form
// in which a Row contains it; nil means unchanged. Generic code here is compiled once for each of
// 36 types, so it does not call the store: the methods of as many TableOf take a minute to compile.
func valuesOf[T any](name string, row func(T) any, values []T, json ...string) typeCase {
	c := typeCase{name: name, json: json}
	for _, v := range values {
		c.values = append(c.values, v)
		if row == nil {
			c.rows = append(c.rows, v)
		} else {
			c.rows = append(c.rows, row(v))
		}
	}
	return c
}

// anys returns a slice in the form in which a Row contains arrays.
func anys[E any](values []E) any {
	out := make([]any, len(values))
	for i, v := range values {
		out[i] = v
	}
	return out
}

func day(year int, month time.Month, d int) time.Time {
	return time.Date(year, month, d, 0, 0, 0, 0, time.UTC)
}

func int32s(values ...int32) (out []*int32) {
	for _, v := range values {
		out = append(out, &v)
	}
	return out
}

var typeCases = []typeCase{
	valuesOf("bool", nil, []bool{true, false}, "true", "false"),
	valuesOf("int8", nil, []int8{math.MinInt8, -1, 0, math.MaxInt8}, "-128", "-1", "0", "127"),
	valuesOf("int16", nil, []int16{math.MinInt16, 7, math.MaxInt16}, "-32768", "7", "32767"),
	valuesOf("int32", nil, []int32{math.MinInt32, 7, math.MaxInt32}, "-2147483648", "7", "2147483647"),
	valuesOf("int64", nil, []int64{math.MinInt64, 7, math.MaxInt64},
		"-9223372036854775808", "7", "9223372036854775807"),
	valuesOf("uint8", nil, []uint8{0, 128, 255}, "0", "128", "255"),
	valuesOf("uint16", nil, []uint16{0, 1 << 15, math.MaxUint16}, "0", "32768", "65535"),
	valuesOf("uint32", nil, []uint32{0, 1 << 31, math.MaxUint32}, "0", "2147483648", "4294967295"),
	valuesOf("uint64", nil, []uint64{0, 1 << 63, math.MaxUint64}, "0", "9223372036854775808", "18446744073709551615"),
	valuesOf("int128", nil, []oribi.Int128{{Hi: math.MinInt64}, {Lo: math.MaxUint64, Hi: -1}, {Lo: 5},
		{Lo: math.MaxUint64, Hi: math.MaxInt64}},
		"-170141183460469231731687303715884105728", "-1", "5", "170141183460469231731687303715884105727"),
	valuesOf("float", nil, []float32{-1.5, 0, math.MaxFloat32, float32(math.Inf(1))}, "-1.5",
		"0", "3.4028235e+38", `"+Inf"`),
	valuesOf("double", nil, []float64{-1.5, 0.1, math.SmallestNonzeroFloat64}, "-1.5", "0.1", "5e-324"),
	valuesOf("decimal(1,1)", nil, []oribi.Decimal{oribi.NewDecimal(-9, 1), oribi.NewDecimal(9, 1)}, `"-0.9"`, `"0.9"`),
	valuesOf("decimal(9,2)", nil, []oribi.Decimal{oribi.NewDecimal(-999999999, 2), oribi.NewDecimal(150, 2)},
		`"-9999999.99"`, `"1.50"`),
	valuesOf("decimal(18,0)", nil, []oribi.Decimal{oribi.NewDecimal(-999999999999999999, 0), oribi.NewDecimal(1, 0)},
		`"-999999999999999999"`, `"1"`),
	valuesOf("decimal(38,2)", nil,
		[]oribi.Decimal{{Unscaled: oribi.Int128{Lo: 1, Hi: -(1 << 60)}, Scale: 2}, oribi.NewDecimal(1, 2)},
		`"-212676479325586539664609129644855132.15"`, `"0.01"`),
	valuesOf("string", nil, []string{"", "a\x00b", "longer than eight", "é\n\""}, `""`, `"a\u0000b"`,
		`"longer than eight"`, `"é\n\""`),
	valuesOf("varchar(2)", nil, []string{"", "éé"}, `""`, `"éé"`),
	valuesOf("binary", nil, [][]byte{{}, {0, 0xff}, []byte("x")}, `"0x"`, `"0x00ff"`, `"0x78"`),
	valuesOf("date", nil, []time.Time{day(1, 1, 1), day(1970, 1, 1), day(9999, 12, 31)}, `"0001-01-01"`,
		`"1970-01-01"`, `"9999-12-31"`),
	valuesOf("timestamp", nil, []time.Time{time.UnixMicro(-1).UTC(), time.UnixMicro(1_700_000_000_000_001).UTC()}, "-1",
		"1700000000000001"),
	valuesOf("array(bool)", anys[bool], [][]bool{{true, false}, {}}, "[true,false]", "[]"),
	valuesOf("array(int8)", anys[int8], [][]int8{{-128, 127}, {}}, "[-128,127]", "[]"),
	valuesOf("array(uint64)", anys[uint64], [][]uint64{{0, math.MaxUint64}}, "[0,18446744073709551615]"),
	valuesOf("array(int32)", func(v []*int32) any {
		out := []any{}
		for _, e := range v {
			if e == nil {
				out = append(out, nil)
			} else {
				out = append(out, *e)
			}
		}
		return out
	}, [][]*int32{int32s(1, -1), {nil}, append(append([]*int32{nil}, int32s(7)...), nil), {}}, "[1,-1]",
		"[null]", "[null,7,null]", "[]"),
	valuesOf("array(float)", anys[float32], [][]float32{{1.5, float32(math.Inf(-1))}}, `[1.5,"-Inf"]`),
	valuesOf("array(double)", anys[float64], [][]float64{{}, {0.1}}, "[]", "[0.1]"),
	valuesOf("array(decimal(9,2))", anys[oribi.Decimal],
		[][]oribi.Decimal{{oribi.NewDecimal(150, 2), oribi.NewDecimal(-1, 2)}}, `["1.50","-0.01"]`),
	valuesOf("array(decimal(18,3))", anys[oribi.Decimal],
		[][]oribi.Decimal{{oribi.NewDecimal(-999999999999999999, 3)}}, `["-999999999999999.999"]`),
	valuesOf("array(string)", anys[string], [][]string{{"", "a\"b"}, {}, {"é"}}, `["","a\"b"]`, "[]", `["é"]`),
	valuesOf("array(varchar(2))", anys[string], [][]string{{"éé", ""}}, `["éé",""]`),
	valuesOf("array(binary)", func(v [][]byte) any {
		out := []any{}
		for _, e := range v {
			if e == nil {
				out = append(out, nil)
			} else {
				out = append(out, e)
			}
		}
		return out
	}, [][][]byte{{{0xff}, {}, nil}}, `["0xff","0x",null]`),
	valuesOf("array(date)", anys[time.Time], [][]time.Time{{day(2024, 2, 29)}}, `["2024-02-29"]`),
	valuesOf("array(timestamp)", anys[time.Time],
		[][]time.Time{{time.UnixMicro(5).UTC(), time.UnixMicro(-5).UTC()}}, "[5,-5]"),
	valuesOf("array(int64)", func(v []any) any { return any(v) }, [][]any{{int64(1), nil}, {}}, "[1,null]", "[]"),
}

// Every column type: values written as rows, vectors, or in bulk are read back unchanged, from
// memory, from files and through changes; a value that can be a key is found by it.
// TestAllTypesRoundTripInStructs does the same with structs.
func TestAllTypesRoundTripInEveryForm(t *testing.T) {
	for _, c := range typeCases {
		t.Run("type="+c.name, func(t *testing.T) { checkType(t, c) })
	}
}

// pointer returns a pointer to a copy of v.
func pointer(v any) any {
	p := reflect.New(reflect.TypeOf(v))
	p.Elem().Set(reflect.ValueOf(v))
	return p.Interface()
}

func checkType(t *testing.T, c typeCase) {
	values := c.values
	ctx := context.Background()
	store, err := oribi.Open("/types", &oribi.Options{FS: vfs.NewMem(), History: oribi.HistoryForever})
	must.Do(t, err)
	defer store.Close()
	var v schema.Column
	must.Do(t, v.ParseTypeName(c.name))
	create := func(name string, keys int, columns ...schema.Column) *oribi.Table {
		t.Helper()
		s := must.Get(schema.New(columns, keys))(t)
		return must.Get(store.CreateTable(name, s))(t)
	}
	column := func(name string, nullable bool) schema.Column {
		out := v
		out.Name, out.Nullable = name, nullable
		return out
	}
	key := schema.Column{Name: "k", Type: schema.Int32}
	rows := create("rows", 1, key, column("v", false), column("n", true))
	vectors := create("vectors", 1, key, column("v", false), column("n", true))
	bulk := create("bulk", 1, key, column("v", false), column("n", true))

	// Each value occurs twice, next to NULL and next to the following value; then row 0 is changed
	// to the last value.
	b := store.NewBatch()
	want := map[int32]oribi.Row{}
	for i := range values {
		next := (i + 1) % len(values)
		k := int32(2 * i)
		b.Insert(rows, oribi.Row{"k": k, "v": values[i]})
		b.Insert(rows, oribi.Row{"k": k + 1, "v": values[i], "n": pointer(values[next])})
		want[k] = oribi.Row{"k": k, "v": c.rows[i], "n": nil}
		want[k+1] = oribi.Row{"k": k + 1, "v": c.rows[i], "n": c.rows[next]}
	}
	must.Get(b.Commit(ctx))(t)
	copyTable(t, rows, func(columns []*batch.Vector) {
		b := store.NewBatch()
		b.Vectors(oribi.OpInsert, vectors, columns)
		must.Get(b.Commit(ctx))(t)
		for i := range columns { // the other form of arrays
			columns[i] = unpacked(t, rows.Schema().Columns[i], columns[i])
		}
		must.Get2(bulk.Ingest(ctx, once(columns)))(t)
	})
	last := len(values) - 1
	b.Reset()
	for _, table := range []*oribi.Table{rows, vectors, bulk} {
		b.Update(table, oribi.Row{"k": 0, "v": values[last], "n": c.rows[0]})
	}
	must.Get(b.Commit(ctx))(t)
	want[0] = oribi.Row{"k": int32(0), "v": c.rows[last], "n": c.rows[0]}

	all := []*oribi.Table{rows, vectors, bulk}
	for _, state := range []string{"memory", "flushed", "compacted"} {
		for _, table := range all {
			switch state {
			case "flushed":
				err = table.Flush(ctx)
			case "compacted":
				err = table.Compact(ctx)
			}
			must.Do(t, err, table.Name(), state)
			checkRows(t, table, state, want)
		}
	}
	checkJSON(t, rows, c)
	for _, p := range []oribi.Predicate{oribi.IsNull("n"), oribi.Not(oribi.NotNull("n"))} {
		n := must.Get(rows.Count(ctx, oribi.Where(p)))(t)
		must.Equal(t, n, int64(len(values)-1), p, "of", 2*len(values), "rows")
	}
	if v.Type.Keyable() {
		checkKeys(t, store, create("keys", 2, column("k", false), column("l", false),
			schema.Column{Name: "v", Type: schema.Int32}), values)
		return
	}
	must.Fail(t, must.Err(schema.New([]schema.Column{column("k", false)}, 1)), oribi.ErrSchema, "in a key")
}

// copyTable passes the columns of all rows to put.
func copyTable(t *testing.T, table *oribi.Table, put func(columns []*batch.Vector)) {
	t.Helper()
	for b := range must.All(t, table.Scan(context.Background()).Batches()) {
		columns := make([]*batch.Vector, len(b.Columns))
		for i, v := range b.Columns {
			columns[i] = &batch.Vector{Type: v.Type}
			columns[i].AppendSelected(v, b.Selection, 0, b.Len)
		}
		put(columns)
	}
}

// unpacked returns the vector of an array column in array form, and other vectors unchanged.
func unpacked(t *testing.T, c schema.Column, v *batch.Vector) *batch.Vector {
	t.Helper()
	if c.Type != schema.Array {
		return v
	}
	out := batch.NewArrays(c.Element)
	must.Do(t, out.AppendUnpacked(v, 0, v.Len))
	return out
}

func once(columns []*batch.Vector) iter.Seq2[[]*batch.Vector, error] {
	return func(yield func([]*batch.Vector, error) bool) { yield(columns, nil) }
}

func checkRows(t *testing.T, table *oribi.Table, state string, want map[int32]oribi.Row) {
	t.Helper()
	ctx := context.Background()
	n := 0
	for row, err := range table.Scan(ctx).Rows() {
		must.Do(t, err, table.Name(), state)
		n++
		k := row["k"].(int32)
		must.Equal(t, row, want[k], table.Name(), state, "scan")
		must.Equal(t, must.Get(table.Get(ctx, k))(t), want[k], table.Name(), state, "get")
	}
	must.Equal(t, n, len(want), table.Name(), state, "rows")
	versions := 0
	for v, err := range table.History(ctx, int32(0)) {
		must.Do(t, err, table.Name(), state)
		if versions == 0 && !reflect.DeepEqual(v.Row(), want[0]) {
			t.Fatalf("%s, %s: the newest version is %#v, want %#v", table.Name(), state, v.Row(), want[0])
		}
		versions++
	}
	must.Equal(t, versions, 2, table.Name(), state, "versions of the changed row")
}

// checkJSON prints column v of rows 2, 4, …, which have one value each.
func checkJSON(t *testing.T, table *oribi.Table, c typeCase) {
	t.Helper()
	for i := 1; i < len(c.json); i++ {
		columns, cells := must.Get2(table.GetCells(context.Background(), int32(2*i)))(t)
		must.Equal(t, string(celltext.AppendJSON(nil, &columns[1], cells[1])), c.json[i], "value", i, "in JSON")
	}
	_, cells, err := table.GetCells(context.Background(), int32(1))
	if got := string(celltext.AppendJSON(nil, &table.Schema().Columns[1], cells[1])); err != nil || got != c.json[0] {
		t.Errorf("value 0 is %s in JSON, %v, want %s", got, err, c.json[0])
	}
}

// checkKeys writes all pairs of values, in ascending order, as keys: scans return them in that
// order, and each is found.
func checkKeys(t *testing.T, store *oribi.Store, table *oribi.Table, values []any) {
	t.Helper()
	ctx := context.Background()
	var rows []oribi.Row
	for i := range values {
		for k := range values {
			rows = append(rows, oribi.Row{"k": values[i], "l": values[k], "v": int32(len(rows))})
		}
	}
	b := store.NewBatch()
	for _, row := range slices.Backward(rows) {
		b.Insert(table, row)
	}
	must.Get(b.Commit(ctx))(t)
	for _, state := range []string{"memory", "flushed"} {
		if state == "flushed" {
			must.Do(t, table.Flush(ctx))
		}
		n := 0
		for row, err := range table.Scan(ctx).Rows() {
			if err != nil || n == len(rows) || !reflect.DeepEqual(row, rows[n]) {
				t.Fatalf("%s: key %d is %+v, %v", state, n, row, err)
			}
			n++
		}
		must.Equal(t, n, len(rows), state, "keys")
		for _, row := range rows {
			must.Equal(t, must.Get(table.Get(ctx, oribi.Key{row["k"], row["l"]}))(t), row, state)
		}
	}
}
