package aggregate

import (
	"math"
	"math/bits"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/schema"
)

// rows are the selected rows of a batch, numbered from 0 to n-1.
type rows struct {
	n   int
	all bool    // row j is row j of the batch
	at  []int32 // row j is row at[j] of the batch, unless all is set
}

// take selects the rows of a batch.
func (r *rows) take(b *batch.RecordBatch) {
	r.n = b.Selected()
	if r.all = r.n == b.Len; r.all {
		return
	}
	r.at = r.at[:0]
	for w, word := range b.Selection {
		for ; word != 0; word &= word - 1 {
			r.at = append(r.at, int32(w<<6+bits.TrailingZeros64(word)))
		}
	}
}

// row returns the row of the batch that row j is.
func (r *rows) row(j int) int {
	if r.all {
		return j
	}
	return int(r.at[j])
}

// column is one column of a batch: its cells of the selected rows, as numbers. Integers are in ints
// if all of them fit, else in wide. The cells of NULLs are 0.
type column struct {
	typ    schema.Type
	scale  int  // of decimals
	loaded bool // the numbers below are of the current batch
	tested bool // valid and count are
	ints   []int64
	wide   []batch.Int128
	floats []float64
	// valid is 1 for a value, 0 for NULL. It is nil if no cell is NULL.
	valid []uint8
	count int64 // values
	// most is a bound: no magnitude in ints is above it. It is 0 if no bound is known.
	most uint64

	intBuf   []int64
	wideBuf  []batch.Int128
	floatBuf []float64
	validBuf []uint8
}

// grown returns a slice of n elements with undefined values, in s's memory if that is large enough.
func grown[T any](s []T, n int) []T {
	if cap(s) < n {
		return make([]T, n)
	}
	return s[:n]
}

// load reads the selected cells of v, whose type is numeric, once per batch.
func (c *column) load(v *batch.Vector, r *rows) {
	if c.loaded {
		return
	}
	c.loaded = true
	c.loadValid(v, r)
	c.ints, c.wide, c.floats, c.most = nil, nil, nil, 0
	switch c.typ.Physical() {
	case schema.Float:
		c.floatBuf = gather(c.floatBuf, batch.Raw[float32](v), c.valid, r)
		c.floats = c.floatBuf
	case schema.Double:
		if c.floats = batch.Raw[float64](v); !r.all || c.valid != nil {
			c.floatBuf = gather(c.floatBuf, c.floats, c.valid, r)
			c.floats = c.floatBuf
		}
	case schema.Int128:
		c.loadWide(batch.Raw[batch.Int128](v), r)
	case schema.Uint64:
		c.intBuf = gather(c.intBuf, batch.Raw[uint64](v), c.valid, r)
		c.ints = c.intBuf
		c.widen()
	case schema.Int64:
		if c.ints = batch.Raw[int64](v); !r.all || c.valid != nil {
			c.intBuf = gather(c.intBuf, c.ints, c.valid, r)
			c.ints = c.intBuf
		}
	default:
		c.loadNarrow(v, r)
	}
}

// loadValid finds the NULLs.
func (c *column) loadValid(v *batch.Vector, r *rows) {
	if c.tested {
		return
	}
	c.tested = true
	if c.valid, c.count = nil, int64(r.n); v.Present == nil {
		return
	}
	c.validBuf = grown(c.validBuf, r.n)
	c.count = 0
	for j := range c.validBuf {
		i := r.row(j)
		bit := uint8(v.Present[i>>6] >> (uint(i) & 63) & 1)
		c.validBuf[j] = bit
		c.count += int64(bit)
	}
	if c.count < int64(r.n) {
		c.valid = c.validBuf
	}
}

// loadNarrow reads integers of less than 64 bits.
func (c *column) loadNarrow(v *batch.Vector, r *rows) {
	switch c.typ.Physical() {
	case schema.Int8:
		c.intBuf = gather(c.intBuf, batch.Raw[int8](v), c.valid, r)
	case schema.Uint8, schema.Bool:
		c.intBuf = gather(c.intBuf, batch.Raw[uint8](v), c.valid, r)
	case schema.Int16:
		c.intBuf = gather(c.intBuf, batch.Raw[int16](v), c.valid, r)
	case schema.Uint16:
		c.intBuf = gather(c.intBuf, batch.Raw[uint16](v), c.valid, r)
	case schema.Int32:
		c.intBuf = gather(c.intBuf, batch.Raw[int32](v), c.valid, r)
	case schema.Uint32:
		c.intBuf = gather(c.intBuf, batch.Raw[uint32](v), c.valid, r)
	default:
		panic("aggregate: a " + c.typ.String() + " column is not numeric")
	}
	c.ints, c.most = c.intBuf, 1<<(8*c.typ.Width())
}

// gather returns the selected cells, 0 for NULL, in dst's memory if that is large enough.
func gather[D int64 | float64, S int8 | uint8 | int16 | uint16 | int32 | uint32 | int64 | uint64 | float32 |
	float64](dst []D, src []S, valid []uint8, r *rows) []D {
	dst = grown(dst, r.n)
	if r.all {
		for j, v := range src[:len(dst)] {
			dst[j] = D(v)
		}
	} else {
		for j, i := range r.at[:len(dst)] {
			dst[j] = D(src[i])
		}
	}
	for j, ok := range valid {
		if ok == 0 {
			dst[j] = 0
		}
	}
	return dst
}

// loadWide reads integers of 128 bits.
func (c *column) loadWide(src []batch.Int128, r *rows) {
	c.wideBuf = grown(c.wideBuf, r.n)
	narrow := true
	for j := range c.wideBuf {
		x := src[r.row(j)]
		if c.valid != nil && c.valid[j] == 0 {
			x = batch.Int128{}
		}
		c.wideBuf[j] = x
		narrow = narrow && x.Hi == int64(x.Lo)>>63
	}
	if !narrow {
		c.wide = c.wideBuf
		return
	}
	c.intBuf = grown(c.intBuf, r.n)
	for j, x := range c.wideBuf {
		c.intBuf[j] = int64(x.Lo)
	}
	c.ints = c.intBuf
}

// widen moves the bits of unsigned integers from ints to wide if some are above the range of int64.
func (c *column) widen() {
	var all int64
	for _, x := range c.ints {
		all |= x
	}
	if all >= 0 {
		return
	}
	c.wideBuf = grown(c.wideBuf, len(c.ints))
	for j, x := range c.ints {
		c.wideBuf[j] = batch.Int128{Lo: uint64(x)}
	}
	c.ints, c.wide = nil, c.wideBuf
}

// bound returns a number that no magnitude of ints is above.
func (c *column) bound() uint64 {
	if c.most == 0 {
		c.most = mostOf(c.ints)
	}
	return c.most
}

// float returns value j as the nearest float.
func (c *column) float(j int) float64 {
	switch {
	case c.floats != nil:
		return c.floats[j]
	case c.ints != nil:
		return float64(c.ints[j]) / powers[c.scale]
	}
	return c.wide[j].Float64() / powers[c.scale]
}

// powers contains 10^0 to 10^38.
var powers = func() (p [39]float64) {
	for i := range p {
		p[i] = math.Pow10(i)
	}
	return
}()
