package oribi

import (
	"fmt"
	"reflect"

	"github.com/oribi-db/oribi/internal/bind"
	"github.com/oribi-db/oribi/schema"
)

// SchemaOf returns the schema of a struct type (see TableOf). Its columns have the types int8 to
// int64, uint8 to uint64, float, double, string, binary, bool, timestamp, and int128. A byte array
// such as [16]byte is a binary column, and a slice of any of these types but Int128 is an array. A
// column is nullable if its field is a pointer. Fields tagged "key" come first. Columns of type
// decimal, date, and varchar need more than a Go type says: build such schemas with schema.New.
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

// indexesOf returns the indexes that the tags of a struct type, of which SchemaOf has a schema, describe.
func indexesOf[T any]() (opts []TableOption) {
	rows, _ := bind.RowTypeOf(reflect.TypeFor[T]())
	for _, x := range rows.Indexes() {
		opts = append(opts, indexOption(x.Name, x.Columns, x.Unique))
	}
	return opts
}
