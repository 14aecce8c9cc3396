package client

import (
	"bytes"
	"testing"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/internal/kudutest"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/schema"
)

// Rows of the longest cells and keys that servers take are written in requests that fit, and are read.
func TestServersTakeTheLongestCells(t *testing.T) {
	cluster := kudutest.NewCluster(t, 1)
	cluster.Start()
	c := must.Get(Connect(t.Context(), []string{cluster.Master}, nil))(t)
	defer c.Close()
	s := must.Get(schema.New([]schema.Column{{Name: "k", Type: schema.Binary}, {Name: "a", Type: schema.Binary},
		{Name: "b", Type: schema.String}}, 1))(t)
	table := must.Get(c.CreateTable(t.Context(), &TableSpec{Name: "wide", Schema: s, Replicas: 1}))(t)
	session := must.Get(table.NewSession(t.Context(), &SessionOptions{MemoryBytes: 8 << 20}))(t)
	defer session.Close()
	const n, cell = 300, 64 << 10
	rows := batch.New(s.Columns, n)
	for i := range n {
		key := bytes.Repeat([]byte{byte(i), byte(i >> 8)}, schema.MaxKeyBytes/2)
		rows.Columns[0].SetCell(i, key)
		rows.Columns[1].SetCell(i, bytes.Repeat([]byte{byte(i)}, cell))
		rows.Columns[2].SetCell(i, bytes.Repeat([]byte{byte(i) & 0x7f}, cell))
	}
	must.Do(t, session.ApplyBatch(t.Context(), Insert, rows))
	done := must.Get(session.Flush(t.Context()))(t)
	must.Equal(t, done.RowErrors, nil)
	must.Equal(t, done.Rows, n)
	for _, o := range []ScanOptions{{}, {Ordered: true, BatchBytes: 1, MemoryBytes: 1}} {
		scan := must.Get(table.Scan(t.Context(), o))(t)
		found := 0
		for scan.Next() {
			b := scan.Batch()
			for row := range b.Rows() {
				key := b.Columns[0].Bytes[row]
				i := int(key[0]) | int(key[1])<<8
				for k, v := range b.Columns {
					if !bytes.Equal(v.Bytes[row], rows.Columns[k].Bytes[i]) {
						t.Fatalf("row %d: another cell in column %d", i, k)
					}
				}
				found++
			}
		}
		must.Do(t, scan.Close())
		must.Equal(t, found, n)
	}
	long := batch.New(s.Columns, 1)
	long.Columns[0].SetCell(0, make([]byte, schema.MaxKeyBytes+1))
	must.Fail(t, session.ApplyBatch(t.Context(), Insert, long), ErrRow)
}

// Inserts get values of the auto-incrementing column, upserts give them; immutable columns are set once.
func TestServersOfSpecialColumns(t *testing.T) {
	cluster := kudutest.NewCluster(t, 1)
	cluster.Start()
	c := must.Get(Connect(t.Context(), []string{cluster.Master}, nil))(t)
	defer c.Close()
	s := must.Get(schema.New([]schema.Column{{Name: "k", Type: schema.Int32}, {Name: schema.AutoIncrementName,
		Type: schema.Int64, AutoIncrement: true}, {Name: "v", Type: schema.Int64, Default: int64Cell(9)},
		{Name: "m", Type: schema.Int64, Nullable: true, Immutable: true}}, 2))(t)
	table := must.Get(c.CreateTable(t.Context(), &TableSpec{Name: "special", Schema: s, Replicas: 1}))(t)
	session := must.Get(table.NewSession(t.Context(), nil))(t)
	defer session.Close()
	apply := func(op Op, cells ...[]byte) {
		t.Helper()
		set := batch.MakeBitmap(4)
		for i, cell := range cells {
			if cell != nil {
				set.Set(i)
			}
		}
		must.Do(t, session.ApplySet(t.Context(), op, cells, set))
	}
	apply(Insert, int32Cell(1), nil, nil, int64Cell(5))
	apply(Insert, int32Cell(1), nil, int64Cell(3), nil)
	apply(Upsert, int32Cell(1), int64Cell(100), int64Cell(4), int64Cell(6))
	apply(Insert, int32Cell(1), nil, int64Cell(7), nil)
	must.Do(t, session.ApplyBatch(t.Context(), Insert,
		batchOf([]schema.Column{s.Columns[0], s.Columns[3]}, [][]byte{int32Cell(2), int64Cell(8)})))
	apply(Upsert, int32Cell(1), int64Cell(100), int64Cell(1), int64Cell(6)) // even the same value
	apply(UpsertIgnore, int32Cell(1), int64Cell(1), int64Cell(1), int64Cell(0))
	apply(Update, int32Cell(1), int64Cell(2), nil, int64Cell(0))
	done := must.Get(session.Flush(t.Context()))(t)
	must.Equal(t, len(done.RowErrors), 2)
	for i, key := range []string{"100", "2"} {
		must.Fail(t, done.RowErrors[i], ErrImmutable)
		must.Equal(t, done.RowErrors[i].Key, `{"k":1,"auto_incrementing_id":`+key+`}`)
	}
	scan := must.Get(table.Scan(t.Context(), ScanOptions{At: done.Timestamp + 1, Ordered: true}))(t)
	must.Equal(t, must.Get(rowsOf(scan))(t), [][][]byte{
		{int32Cell(1), int64Cell(1), int64Cell(1), int64Cell(5)}, {int32Cell(1), int64Cell(2), int64Cell(3), nil},
		{int32Cell(1), int64Cell(100), int64Cell(4), int64Cell(6)}, {int32Cell(1), int64Cell(101), int64Cell(7), nil},
		{int32Cell(2), int64Cell(102), int64Cell(9), int64Cell(8)}})
}
