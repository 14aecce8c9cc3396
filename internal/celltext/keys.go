package celltext

import (
	"fmt"

	"github.com/oribi-db/oribi/keyenc"
	"github.com/oribi-db/oribi/schema"
)

// Keys returns a function that formats encoded keys of a schema: the cells with commas, or hex if
// they are not a key. Its results may have characters that are not printable.
func Keys(s *schema.Schema) func(key []byte) string {
	encoder := keyenc.NewEncoder(s)
	return func(key []byte) string {
		cells, err := encoder.Decode(key)
		if err != nil {
			return fmt.Sprintf("0x%x", key)
		}
		var text []byte
		for i, cell := range cells {
			if i > 0 {
				text = append(text, ", "...)
			}
			text = AppendText(text, &s.Columns[i], cell)
		}
		return string(text)
	}
}

// KeyText returns an encoded key as JSON for messages, with all unprintable characters escaped: the
// value itself for a one-column key, otherwise an object of the key columns. A one-column binary key
// that is text is printed as text, as kv does. Bytes that are not a key are printed in hex.
func KeyText(s *schema.Schema, e *keyenc.Encoder, key []byte) string {
	cells, err := e.Decode(key)
	if err != nil {
		return fmt.Sprintf("0x%x", key)
	}
	if c := &s.Columns[0]; s.SingleKey() {
		if c.Type == schema.Binary {
			return Printable(string(AppendBytes(nil, cells[0])))
		}
		return Printable(string(AppendJSON(nil, c, cells[0])))
	}
	return Printable(string(AppendObject(nil, s.Columns[:len(cells)], cells)))
}
