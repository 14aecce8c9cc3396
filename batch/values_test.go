package batch

import (
	"testing"
	"time"

	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/schema"
)

// panicText returns what f panics with, empty if it returns.
func panicText(f func()) (text string) {
	defer func() {
		if r := recover(); r != nil {
			text = r.(string)
		}
	}()
	f()
	return ""
}

func TestValuesRefusesOtherKinds(t *testing.T) {
	for name, f := range map[string]func(){
		"int64 of DOUBLE":      func() { Values[int64](NewVector(schema.Double, 1)) },
		"float64 of INT64":     func() { Values[float64](NewVector(schema.Int64, 1)) },
		"uint64 of INT64":      func() { Values[uint64](NewVector(schema.Int64, 1)) },
		"int32 of INT64":       func() { Values[int32](NewVector(schema.Int64, 1)) },
		"int32 of FLOAT":       func() { Values[int32](NewVector(schema.Float, 1)) },
		"int64 of STRING":      func() { Values[int64](NewVector(schema.String, 1)) },
		"int8 of BOOL":         func() { Values[int8](NewVector(schema.Bool, 1)) },
		"int64 of DECIMAL128":  func() { Values[int64](NewVector(schema.Decimal128, 1)) },
		"no cells, other kind": func() { Values[int64](NewVector(schema.Double, 0)) },
		"data too short":       func() { Values[int64](&Vector{Type: schema.Int64, Len: 2, Data: make([]byte, 8)}) },
		"arrays":               func() { Values[int32](arraysVector()) },
		"Strings of INT64":     func() { Strings(NewVector(schema.Int64, 1)) },
		"Strings of arrays":    func() { Strings(NewArrays(schema.String)) },
		"Raw of another width": func() { Raw[uint32](NewVector(schema.Double, 1)) },
	} {
		if panicText(f) == "" {
			t.Errorf("%s: no panic", name)
		}
	}
	must.Contain(t, panicText(func() { Values[int64](NewVector(schema.Double, 1)) }), "use Values[float64]",
		"the panic does not name the right call")
}

func TestValuesAcceptsEveryFixedType(t *testing.T) {
	for typ, f := range map[schema.Type]func(v *Vector) int{
		schema.Bool:       func(v *Vector) int { return len(Values[uint8](v)) },
		schema.Uint8:      func(v *Vector) int { return len(Values[uint8](v)) },
		schema.Int8:       func(v *Vector) int { return len(Values[int8](v)) },
		schema.Uint16:     func(v *Vector) int { return len(Values[uint16](v)) },
		schema.Int16:      func(v *Vector) int { return len(Values[int16](v)) },
		schema.Uint32:     func(v *Vector) int { return len(Values[uint32](v)) },
		schema.Int32:      func(v *Vector) int { return len(Values[int32](v)) },
		schema.Date:       func(v *Vector) int { return len(Values[int32](v)) },
		schema.Decimal32:  func(v *Vector) int { return len(Values[int32](v)) },
		schema.Uint64:     func(v *Vector) int { return len(Values[uint64](v)) },
		schema.Int64:      func(v *Vector) int { return len(Values[time.Duration](v)) },
		schema.Timestamp:  func(v *Vector) int { return len(Values[int64](v)) },
		schema.Decimal64:  func(v *Vector) int { return len(Values[int64](v)) },
		schema.Float:      func(v *Vector) int { return len(Values[float32](v)) },
		schema.Double:     func(v *Vector) int { return len(Values[float64](v)) },
		schema.Int128:     func(v *Vector) int { return len(Values[Int128](v)) },
		schema.Decimal128: func(v *Vector) int { return len(Values[Int128](v)) },
	} {
		must.Equal(t, f(NewVector(typ, 3)), 3, typ, "values")
	}
}

func TestStringsCopiesCells(t *testing.T) {
	v := NewVector(schema.String, 3)
	cell := []byte("first")
	v.SetCell(0, cell)
	v.SetCell(1, nil)
	v.SetCell(2, []byte{})
	got := Strings(v)
	cell[0] = 'X'
	must.Equal(t, got, []string{"first", "", ""})
	d := dictionaryVector(1, 0, 1)
	d.NeedPresent().Clear(1)
	must.Equal(t, Strings(d), []string{"b", "", "b"}, "dictionary")
}
