package cell

import (
	"errors"
	"fmt"
	"strings"

	"github.com/oribi-db/oribi/internal/celltext"
	"github.com/oribi-db/oribi/internal/jsonin"
	"github.com/oribi-db/oribi/internal/nearest"
	"github.com/oribi-db/oribi/schema"
)

// Key parses a key from JSON: an object with exactly the key columns of s in any order or, for a
// key of one column, its bare value. Text that is not JSON is itself the value of a string key;
// binary is 0x…. The cells are in key order. With prefix, the object may have only the first
// columns of a compound key, at least one. Errors name the column.
func Key(s *schema.Schema, text string, prefix bool) ([][]byte, error) {
	value := jsonin.Trim([]byte(text))
	if err := jsonin.Check(value); err != nil {
		switch {
		case strings.HasPrefix(string(value), "{"):
			return nil, err
		case !s.SingleKey():
			return nil, fmt.Errorf("want an object with %d key columns, not %s", s.Keys, celltext.Excerpt([]byte(text)))
		}
		return bareKey(&s.Columns[0], text)
	}
	cells := make([][]byte, s.Keys)
	switch {
	case value[0] == '{':
		if err := keyMembers(s, value, cells); err != nil {
			return nil, err
		}
	case s.SingleKey():
		if err := keyCell(&s.Columns[0], value, cells, 0); err != nil {
			return nil, err
		}
	default:
		return nil, fmt.Errorf("want an object with %d key columns, not %s", s.Keys, jsonin.Kind(value))
	}
	given := s.Keys
	for i := s.Keys - 1; i >= 0; i-- {
		if cells[i] != nil {
			continue
		}
		if !prefix || i == 0 || given != i+1 {
			return nil, fmt.Errorf("key column %q is missing", s.Columns[i].Name)
		}
		given = i
	}
	return cells[:given], nil
}

// bareKey parses a key of one column that is not JSON.
func bareKey(c *schema.Column, text string) ([][]byte, error) {
	var key []byte
	err := fmt.Errorf("%s is not a value of type %s", celltext.Excerpt([]byte(text)), c.TypeName())
	switch c.Type {
	case schema.String, schema.Varchar:
		key, err = celltext.FromText([]byte{}, c, text)
	case schema.Binary:
		key, err = celltext.FromHex([]byte{}, text)
	case schema.Date:
		key, err = celltext.FromDate([]byte{}, text)
	case schema.Timestamp:
		key, err = celltext.FromTime([]byte{}, text)
	}
	if err != nil {
		return nil, fmt.Errorf("column %q: %w", c.Name, err)
	}
	return [][]byte{key}, nil
}

func keyMembers(s *schema.Schema, object []byte, cells [][]byte) error {
	for w := jsonin.Walk(object); w.Next(); {
		i := s.Index(string(w.Name))
		if i < 0 {
			return fmt.Errorf("column %q: no such column%s", w.Name, nearest.Hint(string(w.Name), s.Names()[:s.Keys]))
		}
		if i >= s.Keys {
			return fmt.Errorf("column %q is not in the key", w.Name)
		}
		if err := keyCell(&s.Columns[i], w.Value, cells, i); err != nil {
			return err
		}
	}
	return nil
}

func keyCell(c *schema.Column, value []byte, cells [][]byte, i int) error {
	err := errors.New("a key column is never NULL")
	if !jsonin.IsNull(value) {
		cells[i], err = FromJSON([]byte{}, c, value)
	}
	if err != nil {
		return fmt.Errorf("column %q: %w", c.Name, err)
	}
	return nil
}
