package oribi

import (
	"context"
	"iter"

	"github.com/oribi-db/oribi/rowset"
	"github.com/oribi-db/oribi/schema"
)

// Extract flushes the table and copies the files of all its rowsets into dir, which it creates,
// with a tablet.json that describes them. Apache Kudu's own programs read these files. The copy is
// complete, with the table's history. Rows that have expired are deleted first, since Kudu knows
// nothing of their expiry. If Extract fails, it removes dir. Errors: os.ErrExist if dir
// exists; ErrCorrupt; those of Flush.
func (t *Table) Extract(ctx context.Context, dir string) error {
	return t.extract(ctx, func(ctx context.Context) error { return t.tab.Extract(ctx, dir) })
}

// Files flushes the table and calls use with its schema and the files of all its rowsets, in the
// order of their first keys: what Extract copies. Each file is read and verified in full before its
// rowset is passed on. The files of a rowset are valid until the next one; sets may be ranged over
// several times. No flush, compaction, or alteration of the table runs during the call. Errors:
// ErrCorrupt; those of Flush and of use.
func (t *Table) Files(
	ctx context.Context, use func(s *schema.Schema, sets iter.Seq2[rowset.Files, error]) error,
) error {
	var refused error // of use: not one of this table, which use names if that matters
	err := t.extract(ctx, func(ctx context.Context) error {
		return t.tab.Files(ctx, func(s *schema.Schema, sets iter.Seq2[rowset.Files, error]) error {
			refused = use(s, sets)
			return refused
		})
	})
	if refused != nil {
		return refused
	}
	return err
}

// extract calls copying after it has deleted the rows that have expired.
func (t *Table) extract(ctx context.Context, copying func(context.Context) error) error {
	_, err := t.work(ctx, "extract", func(ctx context.Context) (CompactionResult, error) {
		if err := t.purge(ctx); err != nil {
			return CompactionResult{}, err
		}
		return CompactionResult{}, copying(ctx)
	})
	return err
}
