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
