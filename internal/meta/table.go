package meta

import (
	"encoding/hex"
	"fmt"
	"math"

	"github.com/oribi-db/oribi/internal/expiry"
	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/internal/kudupb"
	"github.com/oribi-db/oribi/internal/kuduschema"
	"github.com/oribi-db/oribi/lsn"
	"github.com/oribi-db/oribi/mvcc"
	"github.com/oribi-db/oribi/schema"
)

// KeepForever is the retention, in seconds, with which no history is dropped.
const KeepForever = -1

// Store is the metadata of a store that all tables share.
type Store struct {
	DefaultHistorySec int64          // default retention of new tables, seconds; or KeepForever
	ClockHigh         mvcc.Timestamp // no batch has a timestamp above this // inclusive
	NextTable         uint32         // number of the next table; numbers are never reused
	// LogEnd is the LSN up to which, inclusive, the log was durable. A log that ends before it
	// belongs to another store or is outdated.
	LogEnd lsn.LSN
}

// Encode returns the value of the store's row.
func (s *Store) Encode() []byte {
	return kudupb.EncodeRow(&kudupb.StoreRow{DefaultHistorySec: s.DefaultHistorySec,
		ClockHigh: uint64(s.ClockHigh), NextTable: s.NextTable, LogEnd: uint64(s.LogEnd)})
}

// DecodeStore decodes the value of the store's row. Errors: ErrCorrupt.
func DecodeStore(value []byte) (*Store, error) {
	var m kudupb.StoreRow
	if err := kudupb.DecodeRow("store", value, &m); err != nil {
		return nil, err
	}
	if m.DefaultHistorySec < KeepForever {
		return nil, fault.Corruptf("metadata: store row: retention of %d s", m.DefaultHistorySec)
	}
	return &Store{DefaultHistorySec: m.DefaultHistorySec, ClockHigh: mvcc.Timestamp(m.ClockHigh),
		NextTable: m.NextTable, LogEnd: lsn.LSN(m.LogEnd)}, nil
}

// Table is the metadata of one table.
type Table struct {
	Number        uint32 // within the store, never reused
	Name          string
	TableID       [16]byte // as 32 hex digits in the row, Kudu's form
	TabletID      [16]byte // same form
	Schema        *schema.Schema
	SchemaVersion uint32          // incremented by each schema change
	NextColumnID  schema.ColumnID // above the ID of every column the table has had
	HistorySec    int64           // retention, seconds; or KeepForever
	HistoryFloor  mvcc.Timestamp  // history before it may have been dropped; it never decreases
	FlushedLSN    lsn.LSN         // rowsets have exactly the inserts up to it, except dropped rows // inclusive
	NextRowSetID  uint64
	Comment       string // valid UTF-8
	RowFile       schema.RowFile
	Expiry        expiry.Rules
	// AutoIncrement is the highest value of the auto-incrementing column among ingested rows and
	// inserts up to FlushedLSN.
	AutoIncrement int64
	Index         *Index         // nil unless the table has the entries of an index
	Created       mvcc.Timestamp // when the table was created, empty; 0: unknown
}

// Encode returns the value of the table's row.
func (t *Table) Encode() []byte {
	return kudupb.EncodeRow(&kudupb.TableRow{
		Schema:           kuduschema.Message(t.Schema),
		Name:             t.Name,
		TableId:          hexID(t.TableID),
		TabletId:         hexID(t.TabletID),
		SchemaVersion:    t.SchemaVersion,
		NextColumnId:     int32(t.NextColumnID),
		HistoryMaxAgeSec: t.HistorySec,
		HistoryFloor:     uint64(t.HistoryFloor),
		FlushedLsn:       uint64(t.FlushedLSN),
		NextRowsetId:     t.NextRowSetID,
		Number:           t.Number,
		Comment:          t.Comment,
		AutoIncrement:    t.AutoIncrement,
		RowFile:          t.RowFile == schema.FullRowFile,
		NoRowFile:        t.RowFile == schema.NoRowFile,
		Forms:            formMessages(t.Schema),
		Expiry:           expiryMessages(t.Expiry),
		Index:            t.Index.message(),
		Created:          uint64(t.Created),
	})
}

func hexID(id [16]byte) []byte { return hex.AppendEncode(nil, id[:]) }

func parseID(digits []byte) (id [16]byte, ok bool) {
	if len(digits) != 2*len(id) {
		return id, false
	}
	_, err := hex.Decode(id[:], digits)
	return id, err == nil
}

// DecodeTable decodes the value of a table's row. Errors: ErrCorrupt, ErrUnsupported.
func DecodeTable(value []byte) (*Table, error) {
	var m kudupb.TableRow
	if err := kudupb.DecodeRow("table", value, &m); err != nil {
		return nil, err
	}
	t := &Table{
		Number:        m.Number,
		Name:          m.Name,
		SchemaVersion: m.SchemaVersion,
		NextColumnID:  schema.ColumnID(m.NextColumnId),
		HistorySec:    m.HistoryMaxAgeSec,
		HistoryFloor:  mvcc.Timestamp(m.HistoryFloor),
		FlushedLSN:    lsn.LSN(m.FlushedLsn),
		NextRowSetID:  m.NextRowsetId,
		Comment:       m.Comment,
		AutoIncrement: m.AutoIncrement,
		Created:       mvcc.Timestamp(m.Created),
	}
	var err error
	if m.Index != nil {
		if t.Index, err = indexOf(t.Number, t.Name, m.Index); err != nil {
			return nil, err
		}
	} else if err = schema.CheckName(t.Name); err != nil {
		return nil, fault.Corruptf("metadata: table %d: %v", t.Number, err)
	}
	switch {
	case m.RowFile && m.NoRowFile:
		return nil, fault.Corruptf("metadata: table %d: with and without row files", t.Number)
	case m.RowFile:
		t.RowFile = schema.FullRowFile
	case m.NoRowFile:
		t.RowFile = schema.NoRowFile
	}
	var ok1, ok2 bool
	t.TableID, ok1 = parseID(m.TableId)
	t.TabletID, ok2 = parseID(m.TabletId)
	switch {
	case !ok1 || !ok2:
		return nil, fault.Corruptf("metadata: table %d: table id %.40q, tablet id %.40q: want 32 hex digits",
			t.Number, m.TableId, m.TabletId)
	case t.HistorySec < KeepForever:
		return nil, fault.Corruptf("metadata: table %d: retention of %d s", t.Number, t.HistorySec)
	case t.AutoIncrement < 0:
		return nil, fault.Corruptf("metadata: table %d: auto-incremented to %d", t.Number, t.AutoIncrement)
	case t.NextRowSetID > math.MaxInt64:
		return nil, fault.Corruptf("metadata: table %d: next rowset %d", t.Number, t.NextRowSetID)
	}
	if t.Schema, err = kuduschema.FromMessage(m.Schema); err != nil {
		return nil, err
	}
	if t.Schema, err = withForms(t.Schema, m.Forms); err != nil {
		return nil, fmt.Errorf("metadata: table %d: %w", t.Number, err)
	}
	for i := range t.Schema.Columns {
		if c := &t.Schema.Columns[i]; c.ID >= t.NextColumnID {
			return nil, fault.Corruptf("metadata: table %d: column %q has id %d, the next one is %d", t.Number,
				c.Name, c.ID, t.NextColumnID)
		}
	}
	if t.Expiry, err = expiryRules(t.Schema, m.Expiry); err != nil {
		return nil, fmt.Errorf("metadata: table %d: %w", t.Number, err)
	}
	return t, nil
}
