package where

import (
	"fmt"
	"strings"
	"testing"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/internal/fuzztest"
	"github.com/oribi-db/oribi/schema"
)

func columns(t testing.TB) *schema.Schema {
	t.Helper()
	s, err := schema.New([]schema.Column{
		{ID: 10, Name: "path", Type: schema.String}, {ID: 11, Name: "n8", Type: schema.Int8, Nullable: true}, {ID: 12, Name: "n64", Type: schema.Int64},
		{ID: 13, Name: "f", Type: schema.Float}, {ID: 14, Name: "d", Type: schema.Double}, {ID: 15, Name: "b", Type: schema.Bool},
		{ID: 16, Name: "dec", Type: schema.Decimal32, Precision: 5, Scale: 2}, {ID: 17, Name: "day", Type: schema.Date},
		{ID: 18, Name: "at", Type: schema.Timestamp}, {ID: 19, Name: "bin", Type: schema.Binary},
		{ID: 20, Name: "v", Type: schema.Varchar, Length: 3}, {ID: 21, Name: `odd "name`, Type: schema.Int8}, {ID: 22, Name: "date", Type: schema.Date},
	}, 1)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// show writes predicates so that they can be compared.
func show(tests []batch.Predicate) string {
	var parts []string
	for _, p := range tests {
		s := fmt.Sprintf("%d %s", p.ID, p.Op)
		for _, v := range p.Values {
			s += fmt.Sprintf(" %x", v)
		}
		parts = append(parts, s)
	}
	return strings.Join(parts, "; ")
}

func TestExpressions(t *testing.T) {
	s := columns(t)
	for _, c := range []struct{ in, want string }{
		{`path = 'a''b'`, "10 = 612762"},
		{`path=''`, "10 = "},
		{`n8>=-128 AND n8<127`, "11 >= 80; 11 < 7f"},
		{`n8 != 1.0 and n64 <= 1e3`, "11 != 01; 12 <= e803000000000000"},
		{`n64 > -9223372036854775808`, "12 > 0000000000000080"},
		{`f = 0.1 and d = 0.1`, "13 = cdcccc3d; 14 = 9a9999999999b93f"},
		{`f < 1e39 and d > -1e400`, "13 < 0000807f; 14 > 000000000000f0ff"},
		{`d = 'NaN' and d != '-Inf'`, "14 = 000000000000f87f; 14 != 000000000000f0ff"},
		{`b = TRUE and b != false`, "15 = 01; 15 != 00"},
		{`dec in (1.5, '2.25',3)`, "16 in 96000000 e1000000 2c010000"},
		{`dec = 1.500`, "16 = 96000000"},
		{`day < date '1970-01-02'`, "17 < 01000000"},
		{`at <= TimeStamp '1970-01-01T00:00:00.000001Z' and at > 7`, "18 <= 0100000000000000; 18 > 0700000000000000"},
		{`bin = 0xAB00 and bin != 0x`, "19 = ab00; 19 != "},
		{`v = 'abc'`, "20 = 616263"},
		{`"odd ""name" = 1`, "21 = 01"},
		{`date = date '1970-01-01' and "date" is not null`, "22 = 00000000; 22 is not null"},
		{"\n n8\tIS\rNULL ", "11 is null"},
		{`n8 IN (1)`, "11 in 01"},
	} {
		tests, err := Parse(s, c.in)
		if got := show(tests); err != nil || got != c.want {
			t.Errorf("%s: got %q, %v, want %q", c.in, got, err, c.want)
		}
		for i := range tests {
			if err := tests[i].Prepare(); err != nil {
				t.Errorf("%s: %v", c.in, err)
			}
		}
	}
}

func TestExpressionsThatAreRefused(t *testing.T) {
	s := columns(t)
	for _, c := range []struct{ in, want string }{
		{``, "want a column, not the end"},
		{`   `, "want a column, not the end"},
		{`size = 1`, `column "size": no such column`},
		{`PATH = 'a'`, `column "PATH": no such column`},
		{`path`, "want = != < <= > >= in is, not the end"},
		{`path =`, "want a literal, not the end"},
		{`path == 'a'`, `want a literal, not "="`},
		{`path <> 'a'`, `want a literal, not ">"`},
		{`path like 'a'`, `not "like"`},
		{`path = 'a' or path = 'b'`, `"or" is not supported`},
		{`not path = 'a'`, `"not" is not supported`},
		{`(path = 'a')`, `"(" is not supported`},
		{`path = ('a')`, "brackets are not supported"},
		{`path = 'a' and`, "want a column, not the end"},
		{`path = 'a' path = 'b'`, `want "and", not "path"`},
		{`path = 'a`, "no ' closes"},
		{`"path = 1`, `no " closes`},
		{`path = "a"`, `want a literal, not "a"`},
		{`path = 1`, "type string cannot hold 1"},
		{`path = 0xab`, "type string cannot hold 0xab"},
		{"path = '\xff'", "not valid UTF-8"},
		{`n8 = 128`, `"128" is out of range for int8`},
		{`n8 = 1.5`, `"1.5" cannot be held exactly for int8`},
		{`n8 = '1'`, "type int8 cannot hold '1'"},
		{`n8 = null`, "is null"},
		{`n8 in (1, null)`, "is null"},
		{`n8 in ()`, "want a literal"},
		{`n8 in 1`, `want "(", not "1"`},
		{`n8 in (1`, `want ")", not the end`},
		{`n8 is 1`, `want "null", not "1"`},
		{`n8 = true`, "type int8 cannot hold true"},
		{`n8 = 1x`, `"1" goes on with 'x'`},
		{`n8 = 1.`, `"1" goes on with '.'`},
		{`n8 = - 1`, `unexpected '-'`},
		{`n8 = +1`, `unexpected '+'`},
		{`d = 'Inf'`, `"NaN", "+Inf" or "-Inf"`},
		{`b = 1`, "type bool cannot hold 1"},
		{`dec = 1.505`, "cannot be held exactly"},
		{`dec = 1000`, "out of range"},
		{`day = '1970-01-01'`, "a date is written date '1970-01-01'"},
		{`day = date '1970-02-30'`, "is no date"},
		{`day = timestamp '1970-01-01T00:00:00Z'`, "type date holds no timestamp"},
		{`at = timestamp '1970-01-01T00:00:00.0000001Z'`, "cannot be held exactly"},
		{`at = date '1970-01-01'`, "type timestamp holds no date"},
		{`bin = 'ab'`, "bytes are written 0x…"},
		{`bin = 0xabc`, "two digits a byte"},
		{`v = 'abcd'`, "has 4 characters"},
		{`n8 = 1; n8 = 2`, "unexpected ';'"},
		{`n8 = é`, "unexpected 'é'"},
		{`n8 is not nul`, `want "null", not "nul"`},
	} {
		tests, err := Parse(s, c.in)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %q, %v, want error %q", c.in, show(tests), err, c.want)
		}
	}
}

func FuzzParseNeverPanics(f *testing.F) {
	for _, s := range []string{`path = 'a' and n8 in (1, 2)`, `"d" != -1.5e3`, `day >= date '2026-01-01'`, `bin = 0xab`, `0x`} {
		f.Add(s)
	}
	s := columns(f)
	fuzztest.Run(f, func(t *testing.T, in string) {
		tests, err := Parse(s, in)
		if err == nil && len(tests) == 0 {
			t.Fatalf("%q: no error and no test", in)
		}
	})
}
