package store

import (
	"fmt"
	"slices"

	"github.com/oribi-db/oribi/block"
	"github.com/oribi-db/oribi/cfile"
	"github.com/oribi-db/oribi/internal/tablet"
	"github.com/oribi-db/oribi/schema"
	"github.com/oribi-db/oribi/storeinfo"
)

// TableStats counts rows, rowsets and bytes of a table from metadata, without reading rows. With
// perColumn it also opens the files of each rowset and fills in Columns.
func (c *Core) TableStats(t *tablet.Tablet, perColumn bool) (storeinfo.Stats, error) {
	st := storeinfo.Stats{LiveRows: t.LiveRows()}
	mem, deltas := t.MemBytes()
	st.MemBytes = mem + deltas
	sets := t.RowSetMetadata()
	st.RowSets = len(sets)
	columns := map[schema.ColumnID]*storeinfo.ColumnStats{}
	if perColumn {
		present := t.Schema().Schema.Columns
		st.Columns = make([]storeinfo.ColumnStats, len(present))
		for i := range present {
			st.Columns[i].Name = present[i].Name
			columns[present[i].ID] = &st.Columns[i]
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
		for _, col := range m.Columns {
			column := columns[col.ID]
			if column == nil {
				continue // dropped since
			}
			info, err := c.columnInfo(col.Block)
			if err != nil {
				return st, fmt.Errorf("column %q: %w", column.Name, err)
			}
			addFile(column, info)
		}
	}
	return st, nil
}

// addFile counts one file of a column.
func addFile(c *storeinfo.ColumnStats, info cfile.Info) {
	c.Bytes += info.Bytes
	if !slices.Contains(c.Encodings, info.Encoding) {
		c.Encodings = append(c.Encodings, info.Encoding)
	}
	if !slices.Contains(c.Compressions, info.Compression) {
		c.Compressions = append(c.Compressions, info.Compression)
	}
}

// columnInfo reads the description in a column file's footer.
func (c *Core) columnInfo(id block.ID) (cfile.Info, error) {
	src, err := c.Blocks.OpenBlock(id)
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
