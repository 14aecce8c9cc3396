// Package peertest compares the answers of peers with the rows themselves. It is for tests only.
package peertest

import (
	"path/filepath"
	"slices"
	"testing"

	"github.com/oribi-db/oribi/bench/inputs"
	"github.com/oribi-db/oribi/bench/peer"
	"github.com/oribi-db/oribi/internal/must"
)

// Answers loads a thousand rows into a peer, changes some of them, and compares what it answers
// Answers loads a thousand rows into a peer, changes some of them, and compares its answers with
// those computed from the rows: before and after FinishWork and a reopening.
func Answers(t *testing.T, d peer.Driver) {
	t.Helper()
	dir, items := t.TempDir(), someRows(t, 1000)
	l := must.Get(d.Lineitem(dir))(t)
	must.Do(t, l.Load(each(items), true))
	checkQueries(t, l, items)
	if d.Can&peer.Write != 0 {
		changeRows(t, l, items)
	}
	for range 2 {
		checkQueries(t, l, items)
		if d.Can&peer.Point != 0 {
			checkPoints(t, l, items)
		}
		must.Do(t, l.FinishWork())
		must.Do(t, l.Close())
		l = must.Get(d.Lineitem(dir))(t)
	}
	must.Do(t, l.Close())
}

// someRows returns the first rows of lineitem, in key order.
func someRows(t *testing.T, n int) (items []inputs.Item) {
	t.Helper()
	name := filepath.Join(t.TempDir(), "text")
	must.Do(t, inputs.WriteLineitem(name, "", n))
	for it, err := range inputs.Items(name) {
		must.Do(t, err)
		items = append(items, *it)
	}
	return items
}

func each(items []inputs.Item) func(yield func(*inputs.Item, error) bool) {
	return func(yield func(*inputs.Item, error) bool) {
		for i := range items {
			if !yield(&items[i], nil) {
				return
			}
		}
	}
}

// checkQueries compares the answers with those computed row by row.
func checkQueries(t *testing.T, l peer.Lineitem, items []inputs.Item) {
	t.Helper()
	for _, q := range []peer.Question{peer.Sum, peer.FewRows, peer.SomeRows, peer.NoRows,
		peer.Group, peer.Q1, peer.Q6} {
		want := &peer.Answer{}
		for i := range items {
			want.AddItem(q, &items[i])
		}
		got, err := l.Query(q)
		must.Do(t, err, q)
		must.Equal(t, got.String(), want.String(), q)
	}
}

// checkPoints compares reads by key with the rows.
func checkPoints(t *testing.T, l peer.Lineitem, items []inputs.Item) {
	t.Helper()
	var it inputs.Item
	for i := 0; i < len(items); i += 7 {
		if found, err := l.Get(items[i].Key(), &it); err != nil || !found || it != items[i] {
			t.Fatalf("row %d: found %v, %v: %+v, want %+v", i, found, err, it, items[i])
		}
		if found, err := l.Get(inputs.Key{OrderKey: items[i].OrderKey, LineNumber: 8}, &it); err != nil || found {
			t.Fatalf("an absent row: found %v, %v", found, err)
		}
	}
	var many []inputs.Item
	keys := []inputs.Key{items[5].Key(), items[400].Key(), items[90].Key()}
	if err := l.GetMany(keys, func(it *inputs.Item) { many = append(many, *it) }); err != nil || len(many) != 3 {
		t.Fatalf("GetMany of three keys: %d rows, %v", len(many), err)
	}
	for _, got := range many {
		if !slices.Contains(items, got) {
			t.Errorf("unexpected row %+v", got)
		}
	}
	for _, from := range []int{0, 123, len(items) - 10} {
		var got []inputs.Item
		must.Do(t, l.Range(items[from].Key(), 100, func(it *inputs.Item) { got = append(got, *it) }))
		must.Equal(t, got, items[from:min(from+100, len(items))], from)
	}
}

// changeRows changes some rows in the peer and in items.
func changeRows(t *testing.T, l peer.Lineitem, items []inputs.Item) {
	t.Helper()
	var keys []inputs.Key
	var whole []inputs.Item
	for i := range items {
		switch {
		case i%10 == 3:
			keys = append(keys, items[i].Key())
			items[i].Tax = 9
		case i%10 == 6:
			items[i].Comment, items[i].Tax = "changed", items[i].Tax+1
			whole = append(whole, items[i])
		}
	}
	must.Do(t, l.UpdateTax(keys, 9))
	must.Do(t, l.Upsert(whole))
}
