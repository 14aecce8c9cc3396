package inspect

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/internal/celltext"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/rowset"
)

// crawled are the pages that are visited by their links.
var crawled = []string{"/", "/table", "/rowset", "/block"}

// crawl visits all pages that links lead to from the first one, and calls use with each.
func crawl(t *testing.T, s *server, most int, use func(path string)) (visited map[string]int) {
	t.Helper()
	visited = map[string]int{} // by pattern
	seen := map[string]bool{}
	for queue := []string{s.o.prefix + "/"}; len(queue) > 0; {
		path := queue[0]
		queue = queue[1:]
		pattern, _, _ := strings.Cut(strings.TrimPrefix(path, s.o.prefix), "?")
		if visited[pattern]++; visited[pattern] > most {
			continue
		}
		use(path)
		r := get(s, path)
		if r.StatusCode != http.StatusOK {
			t.Errorf("%s: %s: %.300s", path, r.Status, body(t, r))
			continue
		}
		for _, link := range parse(t, body(t, r)).links {
			u, err := url.Parse(link)
			if err != nil || u.Host != "" || !strings.HasPrefix(u.Path, s.o.prefix+"/") && u.Path != "" {
				t.Errorf("%s links to %q", path, link)
				continue
			}
			next := u.Path + "?" + u.RawQuery
			if u.RawQuery == "" {
				next = u.Path
			}
			if u.Path != "" && !strings.Contains(u.Path, "/static/") && !seen[next] &&
				slices.Contains(crawled, strings.TrimPrefix(u.Path, s.o.prefix)) {
				seen[next] = true
				queue = append(queue, next)
			}
		}
	}
	return visited
}

// words are the tokens that JSON has outside of strings: numbers, true, false, and null.
var words = regexp.MustCompile(`-?[0-9][0-9.eE+-]*`)

// TestEveryValueOfThePagesIsInTheirHTML visits every kind of page and compares its JSON with its
// HTML: each string and number must be in both. Booleans are words or signs in HTML and are left
// out.
func TestEveryValueOfThePagesIsInTheirHTML(t *testing.T) {
	store := openStore(t)
	fillStore(t, store)
	s := testServer(store, Prefix("/in/side"), Name(hostile))
	for range 4 { // samples over time
		must.Do(t, s.samples.take())
	}
	visited := crawl(t, s, 40, func(path string) {
		html := body(t, get(s, path))
		p := parse(t, html)
		has := map[string]bool{}
		for _, v := range p.attributes {
			has[v] = true
		}
		for _, w := range words.FindAllString(p.text+" "+strings.Join(p.attributes, " "), -1) {
			has[w], has[strings.Trim(w, ".-+eE")] = true, true
		}
		all := flat(p.text + " " + strings.Join(p.attributes, " "))
		r := get(s, path, asJSON)
		text := body(t, r)
		must.Equal(t, r.Header.Get("Content-Type"), "application/json", path)
		checkText(t, path, html)
		scalars(decode(t, text), "", func(place string, v any) {
			switch v := v.(type) {
			case nil:
				t.Errorf("%s: %s is null", path, place)
			case json.Number:
				must.Equal(t, has[v.String()], true, path, place, v)
			case string:
				must.Contain(t, all, flat(celltext.Printable(v)), path, place, v)
			}
		})
	})
	for _, pattern := range crawled {
		if visited[pattern] < 1 {
			t.Errorf("no page %s was visited", pattern)
		}
	}
}

// flat returns text with single blanks.
func flat(text string) string { return strings.Join(strings.Fields(text), " ") }

// checkText fails if a page contains what a browser would not show as it is, or a path of the
// machine.
func checkText(t *testing.T, path, page string) {
	t.Helper()
	if !utf8.ValidString(page) || len(page) > maxPageBytes {
		t.Errorf("%s: not UTF-8, or too large: %d bytes", path, len(page))
	}
	if i := strings.IndexFunc(page, func(r rune) bool {
		return r < ' ' && r != '\n' && r != '\t' || r == 0x202e || r == 0x7f
	}); i >= 0 {
		t.Errorf("%s: control character in %q", path, page[max(0, i-40):i+10])
	}
	for _, bad := range []string{"<script>", "<img", "onerror=alert(1)>", "/secret-path",
		"ZgotmplZ", "<no value>", "%!"} {
		if strings.Contains(page, bad) {
			i := strings.Index(page, bad)
			t.Errorf("%s: %q in %q", path, bad, page[max(0, i-60):min(len(page), i+60)])
		}
	}
}

func TestTablesWithAnyNameHavePages(t *testing.T) {
	store := openStore(t)
	fillStore(t, store)
	s := testServer(store)
	for _, name := range hostileNames {
		for _, p := range pages {
			if !p.table || p.pattern != "/table" {
				continue
			}
			r := get(s, p.pattern+"?"+url.Values{"table": {name}}.Encode(), asJSON)
			v, _ := decode(t, body(t, r)).(map[string]any)
			if view, _ := v["view"].(map[string]any); r.StatusCode != http.StatusOK || view["name"] != name {
				t.Errorf("%s of %q: %s, %v", p.pattern, name, r.Status, v["error"])
			}
		}
	}
}

func TestProblemsHavePages(t *testing.T) {
	store := openStore(t)
	fillStore(t, store)
	s := testServer(store)
	name := url.QueryEscape(hostileNames[0])
	for path, want := range map[string]struct {
		status int
		text   string
	}{
		"/nothing":                         {404, "no such page"},
		"/static/nothing.css":              {404, "no such file"},
		"/static/..%2f..%2fpage.go":        {404, "no such"},
		"/static/":                         {404, "no such file"},
		"/table":                           {400, "\"table\" is missing"},
		"/table?table=nothing":             {404, "nothing"},
		"/table?table=caf%C3%A":            {400, "malformed"},
		"/table?table=%ff":                 {400, "not valid UTF-8"},
		"/table?table=a&table=b":           {400, "given twice"},
		"/?what=1":                         {400, "no parameter \"what\""},
		"/?page=-1":                        {400, "page: want an integer"},
		"/?page=1e9":                       {400, "page: want an integer"},
		"/?refresh=100000":                 {400, "refresh: want an integer from 0 to 3600"},
		"/?at=yesterday":                   {400, "at: "},
		"/?at=1700000000":                  {400, "Unix time"},
		"/table?table=.&policy=best":       {400, "policy: want one of"},
		"/table?table=.&budget=much":       {400, "budget: "},
		"/table?table=.&columns=age":       {400, "columns: want size, schema, name"},
		"/table?table=.&rowsets=age":       {400, "rowsets: want key"},
		"/rowset?table=.":                  {400, "\"rowset\" is missing"},
		"/rowset?table=.&rowset=x":         {400, "rowset: want an integer"},
		"/rowset?table=.&rowset=999":       {410, "no rowset 999"},
		"/block?table=.&rowset=999":        {410, "no rowset 999"},
		"/rowset?rowset=1&table=" + name:   {0, ""},
		"/?page=1000000":                   {200, ""}, // the last page
		"/" + strings.Repeat("x", 1<<16):   {414, "too long"},
		"/?at=" + strings.Repeat("9", 1e4): {400, "at: "},
		"/?at=" + strings.Repeat("9", 4e4): {400, "longer than 32768 bytes"},
	} {
		r := get(s, path)
		text := parse(t, body(t, r)).text
		if want.status == 0 {
			continue
		}
		must.Equal(t, r.StatusCode, want.status, path, r.Status)
		must.Contain(t, flat(text), want.text, path, r.Status)
		if strings.HasPrefix(path, "/table?table=.&") && !strings.Contains(text, "Timeline") {
			t.Errorf("%.60s: the problem has no links to the pages of the table", path)
		}
		r = get(s, path, asJSON)
		v, _ := decode(t, body(t, r)).(map[string]any)
		if message, _ := v["error"].(string); r.StatusCode != want.status || !strings.Contains(message, want.text) ||
			want.status != 200 && message == "" {
			t.Errorf("%.60s as JSON: %s %v", path, r.Status, v)
		}
	}
}

// The page of a rowset that a compaction has replaced says so.
func TestBlocksThatAreGone(t *testing.T) {
	store := openStore(t)
	fillStore(t, store)
	s := testServer(store)
	table := must.Get(store.Table("café"))(t)
	m := table.RowSets()[0]
	path := fmt.Sprintf("/block?table=caf%%C3%%A9&rowset=%d&block=%d", m.ID, m.Columns[0].Block)
	for part, want := range map[string]int{"": 200, "&part=header": 200, "&part=footer": 200, "&part=7": 404,
		"&part=x": 400, "&part=header&line=99": 200} {
		if r := get(s, path+part); r.StatusCode != want {
			t.Errorf("%s: %s, want %d", part, r.Status, want)
		}
	}
	commit(t, store, func(b *oribi.Batch) { b.Upsert(table, oribi.Row{"id": int64(1), "v": "x"}) })
	must.Do(t, table.Flush(t.Context()))
	must.Do(t, table.Compact(t.Context()))
	if slices.ContainsFunc(table.RowSets(), func(n *rowset.Metadata) bool { return n.ID == m.ID }) {
		t.Fatal("the rowset was not compacted")
	}
	if r := get(s, path); r.StatusCode != http.StatusGone {
		t.Errorf("%s", r.Status)
	}
}
