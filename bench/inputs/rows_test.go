package inputs

import (
	"cmp"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/internal/must"
)

// readRows reads all rows of a file.
func readRows(t *testing.T, name string) (out []Item) {
	t.Helper()
	for it, err := range Rows(name) {
		must.Do(t, err)
		out = append(out, *it)
	}
	return out
}

func writeRows(t *testing.T, lines, n int) (dir string, items []Item) {
	t.Helper()
	dir = t.TempDir()
	text := filepath.Join(dir, "text")
	must.Do(t, WriteLineitem(text, "", lines))
	must.Do(t, WriteRows(filepath.Join(dir, "rows"), text, n))
	for it, err := range Items(text) {
		must.Do(t, err)
		items = append(items, *it)
	}
	return dir, items
}

func compareKeys(a, b Item) int {
	return cmp.Or(cmp.Compare(a.OrderKey, b.OrderKey), cmp.Compare(a.LineNumber, b.LineNumber))
}

func TestRowsRepeatTheTextWithAscendingKeys(t *testing.T) {
	dir, items := writeRows(t, 100, 250)
	got := readRows(t, filepath.Join(dir, "rows"))
	must.Equal(t, len(got), 250)
	for i, it := range got {
		if i > 0 && compareKeys(got[i-1], it) >= 0 {
			t.Fatalf("row %d has key %v after %v", i, it.Key(), got[i-1].Key())
		}
		want := items[i%100]
		want.OrderKey = it.OrderKey
		if it != want || i < 100 && it.OrderKey != items[i].OrderKey {
			t.Fatalf("row %d is %+v, want %+v", i, it, want)
		}
	}
}

func TestShuffleChangesOnlyTheOrder(t *testing.T) {
	dir, _ := writeRows(t, 1000, 1000)
	must.Do(t, Shuffle(filepath.Join(dir, "shuffled"), filepath.Join(dir, "rows")))
	want, got := readRows(t, filepath.Join(dir, "rows")), readRows(t, filepath.Join(dir, "shuffled"))
	if slices.Equal(got, want) {
		t.Error("the order is the same")
	}
	slices.SortFunc(got, compareKeys)
	must.Equal(t, got, want)
}

func TestTruncatedRowsAreErrors(t *testing.T) {
	dir, _ := writeRows(t, 2, 2)
	name := filepath.Join(dir, "rows")
	whole := must.Get(os.ReadFile(name))(t)
	cut := len(whole) / 2
	for end := cut + 1; end < len(whole); end++ {
		must.Do(t, os.WriteFile(name, whole[:end], 0o600))
		var last error
		n := 0
		for _, last = range Rows(name) {
			n++
		}
		if last == nil && end != len(whole) && n != 1 {
			t.Fatalf("the first %d of %d bytes: %d rows and no error", end, len(whole), n)
		}
	}
	for i := range whole {
		bad := slices.Clone(whole)
		bad[i] ^= 0xff
		must.Do(t, os.WriteFile(name, bad, 0o600))
		for _, err := range Rows(name) { // an error or a different row, but no panic
			if err != nil && !strings.Contains(err.Error(), "row") && !strings.Contains(err.Error(), "EOF") {
				t.Fatalf("byte %d: %v", i, err)
			}
		}
	}
}

func TestRowsRoundTripInThreeForms(t *testing.T) {
	_, items := writeRows(t, 50, 50)
	s := must.Get(LineitemSchema())(t)
	columns := NewVectors(s)
	FillVectors(columns, items)
	for i, want := range items {
		cells := make([][]byte, len(columns))
		for c := range columns {
			cells[c] = columns[c].Cell(i)
		}
		var got Item
		if new(Decoder).Cells(cells, &got); got != want {
			t.Fatalf("row %d from its cells: %+v, want %+v", i, got, want)
		}
		if fromRow(want.Row(), &got); got != want {
			t.Fatalf("row %d from its Row: %+v, want %+v", i, got, want)
		}
		var d Decoder
		if err := d.Item(want.AppendKey(nil), want.AppendValue(nil), &got); err != nil || got != want {
			t.Fatalf("row %d from its key and value: %+v, %v", i, got, err)
		}
	}
}

// fromRow converts a row made by Item.Row.
func fromRow(row oribi.Row, it *Item) {
	long := func(name string) int64 { return row[name].(int64) }
	hundredths := func(name string) int64 { return int64(row[name].(oribi.Decimal).Unscaled.Lo) }
	text := func(name string) string { return row[name].(string) }
	day := func(name string) int32 { return int32(row[name].(time.Time).Unix() / 86400) }
	*it = Item{OrderKey: long("l_orderkey"), LineNumber: row["l_linenumber"].(int32),
		PartKey: long("l_partkey"), SuppKey: long("l_suppkey"),
		Quantity: hundredths("l_quantity"), ExtendedPrice: hundredths("l_extendedprice"),
		Discount: hundredths("l_discount"), Tax: hundredths("l_tax"),
		ReturnFlag: text("l_returnflag"), LineStatus: text("l_linestatus"),
		ShipDate: day("l_shipdate"), CommitDate: day("l_commitdate"), ReceiptDate: day("l_receiptdate"),
		ShipInstruct: text("l_shipinstruct"), ShipMode: text("l_shipmode"), Comment: text("l_comment")}
}
