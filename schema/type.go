package schema

import "fmt"

// Type is the logical type of a column. Its values equal Kudu's DataType, as stored in column files
// and schema messages. Source: tablet spec §2.1.
type Type int32

// Column types. File format: never change the numbers.
const (
	Uint8      Type = 0
	Int8       Type = 1
	Uint16     Type = 2
	Int16      Type = 3
	Uint32     Type = 4
	Int32      Type = 5
	Uint64     Type = 6
	Int64      Type = 7
	String     Type = 8
	Bool       Type = 9
	Float      Type = 10
	Double     Type = 11
	Binary     Type = 12
	Timestamp  Type = 13 // microseconds since 1970-01-01 UTC, int64
	Int128     Type = 14
	Decimal32  Type = 15
	Decimal64  Type = 16
	Decimal128 Type = 17
	Varchar    Type = 19
	Date       Type = 20 // days since 1970-01-01, int32
	Array      Type = 21 // arrays of Column.Element; cells are byte strings as AppendArray encodes them
)

// typeInfo describes a type.
type typeInfo struct {
	name     string // Kudu's name
	physical Type
	width    int // bytes of a cell; 0 for variable width
	keyable  bool
}

var types = map[Type]typeInfo{
	Uint8:      {"UINT8", Uint8, 1, true},
	Int8:       {"INT8", Int8, 1, true},
	Uint16:     {"UINT16", Uint16, 2, true},
	Int16:      {"INT16", Int16, 2, true},
	Uint32:     {"UINT32", Uint32, 4, true},
	Int32:      {"INT32", Int32, 4, true},
	Uint64:     {"UINT64", Uint64, 8, true},
	Int64:      {"INT64", Int64, 8, true},
	String:     {"STRING", Binary, 0, true},
	Bool:       {"BOOL", Bool, 1, false},
	Float:      {"FLOAT", Float, 4, false},
	Double:     {"DOUBLE", Double, 8, false},
	Binary:     {"BINARY", Binary, 0, true},
	Timestamp:  {"UNIXTIME_MICROS", Int64, 8, true},
	Int128:     {"INT128", Int128, 16, true},
	Decimal32:  {"DECIMAL32", Int32, 4, true},
	Decimal64:  {"DECIMAL64", Int64, 8, true},
	Decimal128: {"DECIMAL128", Int128, 16, true},
	Varchar:    {"VARCHAR", Binary, 0, true},
	Date:       {"DATE", Int32, 4, true},
	Array:      {"NESTED", Binary, 0, false},
}

// widths and physicals are two fields of types as arrays, for fast access: every point read uses
// them.
var (
	widths    [22]int
	physicals [22]Type
)

func init() {
	for t := range physicals {
		physicals[t] = -1
	}
	for t, info := range types {
		widths[t], physicals[t] = info.width, info.physical
	}
}

// Valid reports whether t is a type that a column can have.
func (t Type) Valid() bool { return t >= 0 && int(t) < len(physicals) && physicals[t] >= 0 }

// Scalar reports whether t is a type of single values: those that column files and arrays contain.
func (t Type) Scalar() bool { return t.Valid() && t != Array }

// Physical returns the type that cells of t are stored as. t must be valid.
func (t Type) Physical() Type { return physicals[t] }

// Width returns the number of bytes of one cell in memory and in change lists (Bool: 1), or 0 for
// types of variable width.
func (t Type) Width() int { return widths[t] }

// Variable reports whether cells of t are byte strings.
func (t Type) Variable() bool { return widths[t] == 0 }

// Keyable reports whether a key column may have type t.
func (t Type) Keyable() bool { return types[t].keyable }

// Decimal reports whether t is one of the three decimal types.
func (t Type) Decimal() bool { return t >= Decimal32 && t <= Decimal128 }

// Integer reports whether t is one of the integer types, from 8 to 128 bits.
func (t Type) Integer() bool {
	switch t {
	case Uint8, Int8, Uint16, Int16, Uint32, Int32, Uint64, Int64, Int128:
		return true
	}
	return false
}

// Text reports whether t is STRING or VARCHAR, whose cells are UTF-8.
func (t Type) Text() bool { return t == String || t == Varchar }

// Float reports whether t is FLOAT or DOUBLE.
func (t Type) Float() bool { return t == Float || t == Double }

// String returns Kudu's name of the type.
func (t Type) String() string {
	if info, ok := types[t]; ok {
		return info.name
	}
	return fmt.Sprintf("type %d", int32(t))
}

// TypeByName returns the scalar type with the given Kudu name.
func TypeByName(name string) (Type, bool) {
	for t, info := range types {
		if info.name == name && t.Scalar() {
			return t, true
		}
	}
	return 0, false
}

// DecimalType returns the narrowest decimal type for a precision of 1 to 38 digits.
func DecimalType(precision int) Type {
	switch {
	case precision <= 9:
		return Decimal32
	case precision <= 18:
		return Decimal64
	}
	return Decimal128
}

// Encoding is the format of a column's values in its data cblocks. Its values equal Kudu's
// EncodingType.
type Encoding int32

// Encodings. File format: never change the numbers. 3 (group varint) is retired.
const (
	Auto       Encoding = 0
	Plain      Encoding = 1
	Prefix     Encoding = 2
	RLE        Encoding = 4
	Dictionary Encoding = 5
	Bitshuffle Encoding = 6
)

var encodingNames = map[Encoding]string{Auto: "AUTO_ENCODING", Plain: "PLAIN_ENCODING", Prefix: "PREFIX_ENCODING",
	RLE: "RLE", Dictionary: "DICT_ENCODING", Bitshuffle: "BIT_SHUFFLE"}

// String returns Kudu's name of the encoding.
func (e Encoding) String() string {
	if s, ok := encodingNames[e]; ok {
		return s
	}
	return fmt.Sprintf("encoding %d", int32(e))
}

// EncodingByName returns the encoding with the given Kudu name.
func EncodingByName(name string) (Encoding, bool) {
	for e, s := range encodingNames {
		if s == name {
			return e, true
		}
	}
	return 0, false
}

// Resolve returns e, or the default encoding for t if e is Auto. Source: cfile spec §5.2.
func (e Encoding) Resolve(t Type) Encoding {
	if e != Auto {
		return e
	}
	switch t.Physical() {
	case Bool:
		return RLE
	case Binary:
		return Dictionary
	}
	return Bitshuffle
}

// Allowed reports whether columns of type t can be stored in encoding e; with Auto, all can.
// Source: cfile spec §5.2.
func (e Encoding) Allowed(t Type) bool {
	p := t.Physical()
	switch e {
	case Auto, Plain:
		return true
	case RLE:
		return p == Bool || p != Binary && p != Float && p != Double && p != Int128
	case Bitshuffle:
		return p != Bool && p != Binary
	case Prefix, Dictionary:
		return p == Binary
	}
	return false
}

// Compression is the codec applied to whole cblocks. Its values equal Kudu's CompressionType.
type Compression int32

// Codecs. File format: never change the numbers.
const (
	DefaultCompression Compression = 0
	NoCompression      Compression = 1
	Snappy             Compression = 2
	LZ4                Compression = 3
	Zlib               Compression = 4
)

// Attributes of columns that Kudu does not have. They are no codecs: files have the codec that
// Codec returns. File format: never change the numbers.
const (
	LZ4HC Compression = 64 // LZ4 by a compressor that takes longer and finds more
	Dense Compression = 65 // the smallest form that Kudu reads
)

var compressionNames = map[Compression]string{DefaultCompression: "DEFAULT_COMPRESSION",
	NoCompression: "NO_COMPRESSION", Snappy: "SNAPPY",
	LZ4: "LZ4", Zlib: "ZLIB", LZ4HC: "LZ4HC", Dense: "DENSE"}

// Valid reports whether c is a compression that a column can have.
func (c Compression) Valid() bool { return compressionNames[c] != "" }

// Codec returns c as Kudu knows it: LZ4 for LZ4HC, Zlib for Dense, all else as it is.
func (c Compression) Codec() Compression {
	switch c {
	case LZ4HC:
		return LZ4
	case Dense:
		return Zlib
	}
	return c
}

// Fast returns the compression of files that are written once and soon merged with others: c, or
// DefaultCompression for LZ4HC and Dense.
func (c Compression) Fast() Compression {
	if c == LZ4HC || c == Dense {
		return DefaultCompression
	}
	return c
}

// Harder returns the compression of files that are rewritten to be smaller: LZ4HC or Dense, or
// DefaultCompression if c rules out both. By default, that is LZ4HC for byte strings. The planes of
// numbers are computed with as they are stored, so they stay.
func (c Compression) Harder(t Type) Compression {
	switch {
	case c == LZ4HC || c == Dense:
		return c
	case c == DefaultCompression && t.Variable():
		return LZ4HC
	}
	return DefaultCompression
}

// String returns Kudu's name of the codec, or one of the same form.
func (c Compression) String() string {
	if s, ok := compressionNames[c]; ok {
		return s
	}
	return fmt.Sprintf("compression %d", int32(c))
}

// CompressionByName returns the compression whose String is name.
func CompressionByName(name string) (Compression, bool) {
	for c, s := range compressionNames {
		if s == name {
			return c, true
		}
	}
	return 0, false
}

// Resolve returns c, or the default codec for t if c is DefaultCompression: LZ4 for byte strings,
// none for other types, whose encoding (bitshuffle) includes LZ4.
func (c Compression) Resolve(t Type) Compression {
	if c != DefaultCompression {
		return c
	}
	if t.Variable() {
		return LZ4
	}
	return NoCompression
}
