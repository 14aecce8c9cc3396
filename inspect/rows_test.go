package inspect

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/internal/celltext"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/internal/seedtest"
	"github.com/oribi-db/oribi/mvcc"
	"github.com/oribi-db/oribi/schema"
	"github.com/oribi-db/oribi/vfs"
)

// modelRow is a row of a versioned store: its columns n and s in JSON, "null" for NULL.
type modelRow [2]string

// versioned is a store with a table of many versions, and a model of all of them.
type versioned struct {
	store  *oribi.Store
	table  *oribi.Table
	stamps []mvcc.Timestamp         // of the write batches
	states []map[[2]string]modelRow // after each of them, by the key columns in JSON
}

// newVersioned makes a table with the key (a, b) and write batches on few keys, with flushes and
// compactions in between.
func newVersioned(t testing.TB, batches int) *versioned {
	t.Helper()
	return newVersionedWith(t, batches, nil)
}

// newVersionedWith is newVersioned with a listener.
func newVersionedWith(t testing.TB, batches int, listener func(oribi.Event)) *versioned {
	t.Helper()
	r := rand.New(rand.NewPCG(seedtest.Seed(t), 7))
	v := &versioned{store: openStoreWith(t, listener)}
	columns := must.Get(schema.New([]schema.Column{{Name: "a", Type: schema.String}, {Name: "b", Type: schema.Int32},
		{Name: "n", Type: schema.Int64, Nullable: true}, {Name: "s", Type: schema.String, Nullable: true}}, 2))(t)
	v.table = must.Get(v.store.CreateTable("t", columns))(t)
	state := map[[2]string]modelRow{}
	for i := range batches {
		next := map[[2]string]modelRow{}
		for key, row := range state {
			next[key] = row
		}
		b := v.store.NewBatch()
		for range 1 + r.IntN(8) {
			a, n := string(rune('a'+r.IntN(4))), r.IntN(6)
			key := [2]string{strconv.Quote(a), strconv.Itoa(n)}
			if r.IntN(4) == 0 {
				b.DeleteIgnore(v.table, oribi.Row{"a": a, "b": n})
				delete(next, key)
				continue
			}
			row := oribi.Row{"a": a, "b": n, "n": int64(r.IntN(100)), "s": nil}
			want := modelRow{fmt.Sprint(row["n"]), "null"}
			if r.IntN(3) > 0 {
				row["s"] = fmt.Sprintf("text %d", r.IntN(3))
				want[1] = strconv.Quote(row["s"].(string))
			}
			b.Upsert(v.table, row)
			next[key] = want
		}
		ts := must.Get(b.Commit(t.Context()))(t)
		v.stamps, v.states, state = append(v.stamps, ts), append(v.states, next), next
		switch i % 5 {
		case 1, 2:
			must.Do(t, v.table.Flush(t.Context()))
		case 3:
			must.Get(v.table.FlushDeltas(t.Context()))(t)
		}
		if i == batches/2 {
			must.Do(t, v.table.Compact(t.Context()))
		}
	}
	return v
}

// openStoreWith is openStore with a listener.
func openStoreWith(t testing.TB, listener func(oribi.Event)) *oribi.Store {
	t.Helper()
	store := must.Get(oribi.Open("/secret-path",
		&oribi.Options{FS: vfs.NewMem(), Clock: mvcc.NewLogicalClock(7355733817208557568), Manual: true,
			History: oribi.HistoryForever, Listener: listener}))(t)
	t.Cleanup(func() { store.Close() })
	return store
}

// viewInto requests a page as JSON and decodes its view.
func viewInto(t testing.TB, s *server, path string, to any) {
	t.Helper()
	r := get(s, path, asJSON)
	text := body(t, r)
	must.Equal(t, r.StatusCode, http.StatusOK, path, r.Status, text)
	answer := struct{ View json.RawMessage }{}
	must.Do(t, json.Unmarshal([]byte(text), &answer))
	must.Do(t, json.Unmarshal(answer.View, to))
}

// shownRow is a row of the page in JSON.
type shownRow struct {
	Key    json.RawMessage
	Change string
	Match  string
	Cells  []json.RawMessage
	Before map[string]json.RawMessage
}

type shownRows struct {
	Rows                       []shownRow
	Inserted, Updated, Deleted int
	Next                       json.RawMessage
	Incomplete                 bool
	Times                      struct {
		Changes        []struct{ TS uint64 }
		Earlier, Later *struct{ TS uint64 }
		Complete       bool
	}
}

// allRows requests page after page.
func allRows(t testing.TB, s *server, values url.Values) (rows []shownRow, changes int) {
	t.Helper()
	for pages := 0; ; pages++ {
		var v shownRows
		viewInto(t, s, "/rows?"+values.Encode(), &v)
		rows = append(rows, v.Rows...)
		changes += v.Inserted + v.Updated + v.Deleted
		if v.Next == nil {
			return rows, changes
		}
		if len(v.Rows) == 0 && !v.Incomplete || pages > 100 {
			t.Fatalf("%v: %d pages, the last with %d rows and next %s", values, pages, len(v.Rows), v.Next)
		}
		values.Set("from", string(v.Next))
	}
}

// TestRowsOfEveryPairOfStates compares the pages of rows, for each pair of states, with and without
// an expression, with a model.
func TestRowsOfEveryPairOfStates(t *testing.T) {
	v := newVersioned(t, 9)
	s := testServer(v.store)
	for at := range v.states {
		for since := -1; since < len(v.states); since++ {
			for _, where := range []string{"", "n > 50"} {
				values := url.Values{"table": {"t"}, "at": {fmt.Sprint(uint64(v.stamps[at]))},
					"limit": {"5"}, "where": {where}}
				var other map[[2]string]modelRow
				if since >= 0 {
					values.Set("since", fmt.Sprint(uint64(v.stamps[since])))
					other = v.states[since]
				}
				want := modelRows(v.states[at], other, since >= 0, where != "")
				got, changes := allRows(t, s, values)
				marked := 0
				var lines []string
				for i := range got {
					if got[i].Change != "" {
						marked++
					}
					lines = append(lines, got[i].line(t))
				}
				must.Equal(t, lines, want, at, since, where)
				must.Equal(t, changes, marked, at, since, where)
			}
		}
	}
}

// line returns a row as a line of the model.
func (r *shownRow) line(t testing.TB) string {
	t.Helper()
	var key struct {
		A string
		B int
	}
	must.Do(t, json.Unmarshal(r.Key, &key))
	must.Equal(t, string(r.Cells[0]), strconv.Quote(key.A), r.Key, r.Cells)
	must.Equal(t, string(r.Cells[1]), strconv.Itoa(key.B), r.Key, r.Cells)
	return fmt.Sprintf("%s %s %s: %s %s before %s %s", r.Cells[0], r.Cells[1], r.Change+r.Match, r.Cells[2],
		r.Cells[3], r.Before["n"], r.Before["s"])
}

// modelRows returns the lines of the rows that match in one of two states.
func modelRows(now, other map[[2]string]modelRow, compared, filtered bool) (lines []string) {
	matches := func(state map[[2]string]modelRow, key [2]string) bool {
		row, ok := state[key]
		n, _ := strconv.Atoi(row[0])
		return ok && (!filtered || n > 50)
	}
	keys := map[[2]string]bool{}
	for _, state := range []map[[2]string]modelRow{now, other} {
		for key := range state {
			keys[key] = keys[key] || matches(now, key) || matches(other, key)
		}
	}
	for key, shown := range keys {
		if !shown {
			continue
		}
		row, here := now[key]
		was, there := other[key]
		change, before := "", modelRow{}
		switch {
		case !compared:
		case !there:
			change = "insert"
		case !here:
			change, row = "delete", was
		default:
			for i := range row {
				if row[i] != was[i] {
					change, before[i] = "update", was[i]
				}
			}
			switch {
			case !matches(now, key):
				change = "updateleft"
			case !matches(other, key):
				change = "updateentered"
			}
		}
		lines = append(lines, fmt.Sprintf("%s %s %s: %s %s before %s %s", key[0], key[1], change, row[0],
			row[1], before[0], before[1]))
	}
	slices.Sort(lines)
	return lines
}

// TestTimesOfRows compares the changes that a page of rows names with the model.
func TestTimesOfRows(t *testing.T) {
	v := newVersioned(t, 15)
	s := testServer(v.store)
	for at := range v.states {
		var got shownRows
		viewInto(t, s, "/rows?table=t&limit=200&at="+fmt.Sprint(uint64(v.stamps[at])), &got)
		var want []uint64
		for i := len(v.states) - 1; i >= 0; i-- {
			before := map[[2]string]modelRow{}
			if i > 0 {
				before = v.states[i-1]
			}
			for key := range v.states[at] {
				now, ok := v.states[i][key]
				was, had := before[key]
				if ok != had || now != was {
					want = append(want, uint64(v.stamps[i]))
					break
				}
			}
		}
		var times []uint64
		var earlier, later uint64
		for _, c := range got.Times.Changes {
			times = append(times, c.TS)
			if c.TS > uint64(v.stamps[at]) {
				later = c.TS
			} else if earlier == 0 && c.TS < uint64(v.stamps[at]) {
				earlier = c.TS
			}
		}
		must.Equal(t, times, want, at)
		must.Equal(t, got.Times.Complete, true, at)
		if e, l := got.Times.Earlier, got.Times.Later; (e == nil) != (earlier == 0) || (l == nil) != (later == 0) ||
			e != nil && e.TS != earlier || l != nil && l.TS != later {
			t.Errorf("at %d: earlier %v, later %v, want %d, %d", at, e, l, earlier, later)
		}
	}
}

// TestSearchesForRowsArePaused reads a table of many rowsets in which no row matches: with no time
// left, each page ends after one rowset and continues on the next page.
func TestSearchesForRowsArePaused(t *testing.T) {
	store := openStore(t)
	columns, err := schema.New([]schema.Column{{Name: "id", Type: schema.Int64}, {Name: "v", Type: schema.Int64}}, 1)
	must.Do(t, err)
	table := must.Get(store.CreateTable("t", columns))(t)
	for set := range 5 {
		commit(t, store, func(b *oribi.Batch) {
			for i := range 10 {
				b.Insert(table, oribi.Row{"id": int64(10*set + i), "v": int64(set)})
			}
		})
		must.Do(t, table.Flush(t.Context()))
	}
	g := newGrid(table, table.Schema().Columns, time.Time{})
	must.Do(t, g.filter("v = 3"))
	var rows []line
	var ends int
	for from := []byte(nil); ; ends++ {
		lines, end := must.Get2(g.read(t.Context(), oribi.Latest(), from, 50))(t)
		rows = append(rows, lines...)
		if from = end; end == nil {
			break
		}
	}
	must.Equal(t, len(rows), 10)
	must.Equal(t, ends, 4)
}

// TestPagesOfLargeRowsAreSmall shows cells that take many bytes as HTML or JSON.
func TestPagesOfLargeRowsAreSmall(t *testing.T) {
	store := openStore(t)
	list := []schema.Column{{Name: "id", Type: schema.Int64}}
	for i := range 299 {
		list = append(list, schema.Column{Name: fmt.Sprintf("c%d", i), Type: schema.String, Nullable: true})
	}
	columns := must.Get(schema.New(list, 1))(t)
	table := must.Get(store.CreateTable("wide", columns))(t)
	for round := range 2 {
		for from := 0; from < 60; from += 20 {
			commit(t, store, func(b *oribi.Batch) {
				for id := from; id < from+20; id++ {
					row := oribi.Row{"id": int64(id)}
					for _, c := range list[1:] {
						row[c.Name] = strings.Repeat("\"'<>&\x01\x02", 20) + fmt.Sprint(round)
					}
					b.Upsert(table, row)
				}
			})
		}
	}
	must.Do(t, table.Flush(t.Context()))
	large := must.Get(schema.New([]schema.Column{{Name: "id", Type: schema.Int64}, {Name: "text", Type: schema.String},
		{Name: "bin", Type: schema.Binary}}, 1))(t)
	big := must.Get(store.CreateTable("big", large))(t)
	text := strings.Repeat("\x01é\"<", 12_000)
	for range 3 {
		commit(t, store, func(b *oribi.Batch) {
			b.Upsert(big, oribi.Row{"id": int64(1), "text": text, "bin": []byte(text)})
		})
	}
	s := testServer(store)
	for _, path := range []string{"/rows?table=wide&limit=200&since=-1h", "/rows?table=wide&limit=200&column=260",
		"/row?table=wide&key=7", "/rows?table=big", "/row?table=big&key=1",
		"/row?table=big&key=1&column=text", "/row?table=big&key=1&column=bin"} {
		for _, edit := range []func(*http.Request){func(*http.Request) {}, asJSON} {
			r := get(s, path, edit)
			page := body(t, r)
			if r.StatusCode != http.StatusOK || len(page) > maxPageBytes {
				t.Errorf("%s: %s, %d bytes: %.200s", path, r.Status, len(page), page)
			}
		}
		checkText(t, path, body(t, get(s, path)))
	}
	// The parts of a cell are the whole cell.
	var whole strings.Builder
	for offset := 0; ; {
		var v struct {
			Part struct {
				To, Bytes int
				Text      string
			}
		}
		viewInto(t, s, fmt.Sprintf("/row?table=big&key=1&column=text&offset=%d", offset), &v)
		whole.WriteString(v.Part.Text)
		if offset = v.Part.To; offset == v.Part.Bytes {
			break
		}
	}
	must.Equal(t, whole.String(), celltext.Printable(text))
}

func TestRowsRefuseBadParameters(t *testing.T) {
	v := newVersioned(t, 3)
	s := testServer(v.store)
	for _, query := range []string{"at=x", "since=yesterday", "where=n+%3E", "where=nosuch+%3D+1", "from=%7B",
		"from=%7B%22b%22%3A1%7D", "limit=0", "limit=201", "limit=x", "column=-1", "column=2", "x=1"} {
		r := get(s, "/rows?table=t&"+query)
		if text := body(t, r); r.StatusCode != http.StatusBadRequest {
			t.Errorf("%s: %s: %.100s", query, r.Status, text)
		} else {
			checkText(t, query, text)
		}
	}
	for _, query := range []string{"key=%7B", "key=1", "key=%7B%22a%22%3A%22x%22%7D",
		"key=%7B%22a%22%3A%22x%22%2C%22b%22%3A1%2C%22n%22%3A1%7D", "before=x"} {
		if strings.HasPrefix(query, "before") {
			query += "&key=%7B%22a%22%3A%22x%22%2C%22b%22%3A1%7D"
		}
		if r := get(s, "/row?table=t&"+query); r.StatusCode != http.StatusBadRequest {
			t.Errorf("%s: %s", query, r.Status)
		}
	}
}

// The counts of reads on a page equal the counts of the scan for its rows.
func TestRowsSayWhatTheScanRead(t *testing.T) {
	v := newVersioned(t, 20)
	s := testServer(v.store)
	for _, where := range []string{"", "n > 90"} {
		var got struct{ Read map[string]int64 }
		viewInto(t, s, "/rows?table=t&limit=3&where="+url.QueryEscape(where), &got)
		options := []oribi.ScanOption{oribi.Limit(4)}
		if where != "" {
			p := must.Get(oribi.ParsePredicate(v.table.Schema().Columns, where))(t)
			options = append(options, oribi.Where(p))
		}
		e := must.Get(v.table.Scan(t.Context(), options...).Explain())(t)
		cblocks := int64(0)
		for _, c := range e.Columns {
			cblocks += c.Blocks
		}
		want := map[string]int64{"rowsets": int64(e.RowSets.Disk), "rows": e.Rows.Disk, "rows_in_memory": e.Rows.Memory}
		if where == "" {
			want["ranges"] = 1
			want["rowsets_read"], want["rows_read"], want["cblocks"] = int64(e.RowSets.Read),
				e.Rows.Disk-e.Rows.Outside-e.Rows.NotReached, cblocks
		} else if got.Read["rows_excluded"] == 0 {
			t.Errorf("where %s: no row is excluded: %v", where, got.Read)
		}
		for name, n := range want {
			must.Equal(t, got.Read[name], n, where, name)
		}
		if sum := got.Read["cblocks_read"] + got.Read["cblocks_zone_map"] +
			got.Read["cblocks_skipped"]; sum != got.Read["cblocks"] || sum == 0 {
			t.Errorf("where %q: cblocks do not add up: %v", where, got.Read)
		}
	}
}

// States that are older than the history, or soon will be, are not offered.
func TestStatesAreOfferedWithinTheHistory(t *testing.T) {
	v := newVersioned(t, 3)
	s := testServer(v.store)
	for history, want := range map[time.Duration]string{oribi.HistoryForever: "now, 1 hour ago, yesterday, 7 days ago",
		7 * 24 * time.Hour: "now, 1 hour ago, yesterday", time.Hour: "now"} {
		must.Do(t, v.table.Alter(t.Context(), oribi.SetHistory(history)))
		page := parse(t, body(t, get(s, "/rows?table=t"))).text
		_, rest, _ := strings.Cut(flat(page), "As of: ")
		rest, _, _ = strings.Cut(rest, " Mark what")
		must.Equal(t, strings.ReplaceAll(want, ", ", " "), rest, history)
	}
}
