package infer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

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

// A column has the first type in which all its values would be printed as they stand in the file.
func TestTypesPrintTheValuesAsTheyStand(t *testing.T) {
	for _, c := range []struct{ values, want string }{
		{"true false", "bool"},
		{"true 1", "string"},
		{"True", "string"},
		{"1 -20 0", "int64"},
		{"9223372036854775807", "int64"},
		{"9223372036854775808", "string"}, // a double would print 9223372036854775808 as 9223372036854776000
		{"1 1.5", "double"},
		{"1.10", "string"},
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

func TestKeysComeFirstAndHaveTypesThatKeysMayHave(t *testing.T) {
	text := "a,b,c,d,e\n1,true,1.5,1,x\n2,false,2.5,,y\nragged\n"
	columns, err := CSV(context.Background(), strings.NewReader(text), Options{Delimiter: ','})
	if err != nil {
		t.Fatal(err)
	}
	if got, want := typesOf(t, columns, "d", "c", "b", "a"), "d string; c string; b string; a int64; e string nullable"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	for _, key := range [][]string{{"x"}, {"a", "a"}, {}} {
		if _, err := columns.Schema(key); err == nil {
			t.Errorf("key %q was taken", key)
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

// Of a stream only the beginning is looked at, and of that only whole records.
func TestOnlyWholeRecordsOfABeginningAreLookedAt(t *testing.T) {
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
