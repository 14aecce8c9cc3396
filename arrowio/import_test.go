package arrowio

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/schema"
)

// column parses a column from its name and type.
func column(t *testing.T, name, typeName string) schema.Column {
	t.Helper()
	c := schema.Column{Name: name, Nullable: true}
	must.Do(t, c.ParseTypeName(typeName))
	return c
}

// arrayOf returns an array from JSON.
func arrayOf(t *testing.T, mem memory.Allocator, typ arrow.DataType, json string) arrow.Array {
	t.Helper()
	a, _, err := array.FromJSON(mem, typ, strings.NewReader(json))
	must.Do(t, err, typ, json)
	return a
}

// Values of other types become cells of a column where that is exact.
func TestConversions(t *testing.T) {
	mem := checked(t)
	decimal := func(p, s int32) arrow.DataType { return &arrow.Decimal128Type{Precision: p, Scale: s} }
	for _, c := range []struct {
		from arrow.DataType
		json string
		to   string
		want string // cells as hex, or the error
	}{
		{arrow.PrimitiveTypes.Int64, `[1, null, -1]`, "int8", "01|NULL|ff|"},
		{arrow.PrimitiveTypes.Int64, `[127, 128]`, "int8", "128 is not a value of type int8"},
		{arrow.PrimitiveTypes.Int8, `[-1]`, "uint16", "-1 is not a value of type uint16"},
		{arrow.PrimitiveTypes.Uint64, `[18446744073709551615]`, "int64",
			"18446744073709551615 is not a value of type int64"},
		{arrow.PrimitiveTypes.Uint64, `[18446744073709551615]`, "uint64", "ffffffffffffffff|"},
		{arrow.PrimitiveTypes.Int32, `[3]`, "decimal(5,2)", "2c010000|"},
		{arrow.PrimitiveTypes.Int32, `[1000]`, "decimal(5,2)", "1000 is not a value of type decimal(5,2)"},
		{decimal(10, 3), `["1.500", "-2"]`, "decimal(15,2)", "9600000000000000|38ffffffffffffff|"},
		{decimal(10, 3), `["1.501"]`, "decimal(15,2)", "1.501 is not a value of type decimal(15,2)"},
		{decimal(15, 2), `["1.50", null]`, "decimal(15,2)", "9600000000000000|NULL|"},
		{decimal(38, 2), `["9999999999999.99", "10000000000000.00"]`, "decimal(15,2)", "10000000000000 is not a value"},
		{&arrow.Decimal256Type{Precision: 38, Scale: 0}, `["-7"]`, "decimal(38,0)",
			"f9ffffffffffffffffffffffffffffff|"},
		{decimal(3, -2), `["100"]`, "decimal(5,0)", "64000000|"},
		{arrow.PrimitiveTypes.Float32, `[1.5]`, "double", "000000000000f83f|"},
		{arrow.PrimitiveTypes.Float64, `[1.5]`, "float", "0000c03f|"},
		{arrow.PrimitiveTypes.Float64, `[0.1]`, "float", "float cannot represent 0.1 exactly"},
		{arrow.PrimitiveTypes.Int64, `[9007199254740992]`, "double", "0000000000004043|"},
		{arrow.PrimitiveTypes.Int64, `[9007199254740993]`, "double", "9007199254740993 is not a value of type double"},
		{arrow.FixedWidthTypes.Float16, `[1.5]`, "float", "0000c03f|"},
		{arrow.FixedWidthTypes.Timestamp_s, `[2]`, "timestamp", "80841e0000000000|"},
		{arrow.FixedWidthTypes.Timestamp_ns, `[1000]`, "timestamp", "0100000000000000|"},
		{arrow.FixedWidthTypes.Timestamp_ns, `[1]`, "timestamp",
			"1 nanoseconds since 1970 are no whole number of microseconds"},
		{&arrow.TimestampType{Unit: arrow.Microsecond}, `[1]`, "timestamp", "0100000000000000|"},
		{arrow.FixedWidthTypes.Date64, `["1970-01-03"]`, "date", "02000000|"},
		{arrow.BinaryTypes.LargeString, `["a", "", null]`, "string", "61||NULL|"},
		{arrow.BinaryTypes.StringView, `["a long enough string", "b"]`, "string",
			"61206c6f6e6720656e6f75676820737472696e67|62|"},
		{arrow.BinaryTypes.BinaryView, `["YQ=="]`, "binary", "61|"},
		{&arrow.FixedSizeBinaryType{ByteWidth: 2}, `["YWI=", null]`, "binary", "6162|NULL|"},
		{&arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Int8, ValueType: arrow.BinaryTypes.String},
			`["a", "b", null, "a"]`, "string", "61|62|NULL|61|"},
		{&arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Uint16, ValueType: arrow.PrimitiveTypes.Int64},
			`[7, null, 7]`, "int16", "0700|NULL|0700|"},
		{arrow.LargeListOf(arrow.PrimitiveTypes.Int8), `[[1, null], [], null]`, "array(int8)", "02000101|0000|NULL|"},
		{arrow.FixedSizeListOf(2, arrow.BinaryTypes.String), `[["a", "b"]]`, "array(string)",
			"020003010000000200000061" + "62|"},
		{arrow.ListOf(arrow.FixedWidthTypes.Timestamp_ns), `[[null, 1001]]`, "array(timestamp)",
			"element 1: 1001 nanoseconds"},
		{arrow.FixedWidthTypes.Boolean, `[true, null, false]`, "bool", "01|NULL|00|"},
		{arrow.FixedWidthTypes.Boolean, `[true]`, "int8", "bool does not fit a column of type int8"},
		{arrow.FixedWidthTypes.Date32, `[1]`, "timestamp", "date32 does not fit a column of type timestamp"},
		{arrow.BinaryTypes.String, `["1"]`, "int64", "utf8 does not fit a column of type int64"},
	} {
		t.Run(fmt.Sprintf("%s to %s", c.from, c.to), func(t *testing.T) {
			a := arrayOf(t, mem, c.from, c.json)
			defer a.Release()
			got := ""
			im, err := newImporter(column(t, "c", c.to), c.from, false)
			if err == nil {
				var v *batch.Vector
				if v, err = im.vector(a); err == nil {
					must.Do(t, v.Validate())
					for i := range v.Len {
						got += rowDigits([][]byte{v.Cell(i)})
					}
				}
			}
			if err != nil {
				got = err.Error()
			}
			if err == nil && got != c.want || !strings.Contains(got, c.want) {
				t.Errorf("%s of %s as %s is %s, want %s", c.json, c.from, c.to, got, c.want)
			}
		})
	}
}

// Slices of arrays, at every bit of a bitmap's word, have the cells of the array.
func TestSlices(t *testing.T) {
	mem := checked(t)
	r := array.NewRecordBuilder(mem, arrow.NewSchema([]arrow.Field{
		{Name: "i", Type: arrow.PrimitiveTypes.Int16, Nullable: true},
		{Name: "b", Type: arrow.FixedWidthTypes.Boolean, Nullable: true},
		{Name: "s", Type: arrow.BinaryTypes.String, Nullable: true},
		{Name: "l", Type: arrow.ListOf(arrow.PrimitiveTypes.Int8), Nullable: true},
		{Name: "d", Type: &arrow.Decimal128Type{Precision: 20, Scale: 1}, Nullable: true},
	}, nil))
	defer r.Release()
	const n = 300
	for i := range n {
		if i%5 == 0 {
			for c := range 5 {
				r.Field(c).AppendNull()
			}
			continue
		}
		r.Field(0).(*array.Int16Builder).Append(int16(i))
		r.Field(1).(*array.BooleanBuilder).Append(i%3 == 0)
		r.Field(2).(*array.StringBuilder).Append(strings.Repeat("x", i%7))
		l := r.Field(3).(*array.ListBuilder)
		l.Append(true)
		for k := range i % 4 {
			l.ValueBuilder().(*array.Int8Builder).Append(int8(k))
		}
		r.Field(4).(*array.Decimal128Builder).Append(decimal128.FromI64(int64(i)))
	}
	rec := r.NewRecordBatch()
	defer rec.Release()
	rows := func(rec arrow.RecordBatch) []string {
		d := must.Get(Define(rec.Schema()))(t)
		im := must.Get(newBatchImporter(d.Columns, rec.Schema(), false))(t)
		b := must.Get(im.batch(rec))(t)
		for _, v := range b.Columns {
			must.Do(t, v.Validate())
		}
		return selectedRows(nil, b)
	}
	all := rows(rec)
	for from := range 130 {
		for _, to := range []int{from, from + 1, from + 64, from + 65, n} {
			slice := rec.NewSlice(int64(from), int64(to))
			same(t, fmt.Sprintf("[%d,%d)", from, to), rows(slice), all[from:to])
			slice.Release()
		}
	}
}

// Types of which no column represents each value are refused by name.
func TestTypesAreRefusedByColumnName(t *testing.T) {
	mem := checked(t)
	store := openStore(t)
	s := must.Get(schema.New([]schema.Column{{Name: "k", Type: schema.Int64}, column(t, "x", "int64")}, 1))(t)
	table := must.Get(store.CreateTable("t", s))(t)
	for _, typ := range []arrow.DataType{
		arrow.StructOf(arrow.Field{Name: "a", Type: arrow.PrimitiveTypes.Int8}),
		arrow.MapOf(arrow.BinaryTypes.String, arrow.PrimitiveTypes.Int8),
		&arrow.Decimal256Type{Precision: 60, Scale: 39}, arrow.ListViewOf(arrow.ListOf(arrow.PrimitiveTypes.Int8)),
		arrow.RunEndEncodedOf(arrow.PrimitiveTypes.Int32, arrow.FixedWidthTypes.DayTimeInterval),
		arrow.ListOf(arrow.ListOf(arrow.PrimitiveTypes.Int8)), arrow.ListOf(&arrow.Decimal128Type{Precision: 20}),
		arrow.FixedWidthTypes.MonthInterval,
	} {
		fields := arrow.NewSchema([]arrow.Field{{Name: "k", Type: arrow.PrimitiveTypes.Int64},
			{Name: "x", Type: typ, Nullable: true}}, nil)
		d, err := Define(fields)
		if err != nil || len(d.Refused) != 1 || d.Refused[0].Column != "x" ||
			!errors.Is(d.Refused[0], ErrUnsupported) || len(d.Columns) != 1 {
			t.Errorf("%s: %+v, %v", typ, d, err)
		}
		b := array.NewRecordBuilder(mem, fields)
		rec := b.NewRecordBatch()
		var refused *ColumnError
		if err := Append(store.NewBatch(), oribi.OpInsert, table, rec); !errors.As(err, &refused) ||
			refused.Column != "x" || !errors.Is(err, ErrUnsupported) {
			t.Errorf("%s: %v", typ, err)
		}
		r := must.Get(array.NewRecordReader(fields, []arrow.RecordBatch{rec}))(t)
		if _, err := WriteParquet(new(strings.Builder), r, ParquetOptions{}); !errors.As(err, &refused) ||
			refused.Column != "x" {
			t.Errorf("%s: %v", typ, err)
		}
		r.Release()
		rec.Release()
		b.Release()
	}
	wide, err := schema.New([]schema.Column{{Name: "k", Type: schema.Int64}, {Name: "wide", Type: schema.Int128}}, 1)
	must.Do(t, err)
	big := must.Get(store.CreateTable("big", wide))(t)
	var refused *ColumnError
	if _, err := NewReader(big.Scan(context.Background()), ReaderOptions{}); !errors.As(err, &refused) ||
		refused.Column != "wide" || !errors.Is(err, ErrUnsupported) {
		t.Error(err)
	}
}

// A refused value names its column and its row over the whole input, and nothing is written.
func TestIngestNamesTheRow(t *testing.T) {
	mem := checked(t)
	store := openStore(t)
	s := must.Get(schema.New([]schema.Column{{Name: "k", Type: schema.Int64}, column(t, "x", "int8"),
		column(t, "v", "varchar(2)")}, 1))(t)
	table := must.Get(store.CreateTable("t", s))(t)
	fields := arrow.NewSchema([]arrow.Field{{Name: "v", Type: arrow.BinaryTypes.String, Nullable: true},
		{Name: "k", Type: arrow.PrimitiveTypes.Int32}, {Name: "x", Type: arrow.PrimitiveTypes.Int64, Nullable: true}},
		nil)
	ingest := func(rows ...string) error {
		var batches []arrow.RecordBatch
		for _, json := range rows {
			rec, _ := must.Get2(array.RecordFromJSON(mem, fields, strings.NewReader(json)))(t)
			defer rec.Release()
			batches = append(batches, rec)
		}
		r := must.Get(array.NewRecordReader(fields, batches))(t)
		defer r.Release()
		_, _, err := Ingest(context.Background(), table, r)
		return err
	}
	var bad *ColumnError
	if err := ingest(`[{"k":1,"x":5,"v":"a"},{"k":2}]`, `[{"k":3,"x":127},{"k":4,"x":128}]`); !errors.As(err, &bad) ||
		bad.Column != "x" || bad.Row != 3 || !errors.Is(err, ErrRow) {
		t.Error(err)
	}
	var row *oribi.RowError
	if err := ingest(`[{"k":1,"x":5,"v":"a"},{"k":2}]`, `[{"k":3},{"k":4,"v":"abc"}]`); !errors.As(err, &row) ||
		row.Column != "v" || row.Row != 3 {
		t.Error(err)
	}
	if err := ingest(`[{"k":2},{"k":1}]`); !errors.As(err, &row) || row.Row != 1 {
		t.Error(err)
	}
	must.Equal(t, must.Get(table.Count(context.Background()))(t), 0)
	must.Do(t, ingest(`[{"k":1,"x":5,"v":"a"},{"k":2}]`, `[]`, `[{"k":3},{"k":4,"v":"ab"}]`))
	same(t, "ingested", rowsOf(t, table),
		[]string{"8:\x01\x00\x00\x00\x00\x00\x00\x00|1:\x05|1:a|", "8:\x02\x00\x00\x00\x00\x00\x00\x00|NULL|NULL|",
			"8:\x03\x00\x00\x00\x00\x00\x00\x00|NULL|NULL|", "8:\x04\x00\x00\x00\x00\x00\x00\x00|NULL|2:ab|"})
}

// Append sets the columns that the record batch has, and converts them.
func TestAppendUpsertsSomeColumns(t *testing.T) {
	mem := checked(t)
	store := openStore(t)
	s := must.Get(schema.New([]schema.Column{{Name: "k", Type: schema.Int64},
		column(t, "a", "int64"), column(t, "b", "double")}, 1))(t)
	table := must.Get(store.CreateTable("t", s))(t)
	upsert := func(field, json string) {
		t.Helper()
		fields := arrow.NewSchema([]arrow.Field{{Name: "k", Type: arrow.PrimitiveTypes.Int8},
			{Name: field, Type: arrow.PrimitiveTypes.Int32, Nullable: true}}, nil)
		rec, _ := must.Get2(array.RecordFromJSON(mem, fields, strings.NewReader(json)))(t)
		b := store.NewBatch()
		err := Append(b, oribi.OpUpsert, table, rec)
		rec.Release()
		if err == nil {
			_, err = b.Commit(context.Background())
		}
		must.Do(t, err)
	}
	upsert("a", `[{"k":1,"a":10},{"k":2,"a":20}]`)
	upsert("b", `[{"k":2,"b":2},{"k":3}]`)
	row, err := table.Get(context.Background(), 2)
	if err != nil || row["a"] != int64(20) || row["b"] != 2.0 {
		t.Errorf("%v, %v", row, err)
	}
	must.Equal(t, must.Get(table.Count(context.Background()))(t), 3)
	rec, _ := must.Get2(array.RecordFromJSON(mem,
		arrow.NewSchema([]arrow.Field{{Name: "K", Type: arrow.PrimitiveTypes.Int8}}, nil),
		strings.NewReader(`[{"K":1}]`)))(t)
	defer rec.Release()
	if err := Append(store.NewBatch(), oribi.OpInsert, table, rec); !errors.Is(err, ErrNoColumn) ||
		!strings.Contains(err.Error(), `"K"`) {
		t.Error(err)
	}
}

// Vectors of types with the same layout alias the arrays, and arrays the vectors.
func TestNothingIsCopiedWhereLayoutsAgree(t *testing.T) {
	mem := memory.NewGoAllocator()
	for _, c := range scalarColumns() {
		width := c.Type.Width()
		if width == 0 || c.Type == schema.Bool || c.Type == schema.Decimal32 || c.Type == schema.Decimal64 {
			continue
		}
		v := batch.NewVector(c.Type, 128)
		clear(v.Data)
		v.NeedPresent().Clear(3)
		typ := must.Get(arrowType(&c))(t)
		a := must.Get(newExporter(c, typ, mem).array(v, 0, 128))(t)
		if b := a.Data().Buffers(); &b[1].Bytes()[0] != &v.Data[0] || &b[0].Bytes()[0] != &bytesOf(v.Present)[0] {
			t.Errorf("%s is copied to an array", c.Name)
		}
		im := must.Get(newImporter(c, typ, false))(t)
		back := must.Get(im.vector(a))(t)
		if &back.Data[0] != &v.Data[0] || &back.Present[0] != &v.Present[0] {
			t.Errorf("%s is copied to a vector", c.Name)
		}
	}
}
