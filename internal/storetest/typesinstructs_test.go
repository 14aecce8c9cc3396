package storetest

import (
	"context"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/schema"
	"github.com/oribi-db/oribi/vfs"
)

// fieldsOfTypes has a field for each of typeCases, in the same order.
type fieldsOfTypes struct {
	Bool       bool
	Int8       int8
	Int16      int16
	Int32      int32
	Int64      int64
	Uint8      uint8
	Uint16     uint16
	Uint32     uint32
	Uint64     uint64
	Int128     oribi.Int128
	Float      float32
	Double     float64
	Decimal1   oribi.Decimal
	Decimal9   oribi.Decimal
	Decimal18  oribi.Decimal
	Decimal38  oribi.Decimal
	String     string
	Varchar    string
	Binary     []byte
	Date       time.Time
	Timestamp  time.Time
	Bools      []bool
	Int8s      []int8
	Uint64s    []uint64
	Int32s     []*int32
	Floats     []float32
	Doubles    []float64
	Decimal9s  []oribi.Decimal
	Decimal18s []oribi.Decimal
	Strings    []string
	Varchars   []string
	Binaries   [][]byte
	Dates      []time.Time
	Timestamps []time.Time
	Int64s     []any
}

// pointersOfTypes has the fields of the nullable columns of typeCases, in the same order.
type pointersOfTypes struct {
	NullBool       *bool
	NullInt8       *int8
	NullInt16      *int16
	NullInt32      *int32
	NullInt64      *int64
	NullUint8      *uint8
	NullUint16     *uint16
	NullUint32     *uint32
	NullUint64     *uint64
	NullInt128     *oribi.Int128
	NullFloat      *float32
	NullDouble     *float64
	NullDecimal1   *oribi.Decimal
	NullDecimal9   *oribi.Decimal
	NullDecimal18  *oribi.Decimal
	NullDecimal38  *oribi.Decimal
	NullString     *string
	NullVarchar    *string
	NullBinary     *[]byte
	NullDate       *time.Time
	NullTimestamp  *time.Time
	NullBools      *[]bool
	NullInt8s      *[]int8
	NullUint64s    *[]uint64
	NullInt32s     *[]*int32
	NullFloats     *[]float32
	NullDoubles    *[]float64
	NullDecimal9s  *[]oribi.Decimal
	NullDecimal18s *[]oribi.Decimal
	NullStrings    *[]string
	NullVarchars   *[]string
	NullBinaries   *[][]byte
	NullDates      *[]time.Time
	NullTimestamps *[]time.Time
	NullInt64s     *[]any
}

// A rowOfTypes has two columns of each type, one of them nullable.
type rowOfTypes struct {
	K int32 `oribi:"k,key"`
	fieldsOfTypes
	pointersOfTypes
}

// A keyOfTypes has a column of each type that keys can have, all in the key, in the order of
// typeCases.
type keyOfTypes struct {
	Int8      int8          `oribi:"int8,key"`
	Int16     int16         `oribi:"int16,key"`
	Int32     int32         `oribi:"int32,key"`
	Int64     int64         `oribi:"int64,key"`
	Uint8     uint8         `oribi:"uint8,key"`
	Uint16    uint16        `oribi:"uint16,key"`
	Uint32    uint32        `oribi:"uint32,key"`
	Uint64    uint64        `oribi:"uint64,key"`
	Int128    oribi.Int128  `oribi:"int128,key"`
	Decimal1  oribi.Decimal `oribi:"decimal1,key"`
	Decimal9  oribi.Decimal `oribi:"decimal9,key"`
	Decimal18 oribi.Decimal `oribi:"decimal18,key"`
	Decimal38 oribi.Decimal `oribi:"decimal38,key"`
	String    string        `oribi:"string,key"`
	Varchar   string        `oribi:"varchar,key"`
	Binary    []byte        `oribi:"binary,key"`
	Date      time.Time     `oribi:"date,key"`
	Timestamp time.Time     `oribi:"timestamp,key"`
}

// field returns field i of a struct of one of the types above.
func field(row any, i int) reflect.Value { return reflect.ValueOf(row).Elem().Field(i) }

// columnsOf returns columns of the types of cases, with the names of the fields of row.
func columnsOf(t *testing.T, row any, cases []typeCase, nullable bool) (out []schema.Column) {
	t.Helper()
	fields := reflect.TypeOf(row).Elem()
	must.Equal(t, fields.NumField(), len(cases), fields, "fields")
	for i, c := range cases {
		column := schema.Column{Name: strings.ToLower(fields.Field(i).Name), Nullable: nullable}
		must.Do(t, column.ParseTypeName(c.name))
		out = append(out, column)
	}
	return out
}

// Every column type: values written as fields of structs are read back unchanged, as fields and as
// rows, from memory, from files and through changes.
func TestAllTypesRoundTripInStructs(t *testing.T) {
	ctx := context.Background()
	columns := []schema.Column{{Name: "k", Type: schema.Int32}}
	columns = append(columns, columnsOf(t, &fieldsOfTypes{}, typeCases, false)...)
	columns = append(columns, columnsOf(t, &pointersOfTypes{}, typeCases, true)...)
	store, table := tableOfTypes(t, columns, 1)
	typed, err := oribi.Typed[rowOfTypes](table)
	must.Do(t, err)
	most := 0
	for _, c := range typeCases {
		most = max(most, len(c.values))
	}
	// Each value occurs twice, next to NULL and next to the following value; then row 0 is changed
	// to the last value.
	structs, want := map[int32]rowOfTypes{}, map[int32]oribi.Row{}
	set := func(k int32, value, null func(n int) int) {
		row, asRow := rowOfTypes{K: k}, oribi.Row{"k": k}
		for i, c := range typeCases {
			v, n := value(len(c.values)), null(len(c.values))
			field(&row.fieldsOfTypes, i).Set(reflect.ValueOf(c.values[v]))
			asRow[columns[1+i].Name], asRow[columns[1+len(typeCases)+i].Name] = c.rows[v], nil
			if n >= 0 {
				field(&row.pointersOfTypes, i).Set(reflect.ValueOf(pointer(c.values[n])))
				asRow[columns[1+len(typeCases)+i].Name] = c.rows[n]
			}
		}
		structs[k], want[k] = row, asRow
	}
	b := store.NewBatch()
	for i := range most {
		k := int32(2 * i)
		this := func(n int) int { return i % n }
		set(k, this, func(int) int { return -1 })
		set(k+1, this, func(n int) int { return (i + 1) % n })
		typed.InBatch(b).Insert(structs[k], structs[k+1])
	}
	must.Get(b.Commit(ctx))(t)
	b.Reset()
	set(0, func(n int) int { return n - 1 }, func(int) int { return 0 })
	typed.InBatch(b).Update(structs[0])
	must.Get(b.Commit(ctx))(t)

	for _, state := range []string{"memory", "flushed", "compacted"} {
		switch state {
		case "flushed":
			err = table.Flush(ctx)
		case "compacted":
			err = table.Compact(ctx)
		}
		must.Do(t, err, state)
		checkRows(t, table, state, want)
		for row := range must.All(t, typed.Scan(ctx)) {
			must.Equal(t, row, structs[row.K], state, "scan")
			got := must.Get(typed.Get(ctx, row.K))(t)
			must.Equal(t, got, row, state, "row", row.K, "got and scanned")
		}
	}
}

// tableOfTypes returns a store in memory and its only table.
func tableOfTypes(t *testing.T, columns []schema.Column, keys int) (*oribi.Store, *oribi.Table) {
	t.Helper()
	store := must.Get(oribi.Open("/types", &oribi.Options{FS: vfs.NewMem(), History: oribi.HistoryForever}))(t)
	t.Cleanup(func() { store.Close() })
	s := must.Get(schema.New(columns, keys))(t)
	table := must.Get(store.CreateTable("structs", s))(t)
	return store, table
}

// Structs with a key column of each type are scanned in the order of their keys, and each is found.
func TestAllTypesInKeysOfStructs(t *testing.T) {
	ctx := context.Background()
	var cases []typeCase
	for _, c := range typeCases {
		var column schema.Column
		must.Do(t, column.ParseTypeName(c.name))
		if column.Type.Keyable() {
			cases = append(cases, c)
		}
	}
	columns := columnsOf(t, &keyOfTypes{}, cases, false)
	store, table := tableOfTypes(t, columns, len(columns))
	typed := must.Get(oribi.Typed[keyOfTypes](table))(t)
	// Row 0 has the first values only. Each other row has the second value of one type, and the
	// first values of all types before and after it.
	rows := make([]keyOfTypes, 1+len(cases))
	for n := range rows {
		for i, c := range cases {
			v := 0
			if i == len(cases)-n {
				v = 1
			}
			field(&rows[n], i).Set(reflect.ValueOf(c.values[v]))
		}
	}
	b := store.NewBatch()
	for n := range rows {
		typed.InBatch(b).Insert(rows[len(rows)-1-n])
	}
	must.Get(b.Commit(ctx))(t)
	for _, state := range []string{"memory", "flushed"} {
		if state == "flushed" {
			must.Do(t, table.Flush(ctx))
		}
		n := 0
		for row, err := range typed.Scan(ctx) {
			if err != nil || n == len(rows) || !reflect.DeepEqual(row, rows[n]) {
				t.Fatalf("%s: key %d is %+v, %v", state, n, row, err)
			}
			n++
			var key oribi.Key
			for i := range cases {
				key = append(key, field(&row, i).Interface())
			}
			must.Equal(t, must.Get(typed.Get(ctx, key))(t), row, state)
		}
		must.Equal(t, n, len(rows), state, "keys")
	}
}
