package oribi

import (
	"fmt"
	"reflect"

	"github.com/oribi-db/oribi/internal/bind"
	"github.com/oribi-db/oribi/schema"
)

// SchemaOf returns the schema of a struct type (see TableOf). Without a type in the tag, its columns have
// the types int8 to int64, uint8 to uint64, float, double, string, binary, bool, timestamp, and int128. A
// byte array such as [16]byte is a binary column, and a slice of any of these types but Int128 is an array. A
// column is nullable if its field is a pointer. Fields in the key come first.
//
// Errors: ErrSchema, naming the field.
func SchemaOf[T any]() (*schema.Schema, error) {
	rows, err := bind.RowTypeOf(reflect.TypeFor[T]())
	if err != nil {
		return nil, fmt.Errorf("oribi: %w", err)
	}
	s, err := rows.Schema()
	if err != nil {
		return nil, fmt.Errorf("oribi: %w", err)
	}
	return s, nil
}
