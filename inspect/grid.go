package inspect

import (
	"bytes"
	"context"
	"errors"
	"time"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/keyenc"
	"github.com/oribi-db/oribi/schema"
)

// grid reads rows of a table in key order, as a page shows them.
type grid struct {
	table   *oribi.Table
	schema  *schema.Schema
	encoder *keyenc.Encoder
	columns []schema.Column   // that are read: the key's first
	where   []oribi.Predicate // the rows to show; all if empty
	until   time.Time         // when no other rowset is begun
	splits  [][]byte          // first keys of rowsets but the first, ascending
	scanned scanView          // what segment has read
}

// line is a row of the table in one state.
type line struct {
	key   []byte   // encoded
	cells [][]byte // of the key
	views []valueView
}

// newGrid returns a grid of some columns, which begin with the key columns.
func newGrid(t *oribi.Table, columns []schema.Column, until time.Time) *grid {
	s := t.Schema()
	return &grid{table: t, schema: s, encoder: keyenc.NewEncoder(s), columns: columns, until: until}
}

// filter makes the grid show only the rows for which an expression is true. Since few rows may
// match, it reads the key range of one rowset after another, and can stop between them.
func (g *grid) filter(expression string) error {
	p, err := oribi.ParsePredicate(g.schema.Columns, expression)
	if err != nil {
		return err
	}
	g.where = []oribi.Predicate{p}
	var last []byte
	for i, set := range g.table.Layout().RowSets {
		if i > 0 && bytes.Compare(last, set.MinKey) < 0 {
			g.splits = append(g.splits, set.MinKey)
		}
		last = set.MinKey
	}
	return nil
}

// names returns the names of the columns.
func (g *grid) names() []string {
	list := make([]string, len(g.columns))
	for i := range g.columns {
		list[i] = g.columns[i].Name
	}
	return list
}

// read returns the rows of a state whose keys are not below from, which may be nil, up to limit
// rows. The answer is complete for the keys below end, which may have rows after them; nil is the
// end of the table.
func (g *grid) read(
	ctx context.Context, at oribi.ReadOption, from []byte, limit int,
) (lines []line, end []byte, err error) {
	splits := g.splits
	for {
		for len(splits) > 0 && bytes.Compare(splits[0], from) <= 0 {
			splits = splits[1:]
		}
		end = nil
		if len(splits) > 0 {
			end = splits[0]
		}
		if lines, err = g.segment(ctx, at, lines, from, end, limit+1); err != nil {
			return nil, nil, err
		}
		if len(lines) > limit {
			return lines[:limit], lines[limit].key, nil
		}
		if end == nil || !time.Now().Before(g.until) {
			return lines, end, nil
		}
		from = end
	}
}

// segment appends the rows with keys in [from, to), until there are limit.
func (g *grid) segment(
	ctx context.Context, at oribi.ReadOption, lines []line, from, to []byte, limit int,
) ([]line, error) {
	options := []oribi.ScanOption{at, oribi.Columns(g.names()...), oribi.Where(g.where...),
		oribi.Limit(int64(limit - len(lines)))}
	bounds := []struct {
		key    []byte
		option func(any) oribi.RangeOption
	}{{from, oribi.From}, {to, oribi.To}}
	for _, b := range bounds {
		if b.key != nil {
			cells, err := g.encoder.Decode(b.key)
			if err != nil {
				return nil, err
			}
			options = append(options, b.option(cells))
		}
	}
	var e oribi.Explanation
	for cells, err := range g.table.Scan(ctx, append(options, oribi.Explain(&e))...).Cells() {
		if err != nil {
			return nil, err
		}
		lines = append(lines, g.line(cells))
	}
	g.scanned.add(&e)
	return lines, nil
}

// line returns the row with these cells, which it does not keep.
func (g *grid) line(cells [][]byte) line {
	l := line{key: g.encoder.AppendKey(nil, cells[:g.schema.Keys])}
	for i, cell := range cells {
		if i < g.schema.Keys {
			l.cells = append(l.cells, append([]byte{}, cell...))
		}
		chars := gridChars
		if g.columns[i].Type == schema.Binary {
			chars = gridBinaryChars
		}
		l.views = append(l.views, viewOf(&g.columns[i], cell, chars))
	}
	return l
}

// get returns the row with a key in a state; ok is false if the state has no such row.
func (g *grid) get(ctx context.Context, at oribi.ReadOption, key [][]byte) (l line, ok bool, err error) {
	_, cells, err := g.table.GetCells(ctx, key, at, oribi.Columns(g.names()...))
	switch {
	case errors.Is(err, oribi.ErrNotFound):
		return line{}, false, nil
	case err != nil:
		return line{}, false, err
	}
	return g.line(cells), true, nil
}

// before returns the key from which on the last rows before a key fill a page; nil if no rows are
// before the key, or they are not found in time.
func (g *grid) before(ctx context.Context, at oribi.ReadOption, key []byte, limit int) []byte {
	ctx, cancel := context.WithTimeout(ctx, previousTime)
	defer cancel()
	cells, err := g.encoder.Decode(key)
	if err != nil {
		return nil
	}
	var first []byte
	names := g.names()[:g.schema.Keys]
	for cells, err := range g.table.Scan(ctx, at, oribi.Columns(names...), oribi.Where(g.where...), oribi.To(cells),
		oribi.Desc(), oribi.Limit(int64(limit))).Cells() {
		if err != nil {
			return nil
		}
		first = g.encoder.AppendKey(first[:0], cells)
	}
	return first
}

// previousTime bounds the search for the page before.
const previousTime = 40 * time.Millisecond
