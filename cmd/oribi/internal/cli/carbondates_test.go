package cli

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/oribi-db/oribi/cmd/oribi/internal/exit"
	"github.com/oribi-db/oribi/internal/must"
)

// TestCarbonDataHasTheDatesOfItsText writes, loads, and exports dates before 1582, and refuses
// those that CarbonData's calendar does not have.
func TestCarbonDataHasTheDatesOfItsText(t *testing.T) {
	dir := t.TempDir()
	columns, rows := filepath.Join(dir, "columns.jsonl"), filepath.Join(dir, "rows.jsonl")
	put(t, columns, `{"name":"id","type":"INT"}`+"\n"+`{"name":"d","type":"DATE"}`+"\n"+
		`{"name":"t","type":"TIMESTAMP"}`+"\n"+`{"name":"a","type":"ARRAY<DATE>"}`+"\n")
	row := func(id, date, micros string) string {
		return `{"id":` + id + `,"d":"` + date + `","t":` + micros + `,"a":["` + date + `",null]}` + "\n"
	}
	text := row("1", "0001-01-01", "-62135596800000000") + row("2", "1500-03-01", "-14826672000000000") + row("3",
		"1582-10-04", "-12220156801000000") +
		row("4", "1582-10-15", "-12219292800000000") + row("5", "9999-12-31", "253402300799999000")
	put(t, rows, text)
	out := filepath.Join(dir, "out")
	succeed(t, "carbondata", "write", "--schema", columns, "--values", rows,
		"--blocklet-size", "1", "--page-rows", "1", out)
	succeed(t, "carbondata", "verify", out)
	same(t, "dump", succeed(t, "carbondata", "dump", out), text)
	if csv := succeed(t, "carbondata", "dump", out, "--format", "csv", "--limit", "2", "--columns",
		"d,t"); csv != "d,t\n0001-01-01,0001-01-01T00:00:00Z\n1500-03-01,1500-03-01T00:00:00Z\n" {
		t.Errorf("csv: %s", csv)
	}
	for _, c := range [][2]string{
		{"--where=d = date '1500-03-01'", "2"}, {"--where=d <= date '1582-10-10'", "123"},
		{"--where=d > date '1582-10-10' and d < date '9999-12-31'", "4"},
		{"--where=d between date '1500-03-01' and date '1582-10-14'", "23"},
		{"--where=t < timestamp '1500-03-01T00:00:01Z'", "12"},
		{"--where=d in (date '1582-10-05', date '0001-01-01')", "1"},
		{"--where=not (d >= date '1582-10-12')", "123"}, {`--filter-json=["d","=",-719162]`, "1"},
		{`--filter-json=["t",">",-14826672000000000]`, "345"},
	} {
		got := succeed(t, "carbondata", "dump", out, "--columns", "id", "--format", "csv", c[0])
		must.Equal(t, strings.ReplaceAll(strings.TrimPrefix(got, "id\n"), "\n", ""), c[1])
	}
	if info := succeed(t, "carbondata", "info", out, "--format", "table"); !strings.Contains(info, "0001-01-01") {
		t.Error("info does not name the least date")
	}

	store := newStore(t)
	exits(t, 0, "table", "load", store, "t", out, "--create", "--key", "id")
	same(t, "scan", succeed(t, "table", "scan", store, "t"), text)
	back := filepath.Join(dir, "back")
	exported(t, store, "t", back)
	same(t, "exported", succeed(t, "carbondata", "dump", back), text)

	put(t, rows, text+row("6", "1582-10-10", "0"))
	message, code := "", 0
	if _, message, code = command(nil, "carbondata", "write", "--schema", columns, "--values", rows,
		filepath.Join(dir, "bad")); code != exit.Failed || !strings.HasSuffix(message,
		`rows.jsonl:6: column "d": 1582-10-10: CarbonData does not have this date: in its calendar 1582-10-15 follows 1582-10-04`+"\n") {
		t.Errorf("exit code %d: %s", code, message)
	}
}

// TestLoadOfJulianDates loads a folder of CarbonData's SDK with dates that tables do not have.
func TestLoadOfJulianDates(t *testing.T) {
	folder := filepath.Join("..", "..", "..", "..", "carbondata", "testdata", "sdk-dates")
	store := newStore(t)
	const want = `: row 2: column "d": 1500-02-29: only the Julian calendar, which CarbonData has before 1582-10-15, has this date`
	for _, args := range [][]string{{"carbondata", "dump", folder}, {"carbondata", "dump", folder, "--format", "table"},
		{"table", "load", store, "t", folder, "--create", "--key", "id"}} {
		_, errs, code := command(nil, args...)
		if code != exit.Failed || !strings.Contains(errs, "oribi: "+folder+want) || !strings.Contains(errs, "--where") ||
			!strings.Contains(errs, "--columns") || strings.Contains(errs, "corrupt") {
			t.Errorf("%v: exit code %d: %s", args, code, errs)
		}
	}
	if _, errs, code := command(nil, "table", "load", store, "t", folder, "--create", "--key", "id", "--where",
		"id != '1500-02-29' and id != '0100-02-29'"); code != 0 || !strings.HasSuffix(errs, "loaded 23 rows\n") {
		t.Fatalf("exit code %d: %s", code, errs)
	}
	for _, date := range []string{"0001-01-01", "0004-02-29", "1500-03-01", "1582-10-04", "1582-10-15"} {
		if got := succeed(t, "table", "scan", store, "t", "--where", "id = '"+date+"'", "--format",
			"csv"); got != "id,d,t\n"+date+","+date+","+date+"T12:34:56.789Z\n" {
			t.Errorf("%s: %s", date, got)
		}
	}
}
