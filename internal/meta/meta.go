// Package meta encodes and decodes metadata rows, which say what the blocks of a store mean.
//
// There is one row for the store, one for each table, one for each rowset. Their values are
// protobuf messages whose first field is Kudu's own message (SchemaPB, RowSetDataPB) where Kudu has
// one, so that a tool that knows Kudu's messages can read that part. Package rowset defines the
// value of a rowset's row (rowset.Metadata); this package encodes the keys of all rows:
//
//	offset  width  field
//	0       1      kind: 1 store, 2 table, 3 rowset
//	1       4      table number, big-endian; table and rowset rows
//	5       8      rowset ID, big-endian; rowset rows
//
// Rowset 17 of table 2: 03 00 00 00 02 00 00 00 00 00 00 00 11
//
// The rows of each kind are sorted by number, the rowsets of a table by ID. Decoding does not trust
// its input: results have passed every check that needs no other rows, invalid input is ErrCorrupt,
// and valid input that this engine never writes is ErrUnsupported. Unknown fields are dropped.
//
// All functions are pure. The structs are plain values without synchronization.
//
// Source: tablet spec §2.2, §11.1. Simpler than Kudu: a row for each rowset instead of one
// superblock for each table, so a flush writes only what it changed.
package meta

import (
	"encoding/binary"

	"github.com/oribi-db/oribi/internal/fault"
)

// RowKind is the kind of a metadata row.
type RowKind uint8

// Kinds of rows. File format: never change the numbers.
const (
	StoreRow  RowKind = 1
	TableRow  RowKind = 2
	RowSetRow RowKind = 3
)

// Lengths of keys. File format: never change.
const (
	storeKeyLen  = 1
	tableKeyLen  = storeKeyLen + 4
	rowSetKeyLen = tableKeyLen + 8
)

// StoreKey returns the key of the store's row.
func StoreKey() []byte { return []byte{byte(StoreRow)} }

// TableKey returns the key of a table's row.
func TableKey(number uint32) []byte {
	return binary.BigEndian.AppendUint32([]byte{byte(TableRow)}, number)
}

// RowSetKey returns the key of a rowset's row.
func RowSetKey(table uint32, id uint64) []byte {
	return binary.BigEndian.AppendUint64(RowSetPrefix(table), id)
}

// TablePrefix returns the common prefix of the keys of all table rows.
func TablePrefix() []byte { return []byte{byte(TableRow)} }

// RowSetPrefix returns the common prefix of the keys of one table's rowset rows.
func RowSetPrefix(table uint32) []byte {
	return binary.BigEndian.AppendUint32([]byte{byte(RowSetRow)}, table)
}

// ParseKey parses a key; table and id are 0 if the kind has none. Errors: ErrCorrupt.
func ParseKey(key []byte) (kind RowKind, table uint32, id uint64, err error) {
	if len(key) == 0 {
		return 0, 0, 0, fault.Corruptf("metadata: empty key")
	}
	switch kind = RowKind(key[0]); {
	case kind == StoreRow && len(key) == storeKeyLen:
	case kind == TableRow && len(key) == tableKeyLen:
		table = binary.BigEndian.Uint32(key[storeKeyLen:])
	case kind == RowSetRow && len(key) == rowSetKeyLen:
		table = binary.BigEndian.Uint32(key[storeKeyLen:])
		id = binary.BigEndian.Uint64(key[tableKeyLen:])
	default:
		return 0, 0, 0, fault.Corruptf("metadata: malformed key %x of kind %d", key, key[0])
	}
	return kind, table, id, nil
}
