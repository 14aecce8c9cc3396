package cell

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/oribi-db/oribi/internal/celltext"
	"github.com/oribi-db/oribi/internal/jsonin"
	"github.com/oribi-db/oribi/internal/seedtest"
	"github.com/oribi-db/oribi/schema"
)

// The fast path for dates accepts the same dates as package time.
func TestFieldDatesMatchPackageTime(t *testing.T) {
	date := column(t, "date")
	check := func(text string) {
		t.Helper()
		got, err := FromField(nil, date, []byte(text))
		want, wantErr := celltext.FromDate(nil, text)
		if !bytes.Equal(got, want) || (err == nil) != (wantErr == nil) {
			t.Fatalf("%s: %x, %v, want %x, %v", text, got, err, want, wantErr)
		}
	}
	for day := time.Date(1896, 1, 1, 0, 0, 0, 0, time.UTC); day.Year() < 2005; day = day.AddDate(0, 0, 1) {
		check(day.Format(time.DateOnly))
	}
	r := seedtest.Rand(t)
	for range 20_000 {
		check(fmt.Sprintf("%04d-%02d-%02d", r.IntN(10_000), r.IntN(14), r.IntN(33)))
	}
	for _, text := range []string{"", "2024-1-01", "2024-01-1x", "+024-01-01", "2024/01/01", "2024-01-01 ",
		"12024-01-01"} {
		check(text)
	}
}

// The fast path for numbers accepts the same numbers as the parser of JSON.
func TestFieldNumbersMatchJSON(t *testing.T) {
	r := seedtest.Rand(t)
	types := []string{"int8", "int16", "int32", "int64", "uint8", "uint32", "uint64", "timestamp", "float", "double",
		"decimal(5,2)", "decimal(15,2)", "decimal(18,18)", "decimal(38,6)"}
	const letters = "0123456789012345678900..-+eE x"
	for range 50_000 {
		var b strings.Builder
		for range r.IntN(22) {
			b.WriteByte(letters[r.IntN([]int{10, 24, len(letters)}[r.IntN(3)])])
		}
		text := b.String()
		if r.IntN(3) == 0 {
			text = "-" + text
		}
		c := column(t, types[r.IntN(len(types))])
		got, err := FromField(nil, c, []byte(text))
		want, wantErr := careful(c, text)
		if (err == nil) != (wantErr == nil) || err == nil && !bytes.Equal(got, want) {
			t.Fatalf("%s %q: %x, %v, want %x, %v", c.TypeName(), text, got, err, want, wantErr)
		}
		if parse := celltext.PlainParser(c); parse != nil {
			if v, ok := parse([]byte(text)); ok && (wantErr != nil || !bytes.Equal(little(v)[:len(want)], want)) {
				t.Fatalf("%s %q: parsed to %x, want %x, %v", c.TypeName(), text, v, want, wantErr)
			}
		}
	}
}

func little(v int64) []byte { return binary.LittleEndian.AppendUint64(nil, uint64(v)) }

// Plain parsers accept the usual forms, and no others than FromField.
func TestPlainParsers(t *testing.T) {
	for _, c := range []struct {
		typeName, text string
		want           bool
	}{
		{"int8", "-128", true}, {"int8", "128", false}, {"uint8", "255", true}, {"uint8", "256", false},
		{"uint8", "-1", false}, {"int16", "-32768", true}, {"uint16", "65536", false}, {"int32", "2147483647", true},
		{"uint32", "4294967295", true}, {"uint32", "4294967296", false}, {"uint64", "123456789012345678", true},
		{"int64", "-123456789012345678", true}, {"int64", "007", false}, {"date", "2024-02-29", true},
		{"date", "2023-02-29", false}, {"timestamp", "2026-01-01 10:00:00.5Z", true}, {"timestamp", "-5", true},
		{"decimal(5,2)", "-999.99", true}, {"decimal(5,2)", "1000", false}, {"double", "9007199254740993", false},
		{"double", "9007199254740992", true}, {"double", "-0.1", true}, {"double", "1e3", false},
	} {
		col := column(t, c.typeName)
		v, ok := celltext.PlainParser(col)([]byte(c.text))
		want, err := FromField(nil, col, []byte(c.text))
		if ok != c.want || ok && (err != nil || !bytes.Equal(little(v)[:len(want)], want)) {
			t.Errorf("%s %s: %x, %t, want %t and %x, %v", c.typeName, c.text, v, ok, c.want, want, err)
		}
	}
	if celltext.PlainParser(column(t, "string")) != nil || celltext.PlainParser(column(t, "decimal(38,6)")) != nil {
		t.Error("a parser of strings or wide decimals")
	}
}

// careful parses a field as JSON: decimals need quotes there, other numbers do not.
func careful(c *schema.Column, text string) ([]byte, error) {
	if c.Type.Decimal() {
		return celltext.FromDecimal(nil, c, text)
	}
	if err := jsonin.Check([]byte(text)); err != nil {
		return nil, err
	}
	if jsonin.Trim([]byte(text)); len(jsonin.Trim([]byte(text))) != len(text) {
		return nil, fmt.Errorf("blanks")
	}
	return FromJSON(nil, c, []byte(text))
}

func TestFromFieldRefusesInvalidText(t *testing.T) {
	for _, c := range []struct{ typeName, text, want string }{
		{"string", "a\xffb", "is not valid UTF-8"},
		{"varchar(2)", "abc", "has 3 characters, varchar(2) has at most 2"},
		{"bool", "tRUE", `want true or false, not "tRUE"`},
		{"binary", "ab", `want "0x…", not "ab"`},
		{"int32", "12a", `want an integer in plain digits, not "12a"`},
		{"int32", "1.0", `want an integer in plain digits, not "1.0"`},
		{"int32", "007", `want an integer in plain digits, not "007"`},
		{"int32", "", `want an integer in plain digits, not ""`},
		{"int8", "128", `"128" is out of range for int8`},
		{"double", "0x1p-2", `want a number, "NaN", "+Inf" or "-Inf", not "0x1p-2"`},
		{"double", "infi", `want a number, "NaN", "+Inf" or "-Inf", not "infi"`},
		{"decimal(5,2)", "1.555", `"1.555" has more than 2 decimals`},
		{"decimal(5,2)", "1000", `"1000" is out of range for decimal(5,2)`},
		{"date", "2023-02-29", `"2023-02-29" is not a date (year-month-day)`},
	} {
		if _, err := FromField(nil, column(t, c.typeName), []byte(c.text)); err == nil || err.Error() != c.want {
			t.Errorf("%s %q: got %v, want %s", c.typeName, c.text, err, c.want)
		}
	}
}

// A field may have the forms that other programs write.
func TestFieldsOfOtherPrograms(t *testing.T) {
	for _, c := range []struct{ typeName, text, want string }{
		{"bool", "True", "true"}, {"bool", "TRUE", "true"}, {"bool", "t", "true"}, {"bool", "T", "true"},
		{"bool", "1", "true"},
		{"bool", "False", "false"}, {"bool", "FALSE", "false"}, {"bool", "f", "false"}, {"bool", "F", "false"},
		{"bool", "0", "false"},
		{"double", "inf", "+Inf"}, {"double", "-inf", "-Inf"}, {"double", "+INF", "+Inf"},
		{"float", "Infinity", "+Inf"}, {"float", "-infinity", "-Inf"},
		{"double", "nan", "NaN"}, {"float", "NAN", "NaN"}, {"double", "-nan", "NaN"},
		{"timestamp", "2026-01-01 10:00:00+00:00", "2026-01-01T10:00:00Z"},
		{"timestamp", "2026-01-01 10:00:00.5+00:00", "2026-01-01T10:00:00.5Z"},
		{"timestamp", "2026-01-01 10:00:00.123456000", "2026-01-01T10:00:00.123456Z"},
		{"timestamp", "2026-01-01T10:00:00.100000+0000", "2026-01-01T10:00:00.1Z"},
		{"timestamp", "2026-01-01 10:00:00+00", "2026-01-01T10:00:00Z"},
		{"timestamp", "2026-01-01 10:00:00Z", "2026-01-01T10:00:00Z"},
		{"timestamp", "2026-01-01 10:00:00.25 UTC", "2026-01-01T10:00:00.25Z"},
		{"timestamp", "2026-01-01 10:00:00+02:00", "2026-01-01T08:00:00Z"},
		{"timestamp", "2026-01-01 10:00:00.5-0730", "2026-01-01T17:30:00.5Z"},
		{"timestamp", "2026-01-01T10:00:00+02", "2026-01-01T08:00:00Z"},
	} {
		col := column(t, c.typeName)
		got, err := FromField(nil, col, []byte(c.text))
		if err != nil {
			t.Errorf("%s %s: %v", c.typeName, c.text, err)
		} else if text := string(celltext.AppendText(nil, col, got)); text != c.want {
			t.Errorf("%s %s: %s, want %s", c.typeName, c.text, text, c.want)
		}
	}
	for _, text := range []string{"2026-01-01 10:00:00.1234567", "2026-01-01 10:00:00 CET",
		"2026-01-01T10:00:00 UTC+1", "2026-01-01 10:00:00.", "2026-01-01 10:00:00+0",
		"2026-01-01 10:00:00.12345678900000000000000000001"} {
		if got, err := FromField(nil, column(t, "timestamp"), []byte(text)); err == nil {
			t.Errorf("%s: %x", text, got)
		}
	}
}
