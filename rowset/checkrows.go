package rowset

import (
	"bytes"
	"context"

	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/mvcc"
)

// CheckRows reads the rows with all their versions and verifies the order of their keys and their
// agreement with bounds, key index, and bloom file. Errors: ErrCorrupt; ctx.Err().
func (d *DiskRowSet) CheckRows(ctx context.Context) error {
	m := d.Metadata()
	h, err := d.Histories(mvcc.Everything)
	if err != nil {
		return err
	}
	var last []byte
	var rows int64
	for {
		r, err := h.Next()
		if err != nil {
			return err
		}
		if r == nil {
			break
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		for _, k := range r.Keys {
			if rows > 0 && bytes.Compare(last, k) >= 0 {
				return fault.Corruptf("row %d: keys do not ascend", rows)
			}
			if rows == 0 && !bytes.Equal(k, m.MinKey) {
				return fault.Corruptf("the first key is not the lower bound")
			}
			if err := d.CheckKey(k, rows); err != nil {
				return err
			}
			last = k
			rows++
		}
		last = bytes.Clone(last) // Next reuses the memory of keys
	}
	if rows > 0 && !bytes.Equal(last, m.MaxKey) {
		return fault.Corruptf("the last key is not the upper bound")
	}
	return d.CheckBounds()
}
