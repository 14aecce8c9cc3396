package arrowio

import (
	"bytes"
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/internal/prooftest/values"
	"github.com/oribi-db/oribi/schema"
)

// formats write the rows of a reader and open what they wrote.
var formats = map[string]struct {
	write func(w *bytes.Buffer, r array.RecordReader, mem memory.Allocator) (int64, error)
	open  func(data []byte, mem memory.Allocator) (*File, error)
}{
	"parquet": {
		func(w *bytes.Buffer, r array.RecordReader, mem memory.Allocator) (int64, error) {
			return WriteParquet(w, r, ParquetOptions{RowGroupRows: 700})
		},
		func(data []byte, mem memory.Allocator) (*File, error) {
			return OpenParquet(bytes.NewReader(data), int64(len(data)), OpenOptions{Allocator: mem})
		},
	},
	"arrow": {
		func(w *bytes.Buffer, r array.RecordReader, mem memory.Allocator) (int64, error) {
			return WriteFile(w, r, ArrowOptions{Allocator: mem})
		},
		func(data []byte, mem memory.Allocator) (*File, error) {
			return OpenArrow(bytes.NewReader(data), int64(len(data)), OpenOptions{Allocator: mem})
		},
	},
	"stream": {
		func(w *bytes.Buffer, r array.RecordReader, mem memory.Allocator) (int64, error) {
			return WriteStream(w, r, ArrowOptions{Zstd: true, Allocator: mem})
		},
		func(data []byte, mem memory.Allocator) (*File, error) {
			return OpenStream(bytes.NewReader(data), OpenOptions{Allocator: mem})
		},
	},
}

// checked returns an allocator that fails the test if a buffer is not freed.
func checked(t *testing.T) memory.Allocator {
	mem := memory.NewCheckedAllocator(memory.NewGoAllocator())
	t.Cleanup(func() { mem.AssertSize(t, 0) })
	return mem
}

// exported writes the rows of a scan.
func exported(t *testing.T, format string, scan *oribi.Scan, mem memory.Allocator) []byte {
	t.Helper()
	r := must.Get(NewReader(scan, ReaderOptions{Allocator: mem}))(t)
	defer r.Release()
	var out bytes.Buffer
	must.Get(formats[format].write(&out, r, mem))(t)
	return out.Bytes()
}

// opened opens a file and reads from it.
func opened(t *testing.T, format string, data []byte, mem memory.Allocator, o ReadOptions) (*File, *Rows) {
	t.Helper()
	f := must.Get(formats[format].open(data, mem))(t)
	rows := must.Get(f.Read(context.Background(), o))(t)
	return f, rows
}

// Export and load give the same table: rows, types, key, and properties.
func TestExportAndIngestGiveTheSameTable(t *testing.T) {
	for format := range formats {
		for _, n := range []int{0, 1, 63, 64, 65, 3000} {
			t.Run(fmt.Sprintf("%s/rows=%d", format, n), func(t *testing.T) {
				store, mem := openStore(t), checked(t)
				table := everyTable(t, store, "t", n, 7, oribi.Comment("all types"), oribi.RowFile(schema.FullRowFile),
					oribi.Expires("timestamp", 24*time.Hour), oribi.History(time.Hour),
					oribi.Index("by_time", "timestamp", "int32"), oribi.Unique("by_name", "name", "k"))
				want := rowsOf(t, table)
				f, rows := opened(t, format,
					exported(t, format, table.Scan(context.Background()), mem), mem, ReadOptions{})
				defer f.Close()
				defer rows.Release()
				if f.Rows() >= 0 && f.Rows() != int64(len(want)) {
					t.Errorf("the file states %d rows, want %d", f.Rows(), len(want))
				}
				d := f.Definition()
				s := must.Get(d.Table())(t)
				loaded := must.Get(store.CreateTable("loaded", s, d.Options()...))(t)
				if _, n, err := Ingest(context.Background(), loaded, rows); err != nil || n != int64(len(want)) {
					t.Fatalf("%d rows, want %d: %v", n, len(want), err)
				}
				same(t, "loaded", rowsOf(t, loaded), want)
				must.Equal(t, withoutIDs(loaded.Schema()), withoutIDs(table.Schema()))
				a, b := loaded.Properties(), table.Properties()
				b.ID, b.HistoryFloor, b.SchemaVersion, b.Expiry.Since = a.ID, a.HistoryFloor,
					a.SchemaVersion, a.Expiry.Since
				must.Equal(t, a, b)
				must.Equal(t, loaded.Indexes(), table.Indexes())
			})
		}
	}
}

func withoutIDs(s *schema.Schema) []schema.Column {
	columns := append([]schema.Column(nil), s.Columns...)
	for i := range columns {
		columns[i].ID, columns[i].ReadDefault = 0, nil
	}
	return columns
}

// Random tables go through each format, whole and in part: columns in another order, predicates
// that name others. The oracle is the table's own scan.
func TestRandomTablesRoundTrip(t *testing.T) {
	for seed := range uint64(12) {
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
			store, mem, r := openStore(t), checked(t), values.NewRand(seed)
			var s *schema.Schema
			for wide := true; wide; {
				s, wide = values.RandomSchema(r), false
				for _, c := range s.Columns {
					wide = wide || c.Type == schema.Int128 || c.AutoIncrement
				}
			}
			table := must.Get(store.CreateTable("t", s))(t)
			fillRandom(t, store, table, r.IntN(2500), seed)
			for format := range formats {
				data := exported(t, format, table.Scan(context.Background()), mem)
				var columns []string
				for _, i := range r.Perm(len(s.Columns))[:1+r.IntN(len(s.Columns))] {
					columns = append(columns, s.Columns[i].Name)
				}
				var where []oribi.Predicate
				for range r.IntN(3) {
					c := &s.Columns[r.IntN(len(s.Columns))]
					cell := values.RandomCell(r, c)
					switch op := r.IntN(6); {
					case c.Type == schema.Array || op == 0:
						where = append(where, oribi.NotNull(c.Name))
					case op == 1:
						where = append(where, oribi.Or(oribi.IsNull(c.Name), oribi.Gt(c.Name, oribi.Cell(cell))))
					case op == 2:
						where = append(where, oribi.Ne(c.Name, oribi.Cell(cell)))
					case op == 3:
						where = append(where, oribi.Le(c.Name, oribi.Cell(cell)))
					case op == 4:
						where = append(where, oribi.Not(oribi.Lt(c.Name, oribi.Cell(cell))))
					default:
						where = append(where, oribi.Eq(c.Name, oribi.Cell(cell)))
					}
				}
				want := rowsOf(t, table, oribi.Columns(columns...), oribi.Where(where...))
				f, rows := opened(t, format, data, mem, ReadOptions{Columns: columns, Where: where})
				var got []string
				for b, err := range rows.Batches() {
					must.Do(t, err)
					got = selectedRows(got, b)
				}
				rows.Release()
				same(t, format+", batches", got, want)
				if format == "stream" { // can be read once
					f.Close()
					continue
				}
				again := must.Get(f.Read(context.Background(), ReadOptions{Columns: columns, Where: where}))(t)
				same(t, format+", record batches", recordRows(t, again), want)
				again.Release()
				f.Close()
			}
		})
	}
}

// recordRows returns the rows of a reader as text.
func recordRows(t *testing.T, r array.RecordReader) []string {
	t.Helper()
	_, batches := must.Get2(Batches(r))(t)
	var rows []string
	for b, err := range batches {
		must.Do(t, err)
		rows = selectedRows(rows, b)
	}
	return rows
}

// Vectors that become arrays are not reused: record batches stay as they are while the scan goes
// on, and after the reader is released.
func TestRecordBatchesStayValid(t *testing.T) {
	for _, dictionary := range []bool{false, true} {
		store, mem := openStore(t), checked(t)
		table := everyTable(t, store, "t", 3000, 3)
		must.Do(t, table.Compact(context.Background()))
		var o ReaderOptions
		if o.Allocator = mem; dictionary {
			o.Dictionary = []string{"name", "string", "binary", "varchar(7)"}
		}
		for _, where := range []oribi.ScanOption{nil, oribi.Where(oribi.Gt("int64", 0))} {
			r := must.Get(NewReader(table.Scan(context.Background(), where), o))(t)
			var kept []arrow.RecordBatch
			for r.Next() {
				rec := r.RecordBatch()
				rec.Retain()
				kept = append(kept, rec)
			}
			must.Do(t, r.Err())
			s := r.Schema()
			r.Release()
			// Other scans would overwrite memory that is reused.
			for range 3 {
				rowsOf(t, table, oribi.Desc())
			}
			all := must.Get(array.NewRecordReader(s, kept))(t)
			same(t, "kept", recordRows(t, all), rowsOf(t, table, where))
			all.Release()
			for _, rec := range kept {
				rec.Release()
			}
		}
	}
}

// A transaction's scan sees its own writes, between rows of the table.
func TestReaderOfTransaction(t *testing.T) {
	store, mem := openStore(t), checked(t)
	table := everyTable(t, store, "t", 2000, 5)
	must.Do(t, store.Update(context.Background(), func(tx *oribi.Tx) error {
		for k := range 40 {
			if err := tx.Upsert(table, oribi.Row{"k": k * 50_000_000, "name": "own", "int64": k}); err != nil {
				return err
			}
		}
		var want []string
		for cells, err := range tx.Scan(table).Cells() {
			if err != nil {
				return err
			}
			want = append(want, rowText(cells))
		}
		r, err := NewReader(tx.Scan(table), ReaderOptions{Allocator: mem})
		if err != nil {
			return err
		}
		defer r.Release()
		same(t, "transaction", recordRows(t, r), want)
		return nil
	}))
}
