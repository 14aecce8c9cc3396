// Package values generates random schemas and cells from seeds, and converts cells to Go values.
//
// Numbers are often at the limits of their types. Strings are often empty, often share prefixes,
// and are not valid UTF-8 where the type permits it.
package values

import (
	"encoding/binary"
	"math"
	"math/rand/v2"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/schema"
)

// Letters are 64 characters.
const Letters = "abcdefghijklmnopqrstuvwxyz0123456789 ABCDEFGHIJKLMNOPQRSTUVWXYZ_"

// NewRand returns a generator of random numbers for a seed.
func NewRand(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 0x6f72696269)) }

// AllTypes has all column types, keyTypes those that a key column may have.
var (
	keyTypes = []schema.Type{schema.Int8, schema.Int16, schema.Int32, schema.Int64,
		schema.Uint8, schema.Uint16, schema.Uint32,
		schema.Uint64, schema.Int128, schema.String, schema.Binary, schema.Varchar, schema.Timestamp, schema.Date,
		schema.Decimal32, schema.Decimal64, schema.Decimal128}
	AllTypes = append([]schema.Type{schema.Bool, schema.Float, schema.Double, schema.Array, schema.Array}, keyTypes...)
)

// Attributes of random columns. A column whose type does not allow the chosen encoding gets Auto.
var (
	encodings = []schema.Encoding{schema.Auto, schema.Plain, schema.Prefix, schema.RLE,
		schema.Dictionary, schema.Bitshuffle}
	compressions = []schema.Compression{schema.DefaultCompression, schema.NoCompression, schema.Snappy, schema.LZ4,
		schema.Zlib, schema.LZ4HC, schema.Dense}
	blockBytes = []int32{0, 0, 512, 1024, 4096}
)

// RandomSchema returns a random schema with one to four key columns and up to seven others, some
// nullable, some with defaults.
func RandomSchema(r *rand.Rand) *schema.Schema {
	keys := 1 + r.IntN(4)*r.IntN(2)
	n := keys + r.IntN(8)
	columns := make([]schema.Column, n)
	auto := r.IntN(10)
	for i := range columns {
		c := &columns[i]
		c.Name = string(rune('a' + i))
		c.Type = AllTypes[r.IntN(len(AllTypes))]
		if i < keys {
			c.Type = keyTypes[r.IntN(len(keyTypes))]
		}
		if i == auto && i < keys {
			c.Name, c.Type, c.AutoIncrement = schema.AutoIncrementName, schema.Int64, true
		}
		RandomAttributes(r, c)
		if i >= keys {
			c.Nullable = r.IntN(2) == 0
			c.Immutable = r.IntN(20) == 0
			if r.IntN(3) == 0 {
				c.Default = RandomCell(r, c)
			}
		}
	}
	s, err := schema.New(columns, keys)
	if err != nil {
		panic(err) // the generator is wrong
	}
	return s
}

// RandomAttributes sets the encoding, the compression and the type attributes of a column whose
// type is set.
func RandomAttributes(r *rand.Rand, c *schema.Column) {
	if c.Type == schema.Array {
		c.Element = schema.Array
		for !c.Element.Scalar() || c.Element.Width() > 8 {
			c.Element = AllTypes[r.IntN(len(AllTypes))]
		}
	}
	if c.Encoding = encodings[r.IntN(len(encodings))]; !c.Encoding.Allowed(c.Stored()) {
		c.Encoding = schema.Auto
	}
	c.Compression = compressions[r.IntN(len(compressions))]
	c.BlockBytes = blockBytes[r.IntN(len(blockBytes))]
	switch c.Stored() {
	case schema.Varchar:
		c.Length = 1 + r.IntN(12)
	case schema.Decimal32:
		c.Precision = 1 + r.IntN(9)
	case schema.Decimal64:
		c.Precision = 10 + r.IntN(9)
	case schema.Decimal128:
		c.Precision = 19 + r.IntN(20)
	}
	if c.Stored().Decimal() {
		c.Scale = r.IntN(c.Precision + 1)
	}
}

// RandomCell returns a cell that is not NULL: often a small value that is likely to repeat, often
// one at a limit of its type, else any value.
func RandomCell(r *rand.Rand, c *schema.Column) []byte {
	switch c.Type {
	case schema.Array:
		return randomArray(r, c)
	case schema.Bool:
		return []byte{byte(r.IntN(2))}
	case schema.Float:
		return binary.LittleEndian.AppendUint32(nil, math.Float32bits(float32(randomFloat(r))))
	case schema.Double:
		return binary.LittleEndian.AppendUint64(nil, math.Float64bits(randomFloat(r)))
	case schema.String, schema.Binary:
		return randomText(r, c.Type == schema.Binary, 40)
	case schema.Varchar:
		return randomText(r, false, c.Length)
	case schema.Date:
		days := []int32{schema.MinDate, schema.MaxDate, 0, -1}[r.IntN(4)]
		if r.IntN(3) > 0 {
			days = int32(r.IntN(40) + 19000)
		}
		return binary.LittleEndian.AppendUint32(nil, uint32(days))
	}
	if c.Type.Decimal() {
		return randomDecimal(r, c)
	}
	return randomInteger(r, c.Type.Width())
}

// randomArray returns an array of up to four elements, some of them NULL. One array in 60 has up to
// 999 elements, enough to fill a small cblock.
func randomArray(r *rand.Rand, c *schema.Column) []byte {
	n := r.IntN(5)
	if r.IntN(60) == 0 {
		n = r.IntN(1000)
	}
	element := c.Elements()
	elements := make([][]byte, n)
	for i := range elements {
		if r.IntN(4) > 0 {
			elements[i] = RandomCell(r, &element)
		}
	}
	cell := schema.AppendArray([]byte{}, c.Element, elements)
	if len(cell) > maxArrayBytes {
		return schema.AppendArray([]byte{}, c.Element, nil)
	}
	return cell
}

// maxArrayBytes is the size limit of a cell under a store's default options.
const maxArrayBytes = 64 << 10

func randomInteger(r *rand.Rand, width int) []byte {
	var b [16]byte
	switch r.IntN(6) {
	case 0: // any bytes
		binary.LittleEndian.PutUint64(b[:], r.Uint64())
		binary.LittleEndian.PutUint64(b[8:], r.Uint64())
	case 1: // a limit: all zeros, all ones, only the sign bit, all bits but the sign bit
		fill := byte(0xff * r.IntN(2))
		for i := range b {
			b[i] = fill
		}
		if r.IntN(2) == 0 {
			b[width-1] ^= 0x80
		}
	default: // small, of either sign
		v := int64(r.IntN(200)) - 60
		binary.LittleEndian.PutUint64(b[:], uint64(v))
		binary.LittleEndian.PutUint64(b[8:], uint64(v>>63))
	}
	return append([]byte(nil), b[:width]...)
}

// randomDecimal returns a decimal whose absolute value is below 10 to the power of the precision.
func randomDecimal(r *rand.Rand, c *schema.Column) []byte {
	digits := c.Precision
	if r.IntN(3) > 0 {
		digits = 1 + r.IntN(digits)
	}
	var v batch.Int128
	for range digits {
		v, _ = v.Mul10()
		digit := uint64(r.IntN(10))
		if r.IntN(4) == 0 {
			digit = 9
		}
		lo := v.Lo + digit
		if lo < v.Lo {
			v.Hi++
		}
		v.Lo = lo
	}
	if r.IntN(3) == 0 { // two's complement
		v.Lo, v.Hi = -v.Lo, ^v.Hi
		if v.Lo == 0 {
			v.Hi++
		}
	}
	b := binary.LittleEndian.AppendUint64(nil, v.Lo)
	b = binary.LittleEndian.AppendUint64(b, uint64(v.Hi))
	return b[:c.Type.Width()]
}

func randomFloat(r *rand.Rand) float64 {
	edges := []float64{0, math.Copysign(0, -1), math.NaN(), math.Inf(1), math.Inf(-1),
		math.SmallestNonzeroFloat64, math.MaxFloat64}
	if r.IntN(3) == 0 {
		return edges[r.IntN(len(edges))]
	}
	return float64(r.IntN(100)-50) / 4
}

// letters are the characters of random strings. They are few, so that strings share prefixes, and
// include NUL, the escape byte of encoded keys.
var letters = []rune{'a', 'b', 0, 1, 'é', '�'}

// randomText returns up to n characters, mixed with arbitrary bytes if raw is set. If n is at least
// 40, one text in 60 is longer, enough to fill a small cblock.
func randomText(r *rand.Rand, raw bool, n int) []byte {
	length := r.IntN(min(n, 6) + 1)
	if r.IntN(8) == 0 {
		length = r.IntN(n + 1)
	}
	if n >= 40 && r.IntN(60) == 0 {
		length = 400 + r.IntN(2000)
	}
	out := []byte{}
	for range length {
		switch {
		case raw && r.IntN(2) == 0:
			out = append(out, byte(r.Uint32()))
		default:
			out = append(out, string(letters[r.IntN(len(letters))])...)
		}
	}
	return out
}
