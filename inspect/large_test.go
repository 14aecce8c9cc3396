package inspect

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"html/template"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/block"
	"github.com/oribi-db/oribi/compaction"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/rowset"
	"github.com/oribi-db/oribi/schema"
)

const (
	manyRowSets = 10_000
	manyColumns = 300
)

// wideTable makes a table of as many columns as a table may have, with names of a length, and a
// few rowsets.
func wideTable(t testing.TB, store *oribi.Store, name string, width int) *oribi.Table {
	t.Helper()
	columns := []schema.Column{{Name: "k", Type: schema.Int64}}
	for i := 1; i < manyColumns; i++ {
		c := schema.Column{Name: fmt.Sprintf("%s%03d", strings.Repeat("<", max(width-3, 1)), i),
			Type: schema.String, Nullable: true}
		if width > 100 {
			c.Comment = strings.Repeat("\"", width)
		}
		columns = append(columns, c)
	}
	sc := must.Get(schema.New(columns, 1))(t)
	table := must.Get(store.CreateTable(name, sc))(t)
	for round := range 2 {
		for _, upsert := range []bool{true, false} {
			commit(t, store, func(b *oribi.Batch) {
				for k := range 20 {
					row := oribi.Row{"k": int64(k * (round + 1))}
					for i := 1; i < manyColumns; i++ {
						row[columns[i].Name] = strings.Repeat("\"<&", 12) + fmt.Sprint(k, i, round, upsert)
					}
					b.Upsert(table, row)
				}
			})
			must.Do(t, table.Flush(t.Context()))
		}
	}
	return table
}

// manyLayout returns a layout and the metadata of as many rowsets, whose files do not exist.
func manyLayout(sc *schema.Schema, n int, overlap bool) (compaction.Layout, []*rowset.Metadata) {
	l := compaction.Layout{Table: "wide", RowSetBytes: 32 << 20}
	var sets []*rowset.Metadata
	for i := range n {
		key := func(v int) []byte { return binary.BigEndian.AppendUint64(nil, uint64(v)|1<<63) }
		first, last := key(10*i), key(10*i+9)
		if overlap {
			first, last = key(i), key(2*n+i)
		}
		info := compaction.RowSetInfo{ID: uint64(i), MinKey: first, MaxKey: last, Rows: 1000, LiveRows: 900,
			Bytes: 32<<20 + int64(i), Redos: 2, RedoBytes: 5 << 20, Undos: 1, UndoBytes: 6 << 20}
		m := &rowset.Metadata{ID: info.ID, MinKey: first, MaxKey: last, Rows: info.Rows, LiveRows: info.LiveRows,
			Bytes: info.Bytes, Bloom: block.ID(1 << 40)}
		for k := range sc.Columns {
			m.Columns = append(m.Columns,
				rowset.ColumnBlock{ID: sc.Columns[k].ID, Block: block.ID(1<<41 + i*len(sc.Columns) + k)})
		}
		l.RowSets, sets = append(l.RowSets, info), append(sets, m)
	}
	return l, sets
}

// manyPage makes the page of a table with a layout that it does not have.
func manyPage(
	t testing.TB, s *server, q *query, l compaction.Layout, sets []*rowset.Metadata,
) (html, text bytes.Buffer) {
	t.Helper()
	v := &tableView{Name: q.Table.Name(), ID: q.Table.Properties().ID, RowSets: len(sets)}
	must.Do(t, v.addColumns(s, q, sets, &oribi.Stats{Bytes: 1 << 40}, l))
	must.Do(t, v.addLayout(s, q, l))
	d := &document{Title: s.title(&tablePage, q), Crumbs: s.crumbs(&tablePage, q), Tabs: s.tabs(&tablePage, q),
		Refresh: s.refreshes(&tablePage, q), View: v}
	must.Do(t, s.templates["table.html"].ExecuteTemplate(&limited{&html, maxPageBytes}, "layout.html", d))
	must.Do(t, encode(&text, answer{View: v}))
	return html, text
}

func manyQuery(t testing.TB, s *server, table string, pairs ...string) *query {
	t.Helper()
	values := url.Values{"table": {table}}
	for i := 0; i < len(pairs); i += 2 {
		values.Set(pairs[i], pairs[i+1])
	}
	return must.Get(s.parseQuery(httptest.NewRequest(http.MethodGet, "/table?"+values.Encode(), nil), &tablePage))(t)
}

// TestPagesOfManyRowSetsAndColumnsAreSmall makes the page of a table with 10,000 rowsets and 300
// columns: simulated ones, since so many files take minutes to write.
func TestPagesOfManyRowSetsAndColumnsAreSmall(t *testing.T) {
	store := openStore(t)
	for name, width := range map[string]int{"wide": 12, strings.Repeat("\"", 256): 256} {
		table := wideTable(t, store, name, width)
		s := testServer(store)
		for _, overlap := range []bool{false, true} {
			for _, n := range []int{300, 1000, manyRowSets} { // the picture has links up to a thousand
				if width == 256 && n == 1000 && !overlap {
					continue
				}
				l, sets := manyLayout(table.Schema(), n, overlap)
				html, text := manyPage(t, s, manyQuery(t, s, name), l, sets)
				checkText(t, "table", html.String())
				parse(t, html.String())
				if html.Len() > maxPageBytes || text.Len() > maxPageBytes {
					t.Errorf("width %d, %d rowsets: %d bytes of HTML, %d of JSON", width, n, html.Len(), text.Len())
				}
				t.Logf("names of %d bytes, %d rowsets, overlap %v: %d KiB of HTML, %d of JSON", width, n, overlap,
					html.Len()>>10, text.Len()>>10)
			}
		}
		// The pages of real rowsets.
		set := table.RowSets()[0]
		path := "?" + url.Values{"table": {name}, "rowset": {fmt.Sprint(set.ID)}}.Encode()
		for _, page := range []string{"/?", "/table" + path[:strings.Index(path, "rowset")], "/rowset" + path,
			"/rowset" + path + "&columns=updates&column_page=5",
			fmt.Sprintf("/block%s&block=%d&part=header", path,
				set.Redo[0]), fmt.Sprintf("/block%s&block=%d", path, set.Undo[0])} {
			page = strings.Replace(page, "/table?", "/table?table="+url.QueryEscape(name)+"&page=0#", 1)
			page, _, _ = strings.Cut(page, "#")
			r := get(s, page)
			if html := body(t, r); r.StatusCode != http.StatusOK || len(html) > maxPageBytes {
				t.Errorf("%.20s: %s, %d bytes", page, r.Status, len(html))
			}
		}
	}
}

// Every rowset and every column is on one of the pages.
func TestEveryRowSetAndColumnCanBeReached(t *testing.T) {
	store := openStore(t)
	table := wideTable(t, store, "wide", 250)
	s := testServer(store)
	l, sets := manyLayout(table.Schema(), 1234, true)
	rowSets, columns := map[uint64]bool{}, map[string]bool{}
	for page := range 20 {
		q := manyQuery(t, s, "wide", "page", fmt.Sprint(page), "column_page", fmt.Sprint(page), "rowsets", "redos")
		v := &tableView{ID: "x", RowSets: len(sets)}
		must.Do(t, v.addColumns(s, q, sets, &oribi.Stats{}, l))
		must.Do(t, v.addLayout(s, q, l))
		for _, r := range v.List {
			rowSets[r.ID] = true
		}
		for _, c := range v.Columns {
			columns[c.Name] = true
		}
		if (v.ListShown.Next == "") != (page >= 12) || v.ListShown.Total != 1234 || v.ListShown.Last > 1234 {
			t.Errorf("page %d: %+v", page, v.ListShown)
		}
	}
	must.Equal(t, len(rowSets), 1234)
	must.Equal(t, len(columns), manyColumns)
}

// The sums of columns follow the rowsets of a table, and continue where they stopped.
func TestSizesOfColumnsAreSumsOverRowSets(t *testing.T) {
	store := openStore(t)
	fillStore(t, store)
	s := testServer(store)
	table := must.Get(store.Table(hostileNames[0]))(t)
	check := func() {
		t.Helper()
		stats := must.Get(table.Stats(true))(t)
		got := s.columns.of(s, table.Properties().ID, table.RowSets(), s.now())
		for i, c := range table.Schema().Columns {
			must.Equal(t, got.bytes[c.ID], stats.Columns[i].Bytes, c.Name)
			must.Equal(t, got.sets, stats.RowSets, c.Name)
		}
	}
	if got := s.columns.of(s, table.Properties().ID, table.RowSets(), s.now().Add(-1)); got.sets != 0 ||
		got.ofSets != 3 {
		t.Errorf("after the deadline: %d of %d rowsets", got.sets, got.ofSets)
	}
	check()
	must.Do(t, table.Compact(t.Context()))
	check()
	if s.columns.kept == 0 || len(s.columns.tables) != 1 {
		t.Errorf("%d sizes of %d tables", s.columns.kept, len(s.columns.tables))
	}
}

// A page above the limit is an error, not cut.
func TestPagesAboveTheLimitAreRefused(t *testing.T) {
	s := testServer(openStore(t))
	p := page{pattern: "/large", name: "Large", template: "large.html"}
	s.templates["large.html"] = template.Must(
		template.Must(s.templates["problem.html"].Clone()).Parse(`{{define "content"}}{{.}}{{end}}`))
	for _, edit := range []func(*http.Request){func(*http.Request) {}, asJSON} {
		for size, want := range map[int]int{1000: 200, maxPageBytes: 507} {
			p.build = func(context.Context, *server, *query) (any, error) { return strings.Repeat("x", size), nil }
			r := httptest.NewRequest(http.MethodGet, "http://localhost/large", nil)
			edit(r)
			w := httptest.NewRecorder()
			s.serve(t.Context(), w, r, &p)
			must.Equal(t, w.Code, want, size)
		}
	}
}

func BenchmarkTablePageOfManyRowSets(b *testing.B) {
	store := openStore(b)
	table := wideTable(b, store, "wide", 12)
	s := Handler(store).(*server)
	l, sets := manyLayout(table.Schema(), manyRowSets, true)
	for b.Loop() {
		html, _ := manyPage(b, s, manyQuery(b, s, "wide"), l, sets)
		b.ReportMetric(float64(html.Len()), "bytes")
	}
}

func BenchmarkRowsetPageOfManyColumns(b *testing.B) {
	store := openStore(b)
	table := wideTable(b, store, "wide", 12)
	h := Handler(store)
	path := fmt.Sprintf("/rowset?table=wide&rowset=%d", table.RowSets()[0].ID)
	for b.Loop() {
		r := get(h, path)
		b.ReportMetric(float64(r.ContentLength), "bytes")
	}
}
