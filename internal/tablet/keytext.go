package tablet

import "fmt"

// KeyText is an encoded key as people write it: the value of a one-column key, else an object of the key columns.
func (t *Tablet) KeyText(key []byte) string {
	cells, err := t.Encoder.Decode(key)
	if err != nil {
		return fmt.Sprintf("0x%x", key)
	}
	return fmt.Sprint(cells)
}
