package tablet

import "github.com/oribi-db/oribi/internal/celltext"

// KeyText returns an encoded key as text for messages, see celltext.KeyText.
func (t *Tablet) KeyText(key []byte) string {
	tableSchema := t.Schema()
	return celltext.KeyText(tableSchema.Schema, tableSchema.Encoder, key)
}
