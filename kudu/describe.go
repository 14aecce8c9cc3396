package kudu

import (
	"context"
	"errors"
	"fmt"

	"github.com/oribi-db/oribi/block"
	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/internal/kudufs"
	"github.com/oribi-db/oribi/internal/kudupb"
	"github.com/oribi-db/oribi/internal/kuduschema"
	"github.com/oribi-db/oribi/internal/kuduwal"
	"github.com/oribi-db/oribi/schema"
)

// Sizes are the sizes of a tablet.
type Sizes struct {
	RowSets  int
	Rows     int64 // as of the newest operation; −1 if the tablet has no rows to read
	Bytes    int64 // of the blocks that the superblock names, without orphans
	LogBytes int64 // of the files of the log
}

// Sizes returns the sizes of a tablet. It reads the log, and the rows of a tablet without counts.
// Errors: as Open of the tablet.
func (d *Directory) Sizes(ctx context.Context, t *Tablet) (s Sizes, err error) {
	if t.Err != nil {
		return s, fmt.Errorf("kudu: %w", t.Err)
	}
	s = Sizes{RowSets: len(t.super.Rowsets), Rows: -1}
	if s.LogBytes, err = d.fs.LogBytes(t.ID); err != nil {
		return s, fmt.Errorf("kudu: %w", err)
	}
	for _, r := range t.super.Rowsets {
		for _, id := range kudufs.BlocksOf(r) {
			n, _, err := d.fs.FindBlock(id)
			if err != nil {
				return s, fmt.Errorf("kudu: tablet %s: rowset %d: %w", t.ID, r.GetId(), err)
			}
			s.Bytes += n
		}
	}
	if !t.Readable() {
		return s, nil
	}
	table, err := d.Open(ctx, t.ID)
	if err != nil {
		return s, err
	}
	s.Rows, err = table.LiveRows(ctx)
	return s, errors.Join(err, table.Close())
}

// Description has the metadata of a table, or of one tablet. The command prints its JSON.
type Description struct {
	Table         string         `json:"table"`
	TableID       string         `json:"table_id"`
	SchemaVersion uint32         `json:"schema_version"`
	Schema        *schema.Schema `json:"-"`
	Server        string         `json:"server"`        // its UUID
	Blocks        string         `json:"block_manager"` // "log" or "file"
	HistorySec    *int32         `json:"history_sec"`   // nil: the server's default
	Partitioning  Partitioning   `json:"partitioning"`
	Tablets       []TabletDetail `json:"tablets"`
}

// TabletDetail describes a tablet.
type TabletDetail struct {
	ID        string    `json:"tablet"`
	State     string    `json:"state"`
	Partition Partition `json:"partition"`
	// UUIDs; empty if it uses all of the server's
	DataDirectories []string  `json:"data_directories"`
	Replicas        []Replica `json:"replicas"`
	// of its log; nil if the log has no operations or is damaged
	LastOperation *OperationID   `json:"last_op"`
	LastMRS       int64          `json:"last_durable_mrs_id"`
	RowSets       []RowSetDetail `json:"rowsets"`
	Orphaned      []uint64       `json:"orphaned_blocks"`
}

// OperationID is the place of an operation in the logs of a tablet's replicas. Of two logs, the one
// whose last operation has the greater term, or index in the same term, is the longer one.
type OperationID struct {
	Term  int64 `json:"term"`
	Index int64 `json:"index"`
}

// Replica is a server that has a copy of a tablet.
type Replica struct {
	Server string `json:"server"` // its UUID
	Host   string `json:"host"`
	Port   uint32 `json:"port"`
	Voter  bool   `json:"voter"`
}

// RowSetDetail describes a rowset.
type RowSetDetail struct {
	ID       uint64        `json:"rowset"`
	LiveRows *int64        `json:"live"` // in files; nil if the server was too old to count them
	LastDMS  int64         `json:"last_durable_dms_id"`
	Columns  []ColumnBlock `json:"columns"`
	KeyIndex *BlockDetail  `json:"key_index"` // nil: the key is one column
	Bloom    *BlockDetail  `json:"bloom"`
	Redo     []BlockDetail `json:"redo"` // oldest first
	Undo     []BlockDetail `json:"undo"` // newest first
}

// ColumnBlock is the block with the cells of a column.
type ColumnBlock struct {
	Column int32 `json:"id"`
	BlockDetail
}

// BlockDetail describes a block.
type BlockDetail struct {
	ID    uint64 `json:"block"`
	Bytes *int64 `json:"bytes"` // nil: it is missing or damaged
	File  string `json:"file,omitempty"`
}

// Describe returns what is known of a table, with all its tablets in the directory, tombstones too,
// or of one tablet. It reads no rows, and of each log the end. Errors: ErrNoTable; ErrCorrupt.
func (d *Directory) Describe(what string) (*Description, error) {
	var found []*Tablet
	for i := range d.tablets {
		t := &d.tablets[i]
		if t.Err != nil && t.ID == what {
			return nil, fmt.Errorf("kudu: %w", t.Err)
		}
		if t.Err == nil && (t.ID == what || t.Table == what) {
			found = append(found, t)
		}
	}
	if len(found) == 0 {
		_, err := d.choose(what)
		if err == nil {
			err = fault.ErrNoTable
		}
		return nil, fmt.Errorf("kudu: %w", err)
	}
	last := newestSchema(found)
	s, err := kuduschema.FromMessage(last.super.Schema)
	if err != nil {
		return nil, fmt.Errorf("kudu: tablet %s: %w", last.ID, err)
	}
	out := &Description{Table: last.Table, TableID: string(last.super.TableId),
		SchemaVersion: last.super.GetSchemaVersion(), Schema: s,
		Server: d.fs.UUID, Blocks: d.fs.Manager, Partitioning: partitioning(last.super.PartitionSchema, s),
		Tablets: []TabletDetail{}}
	if c := last.super.ExtraConfig; c != nil {
		out.HistorySec = c.HistoryMaxAgeSec
	}
	for _, t := range found {
		detail, err := d.detail(t, s)
		if err != nil {
			return nil, fmt.Errorf("kudu: tablet %s: %w", t.ID, err)
		}
		out.Tablets = append(out.Tablets, detail)
	}
	return out, nil
}

// newestSchema returns the tablet with the newest schema of some of a table.
func newestSchema(tablets []*Tablet) *Tablet {
	last := tablets[0]
	for _, t := range tablets[1:] {
		if t.super.GetSchemaVersion() > last.super.GetSchemaVersion() {
			last = t
		}
	}
	return last
}

func (d *Directory) detail(t *Tablet, s *schema.Schema) (TabletDetail, error) {
	m := t.super
	out := TabletDetail{ID: t.ID, State: t.State, Partition: partition(m, s), DataDirectories: []string{},
		Replicas: []Replica{},
		LastMRS:  m.GetLastDurableMrsId(), RowSets: []RowSetDetail{}, Orphaned: []uint64{}}
	for _, uuid := range m.GetDataDirGroup().GetUuids() {
		out.DataDirectories = append(out.DataDirectories, string(uuid))
	}
	for _, b := range m.OrphanedBlocks {
		out.Orphaned = append(out.Orphaned, b.GetId())
	}
	for _, r := range m.Rowsets {
		out.RowSets = append(out.RowSets, d.rowsetDetail(r))
	}
	last, err := d.lastOperation(t.ID)
	if err != nil {
		d.warn(err.Error())
	}
	out.LastOperation = last
	c, err := d.fs.Consensus(t.ID)
	if err != nil {
		d.warn(err.Error())
		return out, nil
	}
	for _, p := range c.GetCommittedConfig().GetPeers() {
		out.Replicas = append(out.Replicas,
			Replica{Server: string(p.PermanentUuid), Host: p.GetLastKnownAddr().GetHost(),
				Port: p.GetLastKnownAddr().GetPort(), Voter: kudufs.IsVoter(p)})
	}
	return out, nil
}

func (d *Directory) lastOperation(tablet string) (*OperationID, error) {
	dir, err := logDirectory(d.fs, tablet)
	if err != nil {
		return nil, err
	}
	id, err := kuduwal.LastOperation(d.fs.FS(), dir)
	if id == nil || err != nil {
		return nil, err
	}
	return &OperationID{id.GetTerm(), id.GetIndex()}, nil
}

func (d *Directory) rowsetDetail(r *kudupb.RowSetDataPB) RowSetDetail {
	one := func(b *kudupb.BlockIdPB) BlockDetail {
		out := BlockDetail{ID: b.GetId()}
		if n, file, err := d.fs.FindBlock(block.ID(b.GetId())); err == nil {
			out.Bytes, out.File = &n, file
		}
		return out
	}
	some := func(b *kudupb.BlockIdPB) *BlockDetail {
		if b == nil {
			return nil
		}
		detail := one(b)
		return &detail
	}
	list := func(blocks []*kudupb.DeltaDataPB) []BlockDetail {
		out := []BlockDetail{}
		for _, b := range blocks {
			out = append(out, one(b.Block))
		}
		return out
	}
	out := RowSetDetail{ID: r.GetId(), LiveRows: r.LiveRowCount, LastDMS: r.GetLastDurableDmsId(),
		Columns:  []ColumnBlock{},
		KeyIndex: some(r.AdhocIndexBlock), Bloom: some(r.BloomBlock), Redo: list(r.RedoDeltas),
		Undo: list(r.UndoDeltas)}
	for _, c := range r.Columns {
		out.Columns = append(out.Columns, ColumnBlock{Column: c.GetColumnId(), BlockDetail: one(c.Block)})
	}
	return out
}
