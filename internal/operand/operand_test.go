package operand

import (
	"encoding/binary"
	"errors"
	"math"
	"math/big"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/schema"
)

var numbers = []schema.Column{{Type: schema.Int8}, {Type: schema.Int16}, {Type: schema.Int32}, {Type: schema.Int64},
	{Type: schema.Uint8}, {Type: schema.Uint16}, {Type: schema.Uint32}, {Type: schema.Uint64}, {Type: schema.Int128},
	{Type: schema.Decimal32, Precision: 7, Scale: 2}, {Type: schema.Decimal64, Precision: 18},
	{Type: schema.Decimal128, Precision: 38, Scale: 38}}

// Sums of integers and decimals are the sums of big.Int, or refused if the column cannot represent them.
// Of two operands that can be joined, the one does what both do.
func TestAddMatchesBigIntegers(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 2))
	overflows, joined := 0, 0
	for range 20000 {
		c := &numbers[r.IntN(len(numbers))]
		least, most := rangeOf(c)
		v := near(r, least, most)
		before := cellOf(v)[:c.Type.Width()]
		ops := [2]Operand{{Kind: Add, Cell: cellOf(near(r, least, most))}, {Kind: Add, Cell: cellOf(near(r, least, most))}}
		if r.IntN(4) == 0 {
			before, v = nil, new(big.Int)
		}
		cell, want := before, v
		var err error
		for k := range ops {
			want = new(big.Int).Add(want, bigOf(batch.Int128OfCell(schema.Int128, ops[k].Cell)))
			if cell, err = ops[k].Apply(c, cell, 0); want.Cmp(least) < 0 || want.Cmp(most) > 0 {
				must.Fail(t, err, fault.ErrOverflow, c.TypeName(), v, want)
				overflows++
				break
			}
			must.Do(t, err, c.TypeName(), v, want)
			must.Equal(t, cell, cellOf(want)[:c.Type.Width()], c.TypeName(), v)
		}
		if one, ok := ops[0].Join(&ops[1], c); ok {
			got, oneErr := one.Apply(c, before, 0)
			must.Equal(t, got, cell, c.TypeName(), v, "joined")
			must.Equal(t, errors.Is(oneErr, fault.ErrOverflow), err != nil, c.TypeName(), v, "joined")
			joined++
		}
	}
	if overflows < 1000 || joined < 1000 {
		t.Errorf("%d overflows, %d joined", overflows, joined)
	}
}

func rangeOf(c *schema.Column) (least, most *big.Int) {
	one := big.NewInt(1)
	bits := uint(8 * c.Type.Width())
	switch {
	case c.Type.Decimal():
		most = new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(c.Precision)), nil)
		most.Sub(most, one)
		return new(big.Int).Neg(most), most
	case slices.Contains([]schema.Type{schema.Uint8, schema.Uint16, schema.Uint32, schema.Uint64}, c.Type):
		most = new(big.Int).Lsh(one, bits)
		return new(big.Int), most.Sub(most, one)
	}
	most = new(big.Int).Lsh(one, bits-1)
	return new(big.Int).Neg(most), new(big.Int).Sub(most, one)
}

// near returns a number in a range, mostly close to an end or to 0.
func near(r *rand.Rand, least, most *big.Int) *big.Int {
	d := big.NewInt(r.Int64N(5))
	switch r.IntN(4) {
	case 0:
		return new(big.Int).Add(least, d)
	case 1:
		return new(big.Int).Sub(most, d)
	case 2:
		return d
	}
	x := new(big.Int).Sub(most, least)
	x.Mul(x, big.NewInt(r.Int64N(1000)))
	return x.Div(x, big.NewInt(1000)).Add(x, least)
}

func cellOf(v *big.Int) []byte {
	m := new(big.Int).And(v, new(big.Int).Sub(new(big.Int).Lsh(big.NewInt(1), 128), big.NewInt(1)))
	b := m.FillBytes(make([]byte, 16))
	slices.Reverse(b)
	return b
}

func bigOf(v batch.Int128) *big.Int {
	x := new(big.Int).Lsh(big.NewInt(v.Hi), 64)
	return x.Add(x, new(big.Int).SetUint64(v.Lo))
}

// Minima and maxima of floats do not depend on the order in which they are computed.
func TestMinAndMaxOrderFloats(t *testing.T) {
	ascending := []float64{math.Inf(-1), -1, math.Copysign(0, -1), 0, 1, math.Inf(1), math.NaN()}
	for _, typ := range []schema.Type{schema.Float, schema.Double} {
		c := &schema.Column{Type: typ}
		cell := func(f float64) []byte {
			if typ == schema.Float {
				return binary.LittleEndian.AppendUint32(nil, math.Float32bits(float32(f)))
			}
			return binary.LittleEndian.AppendUint64(nil, math.Float64bits(f))
		}
		for i := range ascending {
			for j := range ascending {
				least := Operand{Kind: Min, Cell: cell(ascending[j])}
				must.Equal(t, must.Get(least.Apply(c, cell(ascending[i]), 0))(t), cell(ascending[min(i, j)]), typ, i, j)
				most := Operand{Kind: Max, Cell: cell(ascending[j])}
				must.Equal(t, must.Get(most.Apply(c, cell(ascending[i]), 0))(t), cell(ascending[max(i, j)]), typ, i, j)
			}
		}
		huge := Operand{Kind: Add, Cell: cell(math.MaxFloat32)}
		if typ == schema.Double {
			huge.Cell = cell(math.MaxFloat64)
		}
		must.Fail(t, must.Err(huge.Apply(c, huge.Cell, 0)), fault.ErrOverflow)
		must.Equal(t, must.Get(huge.Apply(c, cell(math.Inf(1)), 0))(t), cell(math.Inf(1)))
		must.Equal(t, must.Get(huge.Apply(c, cell(0), 0))(t), huge.Cell)
		sumIsNaN := func(a, b []byte) { // with the same bits, whatever the processor returns
			t.Helper()
			add := Operand{Kind: Add, Cell: a}
			must.Equal(t, must.Get(add.Apply(c, b, 0))(t), cell(math.NaN()), "sum of", a, b)
		}
		other := cell(math.NaN())
		other[len(other)-1] |= 0x80
		sumIsNaN(other, cell(1))
		sumIsNaN(cell(1), other)
		sumIsNaN(other, cell(math.NaN()))
		sumIsNaN(cell(math.Inf(1)), cell(math.Inf(-1)))
	}
}

func TestAppendRefusesLongResults(t *testing.T) {
	short := &schema.Column{Type: schema.Varchar, Length: 3}
	o := Operand{Kind: Append, Cell: []byte("ü")}
	must.Equal(t, string(must.Get(o.Apply(short, []byte("üü"), 100))(t)), "üüü")
	must.Fail(t, must.Err(o.Apply(short, []byte("üüü"), 100)), fault.ErrOverflow)
	must.Fail(t, must.Err(o.Apply(&schema.Column{Type: schema.Binary}, []byte("abc"), 4)), fault.ErrOverflow)
	empty := Operand{Kind: Append, Cell: []byte{}}
	if cell := must.Get(empty.Apply(short, []byte{}, 100))(t); cell == nil {
		t.Error("an empty string became NULL")
	}
}

func TestCountersAreBigEndian(t *testing.T) {
	c := &schema.Column{Type: schema.Binary}
	add := func(v int64) *Operand {
		return &Operand{Kind: AddCounter, Cell: binary.BigEndian.AppendUint64(nil, uint64(v))}
	}
	must.Equal(t, must.Get(add(258).Apply(c, nil, 0))(t), []byte{0, 0, 0, 0, 0, 0, 1, 2})
	must.Equal(t, must.Get(add(-3).Apply(c, add(1).Cell, 0))(t), add(-2).Cell)
	must.Fail(t, must.Err(add(1).Apply(c, add(math.MaxInt64).Cell, 0)), fault.ErrOverflow)
	must.Fail(t, must.Err(add(-1).Apply(c, add(math.MinInt64).Cell, 0)), fault.ErrOverflow)
	must.Equal(t, must.Get(add(0).Apply(c, add(math.MinInt64).Cell, 0))(t), add(math.MinInt64).Cell)
	for _, bad := range []string{"", "1", "123456789"} {
		must.Fail(t, must.Err(add(1).Apply(c, []byte(bad), 0)), ErrNotCounter)
	}
}
