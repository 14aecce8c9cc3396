package carbondata

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/internal/seedtest"
	"github.com/oribi-db/oribi/schema"
)

// cellValue returns a cell as Rows returns it.
func cellValue(t *testing.T, c *Column, v *batch.Vector, i int) any {
	cell := v.Cell(i)
	if cell == nil {
		return nil
	}
	one := &batch.Vector{Type: v.Type}
	one.Fill(1, cell)
	switch c.Type {
	case Boolean:
		return cell[0] == 1
	case Byte:
		return batch.Values[int8](one)[0]
	case Short:
		return batch.Values[int16](one)[0]
	case Int:
		return batch.Values[int32](one)[0]
	case Long:
		return batch.Values[int64](one)[0]
	case Float:
		return batch.Values[float32](one)[0]
	case Double:
		return batch.Values[float64](one)[0]
	case Date:
		return Days(batch.Values[int32](one)[0])
	case Timestamp:
		return Micros(batch.Values[int64](one)[0])
	case String, Varchar:
		return string(cell)
	case Binary:
		return bytes.Clone(cell)
	case Decimal:
		switch v.Type {
		case schema.Decimal32:
			return batch.Int128Of(int64(batch.Values[int32](one)[0]))
		case schema.Decimal64:
			return batch.Int128Of(batch.Values[int64](one)[0])
		}
		return batch.Values[batch.Int128](one)[0]
	}
	child := &c.Children[0]
	element, _ := child.TableType()
	parts := must.Get(schema.ArrayElements(nil, element.Type, cell))(t)
	values := make([]any, len(parts))
	for k, part := range parts {
		one := &batch.Vector{Type: element.Type}
		one.Fill(1, part)
		values[k] = cellValue(t, child, one, 0)
	}
	return values
}

// batchRows returns the rows of a scan in batches, as Rows returns them.
func batchRows(t *testing.T, table *Table, o ScanOptions, schema []Column) (rows [][]any, s *Scanner) {
	s = must.Get(table.Scan(t.Context(), o))(t)
	defer s.Close()
	for s.Next() {
		b := s.Batch()
		if b.Len == 0 || b.Selected() != b.Len || len(b.Columns) != len(schema) {
			t.Fatalf("a batch of %d rows, %d selected, %d columns", b.Len, b.Selected(), len(b.Columns))
		}
		at := len(rows)
		for range b.Len {
			rows = append(rows, make([]any, len(schema)))
		}
		for k := range schema {
			v := b.Columns[k]
			if err := v.Validate(); err != nil || v.Len != b.Len {
				t.Fatalf("column %q: %d cells of %d: %v", schema[k].Name, v.Len, b.Len, err)
			}
			values := s.Values(k)
			if _, ok := schema[k].TableType(); ok != (values == nil) || !ok && len(values) != b.Len {
				t.Fatalf("column %q: %d values", schema[k].Name, len(values))
			}
			for i := range b.Len {
				if values != nil {
					rows[at+i][k] = values[i]
				} else {
					rows[at+i][k] = cellValue(t, &schema[k], v, i)
				}
			}
		}
	}
	must.Do(t, s.Err())
	return rows, s
}

// TestBatchesHaveTheRows compares the rows of batches with the rows that Rows returns, with and
// without filters.
func TestBatchesHaveTheRows(t *testing.T) {
	stride := seedtest.Stride(4)
	smallFolders(t, func(t *testing.T, g goldenFolder, table *Table) {
		dir := goldenDir(t) + "/" + g.Name
		filters := []Filter{{}}
		golden := goldenFilters(t, dir)
		for i := 0; i < len(golden); i += stride {
			f := must.Get(ParseFilter(golden[i].Filter))(t)
			filters = append(filters, f)
		}
		for _, f := range filters {
			want := scanRows(t, table, ScanOptions{Filter: f})
			got, s := batchRows(t, table, ScanOptions{Filter: f}, table.Schema())
			if !sameRows(got, want) || f.all() && fmt.Sprint(got) != fmt.Sprint(want) { // -0 differs from 0 here
				t.Fatalf("%s: %d rows, want %d", filterText(f), len(got), len(want))
			}
			if n := s.Stats(); n.Files != int64(len(table.Files())) || n.PagesRead > n.Pages ||
				len(got) > 0 && n.PagesRead == 0 {
				t.Errorf("%s: %+v", filterText(f), n)
			}
		}
	})
}
