package load

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/cmd/oribi/internal/output"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/internal/seedtest"
	"github.com/oribi-db/oribi/schema"
)

// csvFields are fields of each column of manyTypes, three usual ones first.
var csvFields = [][]string{
	{"0", "-7", "", "127", "128", "007", "1e1"},
	{"0", "250", "65535", "-0", "-1", "65536"},
	{"3000000000", "1", "7", "-1"},
	{"12345678901234567", "5", "0", "-5", "18446744073709551615", "9223372036854775808"},
	{"2026-11-30", "1970-01-01", "", "2026-02-29", "0001-01-01"},
	{"2026-11-30T01:02:03Z", "5", "2026-11-30 01:02:03.5", "2026-11-30T01:02:03+02:00", "2026-11-30T25:02:03Z"},
	{"1.25", "-3", "100", "100000", "1.255", ".5", "99999.99"},
	{"1.2", "-99999999999999999.9", "0", "1e3"},
	{"12345678901234567890.5", "1", "-2", "x"},
	{"1.5", "-0", "0.1", "nan", "1e300", "12345678901234567890", "0x1"},
	{"1.5", "0.1", "inf", "e"},
	{"true", "f", "", "2"},
	{"abc", "", `""`, `"a,b"`, "é", `"say ""x"""`, "\"two\nlines\"", "\xff", "\"\xff\""},
	{"abc", "", `""`, `"äöü"`, "abcd", "ääää"},
	{"0xff", "0x", "", "ff"},
	{"[1]", `"[1,2]"`, "", "[]", "["},
}

func manyTypes(t *testing.T) *schema.Schema {
	t.Helper()
	s := typedColumns(t, 1, "id int64", "a int8", "b uint16", "c uint32", "d uint64", "day date", "at timestamp",
		"p decimal(7,2)", "q decimal(18,1)", "r decimal(30,2)", "f double", "g float", "ok bool", "text string",
		"short varchar(3)", "raw binary", "tags array(int16)", "extra string")
	s.Columns[2].Nullable = false
	s.Columns[13].Nullable = false
	s.Columns[14].Default = []byte("no")
	s.Columns[17].Default = []byte("none")
	return must.Get(schema.New(s.Columns, 1))(t)
}

// randomCSV returns a file for all columns of manyTypes. One in odd fields is not a usual one; 0
// means none. In some files a row repeats a key, in others the text of the last column is long.
func randomCSV(r *rand.Rand, odd int) string {
	long := strings.Repeat("long", 2000*r.IntN(2)*r.IntN(2))
	var b strings.Builder
	b.WriteString("id,a,b,c,d,day,at,p,q,r,f,g,ok,text,short,raw,tags,extra\n")
	lineEnd := []string{"\n", "\r\n"}[r.IntN(2)]
	again := r.IntN(6000) // the row that repeats a key, if there are so many
	for id := range r.IntN(1500) {
		if id == again {
			id /= 2
		}
		fmt.Fprint(&b, id)
		for _, fields := range csvFields {
			n := 3
			if odd > 0 && r.IntN(odd) == 0 {
				n = len(fields)
			}
			field := fields[r.IntN(n)]
			b.WriteString("," + field)
		}
		b.WriteString("," + long + strings.Repeat(",", max(0, r.IntN(12)-10)))
		if odd > 0 && r.IntN(20*odd) == 0 {
			b.WriteString([]string{",", ",,", ",x", "\r", `"`, lineEnd, strings.Repeat("y", 40_000)}[r.IntN(7)])
		}
		b.WriteString(lineEnd)
	}
	if text := b.String(); r.IntN(3) > 0 {
		return text
	}
	return strings.TrimSuffix(b.String(), lineEnd)
}

// Records that are appended column by column are those that are read one by one, and so is the
// error of a bad one. A load with SkipBad reads them one by one.
func TestCSVIsReadByColumnsAsOneByOne(t *testing.T) {
	store := openStore(t)
	r := seedtest.Rand(t)
	failed := 0
	for i := range 60 {
		text := randomCSV(r, []int{0, 30, 3000, 30000}[i%4])
		mode := []oribi.Op{oribi.OpInsert, oribi.OpUpsert, oribi.OpInsertIgnore}[r.IntN(3)]
		load := func(name string, o Options) (*oribi.Table, Result, error) {
			table := createTable(t, store, fmt.Sprint(name, i), manyTypes(t))
			o.Table, o.Mode, o.Rows = table, mode, 1+r.IntN(1000)
			o.Columns = strings.Split("id,a,b,c,d,day,at,p,q,r,f,g,ok,text,short,raw,tags", ",")
			if i%2 == 0 {
				o.Columns = nil
			}
			result, err := Run(context.Background(), strings.NewReader(text), o)
			return table, result, err
		}
		byColumn, result, err := load("columns", options(store, nil))
		o, skipped := options(store, nil), bytes.Buffer{}
		o.SkipBad = &skipped
		byRow, want, rowErr := load("rows", o)
		must.Do(t, rowErr)
		switch {
		case want.FirstBad != nil:
			failed++
			if err == nil || err.Error() != want.FirstBad.Error() {
				t.Errorf("file %d: %v, want %v", i, err, want.FirstBad)
			}
		case err != nil || result != want || printed(t, byColumn, output.JSONL) != printed(t, byRow, output.JSONL):
			t.Errorf("file %d: %+v, %v, want %+v, or other rows", i, result, err, want)
		}
	}
	if failed < 15 || failed > 50 {
		t.Errorf("%d of 60 files have a bad record: the test sees little", failed)
	}
}
