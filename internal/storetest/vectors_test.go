package storetest

import (
	"testing"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/mvcc"
	"github.com/oribi-db/oribi/schema"
	"github.com/oribi-db/oribi/vfs"
)

// Vectors belong to the caller again when Batch.Vectors returns, even if a key is one of their
// cells: writes to them before the commit do not change the batch.
func TestVectorsAreCopiedBeforeTheCommit(t *testing.T) {
	store := must.Get(oribi.Open("/vectors",
		&oribi.Options{FS: vfs.NewMem(), Clock: mvcc.NewLogicalClock(mvcc.First), Manual: true}))(t)
	defer store.Close()
	table := tableOf(t, store, "t", "k*:string v:string")
	b := store.NewBatch()
	keys, values := batch.NewVector(schema.String, 0), batch.NewVector(schema.String, 0)
	key, value := []byte("key"), []byte("value")
	keys.AppendCell(key)
	values.AppendCell(value)
	b.Vectors(oribi.OpInsert, table, []*batch.Vector{keys, values})
	copy(key, "xxx")
	copy(value, "yyyyy")
	must.Get(b.Commit(t.Context()))(t)
	row, err := table.Get(t.Context(), "key")
	if err != nil || row["k"] != "key" || row["v"] != "value" {
		t.Errorf("%v, %v", row, err)
	}
}

// malformedVectors returns pairs of an INT64 and a STRING column, one of them malformed.
func malformedVectors() map[string][]*batch.Vector {
	pair := func(bend func(k, v *batch.Vector)) []*batch.Vector {
		k, v := batch.NewVector(schema.Int64, 2), batch.NewVector(schema.String, 2)
		batch.Values[int64](k)[1] = 1
		bend(k, v)
		return []*batch.Vector{k, v}
	}
	return map[string][]*batch.Vector{
		"short data":            pair(func(k, v *batch.Vector) { k.Data = k.Data[:8] }),
		"no data":               pair(func(k, v *batch.Vector) { k.Data = nil }),
		"negative length":       pair(func(k, v *batch.Vector) { k.Len, v.Len = -1, -1 }),
		"short strings":         pair(func(k, v *batch.Vector) { v.Bytes = v.Bytes[:1] }),
		"short presence bitmap": pair(func(k, v *batch.Vector) { v.Present = batch.Bitmap{} }),
		"code outside the dictionary": pair(func(k, v *batch.Vector) {
			v.UseCodes(&batch.Dictionary{}, 2)
		}),
		"different lengths": pair(func(k, v *batch.Vector) { v.Reset(1) }),
	}
}

func TestMalformedVectorsAreErrors(t *testing.T) {
	store := must.Get(oribi.Open("/malformed",
		&oribi.Options{FS: vfs.NewMem(), Clock: mvcc.NewLogicalClock(mvcc.First), Manual: true}))(t)
	defer store.Close()
	table := tableOf(t, store, "t", "k*:int64 v:string?")
	for name, vectors := range malformedVectors() {
		b := store.NewBatch()
		b.Vectors(oribi.OpInsert, table, vectors)
		must.Fail(t, must.Err(b.Commit(t.Context())), oribi.ErrRow, name, "Vectors")
		one := func(yield func([]*batch.Vector, error) bool) { yield(vectors, nil) }
		must.Fail(t, must.Err2(table.Ingest(t.Context(), one)), oribi.ErrRow, name, "Ingest")
	}
	must.Equal(t, must.Get(table.Count(t.Context()))(t), 0, "rows")
}

// Array vectors with another number of cells than the first vector are refused too.
func TestArrayVectorsOfAnotherLengthAreErrors(t *testing.T) {
	store := must.Get(oribi.Open("/arrays", &oribi.Options{FS: vfs.NewMem(), Manual: true}))(t)
	defer store.Close()
	table := tableOf(t, store, "t", "k*:int64 a:array(int32)")
	for _, arrays := range []int{0, 1, 3} {
		a := batch.NewArrays(schema.Int32)
		for range arrays {
			a.AppendArray(nil)
		}
		b := store.NewBatch()
		b.Vectors(oribi.OpInsert, table, []*batch.Vector{batch.NewVector(schema.Int64, 2), a})
		must.Fail(t, must.Err(b.Commit(t.Context())), oribi.ErrRow, arrays, "arrays for 2 keys")
	}
}

// A scan is not affected if its caller compacts the returned batch.
func TestCompactedBatchesOfAScanContainItsRows(t *testing.T) {
	store := must.Get(oribi.Open("/compact",
		&oribi.Options{FS: vfs.NewMem(), Clock: mvcc.NewLogicalClock(mvcc.First), Manual: true}))(t)
	defer store.Close()
	table := numbersTable(t, store, "numbers")
	const rows = 20_000
	fill := func(from, to int64) {
		k, v := batch.NewVector(schema.Int64, int(to-from)), batch.NewVector(schema.Int64, int(to-from))
		for i := range batch.Values[int64](k) {
			batch.Values[int64](k)[i], batch.Values[int64](v)[i] = from+int64(i), (from+int64(i))%10
		}
		b := store.NewBatch()
		b.Vectors(oribi.OpInsert, table, []*batch.Vector{k, v})
		must.Get(b.Commit(t.Context()))(t)
	}
	fill(0, rows/2)
	must.Do(t, table.Flush(t.Context()))
	fill(rows/2, rows)
	next := int64(3)
	for b := range must.All(t, table.Scan(t.Context(), oribi.Where(oribi.Eq("v", 3))).Batches()) {
		b.Compact()
		for i, k := range batch.Values[int64](b.Columns[0]) {
			must.Equal(t, k, next, "row")
			must.Equal(t, batch.Values[int64](b.Columns[1])[i], 3)
			next += 10
		}
	}
	must.Equal(t, next, rows+3, "key after the scan")
}
