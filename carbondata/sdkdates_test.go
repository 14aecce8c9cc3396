package carbondata

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/oribi-db/oribi/internal/corpustest"
	"github.com/oribi-db/oribi/internal/must"
)

// sdkDates runs Dates.java. It returns the lines that it prints.
func sdkDates(t *testing.T, check, input string, arguments ...string) (lines []string) {
	t.Helper()
	cmd := sdkProgram(t, check, "Dates.java", arguments...)
	var complaint bytes.Buffer
	cmd.Stdin, cmd.Stderr = strings.NewReader(input), &complaint
	timer := time.AfterFunc(readerMost, func() { cmd.Process.Kill() })
	defer timer.Stop()
	out, err := cmd.Output()
	if _, failed := errors.AsType[*exec.ExitError](err); err != nil || failed {
		t.Fatalf("%v: %v: %s", arguments, err, complaint.Bytes())
	}
	for line := range strings.Lines(string(out)) {
		if row, ok := strings.CutPrefix(strings.TrimSuffix(line, "\n"), "row\t"); ok {
			lines = append(lines, row)
		}
	}
	return lines
}

// dateTexts are dates: the ends of all months of many years, the days around the switch, leap days,
// and random ones. Not all are dates of one calendar or the other.
func dateTexts() (dates []string) {
	add := func(year, month, day int) { dates = append(dates, fmt.Sprintf("%04d-%02d-%02d", year, month, day)) }
	for year := 1; year <= 1600; year += 1 + year%61 {
		for month := 1; month <= 12; month++ {
			for _, day := range []int{1, 28, 29, 30, 31} {
				add(year, month, day)
			}
		}
	}
	for year := 100; year <= 2100; year += 100 {
		for _, near := range []int{year - 4, year, year + 4} {
			add(near, 2, 28)
			add(near, 2, 29)
			add(near, 3, 1)
		}
	}
	for day := 1; day <= 31; day++ {
		add(1582, 10, day)
	}
	rnd := rand.New(rand.NewPCG(36, 3))
	for range 1000 {
		add(1+rnd.IntN(9999), 1+rnd.IntN(12), 1+rnd.IntN(31))
	}
	return append(dates, "0001-01-01", "0000-12-31", "9999-12-30", "10000-01-01")
}

const afterMidnight = " 12:34:56.789"

// TestSDKPrintsTheSameDates compares what the SDK and this package print for the same folders,
// those that the SDK wrote from texts and those that this package did, and which dates both refuse.
func TestSDKPrintsTheSameDates(t *testing.T) {
	_, check := corpustest.NeedCarbonReader(t)
	dates := dateTexts()
	input := ""
	for _, date := range dates {
		input += date + "\t" + date + afterMidnight + "\n"
	}
	theirs := filepath.Join(t.TempDir(), "theirs")
	sdkDates(t, check, input, "write", theirs)
	printed := sdkDates(t, check, "", "print", theirs)
	must.Equal(t, len(printed), len(dates))

	columns := []Column{column("id", Int), column("d", Date), column("t", Timestamp)}
	ours := filepath.Join(t.TempDir(), "ours")
	w := must.Get(Create(ours, columns, WriterOptions{}))(t)
	defer w.Abort()
	var want []string // of ours
	julian := map[int]string{}
	refused := 0
	for i, date := range dates {
		null := strings.HasSuffix(printed[i], "\tnull\tnull")
		if !null && printed[i] != fmt.Sprintf("%d\t%s\t%s%s", i, date, date, afterMidnight) {
			t.Fatalf("the SDK prints %s for %s", printed[i], date)
		}
		at, err := time.Parse(time.DateOnly+" 15:04:05.000", date+afterMidnight)
		switch {
		case err != nil && !null:
			julian[i] = date
			continue
		case err != nil:
			continue
		}
		for _, row := range [][]any{{int32(i), Days(gregorianOf(t, date)), nil},
			{int32(i), nil, Micros(at.UnixMicro())}} {
			must.Equal(t, w.Append(row) != nil, null, date)
		}
		if null {
			refused++
			continue
		}
		want = append(want, fmt.Sprintf("%d\t%s\tnull", i, date), fmt.Sprintf("%d\tnull\t%s%s", i, date, afterMidnight))
	}
	must.Do(t, w.Close())
	if len(julian) < 12 || refused < 11 {
		t.Errorf("%d dates of the Julian calendar only, %d refused ones of the other", len(julian), refused)
	}
	compareLines(t, "rows of ours", sdkDates(t, check, "", "print", ours), want)

	table := must.Get(Open(theirs))(t)
	defer table.Close()
	for i, line := range printed {
		n := 0
		for row, err := range table.Rows(t.Context(), ScanOptions{Filter: Eq("id", i)}) {
			n++
			if date, ok := julian[i]; ok {
				must.Fail(t, err, ErrRow, date, row)
				must.Contain(t, fmt.Sprint(err), date+": only the Julian calendar", date, row)
				continue
			}
			must.Do(t, err, line)
			must.Equal(t, sdkText(row), line)
		}
		must.Equal(t, n, 1, line)
	}
	must.Do(t, table.Verify(t.Context()))
}

// sdkText prints a row of an INT, a DATE, and a TIMESTAMP as Dates.java does.
func sdkText(row []any) string {
	text := fmt.Sprint(row[0])
	for _, v := range row[1:] {
		switch v := v.(type) {
		case Days:
			text += "\t" + time.Unix(int64(v)*86400, 0).UTC().Format(time.DateOnly)
		case Micros:
			text += "\t" + time.UnixMicro(int64(v)).UTC().Format(time.DateOnly+" 15:04:05.000")
		default:
			text += "\tnull"
		}
	}
	return text
}
