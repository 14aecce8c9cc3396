package carbondata

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/internal/fault"
)

// Encoder meta: how the numbers of a page are stored. Integers are big-endian. Source: carbondata
// spec §7.2.
//
//	width  field         meaning
//	2, …   name          length, bytes; not used
//	1      schema type   see internalType: layout of maximum and minimum
//	1      column kind   2 dimension, or dictionary; 4 measure; 5 STRUCT; 6 ARRAY or MAP; 7 child of
//	                     one; 8 dictionary of strings with lengths of four bytes
//	4, 4   scale, precision; not used
//	1      store type    see internalType: how the page's numbers are stored
//	4      decimals      of floating codecs: numbers are multiplied by 10 to this power
//	1      0
//	…      maximum, minimum, and a third value, of the schema type; i64 0 as the third of integers
//	2, …   compressor    not used
//
// INT column "age", stored in bytes, maximum 99, minimum 0:
//
//	00 03 61 67 65  05  04  ff ff ff ff ff ff ff ff  0e  00 00 00 00  00
//	00 00 00 63  00 00 00 00  00 00 00 00 00 00 00 00  00 06 73 6e 61 70 70 79
type encoderMeta struct {
	schema   internalType
	kind     byte
	store    internalType
	decimals int
	maxInt   int64   // of integers, and unscaled of DECIMAL if it fits
	maxFloat float64 // of FLOAT and DOUBLE
	fits     bool    // maxInt is the maximum
}

const (
	kindPlainValue = 2 // file format: never change
	kindMeasure    = 4 // file format: never change
	kindStruct     = 5 // file format: never change
	kindArray      = 6 // file format: never change
	kindChild      = 7 // file format: never change
	kindLongValue  = 8 // file format: never change

	metaFixedLen = 1 + 1 + 4 + 4 + 1 + 4 + 1
)

// internalType is a type in encoder meta.
type internalType byte

const (
	inTimestamp  internalType = 2  // file format: never change
	inBoolean    internalType = 3  // file format: never change
	inShort      internalType = 4  // file format: never change
	inInt        internalType = 5  // file format: never change
	inFloat      internalType = 6  // file format: never change
	inLong       internalType = 7  // file format: never change
	inDouble     internalType = 8  // file format: never change
	inDecimal    internalType = 10 // file format: never change
	inByte       internalType = 14 // file format: never change
	inByteArray  internalType = 15 // file format: never change
	inShortInt   internalType = 16 // file format: never change
	inLegacyLong internalType = 17 // file format: never change
	inBinary     internalType = 19 // file format: never change
	inLast       internalType = 19 // file format: never change
)

// width returns the bytes of one stored number, or 0 if t is not the type of numbers of one width.
func (t internalType) width() int {
	switch t {
	case inBoolean, inByte:
		return 1
	case inShort:
		return 2
	case inShortInt:
		return 3
	case inInt, inFloat:
		return 4
	case inLong, inLegacyLong, inTimestamp, inDouble:
		return 8
	}
	return 0
}

func parseEncoderMeta(b []byte) (m encoderMeta, err error) {
	if b == nil {
		return m, fault.Corruptf("no encoder meta")
	}
	take := func(n int) []byte {
		if n > len(b) {
			err = fault.Corruptf("encoder meta is too short")
			return make([]byte, n)
		}
		taken := b[:n]
		b = b[n:]
		return taken
	}
	short := func() int { return int(binary.BigEndian.Uint16(take(2))) }
	take(short())
	fixed := take(metaFixedLen)
	m.schema, m.kind, m.store = internalType(fixed[0]), fixed[1], internalType(fixed[10])
	m.decimals = int(int32(binary.BigEndian.Uint32(fixed[11:])))
	if err != nil {
		return m, err
	}
	if m.schema > inLast || m.store > inLast {
		return m, fault.Unsupportedf("schema type %d, store type %d", m.schema, m.store)
	}
	m.fits = true
	switch w := m.schema.width(); m.schema {
	case inByteArray, inBinary:
		return m, nil
	case inFloat:
		m.maxFloat = float64(math.Float32frombits(binary.BigEndian.Uint32(take(w))))
		take(2 * w)
	case inDouble:
		m.maxFloat = math.Float64frombits(binary.BigEndian.Uint64(take(w)))
		take(2 * w)
	case inDecimal:
		v := take(short())
		if len(v) < 2 {
			return m, fault.Corruptf("encoder meta: a DECIMAL of %d bytes", len(v))
		}
		if m.fits = len(v) <= 1+8; m.fits {
			m.maxInt = int128(v[1:]).toInt64()
		}
		take(short())
		take(short())
		take(4 + 4)
	default:
		if w == 0 || m.schema == inShortInt {
			return m, fault.Corruptf("encoder meta: schema type %d", m.schema)
		}
		m.maxInt = int128(take(w)).toInt64()
		take(w + 8)
	}
	take(short())
	return m, err
}

// wide is a number of 128 bits.
type wide batch.Int128

// int128 returns the big-endian two's complement in b, of at most 16 bytes.
func int128(b []byte) wide {
	var v wide
	if len(b) > 0 && b[0] >= 0x80 {
		v = wide{Lo: math.MaxUint64, Hi: -1}
	}
	for _, c := range b {
		v = wide{Lo: v.Lo<<8 | uint64(c), Hi: v.Hi<<8 | int64(v.Lo>>56)}
	}
	return v
}

func (v wide) toInt64() int64 { return int64(v.Lo) }

// numbers are the values of a numeric page, as they are stored.
type numbers struct {
	data   []byte
	typ    Type // of the column
	enc    encoding
	store  internalType
	width  int
	max    int64   // of the delta codecs
	factor float64 // of the floating codecs
	digits int     // of DECIMAL: how many more the column has after the point

	precision int // of DECIMAL: the column's
}

// decimalWidth returns the bytes of a DECIMAL of more than 18 digits in a page: the least n with
// 2^(8n-1) >= 10^precision.
func decimalWidth(precision int) int {
	return int(math.Ceil((float64(precision)*math.Log2(10) + 1) / 8))
}

// newNumbers checks the encoding of a column of numbers.
func newNumbers(c *Column, enc encoding, m encoderMeta) (n numbers, err error) {
	n = numbers{typ: c.Type, enc: enc, store: m.store, width: m.store.width(), max: m.maxInt}
	n.digits, n.precision = c.Scale-c.inFile().Scale, c.Precision
	floating := m.store == inFloat || m.store == inDouble
	isFloat := c.Type == Float || c.Type == Double
	switch {
	case isFloat != (m.schema == inFloat || m.schema == inDouble), (c.Type == Decimal) != (m.schema == inDecimal):
		return n, fault.Corruptf("%v with numbers of type %d", c.Type, m.schema)
	case enc == encDirectCompress && c.Type == Decimal:
		n.width = decimalWidth(c.inFile().Precision)
		if m.store != inDecimal {
			return n, fault.Corruptf("DECIMAL with store type %d", m.store)
		}
		return n, nil
	case n.width == 0, floating != (isFloat && enc == encDirectCompress):
		return n, fault.Corruptf("%v with store type %d and encoding %d", c.Type, m.store, enc)
	}
	switch enc {
	case encDirectCompress, encAdaptive:
	case encAdaptiveDelta:
		if !m.fits {
			return n, fault.Corruptf("a maximum of more than 64 bits")
		}
		if isFloat {
			err = n.setMax(m.maxFloat)
		}
	case encAdaptiveFloat, encAdaptiveFloatDel:
		if !isFloat {
			return n, fault.Corruptf("%v with encoding %d", c.Type, enc)
		}
		const maxDecimals = 308
		if m.decimals < 0 || m.decimals > maxDecimals {
			return n, fault.Corruptf("%d decimals", m.decimals)
		}
		n.factor = math.Pow10(m.decimals)
		// The writer multiplies in the precision of the column, and truncates.
		product := n.factor * m.maxFloat
		if m.schema == inFloat {
			product = float64(float32(n.factor) * float32(m.maxFloat))
		}
		if enc == encAdaptiveFloatDel {
			err = n.setMax(product)
		}
	default:
		return n, fault.Unsupportedf("%v with encoding %d", c.Type, enc)
	}
	return n, err
}

// setMax sets the maximum from which a delta codec subtracts. Errors: ErrCorrupt for a maximum that
// does not fit in 64 bits when it is truncated. No writer stores such a maximum, and the result of
// its conversion would depend on the processor.
func (n *numbers) setMax(x float64) error {
	if !(x >= math.MinInt64 && x < -math.MinInt64) {
		return fault.Corruptf("a maximum of more than 64 bits")
	}
	n.max = int64(x)
	return nil
}

// count returns how many numbers there are.
func (n *numbers) count() int { return len(n.data) / n.width }

// stored returns number i as it is stored.
func (n *numbers) stored(i int) int64 {
	b := n.data[i*n.width:]
	switch n.width {
	case 1:
		return int64(int8(b[0]))
	case 2:
		return int64(int16(binary.LittleEndian.Uint16(b)))
	case 3:
		return int64(int8(b[0]))<<16 | int64(b[1])<<8 | int64(b[2])
	case 4:
		return int64(int32(binary.LittleEndian.Uint32(b)))
	}
	return int64(binary.LittleEndian.Uint64(b))
}

// value returns number i. It is an error if the column's type does not contain it.
func (n *numbers) value(i int) (any, error) {
	if n.typ == Decimal && n.enc == encDirectCompress {
		return n.decimal(batch.Int128(int128(n.data[i*n.width : (i+1)*n.width])))
	}
	v := n.stored(i)
	if n.enc == encAdaptiveDelta || n.enc == encAdaptiveFloatDel {
		v = n.max - v
	}
	switch n.typ {
	case Float, Double:
		x := float64(v)
		switch {
		case n.store == inDouble:
			x = math.Float64frombits(uint64(v))
		case n.store == inFloat:
			x = float64(math.Float32frombits(uint32(v)))
		case n.enc == encAdaptiveFloat || n.enc == encAdaptiveFloatDel:
			x /= n.factor
		}
		if n.typ == Float {
			return float32(x), nil
		}
		return x, nil
	case Decimal:
		return n.decimal(batch.Int128Of(v))
	}
	return integer(n.typ, v)
}

// decimal returns a DECIMAL of the file as one of the column's scale.
func (n *numbers) decimal(v batch.Int128) (any, error) {
	v, err := rescale(v, n.digits)
	if err == nil {
		err = n.checkDecimal(v)
	}
	return v, err
}

// checkDecimal returns an error if v has more digits than the column.
func (n *numbers) checkDecimal(v batch.Int128) error {
	if !v.FitsDigits(n.precision) {
		return fault.Corruptf("%v is out of the range of a DECIMAL of %d digits", v, n.precision)
	}
	return nil
}

// integer returns v as a value of an integer type, BOOLEAN, or TIMESTAMP.
func integer(typ Type, v int64) (any, error) {
	switch {
	case typ == Boolean:
		return v != 0, nil
	case typ == Byte && v == int64(int8(v)):
		return int8(v), nil
	case typ == Short && v == int64(int16(v)):
		return int16(v), nil
	case typ == Int && v == int64(int32(v)):
		return int32(v), nil
	case typ == Long:
		return v, nil
	case typ == Timestamp && v >= math.MinInt64/microsPerMilli && v <= math.MaxInt64/microsPerMilli:
		return Micros(v * microsPerMilli), nil
	}
	if typ == Timestamp {
		return nil,
			&unheld{fmt.Sprintf("a time of %d milliseconds since 1970 is out of the range of microseconds in 64 bits",
				v)}
	}
	return nil, fault.Corruptf("%d is out of the range of %v", v, typ)
}
