package rowset

import (
	"bytes"
	"fmt"
	"math"

	"google.golang.org/protobuf/proto"

	"github.com/oribi-db/oribi/block"
	"github.com/oribi-db/oribi/delta"
	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/internal/kudupb"
	"github.com/oribi-db/oribi/lsn"
	"github.com/oribi-db/oribi/mvcc"
	"github.com/oribi-db/oribi/schema"
)

// MaxRows is the maximum number of rows of one rowset.
const MaxRows = 1<<31 - 1

// ColumnBlock names the block with one column's base data.
type ColumnBlock struct {
	ID    schema.ColumnID
	Block block.ID
}

// Metadata is the record of one DiskRowSet in the metadata of a store: its blocks, bounds and
// counts. A Writer returns it and Open takes it; Encode and DecodeMetadata convert it to bytes and
// back. Source: tablet spec §11.1 for the fields that Kudu has too.
type Metadata struct {
	ID             uint64
	Columns        []ColumnBlock
	Redo           []block.ID    // oldest first
	Undo           []block.ID    // newest first
	Births         []delta.Birth // of rows that were inserted together; older than all undos in files
	Bloom          block.ID
	KeyIndex       block.ID // 0 if the key is one column, whose file is also the key index
	RowFile        block.ID // 0 if the rowset has no row file
	KeyDirectory   block.ID // 0 if the rowset has no key directory
	MinKey, MaxKey []byte   // encoded keys of the first and last row
	LiveRows       int64    // rows whose newest change in the files is not a delete
	Rows           int64    // of the base data
	LastDurableDMS int64    // −1 if none; recorded for Kudu, not used here
	IncludedLSN    lsn.LSN  // inclusive: the files contain exactly the operations on its rows up to here
	MaxTimestamp   mvcc.Timestamp
	Bytes          int64 // of all its blocks
	RowFileBytes   int64 // of the row file

	KeyDirectoryBytes int64 // of the key directory

	// Forms are the columns that were rewritten to be smaller, or found to be small already.
	Forms []Form
	// Written is the time when the base data or the redos were last written, or 0 if it is not
	// known.
	Written mvcc.Timestamp
}

// Form is the compression for which a column was rewritten: schema.LZ4HC or schema.Dense.
type Form struct {
	ID          schema.ColumnID
	Compression schema.Compression
}

// DropRowFile removes the row file and the key directory, which repeat what other blocks have.
func (r *Metadata) DropRowFile() {
	r.Bytes -= r.RowFileBytes + r.KeyDirectoryBytes
	r.RowFile, r.RowFileBytes, r.KeyDirectory, r.KeyDirectoryBytes = 0, 0, 0, 0
}

// Blocks appends the IDs of all blocks of the rowset to dst.
func (r *Metadata) Blocks(dst []block.ID) []block.ID {
	for _, c := range r.Columns {
		dst = append(dst, c.Block)
	}
	dst = append(dst, r.Redo...)
	dst = append(dst, r.Undo...)
	if r.Bloom != 0 {
		dst = append(dst, r.Bloom)
	}
	if r.KeyIndex != 0 {
		dst = append(dst, r.KeyIndex)
	}
	if r.RowFile != 0 {
		dst = append(dst, r.RowFile)
	}
	if r.KeyDirectory != 0 {
		dst = append(dst, r.KeyDirectory)
	}
	return dst
}

// Encode returns the metadata as bytes, a protobuf message whose first field is Kudu's
// RowSetDataPB.
func (r *Metadata) Encode() []byte {
	return kudupb.EncodeRow(&kudupb.RowSetRow{
		Data:         r.message(),
		IncludedLsn:  uint64(r.IncludedLSN),
		BaseRows:     uint64(r.Rows),
		MaxTimestamp: uint64(r.MaxTimestamp),
		Bytes:        uint64(r.Bytes),
		RowFile:      uint64(r.RowFile),
		RowFileBytes: uint64(r.RowFileBytes),
		Births:       birthMessages(r.Births),
		Forms:        formMessages(r.Forms),
		Written:      uint64(r.Written),

		KeyDirectory: uint64(r.KeyDirectory), KeyDirectoryBytes: uint64(r.KeyDirectoryBytes),
	})
}

// message returns Kudu's message of the rowset.
func (r *Metadata) message() *kudupb.RowSetDataPB {
	m := &kudupb.RowSetDataPB{
		Id:               proto.Uint64(r.ID),
		LastDurableDmsId: proto.Int64(r.LastDurableDMS),
		RedoDeltas:       deltaMessages(r.Redo),
		UndoDeltas:       deltaMessages(r.Undo),
		BloomBlock:       blockMessage(r.Bloom),
		AdhocIndexBlock:  blockMessage(r.KeyIndex),
		MinEncodedKey:    append([]byte{}, r.MinKey...), // the empty string is a key: never nil
		MaxEncodedKey:    append([]byte{}, r.MaxKey...),
		LiveRowCount:     proto.Int64(r.LiveRows),
	}
	for _, c := range r.Columns {
		m.Columns = append(m.Columns,
			&kudupb.ColumnDataPB{Block: blockMessage(c.Block), ColumnId: proto.Int32(int32(c.ID))})
	}
	return m
}

func blockMessage(id block.ID) *kudupb.BlockIdPB {
	if id == 0 {
		return nil
	}
	return &kudupb.BlockIdPB{Id: proto.Uint64(uint64(id))}
}

func deltaMessages(ids []block.ID) []*kudupb.DeltaDataPB {
	var out []*kudupb.DeltaDataPB
	for _, id := range ids {
		out = append(out, &kudupb.DeltaDataPB{Block: blockMessage(id)})
	}
	return out
}

// DecodeMetadata decodes the result of Encode. It checks everything that can be checked without the
// blocks: counts, bounds, and that no column and no block occurs twice. Fields of newer versions
// are ignored. Errors: ErrCorrupt.
func DecodeMetadata(value []byte) (*Metadata, error) {
	var m kudupb.RowSetRow
	if err := kudupb.DecodeRow("rowset", value, &m); err != nil {
		return nil, err
	}
	d := m.Data
	if d == nil {
		return nil, fault.Corruptf("metadata: rowset row without data")
	}
	r := &Metadata{
		ID:             d.GetId(),
		Redo:           deltaBlocks(d.RedoDeltas),
		Undo:           deltaBlocks(d.UndoDeltas),
		Bloom:          block.ID(d.GetBloomBlock().GetId()),
		KeyIndex:       block.ID(d.GetAdhocIndexBlock().GetId()),
		MinKey:         d.MinEncodedKey,
		MaxKey:         d.MaxEncodedKey,
		LiveRows:       d.GetLiveRowCount(),
		Rows:           int64(min(m.BaseRows, MaxRows+1)),
		LastDurableDMS: d.GetLastDurableDmsId(),
		IncludedLSN:    lsn.LSN(m.IncludedLsn),
		MaxTimestamp:   mvcc.Timestamp(m.MaxTimestamp),
		Bytes:          int64(m.Bytes),
		RowFile:        block.ID(m.RowFile),
		RowFileBytes:   int64(m.RowFileBytes),
		Births:         births(m.Births),
		Forms:          forms(m.Forms),
		Written:        mvcc.Timestamp(m.Written),

		KeyDirectory: block.ID(m.KeyDirectory), KeyDirectoryBytes: int64(m.KeyDirectoryBytes),
	}
	for _, c := range d.Columns {
		r.Columns = append(r.Columns,
			ColumnBlock{ID: schema.ColumnID(c.GetColumnId()), Block: block.ID(c.GetBlock().GetId())})
	}
	switch {
	case d.LiveRowCount == nil:
		return nil, fault.Corruptf("metadata: rowset %d: no count of live rows", r.ID)
	case m.BaseRows == 0 || m.BaseRows > MaxRows || r.LiveRows < 0 || r.LiveRows > r.Rows:
		return nil, fault.Corruptf("metadata: rowset %d: %d of %d rows live", r.ID, r.LiveRows, m.BaseRows)
	case r.LastDurableDMS < -1:
		return nil, fault.Corruptf("metadata: rowset %d: last durable DMS %d", r.ID, r.LastDurableDMS)
	case m.Bytes > math.MaxInt64 || m.RowFileBytes > m.Bytes || m.KeyDirectoryBytes > m.Bytes-m.RowFileBytes:
		return nil, fault.Corruptf("metadata: rowset %d: %d bytes, %d of them in the row file, %d in the "+
			"key directory", r.ID, m.Bytes, m.RowFileBytes, m.KeyDirectoryBytes)
	case r.MinKey == nil || r.MaxKey == nil || bytes.Compare(r.MinKey, r.MaxKey) > 0:
		return nil, fault.Corruptf("metadata: rowset %d: bounds missing or not in order", r.ID)
	}
	if err := r.checkBlocks(); err != nil {
		return nil, err
	}
	if err := delta.CheckBirths(r.Births, r.Rows); err != nil {
		return nil, fmt.Errorf("metadata: rowset %d: %w", r.ID, err)
	}
	for _, b := range r.Births {
		if b.TS > r.MaxTimestamp {
			return nil, fault.Corruptf("metadata: rowset %d: a birth at %d, after the newest change at %d",
				r.ID, uint64(b.TS), uint64(r.MaxTimestamp))
		}
	}
	return r, nil
}

func birthMessages(births []delta.Birth) []*kudupb.BirthRow {
	var out []*kudupb.BirthRow
	for _, b := range births {
		out = append(out, &kudupb.BirthRow{First: b.First, Rows: b.Rows, Timestamp: uint64(b.TS)})
	}
	return out
}

func births(ms []*kudupb.BirthRow) []delta.Birth {
	var out []delta.Birth
	for _, m := range ms {
		out = append(out, delta.Birth{First: m.First, Rows: m.Rows, TS: mvcc.Timestamp(m.Timestamp)})
	}
	return out
}

func formMessages(forms []Form) []*kudupb.ColumnForm {
	var out []*kudupb.ColumnForm
	for _, f := range forms {
		out = append(out, &kudupb.ColumnForm{Column: int32(f.ID), Compression: uint32(f.Compression)})
	}
	return out
}

// forms returns the forms of columns. A form that this version does not know differs from any that it
// wants, so the column is rewritten.
func forms(ms []*kudupb.ColumnForm) []Form {
	var out []Form
	for _, m := range ms {
		out = append(out, Form{ID: schema.ColumnID(m.Column), Compression: schema.Compression(m.Compression)})
	}
	return out
}

func deltaBlocks(ms []*kudupb.DeltaDataPB) []block.ID {
	var ids []block.ID
	for _, m := range ms {
		ids = append(ids, block.ID(m.GetBlock().GetId()))
	}
	return ids
}

// checkBlocks returns an error for a column or block that has no number or occurs twice.
func (r *Metadata) checkBlocks() error {
	if len(r.Columns) == 0 || r.Bloom == 0 {
		return fault.Corruptf("metadata: rowset %d: no column or no bloom block", r.ID)
	}
	columns := make(map[schema.ColumnID]bool, len(r.Columns))
	for _, c := range r.Columns {
		if c.ID < 0 || columns[c.ID] {
			return fault.Corruptf("metadata: rowset %d: column %d is invalid or occurs twice", r.ID, c.ID)
		}
		columns[c.ID] = true
	}
	blocks := make(map[block.ID]bool)
	for _, id := range r.Blocks(nil) {
		if id == 0 || blocks[id] {
			return fault.Corruptf("metadata: rowset %d: block %d is invalid or occurs twice", r.ID, id)
		}
		blocks[id] = true
	}
	return nil
}
