package where

import (
	"fmt"
	"strings"
	"testing"

	"github.com/oribi-db/oribi/internal/fuzztest"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/schema"
)

func columns(t testing.TB) []schema.Column {
	t.Helper()
	s := must.Get(schema.New([]schema.Column{
		{ID: 10, Name: "path", Type: schema.String}, {ID: 11, Name: "n8", Type: schema.Int8, Nullable: true},
		{ID: 12, Name: "n64", Type: schema.Int64},
		{ID: 13, Name: "f", Type: schema.Float}, {ID: 14, Name: "d", Type: schema.Double},
		{ID: 15, Name: "b", Type: schema.Bool},
		{ID: 16, Name: "dec", Type: schema.Decimal32, Precision: 5, Scale: 2}, {ID: 17, Name: "day", Type: schema.Date},
		{ID: 18, Name: "at", Type: schema.Timestamp}, {ID: 19, Name: "bin", Type: schema.Binary},
		{ID: 20, Name: "v", Type: schema.Varchar, Length: 3}, {ID: 21, Name: `odd "name`, Type: schema.Int8},
		{ID: 22, Name: "date", Type: schema.Date},
	}, 1))(t)
	return append(s.Columns, schema.Column{ID: 23, Name: "nested", Type: -1})
}

// show formats an expression for comparison: tests as ID, operator, and cells in hex.
func show(e *Expr) string {
	if e == nil {
		return ""
	}
	if e.Column == nil {
		parts := []string{e.Op.String()}
		for _, o := range e.Operands {
			parts = append(parts, show(o))
		}
		return "(" + strings.Join(parts, " ") + ")"
	}
	s := fmt.Sprintf("[%d %s", e.Column.ID, e.Op)
	for _, v := range e.Cells {
		s += fmt.Sprintf(" %x", v)
	}
	return s + "]"
}

func TestExpressions(t *testing.T) {
	s := columns(t)
	for _, c := range []struct{ in, want string }{
		{`path = 'a''b'`, "[10 = 612762]"},
		{`path=''`, "[10 = ]"},
		{`n8>=-128 AND n8<127`, "(and [11 >= 80] [11 < 7f])"},
		{`n8 != 1.0 and n64 <= 1e3`, "(and [11 != 01] [12 <= e803000000000000])"},
		{`n64 > -9223372036854775808`, "[12 > 0000000000000080]"},
		{`f = 0.1 and d = 0.1`, "(and [13 = cdcccc3d] [14 = 9a9999999999b93f])"},
		{`d = 'NaN' and d != '-Inf'`, "(and [14 = 000000000000f87f] [14 != 000000000000f0ff])"},
		{`b = TRUE and b != false`, "(and [15 = 01] [15 != 00])"},
		{`dec in (1.5, '2.25',3)`, "[16 in 96000000 e1000000 2c010000]"},
		{`dec = 1.500`, "[16 = 96000000]"},
		{`day < date '1970-01-02'`, "[17 < 01000000]"},
		{`at <= TimeStamp '1970-01-01T00:00:00.000001Z' and at > 7`,
			"(and [18 <= 0100000000000000] [18 > 0700000000000000])"},
		{`at < timestamp '1970-01-02'`, "[18 < 0060d71d14000000]"},
		{`bin = 0xAB00 and bin != 0x`, "(and [19 = ab00] [19 != ])"},
		{`v = 'abc'`, "[20 = 616263]"},
		{`"odd ""name" = 1`, "[21 = 01]"},
		{`date = date '1970-01-01' and "date" is not null`, "(and [22 = 00000000] (not [22 is null]))"},
		{"\n n8\tIS\rNULL ", "[11 is null]"},
		{`n8 IN (1)`, "[11 in 01]"},
		{`n8 == 1 or n8 <> 2 and n8 < 3`, "(or [11 = 01] (and [11 != 02] [11 < 03]))"},
		{`(n8 = 1 or n8 = 2) and not n8 = 3`, "(and (or [11 = 01] [11 = 02]) (not [11 = 03]))"},
		{`not not (n8 = 1)`, "(not (not [11 = 01]))"},
		{`not n8 = 1 and n8 = 2`, "(and (not [11 = 01]) [11 = 02])"},
		{`n8 not in (1, 2) OR n8 NOT BETWEEN 3 AND 4 or path not like 'a%'`,
			"(or (not [11 in 01 02]) (not [11 between 03 04]) (not [10 like 61]))"},
		{`n8 between -1 and 1 and n64 = 5`, "(and [11 between ff 01] [12 = 0500000000000000])"},
		{`path like 'a\%b\_c\\%'`, "[10 like 6125625f635c]"},
		{`path like '%'`, "[10 like ]"},
		{`path like '%%'`, "[10 like ]"},
		{`path like 'a'`, "[10 = 61]"},
		{`path like '%a%'`, "[10 like parts  61 ]"},
		{`path like '%%a%%%b'`, "[10 like parts  61 62]"},
		{`path like '%a'`, "[10 like parts  61]"},
		{`path not like 'a%b'`, "(not [10 like parts 61 62])"},
		{`path like '%\%%'`, "[10 like parts  25 ]"},
		{`bin like 'a%' and bin like '%é%' and bin like 'a'`, "(and [19 like 61] [19 like parts  c3a9 ] [19 = 61])"},
		{`v like '%abcdef'`, "[20 like parts  616263646566]"},
		{`5 < n8 and 5 <= n8 and 5 > n8 and 5 >= n8 and 5 = n8 and 5 == n8 and 5 != n8 and 5 <> n8`,
			"(and [11 > 05] [11 >= 05] [11 < 05] [11 <= 05] [11 = 05] [11 = 05] [11 != 05] [11 != 05])"},
		{`not -1<n8 or('a''b'=path)`, "(or (not [11 > ff]) [10 = 612762])"},
		{`true = b and FALSE != b and 0xAB = bin`, "(and [15 = 01] [15 != 00] [19 = ab])"},
		{`date '1970-01-02' > day and Timestamp '1970-01-02' > at and 1.5 = dec`,
			"(and [17 < 01000000] [18 < 0060d71d14000000] [16 = 96000000])"},
		{`date = date '1970-01-02' and date '1970-01-02' = date`, "(and [22 = 01000000] [22 = 01000000])"},
		{`v like 'abcdef%'`, "[20 like 616263646566]"},
		{`n8 is not null`, "(not [11 is null])"},
		{`nested is null or nested is not null`, "(or [23 is null] (not [23 is null]))"},
	} {
		e, err := Parse(s, c.in)
		if got := show(e); err != nil || got != c.want {
			t.Errorf("%s: got %q, %v, want %q", c.in, got, err, c.want)
		}
	}
}

func TestParseRefusesInvalidExpressions(t *testing.T) {
	s := columns(t)
	for _, c := range []struct{ in, want string }{
		{``, "want a column, not the end"},
		{`   `, "want a column, not the end"},
		{`size = 1`, `column "size": no such column`},
		{`PATH = 'a'`, `column "PATH": no such column`},
		{`path`, "want = != < <= > >= in, between, like, or is, not the end"},
		{`path =`, "want a literal, not the end"},
		{`path = ('a')`, `want a literal, not "("`},
		{`5`, "want = != < <= > or >= after a literal, not the end"},
		{`5 in (n8)`, `want = != < <= > or >= after a literal, not "in"`},
		{`'a' like path`, `want = != < <= > or >= after a literal, not "like"`},
		{`5 <`, "want a column, not the end"},
		{`5 < 5`, `want a column, not "5"`},
		{`5 < n8 < 7`, `want "and" or "or", not "<"`},
		{`5 < size`, `column "size": no such column`},
		{`500 < n8`, `column "n8": "500" is out of range for int8`},
		{`null = n8`, `column "n8": nothing equals NULL`},
		{`1 = nested`, `column "nested": only "is null" and "is not null" can test it`},
		{`date 5 = day`, "want = != < <= > >= in"},
		{`day 'x' = day`, "want = != < <= > >= in"},
		{`bin like 0xab`, "want a pattern"},
		{`path like 'a_%'`, `write \_ for`},
		{`path like 'a\b%'`, "a backslash comes before"},
		{`path like 'a\'`, "a backslash comes before"},
		{`path like a`, "want a pattern"},
		{`n8 like '1%'`, "like needs a string, varchar, or binary column, not int8"},
		{`path not = 'a'`, `want in, between, or like, not "="`},
		{`path not null`, `want in, between, or like, not "null"`},
		{`n8 between 1`, `want "and", not the end`},
		{`n8 between 1 or 2`, `want "and", not "or"`},
		{`(path = 'a'`, `want ")", not the end`},
		{`path = 'a')`, `want "and" or "or", not ")"`},
		{`()`, `want a column, not ")"`},
		{`not`, "want a column, not the end"},
		{`or path = 'a'`, `column "or": no such column`},
		{strings.Repeat("(", 1000), "more than 100 levels"},
		{strings.Repeat("not ", 1000), "more than 100 levels"},
		{`f < 1e39`, "out of range"},
		{`d > -1e400`, "out of range"},
		{`pth = 'a'`, `did you mean "path"?`},
		{`path = 'a' and`, "want a column, not the end"},
		{`path = 'a' path = 'b'`, `want "and" or "or", not "path"`},
		{`path = 'a`, "the ' that opens here is not closed"},
		{`"path = 1`, `the " that opens here is not closed`},
		{`path = "a"`, `want a literal, not "a"; a text is written 'a'`},
		{`path = a`, `want a literal, not "a"; a text is written 'a'`},
		{`path = 1`, "type string has no value 1; a text is written '1'"},
		{`path = 0xab`, "type string has no value 0xab"},
		{"path = '\xff'", "not valid UTF-8"},
		{`n8 = 128`, `"128" is out of range for int8`},
		{`n8 = 1.5`, `"1.5" cannot be represented exactly for int8`},
		{`n8 = '1'`, "type int8 has no value '1'"},
		{`n8 = null`, "is null"},
		{`n8 in (1, null)`, "is null"},
		{`n8 in ()`, "want a literal"},
		{`n8 in 1`, `want "(", not "1"`},
		{`n8 in (1`, `want ")", not the end`},
		{`n8 is 1`, `want "null", not "1"`},
		{`n8 = true`, "type int8 has no value true"},
		{`n8 = 1x`, `want a blank after "1", not 'x'`},
		{`n8 = 1.`, `want a blank after "1", not '.'`},
		{`n8 = - 1`, `unexpected '-'`},
		{`n8 = +1`, `unexpected '+'`},
		{`d = 'Inf'`, `"NaN", "+Inf" or "-Inf"`},
		{`b = 1`, "type bool has no value 1"},
		{`dec = 1.505`, "cannot be represented exactly"},
		{`dec = 1000`, "out of range"},
		{`day = '1970-01-01'`, "a date is written date '1970-01-01'"},
		{`day = date '1970-02-30'`, "is not a date"},
		{`day = timestamp '1970-01-01T00:00:00Z'`, "type date has no value timestamp"},
		{`at = timestamp '1970-01-01T00:00:00.0000001Z'`, "cannot be represented exactly"},
		{`at = date '1970-01-01'`, "type timestamp has no value date"},
		{`bin = 'ab'`, "bytes are written 0x…"},
		{`bin = 0xabc`, "two digits per byte"},
		{`v = 'abcd'`, "has 4 characters"},
		{`n8 = 1; n8 = 2`, "unexpected ';'"},
		{`n8 = é`, "unexpected 'é'"},
		{`nested = 1`, `column "nested": only "is null" and "is not null" can test it`},
		{`nested not in (1)`, "can test it"}, {`nested like 'a%'`, "can test it"},
		{`n8 is not nul`, `want "null", not "nul"`},
	} {
		e, err := Parse(s, c.in)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %q, %v, want error %q", c.in, show(e), err, c.want)
		}
	}
}

func FuzzParseNeverPanics(f *testing.F) {
	for _, s := range []string{`path = 'a' and n8 in (1, 2)`, `"d" != -1.5e3`, `day >= date '2026-01-01'`,
		`bin = 0xab`, `0x`, `not (path like 'a%' or n8 between 1 and 2)`, `5 < n8`,
		`date '2026-01-01' = day or path like '%a%\%b'`} {
		f.Add(s)
	}
	s := columns(f)
	fuzztest.Run(f, func(t *testing.T, in string) {
		e, err := Parse(s, in)
		must.Equal(t, err == nil, e != nil, in, e, err)
	})
}
