package inspect

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/schema"
)

// rowsOf returns the count of live rows that the page of a table shows.
func rowsOf(t *testing.T, s *server, table string) string {
	t.Helper()
	r := get(s, "/table?table="+table, asJSON)
	if r.StatusCode != http.StatusOK {
		t.Fatal(r.Status, body(t, r))
	}
	v := decode(t, body(t, r)).(map[string]any)["view"].(map[string]any)
	return v["rows"].(json.Number).String()
}

// The pages of a follower show what its writer has committed before the request.
func TestPagesFollowTheWriter(t *testing.T) {
	dir := t.TempDir() + "/store"
	writer := must.Get(oribi.Open(dir, &oribi.Options{Manual: true}))(t)
	defer writer.Close()
	sc := must.Get(schema.New([]schema.Column{{Name: "k", Type: schema.Int64}}, 1))(t)
	table := must.Get(writer.CreateTable("t", sc))(t)
	follower := must.Get(oribi.Open(dir, &oribi.Options{Follow: true}))(t)
	defer follower.Close()
	s := Handler(follower).(*server)
	for i, want := range []string{"1", "2", "3", "4"} {
		commit(t, writer, func(b *oribi.Batch) { b.Insert(table, oribi.Row{"k": int64(i)}) })
		if i%2 == 1 {
			must.Do(t, table.Flush(t.Context()))
		}
		s.refreshed.at = s.refreshed.at.Add(-refreshEvery) // the last refresh was long ago
		must.Equal(t, rowsOf(t, s, "t"), want, i)
	}
	if h := s.head(t.Context(), "x"); h.Mode != "follower" || h.Warning != nil {
		t.Errorf("%+v", h)
	}
}

// Pages are made while rows are written, flushed, and compacted. A rowset or block may be replaced
// while its page is made: then the page says so.
func TestPagesWithConcurrentWriters(t *testing.T) {
	store := openStore(t)
	fillStore(t, store)
	s := Handler(store).(*server)
	ctx, cancel := context.WithCancel(t.Context())
	var wait sync.WaitGroup
	table := must.Get(store.Table("."))(t)
	wait.Go(func() {
		defer cancel()
		for i := range 6 {
			b := store.NewBatch()
			for k := range 30 {
				b.Upsert(table, oribi.Row{"id": int64(k * (i%3 + 1)), "v": "x"})
			}
			if _, err := b.Commit(t.Context()); err != nil {
				t.Error(err)
			}
			for _, step := range []func(context.Context) error{table.Flush, table.Compact} {
				if err := step(t.Context()); err != nil {
					t.Error(err)
				}
			}
		}
	})
	for range 2 {
		wait.Go(func() {
			for ctx.Err() == nil {
				for _, m := range table.RowSets() {
					id := "&rowset=" + fmt.Sprint(m.ID)
					for _, path := range []string{"/", "/table?table=.", "/rowset?table=." + id,
						"/block?table=." + id + "&block=" + fmt.Sprint(uint64(m.Columns[1].Block)) + "&part=footer"} {
						if r := get(s, path); r.StatusCode != http.StatusOK && r.StatusCode != http.StatusGone &&
							r.StatusCode != http.StatusNotFound {
							t.Errorf("%s: %s: %s", path, r.Status, body(t, r))
						}
					}
				}
			}
		})
	}
	wait.Wait()
}

func TestSamplesAreTakenOverTime(t *testing.T) {
	store := openStore(t)
	fillStore(t, store)
	s := testServer(store)
	if s.samples.history() != nil {
		t.Error("there is a history without samples")
	}
	at := s.now()
	table := must.Get(store.Table("."))(t)
	for i := range mostSamples + 20 {
		commit(t, store, func(b *oribi.Batch) { b.Upsert(table, oribi.Row{"id": int64(i)}) })
		at = at.Add(sampleEvery)
		now := at
		s.now = func() time.Time { return now }
		must.Do(t, s.samples.take())
	}
	h := s.samples.history()
	if h == nil || len(h.Times) != mostSamples-1 {
		t.Fatalf("%+v", h)
	}
	for _, one := range h.Series {
		must.Equal(t, len(one.Values), len(h.Times), one.Name)
		if one.Name == "Rows written" && (one.Least != 0.5 || one.Most != 0.5) { // a row in two seconds
			t.Errorf("%+v", one)
		}
	}
}
