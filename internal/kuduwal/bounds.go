package kuduwal

import (
	"slices"

	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/internal/kudupb"
	"github.com/oribi-db/oribi/schema"
)

// RangeBounds decodes the bounds of a range in a partition schema: a RowOperationsPB with two rows
// of the superblock's schema s, encoded like the rows of a write request. lower is inclusive and
// upper exclusive. Each has a cell for each column of s, nil if it is not set. A range that is open
// on one side has nil there. The cells of byte strings are in message. Errors: ErrCorrupt, also for
// bounds of other kinds, which servers do not write.
//
// Lower bound 0 and upper bound 100 of the first of three INT32 columns, without byte strings:
//
//	12 0c 06 01 00 00 00 00 07 01 64 00 00 00
func RangeBounds(message []byte, s *schema.Schema) (lower, upper [][]byte, err error) {
	var ops kudupb.RowOperationsPB
	if err := unmarshal(message, &ops); err != nil {
		return nil, nil, fault.Corruptf("bounds of a range: %v", err)
	}
	d, err := NewDecoder(s)
	if err != nil {
		return nil, nil, err
	}
	for i := range s.Columns {
		d.addClientColumn(i, s.Columns[i].Nullable)
	}
	in := rowInput{rows: ops.GetRows(), indirect: ops.GetIndirectData()}
	for len(in.rows) > 0 {
		kind, _ := in.take(1) // there is one
		if err := d.decodeCells(&in); err != nil {
			return nil, nil, err
		}
		switch to := kudupb.RowOperationType(kind[0]); {
		case to == kudupb.RowOperationType_RANGE_LOWER_BOUND && lower == nil:
			lower = slices.Clone(d.row.cells)
		case to == kudupb.RowOperationType_RANGE_UPPER_BOUND && upper == nil:
			upper = slices.Clone(d.row.cells)
		default:
			return nil, nil, fault.Corruptf("bound of kind %d, or two of one kind", kind[0])
		}
	}
	return lower, upper, nil
}
