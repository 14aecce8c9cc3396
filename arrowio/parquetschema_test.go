package arrowio

import (
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/internal/prooftest/values"
	"github.com/oribi-db/oribi/schema"
)

// schemaElements changes the elements of the schema of a Parquet file.
func withElements(t *testing.T, data []byte, change func(elements [][]byte) [][]byte) []byte {
	t.Helper()
	n := int(binary.LittleEndian.Uint32(data[len(data)-8:]))
	fields, _, ok := thriftFields(data[len(data)-8-n : len(data)-8])
	must.Equal(t, ok, true, "malformed footer")
	var out thriftStructWriter
	for i := range fields {
		if f := &fields[i]; f.id == footerSchema {
			elements, ok := thriftElements(f)
			must.Equal(t, ok, true, "malformed schema")
			elements = change(elements)
			f.value = binary.AppendUvarint([]byte{0xf<<4 | thriftStruct}, uint64(len(elements)))
			for _, e := range elements {
				f.value = append(f.value, e...)
			}
		}
		out.field(fields[i])
	}
	return withFooter(data, out.end())
}

// schemaElement returns an element with fields.
func schemaElement(name string, fields ...thriftField) []byte {
	fields = append(fields, nameField(&element{name: []byte(name)}))
	slices.SortFunc(fields, func(a, b thriftField) int { return int(a.id) - int(b.id) })
	var w thriftStructWriter
	for _, f := range fields {
		w.field(f)
	}
	return w.end()
}

func i32(id int16, v int32) thriftField {
	return thriftField{id, thriftI32, binary.AppendVarint(nil, int64(v))}
}

// logical returns an annotation with the given fields.
func logical(member int16, fields ...thriftField) thriftField {
	var in, out thriftStructWriter
	for _, f := range fields {
		in.field(f)
	}
	out.field(thriftField{member, thriftStruct, in.end()})
	return thriftField{elementLogicalType, thriftStruct, out.end()}
}

// group returns the element of an optional group of n fields.
func group(name string, n int32) []byte {
	return schemaElement(name, i32(elementRepetition, 1), i32(elementChildren, n))
}

// Groups without fields have no column chunk: wherever they are, each column has its values, and
// they are refused by name.
func TestGroupsWithoutFieldsHaveNoValues(t *testing.T) {
	columns := []schema.Column{{Name: "k", Type: schema.Int64}, {Name: "a", Type: schema.Int32},
		{Name: "b", Type: schema.Int32}}
	b := batch.New(columns, 3)
	for i := range 3 {
		batch.Raw[int64](b.Columns[0])[i], batch.Raw[int32](
			b.Columns[1])[i], batch.Raw[int32](b.Columns[2])[i] = int64(i), int32(10+i), int32(20+i)
	}
	_, data := writeBatches(t, columns, ParquetOptions{}, []*batch.RecordBatch{b})
	want := parquetRows(t, data, ReadOptions{})
	for seed := range uint64(40) {
		r, groups := values.NewRand(seed), 0
		changed := withElements(t, data, func(elements [][]byte) [][]byte {
			out := elements[:1:1]
			for _, e := range elements[1:] {
				for r.IntN(2) == 0 {
					depth := r.IntN(3)
					for level := range depth {
						out = append(out, group(fmt.Sprintf("g%d.%d", groups, level), 1))
					}
					last := group(fmt.Sprintf("g%d.%d", groups, depth), 0)
					if r.IntN(2) == 0 {
						last = schemaElement(fmt.Sprintf("g%d.%d", groups, depth),
							i32(elementRepetition, int32(r.IntN(3))))
					}
					out = append(out, last)
					groups++
				}
				out = append(out, e)
			}
			out[0] = schemaElement("root", i32(elementChildren, int32(groups+len(columns))))
			return out
		})
		f := openedParquet(t, changed)
		must.Equal(t, len(f.Definition().Refused), groups, seed)
		same(t, fmt.Sprint("seed ", seed), fileRows(t, f, ReadOptions{Columns: []string{"k", "a", "b"}}), want)
		f.Close()
	}
}

// An unknown annotation is ignored. An annotation that is malformed or does not fit the values is
// an error of its column alone.
func TestAnnotationsOfColumns(t *testing.T) {
	columns := []schema.Column{{Name: "k", Type: schema.Int64}, {Name: "n", Type: schema.Int32},
		{Name: "s", Type: schema.Binary}}
	b := batch.New(columns, 2)
	for i := range 2 {
		b.Columns[2].Bytes[i] = []byte("word")
		batch.Raw[int32](b.Columns[1])[i] = int32(7 + i)
	}
	_, data := writeBatches(t, columns, ParquetOptions{}, []*batch.RecordBatch{b})
	empty := thriftField{1, thriftStruct, []byte{0}}
	for name, test := range map[string]struct {
		column string
		fields []thriftField
		want   string // a type, or part of an error
		note   bool
	}{
		"later member":            {"n", []thriftField{logical(40)}, "int32", true},
		"later member of strings": {"s", []thriftField{logical(41, i32(1, 5))}, "binary", true},
		"with an older one":       {"s", []thriftField{i32(elementConverted, 0), logical(41)}, "string", false},
		"no member": {"n",
			[]thriftField{{elementLogicalType, thriftStruct, []byte{0}}}, "int32", false},
		"later converted type":    {"n", []thriftField{i32(elementConverted, 77)}, "int32", true},
		"negative converted type": {"n", []thriftField{i32(elementConverted, -5)}, "int32", true},
		"later unit of timestamps": {"k",
			[]thriftField{logical(8, thriftField{1, thriftTrue, nil},
				thriftField{2, thriftStruct, []byte{0x4c, 0, 0}})}, "int64", true},
		"no unit": {"k", []thriftField{logical(8, thriftField{1, thriftTrue, nil})}, "int64", true},
		"integers of 24 bits": {"n",
			[]thriftField{logical(10, thriftField{1, thriftByte, []byte{24}}, thriftField{2, thriftTrue, nil})},
			"int32", true},
		"integers of 16 bits": {"n",
			[]thriftField{logical(10, thriftField{1, thriftByte, []byte{16}}, thriftField{2, thriftFalse, nil})},
			"uint16", false},
		"timestamps": {"k",
			[]thriftField{logical(8, thriftField{1, thriftTrue, nil},
				thriftField{2, thriftStruct, append(append([]byte{0x1c}, 0), 0)})}, "timestamp", false},
		"geometry":            {"s", []thriftField{logical(17)}, "binary", false},
		"strings of integers": {"n", []thriftField{logical(1)}, "String with values of type INT32", false},
		"wide decimals": {"n", []thriftField{logical(5, i32(1, 0), i32(2, 12))},
			"values of type INT32", false},
		"decimals without precision": {"n", []thriftField{logical(5, i32(1, 0), i32(2, 0))}, "decimal(0,0)", false},
		"decimals of a large scale": {"n",
			[]thriftField{i32(elementConverted, 5), i32(elementScale, 9), i32(elementPrecision, 4)}, "decimal(4,9)",
			false},
		"list of single values": {"n", []thriftField{logical(3, empty)}, "int32", true},
		"no values":             {"n", []thriftField{logical(11)}, "string", true},
		"unknown interval": {"s",
			[]thriftField{i32(elementConverted, 21), logical(11)}, "the type INTERVAL", false},
		"malformed": {"n", []thriftField{{elementLogicalType, thriftStruct, []byte{0x15, 2, 0}}}, "malformed schema",
			false},
	} {
		changed := withElements(t, data, func(elements [][]byte) [][]byte {
			out := slices.Clone(elements)
			i := 1 + slices.IndexFunc(columns, func(c schema.Column) bool { return c.Name == test.column })
			physical := map[string]int32{"k": 2, "n": 1, "s": 6}[test.column]
			out[i] = schemaElement(test.column,
				append(test.fields, i32(elementType, physical), i32(elementRepetition, 0))...)
			return out
		})
		f := openedParquet(t, changed)
		d := f.Definition()
		got := ""
		if i := d.index(test.column); i >= 0 {
			got = d.Columns[i].TypeName()
		} else if len(d.Refused) == 1 && d.Refused[0].Column == test.column {
			got = d.Refused[0].Error()
		}
		if got != test.want && (!strings.Contains(test.want, " ") && !strings.Contains(test.want, "(") ||
			!strings.Contains(got, test.want)) {
			t.Errorf("%s: %s, want %s", name, got, test.want)
		}
		must.Equal(t, len(d.Notes) > 0, test.note, name, d.Notes)
		f.Close()
	}
}

// A malformed schema is refused at once: elements that are too few or too many, and groups that are
// nested without end.
func TestMalformedSchemas(t *testing.T) {
	columns := []schema.Column{{Name: "k", Type: schema.Int64}}
	_, data := writeBatches(t, columns, ParquetOptions{}, []*batch.RecordBatch{batch.New(columns, 2)})
	for name, test := range map[string]struct {
		change func(elements [][]byte) [][]byte
		want   error
	}{
		"too few":           {func(e [][]byte) [][]byte { return e[:1] }, ErrCorrupt},
		"too many":          {func(e [][]byte) [][]byte { return append(e, e[1]) }, ErrCorrupt},
		"many children":     {func(e [][]byte) [][]byte { return [][]byte{group("root", 1<<31-1), e[1]} }, ErrCorrupt},
		"negative children": {func(e [][]byte) [][]byte { return [][]byte{group("root", -1), e[1]} }, ErrCorrupt},
		"deep groups": {func(e [][]byte) [][]byte {
			out := e[:1:1]
			for range 100_000 {
				out = append(out, group("g", 1))
			}
			return append(out, e[1])
		}, ErrUnsupported},
		"repetition": {func(e [][]byte) [][]byte {
			return [][]byte{e[0], schemaElement("k", i32(elementType, 2), i32(elementRepetition, 3))}
		}, ErrCorrupt},
		"negative type": {func(e [][]byte) [][]byte {
			return [][]byte{e[0], schemaElement("k", i32(elementType, -2), i32(elementRepetition, 0))}
		}, ErrCorrupt},
	} {
		changed := withElements(t, data, test.change)
		must.Fail(t, must.Err(formats["parquet"].open(changed, nil)), test.want, name)
	}
}
