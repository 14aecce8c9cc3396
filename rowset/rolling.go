package rowset

import (
	"sync/atomic"

	"github.com/oribi-db/oribi/change"
	"github.com/oribi-db/oribi/schema"
)

// DefaultTargetBytes is the size at which a flush or compaction starts a new rowset.
const DefaultTargetBytes = 32 << 20

// RollingWriter writes rows to one rowset after another. It starts a new one when the current one
// reaches the target size.
type RollingWriter struct {
	RowFiles     schema.RowFile // of each rowset; set before the first Append
	Dictionaries *Dictionaries  // of the table; nil if not known

	schema *schema.Schema
	create Creation
	nextID func() uint64
	target int64
	cur    *Writer
	done   []*Metadata

	// A rowset found that a row file does not pay: no later rowset has one either.
	noRowFiles atomic.Bool
}

// NewRollingWriter returns a RollingWriter that starts its first rowset with the first rows.
func NewRollingWriter(c Creation, s *schema.Schema, nextID func() uint64, targetBytes int64) *RollingWriter {
	if targetBytes <= 0 {
		targetBytes = DefaultTargetBytes
	}
	return &RollingWriter{schema: s, create: c, nextID: nextID, target: targetBytes}
}

// Append appends rows like Writer.Append.
func (r *RollingWriter) Append(rows *change.Rows) error {
	if len(rows.Keys) == 0 {
		return nil
	}
	if err := r.begin(); err != nil {
		return err
	}
	err := r.cur.Append(rows)
	r.noteRowFile()
	return err
}

// AppendStored appends rows like Writer.AppendStored.
func (r *RollingWriter) AppendStored(rows *StoredRows) error {
	if len(rows.Keys) == 0 {
		return nil
	}
	if err := r.begin(); err != nil {
		return err
	}
	err := r.cur.AppendStored(rows)
	r.noteRowFile()
	return err
}

// noteRowFile notes whether the current rowset has found that a row file does not pay.
func (r *RollingWriter) noteRowFile() {
	if r.RowFiles != schema.NoRowFile && !r.cur.NeedsCells() {
		r.noRowFiles.Store(true)
	}
}

// begin starts a rowset if r has not begun one, or if the current rowset has the target size.
func (r *RollingWriter) begin() (err error) {
	if r.cur != nil && r.cur.Bytes() >= r.target {
		if err := r.roll(); err != nil {
			return err
		}
	}
	if r.cur != nil {
		return nil
	}
	if r.cur, err = newWriter(r.create, r.schema, r.nextID(), r.Dictionaries); err != nil {
		return err
	}
	if r.NeedsCells() {
		r.cur.AddRowFile(r.RowFiles)
	}
	return nil
}

// NeedsCells reports whether the next AppendStored needs the cells of rows, for a row file. It may be
// called at any time, also while another goroutine appends.
func (r *RollingWriter) NeedsCells() bool {
	return r.RowFiles != schema.NoRowFile && !r.noRowFiles.Load()
}

func (r *RollingWriter) roll() error {
	row, err := r.cur.Finish()
	if err != nil {
		return err
	}
	r.done, r.cur = append(r.done, row), nil
	return nil
}

// Finish finishes the last rowset and returns the metadata of all rowsets, in key order.
func (r *RollingWriter) Finish() ([]*Metadata, error) {
	if r.cur != nil {
		if err := r.roll(); err != nil {
			return nil, err
		}
	}
	return r.done, nil
}
