package storetest

import (
	"context"
	"errors"
	"iter"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/compaction"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/mvcc"
	"github.com/oribi-db/oribi/schema"
	"github.com/oribi-db/oribi/vfs"
)

type numberRow struct {
	K int64 `oribi:"k,key"`
	V int64 `oribi:"v"`
}

// failingCall is a public call that fails, and a part of its error's text: the place.
type failingCall struct {
	name  string
	place string
	call  func() error
}

// lastErr runs an iteration and returns its error.
func lastErr[T any](seq iter.Seq2[T, error]) (err error) {
	for _, err = range seq {
		if err != nil {
			return err
		}
	}
	return nil
}

func checkErrors(t *testing.T, want error, calls []failingCall) {
	t.Helper()
	for _, c := range calls {
		err := c.call()
		switch {
		case err == nil:
			t.Errorf("%s: no error", c.name)
		case want != nil && !errors.Is(err, want):
			t.Errorf("%s: %v, want %v", c.name, err, want)
		case !strings.HasPrefix(err.Error(), "oribi: ") || strings.Count(err.Error(), "oribi: ") != 1:
			t.Errorf("%s: %q does not begin with \"oribi: \" once", c.name, err)
		case !strings.Contains(err.Error(), c.place):
			t.Errorf("%s: %q does not name %q", c.name, err, c.place)
		}
	}
}

// readCalls are the calls that read, writeCalls those that write, with good arguments: all fail in
// a store or a context in which none can succeed.
func readCalls(
	ctx context.Context, store *oribi.Store, table *oribi.Table, typed *oribi.TableOf[numberRow], place string,
) []failingCall {
	return []failingCall{
		{"Store.Snapshot", "", func() error { return must.Err(store.Snapshot(ctx)) }},
		{"Store.SnapshotAt", "", func() error { return must.Err(store.SnapshotAt(ctx, mvcc.First)) }},
		{"Store.Verify", "", func() error { return store.Verify(ctx, func(oribi.Finding) {}) }},
		{"Table.Get", place, func() error { return must.Err(table.Get(ctx, 1)) }},
		{"Table.GetCells", place, func() error { _, _, err := table.GetCells(ctx, 1); return err }},
		{"Table.GetMany", place, func() error { return must.Err(table.GetMany(ctx, []any{1})) }},
		{"Table.GetManyCells", place, func() error { _, _, err := table.GetManyCells(ctx, []any{1}); return err }},
		{"Table.Explain", place, func() error { return must.Err(table.Explain(ctx, 1)) }},
		{"Table.Count", place, func() error { return must.Err(table.Count(ctx)) }},
		{"Table.Count of some", place, func() error {
			return must.Err(table.Count(ctx, oribi.Where(oribi.Eq("v", 1))))
		}},
		{"Table.Aggregate", place, func() error {
			return must.Err(table.Aggregate(ctx, []oribi.Aggregate{oribi.CountRows()}))
		}},
		{"Table.Aggregate of groups", place, func() error {
			return must.Err(table.Aggregate(ctx, []oribi.Aggregate{oribi.SumOf("v")}, oribi.GroupBy("k")))
		}},
		{"Table.Scan", place, func() error { return lastErr(table.Scan(ctx).Rows()) }},
		{"Scan.Batches", place, func() error { return lastErr(table.Scan(ctx).Batches()) }},
		{"Table.History", place, func() error { return lastErr(table.History(ctx, 1)) }},
		{"Table.Diff", place, func() error { return lastErr(table.Diff(ctx, store.Visible(), store.Visible())) }},
		{"TableOf.Get", place, func() error { return must.Err(typed.Get(ctx, 1)) }},
		{"TableOf.GetMany", place, func() error { return must.Err(typed.GetMany(ctx, []any{1})) }},
		{"TableOf.Scan", place, func() error { return lastErr(typed.Scan(ctx)) }},
		{"TableOf.History", place, func() error { return lastErr(typed.History(ctx, 1)) }},
		{"TableOf.Diff", place, func() error { return lastErr(typed.Diff(ctx, store.Visible(), store.Visible())) }},
		{"GetAs", place, func() error { return must.Err(oribi.GetAs[numberRow](ctx, table, 1)) }},
		{"ScanAs", place, func() error { return lastErr(oribi.ScanAs[numberRow](ctx, table)) }},
		{"Batch.Get", place, func() error { return must.Err(store.NewBatch().Get(ctx, table, 1)) }},
	}
}

func writeCalls(
	ctx context.Context, store *oribi.Store, table *oribi.Table, typed *oribi.TableOf[numberRow], place string,
) []failingCall {
	noVectors := func(func([]*batch.Vector, error) bool) {}
	return []failingCall{
		{"Batch.Commit", "", func() error {
			b := store.NewBatch()
			b.Upsert(table, oribi.Row{"k": 1, "v": 1})
			return must.Err(b.Commit(ctx))
		}},
		{"Batch.Commit of nothing", "", func() error { return must.Err(store.NewBatch().Commit(ctx)) }},
		{"TableOf.Put", "", func() error { return must.Err(typed.Put(ctx, numberRow{1, 2})) }},
		{"Patch", "", func() error { return must.Err(oribi.Patch(ctx, table, numberRow{1, 2})) }},
		{"Table.Ingest", place, func() error { _, _, err := table.Ingest(ctx, noVectors); return err }},
		{"TableOf.Ingest", place, func() error {
			_, _, err := typed.Ingest(ctx, func(func(numberRow) bool) {})
			return err
		}},
		{"Table.UpdateWhere", place, func() error { return must.Err(table.UpdateWhere(ctx, oribi.Row{"v": 1})) }},
		{"Table.DeleteWhere", place, func() error { return must.Err(table.DeleteWhere(ctx)) }},
		{"Table.DeleteRange", place, func() error { return must.Err(table.DeleteRange(ctx, 1, 2)) }},
		{"Table.Truncate", place, func() error { return must.Err(table.Truncate(ctx)) }},
		{"Table.RestoreTo", place, func() error { return must.Err(table.RestoreTo(ctx, store.Visible())) }},
		{"Table.Rename", place, func() error { return table.Rename(ctx, "other") }},
		{"Table.Alter", place, func() error { return table.Alter(ctx, oribi.SetComment("text")) }},
		{"Table.Flush", place, func() error { return table.Flush(ctx) }},
		{"Table.FlushDeltas", place, func() error { return must.Err(table.FlushDeltas(ctx)) }},
		{"Table.Compact", place, func() error { return table.Compact(ctx) }},
		{"Table.CompactMinor", place, func() error { return must.Err(table.CompactMinor(ctx)) }},
		{"Table.CompactMajor", place, func() error { return must.Err(table.CompactMajor(ctx)) }},
		{"Table.Recompress", place, func() error { return must.Err(table.Recompress(ctx)) }},
		{"Table.CollectUndos", place, func() error { return must.Err(table.CollectUndos(ctx)) }},
		{"Table.Merge", place, func() error { return table.Merge(ctx, compaction.Choice{}) }},
		{"Table.Extract", place, func() error { return table.Extract(ctx, "/extracted") }},
	}
}

// otherCalls take no context.
func otherCalls(store *oribi.Store, table *oribi.Table, place string) (reads, writes []failingCall) {
	return []failingCall{
			{"Store.Table", place, func() error { return must.Err(store.Table("t")) }},
			{"Store.Info", place, func() error { return must.Err(store.Info()) }},
			{"Store.DiskUsage", place, func() error { return must.Err(store.DiskUsage()) }},
			{"Table.Stats", place, func() error { return must.Err(table.Stats(true)) }},
			{"OpenTable", place, func() error { return must.Err(oribi.OpenTable[numberRow](store, "t")) }},
		}, []failingCall{
			{"Store.CreateTable", place, func() error { return must.Err(store.CreateTable("new", table.Schema())) }},
			{"Store.DropTable", place, func() error { return store.DropTable("t") }},
			{"Store.AdvanceClock", place, func() error { return store.AdvanceClock(mvcc.First) }},
		}
}

func openNumbers(t *testing.T, mem *vfs.Mem, readOnly bool) (*oribi.Store, *oribi.Table, *oribi.TableOf[numberRow]) {
	t.Helper()
	store := must.Get(oribi.Open("/errors",
		&oribi.Options{FS: mem, Clock: mvcc.NewLogicalClock(mvcc.First), Manual: true, ReadOnly: readOnly}))(t)
	t.Cleanup(func() { store.Close() })
	table := numbersTable(t, store, "t")
	typed := must.Get(oribi.Typed[numberRow](table))(t)
	if !readOnly {
		must.Get(typed.Put(t.Context(), numberRow{1, 10}, numberRow{2, 20}))(t)
	}
	return store, table, typed
}

func TestErrorsOfAClosedStoreNameIt(t *testing.T) {
	store, table, typed := openNumbers(t, vfs.NewMem(), false)
	must.Do(t, store.Close())
	const place = "/errors"
	checkErrors(t, oribi.ErrClosed, readCalls(t.Context(), store, table, typed, place))
	checkErrors(t, oribi.ErrClosed, writeCalls(t.Context(), store, table, typed, place))
	reads, writes := otherCalls(store, table, place)
	checkErrors(t, oribi.ErrClosed, append(reads, writes...))
}

func TestErrorsOfAReadOnlyStoreNameIt(t *testing.T) {
	mem := vfs.NewMem()
	writer, _, _ := openNumbers(t, mem, false)
	must.Do(t, writer.Close())
	store, table, typed := openNumbers(t, mem, true)
	_, writes := otherCalls(store, table, "/errors")
	checkErrors(t, oribi.ErrReadOnly, append(writes, writeCalls(t.Context(), store, table, typed, "/errors")...))
}

func TestErrorsOfACanceledContextNameTheTable(t *testing.T) {
	store, table, typed := openNumbers(t, vfs.NewMem(), false)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	checkErrors(t, context.Canceled, readCalls(ctx, store, table, typed, `table "t"`))
	checkErrors(t, context.Canceled, writeCalls(ctx, store, table, typed, `table "t"`))
}

func TestErrorsNameTheTableColumnOrKey(t *testing.T) {
	store, table, typed := openNumbers(t, vfs.NewMem(), false)
	_, foreign, _ := openNumbers(t, vfs.NewMem(), false)
	ctx := t.Context()
	nope := oribi.Where(oribi.Eq("nope", 1))
	commit := func(fill func(b *oribi.Batch)) func() error {
		return func() error {
			b := store.NewBatch()
			fill(b)
			return must.Err(b.Commit(ctx))
		}
	}
	checkErrors(t, oribi.ErrNoColumn, []failingCall{
		{"Get", `"nope"`, func() error { return must.Err(table.Get(ctx, 1, oribi.Columns("nope"))) }},
		{"GetCells", `"nope"`, func() error { _, _, err := table.GetCells(ctx, 1, oribi.Columns("nope")); return err }},
		{"GetMany", `"nope"`, func() error { return must.Err(table.GetMany(ctx, []any{1}, oribi.Columns("nope"))) }},
		{"Batch.Get", `"nope"`, func() error {
			return must.Err(store.NewBatch().Get(ctx, table, 1, oribi.Columns("nope")))
		}},
		{"Scan", `"nope"`, func() error { return lastErr(table.Scan(ctx, oribi.Columns("nope")).Rows()) }},
		{"Scan where", `"nope"`, func() error { return lastErr(table.Scan(ctx, nope).Rows()) }},
		{"TableOf.Scan where", `"nope"`, func() error { return lastErr(typed.Scan(ctx, nope)) }},
		{"Count", `"nope"`, func() error { return must.Err(table.Count(ctx, nope)) }},
		{"History", `"nope"`, func() error { return lastErr(table.History(ctx, 1, oribi.Columns("nope"))) }},
		{"Diff", `"nope"`, func() error { return lastErr(table.Diff(ctx, 1, store.Visible(), oribi.Columns("nope"))) }},
		{"DeleteWhere", `"nope"`, func() error {
			return must.Err(table.DeleteWhere(ctx, oribi.Where(oribi.Eq("nope", 1))))
		}},
		{"UpdateWhere", `"nope"`, func() error { return must.Err(table.UpdateWhere(ctx, oribi.Row{"nope": 1})) }},
		{"CompactMajor", `"nope"`, func() error { return must.Err(table.CompactMajor(ctx, "nope")) }},
		{"Alter", `"nope"`, func() error { return table.Alter(ctx, oribi.DropColumn("nope")) }},
		{"Commit", `"nope"`, commit(func(b *oribi.Batch) { b.Insert(table, oribi.Row{"k": 7, "nope": 1}) })},
		{"Batch.Err", `"nope"`, func() error {
			b := store.NewBatch()
			b.Insert(table, oribi.Row{"k": 7, "nope": 1})
			return b.Err()
		}},
		{"If", `"nope"`, commit(func(b *oribi.Batch) { b.If(table, oribi.Row{"k": 1}, oribi.Eq("nope", 1)) })},
		{"UpdateIf", `"nope"`, commit(func(b *oribi.Batch) {
			b.UpdateIf(table, oribi.Row{"k": 1, "v": 1}, oribi.Eq("nope", 1))
		})},
		{"BatchOf.If", `"nope"`, commit(func(b *oribi.Batch) { typed.InBatch(b).If(numberRow{K: 1}, oribi.Eq("nope", 1)) })},
	})
	checkErrors(t, oribi.ErrNotFound, []failingCall{
		{"Get", "99", func() error { return must.Err(table.Get(ctx, 99)) }},
		{"GetCells", "99", func() error { _, _, err := table.GetCells(ctx, 99); return err }},
		{"TableOf.Get", "99", func() error { return must.Err(typed.Get(ctx, 99)) }},
		{"GetAs", "99", func() error { return must.Err(oribi.GetAs[numberRow](ctx, table, 99)) }},
		{"Batch.Get", "99", func() error { return must.Err(store.NewBatch().Get(ctx, table, 99)) }},
		{"History", `table "t"`, func() error { return lastErr(table.History(ctx, 99)) }},
		{"TableOf.History", `table "t"`, func() error { return lastErr(typed.History(ctx, 99)) }},
		{"Update", "99", commit(func(b *oribi.Batch) { b.Update(table, oribi.Row{"k": 99, "v": 1}) })},
		{"Patch", "99", func() error { return must.Err(oribi.Patch(ctx, table, numberRow{99, 1})) }},
	})
	checkErrors(t, oribi.ErrNoTable, []failingCall{
		{"Table", `"missing"`, func() error { return must.Err(store.Table("missing")) }},
		{"DropTable", `"missing"`, func() error { return store.DropTable("missing") }},
		{"Commit", "another store", commit(func(b *oribi.Batch) { b.Upsert(foreign, oribi.Row{"k": 1, "v": 1}) })},
		{"Batch.Get", "another store", func() error { return must.Err(store.NewBatch().Get(ctx, foreign, 1)) }},
	})
	checkErrors(t, oribi.ErrRow, []failingCall{
		{"Get", `"k"`, func() error { return must.Err(table.Get(ctx, "text")) }},
		{"GetMany", `"k"`, func() error { return must.Err(table.GetMany(ctx, []any{1, "text"})) }},
		{"Explain", `"k"`, func() error { return must.Err(table.Explain(ctx, "text")) }},
		{"History", `"k"`, func() error { return lastErr(table.History(ctx, "text")) }},
		{"Scan", `"k"`, func() error { return lastErr(table.Scan(ctx, oribi.From("text")).Rows()) }},
		{"Diff", `"k"`, func() error { return lastErr(table.Diff(ctx, 1, store.Visible(), oribi.To("text"))) }},
		{"DeleteRange", `"k"`, func() error { return must.Err(table.DeleteRange(ctx, "text", nil)) }},
		{"Insert", "key 1", commit(func(b *oribi.Batch) { b.Insert(table, oribi.Row{"k": 1, "v": 1}) })},
		{"If", "key 1", commit(func(b *oribi.Batch) { b.If(table, oribi.Row{"k": 1}, oribi.Eq("v", 11)) })},
		{"IfAbsent", "key 1", commit(func(b *oribi.Batch) { b.IfAbsent(table, oribi.Row{"k": 1}) })},
		{"Vectors", `table "t"`, commit(func(b *oribi.Batch) { b.Vectors(oribi.OpInsert, table, nil) })},
		{"Ingest", `table "t"`, func() error {
			_, _, err := table.Ingest(ctx, func(yield func([]*batch.Vector, error) bool) {
				yield(make([]*batch.Vector, 2), nil)
			})
			return err
		}},
		{"TableOf.Ingest", "key 1", func() error {
			_, _, err := typed.Ingest(ctx, func(yield func(numberRow) bool) { yield(numberRow{1, 1}) })
			return err
		}},
	})
	checkErrors(t, oribi.ErrFuture, []failingCall{
		{"Get", `table "t"`, func() error { return must.Err(table.Get(ctx, 1, oribi.AsOf(mvcc.Max-1))) }},
		{"Scan", `table "t"`, func() error { return lastErr(table.Scan(ctx, oribi.AsOf(mvcc.Max-1)).Rows()) }},
		{"SnapshotAt", "snapshot", func() error { return must.Err(store.SnapshotAt(ctx, mvcc.Max-1)) }},
		{"RestoreTo", `table "t"`, func() error { return must.Err(table.RestoreTo(ctx, mvcc.Max-1)) }},
	})
	checkErrors(t, oribi.ErrSchema, []failingCall{
		{"CreateTable", `"new"`, func() error { return must.Err(store.CreateTable("new", nil)) }},
		{"Rename", `table "t"`, func() error { return table.Rename(ctx, "") }},
		{"Typed", `"x"`, func() error { return must.Err(oribi.Typed[struct{ X int64 }](table)) }},
		{"GetAs", `"x"`, func() error { return must.Err(oribi.GetAs[struct{ X int64 }](ctx, table, 1)) }},
		{"ScanAs", `"x"`, func() error { return lastErr(oribi.ScanAs[struct{ X int64 }](ctx, table)) }},
		{"Patch", `"x"`, func() error { return must.Err(oribi.Patch(ctx, table, struct{ X int64 }{})) }},
		{"SchemaOf", "int", func() error { return must.Err(oribi.SchemaOf[int]()) }},
		{"Alter", `"k"`, func() error { return table.Alter(ctx, oribi.DropColumn("k")) }},
	})
	checkErrors(t, oribi.ErrExists, []failingCall{
		{"CreateTable", `"t"`, func() error { return must.Err(store.CreateTable("t", table.Schema())) }},
		{"Alter", `"v"`, func() error {
			return table.Alter(ctx, oribi.AddColumn(schema.Column{Name: "v", Type: schema.Int64, Nullable: true}))
		}},
	})
	b := store.NewBatch()
	must.Get(b.Commit(ctx))(t)
	checkErrors(t, oribi.ErrCommitted, []failingCall{{"Commit", "commit", func() error {
		return must.Err(b.Commit(ctx))
	}}})
	other := must.Get(store.Snapshot(ctx))(t)
	other.Close()
	checkErrors(t, oribi.ErrClosed, []failingCall{{"Get", `table "t"`, func() error {
		return must.Err(table.Get(ctx, 1, oribi.At(other)))
	}}})
	checkErrors(t, nil, []failingCall{
		{"Options.Validate", "MemoryLimit", func() error {
			return (&oribi.Options{MemoryLimit: 1, CellLimit: -1}).Validate()
		}},
		{"Diff", `table "t"`, func() error { return lastErr(table.Diff(ctx, 2, 1)) }},
		{"Open", "MemoryLimit", func() error { return must.Err(oribi.Open("/x", &oribi.Options{MemoryLimit: 1})) }},
	})
	missing := filepath.Join(t.TempDir(), "missing")
	checkErrors(t, oribi.ErrNotStore, []failingCall{
		{"Open", missing, func() error { return must.Err(oribi.Open(missing, &oribi.Options{ErrorIfMissing: true})) }},
	})
	// A dropped table.
	must.Do(t, store.DropTable("t"))
	checkErrors(t, oribi.ErrNoTable, []failingCall{
		{"Get", `table "t"`, func() error { return must.Err(table.Get(ctx, 1)) }},
		{"Scan", `table "t"`, func() error { return lastErr(table.Scan(ctx).Rows()) }},
		{"Flush", `table "t"`, func() error { return table.Flush(ctx) }},
		{"Commit", `table "t"`, commit(func(b *oribi.Batch) { b.Upsert(table, oribi.Row{"k": 1, "v": 1}) })},
		{"Truncate", `table "t"`, func() error { return must.Err(table.Truncate(ctx)) }},
		{"Rename", `table "t"`, func() error { return table.Rename(ctx, "u") }},
		{"Alter", `table "t"`, func() error { return table.Alter(ctx, oribi.SetHistory(time.Hour)) }},
	})
}

// An iteration over a history or a difference that runs when the store is closed ends at its next
// step.
func TestHistoryAndDiffEndAfterClose(t *testing.T) {
	ctx := t.Context()
	run := func(name string, begin func(store *oribi.Store, table *oribi.Table,
		typed *oribi.TableOf[numberRow]) iter.Seq2[any, error]) {
		store, table, typed := openNumbers(t, vfs.NewMem(), false)
		must.Get(typed.Put(ctx, numberRow{1, 11}, numberRow{2, 21}))(t)
		steps := 0
		err := lastErr(func(yield func(any, error) bool) {
			begin(store, table, typed)(func(v any, err error) bool {
				if err == nil {
					if steps++; steps == 1 {
						must.Do(t, store.Close())
					}
				}
				return yield(v, err)
			})
		})
		must.Fail(t, err, oribi.ErrClosed, name)
		must.Equal(t, steps, 1, name, "steps")
	}
	run("Table.History", func(_ *oribi.Store, table *oribi.Table, _ *oribi.TableOf[numberRow]) iter.Seq2[any, error] {
		return anySeq(table.History(ctx, 1))
	})
	run("TableOf.History", func(_ *oribi.Store, _ *oribi.Table, typed *oribi.TableOf[numberRow]) iter.Seq2[any, error] {
		return anySeq(typed.History(ctx, 1))
	})
	run("Table.Diff", func(store *oribi.Store, table *oribi.Table, _ *oribi.TableOf[numberRow]) iter.Seq2[any, error] {
		return anySeq(table.Diff(ctx, mvcc.First, store.Visible()))
	})
	run("TableOf.Diff", func(store *oribi.Store, _ *oribi.Table,
		typed *oribi.TableOf[numberRow]) iter.Seq2[any, error] {
		return anySeq(typed.Diff(ctx, mvcc.First, store.Visible()))
	})
}

func anySeq[T any](seq iter.Seq2[T, error]) iter.Seq2[any, error] {
	return func(yield func(any, error) bool) {
		seq(func(v T, err error) bool { return yield(v, err) })
	}
}

// Errors about an unknown name end with the nearest name, once.
func TestErrorsNameTheNearestTableOrColumn(t *testing.T) {
	store := must.Get(oribi.Open("/errors",
		&oribi.Options{FS: vfs.NewMem(), Clock: mvcc.NewLogicalClock(mvcc.First), Manual: true}))(t)
	t.Cleanup(func() { store.Close() })
	type fileRow struct {
		Path string `oribi:"path,key"`
		Size int64
	}
	files := must.Get(oribi.OpenTable[fileRow](store, "files"))(t)
	table, ctx := files.Table, t.Context()
	must.Get(files.Put(ctx, fileRow{"a", 1}))(t)
	commit := func(fill func(b *oribi.Batch)) error {
		b := store.NewBatch()
		fill(b)
		return must.Err(b.Commit(ctx))
	}
	size, path := `; did you mean "size"?`, `; did you mean "path"?`
	for _, c := range []struct {
		name string
		want string
		err  error
	}{
		{"Table", `oribi: table "fils": no such table; did you mean "files"?`, must.Err(store.Table("fils"))},
		{"DropTable", `oribi: drop table "fils": no such table; did you mean "files"?`, store.DropTable("fils")},
		{"Table far from all", `oribi: table "x": no such table; there is "files"`, must.Err(store.Table("x"))},
		{"Get", size, must.Err(table.Get(ctx, "a", oribi.Columns("sise")))},
		{"Get far from all", `oribi: table "files": column "x": no such column; there is "path", "size"`,
			must.Err(table.Get(ctx, "a", oribi.Columns("x")))},
		{"Get by a row", path, must.Err(table.Get(ctx, oribi.Row{"pth": "a"}))},
		{"Get by a row that is longer", path, must.Err(table.Get(ctx, oribi.Row{"path": "a", "pth": "a"}))},
		{"Scan", size, lastErr(table.Scan(ctx, oribi.Columns("sise")).Rows())},
		{"Where", size, lastErr(table.Scan(ctx, oribi.Where(oribi.Not(oribi.Eq("sise", 1)))).Rows())},
		{"Count", size, must.Err(table.Count(ctx, oribi.Where(oribi.IsNull("sise"))))},
		{"History", size, lastErr(table.History(ctx, "a", oribi.Columns("sise")))},
		{"Diff", size, lastErr(table.Diff(ctx, 1, store.Visible(), oribi.Columns("sise")))},
		{"UpdateWhere", size, must.Err(table.UpdateWhere(ctx, oribi.Row{"sise": 1}))},
		{"CompactMajor", size, must.Err(table.CompactMajor(ctx, "sise"))},
		{"DropColumn", size, table.Alter(ctx, oribi.DropColumn("sise"))},
		{"RenameColumn", size, table.Alter(ctx, oribi.RenameColumn("sise", "bytes"))},
		{"SetDefault", size, table.Alter(ctx, oribi.SetDefault("sise", 1))},
		{"Upsert", size, commit(func(b *oribi.Batch) { b.Upsert(table, oribi.Row{"path": "a", "sise": 1}) })},
		{"Delete", path, commit(func(b *oribi.Batch) { b.Delete(table, oribi.Row{"pth": "a"}) })},
		{"UpdateIf", size, commit(func(b *oribi.Batch) {
			b.UpdateIf(table, oribi.Row{"path": "a", "size": 1}, oribi.Eq("sise", 1))
		})},
		{"BatchOf.If", size, commit(func(b *oribi.Batch) { files.InBatch(b).If(fileRow{Path: "a"}, oribi.Eq("sise", 1)) })},
		{"GetAs", size, must.Err(oribi.GetAs[struct{ Sise int64 }](ctx, table, "a"))},
		{"Typed", size, must.Err(oribi.Typed[struct {
			Path string `oribi:"path,key"`
			Sise int64
		}](table))},
	} {
		if c.err == nil || !strings.HasSuffix(c.err.Error(), c.want) {
			t.Errorf("%s: %v, want an error that ends with %s", c.name, c.err, c.want)
		} else if n := strings.Count(c.err.Error(), "did you mean") + strings.Count(c.err.Error(), "there is"); n != 1 {
			t.Errorf("%s: %v: %d hints, want one", c.name, c.err, n)
		}
	}
}
