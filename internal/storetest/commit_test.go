package storetest

import (
	"context"
	"errors"
	"testing"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/schema"
	"github.com/oribi-db/oribi/vfs"
)

func TestCommitKeepsRowsAfterFailure(t *testing.T) {
	ctx := context.Background()
	store, table := conditionStore(t)
	putNumber(t, store, table, 7, 7)
	canceled, cancel := context.WithCancel(ctx)
	cancel()
	b := store.NewBatch()
	b.Insert(table, oribi.Row{"k": 1, "v": 10})
	b.If(table, oribi.Row{"k": 7}, oribi.Eq("v", 8))
	if _, err := b.Commit(canceled); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	if _, err := b.Commit(ctx); !errors.Is(err, oribi.ErrConflict) {
		t.Fatal(err)
	}
	if b.Len() != 2 {
		t.Fatalf("the batch has %d operations, want 2", b.Len())
	}
	putNumber(t, store, table, 7, 8)
	if _, err := b.Commit(ctx); err != nil {
		t.Fatalf("the retry: %v", err)
	}
	if row, err := table.Get(ctx, 1); err != nil || row["v"] != int64(10) {
		t.Fatal(row, err)
	}
	if ts, err := b.Commit(ctx); !errors.Is(err, oribi.ErrCommitted) || ts != 0 {
		t.Errorf("a second commit: %v, %v", ts, err)
	}
	b.Reset()
	if ts, err := b.Commit(ctx); err != nil || ts == 0 {
		t.Errorf("an empty batch after Reset: %v, %v", ts, err)
	}
	b.Insert(table, oribi.Row{"k": 2, "v": 20}) // begins the next batch
	if _, err := b.Commit(ctx); err != nil || b.Len() != 0 {
		t.Errorf("%v, %d operations left", err, b.Len())
	}
}

func TestCommitKeepsRowsWhenTheDiskIsFull(t *testing.T) {
	ctx := context.Background()
	disk := &narrowFS{FS: vfs.NewMem()}
	disk.free.Store(1 << 30)
	store := must.Get(oribi.Open("/full", &oribi.Options{FS: disk, Manual: true}))(t)
	defer store.Close()
	table := numbersTable(t, store, "numbers")
	b := store.NewBatch()
	b.Insert(table, oribi.Row{"k": 1, "v": 10})
	disk.free.Store(0)
	if _, err := b.Commit(ctx); !errors.Is(err, oribi.ErrNoSpace) {
		t.Fatal(err)
	}
	disk.free.Store(1 << 30)
	if _, err := b.Commit(ctx); err != nil {
		t.Fatalf("the retry: %v", err)
	}
	if row, err := table.Get(ctx, 1); err != nil || row["v"] != int64(10) {
		t.Fatal(row, err)
	}
}

// A failed batch that is committed again after an alteration of the schema is converted to the new
// schema once.
func TestCommitRetriesAfterAlter(t *testing.T) {
	ctx := context.Background()
	store, table := conditionStore(t)
	putNumber(t, store, table, 1, 1)
	b := store.NewBatch()
	b.Insert(table, oribi.Row{"k": 2, "v": 2})
	b.Insert(table, oribi.Row{"k": 1, "v": 2})
	alter(t, table, oribi.AddColumn(schema.Column{Name: "new", Type: schema.String, Nullable: true}))
	for range 2 {
		if _, err := b.Commit(ctx); !errors.Is(err, oribi.ErrKeyExists) {
			t.Fatal(err)
		}
	}
	if _, err := b.Commit(ctx, oribi.AllowPartial); err != nil || len(b.Refused()) != 1 {
		t.Fatal(err, b.Refused())
	}
	if row, err := table.Get(ctx, 2); err != nil || row["v"] != int64(2) || row["new"] != nil {
		t.Fatal(row, err)
	}
}

// A row that is added to a batch before its column's default changes gets the old default, whether
// it is inserted or upserted.
func TestRowsUseTheDefaultAtTheTimeTheyAreAdded(t *testing.T) {
	ctx := context.Background()
	store, table := conditionStore(t)
	alter(t, table,
		oribi.AddColumn(schema.Column{Name: "d", Type: schema.Int64, Default: []byte{1, 0, 0, 0, 0, 0, 0, 0}}))
	b := store.NewBatch()
	b.Insert(table, oribi.Row{"k": 1, "v": 0})
	b.Upsert(table, oribi.Row{"k": 2, "v": 0})
	alter(t, table, oribi.SetDefault("d", 2))
	must.Get(b.Commit(ctx))(t)
	for k := 1; k <= 2; k++ {
		if row, err := table.Get(ctx, k); err != nil || row["d"] != int64(1) {
			t.Errorf("row %d: %v, %v; want the default 1", k, row, err)
		}
	}
}

func TestUpdateIfAndDeleteIfRefuseRowByRow(t *testing.T) {
	ctx := context.Background()
	store, table := conditionStore(t)
	for k := range 4 {
		putNumber(t, store, table, k, k)
	}
	b := store.NewBatch()
	b.UpdateIf(table, oribi.Row{"k": 0, "v": 10}, oribi.Lt("v", 1))
	b.UpdateIf(table, oribi.Row{"k": 1, "v": 11}, oribi.Lt("v", 1))
	b.DeleteIf(table, oribi.Row{"k": 2}, oribi.Eq("v", 2), oribi.Gt("k", 0))
	b.DeleteIf(table, oribi.Row{"k": 3}, oribi.Or(oribi.Eq("v", 2), oribi.IsNull("v")))
	b.UpdateIf(table, oribi.Row{"k": 9, "v": 9})
	b.UpdateIf(table, oribi.Row{"k": 0, "v": 12}, oribi.Eq("v", 10)) // as the first batch leaves it
	if row, err := b.Get(ctx, table, 3); !errors.Is(err, oribi.ErrConflict) {
		t.Errorf("the batch's own view of a refused row: %v, %v", row, err)
	}
	if _, err := b.Commit(ctx); !errors.Is(err, oribi.ErrConflict) {
		t.Fatalf("without AllowPartial: %v", err)
	}
	must.Get(b.Commit(ctx, oribi.AllowPartial))(t)
	var refused []int
	for _, r := range b.Refused() {
		if !errors.Is(r, oribi.ErrConflict) || !errors.Is(r, oribi.ErrRow) {
			t.Error(r)
		}
		refused = append(refused, r.Row)
	}
	if len(refused) != 3 || refused[0] != 1 || refused[1] != 3 || refused[2] != 4 {
		t.Errorf("refused %v, want rows 1, 3, 4", refused)
	}
	for k, want := range []any{int64(12), int64(1), nil, int64(3)} {
		row, err := table.Get(ctx, k)
		if want == nil && !errors.Is(err, oribi.ErrNotFound) || want != nil && row["v"] != want {
			t.Errorf("row %d: %v, %v, want %v", k, row, err, want)
		}
	}
	b.UpdateIf(table, oribi.Row{"k": 0, "v": 1}, oribi.Eq("nope", 1))
	if _, err := b.Commit(ctx, oribi.AllowPartial); !errors.Is(err, oribi.ErrNoColumn) {
		t.Errorf("an unknown column: %v", err)
	}
}

func TestUpsertIgnoreLeavesImmutableColumns(t *testing.T) {
	ctx := context.Background()
	store, table := conditionStore(t)
	putNumber(t, store, table, 1, 1)
	alter(t, table, oribi.SetImmutable("v", true))
	b := store.NewBatch()
	b.UpsertIgnore(table, oribi.Row{"k": 1, "v": 2})
	b.UpsertIgnore(table, oribi.Row{"k": 2, "v": 2})
	must.Get(b.Commit(ctx))(t)
	for k := 1; k <= 2; k++ {
		if row, err := table.Get(ctx, k); err != nil || row["v"] != int64(k) {
			t.Error(row, err)
		}
	}
}

func TestReadsHonorACanceledContext(t *testing.T) {
	store, table := conditionStore(t)
	for k := range 10 {
		putNumber(t, store, table, k, k)
	}
	canceled, cancel := context.WithCancel(context.Background())
	cancel()
	_, get := table.Get(canceled, 1)
	_, _, cells := table.GetCells(canceled, 1)
	_, many := table.GetMany(canceled, []any{1})
	_, count := table.Count(canceled)
	_, some := table.Count(canceled, oribi.Where(oribi.Eq("v", 1)))
	_, snapshot := store.Snapshot(canceled)
	var history, diff, rows error
	for _, history = range table.History(canceled, 1) {
	}
	for _, diff = range table.Diff(canceled, 1, store.Visible()) {
	}
	for _, rows = range table.Scan(canceled).Rows() {
	}
	for name, err := range map[string]error{"get": get, "cells": cells, "many": many, "count": count,
		"count some": some, "snapshot": snapshot,
		"history": history, "diff": diff, "rows": rows} {
		if !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Iteration ends with the row after which its context is canceled or the store is closed.
func TestRowIterationEndsAtTheNextRow(t *testing.T) {
	type number struct {
		K int64 `oribi:"k,key"`
		V int64 `oribi:"v"`
	}
	for _, close := range []bool{false, true} {
		store, table := conditionStore(t)
		for k := range 10 {
			putNumber(t, store, table, k, k)
		}
		typed := must.Get(oribi.Typed[number](table))(t)
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		want := context.Canceled
		stop := func() { cancel() }
		if close {
			want = oribi.ErrClosed
			stop = func() { store.Close() }
		}
		n := 0
		next, last := error(nil), error(nil)
		for _, last = range table.Scan(ctx).Rows() {
			if n++; n == 3 && !close {
				stop()
			}
		}
		if !close && (n != 4 || !errors.Is(last, want)) {
			t.Errorf("rows: %d steps, %v", n, last)
		}
		if close {
			n = 0
			for _, next = range typed.Scan(ctx) {
				if n++; n == 3 {
					stop()
				}
			}
			if n != 4 || !errors.Is(next, want) {
				t.Errorf("typed rows: %d steps, %v", n, next)
			}
		}
	}
}
