package inspect

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/schema"
)

// shownVersions is the page of a row in JSON.
type shownVersions struct {
	Exists bool
	Fields []struct {
		Column string
		Cell   json.RawMessage
	}
	Versions []struct {
		Time    *struct{ TS uint64 }
		Kind    string
		Current bool
		Changes []struct {
			Column        string
			Before, After json.RawMessage
		}
	}
	Since *struct {
		Deleted bool
		Changes []struct {
			Column        string
			Before, After json.RawMessage
		}
	} `json:"changed_since"`
	More bool `json:"more_versions"`
	Read struct {
		Found                                       string
		RowSets, Outside, Searched, Excluded, Reads int
		NotSearched                                 int `json:"not_searched"`
		Steps                                       []struct{ Has, Memory bool }
		Verdict                                     []string
		Complete                                    bool
	}
}

// TestVersionsOfRows compares the page of each row, in each state, with the model.
func TestVersionsOfRows(t *testing.T) {
	v := newVersioned(t, 14)
	s := testServer(v.store)
	keys := map[[2]string]bool{{`"zz"`, "1"}: true}
	for _, state := range v.states {
		for key := range state {
			keys[key] = true
		}
	}
	for key := range keys {
		for at := range v.states {
			values := url.Values{"table": {"t"}, "key": {fmt.Sprintf(`{"a":%s,"b":%s}`, key[0], key[1])},
				"at": {fmt.Sprint(uint64(v.stamps[at]))}}
			var got shownVersions
			viewInto(t, s, "/row?"+values.Encode(), &got)
			row, exists := v.states[at][key]
			if got.Exists != exists || exists &&
				(string(got.Fields[2].Cell) != row[0] || string(got.Fields[3].Cell) != row[1]) {
				t.Fatalf("%v at %d: %t %v, want %t %v", key, at, got.Exists, got.Fields, exists, row)
			}
			if found := got.Read.Found != "nowhere"; found != exists ||
				!got.Read.Complete || len(got.Read.Verdict) == 0 {
				t.Errorf("%v at %d: a read finds it %s, want %t", key, at, got.Read.Found, exists)
			}
			if r := got.Read; r.RowSets != r.Outside+r.Searched+r.NotSearched {
				t.Errorf("%v at %d: %+v", key, at, r)
			}
			has := 0
			for i, step := range got.Read.Steps {
				if step.Has {
					if has++; i != len(got.Read.Steps)-1 {
						t.Errorf("%v at %d: steps after the row was found", key, at)
					}
				}
			}
			must.Equal(t, has, map[bool]int{true: 1}[exists], key, at)
			must.Equal(t, got.since(), v.since(key, at), key, at)
			if lines, want := got.lines(), v.versions(key, at); !slices.Equal(lines, want) {
				t.Fatalf("%v at %d:\ngot  %s\nwant %s", key, at, strings.Join(lines, "\n     "),
					strings.Join(want, "\n     "))
			}
		}
	}
}

// since returns what has changed as text of the model.
func (v *shownVersions) since() (text string) {
	if v.Since == nil {
		return "none"
	}
	for _, c := range v.Since.Changes {
		text += fmt.Sprintf(" %s:%s>%s", c.Column, c.Before, c.After)
	}
	return fmt.Sprint(v.Since.Deleted, text)
}

// since returns what the page of a row for a state shows of the time since then.
func (v *versioned) since(key [2]string, at int) string {
	row, exists := v.states[at][key]
	now, still := v.states[len(v.states)-1][key]
	switch {
	case !exists || at == len(v.states)-1:
		return "none"
	case !still:
		return "true"
	}
	text := "false"
	for c, name := range []string{"n", "s"} {
		if row[c] != now[c] {
			text += fmt.Sprintf(" %s:%s>%s", name, row[c], now[c])
		}
	}
	return text
}

// lines returns the versions as lines of the model.
func (v *shownVersions) lines() (lines []string) {
	for _, version := range v.Versions {
		line := fmt.Sprintf("%d %s %t", version.Time.TS, version.Kind, version.Current)
		for _, c := range version.Changes {
			line += fmt.Sprintf(" %s:%s>%s", c.Column, c.Before, c.After)
		}
		lines = append(lines, line)
	}
	return lines
}

// versions returns the versions of a row as the page for a state shows them.
func (v *versioned) versions(key [2]string, at int) (lines []string) {
	current := false
	for i := len(v.states) - 1; i >= 0; i-- {
		row, here := v.states[i][key]
		was, there := modelRow{}, false
		if i > 0 {
			was, there = v.states[i-1][key]
		}
		if here == there && row == was {
			continue
		}
		kind, changes := "update", ""
		switch {
		case !there:
			kind = "insert"
		case !here:
			kind = "delete"
		}
		for c, name := range []string{"n", "s"} {
			if here && there && row[c] != was[c] {
				changes += fmt.Sprintf(" %s:%s>%s", name, was[c], row[c])
			} else if here && !there {
				changes += fmt.Sprintf(" %s:>%s", name, row[c])
			}
		}
		now := !current && i <= at
		current = current || now
		lines = append(lines, fmt.Sprintf("%d %s %t%s", uint64(v.stamps[i]), kind, now, changes))
	}
	return lines
}

// TestManyVersionsAreOnSeveralPages follows the links to older versions.
func TestManyVersionsAreOnSeveralPages(t *testing.T) {
	store := openStore(t)
	columns, err := schema.New([]schema.Column{{Name: "id", Type: schema.String}, {Name: "v", Type: schema.Int64}}, 1)
	must.Do(t, err)
	table := must.Get(store.CreateTable("t", columns))(t)
	const n = 2*versionsMost + 7
	for i := range n {
		commit(t, store, func(b *oribi.Batch) { b.Upsert(table, oribi.Row{"id": "x", "v": int64(i)}) })
	}
	s := testServer(store)
	next := n - 1
	for path := "/row?table=t&key=x"; path != ""; {
		var v shownVersions
		viewInto(t, s, path, &v)
		for _, version := range v.Versions {
			must.Equal(t, string(version.Changes[0].After), strconv.Itoa(next), next)
			next--
		}
		links := parse(t, body(t, get(s, path))).links
		if path = ""; v.More {
			for _, link := range links { // the last one
				if strings.Contains(link, "before=") {
					path = link
				}
			}
		}
	}
	must.Equal(t, next, -1, next+1)
}

// TestPagesOfRowsShowHostileCells visits the pages of rows that a link leads to.
func TestPagesOfRowsShowHostileCells(t *testing.T) {
	store := openStore(t)
	fillStore(t, store)
	s := testServer(store, Prefix("/in"))
	visited, queue := map[string]bool{}, []string{}
	for _, name := range hostileNames {
		queue = append(queue, "/in/rows?"+url.Values{"table": {name}}.Encode(),
			"/in/rows?"+url.Values{"table": {name}, "since": {"1970-01-01"}}.Encode())
	}
	kinds := map[string]int{}
	for len(queue) > 0 && len(visited) < 300 {
		path := queue[0]
		queue = queue[1:]
		if visited[path] {
			continue
		}
		visited[path] = true
		r := get(s, path)
		page := body(t, r)
		if r.StatusCode != http.StatusOK {
			t.Errorf("%s: %s: %.300s", path, r.Status, page)
			continue
		}
		checkText(t, path, page)
		if j := get(s, path, asJSON); j.StatusCode != http.StatusOK {
			t.Errorf("%s as JSON: %s", path, j.Status)
		} else {
			decode(t, body(t, j))
		}
		for _, link := range parse(t, page).links {
			name, _, _ := strings.Cut(strings.TrimPrefix(link, "/in/"), "?")
			if kinds[name]++; (name == "rows" || name == "row") && kinds[name] < 4000 {
				queue = append(queue, link)
			}
		}
	}
	if len(visited) < 100 || kinds["row"] == 0 {
		t.Errorf("visited %d pages, %v", len(visited), kinds)
	}
}

// TestRowPageWithoutAKeyAsksForOne requests the page that the tab leads to.
func TestRowPageWithoutAKeyAsksForOne(t *testing.T) {
	v := newVersioned(t, 2)
	s := testServer(v.store)
	r := get(s, "/row?table=t")
	if text := body(t, r); r.StatusCode != http.StatusOK ||
		!strings.Contains(text, `{&#34;a&#34;:&#34;…&#34;,&#34;b&#34;:1}`) {
		t.Errorf("%s: %s", r.Status, text)
	}
}

// A key of several columns may be given as pages show it.
func TestKeysInShortForm(t *testing.T) {
	store := openStore(t)
	columns := must.Get(schema.New([]schema.Column{{Name: "n", Type: schema.Int64}, {Name: "day", Type: schema.Date},
		{Name: "s", Type: schema.String}, {Name: "v", Type: schema.Int32}}, 3))(t)
	table := must.Get(store.CreateTable("t", columns))(t)
	commit(t, store, func(b *oribi.Batch) {
		b.Insert(table, oribi.Row{"n": int64(-7), "day": time.Date(2026, 11, 28, 0, 0, 0, 0, time.UTC),
			"s": `a, "b"`, "v": int32(5)})
	})
	s := testServer(store)
	for key, status := range map[string]int{`{"n":-7,"day":"2026-11-28","s":"a, \"b\""}`: 200,
		`-7, 2026-11-28, a, "b"`: 200, ` -7,"2026-11-28",a, "b" `: 200,
		`-7, 2026-11-28`: 400, `x, 2026-11-28, a`: 400, `-7, today, a`: 400, `-7,,a`: 400} {
		path := "/row?table=t&key=" + url.QueryEscape(key)
		r := get(s, path, asJSON)
		if r.StatusCode != status {
			t.Errorf("%s: %s, want %d", key, r.Status, status)
		} else if status == 200 {
			var got struct{ Exists bool }
			viewInto(t, s, path, &got)
			if !got.Exists {
				t.Errorf("%s: there is no such row", key)
			}
		}
	}
}
