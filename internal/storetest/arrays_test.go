package storetest

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/schema"
	"github.com/oribi-db/oribi/vfs"
)

// arraysTable is a table of int64 key k, tags array(string) and nullable hits array(int32).
func arraysTable(t *testing.T) (*oribi.Store, *oribi.Table) {
	t.Helper()
	store := must.Get(
		oribi.Open("/arrays", &oribi.Options{FS: vfs.NewMem(), Manual: true, History: oribi.HistoryForever}))(t)
	t.Cleanup(func() { store.Close() })
	table := tableOf(t, store, "arrays", "k*:int64 tags:array(string) hits:array(int32)?")
	return store, table
}

type tagged struct {
	K    int64    `oribi:"k,key"`
	Tags []string `oribi:"tags"`
	Hits []int32  `oribi:"hits"`
}

func TestInvalidArrayGoValuesAreRefused(t *testing.T) {
	store, table := arraysTable(t)
	long := strings.Repeat("x", 40<<10)
	for name, test := range map[string]struct {
		row  oribi.Row
		want string
	}{
		"single value": {oribi.Row{"k": 1, "tags": "a"},
			`column "tags": a string does not fit type array(string)`},
		"other elements": {oribi.Row{"k": 1, "tags": []string{}, "hits": []string{"a"}},
			`column "hits": element 0: a string does not fit type int32`},
		"element out of range": {oribi.Row{"k": 1, "tags": []string{}, "hits": []int{1, 1 << 31}},
			`column "hits": element 1: 2147483648 is out of range for int32`},
		"array in an array": {oribi.Row{"k": 1, "tags": []any{[]string{"a"}}}, `column "tags": element 0`},
		"not UTF-8": {oribi.Row{"k": 1, "tags": []string{"a", "\xff"}},
			`column "tags": element 1: is not valid UTF-8`},
		"NULL":      {oribi.Row{"k": 1, "tags": nil}, `column "tags": NULL`},
		"nil slice": {oribi.Row{"k": 1, "tags": []string(nil)}, `column "tags": NULL`},
		"too many elements": {oribi.Row{"k": 1, "tags": []string{}, "hits": make([]*int32, 65536)},
			`column "hits": an array of 65536 elements, limit 65535`},
		"too many bytes": {oribi.Row{"k": 1, "tags": []string{long, long}},
			`column "tags": 81931 bytes, limit 65536 (Options.CellLimit)`},
	} {
		b := store.NewBatch()
		b.Insert(table, test.row)
		if _, err := b.Commit(context.Background()); !errors.Is(err, oribi.ErrRow) ||
			!strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v, want %s", name, err, test.want)
		}
	}
	b := store.NewBatch()
	b.Insert(table, oribi.Row{"k": 1, "tags": [2]string{"a", "b"}, "hits": make([]*int32, 65535)})
	must.Do(t, must.Err(b.Commit(context.Background())), "65535 NULL elements, and a Go array")
}

func TestInvalidArrayCellsAndVectorsAreRefused(t *testing.T) {
	store, table := arraysTable(t)
	key, none := make([]byte, 8), schema.AppendArray(nil, schema.String, nil)
	for name, cell := range map[string][]byte{"not an array": {1}, "elements of another width": {1, 0, 1, 5, 0},
		"bits after the last": {1, 0, 2}} {
		b := store.NewBatch()
		b.Cells(oribi.OpInsert, table, [][]byte{key, none, cell}, nil)
		if err := b.Err(); !errors.Is(err, oribi.ErrRow) || errors.Is(err, oribi.ErrCorrupt) ||
			!strings.Contains(err.Error(), "no cell of array(int32)") {
			t.Errorf("%s: %v", name, err)
		}
	}
	vectors := func() []*batch.Vector {
		keys, tags, hits := batch.NewVector(schema.Int64, 1),
			batch.NewArrays(schema.String), batch.NewArrays(schema.Int32)
		tags.AppendArray([][]byte{[]byte("a")})
		hits.AppendNullArray()
		return []*batch.Vector{keys, tags, hits}
	}
	for name, spoil := range map[string]func(v []*batch.Vector){
		"elements of another type": func(v []*batch.Vector) { v[1].Type = schema.Binary },
		"arrays for single values": func(v []*batch.Vector) {
			v[0] = batch.NewArrays(schema.Int64)
			v[0].AppendArray(nil)
		},
		"NULL":              func(v []*batch.Vector) { v[1].Present = batch.MakeBitmap(1) },
		"bad element":       func(v []*batch.Vector) { v[1].Elements.Bytes[0] = []byte{0xff} },
		"too many elements": func(v []*batch.Vector) { v[2].ResetArrays(0); v[2].AppendArray(make([][]byte, 65536)) },
		"too many bytes":    func(v []*batch.Vector) { v[1].Elements.Bytes[0] = make([]byte, 70<<10) },
		"too many fixed bytes": func(v []*batch.Vector) {
			v[2].ResetArrays(0)
			v[2].Elements.Extend(20 << 10)
			v[2].SetOffsets([]uint32{0, 20 << 10})
		},
	} {
		v := vectors()
		spoil(v)
		b := store.NewBatch()
		b.Vectors(oribi.OpInsert, table, v)
		if err := b.Err(); !errors.Is(err, oribi.ErrRow) || errors.Is(err, oribi.ErrCorrupt) {
			t.Errorf("%s: %v", name, err)
		}
		v = vectors()
		spoil(v)
		if _, _, err := table.Ingest(context.Background(), once(v)); !errors.Is(err, oribi.ErrRow) ||
			errors.Is(err, oribi.ErrCorrupt) {
			t.Errorf("%s, ingest: %v", name, err)
		}
	}
	b := store.NewBatch()
	b.Vectors(oribi.OpInsert, table, vectors())
	must.Do(t, must.Err(b.Commit(context.Background())))
}

// A slice of values cannot represent a NULL element: reading one into it is an error, not a zero.
func TestStructsRefuseNullElementsOfNonPointerTypes(t *testing.T) {
	ctx := context.Background()
	store, table := arraysTable(t)
	typed := must.Get(oribi.Typed[tagged](table))(t)
	b := store.NewBatch()
	typed.InBatch(b).Insert(tagged{K: 1, Tags: nil, Hits: nil}, tagged{K: 2, Tags: []string{"a"}, Hits: []int32{}})
	b.Insert(table, oribi.Row{"k": 3, "tags": []string{}, "hits": []any{1, nil}})
	must.Get(b.Commit(ctx))(t)
	// tags is not nullable, so a nil slice is an empty array; hits is nullable.
	for k, want := range map[int64]tagged{1: {K: 1, Tags: []string{}},
		2: {K: 2, Tags: []string{"a"}, Hits: []int32{}}} {
		must.Equal(t, must.Get(typed.Get(ctx, k))(t), want)
	}
	if row, err := typed.Get(ctx, 3); !errors.Is(err, oribi.ErrSchema) ||
		!strings.Contains(err.Error(), `column "hits": element 1 is NULL`) {
		t.Errorf("%+v, %v", row, err)
	}
	var last error
	for _, err := range typed.Scan(ctx) {
		last = err
	}
	must.Fail(t, last, oribi.ErrSchema, "scan")
	type wrong struct {
		K    int64   `oribi:"k,key"`
		Tags []int32 `oribi:"tags"`
	}
	if _, err := oribi.Typed[wrong](table); !errors.Is(err, oribi.ErrSchema) ||
		!strings.Contains(err.Error(), "does not fit type array(string)") {
		t.Error(err)
	}
}

func TestSchemaOfMakesArraysOfSlices(t *testing.T) {
	type row struct {
		K uint64 `oribi:",key"`
		A []int32
		B []*string
		C *[]float64
		D [][]byte
		E []byte
		F oribi.Int128
	}
	s := must.Get(oribi.SchemaOf[row]())(t)
	var got []string
	for i := range s.Columns {
		name := s.Columns[i].TypeName()
		if s.Columns[i].Nullable {
			name += "?"
		}
		got = append(got, name)
	}
	must.Equal(t, strings.Join(got, " "),
		"uint64 array(int32) array(string) array(double)? array(binary) binary int128")
	must.Fail(t, must.Err(oribi.SchemaOf[struct{ A [][]int32 }]()), oribi.ErrSchema, "arrays of arrays")
}
