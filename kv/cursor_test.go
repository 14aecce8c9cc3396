package kv_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/internal/seedtest"
	"github.com/oribi-db/oribi/kv"
)

// Cursors outside of transactions, in those that only read, and in those that write move as a scan does.
func TestCursorsMoveAsScans(t *testing.T) {
	rng := seedtest.Rand(t)
	db := openMem(t, oribi.Options{})
	b := bucket(t, db, "b")
	for range 300 {
		put(t, b, fmt.Sprint(rng.IntN(1000)), fmt.Sprint(rng.IntN(1000)))
	}
	put(t, b, "", "the empty key")
	must.Do(t, db.Update(ctx, func(tx *kv.Tx) error {
		return db.View(ctx, func(reader *kv.Tx) error {
			for _, prefix := range []string{"", "4", "x"} {
				want := texts(t, b.Scan(ctx, oribi.Prefix(prefix)))
				for _, c := range []*kv.Cursor{b.Cursor(ctx, oribi.Prefix(prefix)),
					reader.Bucket("b").Cursor(oribi.Prefix(prefix)), tx.Bucket("b").Cursor(oribi.Prefix(prefix))} {
					var got []string
					for ok := c.First(); ok; ok = c.Next() {
						got = append(got, fmt.Sprintf("%s=%s", c.Key(), c.Value()))
					}
					equal(t, "forward", got, fmt.Sprint(want))
					for i := len(want) - 1; c.Prev(); i-- {
						equal(t, "backward", fmt.Sprintf("%s=%s", c.Key(), c.Value()), want[i])
					}
					if c.Key() != nil || c.Value() != nil || c.Seek([]byte("y")) || c.Seek(nil) != (prefix == "" || len(want) > 0) {
						t.Error("a key where none is, or none:", c.Key(), c.Err())
					}
					if c.SeekBefore([]byte("401")) && string(c.Key()) >= "401" {
						t.Errorf("key %q before 401", c.Key())
					}
					must.Do(t, c.Close())
				}
			}
			return nil
		})
	}))
}

func TestACursorSeesTheWritesOfItsTransaction(t *testing.T) {
	db := openMem(t, oribi.Options{})
	b := bucket(t, db, "b")
	put(t, b, "a", "1", "b", "2", "c", "3", "d", "4")
	var c, snapshot *kv.Cursor
	must.Do(t, db.Update(ctx, func(tx *kv.Tx) error {
		rows := tx.Bucket("b")
		c, snapshot = rows.Cursor(), b.Cursor(ctx)
		sp := must.Get(tx.Savepoint())(t)
		seen := ""
		for ok := c.First(); ok; ok = c.Next() {
			seen += string(c.Key()) + string(c.Value()) + " "
			switch string(c.Key()) {
			case "a":
				must.Do(t, rows.Delete([]byte("a")))
				must.Do(t, rows.Put([]byte("aa"), []byte("new")))
			case "b":
				must.Do(t, rows.DeleteRange([]byte("c"), nil))
				must.Do(t, rows.Put([]byte("e"), []byte("5")))
			}
		}
		equal(t, "keys", seen, "a1 aanew b2 e5 ")
		if !c.Prev() || string(c.Key()) != "e" {
			t.Error("Prev after the end:", c.Key())
		}
		must.Do(t, tx.RollbackTo(sp))
		if !c.Prev() || string(c.Key()) != "d" || c.Next() || !c.Seek([]byte("a")) || string(c.Value()) != "1" {
			t.Errorf("after a rollback: %q=%q, %v", c.Key(), c.Value(), c.Err())
		}
		must.Do(t, rows.Delete([]byte("b")))
		return nil
	}))
	if c.Next() || c.Key() != nil {
		t.Error("a cursor of an ended transaction moved")
	}
	wantError(t, "a move", c.Err(), kv.ErrTxEnded)
	if !snapshot.First() || !snapshot.Next() || string(snapshot.Key()) != "c" {
		t.Error("a cursor does not read the state of its first move:", snapshot.Key())
	}
	put(t, b, "bb", "6")
	if !snapshot.Prev() || string(snapshot.Key()) != "a" {
		t.Error("a cursor reads the state of a later move:", snapshot.Key())
	}
	must.Do(t, snapshot.Close())
}

func TestCursorsReturnErrors(t *testing.T) {
	db := openMem(t, oribi.Options{})
	put(t, bucket(t, db, "b"), "a", "1")
	tx := must.Get(db.Begin(ctx, false))(t)
	missing, c := tx.Bucket("missing").Cursor(), tx.Bucket("b").Cursor()
	if missing.First() || missing.Key() != nil || !c.First() {
		t.Error(missing.Key(), c.Err())
	}
	wantError(t, "a missing bucket", missing.Close(), kv.ErrBucketNotFound)
	wantError(t, "a savepoint", must.Err(tx.Savepoint()), kv.ErrTxNotWritable)
	wantError(t, "a rollback", tx.RollbackTo(nil), kv.ErrTxNotWritable)
	tx.Rollback()
	late := tx.Bucket("b").Cursor()
	if c.Next() || c.Key() != nil || late.Last() {
		t.Error("a cursor of an ended transaction moved")
	}
	wantError(t, "a move", c.Close(), kv.ErrTxEnded)
	wantError(t, "a new cursor", late.Err(), kv.ErrTxEnded)
}

// A cursor that moves among rows of the bucket and those that its transaction overwrites, adds, and
// deletes meanwhile returns what a sorted map does.
func TestACursorMovesAmongRowsAndWrites(t *testing.T) {
	rng := seedtest.Rand(t)
	db := openMem(t, oribi.Options{})
	b := bucket(t, db, "b")
	model, key := map[string]string{}, func() string { return fmt.Sprintf("%03d", rng.IntN(500)) }
	for range 300 {
		k := key()
		put(t, b, k, "old")
		model[k] = "old"
	}
	must.Do(t, db.Update(ctx, func(tx *kv.Tx) error {
		rows := tx.Bucket("b")
		c := rows.Cursor()
		for i := range 30 {
			ok, want := c.First(), slices.Sorted(maps.Keys(model))
			step, at := c.Next, 0
			if i%2 == 1 {
				ok, step, at = c.Last(), c.Prev, len(want)-1
			}
			for ; ok; ok = step() {
				if k := want[at]; string(c.Key()) != k || string(c.Value()) != model[k] {
					t.Fatalf("pass %d: %q=%q, want %q=%q", i, c.Key(), c.Value(), k, model[k])
				}
				if at += 1 - 2*(i%2); rng.IntN(8) > 0 || at < 0 || at == len(want) {
					continue
				}
				k := want[at] // the next one
				if rng.IntN(4) > 0 {
					model[k] = fmt.Sprint("pass ", i)
					must.Do(t, rows.Put([]byte(k), []byte(model[k])))
					continue
				}
				delete(model, k)
				must.Do(t, rows.Delete([]byte(k)))
				at += 1 - 2*(i%2)
			}
			if at != len(want) && at != -1 {
				t.Fatalf("pass %d ends at row %d of %d", i, at, len(want))
			}
			k := key()
			model[k] = "new"
			must.Do(t, rows.Put([]byte(k), []byte("new")))
		}
		return nil
	}))
}
