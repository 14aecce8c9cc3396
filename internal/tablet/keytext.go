package tablet

import (
	"fmt"

	"github.com/oribi-db/oribi/internal/celltext"
	"github.com/oribi-db/oribi/schema"
)

// KeyText returns an encoded key as JSON for messages, with all unprintable characters escaped: the
// value itself for a one-column key, otherwise an object of the key columns. A one-column binary key
// that is text is printed as text, as kv does. Bytes that are not a key are printed in hex.
func (t *Tablet) KeyText(key []byte) string {
	tableSchema := t.Schema()
	cells, err := tableSchema.Encoder.Decode(key)
	if err != nil {
		return fmt.Sprintf("0x%x", key)
	}
	if c := &tableSchema.Schema.Columns[0]; tableSchema.Schema.SingleKey() {
		if c.Type == schema.Binary {
			return celltext.Printable(string(celltext.AppendBytes(nil, cells[0])))
		}
		return celltext.Printable(string(celltext.AppendJSON(nil, c, cells[0])))
	}
	return celltext.Printable(string(celltext.AppendObject(nil, tableSchema.Schema.Columns[:len(cells)], cells)))
}
