package storetest

import (
	"context"
	"errors"
	"testing"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/vfs"
)

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
	must.Fail(t, must.Err(b.Commit(ctx)), oribi.ErrNoSpace)
	disk.free.Store(1 << 30)
	must.Do(t, must.Err(b.Commit(ctx)), "the retry")
	if row, err := table.Get(ctx, 1); err != nil || row["v"] != int64(10) {
		t.Fatal(row, err)
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
		must.Fail(t, err, context.Canceled, name)
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
			must.Equal(t, n, 4, "typed rows", "steps")
			must.Fail(t, next, want, "typed rows")
		}
	}
}
