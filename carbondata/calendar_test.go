package carbondata

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/internal/calendar"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/schema"
)

// sdkDay returns the day that the SDK stores for the date of a Gregorian day. It computes Julian
// day numbers with the formulas of almanacs, so that it shares no code with storedDay.
func sdkDay(day int64) int64 {
	if day >= switchDay {
		return day
	}
	of := time.Unix(day*24*60*60, 0).UTC()
	back := int64(14-of.Month()) / 12 // in January and February
	year, month := int64(of.Year())+4800-back, int64(of.Month())+12*back-3
	return int64(of.Day()) + (153*month+2)/5 + 365*year + year/4 - 32083 - 2440588
}

// sdkValue returns a value with the days and times of the SDK.
func sdkValue(v any) any {
	switch v := v.(type) {
	case Days:
		return Days(sdkDay(int64(v)))
	case Micros:
		day, of := calendar.FloorDiv(int64(v), dayMicros)
		return Micros(sdkDay(day)*dayMicros + of)
	case []any:
		list := make([]any, len(v))
		for i := range v {
			list[i] = sdkValue(v[i])
		}
		return list
	}
	return v
}

// writableDay returns a day that CarbonData has, for any number.
func writableDay(day int64) int64 {
	_, of := calendar.FloorDiv(day-firstDay, lastDay-firstDay+1)
	if day = firstDay + of; day >= switchDay-gapDays && day < switchDay {
		day -= gapDays
	}
	return day
}

// gregorianOf returns the number of a date's text.
func gregorianOf(t *testing.T, date string) int64 {
	t.Helper()
	at := must.Get(time.Parse(time.DateOnly, date))(t)
	return at.Unix() / (24 * 60 * 60)
}

// TestDaysOfTheSDK compares with numbers that the SDK 2.3.0 wrote for these texts.
func TestDaysOfTheSDK(t *testing.T) {
	for _, c := range []struct {
		date   string
		stored int64
		text   bool // the Gregorian calendar has the date
	}{
		{"0001-01-01", -719164, true}, {"0004-02-29", -718010, true}, {"0099-01-01", -683370, true},
		{"0100-02-29", -682946, false},
		{"0200-02-28", -646422, true}, {"1500-02-28", -171597, true}, {"1500-02-29", -171596, false},
		{"1500-03-01", -171595, true},
		{"1582-10-04", -141428, true}, {"1582-10-15", -141427, true},
		{"1677-09-21", -106752, true}, {"1900-01-01", -25567, true},
		{"1969-12-31", -1, true}, {"1970-01-01", 0, true}, {"9999-12-31", 2932896, true},
	} {
		day, ok := calendar.Gregorian(c.stored)
		must.Equal(t, ok, c.text, c.date, day)
		if !c.text {
			if err := errJulian(c.stored); !strings.HasPrefix(err.Error(), c.date+": only the Julian calendar") {
				t.Errorf("%s: %v", c.date, err)
			}
			continue
		}
		if want := gregorianOf(t, c.date); day != want || sdkDay(want) != c.stored {
			t.Errorf("%s is day %d, want %d; the test has %d", c.date, day, want, sdkDay(want))
		}
		const noon = 12*60*60*1e6 + 345000
		if micros, ok := calendar.GregorianMicros(c.stored*dayMicros + noon); !ok || micros != day*dayMicros+noon {
			t.Errorf("%s: noon is %d, %v", c.date, micros, ok)
		}
	}
}

// TestFolderOfTheSDK reads testdata/sdk-dates, which the SDK 2.3.0 wrote in the zone UTC: id is the
// text that was given to it as the date d and, with 12:34:56.789, as the time t. A date that it
// refuses is null.
func TestFolderOfTheSDK(t *testing.T) {
	table := must.Get(Open(filepath.Join("testdata", "sdk-dates")))(t)
	defer table.Close()
	must.Do(t, table.Verify(t.Context()))
	other := map[string]string{"1-1-1": "0001-01-01", "99-01-01": "0099-01-01"} // without zeros
	refused := map[string]bool{"1582-10-05": true, "1582-10-10": true, "1582-10-14": true, "0000-12-31": true,
		"0000-01-01": true, "-0001-01-01": true,
		"10000-01-01": true, "2023-02-30": true, "1500-02-30": true}
	julian := map[string]bool{"1500-02-29": true, "0100-02-29": true}
	ids := scanRows(t, table, ScanOptions{Columns: []string{"id"}})
	must.Equal(t, len(ids), 25)
	for _, id := range ids {
		text := id[0].(string)
		want := other[text]
		if want == "" {
			want = text
		}
		for row, err := range table.Rows(t.Context(), ScanOptions{Filter: Eq("id", text)}) {
			switch {
			case julian[text]:
				must.Fail(t, err, ErrRow, row)
				must.Contain(t, fmt.Sprint(err), text, row)
			case err != nil:
				t.Errorf("%s: %v", text, err)
			case refused[text]:
				if row[1] != nil || row[2] != nil {
					t.Errorf("%s: %v", text, row)
				}
			default:
				at := gregorianOf(t, want)
				noon := any(Micros(at*dayMicros + ((12*60+34)*60+56)*1e6 + 789000))
				if text == "9999-12-31" {
					noon = nil // after midnight the SDK takes no time of this day
				}
				if row[1] != Days(at) || row[2] != noon {
					t.Errorf("%s: %v", text, row)
				}
				for _, filter := range []Filter{Eq("d", Days(at)), And(Ge("d", Days(at)), Le("d", Days(at)))} {
					if n := len(scanRows(t, table, ScanOptions{Filter: filter, Columns: []string{"id"}})); n != 1 &&
						want != "0001-01-01" {
						t.Errorf("%s: %d rows pass", text, n)
					}
				}
			}
		}
	}
}

// TestDaysThereAndBack converts each day from 1000 years before the first to year 2000.
func TestDaysThereAndBack(t *testing.T) {
	missing := 0
	next := int64(firstDay - 366000)
	stored, _ := calendar.Hybrid(next)
	for ; next < 11000; stored++ {
		day, ok := calendar.Gregorian(stored)
		if !ok {
			missing++
			must.Equal(t, day, next, stored)
			continue
		}
		if stored == switchDay {
			for ; next < day; next++ {
				if to, ok := calendar.Hybrid(next); ok || to != stored {
					t.Fatalf("day %d does not exist, and is stored as %d, %v", next, to, ok)
				}
			}
		}
		must.Equal(t, day, next, stored)
		if back, ok := calendar.Hybrid(day); !ok || back != stored ||
			day >= firstDay && day%7 == 0 && sdkDay(day) != stored {
			t.Fatalf("day %d is stored as %d, %v, want %d", day, back, ok, stored)
		}
		if micros, ok := calendar.HybridMicros(day*dayMicros + 1); !ok || micros != stored*dayMicros+1 {
			t.Fatalf("day %d: %d, %v", day, micros, ok)
		}
		next++
	}
	if missing != 12+8 { // in years 1 to 1582, and −1003 to 0
		t.Errorf("%d days without a Gregorian date", missing)
	}
	for _, extreme := range []int64{math.MinInt64, math.MinInt64 + 1, math.MinInt64 / dayMicros * dayMicros} {
		if stored, ok := calendar.HybridMicros(extreme); !ok || stored != math.MinInt64 {
			t.Errorf("%d is stored as %d, %v", extreme, stored, ok)
		}
	}
	if micros, _ := calendar.GregorianMicros(
		math.MinInt64 / microsPerMilli * microsPerMilli); micros > math.MinInt64/2 {
		t.Errorf("the first time is %d", micros)
	}
}

// calendarRows are rows with dates from year 1 to 9999, many around changes of the calendars: a
// date, the time at noon of that day, and both as elements.
func calendarRows() (rows [][]any) {
	add := func(day int64) {
		day = min(max(day, firstDay), lastDay)
		if day >= switchDay-gapDays && day < switchDay {
			return
		}
		at := Micros(day*dayMicros + 12*60*60*1e6)
		rows = append(rows, []any{Days(day), at, []any{Days(day), nil}, []any{at, []any{[]any{Days(day), at}}}})
	}
	for year := 1; year < 1601; year += 1 + year%97 {
		for month := time.January; month <= time.December; month++ {
			add(time.Date(year, month, 0, 0, 0, 0, 0, time.UTC).Unix() / 86400)
			add(time.Date(year, month, 1, 0, 0, 0, 0, time.UTC).Unix() / 86400)
		}
	}
	for year := 100; year <= 1600; year += 100 {
		for day := 27; day <= 32; day++ {
			add(time.Date(year, time.February, day, 0, 0, 0, 0, time.UTC).Unix() / 86400)
		}
	}
	for day := int64(switchDay - 20); day < switchDay+20; day++ {
		add(day)
	}
	rnd := rand.New(rand.NewPCG(36, 1))
	for range 500 {
		add(firstDay + rnd.Int64N(lastDay-firstDay))
	}
	slices.SortFunc(rows, func(a, b []any) int { return comparePlain(a[0], b[0]) })
	return append(rows, []any{nil, nil, nil, nil})
}

// calendarFolder writes calendarRows, by date or in any order.
func calendarFolder(t *testing.T, o WriterOptions, shuffled bool) (dir string, rows [][]any) {
	t.Helper()
	rows = calendarRows()
	if shuffled {
		rnd := rand.New(rand.NewPCG(36, 2))
		rnd.Shuffle(len(rows), func(i, k int) { rows[i], rows[k] = rows[k], rows[i] })
	}
	pair := column("", Struct, column("", Date), column("", Timestamp))
	f := &randomFolder{rows: rows, options: o,
		columns: []Column{column("d", Date), column("t", Timestamp), column("a", Array, column("", Date)),
			column("s", Struct, column("at", Timestamp), column("m", Map, pair))}}
	f.write(t)
	return f.dir, rows
}

// openWritten opens a folder, which must be well-formed and have the given rows, until the test
// ends.
func openWritten(t *testing.T, dir string, rows [][]any) *Table {
	t.Helper()
	table := must.Get(Open(dir))(t)
	t.Cleanup(func() { table.Close() })
	must.Do(t, table.Verify(t.Context()))
	if got := scanRows(t, table, ScanOptions{}); !sameRows(got, rows) {
		t.Fatal("other rows")
	}
	return table
}

// TestOldDatesReadBack reads dates of all years as rows and as batches, and as filters select them,
// with and without minima and maxima.
func TestOldDatesReadBack(t *testing.T) {
	dir, rows := calendarFolder(t, WriterOptions{PageRows: 300, BlockletBytes: 16 << 10}, false)
	table := openWritten(t, dir, rows)
	s := must.Get(table.Scan(t.Context(), ScanOptions{Columns: []string{"d", "t", "a"}}))(t)
	defer s.Close()
	n := 0
	for s.Next() {
		b := s.Batch()
		for i := range b.Len {
			var got [2]any
			if !b.Columns[0].IsNull(i) {
				got = [2]any{Days(batch.Values[int32](b.Columns[0])[i]), Micros(batch.Values[int64](b.Columns[1])[i])}
			}
			if got != [2]any{rows[n][0], rows[n][1]} {
				t.Fatalf("row %d: %v, want %v", n, got, rows[n])
			}
			if rows[n][0] != nil {
				packed := batch.NewArrays(schema.Date)
				if err := packed.AppendUnpacked(b.Columns[2], i, i+1); err != nil ||
					batch.Values[int32](packed.Elements)[0] != int32(rows[n][0].(Days)) {
					t.Fatalf("row %d: array %x, %v", n, b.Columns[2].Cell(i), err)
				}
			}
			n++
		}
	}
	must.Do(t, s.Err())
	must.Equal(t, n, len(rows))
	dates := []int64{firstDay, switchDay - 11, switchDay - 5, switchDay, gregorianOf(t, "1500-03-01"), lastDay + 1}
	tests := map[string]func(c int) bool{"=": func(c int) bool {
		return c == 0
	}, "!=": func(c int) bool { return c != 0 }, "<": func(c int) bool { return c < 0 },
		"<=": func(c int) bool {
			return c <= 0
		}, ">": func(c int) bool { return c > 0 }, ">=": func(c int) bool { return c >= 0 }}
	for _, day := range dates {
		for op, test := range tests {
			for _, negated := range []bool{false, true} {
				for column, value := range []any{Days(day), Micros(day*dayMicros + 12*60*60*1e6)} {
					text := fmt.Sprintf(`["%s","%s",%d]`, []string{"d", "t"}[column], op, value)
					if negated {
						text = `["not",` + text + `]`
					}
					checkCalendarFilter(t, table, text, rows, func(row []any) bool {
						return row[0] != nil && test(comparePlain(row[column], value)) != negated
					})
				}
			}
		}
	}
	list := fmt.Sprintf(`["d","in",[%d,%d,%d]]`, switchDay-3, switchDay, firstDay)
	in := func(row []any) bool { return row[0] == Days(switchDay) || row[0] == Days(firstDay) }
	checkCalendarFilter(t, table, list, rows, in)
	checkCalendarFilter(t, table, `["not",`+list+`]`, rows, func(row []any) bool { return row[0] != nil && !in(row) })
	for _, filter := range []Filter{Lt("t", Micros(firstDay*dayMicros)), Gt("d", lastDay),
		And(Gt("t", Micros((switchDay-10)*dayMicros)), Lt("d", switchDay))} {
		var stats ScanStats
		for _, err := range table.Rows(t.Context(), ScanOptions{Filter: filter, Stats: &stats}) {
			t.Fatalf("a row where there is none, %v", err)
		}
		if stats.PagesRead > stats.Pages*9/10 {
			t.Errorf("%d of %d pages are read", stats.PagesRead, stats.Pages)
		}
	}
}

func checkCalendarFilter(t *testing.T, table *Table, text string, rows [][]any, match func(row []any) bool) {
	t.Helper()
	var want [][]any
	for _, row := range rows {
		if match(row) {
			want = append(want, row)
		}
	}
	filter := must.Get(ParseFilter([]byte(text)))(t)
	for _, noPruning := range []bool{false, true}[:1+len(want)%2] {
		if got := scanRows(t, table, ScanOptions{Filter: filter, noPruning: noPruning}); !sameRows(got, want) {
			t.Errorf("%s: %d rows, want %d", text, len(got), len(want))
		}
	}
}

// TestSortedOldDates sorts rows by dates.
func TestSortedOldDates(t *testing.T) {
	dir, rows := calendarFolder(t, WriterOptions{SortColumns: []string{"d", "t"}, PageRows: 50}, true)
	slices.SortStableFunc(rows, func(a, b []any) int {
		switch {
		case a[0] == nil:
			return -1
		case b[0] == nil:
			return 1
		}
		return comparePlain(a[0], b[0])
	})
	openWritten(t, dir, rows)
}

// rawInt is an integer as it is stored.
type rawInt int64

// writeStored writes a folder with days, times, and rawInts as they are stored.
func writeStored(t *testing.T, columns []Column, rows [][]any) (dir string) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "stored")
	w := must.Get(Create(dir, columns, WriterOptions{}))(t)
	defer w.Abort()
	var add func(c *columnWriter, v any)
	add = func(c *columnWriter, v any) {
		switch v := v.(type) {
		case Days:
			c.addInt(int64(v))
		case rawInt:
			c.addInt(int64(v))
		case Micros:
			c.addInt(int64(v / microsPerMilli))
		case []any:
			if c.Type == Struct {
				c.rows++
			} else {
				c.addElements(len(v))
			}
			for i, element := range v {
				child := c.children[0]
				if c.Type == Struct {
					child = c.children[i]
				}
				add(child, element)
			}
		default:
			c.add(v)
		}
	}
	for _, row := range rows {
		for i, c := range w.schema.columns {
			add(c, row[i])
		}
		w.rows++
	}
	must.Do(t, w.Close())
	return dir
}

// TestJulianLeapDays reads folders with dates that the Gregorian calendar does not have, which only
// the SDK can write: in each kind of column.
func TestJulianLeapDays(t *testing.T) {
	const february28, leap = -171597, -171596 // of 1500
	for name, c := range map[string]struct {
		column Column
		value  func(day Days) any
	}{
		"date":  {column("c", Date), func(day Days) any { return day }},
		"time":  {column("c", Timestamp), func(day Days) any { return Micros(day)*dayMicros + 5000 }},
		"array": {column("c", Array, column("", Date)), func(day Days) any { return []any{Days(0), day} }},
		"times": {column("c", Array, column("", Timestamp)), func(day Days) any {
			return []any{nil, Micros(day) * dayMicros}
		}},
		"struct": {column("c", Struct, column("f", Int), column("g", Date)), func(day Days) any {
			return []any{int32(1), day}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			feb28, _ := calendar.Gregorian(february28)
			var rows [][]any
			for i := range 3 {
				rows = append(rows, []any{int32(i), c.value(leap)})
			}
			table := must.Get(Open(writeStored(t, []Column{column("id", Int), c.column}, rows)))(t)
			defer table.Close()
			check := func(err error, what string) {
				bad, ok := errors.AsType[*RowError](err)
				if !ok || bad.Row != 0 || bad.Column != "c" || !errors.Is(err, ErrRow) || errors.Is(err, ErrCorrupt) ||
					!strings.Contains(err.Error(), "1500-02-29: only the Julian calendar") {
					t.Errorf("%s: %v", what, err)
				}
			}
			for _, err := range table.Rows(t.Context(), ScanOptions{}) {
				check(err, "rows")
			}
			s := must.Get(table.Scan(t.Context(), ScanOptions{}))(t)
			defer s.Close()
			if s.Next() {
				t.Error("a batch")
			}
			check(s.Err(), "batches")
			must.Do(t, table.Verify(t.Context()))
			info := must.Get(table.Info())(t)
			for _, c := range info.Files[0].Blocklets[0].Columns {
				if c.Name == "c" && c.MinValue != nil {
					t.Errorf("minimum %v", c.MinValue)
				}
			}
			if name == "date" || name == "time" {
				for _, filter := range []Filter{Le("c", c.value(Days(feb28))), Ge("c", c.value(Days(feb28+1)))} {
					must.Equal(t, len(scanRows(t, table, ScanOptions{Filter: filter})), 0)
				}
			}
			must.Equal(t, len(scanRows(t, table, ScanOptions{Filter: IsNull("c")})), 0)
			if rows := scanRows(t, table, ScanOptions{Filter: NotNull("c"), Columns: []string{"id"}}); len(rows) != 3 {
				t.Errorf("%d rows without null", len(rows))
			}
		})
	}
}
