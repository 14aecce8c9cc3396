package carbondata

import (
	"encoding/binary"
	"math"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/schema"
)

// Cells that are decoded at once.
const (
	chunkCells = 512 // their integers fit into the cache
	fewCells   = 16  // of the rows that a filter leaves
)

// fillNumbers decodes the numbers of rows [from, to).
func (p *page) fillNumbers(v *batch.Vector, at, from, to int) error {
	n := &p.numbers
	if p.inverse == nil && n.enc == encDirectCompress && n.little() {
		w := n.width
		copy(v.Data[at*w:(at+to-from)*w], n.data[from*w:to*w])
		return nil
	}
	switch {
	case n.digits != 0:
		return p.fillValues(v, at, from, to)
	case n.typ == Decimal && n.enc == encDirectCompress:
		return p.fillDecimals(v, at, from, to)
	}
	if to-from <= fewCells {
		var buffer [fewCells]int64
		return p.fillIntegers(v, at, from, to, buffer[:])
	}
	var buffer [chunkCells]int64
	return p.fillIntegers(v, at, from, to, buffer[:])
}

// fillIntegers decodes the numbers of rows [from, to) that are stored as integers, as many at once
// as there are in buffer.
func (p *page) fillIntegers(v *batch.Vector, at, from, to int, buffer []int64) error {
	n := &p.numbers
	for from < to {
		chunk := buffer[:min(to-from, len(buffer))]
		if p.inverse == nil {
			n.load(chunk, from)
		} else {
			for i, entry := range p.inverse[from : from+len(chunk)] {
				chunk[i] = n.stored(int(entry))
			}
		}
		if n.enc == encAdaptiveDelta || n.enc == encAdaptiveFloatDel {
			for i, s := range chunk {
				chunk[i] = n.max - s
			}
		}
		bad := n.store8(v, at, chunk)
		if n.typ == Decimal {
			bad = n.longDecimal(chunk)
		}
		if bad >= 0 {
			// A number that a null has in its place need not be in the range.
			for i, x := range chunk[bad:] {
				if row := from + bad + i; !p.isNull(row) {
					if err := n.check(x); err != nil {
						return inCell(err, at+bad+i, row)
					}
				}
			}
		}
		at, from = at+len(chunk), from+len(chunk)
	}
	return nil
}

// fillDecimals decodes DECIMALs that are stored as bytes.
func (p *page) fillDecimals(v *batch.Vector, at, from, to int) error {
	n := &p.numbers
	for row := from; row < to; row++ {
		i := p.entry(row)
		x := batch.Int128(int128(n.data[i*n.width : (i+1)*n.width]))
		if err := n.checkDecimal(x); err != nil && !p.isNull(row) {
			return inside(err, "row %d", row)
		}
		setDecimal(v, at+row-from, x)
	}
	return nil
}

// little reports whether the stored numbers are cells, little-endian.
func (n *numbers) little() bool {
	switch n.typ {
	case Byte:
		return n.width == 1
	case Float:
		return n.store == inFloat
	case Double:
		return n.store == inDouble
	case Short:
		return n.width == 2
	case Int:
		return n.width == 4
	case Long:
		return n.width == 8
	}
	return false
}

// load loads the stored numbers from number from on.
func (n *numbers) load(dst []int64, from int) {
	b := n.data[from*n.width : (from+len(dst))*n.width]
	le := binary.LittleEndian
	switch n.width {
	case 1:
		for i, c := range b {
			dst[i] = int64(int8(c))
		}
	case 2:
		for i := range dst {
			dst[i] = int64(int16(le.Uint16(b[2*i:])))
		}
	case 3:
		i := 0
		for ; i+3 <= len(dst); i += 2 { // two numbers in the eight bytes that are loaded
			two := int64(binary.BigEndian.Uint64(b[3*i:]))
			dst[i], dst[i+1] = two>>40, two<<24>>40
		}
		for ; i < len(dst); i++ {
			dst[i] = n.stored(from + i)
		}
	case 4:
		for i := range dst {
			dst[i] = int64(int32(le.Uint32(b[4*i:])))
		}
	default:
		for i := range dst {
			dst[i] = int64(le.Uint64(b[8*i:]))
		}
	}
}

// store8 stores decoded integers as cells. It returns the index of the first integer out of the
// range of the type, or −1.
func (n *numbers) store8(v *batch.Vector, at int, src []int64) (bad int) {
	switch v.Type.Width() {
	case 1:
		if n.typ == Boolean {
			dst := batch.Raw[uint8](v)[at:]
			for i, x := range src {
				if dst[i] = 0; x != 0 {
					dst[i] = 1
				}
			}
			return -1
		}
		return narrow(batch.Raw[int8](v)[at:], src)
	case 2:
		return narrow(batch.Raw[int16](v)[at:], src)
	case 4:
		if n.typ == Float {
			floats(batch.Raw[float32](v)[at:], src, n)
			return -1
		}
		return narrow(batch.Raw[int32](v)[at:], src)
	case 16:
		dst := batch.Raw[batch.Int128](v)[at:]
		for i, x := range src {
			dst[i] = batch.Int128Of(x)
		}
		return -1
	}
	switch n.typ {
	case Double:
		floats(batch.Raw[float64](v)[at:], src, n)
	case Timestamp:
		return timestamps(batch.Raw[int64](v)[at:], src)
	default:
		copy(batch.Raw[int64](v)[at:], src)
	}
	return -1
}

// narrow stores integers in fewer bytes, see store8.
func narrow[T int8 | int16 | int32](dst []T, src []int64) (bad int) {
	var differ int64
	for i, x := range src {
		dst[i] = T(x)
		differ |= int64(T(x)) ^ x
	}
	if differ == 0 {
		return -1
	}
	for int64(dst[bad]) == src[bad] {
		bad++
	}
	return bad
}

// timestamps stores milliseconds as microseconds, see store8.
func timestamps(dst, src []int64) (bad int) {
	bad = -1
	for i, x := range src {
		if bad < 0 && (x < math.MinInt64/microsPerMilli || x > math.MaxInt64/microsPerMilli) {
			bad = i
		}
		dst[i] = x * microsPerMilli
	}
	return bad
}

// floats stores the numbers that decoded integers are.
func floats[T float32 | float64](dst []T, src []int64, n *numbers) {
	switch {
	case n.enc == encAdaptiveFloat || n.enc == encAdaptiveFloatDel:
		for i, x := range src {
			dst[i] = T(float64(x) / n.factor)
		}
	case n.store == inDouble:
		for i, x := range src {
			dst[i] = T(math.Float64frombits(uint64(x)))
		}
	case n.store == inFloat:
		for i, x := range src {
			dst[i] = T(math.Float32frombits(uint32(x)))
		}
	default:
		for i, x := range src {
			dst[i] = T(float64(x))
		}
	}
}

// longDecimal returns the index of an unscaled DECIMAL with more digits than the column, and −1 if
// there is none; none before it has more.
func (n *numbers) longDecimal(src []int64) int {
	if schema.DecimalType(n.precision) == schema.Decimal128 {
		return -1 // an int64 does not have that many
	}
	most := batch.Pow10(n.precision).Lo - 1
	for i, x := range src {
		if uint64(x)+most > 2*most {
			return i
		}
	}
	return -1
}

// check returns an error if x is not in the range of the column's type.
func (n *numbers) check(x int64) error {
	if n.typ == Decimal {
		return n.checkDecimal(batch.Int128Of(x))
	}
	_, err := integer(n.typ, x)
	return err
}
