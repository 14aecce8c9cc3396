package tablet

import (
	"fmt"

	"github.com/oribi-db/oribi/internal/celltext"
)

// KeyText returns an encoded key as JSON for messages, with all unprintable characters escaped: the
// value itself for a one-column key, otherwise an object of the key columns. Bytes that are not a
// key are printed in hex.
func (t *Tablet) KeyText(key []byte) string {
	tableSchema := t.Schema()
	cells, err := tableSchema.Encoder.Decode(key)
	if err != nil {
		return fmt.Sprintf("0x%x", key)
	}
	if tableSchema.Schema.SingleKey() {
		return celltext.Printable(string(celltext.AppendJSON(nil, &tableSchema.Schema.Columns[0], cells[0])))
	}
	return celltext.Printable(string(celltext.AppendObject(nil, tableSchema.Schema.Columns[:len(cells)], cells)))
}
