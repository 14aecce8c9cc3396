package kudurow

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/change"
	"github.com/oribi-db/oribi/internal/kudurpcpb"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/schema"
)

// exampleSchema is the schema of the examples of the wire protocol.
func exampleSchema(t testing.TB) *schema.Schema {
	return must.Get(schema.New([]schema.Column{{ID: 10, Name: "k", Type: schema.Int32},
		{ID: 11, Name: "v", Type: schema.Int64, Nullable: true}, {ID: 12, Name: "s", Type: schema.String, Nullable: true}},
		1))(t)
}

var keyTypes = []schema.Type{schema.Int8, schema.Int16, schema.Int32, schema.Int64, schema.String, schema.Binary,
	schema.Varchar, schema.Timestamp, schema.Date, schema.Decimal32, schema.Decimal64, schema.Decimal128}

var valueTypes = append([]schema.Type{schema.Bool, schema.Float, schema.Double}, keyTypes...)

// randomSchema returns a schema of all kinds of columns that Kudu has.
func randomSchema(t testing.TB, r *rand.Rand) *schema.Schema {
	keys := 1 + r.IntN(4)
	var columns []schema.Column
	for i := range keys + r.IntN(12) {
		c := schema.Column{Name: fmt.Sprint("c", i), ID: schema.ColumnID(10 + i)}
		if c.Type = keyTypes[r.IntN(len(keyTypes))]; i >= keys {
			c.Type, c.Nullable = valueTypes[r.IntN(len(valueTypes))], r.IntN(2) == 0
		}
		switch c.Type {
		case schema.Varchar:
			c.Length = 1 + r.IntN(20)
		case schema.Decimal32:
			c.Precision = 1 + r.IntN(9)
		case schema.Decimal64:
			c.Precision = 10 + r.IntN(9)
		case schema.Decimal128:
			c.Precision = 19 + r.IntN(20)
		}
		columns = append(columns, c)
	}
	return must.Get(schema.New(columns, keys))(t)
}

// randomCell returns a cell that checkCell accepts.
func randomCell(r *rand.Rand, c *schema.Column) []byte {
	if c.Nullable && r.IntN(4) == 0 {
		return nil
	}
	switch c.Type {
	case schema.Bool:
		return []byte{byte(r.IntN(2))}
	case schema.Date:
		return binary.LittleEndian.AppendUint32(nil, uint32(schema.MinDate+r.IntN(schema.MaxDate-schema.MinDate)))
	}
	if c.Type.Variable() {
		cell := make([]byte, r.IntN(min(8, c.Length+8*(1-min(c.Length, 1)))+1))
		for i := range cell {
			cell[i] = byte(r.IntN(3)) // zeros are escaped in keys
		}
		return cell
	}
	cell := make([]byte, c.Type.Width())
	for i := range cell {
		cell[i] = byte(r.Uint32())
	}
	if c.Type.Decimal() {
		v := batch.Int128OfCell(c.Type, cell)
		for !v.FitsDigits(c.Precision) {
			v, _ = v.Div10()
		}
		out := binary.LittleEndian.AppendUint64(nil, v.Lo)
		cell = binary.LittleEndian.AppendUint64(out, uint64(v.Hi))[:len(cell)]
	}
	return cell
}

func randomRow(r *rand.Rand, columns []schema.Column) (cells [][]byte) {
	for i := range columns {
		cells = append(cells, randomCell(r, &columns[i]))
	}
	return cells
}

// batchOf returns rows as a batch, all selected.
func batchOf(columns []schema.Column, rows [][][]byte) *batch.RecordBatch {
	b := batch.New(columns, len(rows))
	for row, cells := range rows {
		for i, cell := range cells {
			b.Columns[i].SetCell(row, cell)
		}
	}
	return b
}

// rowsOf returns the selected rows of a batch.
func rowsOf(b *batch.RecordBatch) (rows [][][]byte) {
	for row := range b.Rows() {
		var cells [][]byte
		for _, v := range b.Columns {
			cells = append(cells, v.Cell(row))
		}
		rows = append(rows, cells)
	}
	return rows
}

// columnar returns rows as servers send them.
func columnar(columns []schema.Column, rows [][][]byte) (m *kudurpcpb.ColumnarRowBlockPB, sidecars [][]byte) {
	m = &kudurpcpb.ColumnarRowBlockPB{NumRows: proto.Int64(int64(len(rows)))}
	add := func(b []byte) *int32 {
		sidecars = append(sidecars, b)
		return proto.Int32(int32(len(sidecars) - 1))
	}
	for i := range columns {
		c := &columns[i]
		var data, bytes []byte
		bits := make([]byte, (len(rows)+7)/8)
		if c.Type.Variable() && len(rows) > 0 {
			data = make([]byte, 4)
		}
		for row, cells := range rows {
			if cells[i] != nil {
				bits[row/8] |= 1 << (row % 8)
			}
			switch {
			case c.Type.Variable():
				bytes = append(bytes, cells[i]...)
				data = binary.LittleEndian.AppendUint32(data, uint32(len(bytes)))
			case cells[i] == nil:
				data = append(data, make([]byte, c.Type.Width())...)
			default:
				data = append(data, cells[i]...)
			}
		}
		column := &kudurpcpb.ColumnarRowBlockPB_Column{DataSidecar: add(data)}
		if c.Type.Variable() {
			column.VarlenDataSidecar = add(bytes)
		}
		if c.Nullable {
			column.NonNullBitmapSidecar = add(bits)
		}
		m.Columns = append(m.Columns, column)
	}
	return m, sidecars
}

// imageOf returns a row as the decoder of logs makes it.
func imageOf(s *schema.Schema, cells [][]byte) []byte {
	return change.NewRowFormat(s).AppendRow(nil, cells)
}
