package change

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/schema"
)

func makeSchema(t testing.TB, keys int, columns ...schema.Column) *schema.Schema {
	t.Helper()
	return must.Get(schema.New(columns, keys))(t)
}

var allTypes = []schema.Type{schema.Int8, schema.Int16, schema.Int32, schema.Int64, schema.Int128, schema.Bool,
	schema.Float, schema.Double, schema.String, schema.Binary, schema.Date, schema.Array}

// drawSchema draws a schema of 1 to 12 columns; IDs do not follow the order of the columns.
func drawSchema(rt *rapid.T, t testing.TB) *schema.Schema {
	n := rapid.IntRange(1, 12).Draw(rt, "columns")
	keys := rapid.IntRange(1, min(n, 2)).Draw(rt, "keys")
	columns := make([]schema.Column, n)
	for i := range columns {
		c := &columns[i]
		c.ID, c.Name = schema.ColumnID(400-20*i), string(rune('a'+i))
		if i < keys {
			c.Type = rapid.SampledFrom([]schema.Type{schema.Int16, schema.String, schema.Int64}).Draw(rt, "key type")
			continue
		}
		c.Type = rapid.SampledFrom(allTypes).Draw(rt, "type")
		if c.Type == schema.Array {
			c.Element = rapid.SampledFrom([]schema.Type{schema.Int16, schema.Double, schema.String}).Draw(rt, "element")
		}
		c.Nullable = rapid.Bool().Draw(rt, "nullable")
		if rapid.Bool().Draw(rt, "has default") {
			c.Default = drawValue(rt, c)
		}
	}
	return makeSchema(t, keys, columns...)
}

func drawValue(rt *rapid.T, c *schema.Column) []byte {
	typ := c.Type
	if typ == schema.Array {
		element, elements := c.Elements(), make([][]byte, rapid.IntRange(0, 10).Draw(rt, "elements"))
		for i := range elements {
			elements[i] = drawCell(rt, &element)
		}
		return schema.AppendArray([]byte{}, c.Element, elements)
	}
	if typ.Variable() {
		return append([]byte{}, rapid.SliceOfN(rapid.Byte(), 0, 5).Draw(rt, "string")...)
	}
	return rapid.SliceOfN(rapid.Byte(), typ.Width(), typ.Width()).Draw(rt, "cell")
}

func drawCell(rt *rapid.T, c *schema.Column) []byte {
	if c.Nullable && rapid.IntRange(0, 2).Draw(rt, "null") == 0 {
		return nil
	}
	return drawValue(rt, c)
}

func drawRow(rt *rapid.T, s *schema.Schema) [][]byte {
	cells := make([][]byte, len(s.Columns))
	for i := range cells {
		cells[i] = drawCell(rt, &s.Columns[i])
	}
	return cells
}

// vectorsOf puts rows into vectors, byte strings sometimes in dictionary form.
func vectorsOf(rt *rapid.T, s *schema.Schema, rows [][][]byte) []*batch.Vector {
	vectors := make([]*batch.Vector, len(s.Columns))
	for c := range vectors {
		v := batch.NewVector(s.Columns[c].Type, len(rows))
		for i, row := range rows {
			v.SetCell(i, row[c])
		}
		if v.Type.Variable() && rapid.Bool().Draw(rt, "dictionary") {
			words := &batch.Dictionary{}
			present := v.Present
			cells := append([][]byte(nil), v.Bytes...)
			v.UseCodes(words, len(rows))
			v.Present = present
			for i, cell := range cells {
				v.Codes[i] = uint32(i)
				words.Words = append(words.Words, cell)
			}
		}
		vectors[c] = v
	}
	return vectors
}

func sameCell(a, b []byte) bool { return (a == nil) == (b == nil) && string(a) == string(b) }
