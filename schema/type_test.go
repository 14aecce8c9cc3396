package schema

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/internal/must"
)

// The table of tablet spec §2.1: name, number, physical type, bytes of a cell, whether keys may
// have it.
var typeTable = []struct {
	name     string
	number   Type
	physical string
	width    int
	keyable  bool
}{
	{"UINT8", 0, "UINT8", 1, true}, {"INT8", 1, "INT8", 1, true}, {"UINT16", 2, "UINT16", 2, true},
	{"INT16", 3, "INT16", 2, true},
	{"UINT32", 4, "UINT32", 4, true}, {"INT32", 5, "INT32", 4, true}, {"UINT64", 6, "UINT64", 8, true},
	{"INT64", 7, "INT64", 8, true},
	{"STRING", 8, "BINARY", 0, true}, {"BOOL", 9, "BOOL", 1, false}, {"FLOAT", 10, "FLOAT", 4, false},
	{"DOUBLE", 11, "DOUBLE", 8, false},
	{"BINARY", 12, "BINARY", 0, true}, {"UNIXTIME_MICROS", 13, "INT64", 8, true}, {"INT128", 14, "INT128", 16, true},
	{"DECIMAL32", 15, "INT32", 4, true}, {"DECIMAL64", 16, "INT64", 8, true}, {"DECIMAL128", 17, "INT128", 16, true},
	{"VARCHAR", 19, "BINARY", 0, true}, {"DATE", 20, "INT32", 4, true},
}

func TestTypesMatchKudu(t *testing.T) {
	for _, want := range typeTable {
		got, ok := TypeByName(want.name)
		if !ok || got != want.number || !got.Valid() || got.String() != want.name {
			t.Errorf("%s is %d (%v), want %d", want.name, got, ok, want.number)
			continue
		}
		if got.Physical().String() != want.physical || got.Width() != want.width ||
			got.Keyable() != want.keyable || got.Variable() != (want.width == 0) {
			t.Errorf("%s: physical %s, width %d, keyable %t", want.name, got.Physical(), got.Width(), got.Keyable())
		}
	}
	for _, number := range []Type{-1, 18, 22, 999} {
		must.Equal(t, number.Valid(), false, "type", int32(number), "is valid")
	}
	for _, name := range []string{"IS_DELETED", "NESTED"} {
		if _, ok := TypeByName(name); ok {
			t.Errorf("TypeByName found %s, which is not a stored scalar type", name)
		}
	}
	if !Array.Valid() || Array.Scalar() || Array.Physical() != Binary || Array.Keyable() || Array.String() != "NESTED" {
		t.Error("arrays must be byte strings in memory and not keyable")
	}
}

// The table of cfile spec §5.2.
func TestEncodingAllowed(t *testing.T) {
	all := []Encoding{Plain, Prefix, RLE, Dictionary, Bitshuffle}
	for _, typ := range typeTable {
		def, also := "BIT_SHUFFLE", "PLAIN_ENCODING RLE"
		switch typ.physical {
		case "INT128", "FLOAT", "DOUBLE":
			also = "PLAIN_ENCODING"
		case "BINARY":
			def, also = "DICT_ENCODING", "PLAIN_ENCODING PREFIX_ENCODING"
		case "BOOL":
			def, also = "RLE", "PLAIN_ENCODING"
		}
		must.Equal(t, Auto.Resolve(typ.number).String(), def, typ.name, "default")
		must.Equal(t, Auto.Allowed(typ.number), true, typ.name, "the default is not allowed")
		for _, e := range all {
			if want := e.String() == def || strings.Contains(also, e.String()); e.Allowed(typ.number) != want {
				t.Errorf("%s: %s allowed %t, want %t", typ.name, e, !want, want)
			}
			must.Equal(t, e.Resolve(typ.number), e, typ.name, e, "is resolved to another encoding")
		}
	}
	if Encoding(3).Allowed(Int32) || Encoding(999).Allowed(Int32) {
		t.Error("a retired or unknown encoding is allowed")
	}
}

func TestEncodingAndCodecNumbersMatchKudu(t *testing.T) {
	for name, want := range map[string]Encoding{"AUTO_ENCODING": 0, "PLAIN_ENCODING": 1, "PREFIX_ENCODING": 2,
		"RLE": 4, "DICT_ENCODING": 5, "BIT_SHUFFLE": 6} {
		if got, ok := EncodingByName(name); !ok || got != want || got.String() != name {
			t.Errorf("%s is %d, want %d", name, got, want)
		}
	}
	for name, want := range map[string]Compression{"DEFAULT_COMPRESSION": 0, "NO_COMPRESSION": 1, "SNAPPY": 2,
		"LZ4": 3, "ZLIB": 4} {
		if got, ok := CompressionByName(name); !ok || got != want || got.String() != name {
			t.Errorf("%s is %d, want %d", name, got, want)
		}
	}
	if _, ok := EncodingByName("GROUP_VARINT"); ok {
		t.Error("EncodingByName found a retired encoding")
	}
	if _, ok := CompressionByName("ZSTD"); ok {
		t.Error("CompressionByName found an unknown codec")
	}
}

func TestDefaultCompressionByType(t *testing.T) {
	for _, typ := range typeTable {
		want := NoCompression
		if typ.physical == "BINARY" {
			want = LZ4
		}
		must.Equal(t, DefaultCompression.Resolve(typ.number), want, typ.name)
		must.Equal(t, Zlib.Resolve(typ.number), Zlib, typ.name, "ZLIB is resolved to")
	}
}

// The types that a schema file may name.
func TestTypeNamesRoundTrip(t *testing.T) {
	for name, want := range map[string]Column{
		"bool": {Type: Bool}, "int8": {Type: Int8}, "int16": {Type: Int16}, "int32": {Type: Int32},
		"int64": {Type: Int64},
		"float": {Type: Float}, "double": {Type: Double}, "string": {Type: String}, "binary": {Type: Binary},
		"date":      {Type: Date},
		"timestamp": {Type: Timestamp}, "uint8": {Type: Uint8}, "uint16": {Type: Uint16},
		"uint32": {Type: Uint32}, "uint64": {Type: Uint64},
		"int128": {Type: Int128}, "array(uint8)": {Type: Array, Element: Uint8},
		"array(string)":        {Type: Array, Element: String},
		"array(varchar(3))":    {Type: Array, Element: Varchar, Length: 3},
		"array(decimal(18,2))": {Type: Array, Element: Decimal64, Precision: 18, Scale: 2},
		"varchar(1)":           {Type: Varchar, Length: 1}, "varchar(65535)": {Type: Varchar, Length: 65535},
		"decimal(1,0)": {Type: Decimal32, Precision: 1}, "decimal(9,9)": {Type: Decimal32, Precision: 9, Scale: 9},
		"decimal(10,2)": {Type: Decimal64, Precision: 10, Scale: 2}, "decimal(18,0)": {Type: Decimal64, Precision: 18},
		"decimal(19,4)":  {Type: Decimal128, Precision: 19, Scale: 4},
		"decimal(38,38)": {Type: Decimal128, Precision: 38, Scale: 38},
	} {
		var c Column
		if err := c.ParseTypeName(name); err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if c.Type != want.Type || c.Element != want.Element || c.Length != want.Length ||
			c.Precision != want.Precision || c.Scale != want.Scale {
			t.Errorf("%s is read as %+v", name, c)
		}
		must.Equal(t, c.TypeName(), name, name, "is written as")
		c.Name = "c"
		must.Do(t, must.Err(New([]Column{{Name: "key", Type: Int8, ID: 1}, c}, 1)), name)
	}
}

func TestParseTypeNameRefusesUnknownNames(t *testing.T) {
	for _, name := range []string{"", "int", "INT64", "int64 ", " int64", "int256", "decimal", "decimal(5)",
		"decimal(0,0)", "decimal(39,0)", "decimal(05,2)", "decimal(5, 2)", "decimal(5,2)x", "decimal(5,2",
		"varchar", "varchar()", "varchar(x)",
		"varchar(+3)", "varchar(3))", "decimal32", "unixtime_micros", "array", "array()", "array(int32",
		"array(int32)x", "array(array(int32))", "array(int128)", "array(decimal(19,2))", "array( int32)"} {
		var c Column
		if err := c.ParseTypeName(name); !errors.Is(err, fault.ErrSchema) || !strings.Contains(err.Error(), name) {
			t.Errorf("%q: type %v, error %v", name, c.TypeName(), err)
		}
	}
	// A deeply nested name takes linear time.
	long := strings.Repeat("array(", 1<<20)
	var c Column
	if err := c.ParseTypeName(long); !errors.Is(err, fault.ErrSchema) || len(err.Error()) > 200 {
		t.Errorf("a name of %d bytes: error of %d bytes", len(long), len(fmt.Sprint(err)))
	}
	// Parameters out of range are accepted here and refused by New.
	for _, name := range []string{"varchar(0)", "varchar(65536)", "varchar(-1)", "decimal(5,6)", "decimal(5,-1)"} {
		c := Column{Name: "c", ID: 1}
		if err := c.ParseTypeName(name); err == nil {
			_, err = New([]Column{{Name: "key", Type: Int8}, c}, 1)
			must.Fail(t, err, fault.ErrSchema, name)
		}
	}
}
