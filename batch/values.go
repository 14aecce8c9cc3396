package batch

import (
	"fmt"
	"reflect"
	"unsafe"

	"github.com/oribi-db/oribi/schema"
)

// goTypes are the Go types of cells, by the physical type of a column.
var goTypes = map[schema.Type]reflect.Type{}

// goKinds are the kinds of goTypes, which Values compares: a named type such as time.Duration has
// the kind of int64. Int128 is the only struct.
var goKinds [256]reflect.Kind

func init() {
	for t, of := range map[schema.Type]reflect.Type{
		schema.Bool: reflect.TypeFor[uint8](), schema.Uint8: reflect.TypeFor[uint8](),
		schema.Int8:   reflect.TypeFor[int8](),
		schema.Uint16: reflect.TypeFor[uint16](), schema.Int16: reflect.TypeFor[int16](),
		schema.Uint32: reflect.TypeFor[uint32](), schema.Int32: reflect.TypeFor[int32](),
		schema.Uint64: reflect.TypeFor[uint64](), schema.Int64: reflect.TypeFor[int64](),
		schema.Float: reflect.TypeFor[float32](), schema.Double: reflect.TypeFor[float64](),
		schema.Int128: reflect.TypeFor[Int128](),
	} {
		goTypes[t], goKinds[t] = of, of.Kind()
	}
}

// Values returns the cells of v as a slice of v.Len values that aliases v.Data. The values of NULL
// cells are undefined; see IsNull.
//
// T is the Go type of v's type: the integer of the same width and sign, float32 or float64, Int128;
// uint8, 0 or 1, for BOOL; int32 for DATE and DECIMAL32; int64 for TIMESTAMP and DECIMAL64; Int128
// for DECIMAL128. A named type such as time.Duration is treated as its underlying type. Like a type
// assertion, Values panics for any other T. It also panics if Data is shorter than Len cells.
func Values[T Fixed](v *Vector) []T {
	if t := v.Type.Physical(); goKinds[t] != reflect.TypeFor[T]().Kind() {
		panic(fmt.Sprintf("batch: Values[%v] of a %s column: %s", reflect.TypeFor[T](), v.Type, accessor(v.Type)))
	}
	return Raw[T](v)
}

// accessor returns advice on how to read the cells of a type.
func accessor(t schema.Type) string {
	if of, ok := goTypes[t.Physical()]; ok {
		return fmt.Sprintf("use Values[%v]", of)
	}
	return "use Strings or Cell"
}

// Raw returns the bit patterns of the cells of v in a slice that aliases v.Data, for code that
// moves cells of any type. It panics if T is not as wide as v's type.
func Raw[T Fixed](v *Vector) []T {
	var z T
	size := int(unsafe.Sizeof(z))
	if w := v.Type.Width(); w != size {
		panic(fmt.Sprintf("batch: %T has %d bytes, %s has %d", z, size, v.Type, w))
	}
	if v.Len > len(v.Data)/size {
		panic(fmt.Sprintf("batch: a vector of %d cells of %s with %d bytes", v.Len, v.Type, len(v.Data)))
	}
	if v.Len == 0 {
		return nil
	}
	return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(v.Data))), v.Len)
}

// Strings returns copies of the cells of a column of byte strings: v.Len strings, "" for NULL.
// Equal cells of a vector in dictionary form share memory. It panics for other types, as Values
// does, and for vectors in array form.
func Strings(v *Vector) []string {
	if !v.Type.Variable() || v.Elements != nil {
		panic(fmt.Sprintf("batch: Strings of a %s column: %s", v.Type, accessor(v.Type)))
	}
	out := make([]string, v.Len)
	if v.Dict == nil {
		for i, cell := range v.Bytes[:v.Len] {
			if !v.IsNull(i) {
				out[i] = string(cell)
			}
		}
		return out
	}
	words := make([]string, len(v.Dict.Words))
	for i, code := range v.Codes[:v.Len] {
		if v.IsNull(i) {
			continue
		}
		if words[code] == "" {
			words[code] = string(v.Dict.Words[code])
		}
		out[i] = words[code]
	}
	return out
}
