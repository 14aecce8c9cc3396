package csvin

import (
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/oribi-db/oribi/internal/fuzztest"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/internal/seedtest"
)

// readAll formats the results of a reader: records by line, quoted fields in «», raw bytes after =.
func readAll(r *Reader) string {
	var b strings.Builder
	for {
		err := r.Next()
		if err == io.EOF {
			return b.String()
		}
		fmt.Fprintf(&b, "%d:", r.Line)
		if err != nil {
			fmt.Fprintf(&b, " (%v)", err)
			if _, bad := errors.AsType[*BadRecord](err); !bad {
				return b.String()
			}
			fmt.Fprintf(&b, " =%q\n", r.Raw())
			continue
		}
		for _, f := range r.Fields {
			if f.Quoted {
				fmt.Fprintf(&b, " «%s»", f.Text)
			} else {
				fmt.Fprintf(&b, " ‹%s›", f.Text)
			}
		}
		fmt.Fprintf(&b, " =%q\n", r.Raw())
	}
}

func TestRecords(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{"no text", "", ""},
		{"fields", "a,b\nc,d\n", `1: ‹a› ‹b› ="a,b\n"` + "\n" + `2: ‹c› ‹d› ="c,d\n"` + "\n"},
		{"no last line end", "a,b", `1: ‹a› ‹b› ="a,b"` + "\n"},
		{"an empty field at the end", "a,", `1: ‹a› ‹› ="a,"` + "\n"},
		{"empty and empty in quotes", ",\"\",\n", `1: ‹› «» ‹› =",\"\",\n"` + "\n"},
		{"CR LF and empty lines", "\r\n\na,b\r\n\r\nc,\"d\"\r\n",
			`3: ‹a› ‹b› ="a,b\r\n"` + "\n" + `5: ‹c› «d» ="c,\"d\"\r\n"` + "\n"},
		{"CR elsewhere", "a\nb,a\rb,c\n\rd\n\"x\",y\rz\n\"a\rb\"\n",
			"1: ‹a› =\"a\\n\"\n2: (field 2: " + ErrBareCR.Error() + ") =\"b,a\\rb,c\\n\"\n" +
				"3: (field 1: " + ErrBareCR.Error() + ") =\"\\rd\\n\"\n4: (field 2: " + ErrBareCR.Error() +
				") =\"\\\"x\\\",y\\rz\\n\"\n5: «a\rb» =\"\\\"a\\rb\\\"\\n\"\n"},
		{"CR alone", "a,b\rc,\"d\re\"\r\rf,\"\"\"\"\rg,",
			`1: ‹a› ‹b› ="a,b\r"` + "\n2: ‹c› «d\re» =\"c,\\\"d\\re\\\"\\r\"\n" + `5: ‹f› «"» ="f,\"\"\"\"\r"` +
				"\n" + `6: ‹g› ‹› ="g,"` + "\n"},
		{"CR and others", "a\rb\r\nc\nd,\"\"\r\n\"x\"y\r\nz\r", `1: ‹a› ="a\r"` + "\n" + `2: ‹b› ="b\r\n"` + "\n" +
			`3: ‹c› ="c\n"` + "\n" + `4: ‹d› «» ="d,\"\"\r\n"` + "\n" +
			`5: (field 1: text after a closing quote) ="\"x\"y\r\n"` + "\n" + `6: ‹z› ="z\r"` + "\n"},
		{"CR CR LF", "a,b\r\r\n1,2\r\r\n", `1: ‹a› ‹b› ="a,b\r"` + "\n" + `3: ‹1› ‹2› ="1,2\r"` + "\n"},
		{"CR at the end", "a,b\r", `1: ‹a› ‹b› ="a,b\r"` + "\n"},
		{"CR after a quote at the end", "a,\"b\"\r", `1: ‹a› «b» ="a,\"b\"\r"` + "\n"},
		{"doubled quotes", `"""a""b"""`, `1: «"a"b"» ="\"\"\"a\"\"b\"\"\""` + "\n"},
		{"line ends and delimiters in quotes", "a,\"b\r\nc,\n\"\nd\n",
			"1: ‹a› «b\r\nc,\n» =\"a,\\\"b\\r\\nc,\\n\\\"\\n\"\n4: ‹d› =\"d\\n\"\n"},
		{"mark", "\xef\xbb\xbfa\n", `1: ‹a› ="a\n"` + "\n"},
		{"quoted after a byte order mark", "\xef\xbb\xbf\"a\"\n", `1: «a» ="\"a\"\n"` + "\n"},
		{"half a mark", "\xef\xbb", "1: ‹\xef\xbb› =\"\\xef\\xbb\"\n"},
		{"UTF-16", "\xff\xfea\x00", "1: (the text is UTF-16, want UTF-8)"},
		{"bare quote", "a,b\"c,d\ne\n",
			`1: (field 2: a quote within an unquoted field) ="a,b\"c,d\n"` + "\n" + `2: ‹e› ="e\n"` + "\n"},
		{"text after a quote", "\"a\nb\"c,\"d\ne\n",
			`1: (field 1: text after a closing quote) ="\"a\nb\"c,\"d\n"` + "\n" + `3: ‹e› ="e\n"` + "\n"},
		{"unclosed", "a\n\"b,c\nd\n", `1: ‹a› ="a\n"` + "\n" + `2: (field 1: a quote is never closed) ="\"b,c\n"` +
			"\n" + `3: ‹d› ="d\n"` + "\n"},
		{"unclosed at the end", "a,\"", `1: (field 2: a quote is never closed) ="a,\""` + "\n"},
	} {
		for name, in := range map[string]io.Reader{"": strings.NewReader(c.text),
			", byte by byte": iotest.OneByteReader(strings.NewReader(c.text))} {
			must.Equal(t, readAll(NewReader(in, ',')), c.want, c.name, name)
		}
	}
}

// Records before a failure of the input are returned; the record that it interrupts is not.
func TestReaderReturnsCompleteRecordsBeforeInputError(t *testing.T) {
	refused := errors.New("refused")
	for _, c := range []struct{ text, want string }{
		{"a,b\nc,d", `1: ‹a› ‹b› ="a,b\n"` + "\n2: (refused)"},
		{"a,b\n\"c", `1: ‹a› ‹b› ="a,b\n"` + "\n2: (refused)"},
		{"a,b\n\"c\"", `1: ‹a› ‹b› ="a,b\n"` + "\n2: (refused)"},
		{"a,b\n\"c\"\r", `1: ‹a› ‹b› ="a,b\n"` + "\n2: (refused)"},
		{"a,b\nc\"", `1: ‹a› ‹b› ="a,b\n"` + "\n2: (refused)"},
		{"a,b\n\r", `1: ‹a› ‹b› ="a,b\n"` + "\n2: (refused)"},
		{"", "1: (refused)"},
	} {
		if got := readAll(NewReader(io.MultiReader(strings.NewReader(c.text), iotest.ErrReader(refused)),
			',')); got != c.want {
			t.Errorf("%q: got\n%s\nwant\n%s", c.text, got, c.want)
		}
	}
}

// endless is an input that repeats one byte.
type endless byte

func (e endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = byte(e)
	}
	return len(p), nil
}

func TestRecordsAreBounded(t *testing.T) {
	for _, head := range []string{"", "a,\"", "\"b\"\""} {
		r := NewReader(io.MultiReader(strings.NewReader(head), endless('x')), ',')
		r.most = 1 << 20
		if err := r.Next(); err != ErrTooLong {
			t.Errorf("%s…: %v", head, err)
		}
		if len(r.buffer) > 2<<20 {
			t.Errorf("%s…: a buffer of %d bytes", head, len(r.buffer))
		}
	}
	// A quote that is not closed within the bound invalidates its first line only.
	r := NewReader(io.MultiReader(strings.NewReader("\"a\nb\n"), io.LimitReader(endless('\n'), 3<<20)), ',')
	r.most = 1 << 20
	want := `1: (field 1: a quote is never closed) ="\"a\n"` + "\n" + `2: ‹b› ="b\n"` + "\n"
	must.Equal(t, readAll(r), want)
}

// randomText returns random text of characters with a meaning in CSV.
func randomText(r *rand.Rand) string {
	var b strings.Builder
	for range r.IntN(40) {
		b.WriteString([]string{"a", "bc", ",", ",", "\"", "\"", "\"\"", "\n", "\r\n", "\r",
			"é", "\"x\"", "\x00"}[r.IntN(13)])
	}
	return b.String()
}

func TestRandomTextAgreesWithPackageCSV(t *testing.T) {
	random := seedtest.Rand(t)
	for range 50_000 {
		must.Do(t, agree(randomText(random)))
	}
}

// agree compares with encoding/csv, which does not report quotes, ends at the first malformed
// record and converts CR LF in a field to LF.
func agree(text string) error {
	r := newReader(strings.NewReader(text), ',', 8)
	normal := strings.TrimPrefix(text, "\xef\xbb\xbf")
	if crAlone(normal) {
		normal = strings.ReplaceAll(strings.ReplaceAll(normal, "\r\n", "\n"), "\r", "\n")
	}
	oracle := csv.NewReader(strings.NewReader(normal))
	oracle.FieldsPerRecord = -1
	raws := 0
	for n := 0; ; n++ {
		err := r.Next()
		want, wantErr := oracle.Read()
		if errors.Is(err, ErrUTF16) || errors.Is(err, ErrBareCR) && strings.Contains(text, "\r") {
			return nil
		}
		if (err == nil) != (wantErr == nil) || (err == io.EOF) != (wantErr == io.EOF) {
			return fmt.Errorf("%q: record %d: %v, want %v", text, n, err, wantErr)
		}
		if err != nil {
			return nil
		}
		line, _ := oracle.FieldPos(0)
		if len(r.Fields) != len(want) || r.Line != line {
			return fmt.Errorf("%q: record %d: line %d with %d fields, want line %d with %d", text, n, r.Line,
				len(r.Fields), line, len(want))
		}
		for i, f := range r.Fields {
			got := string(f.Text)
			if f.Quoted {
				got = strings.ReplaceAll(got, "\r\n", "\n")
			}
			if crAlone(text) {
				got = strings.ReplaceAll(got, "\r", "\n")
			}
			if got != want[i] {
				return fmt.Errorf("%q: record %d field %d: %q, want %q", text, n, i, got, want[i])
			}
		}
		if raws += len(r.Raw()); !strings.Contains(text, string(r.Raw())) {
			return fmt.Errorf("%q: record %d: raw %q", text, n, r.Raw())
		}
	}
}

// crAlone reports whether the first line ends in CR alone.
func crAlone(text string) bool {
	for i, quoted := 0, false; i < len(text); i++ {
		switch text[i] {
		case '"':
			quoted = !quoted
		case '\n':
			if !quoted {
				return false
			}
		case '\r':
			if !quoted {
				return i+1 < len(text) && text[i+1] != '\n'
			}
		}
	}
	return false
}

func FuzzReader(f *testing.F) {
	f.Add("a,b\n\"c\",\"d\"\"\ne\"\r\n,\"\"\n")
	f.Add("\xef\xbb\xbfx\n\"never closed,\n1,2,\n")
	fuzztest.Run(f, func(t *testing.T, text string) {
		must.Do(t, agree(text))
		// The records do not depend on the sizes of reads, and contain all of the input but empty
		// lines.
		whole := readAll(newReader(strings.NewReader(text), ',', 4<<10))
		must.Equal(t, readAll(newReader(iotest.HalfReader(strings.NewReader(text)), ',', 8)), whole, text)
		must.Get(agreeInBlocks(text, rand.New(rand.NewPCG(1, 2))))(t)
	})
}

func TestHeaders(t *testing.T) {
	for _, c := range []struct{ text, names, fault string }{
		{"a,b\n1,2\n", "a b", ""},
		{"a,b,\n1,2,\n", "", "field 3 of the header is empty: each column needs a name"},
		{"k,\n", "", "field 2 of the header is empty: each column needs a name"},
		{strings.Repeat("a,", 80_000) + "b\n", "", "the header has 80001 names, a table has at most 300 columns"},
		{"\"a\",\"b c\"", "a|b c", ""},
		{"", "", "the header line is missing"},
		{"\n\n", "", "the header line is missing"},
		{"a,,b\n", "", "field 2 of the header is empty: each column needs a name"},
		{",\n", "", "field 1 of the header is empty: each column needs a name"},
		{"\"\"\n", "", "field 1 of the header is empty: each column needs a name"},
		{"a,b,a\n", "", `column "a": the name appears twice`},
		{"a,\"b\n", "", "field 2: a quote is never closed"},
		{"a,b\xff\n", "", `field 2 of the header: name "b\xff" is not valid UTF-8: bad schema`},
	} {
		names, err := NewReader(strings.NewReader(c.text), ',').Header(Names{})
		sep := " "
		if strings.Contains(c.names, "|") {
			sep = "|"
		}
		if got := strings.Join(names, sep); got != c.names || (err == nil) != (c.fault == "") ||
			err != nil && err.Error() != c.fault {
			t.Errorf("%q: %q, %v, want %q, %s", c.text, got, err, c.names, c.fault)
		}
	}
}

// Names that are given replace the names of the header, even invalid ones.
func TestGivenNamesReplaceTheHeader(t *testing.T) {
	for _, c := range []struct{ text, fault string }{
		{"id,a,a\n1,2,3\n", ""},
		{",,\n1,2,3\n", ""},
		{"x,y,z,\n1,2,3,\n", ""},
		{"x,y\n", "the header has 2 names, --header has 3"},
		{"x,y,z,w\n", "the header has 4 names, --header has 3"},
		{"", "the header line is missing"},
	} {
		r := NewReader(strings.NewReader(c.text), ',')
		names, err := r.Header(Names{List: []string{"id", "a", "b"}, Flag: "--header"})
		if c.fault != "" {
			must.Equal(t, fmt.Sprint(err), c.fault, c.text)
			continue
		}
		if err != nil || strings.Join(names, " ") != "id a b" {
			t.Errorf("%q: %q, %v", c.text, names, err)
		} else if err := r.Next(); err != nil || string(r.Fields[0].Text) != "1" {
			t.Errorf("%q: the next record is %v, %v", c.text, r.Fields, err)
		}
	}
	r := NewReader(strings.NewReader("id,a\n"), ',')
	if names, err := r.Header(Names{List: []string{"x", "y"}, NoHeader: true}); err != nil || len(names) != 2 ||
		r.Next() != nil || string(r.Fields[0].Text) != "id" {
		t.Errorf("without a header: %q, %v, and the first record is %v", names, err, r.Fields)
	}
}

// Other names are suggested for those that no table can have.
func TestNamesErrorSuggestsNames(t *testing.T) {
	for text, want := range map[string]string{"id,a,a": "id,a,a_2", ",a,b": "column_1,a,b",
		"a,a_2,a,a": "a,a_2,a_3,a_4", ",column_1": "column_1,column_1_2"} {
		_, err := NewReader(strings.NewReader(text), ',').Header(Names{})
		bad, ok := errors.AsType[*NamesError](err)
		must.Equal(t, ok, true, text, err)
		must.Equal(t, strings.Join(bad.Instead, ","), want, text, err)
	}
}

func BenchmarkReader(b *testing.B) {
	for _, c := range []struct{ name, line string }{
		{"quotes=none", "1|155190|7706|1|17|21168.23|0.04|0.02|N|O|1996-03-13|1996-02-12|1996-03-22|DELIVER IN " +
			"PERSON|TRUCK|egular courts above the\n"},
		{"quotes=one", "1|155190|7706|1|17|21168.23|0.04|0.02|N|O|1996-03-13|1996-02-12|1996-03-22|DELIVER IN " +
			"PERSON|TRUCK|\"egular courts above the\"\n"},
	} {
		b.Run(c.name, func(b *testing.B) {
			text := bytes.Repeat([]byte(c.line), 1000)
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				r := NewReader(bytes.NewReader(text), '|')
				fields := 0
				for r.Next() == nil {
					fields += len(r.Fields)
				}
				if fields != 16_000 {
					b.Fatal(fields)
				}
			}
		})
	}
}
