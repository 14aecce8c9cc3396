package oribi

import (
	"context"
	"fmt"
	"slices"

	"github.com/oribi-db/oribi/block"
	"github.com/oribi-db/oribi/cfile"
	"github.com/oribi-db/oribi/schema"
)

// Stats contains counts of a table.
type Stats struct {
	LiveRows int64 // at the newest state
	RowSets  int
	Bytes    int64 // of all files
	MemBytes int64 // rows and changes not yet flushed
	RowFiles int   // rowsets with a row file

	RowFileBytes int64 // of all row files, included in Bytes

	KeyDirectories    int   // rowsets with a stored key directory
	KeyDirectoryBytes int64 // of all of them, included in Bytes
	Columns           []ColumnStats
}

// ColumnStats contains the size, encodings, and compressions of a column. If the schema leaves the
// encoding or compression open, it may differ between rowsets.
type ColumnStats struct {
	Name         string
	Bytes        int64                // of the column's files in all rowsets
	Encodings    []schema.Encoding    // of the files, each once, never Auto; empty without files
	Compressions []schema.Compression // likewise, never DefaultCompression
}

// add counts one file of the column.
func (c *ColumnStats) add(info cfile.Info) {
	c.Bytes += info.Bytes
	if !slices.Contains(c.Encodings, info.Encoding) {
		c.Encodings = append(c.Encodings, info.Encoding)
	}
	if !slices.Contains(c.Compressions, info.Compression) {
		c.Compressions = append(c.Compressions, info.Compression)
	}
}

// Stats counts rows, rowsets and bytes from metadata, without reading rows. With perColumn it also
// opens the files of each rowset and fills in Columns.
func (t *Table) Stats(perColumn bool) (Stats, error) {
	if err := t.store.enter(); err != nil {
		return Stats{}, err
	}
	defer t.store.leave()
	st := Stats{LiveRows: t.tab.LiveRows()}
	mem, deltas := t.tab.MemBytes()
	st.MemBytes = mem + deltas
	sets := t.tab.RowSetMetadata()
	st.RowSets = len(sets)
	columns := map[schema.ColumnID]*ColumnStats{}
	if perColumn {
		s := t.Schema()
		st.Columns = make([]ColumnStats, len(s.Columns))
		for i := range s.Columns {
			st.Columns[i].Name = s.Columns[i].Name
			columns[s.Columns[i].ID] = &st.Columns[i]
		}
	}
	for _, m := range sets {
		st.Bytes += m.Bytes
		if m.RowFile != 0 {
			st.RowFiles++
			st.RowFileBytes += m.RowFileBytes
		}
		if m.KeyDirectory != 0 {
			st.KeyDirectories++
			st.KeyDirectoryBytes += m.KeyDirectoryBytes
		}
		if !perColumn {
			continue
		}
		for _, c := range m.Columns {
			column := columns[c.ID]
			if column == nil {
				continue // dropped since
			}
			info, err := t.columnInfo(c.Block)
			if err != nil {
				return st, t.errorf(fmt.Errorf("column %q: %w", columns[c.ID].Name, err))
			}
			column.add(info)
		}
	}
	return st, nil
}

// CompressionAdvice estimates the savings of other compressions of a column.
type CompressionAdvice struct {
	Column string
	// LZ4HC and Dense are the shares of the bytes of its files that a rewrite for schema.LZ4HC and
	// schema.Dense would save; 0 if it would not pay.
	LZ4HC, Dense float64
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

// columnInfo reads the description in a column file's footer.
func (t *Table) columnInfo(id block.ID) (cfile.Info, error) {
	src, err := t.store.core.Blocks.OpenBlock(id)
	if err != nil {
		return cfile.Info{}, err
	}
	defer src.Close()
	r, err := cfile.Open(src, cfile.ReaderOptions{NoHeader: true, Arrays: true})
	if err != nil {
		return cfile.Info{}, err
	}
	return r.Info(), nil
}
