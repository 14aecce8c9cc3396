// Package meta turns what a store knows of its blocks into metadata rows, and rows back.
//
// There is one row for the store, one for each table, one for each rowset. Their values are
// protobuf messages whose first field is Kudu's own message where it has one (SchemaPB,
// RowSetDataPB), so that a tool which knows Kudu's messages reads the part that matters. Package
// rowset has the value of a rowset's row (rowset.Metadata); the keys of all rows are made here:
//
//	offset  width  field
//	0       1      kind: 1 store, 2 table, 3 rowset
//	1       4      table number, big-endian; table and rowset rows
//	5       8      rowset ID, big-endian; rowset rows
//
// Rowset 17 of table 2: 03 00 00 00 02 00 00 00 00 00 00 00 11
//
// The rows of a kind are stored together in order of their numbers, a table's rowsets too. Decoding
// trusts nothing: what it returns has passed every check that can be made without other rows; what
// fails is ErrCorrupt, what only another engine would have written is ErrUnsupported. Fields that
// this program does not know are left out.
//
// All functions are pure; the structs are plain values of whoever holds them.
//
// Source: tablet spec §2.2, §11.1. Simpler than Kudu: a row for each rowset and not one superblock
// a table, so a flush writes what it changed.
package meta

import (
	"encoding/binary"

	"github.com/oribi-db/oribi/internal/fault"
)

// RowKind says what a metadata row is about.
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

// StoreKey is the key of the store's row.
func StoreKey() []byte { return []byte{byte(StoreRow)} }

// TableKey is the key of a table's row.
func TableKey(number uint32) []byte {
	return binary.BigEndian.AppendUint32([]byte{byte(TableRow)}, number)
}

// RowSetKey is the key of a rowset's row.
func RowSetKey(table uint32, id uint64) []byte {
	return binary.BigEndian.AppendUint64(RowSetPrefix(table), id)
}

// TablePrefix begins the keys of all tables' rows.
func TablePrefix() []byte { return []byte{byte(TableRow)} }

// RowSetPrefix begins the keys of the rows of one table's rowsets.
func RowSetPrefix(table uint32) []byte {
	return binary.BigEndian.AppendUint32([]byte{byte(RowSetRow)}, table)
}

// ParseKey takes a key apart; table and id are 0 where the kind has none. Errors: ErrCorrupt.
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
		return 0, 0, 0, fault.Corruptf("metadata: key %x of kind %d", key, key[0])
	}
	return kind, table, id, nil
}
