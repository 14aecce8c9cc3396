package carbondata

import (
	"encoding/binary"
	"math"
	"strconv"

	"github.com/oribi-db/oribi/batch"
)

// encodedNumbers is a page of numbers, not compressed.
type encodedNumbers struct {
	encoding encoding
	store    internalType
	decimals int
	data     []byte
}

// storeTypes are the types in which integers are stored, with their widths.
var storeTypes = []internalType{inByte, inShort, inShortInt, inInt, inLong}

// fitting returns the narrowest type that holds both numbers.
func fitting(low, high int64) internalType {
	for _, t := range storeTypes[:len(storeTypes)-1] {
		limit := int64(1) << (8*t.width() - 1)
		if low >= -limit && high < limit {
			return t
		}
	}
	return inLong
}

// fittingDelta returns the narrowest type that holds the difference of two numbers, low <= high.
func fittingDelta(low, high int64) internalType {
	d := high - low
	if d < 0 {
		return inLong // an overflow
	}
	return fitting(d, d)
}

func appendStored(dst []byte, store internalType, v int64) []byte {
	switch store.width() {
	case 1:
		return append(dst, byte(v))
	case 2:
		return binary.LittleEndian.AppendUint16(dst, uint16(v))
	case 3:
		return append(dst, byte(v>>16), byte(v>>8), byte(v))
	case 4:
		return binary.LittleEndian.AppendUint32(dst, uint32(v))
	}
	return binary.LittleEndian.AppendUint64(dst, uint64(v))
}

// numberTypes are the types of numbers in encoder meta.
var numberTypes = map[Type]internalType{Boolean: inBoolean, Byte: inByte, Short: inShort, Int: inInt,
	Long: inLong, Timestamp: inTimestamp,
	Float: inFloat, Double: inDouble, Decimal: inDecimal}

// encodeInts encodes integers as the SDK does. Source: carbondata spec §7.3.
func (c *columnWriter) encodeInts(r valueRange) (e encodedNumbers) {
	plain := fitting(r.minInt, r.maxInt)
	delta := fittingDelta(r.minInt, r.maxInt)
	width := numberTypes[c.Type].width() // 0: never direct
	if c.nested {
		width = 0
	}
	switch {
	case c.Type == Decimal && (c.Precision > maxIntDigits || plain == inLong):
		delta = inLong
	case c.Type == Boolean && !c.nested:
		plain, delta = inByte, inByte
	}
	switch {
	case min(plain.width(), delta.width()) == width:
		e.encoding, e.store = encDirectCompress, plain
	case plain.width() <= delta.width():
		e.encoding, e.store = encAdaptive, plain
	default:
		e.encoding, e.store = encAdaptiveDelta, delta
	}
	e.data = make([]byte, 0, len(c.ints)*e.store.width())
	for _, v := range c.ints {
		if e.encoding == encAdaptiveDelta {
			v = r.maxInt - v
		}
		e.data = appendStored(e.data, e.store, v)
	}
	return e
}

// maxIntDigits is the number of digits of the DECIMALs that the SDK handles in 32 bits.
const maxIntDigits = 9

func (c *columnWriter) encodeWides() encodedNumbers {
	width := decimalWidth(c.Precision)
	data := make([]byte, 0, len(c.wides)*width)
	for _, v := range c.wides {
		var b [16]byte
		binary.BigEndian.PutUint64(b[:], uint64(v.Hi))
		binary.BigEndian.PutUint64(b[8:], v.Lo)
		data = append(data, b[16-width:]...)
	}
	return encodedNumbers{encoding: encDirectCompress, store: inDecimal, data: data}
}

// maxPlaces is the most digits after the point of floating-point numbers that are stored as
// integers.
const maxPlaces = 5

// encodeFloats encodes floating-point numbers as the SDK does, except where its own readers would
// read back other numbers: then they are stored as they are. Source: carbondata spec §7.3.
func (c *columnWriter) encodeFloats(r valueRange) encodedNumbers {
	places := c.places()
	if places >= 0 {
		e, ok := c.floatsAsInts(r, places)
		if ok {
			return e
		}
	}
	e := encodedNumbers{encoding: encDirectCompress, store: numberTypes[c.Type], decimals: places}
	e.data = make([]byte, 0, len(c.floats)*e.store.width())
	for _, v := range c.floats {
		if c.Type == Float {
			e.data = binary.LittleEndian.AppendUint32(e.data, math.Float32bits(float32(v)))
		} else {
			e.data = binary.LittleEndian.AppendUint64(e.data, math.Float64bits(v))
		}
	}
	return e
}

// places returns the most digits after the point of any value, or -1 if these are too many, or if
// there is a value that no integer represents.
func (c *columnWriter) places() int {
	bits := 64
	if c.Type == Float {
		bits = 32
	}
	places := 0
	for _, v := range c.floats {
		if v == 0 && !math.Signbit(v) {
			continue
		}
		if v == 0 || math.IsNaN(v) || math.IsInf(v, 0) {
			return -1
		}
		if places = max(places, decimalPlaces(v, bits)); places > maxPlaces {
			return -1
		}
	}
	return places
}

// decimalPlaces returns the digits after the point in Java's decimal form of v, which is not 0.
func decimalPlaces(v float64, bits int) int {
	var buf [32]byte
	text := strconv.AppendFloat(buf[:0], v, 'e', -1, bits) // [-]d[.ddd]e±dd
	if text[0] == '-' {
		text = text[1:]
	}
	digits, at := 1, 1
	if text[1] == '.' {
		for at = 2; text[at] != 'e'; at++ {
			digits++
		}
	}
	exponent := 0
	for _, c := range text[at+2:] {
		exponent = 10*exponent + int(c-'0')
	}
	if text[at+1] == '-' {
		exponent = -exponent
	}
	// Java writes numbers below 10^-3 with an exponent and at least one digit after the point.
	if digits == 1 && exponent < -3 {
		digits = 2
	}
	return max(digits-1-exponent, 0)
}

// floatsAsInts encodes numbers with at most places digits after the point. It reports false if that
// saves nothing, or if a reader would get other numbers.
func (c *columnWriter) floatsAsInts(r valueRange, places int) (e encodedNumbers, ok bool) {
	factor := math.Pow10(places)
	most := max(math.Abs(r.min), math.Abs(r.max))
	if most*factor > math.MaxInt64/2 {
		return e, false
	}
	scaled := make([]int64, len(c.floats))
	low, high := int64(math.MaxInt64), int64(math.MinInt64)
	for i, v := range c.floats {
		n := int64(math.Round(v * factor))
		if !c.readsBack(n, v, factor) {
			return e, false
		}
		scaled[i] = n
		low, high = min(low, n), max(high, n)
	}
	e.decimals = places
	if places == 0 && c.Type == Double {
		e.encoding, e.store = encAdaptive, fitting(low, high)
		if e.store == inLong {
			return e, false
		}
	} else {
		// The maximum as a reader computes it, in the precision of the type: values are stored as
		// differences from it, so another rounding would change them all.
		top := int64(factor * r.max)
		if c.Type == Float {
			top = int64(float32(factor) * float32(r.max))
		}
		e.encoding, e.store = encAdaptiveFloat, fitting(0, max(high, -low))
		if delta := fitting(top-high, top-low); delta.width() < e.store.width() {
			e.encoding, e.store = encAdaptiveFloatDel, delta
			for i, n := range scaled {
				scaled[i] = top - n
			}
		} else if e.store == inLong {
			return e, false
		}
	}
	e.data = make([]byte, 0, len(scaled)*e.store.width())
	for _, n := range scaled {
		e.data = appendStored(e.data, e.store, n)
	}
	return e, true
}

// readsBack reports whether both readers of the SDK make v of n: the vector reader divides FLOATs
// in their own precision.
func (c *columnWriter) readsBack(n int64, v, factor float64) bool {
	if c.Type == Float {
		return float32(float64(n)/factor) == float32(v) && float32(n)/float32(factor) == float32(v)
	}
	return float64(n)/factor == v
}

// appendMeta appends encoder meta, see the table above encoderMeta. stats appends maximum, minimum,
// and the third value. It is nil for pages without values.
func (c *columnWriter) appendMeta(
	dst []byte, typ, store internalType, kind byte, decimals int, stats func([]byte) []byte,
) []byte {
	dst = appendLength(dst, lengthLen, len(c.path))
	dst = append(dst, c.path...)
	dst = append(dst, byte(typ), kind)
	scale, precision := -1, -1
	if typ == inDecimal {
		scale, precision = c.Scale, c.Precision
	}
	dst = binary.BigEndian.AppendUint32(dst, uint32(int32(scale)))
	dst = binary.BigEndian.AppendUint32(dst, uint32(int32(precision)))
	dst = append(dst, byte(store))
	dst = binary.BigEndian.AppendUint32(dst, uint32(int32(decimals)))
	dst = append(dst, 0)
	if stats != nil {
		dst = stats(dst)
	}
	dst = appendLength(dst, lengthLen, len(c.compressor.Name))
	return append(dst, c.compressor.Name...)
}

// appendStats appends maximum, minimum, and third value of a page of numbers.
func (c *columnWriter) appendStats(dst []byte, r valueRange) []byte {
	switch {
	case c.Type == Decimal:
		low, high := batch.Int128Of(r.minInt), batch.Int128Of(r.maxInt)
		if c.isWide() {
			low, high = r.minWide, r.maxWide
		}
		for _, b := range [][]byte{appendDecimal(nil, c.Scale, high), appendDecimal(nil, c.Scale, low), {0, 0}} {
			dst = append(appendLength(dst, lengthLen, len(b)), b...)
		}
		dst = binary.BigEndian.AppendUint32(dst, uint32(c.Scale))
		return binary.BigEndian.AppendUint32(dst, uint32(c.Precision))
	case c.Type == Double:
		dst = binary.BigEndian.AppendUint64(dst, math.Float64bits(r.max))
		dst = binary.BigEndian.AppendUint64(dst, math.Float64bits(r.min))
		return append(dst, make([]byte, 8)...)
	case c.Type == Float:
		dst = binary.BigEndian.AppendUint32(dst, math.Float32bits(float32(r.max)))
		dst = binary.BigEndian.AppendUint32(dst, math.Float32bits(float32(r.min)))
		return append(dst, make([]byte, 4)...)
	}
	width := numberTypes[c.Type].width()
	for _, v := range []int64{r.maxInt, r.minInt} {
		b := binary.BigEndian.AppendUint64(nil, uint64(v))
		dst = append(dst, b[8-width:]...)
	}
	return append(dst, make([]byte, 8)...)
}

// rowMemory returns the memory of a row when it is read, without text and children.
func (c *columnWriter) rowMemory() int {
	switch {
	case c.form == formStrings:
		return codeBytes
	case c.isWide():
		return decimalWidth(c.Precision)
	}
	return max(numberTypes[c.Type].width(), valueBytes)
}
