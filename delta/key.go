package delta

import (
	"github.com/oribi-db/oribi/change"
	"github.com/oribi-db/oribi/internal/coding"
	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/mvcc"
)

// The format of one cell of a delta file, which is one change of one row:
//
//	width  field      meaning
//	1–5    row        row ID, order-preserving varint
//	1–9    timestamp  order-preserving varint
//	rest   list       change list, see change.List
//
// The first two fields are the delta key. A file of redos is sorted by row, then by timestamp. A
// file of undos is sorted by row, then by descending timestamp, so its keys do not ascend within a
// row and only rows can be searched for. Changes of one row and one timestamp are in the order in
// which they were made.
//
// Row 5, timestamp 7, update of column 11 (INT32) to 5: 05 07 01 0b 05 05 00 00 00
//
// Source: tablet spec §6.1, §6.2.
const (
	statsKey    = "deltafilestats" // footer pair of the statistics; file format: never change
	cblockBytes = 32 << 10         // size of a data cblock before compression; any size is valid
	maxRow      = 1<<32 - 1        // highest row ID; file format: never change
	keyBytes    = 5 + 9            // maximum length of a delta key
)

// AppendKey appends the key of a change, with which its cell in a delta file begins. The value index
// of the file has such keys.
func AppendKey(dst []byte, row uint32, ts mvcc.Timestamp) []byte {
	dst = coding.AppendOrderedUvarint(dst, uint64(row))
	return coding.AppendOrderedUvarint(dst, uint64(ts))
}

// parseKey reads the delta key at the beginning of a cell; n is its length. Errors: ErrCorrupt.
func parseKey(cell []byte) (row uint32, ts mvcc.Timestamp, n int, err error) {
	r, n, err := parseRow(cell)
	if err != nil {
		return 0, 0, 0, err
	}
	t, m, ok := coding.OrderedUvarint(cell[n:])
	if !ok {
		return 0, 0, 0, fault.Corruptf("delta key of row %d: bad timestamp", r)
	}
	return r, mvcc.Timestamp(t), n + m, nil
}

// parseRow reads the row ID at the beginning of a cell; n is its length. Errors: ErrCorrupt.
func parseRow(cell []byte) (row uint32, n int, err error) {
	r, n, ok := coding.OrderedUvarint(cell)
	if !ok || r > maxRow {
		return 0, 0, fault.Corruptf("delta key: bad row ID")
	}
	return uint32(r), n, nil
}

// Parse parses a cell of a delta file. The list aliases it and is not checked. Errors: ErrCorrupt.
func Parse(cell []byte) (change.Delta, error) {
	row, ts, n, err := parseKey(cell)
	if err != nil {
		return change.Delta{}, err
	}
	return change.Delta{Row: row, TS: ts, List: change.List(cell[n:])}, nil
}

// keyOf returns the delta key of a cell that a Writer made.
func keyOf(cell []byte) []byte {
	_, n, ok := coding.OrderedUvarint(cell)
	if !ok {
		panic("delta: cell without a row ID")
	}
	_, m, ok := coding.OrderedUvarint(cell[n:])
	if !ok {
		panic("delta: cell without a timestamp")
	}
	return cell[: n+m : n+m]
}
