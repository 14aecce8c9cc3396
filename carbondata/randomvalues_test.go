package carbondata

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/internal/calendar"
)

// randomColumn returns a column, with children down to the fourth level. There are few columns with
// children.
func randomColumn(rnd *rand.Rand, name string, nested *int, depth int) Column {
	types := []Type{String, String, Short, Int, Long, Double, Decimal, Decimal, Timestamp, Date,
		Boolean, Varchar, Float, Byte, Binary}
	if depth > 0 {
		types = []Type{String, Short, Int, Long, Double, Decimal, Timestamp, Date, Boolean, Float, Byte}
	}
	if *nested < 3 && depth < 3 {
		types = append(types, Array, Struct, Map)
	}
	c := Column{Name: name, Type: types[rnd.IntN(len(types))]}
	child := func(name string) Column { return randomColumn(rnd, name, nested, depth+1) }
	switch c.Type {
	case Decimal:
		c.Precision = 1 + rnd.IntN(maxPrecision)
		c.Scale = rnd.IntN(c.Precision + 1)
	case Array:
		*nested++
		c.Children = []Column{child("element")}
	case Struct:
		*nested++
		for i := range 1 + rnd.IntN(3) {
			c.Children = append(c.Children, child(fmt.Sprintf("f%d", i)))
		}
	case Map:
		*nested++
		key := Column{Name: "key", Type: []Type{String, Int, Long, Date}[rnd.IntN(4)]}
		c.Children = []Column{{Name: "pair", Type: Struct, Children: []Column{key, child("value")}}}
	}
	return c
}

// randomValues returns a function that returns values of a column. The column's values are of one
// kind, such as small numbers or long texts, with none, few, many, or only nulls.
func randomValues(rnd *rand.Rand, c Column, element bool) func() any {
	nulls := []float64{0, 0, 0.02, 0.5, 1}[rnd.IntN(5)]
	if c.Type == Varchar && !element {
		nulls = 0 // is read as ""
	}
	value := randomPresent(rnd, c)
	repeat := 0.0 // share of rows with the value of the row before
	if rnd.IntN(4) == 0 {
		repeat = 0.95
	}
	var last any
	first := true
	return func() any {
		if first || rnd.Float64() >= repeat {
			last, first = nil, false
			if rnd.Float64() >= nulls {
				last = value()
			}
		}
		return last
	}
}

func randomPresent(rnd *rand.Rand, c Column) func() any {
	switch c.Type {
	case String, Varchar:
		text := randomText(rnd)
		return func() any {
			s := text()
			if s == nullText {
				return "null"
			}
			return s
		}
	case Binary:
		text := randomText(rnd)
		return func() any { return []byte("b" + text()) } // no bytes are read as null
	case Boolean:
		most := []int{1, 2, 2}[rnd.IntN(3)]
		return func() any { return rnd.IntN(most) == 0 }
	case Float:
		number := randomFloat(rnd, 32)
		return func() any { return float32(number()) }
	case Double:
		number := randomFloat(rnd, 64)
		return func() any { return number() }
	case Decimal:
		return randomDecimal(rnd, c.Precision)
	case Array:
		return randomList(rnd, randomValues(rnd, c.Children[0], true))
	case Map:
		pair := c.Children[0].Children
		key, value := randomPresent(rnd, pair[0]), randomValues(rnd, pair[1], true)
		return randomList(rnd, func() any { return []any{key(), value()} })
	case Struct:
		fields := make([]func() any, len(c.Children))
		for i, child := range c.Children {
			fields[i] = randomValues(rnd, child, true)
		}
		return func() any {
			row := make([]any, len(fields))
			some := false
			for i, field := range fields {
				row[i] = field()
				some = some || row[i] != nil
			}
			if !some {
				return nil // is read as null
			}
			return row
		}
	}
	return randomInteger(rnd, c.Type)
}

// randomList returns lists, not of exactly one null, which are read as null.
func randomList(rnd *rand.Rand, element func() any) func() any {
	most := []int{1, 2, 4, 40}[rnd.IntN(4)]
	return func() any {
		list := []any{}
		for range rnd.IntN(most + 1) {
			list = append(list, element())
		}
		if len(list) == 1 && list[0] == nil {
			return []any{}
		}
		return list
	}
}

func randomText(rnd *rand.Rand) func() string {
	n := 0
	words := 1 + rnd.IntN(40)
	switch rnd.IntN(7) {
	case 0:
		return func() string { return fmt.Sprintf("word %d", rnd.IntN(words)) }
	case 1:
		return func() string { n++; return fmt.Sprintf("%d of many", n) }
	case 2:
		return func() string { return strings.Repeat("x", rnd.IntN(3)) }
	case 3:
		return func() string { return strings.Repeat("long ", 40+rnd.IntN(40)) + fmt.Sprint(rnd.IntN(words)) }
	case 4:
		return func() string { // any code point but surrogates
			s := make([]rune, rnd.IntN(8))
			for i := range s {
				s[i] = []rune{rnd.Int32N(0x80), 0xe0 + rnd.Int32N(0x100), 0x4e00 + rnd.Int32N(0x1000),
					0x1f300 + rnd.Int32N(0x100), 0, '\\', '"'}[rnd.IntN(7)]
			}
			return string(s)
		}
	case 5:
		return func() string {
			if rnd.IntN(1000) == 0 {
				return strings.Repeat("y", 32000)
			}
			return "short"
		}
	}
	return func() string { return "always the same" }
}

// randomInteger returns integers, dates, or times that need a random number of bytes, or that are
// close together.
func randomInteger(rnd *rand.Rand, typ Type) func() any {
	limit := integers[typ]
	width := int64(1) << rnd.IntN(63)
	base := int64(0)
	if rnd.IntN(2) == 0 {
		base = limit.least + int64(rnd.Uint64N(uint64(limit.most)-uint64(limit.least)))
	}
	extremes := rnd.IntN(6) == 0
	return func() any {
		v := base + rnd.Int64N(width) - width/2
		if extremes {
			v = []int64{limit.least, limit.most, 0, -1, 1}[rnd.IntN(5)]
		}
		v = min(max(v, limit.least), limit.most)
		switch typ {
		case Byte:
			return int8(v)
		case Short:
			return int16(v)
		case Int:
			return int32(v)
		case Date:
			return Days(writableDay(v))
		case Timestamp:
			day, of := calendar.FloorDiv(v*limit.step, dayMicros)
			return Micros(writableDay(day)*dayMicros + of)
		}
		return v
	}
}

// randomFloat returns numbers with a fixed number of decimals, with and without a base, numbers
// with any bits, and special values.
func randomFloat(rnd *rand.Rand, bits int) func() float64 {
	decimals := math.Pow10(rnd.IntN(7))
	width := int64(1) << rnd.IntN(min(bits, 53))
	base := 0.0
	if rnd.IntN(3) == 0 {
		base = float64(rnd.Int64N(1 << 24))
	}
	switch rnd.IntN(5) {
	case 0:
		return func() float64 {
			x := math.Float64frombits(rnd.Uint64())
			if bits == 32 {
				x = float64(math.Float32frombits(rnd.Uint32()))
			}
			if math.IsNaN(x) {
				return 1
			}
			return x
		}
	case 1:
		special := []float64{0, math.Copysign(0, -1), math.Inf(1), math.Inf(-1), math.NaN(), math.MaxFloat64,
			math.SmallestNonzeroFloat64, 0.1, 1e300}
		if bits == 32 {
			special = []float64{0, math.Copysign(0, -1), math.Inf(1), math.Inf(-1), math.NaN(), math.MaxFloat32,
				math.SmallestNonzeroFloat32, 0.1, 1e30}
		}
		some := special[rnd.IntN(len(special)):]
		return func() float64 { return some[rnd.IntN(len(some))] }
	}
	return func() float64 { return base + float64(rnd.Int64N(width)-width/2)/decimals }
}

func randomDecimal(rnd *rand.Rand, precision int) func() any {
	digits := 1 + rnd.IntN(precision)
	signs := 1 + rnd.IntN(2)
	return func() any {
		v := batch.Int128Of(0)
		for range digits {
			v, _ = v.Mul10()
			v = addInt128(v, rnd.Int64N(10))
		}
		if rnd.IntN(signs) == 1 {
			v = v.Neg()
		}
		return v
	}
}

// addInt128 adds a small number to a number that is not negative.
func addInt128(v batch.Int128, n int64) batch.Int128 {
	lo := v.Lo + uint64(n)
	if lo < v.Lo {
		v.Hi++
	}
	v.Lo = lo
	return v
}
