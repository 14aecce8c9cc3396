package storetest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/mvcc"
	"github.com/oribi-db/oribi/schema"
	"github.com/oribi-db/oribi/vfs"
)

// A struct that has fields for some columns of its table.
type mail struct {
	ID    int64 `oribi:"id,key"`
	Email string
}

// With Columns, a read of structs leaves the fields of other columns zero.
func TestStructReadsOfSomeColumns(t *testing.T) {
	ctx := t.Context()
	store, accounts := accountsTable(t)
	note := "n"
	first := mustPut(t, accounts, account{ID: 1, Email: "a", Note: &note}, account{ID: 2, Email: "b"})
	last := mustPut(t, accounts, account{ID: 1, Email: "a", Note: nil}, account{ID: 2, Email: "c"})
	columns := oribi.Columns("email", "id")
	want := []account{{ID: 1, Email: "a"}, {ID: 2, Email: "c"}}

	var got []account
	for row := range must.All(t, accounts.Scan(ctx, columns)) {
		got = append(got, row)
	}
	c := accounts.Cursor(ctx, oribi.Columns("email"))
	for c.Next() {
		if row := c.Row(); row.ID != 0 || row.Email != want[c.Key()[0].(int64)-1].Email {
			t.Errorf("the cursor is on %+v", row)
		}
	}
	must.Do(t, c.Close())
	for _, row := range must.Get(accounts.GetMany(ctx, []any{1, 2}, columns))(t) {
		got = append(got, *row)
	}
	for id := range 2 {
		got = append(got, must.Get(accounts.Get(ctx, id+1, columns))(t))
	}
	must.Do(t, store.Update(ctx, func(tx *oribi.Tx) error {
		for id := range 2 {
			got = append(got, must.Get(accounts.In(tx).Get(id+1, columns))(t))
		}
		for row := range must.All(t, accounts.In(tx).Scan(columns)) {
			got = append(got, row)
		}
		return nil
	}))
	must.Equal(t, got, slices.Repeat(want, 5))

	versions, differences := 0, ""
	for range must.All(t, accounts.History(ctx, 1, columns)) {
		versions++
	}
	for d := range must.All(t, accounts.Diff(ctx, first, last, columns)) {
		differences += fmt.Sprint(d.Before.ID, d.Before.Email, d.After.Email)
	}
	if versions != 1 || differences != "2bc" { // the note of the first row is not read
		t.Errorf("%d versions, differences %q", versions, differences)
	}

	_, unknown := accounts.Get(ctx, 1, oribi.Columns("nope"))
	_, twice := accounts.Get(ctx, 1, oribi.Columns("id", "id"))
	_, fieldless := oribi.GetAs[mail](ctx, accounts.Table, 1, oribi.Columns("note"))
	if !errors.Is(unknown, oribi.ErrNoColumn) || !errors.Is(twice, oribi.ErrSchema) ||
		!errors.Is(fieldless, oribi.ErrSchema) {
		t.Errorf("errors %v; %v; %v", unknown, twice, fieldless)
	}
}

// A cursor over structs reads the columns of the struct only.
func TestCursorOverStructsWithFewFields(t *testing.T) {
	_, accounts := accountsTable(t)
	mustPut(t, accounts, account{ID: 1, Email: "a"}, account{ID: 2, Email: "b"})
	must.Do(t, accounts.Table.Alter(t.Context(), oribi.AddColumn(schema.Column{Name: "x", Type: schema.Int8,
		Nullable: true})))
	c := accounts.Cursor(t.Context())
	defer c.Close()
	if !c.Last() || c.Row().Email != "b" || !c.Prev() || c.Row().Email != "a" || c.Prev() || c.Err() != nil {
		t.Errorf("row %+v, %v", c.Row(), c.Err())
	}
}

// diffStore is a table with rows on disk and in memory that have changed between two timestamps,
// and some that have expired.
func diffStore(t *testing.T) (table *oribi.Table, from, to mvcc.Timestamp) {
	w := newFakeWall()
	store := must.Get(oribi.Open("/diff", &oribi.Options{FS: vfs.NewMem(), Manual: true, RowSetBytes: 1 << 12,
		Clock: mvcc.NewHybridClock(w.time)}))(t)
	t.Cleanup(func() { store.Close() })
	table = tableOf(t, store, "t", "k*:int64 v:int64 w:int64 until:timestamp?", oribi.Expires("until", 0))
	write := func(change func(b *oribi.Batch, k int64)) mvcc.Timestamp {
		b := store.NewBatch()
		for k := range int64(1000) {
			change(b, k)
		}
		return must.Get(b.Commit(t.Context()))(t)
	}
	soon := w.time().Add(minute)
	from = write(func(b *oribi.Batch, k int64) {
		row := oribi.Row{"k": k, "v": k % 10, "w": k % 7}
		if k%50 == 0 {
			row["until"] = soon
		}
		if k%3 > 0 {
			b.Insert(table, row)
		}
	})
	must.Do(t, table.Flush(t.Context()))
	w.move(2 * minute)
	write(func(b *oribi.Batch, k int64) {
		if k%20 < 10 {
			b.Upsert(table, oribi.Row{"k": k, "v": k % 11, "w": k % 7, "until": nil})
		}
	})
	must.Do(t, table.Flush(t.Context()))
	return table, from, write(func(b *oribi.Batch, k int64) {
		switch k % 13 {
		case 0:
			b.DeleteIgnore(table, oribi.Row{"k": k})
		case 1:
			b.UpdateIgnore(table, oribi.Row{"k": k, "w": k % 5})
		}
	})
}

// Diff with options returns a part of the rows that it returns without them.
func TestDiffWithOptions(t *testing.T) {
	table, from, to := diffStore(t)
	text := func(d *oribi.Difference, columns ...string) string {
		part := func(row oribi.Row) (out []any) {
			for _, c := range columns {
				out = append(out, row[c])
			}
			return out
		}
		return fmt.Sprint(d.Kind, d.KeyRow(), part(d.BeforeRow()), part(d.AfterRow()))
	}
	diff := func(columns []string, opts ...oribi.RowsOption) (texts []string) {
		for d := range must.All(t, table.Diff(t.Context(), from, to, opts...)) {
			texts = append(texts, text(&d, columns...))
		}
		return texts
	}
	v, w := []string{"v"}, []string{"v", "w"}
	of := func(columns []string, keep func(k int64, before, after oribi.Row) bool) (texts []string) {
		for d := range must.All(t, table.Diff(t.Context(), from, to, oribi.Columns("k", "v", "w"))) {
			if before, after := d.BeforeRow(), d.AfterRow(); keep(d.KeyRow()["k"].(int64), before, after) {
				texts = append(texts, text(&d, columns...))
			}
		}
		return texts
	}
	is := func(row oribi.Row, column string, value int64) bool { return row != nil && row[column] == value }
	all := of(w, func(int64, oribi.Row, oribi.Row) bool { return true })
	if len(all) < 300 {
		t.Fatalf("%d differences", len(all))
	}
	five := of(w, func(_ int64, before, after oribi.Row) bool { return is(before, "v", 5) || is(after, "v", 5) })
	backward := slices.Clone(all)
	slices.Reverse(backward)
	low := of(w, func(k int64, _, _ oribi.Row) bool { return k < 500 })
	slices.Reverse(low)
	cases := map[string]struct{ got, want []string }{
		"where": {diff(w, oribi.Where(oribi.Eq("v", 5)), oribi.Columns("v", "w")), five},
		// The predicate is on a column that is not read, and whose changes are not differences.
		"where, of another column": {diff(v, oribi.Where(oribi.Eq("w", 2)), oribi.Columns("v")),
			of(v, func(_ int64, before, after oribi.Row) bool {
				return (before == nil || after == nil || before["v"] != after["v"]) &&
					(is(before, "w", 2) || is(after, "w", 2))
			})},
		"where, of the key": {diff(w, oribi.Where(oribi.Ge("k", 100), oribi.Lt("k", 200)), oribi.Columns("v", "w")),
			of(w, func(k int64, _, _ oribi.Row) bool { return k >= 100 && k < 200 })},
		"limit":    {diff(w, oribi.Columns("v", "w"), oribi.Limit(7)), all[:7]},
		"limit, 0": {diff(w, oribi.Limit(0)), nil},
		"desc":     {diff(w, oribi.Columns("v", "w"), oribi.Desc()), backward},
		"desc, in a range": {diff(w, oribi.Columns("v", "w"), oribi.Desc(), oribi.To(500), oribi.Limit(3)),
			low[:3]},
		"any order": {diff(w, oribi.Columns("v", "w"), oribi.AnyOrder()), all},
	}
	for name, c := range cases {
		must.Equal(t, c.got, c.want, name, "differences", len(c.want))
	}
	if len(five) == 0 || len(cases["where, of another column"].want) == 0 {
		t.Error("a predicate selects nothing")
	}
}

// Truncate and RestoreTo change the rows that the options select, and no others.
func TestTruncateAndRestoreSomeRows(t *testing.T) {
	ctx := context.Background()
	for _, pieces := range []oribi.BulkOption{nil, oribi.PieceBytes(300)} {
		store, table := txStore(t)
		rows := map[int64]int64{}
		for k := range int64(100) {
			rows[k] = k % 5
		}
		first := put(t, store, table, rows)
		must.Do(t, table.Flush(ctx))
		res := must.Get(table.Truncate(ctx, oribi.From(10), oribi.Where(oribi.Eq("v", 1)), pieces))(t)
		want := maps.Clone(rows)
		maps.DeleteFunc(want, func(k, v int64) bool { return k >= 10 && v == 1 })
		wantContent(t, "truncated", content(t, table), want)
		must.Equal(t, res.Rows, 18, res, "rows")
		put(t, store, table, map[int64]int64{2: 7, 3: 7, 20: 7, 40: 7, 200: 7})
		maps.Copy(want, map[int64]int64{2: 7, 3: 7, 20: 7, 40: 7, 200: 7})
		// Rows that have 7 now, or had 2 then.
		res = must.Get(table.RestoreTo(ctx, first, oribi.From(3), oribi.To(201),
			oribi.Where(oribi.In("v", 2, 7)), pieces))(t)
		maps.Copy(want, map[int64]int64{3: 3, 20: 0, 40: 0})
		delete(want, 200)
		wantContent(t, "restored", content(t, table), want)
		must.Equal(t, res.Rows, 4, res, "rows")
		asked := int64(0)
		must.Get(table.RestoreTo(ctx, first, oribi.From(10), oribi.To(20), pieces, oribi.Confirm(func(n int64) error {
			asked = n
			return nil
		})))(t)
		maps.Copy(want, map[int64]int64{11: 1, 16: 1})
		wantContent(t, "restored in a range", content(t, table), want)
		must.Equal(t, asked, 2, "asked for rows")
	}
}
