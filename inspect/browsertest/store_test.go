package browsertest

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/inspect"
	"github.com/oribi-db/oribi/mvcc"
	"github.com/oribi-db/oribi/schema"
	"github.com/oribi-db/oribi/vfs"
)

// hostile is text that sets a variable or loads a page if a browser interprets any of it. It is
// short enough for the name of a table or a column.
const hostile = `</td></table></title></script><script>window.hacked=1</script><svg onload="window.hacked=2">` +
	`<img src=x onerror="window.hacked=3">" onfocus="window.hacked=4" '&amp;{{.}}` + "\u202e\x01\n\t"

// hostileComment has other such text, short enough for a comment. Cells have both.
const (
	hostileComment = `</textarea></style><a href="javascript:window.hacked=5">here</a><iframe srcdoc="<script>parent.hacked=6</script>"></iframe>` +
		"`${window.hacked=7}`" + `<!--<meta http-equiv=refresh content="0;url=javascript:window.hacked=8">]]>` +
		"\x1b[31m\u2028\ufeff\r\n"
	hostileCell = hostile + hostileComment + "\x00\u2029"
)

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// stamps are the timestamps of write batches of the table "orders".
type stamps struct{ first, last mvcc.Timestamp }

// openStore opens a store in memory with a table "orders" of several overlapping rowsets with
// changes, and a table whose name, columns, and cells are hostile.
func openStore(t testing.TB) (store *oribi.Store, events *inspect.Events, times stamps) {
	t.Helper()
	events = inspect.NewEvents()
	store, err := oribi.Open("/secret path of the machine",
		&oribi.Options{FS: vfs.NewMem(), Clock: mvcc.NewLogicalClock(7355733817208557568), Manual: true,
			RowSetBytes: 1 << 14, History: oribi.HistoryForever, Listener: events.Record})
	must(t, err)
	t.Cleanup(func() { store.Close() })
	times = fillOrders(t, store)
	fillHostile(t, store)
	return store, events, times
}

func commit(t testing.TB, store *oribi.Store, fill func(b *oribi.Batch)) mvcc.Timestamp {
	t.Helper()
	b := store.NewBatch()
	fill(b)
	ts, err := b.Commit(context.Background())
	must(t, err)
	return ts
}

func fillOrders(t testing.TB, store *oribi.Store) (times stamps) {
	t.Helper()
	ctx := t.Context()
	columns, err := schema.New([]schema.Column{
		{Name: "customer", Type: schema.String}, {Name: "number", Type: schema.Int64},
		{Name: "product", Type: schema.String, Comment: "What was ordered."},
		{Name: "pieces", Type: schema.Int32, Nullable: true},
		{Name: "price", Type: schema.Double}, {Name: "paid", Type: schema.Bool},
		{Name: "day", Type: schema.Date, Nullable: true},
		{Name: "note", Type: schema.String, Nullable: true}, {Name: "receipt", Type: schema.Binary, Nullable: true},
	}, 2)
	must(t, err)
	table, err := store.CreateTable("orders", columns, oribi.Comment("Orders of a shop."))
	must(t, err)
	key := func(i int) oribi.Row {
		return oribi.Row{"customer": fmt.Sprintf("customer %03d", i*37%400), "number": int64(i)}
	}
	for round := range 4 {
		times.last = commit(t, store, func(b *oribi.Batch) {
			for i := range 300 {
				row := key(round*300 + i)
				row["product"], row["price"], row["paid"] = []string{"apples", "pears", "cherries and plums"}[i%3],
					float64(i)/4, i%3 == 0
				row["day"], row["note"] = time.Unix(int64(i)*86400, 0).UTC(), strings.Repeat("please ring twice ", i%40)
				row["pieces"], row["receipt"] = nil, bytes.Repeat([]byte{byte(i), 0xff}, i%9)
				b.Insert(table, row)
			}
		})
		if round == 0 {
			times.first = times.last
		}
		must(t, table.Flush(ctx))
		if round == 1 {
			must(t, table.Compact(ctx))
		}
	}
	for round := range 3 {
		times.last = commit(t, store, func(b *oribi.Batch) {
			for i := range 40 {
				row := key(i * 7)
				row["pieces"], row["note"] = int32(round+i), strings.Repeat("changed ", 1+round*600*(i%5/4))
				b.Update(table, row)
			}
			b.Delete(table, key(1000+round))
		})
		_, err = table.FlushDeltas(ctx)
		must(t, err)
	}
	times.last = commit(t, store, func(b *oribi.Batch) { // stays in memory
		row := key(2000)
		row["product"], row["price"], row["paid"] = "apples", 1.5, false
		b.Insert(table, row)
	})
	return times
}

func fillHostile(t testing.TB, store *oribi.Store) {
	t.Helper()
	columns, err := schema.New([]schema.Column{{Name: "k", Type: schema.String},
		{Name: hostile, Type: schema.String, Nullable: true, Comment: hostileComment, Default: []byte(hostileCell)},
		{Name: "b", Type: schema.Binary, Nullable: true}}, 1)
	must(t, err)
	table, err := store.CreateTable(hostile, columns, oribi.Comment(hostileComment), oribi.RowFile(schema.FullRowFile))
	must(t, err)
	for round := range 2 {
		commit(t, store, func(b *oribi.Batch) {
			for i := range 60 {
				b.Upsert(table, oribi.Row{"k": fmt.Sprintf("%s%03d", hostileCell, i+round*20),
					hostile: fmt.Sprint(hostileCell, round), "b": []byte(hostileCell)})
			}
		})
		must(t, table.Flush(t.Context()))
	}
	commit(t, store, func(b *oribi.Batch) {
		for i := range 20 {
			b.Update(table, oribi.Row{"k": fmt.Sprintf("%s%03d", hostileCell, i),
				hostile: strings.Repeat(hostileCell, 1+99*(i%2))})
		}
	})
	_, err = table.FlushDeltas(t.Context())
	must(t, err)
	_, err = store.CreateTable(strings.Repeat("long", 64), columns)
	must(t, err)
}
