package tablet

import (
	"fmt"

	"github.com/oribi-db/oribi/internal/celltext"
)

// KeyText is an encoded key for messages, in JSON, with escapes for all that is not printable: the
// value of a one-column key, else an object of the key columns. Bytes that are not a key are in
// hex.
func (t *Tablet) KeyText(key []byte) string {
	tableSchema := t.Schema()
	cells, err := tableSchema.Encoder.Decode(key)
	if err != nil {
		return fmt.Sprintf("0x%x", key)
	}
	if tableSchema.Schema.SingleKey() {
		return celltext.Printable(string(celltext.AppendJSON(nil, &tableSchema.Schema.Columns[0], cells[0])))
	}
	out := []byte{'{'}
	for i, cell := range cells {
		if i > 0 {
			out = append(out, ',')
		}
		c := &tableSchema.Schema.Columns[i]
		out = append(celltext.AppendQuoted(out, []byte(c.Name)), ':')
		out = celltext.AppendJSON(out, c, cell)
	}
	return celltext.Printable(string(append(out, '}')))
}
