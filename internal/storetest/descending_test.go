package storetest

import (
	"fmt"
	"iter"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/internal/seedtest"
	"github.com/oribi-db/oribi/mvcc"
	"github.com/oribi-db/oribi/vfs"
)

// visit has a key of two columns, a nullable column, and a byte string.
type visit struct {
	Host string `oribi:"host,key"`
	N    int64  `oribi:"n,key"`
	Size *int64 `oribi:"size"`
	Note string `oribi:"note"`
}

// Without fmt: the test compares a million of these texts.
func (v visit) String() string {
	size := "NULL"
	if v.Size != nil {
		size = strconv.FormatInt(*v.Size, 10)
	}
	return v.Host + " " + strconv.FormatInt(v.N, 10) + " " + size + " " + v.Note
}

// narrowVisit has the key of a visit.
type narrowVisit struct {
	Host string `oribi:"host,key"`
	N    int64  `oribi:"n,key"`
}

func (v narrowVisit) String() string { return v.Host + " " + strconv.FormatInt(v.N, 10) }

// visitsTable fills a table in write batches: rowsets that overlap, of several windows each, with
// updates and deletes in delta files and in memory, and rows in memory. It returns the timestamps
// of the batches.
func visitsTable(t *testing.T, r *rand.Rand) (*oribi.TableOf[visit], []mvcc.Timestamp) {
	t.Helper()
	store, err := oribi.Open("/visits",
		&oribi.Options{FS: vfs.NewMem(), Clock: mvcc.NewLogicalClock(1), Manual: true,
			History: oribi.HistoryForever, RowSetBytes: 1 << 17})
	must.Do(t, err)
	t.Cleanup(func() { store.Close() })
	visits := must.Get(oribi.OpenTable[visit](store, "visits"))(t)
	var times []mvcc.Timestamp
	commit := func(op oribi.Op, n, step int) {
		b := store.NewBatch()
		for i := r.IntN(step); i < n; i += step {
			row := visit{Host: fmt.Sprint("host", i%3), N: int64(i / 3),
				Note: fmt.Sprint("note ", len(times), " ", i%7)}
			if size := int64(i); i%5 > 0 {
				row.Size = &size
			}
			visits.InBatch(b).Add(op, row)
		}
		ts := must.Get(b.Commit(t.Context()))(t)
		times = append(times, ts)
	}
	run := func(err error) {
		t.Helper()
		must.Do(t, err)
	}
	for range 2 {
		commit(oribi.OpUpsert, 20_000, 2)
		run(visits.Table.Flush(t.Context()))
	}
	commit(oribi.OpUpdateIgnore, 20_000, 7)
	commit(oribi.OpDeleteIgnore, 20_000, 11)
	_, err = visits.Table.FlushDeltas(t.Context())
	run(err)
	commit(oribi.OpUpsert, 22_000, 13)
	commit(oribi.OpUpdateIgnore, 22_000, 17)
	commit(oribi.OpDeleteIgnore, 22_000, 19)
	return visits, times
}

// readTexts returns the texts of all rows.
func readTexts[T fmt.Stringer](t *testing.T, rows iter.Seq2[T, error]) (texts []string) {
	t.Helper()
	for row := range must.All(t, rows) {
		texts = append(texts, row.String())
	}
	return texts
}

func TestDescendingScansReverseAscendingOnes(t *testing.T) {
	r := seedtest.Rand(t)
	visits, times := visitsTable(t, r)
	ranges := map[string][]oribi.ScanOption{
		"all":      nil,
		"from":     {oribi.From(oribi.Key{"host1", 77})},
		"to":       {oribi.To(oribi.Key{"host1", 4242})},
		"from, to": {oribi.From("host0a"), oribi.To(oribi.Key{"host2", 9})},
		"nothing":  {oribi.From("host2"), oribi.To("host1")},
		"prefix":   {oribi.Prefix("host1")},
		"prefix from": {oribi.Prefix("host1"), oribi.From(oribi.Key{"host1", 5000}),
			oribi.Where(oribi.NotNull("size"))},
		"where": {oribi.Where(oribi.Lt("size", 9000), oribi.HasPrefix("note", "note 2"))},
	}
	asOf := append([]mvcc.Timestamp{0}, times...)
	if testing.Short() {
		asOf = asOf[len(asOf)-2:]
	}
	for name, opts := range ranges {
		for _, at := range asOf {
			opts := append([]oribi.ScanOption{oribi.AsOf(at)}, opts...)
			if at == times[len(times)-1] {
				opts[0] = oribi.Latest()
			}
			want := readTexts(t, visits.Scan(t.Context(), opts...))
			slices.Reverse(want)
			for _, limit := range []int{-1, 0, 1, 100, 1 + r.IntN(9000), len(want) + 1} {
				opts := append(opts, oribi.Desc(), oribi.Limit(int64(limit)))
				want := want
				if limit >= 0 {
					want = want[:min(limit, len(want))]
				}
				must.Equal(t, readTexts(t, visits.Scan(t.Context(), opts...)), want,
					name, "as of", at, "limit", limit, "rows", len(want))
			}
		}
	}
	if n, err := visits.Table.Count(t.Context()); err != nil || n < 3*4096 {
		t.Errorf("%d rows, %v: want several windows", n, err)
	}
}

// All forms of a scan have a direction. Of Desc and AnyOrder, the last one counts.
func TestDescendingScanForms(t *testing.T) {
	visits, _ := visitsTable(t, seedtest.Rand(t))
	want := readTexts(t, oribi.ScanAs[narrowVisit](t.Context(), visits.Table))
	slices.Reverse(want)
	scan := func(opts ...oribi.ScanOption) *oribi.Scan {
		return visits.Table.Scan(t.Context(), append([]oribi.ScanOption{oribi.Columns("host", "n")}, opts...)...)
	}
	rows := func(opts ...oribi.ScanOption) (texts []string) {
		for row := range must.All(t, scan(opts...).Rows()) {
			texts = append(texts, fmt.Sprint(narrowVisit{row["host"].(string), row["n"].(int64)}))
		}
		return texts
	}
	var batches []string
	for b := range must.All(t, scan(oribi.Desc()).Batches()) {
		for i := range b.Rows() {
			var host narrowVisit
			host.Host = string(b.Columns[0].Cell(i))
			for k, c := range b.Columns[1].Cell(i) {
				host.N |= int64(c) << (8 * k)
			}
			batches = append(batches, fmt.Sprint(host))
		}
	}
	for name, got := range map[string][]string{
		"Batches":        batches,
		"Rows":           rows(oribi.Desc()),
		"ScanAs":         readTexts(t, oribi.ScanAs[narrowVisit](t.Context(), visits.Table, oribi.Desc())),
		"AnyOrder, Desc": rows(oribi.AnyOrder(), oribi.Desc()),
	} {
		must.Equal(t, got, want, name, "rows", len(want))
	}
	if got := rows(oribi.Desc(), oribi.AnyOrder()); slices.Equal(got, want) {
		t.Error("rows in descending order with Desc, AnyOrder")
	} else if slices.Sort(got); len(got) != len(want) {
		t.Errorf("%d rows, want %d", len(got), len(want))
	}
}
