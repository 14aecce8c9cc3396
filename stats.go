package oribi

import (
	"context"

	"github.com/oribi-db/oribi/storeinfo"
)

// Stats contains counts of a table.
type Stats = storeinfo.Stats

// ColumnStats contains the size, encodings, and compressions of a column.
type ColumnStats = storeinfo.ColumnStats

// CompressionAdvice estimates the savings of other compressions of a column.
type CompressionAdvice = storeinfo.CompressionAdvice

// Stats counts rows, rowsets and bytes from metadata, without reading rows. With perColumn it also
// opens the files of each rowset and fills in Columns.
func (t *Table) Stats(perColumn bool) (Stats, error) {
	if err := t.store.enter(); err != nil {
		return Stats{}, err
	}
	defer t.store.leave()
	st, err := t.store.core.TableStats(t.tab, perColumn)
	return st, t.errorf(err)
}

// CompressionAdvice returns the advice for each column, in schema order. It compresses samples of
// the table's largest rowset, up to a megabyte of each column. Errors: ctx.Err(); ErrCorrupt;
// ErrClosed.
func (t *Table) CompressionAdvice(ctx context.Context) ([]CompressionAdvice, error) {
	if err := t.store.enter(); err != nil {
		return nil, err
	}
	defer t.store.leave()
	lz4hc, dense, err := t.tab.Savings(ctx)
	if err != nil {
		return nil, callErr("advise", err)
	}
	columns := t.Schema().Columns
	advice := make([]CompressionAdvice, min(len(columns), len(lz4hc)))
	for i := range advice {
		advice[i] = CompressionAdvice{Column: columns[i].Name, LZ4HC: lz4hc[i], Dense: dense[i]}
	}
	return advice, nil
}
