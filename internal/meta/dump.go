package meta

import (
	"io"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/oribi-db/oribi/internal/dump"
	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/rowset"
)

// Dump prints a metadata row: its key, then the value field by field with the field numbers of the
// message, whose .proto file has the names. It prints as much as it can and returns the error from
// decoding the row.
func Dump(w io.Writer, key, value []byte) error {
	kind, table, id, err := ParseKey(key)
	if err != nil {
		return err
	}
	d := dump.New(w)
	switch kind {
	case StoreRow:
		d.Section("store row")
		_, err = DecodeStore(value)
	case TableRow:
		d.Section("row of table %d", table)
		_, err = DecodeTable(value)
	case RowSetRow:
		d.Section("row of table %d, rowset %d", table, id)
		_, err = rowset.DecodeMetadata(value)
	}
	d.Field(0, key, "key")
	for at := 0; at < len(value); {
		number, typ, n := protowire.ConsumeField(value[at:])
		if n < 0 {
			return fault.Corruptf("metadata: value: byte %d: malformed field", at)
		}
		d.Field(int64(at), value[at:at+n], "field %d, wire type %d", number, typ)
		at += n
	}
	if err != nil {
		return err
	}
	return d.Err()
}
