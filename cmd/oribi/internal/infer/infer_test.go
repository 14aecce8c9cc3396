package infer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/oribi-db/oribi/internal/celltext"
	"github.com/oribi-db/oribi/internal/seedtest"
	"github.com/oribi-db/oribi/schema"
)

func typesOf(t testing.TB, c *Columns, key ...string) string {
	t.Helper()
	s, err := c.Schema(key)
	if err != nil {
		return err.Error()
	}
	var b strings.Builder
	for i := range s.Columns {
		fmt.Fprintf(&b, "%s %s", s.Columns[i].Name, s.Columns[i].TypeName())
		if s.Columns[i].Nullable {
			b.WriteString(" nullable")
		}
		b.WriteString("; ")
	}
	return strings.TrimSuffix(b.String(), "; ")
}

// A column gets the first type that prints all its values as they are in the file.
func TestTypesPrintValuesUnchanged(t *testing.T) {
	for _, c := range []struct{ values, want string }{
		{"true false", "bool"},
		{"true 1", "string"},
		{"True", "string"},
		{"1 -20 0", "int64"},
		{"9223372036854775807", "int64"},
		{"9223372036854775808", "string"}, // a double would print 9223372036854775808 as 9223372036854776000
		{"1 1.5", "double"},
		{"1.10", "decimal(9,2)"},
		{"1.10 20.00 -0.05 0.00", "decimal(9,2)"},
		{"1.5 2.5", "decimal(9,1)"},
		{"12345678.10 1.10", "decimal(18,2)"},
		{"12345678901234567890.10 1.10", "decimal(38,2)"},
		{"123456789012345678901234567890123456789.1", "string"},
		{"1.10 1", "string"},
		{"1.10 1.5", "string"},
		{"1.25 1.5 3", "double"},
		{"1.25 1e-9", "double"},
		{"-0.0", "string"},
		{"00.5", "string"},
		{"5. .5", "string"},
		{"0.000001 1.5", "double"},
		{"0.0000001 1.5", "string"},
		{"123456789012345.25 1", "double"},
		{"1234567890123456.25 1", "string"},
		{"12345678901234567.25 1", "string"},
		{"007", "string"},
		{"+1", "string"},
		{"-0", "double"},
		{"1e+21", "double"},
		{"1e21", "string"},
		{"NaN -Inf 2.5", "double"},
		{"0x1p-2", "string"},
		{"2024-02-29 0001-01-01", "date"},
		{"2023-02-29", "string"},
		{"2024-02-29 1", "string"},
		{"2024-02-29T10:00:00Z 2024-02-29T10:00:00.123456Z 2024-02-29T10:00:00+00:00 2024-02-29T10:00:00", "timestamp"},
		{"2024-02-29T10:00:00+01:00", "string"},
		{"2024-02-29T10:00:00.1234567Z", "string"},
		{"2024-02-30T10:00:00Z", "string"},
		{"2024-02-29T24:00:00Z", "string"},
		{"2024-02-29 2024-02-29T10:00:00Z", "string"},
		{"2024-02-29T10:00Z", "string"},
		{" 1", "string"},
		{"", "string"},
	} {
		text := "k,v\n"
		for i, v := range strings.Split(c.values, " ") {
			text += fmt.Sprintf("a%d,%s\nb%d,\n", i, v, i)
		}
		if c.values == " 1" {
			text = "k,v\na, 1\n"
		}
		columns, err := CSV(context.Background(), strings.NewReader(text), Options{Delimiter: ','})
		if err != nil {
			t.Fatal(err)
		}
		if got, want := typesOf(t, columns, "k"), "k string; v "+c.want+" nullable"; got != want {
			t.Errorf("%s: %s, want %s", c.values, got, want)
		}
	}
}

func TestKeysComeFirstWithKeyableTypes(t *testing.T) {
	text := "a,b,c,d,e\n1,true,1.5,1,x\n2,false,2.5,,y\nragged\n"
	columns, err := CSV(context.Background(), strings.NewReader(text), Options{Delimiter: ','})
	if err != nil {
		t.Fatal(err)
	}
	if got, want := typesOf(t, columns, "d", "c", "b", "a"), "d string; c decimal(9,1); b string; a int64; e string nullable"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	for _, key := range [][]string{{"x"}, {"a", "a"}, {}} {
		if _, err := columns.Schema(key); err == nil {
			t.Errorf("key %q was accepted", key)
		}
	}
}

func TestObjectsMayHaveDifferentNames(t *testing.T) {
	text := "\xef\xbb\xbf" + `{"a":1,"b":true,"c":"2024-02-29","d":"1"}
[1]

{"e":1.10,"a":2,"b":null,"d":"x","f":null}
{"g":{"x":1},"h":"NaN","h2":"\u0032"}
`
	columns, err := JSON(context.Background(), strings.NewReader(text), Options{})
	if err != nil {
		t.Fatal(err)
	}
	want := "a int64; b bool nullable; c date nullable; d string nullable; e string nullable; f string nullable; g string nullable; h double nullable; h2 string nullable"
	if got := typesOf(t, columns, "a"); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	var wide strings.Builder
	for i := range schema.MaxColumns + 1 {
		fmt.Fprintf(&wide, `{"c%d":1}`+"\n", i)
	}
	if _, err := JSON(context.Background(), strings.NewReader(wide.String()), Options{}); !errors.Is(err, ErrTooMany) {
		t.Errorf("%d columns: %v", schema.MaxColumns+1, err)
	}
}

// Only the beginning of a stream is read, and only complete records of it.
func TestBeginningIgnoresIncompleteRecord(t *testing.T) {
	for _, c := range []struct {
		name string
		in   io.Reader
		rows int
		want string
	}{
		{"all", strings.NewReader("k,v\n1,2\n3,x"), 0, "k int64; v string nullable"},
		{"rows", strings.NewReader("k,v\n1,2\n3,x"), 1, "k int64; v int64 nullable"},
		{"bytes", Beginning(strings.NewReader("k,v\n1,2024-01-01\n3,2024-01-01\n"), 25), 0, "k int64; v date nullable"},
		{"all bytes", Beginning(strings.NewReader("k,v\n1,2\n3,x"), 100), 0, "k int64; v string nullable"},
	} {
		columns, err := CSV(context.Background(), c.in, Options{Delimiter: ',', Rows: c.rows})
		if err != nil {
			t.Fatal(err)
		}
		if got := typesOf(t, columns, "k"); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}

// The message names the value because of which a column is a string.
func TestReasonsNameTheValueThatForcedAString(t *testing.T) {
	text := "k,price,city,n,none,flag,id\n1,1.50,Oslo,N/A,,true,\n2,N/A,Lima,5,,yes,7\n3,2.50,Rome,6,,no,8\n"
	columns, err := CSV(context.Background(), strings.NewReader(text), Options{Delimiter: ','})
	if err != nil {
		t.Fatal(err)
	}
	s, err := columns.Schema([]string{"k", "id", "flag"})
	if err != nil {
		t.Fatal(err)
	}
	want := `k int64, id string (a row has no value), flag string ("yes" in line 3), price string ("N/A" in line 3), city string, n string ("N/A" in line 2), none string (no values)`
	if got := columns.Reasons(s); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestDecideSetsType(t *testing.T) {
	columns, err := CSV(context.Background(), strings.NewReader("k,a,b\n1,2,x\n"), Options{Delimiter: ','})
	if err != nil {
		t.Fatal(err)
	}
	for name, typeName := range map[string]string{"a": "decimal(10,3)", "k": "int16"} {
		if err := columns.Decide(name, typeName); err != nil {
			t.Fatal(err)
		}
	}
	if got, want := typesOf(t, columns, "k"), "k int16; a decimal(10,3) nullable; b string nullable"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if err := columns.Decide("nope", "int16"); err == nil || err.Error() != `column "nope": no such column in the file; there is "k", "a", "b"` {
		t.Error(err)
	}
	if err := columns.Decide("a", "int17"); err == nil {
		t.Error("int17 was accepted")
	}
}

// Whatever the types, loaded values are printed as in the file.
func TestTypesPrintEveryNumberUnchanged(t *testing.T) {
	r := seedtest.Rand(t)
	for range 20_000 {
		text := []byte(fmt.Sprintf("%s%d", []string{"", "-"}[r.IntN(2)], r.Uint64()>>r.IntN(64)))
		if r.IntN(3) > 0 {
			text = fmt.Appendf(append(text, '.'), "%0*d", 1+r.IntN(8), r.IntN(100_000))
		}
		c := &Columns{}
		if _, err := c.add("x"); err != nil {
			t.Fatal(err)
		}
		k, s := c.fieldKinds(text, allKinds)
		for kind, column := range map[kinds]schema.Column{isInteger: {Type: schema.Int64}, isDouble: {Type: schema.Double},
			isDecimal: {Type: schema.DecimalType(max(1, s.whole+s.decimals)), Precision: max(1, s.whole+s.decimals), Scale: s.decimals}} {
			value, err := celltext.FromField(nil, &column, text)
			same := err == nil && string(celltext.AppendText(nil, &column, value)) == string(text)
			if column.Type.Decimal() && s.decimals == 0 {
				same = false // an integer
			}
			if got := k&kind != 0; got != same {
				t.Fatalf("%s as %s: got %v, want %v (%v)", text, column.TypeName(), got, same, err)
			}
		}
	}
}

func BenchmarkKinds(b *testing.B) {
	for _, text := range []string{"155190", "21168.23", "0.04", "1996-03-13", "1996-03-13T10:00:00Z", "true", "egular courts above the"} {
		b.Run(text, func(b *testing.B) {
			c := &Columns{}
			if _, err := c.add("x"); err != nil {
				b.Fatal(err)
			}
			value := []byte(text)
			b.ReportAllocs()
			for line := 0; b.Loop(); line++ {
				c.see(0, value, line, c.fieldKinds)
			}
		})
	}
}
