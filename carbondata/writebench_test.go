package carbondata

import (
	"context"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/schema"
)

// goldenRows returns columns and rows of a golden folder.
func goldenRows(tb testing.TB, folder string) (columns []Column, rows [][]any) {
	table := must.Get(Open(filepath.Join(goldenDir(tb), folder)))(tb)
	defer table.Close()
	for row, err := range table.Rows(context.Background(), ScanOptions{}) {
		must.Do(tb, err)
		rows = append(rows, row)
	}
	return table.Schema(), rows
}

// cell returns a value as a cell of a table, nil for NULL.
func cell(v any) []byte {
	little := func(n uint64, width int) []byte { return binary.LittleEndian.AppendUint64(nil, n)[:width] }
	switch v := v.(type) {
	case nil:
		return nil
	case bool:
		if v {
			return []byte{1}
		}
		return []byte{0}
	case string:
		return []byte(v)
	case []byte:
		return v
	case batch.Int128:
		return append(little(v.Lo, 8), little(uint64(v.Hi), 8)...)
	case int8, int16, int32, int64, Days, Micros, float32, float64:
		var b []byte
		b, err := binary.Append(b, binary.LittleEndian, v)
		if err != nil {
			panic(err)
		}
		return b
	}
	panic(fmt.Sprintf("%T", v))
}

// recordBatch returns rows as a batch of columns of table types.
func recordBatch(tb testing.TB, columns []Column, rows [][]any) *batch.RecordBatch {
	types := make([]schema.Column, len(columns))
	for i, c := range columns {
		var ok bool
		if types[i], ok = c.TableType(); !ok {
			tb.Fatalf("column %s %s", c.Name, c.TypeName())
		}
	}
	b := batch.New(types, len(rows))
	for i, t := range types {
		v := b.Columns[i]
		if t.Type == schema.Array {
			v = batch.NewArrays(t.Element)
			b.Columns[i] = v
			for _, row := range rows {
				list, ok := row[i].([]any)
				if !ok {
					v.AppendNullArray()
					continue
				}
				elements := make([][]byte, len(list))
				for k, e := range list {
					if elements[k] = cell(e); elements[k] != nil && t.Element.Width() > 0 {
						elements[k] = elements[k][:t.Element.Width()]
					}
				}
				v.AppendArray(elements)
			}
			continue
		}
		for k, row := range rows {
			c := cell(row[i])
			if c != nil && t.Type.Width() > 0 {
				c = c[:t.Type.Width()]
			}
			v.SetCell(k, c)
		}
	}
	return b
}

// BenchmarkWriteLineitem writes 600,000 rows of TPC-H's lineitem: 50,000, twelve times.
func BenchmarkWriteLineitem(b *testing.B) {
	columns, rows := goldenRows(b, "lineitem")
	var batches []*batch.RecordBatch
	for from := 0; from < len(rows); from += batch.WindowRows {
		batches = append(batches, recordBatch(b, columns, rows[from:min(from+batch.WindowRows, len(rows))]))
	}
	const times = 12
	run := func(b *testing.B, add func(w *Writer) error) {
		size := int64(0)
		for b.Loop() {
			dir := filepath.Join(b.TempDir(), "out")
			w := must.Get(Create(dir, columns, WriterOptions{}))(b)
			for range times {
				must.Do(b, add(w))
			}
			must.Do(b, w.Close())
			files := must.Get(filepath.Glob(filepath.Join(dir, "*"+dataSuffix)))(b)
			for _, name := range files {
				if info, err := os.Stat(name); err == nil {
					size += info.Size()
				}
			}
			os.RemoveAll(dir)
		}
		b.ReportMetric(float64(size)/float64(b.N)/1e6, "MB")
		b.ReportMetric(float64(times*len(rows)*b.N)/b.Elapsed().Seconds(), "rows/s")
	}
	b.Run("batches", func(b *testing.B) {
		run(b, func(w *Writer) error {
			for _, r := range batches {
				if err := w.AppendBatch(r); err != nil {
					return err
				}
			}
			return nil
		})
	})
	b.Run("rows", func(b *testing.B) {
		run(b, func(w *Writer) error {
			for _, row := range rows {
				if err := w.Append(row); err != nil {
					return err
				}
			}
			return nil
		})
	})
}
