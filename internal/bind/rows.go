package bind

import "github.com/oribi-db/oribi/schema"

// Row returns cells as Go values by the names of their columns: cells[i] is the cell of
// columns[cols[i]]. The strings of the row share one allocation.
func Row(columns []schema.Column, cols []int, cells [][]byte) map[string]any {
	var few [256]byte
	texts := few[:0]
	for i, col := range cols {
		if columns[col].Type.Text() {
			texts = append(texts, cells[i]...)
		}
	}
	text, row := string(texts), make(map[string]any, len(cols))
	for i, col := range cols {
		c, cell := &columns[col], cells[i]
		if cell == nil || !c.Type.Text() {
			row[c.Name] = Value(c, cell)
			continue
		}
		row[c.Name], text = text[:len(cell)], text[len(cell):]
	}
	return row
}
