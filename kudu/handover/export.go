package handover

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"math"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/internal/instore"
	"github.com/oribi-db/oribi/internal/kudufs"
	"github.com/oribi-db/oribi/internal/kudupb"
	"github.com/oribi-db/oribi/internal/kuduschema"
	"github.com/oribi-db/oribi/internal/kuduwal"
	"github.com/oribi-db/oribi/rowset"
	"github.com/oribi-db/oribi/schema"
	"github.com/oribi-db/oribi/vfs"
)

// ExportOptions change how a table is exported. The zero value is the default.
type ExportOptions struct {
	FS vfs.FS // of the directory. Default: vfs.OS
}

// Export flushes a table and makes the directory of a new Kudu tablet server, with one root and one
// tablet: the rows of the table with their history, and its retention. A tablet server that is
// started there opens the tablet; a cluster does not know it, see Install. The parent of dir must
// exist. If Export fails, it removes dir. Errors: fs.ErrExist if dir exists; ErrUnsupported for
// array columns, which Kudu 1.18 does not know; ErrCorrupt; the errors of oribi.Table.Flush.
// Source: tablet spec §11.5.
func Export(ctx context.Context, table *oribi.Table, dir string, o ExportOptions) (r Result, err error) {
	if o.FS == nil {
		o.FS = vfs.OS
	}
	if err := instore.Check(o.FS, dir); err != nil {
		return Result{}, fmt.Errorf("kudu: export table %q: %w", table.Name(), err)
	}
	err = table.Files(ctx, func(s *schema.Schema, sets iter.Seq2[rowset.Files, error]) error {
		if err := checkTypes(s); err != nil {
			return err
		}
		r, err = export(ctx, table, s, sets, o.FS, dir)
		if err != nil && !errors.Is(err, fs.ErrExist) {
			err = errors.Join(err, vfs.RemoveAll(o.FS, dir))
		}
		return err
	})
	if err != nil {
		return Result{}, fmt.Errorf("kudu: export table %q: %w", table.Name(), err)
	}
	return r, nil
}

func export(
	ctx context.Context, table *oribi.Table, s *schema.Schema, sets iter.Seq2[rowset.Files, error],
	fsys vfs.FS, dir string,
) (Result, error) {
	d, err := kudufs.Format(fsys, dir)
	if err != nil {
		return Result{}, err
	}
	w, err := d.NewWriter(nil)
	if err != nil {
		return Result{}, err
	}
	out := outgoing{ctx: ctx, writer: w, schema: s, ids: sameIDs(s)}
	for f, err := range sets {
		if err == nil {
			err = out.add(f)
		}
		if err != nil {
			return Result{}, errors.Join(err, w.Abort())
		}
	}
	if err := w.Commit(); err != nil {
		return Result{}, errors.Join(err, w.Abort())
	}
	m := newSuperblock(table, s)
	out.setRowSets(m)
	id := string(m.TabletId)
	if err := d.CreateTablet(m, kuduwal.FirstSegment,
		kuduwal.NewSegment(id, m.Schema, m.GetSchemaVersion())); err != nil {
		return Result{}, err
	}
	return out.result(id), nil
}

// newSuperblock returns the superblock of a new tablet with all rows of a table.
func newSuperblock(table *oribi.Table, s *schema.Schema) *kudupb.TabletSuperBlockPB {
	p := table.Properties()
	return &kudupb.TabletSuperBlockPB{
		TableId:          []byte(p.ID),
		TabletId:         []byte(kudufs.NewID()),
		TableName:        proto.String(table.Name()),
		LastDurableMrsId: proto.Int64(-1), // none: the log has no operations
		Schema:           kuduschema.Message(s),
		SchemaVersion:    proto.Uint32(p.SchemaVersion),
		TabletDataState:  proto.Int32(int32(kudupb.TabletDataState_TABLET_DATA_READY)),
		Partition:        &kudupb.PartitionPB{PartitionKeyStart: []byte{}, PartitionKeyEnd: []byte{}},
		PartitionSchema:  &kudupb.PartitionSchemaPB{RangeSchema: &kudupb.PartitionSchemaPB_RangeSchemaPB{}},
		ExtraConfig:      &kudupb.TableExtraConfigPB{HistoryMaxAgeSec: proto.Int32(seconds(p.History))},
	}
}

// seconds returns a retention in Kudu's form, rounded up: −1 keeps everything.
func seconds(history time.Duration) int32 {
	if history == oribi.HistoryForever {
		return -1
	}
	n := history / time.Second
	if history%time.Second > 0 {
		n++
	}
	return int32(min(n, math.MaxInt32))
}
