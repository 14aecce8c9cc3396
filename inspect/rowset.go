package inspect

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/block"
	"github.com/oribi-db/oribi/blockmanager"
	"github.com/oribi-db/oribi/bloom"
	"github.com/oribi-db/oribi/cfile"
	"github.com/oribi-db/oribi/compaction"
	"github.com/oribi-db/oribi/delta"
	"github.com/oribi-db/oribi/internal/celltext"
	"github.com/oribi-db/oribi/keyenc"
	"github.com/oribi-db/oribi/rowset"
	"github.com/oribi-db/oribi/schema"
)

var rowsetPage = page{pattern: "/rowset", name: "Rowset", template: "rowset.html", table: true,
	params: []string{"rowset", "columns", "column_page"}, build: buildRowset}

const (
	deltasShown  = 50 // delta files
	birthsShown  = 50
	updatesShown = 8    // columns of a delta file
	boundShown   = 40   // characters of a bound in a list
	nameShown    = 40   // characters of a name next to a number
	keyBytes     = 4096 // of a key that is shown whole
)

// rowsetView is the page of a rowset.
type rowsetView struct {
	Table    string  `json:"table"`
	ID       uint64  `json:"id"`
	Rows     int64   `json:"rows"`
	LiveRows int64   `json:"live_rows"`
	Deleted  int64   `json:"deleted_rows"`
	Bytes    int64   `json:"bytes"`
	First    keyView `json:"first_key"`
	Last     keyView `json:"last_key"`
	Width    float64 `json:"width"`
	Height   int     `json:"height"`
	LSN      uint64  `json:"included_lsn"`
	Newest   moment  `json:"newest_change"`
	Written  *moment `json:"written,omitempty"`

	Parts        []part         `json:"parts"`
	Columns      []rowsetColumn `json:"columns"`
	ColumnsShown pager          `json:"columns_shown"`
	ColumnOrder  string         `json:"column_order"`
	Others       []rowsetFile   `json:"other_files"`
	Deltas       []deltaFile    `json:"deltas"`
	DeltasShown  pager          `json:"deltas_shown"`
	Births       []birth        `json:"births"`
	BirthCount   int            `json:"birth_count"`
	Bloom        *bloomView     `json:"bloom,omitempty"`
	BloomWrong   string         `json:"bloom_problem,omitempty"`

	ColumnOrders []crumb `json:"-"`
}

// keyView is a key as text and, unless it is long, as the JSON that the page of a row takes.
type keyView struct {
	Text string `json:"text"`
	JSON string `json:"key,omitempty"`
}

// rowsetColumn is the file of a column.
type rowsetColumn struct {
	ID      int     `json:"id"`
	Name    string  `json:"name"`
	Type    string  `json:"type"`
	Dropped bool    `json:"dropped"` // the table no longer has the column
	Block   uint64  `json:"block"`   // 0: no file: all rows have the default
	Bytes   int64   `json:"bytes"`
	Share   float64 `json:"share"` // of the columns of the rowset
	Form    string  `json:"form"`
	Cblocks int     `json:"cblocks"` // with data
	Zone    *zone   `json:"zone,omitempty"`
	Updates int64   `json:"updates"` // by redos in files
	Problem string  `json:"problem,omitempty"`
}

// zone describes the values of a file or of a cblock.
type zone struct {
	Nulls int     `json:"nulls"`
	NaN   bool    `json:"nan"`
	Min   *string `json:"min,omitempty"` // nil: no value
	Max   *string `json:"max,omitempty"` // nil: no value, or no bound
	Cut   bool    `json:"cut"`           // a bound is a part of a long value
}

// rowsetFile is a file that is neither a column nor deltas.
type rowsetFile struct {
	Kind    string  `json:"kind"`
	Block   uint64  `json:"block"`
	Bytes   int64   `json:"bytes"`
	Share   float64 `json:"share"` // of the rowset
	Meaning string  `json:"meaning"`
}

// deltaFile is a file of redos or undos.
type deltaFile struct {
	Kind        string    `json:"kind"`
	Block       uint64    `json:"block"`
	Bytes       int64     `json:"bytes"`
	Changes     int64     `json:"changes"`
	Deletes     int64     `json:"deletes"`
	Reinserts   int64     `json:"reinserts"`
	Oldest      *moment   `json:"oldest,omitempty"`
	Newest      *moment   `json:"newest,omitempty"`
	Updates     []updates `json:"updates"` // most first
	MoreColumns int       `json:"more_columns"`
	Problem     string    `json:"problem,omitempty"`
}

// updates is how often a column was changed.
type updates struct {
	Column string `json:"column"`
	Count  int64  `json:"count"`
}

// birth is a run of rows that were inserted together.
type birth struct {
	First int64  `json:"first_row"`
	Rows  int64  `json:"rows"`
	At    moment `json:"at"`
}

// bloomView describes the Bloom filter of a rowset.
type bloomView struct {
	Filters  int     `json:"filters"`
	Hashes   int     `json:"hashes"`
	Bytes    int64   `json:"bytes_per_filter"`
	Bits     int64   `json:"bits"`
	Set      int64   `json:"bits_set"`
	SetShare float64 `json:"bits_set_share"`
	Expected float64 `json:"expected_rate"` // of false positives, from the bits that are set
	Probes   int     `json:"probes"`        // keys that the rowset does not have
	Wrong    int     `json:"false_positives"`
	Measured float64 `json:"measured_rate"` // Wrong / Probes
}

// findRowset returns the rowset of the parameter "rowset".
func findRowset(q *query) (*rowset.Metadata, error) {
	id, err := q.Number("rowset")
	if err != nil {
		return nil, err
	}
	for _, m := range q.Table.RowSets() {
		if m.ID == id {
			return m, nil
		}
	}
	return nil, gone("Table %q has no rowset %d, or no more.", q.Table.Name(), id)
}

func buildRowset(ctx context.Context, s *server, q *query) (any, error) {
	m, err := findRowset(q)
	if err != nil {
		return nil, err
	}
	v := &rowsetView{Table: q.Table.Name(), ID: m.ID, Rows: m.Rows, LiveRows: m.LiveRows, Deleted: m.Rows - m.LiveRows,
		Bytes: m.Bytes, LSN: uint64(m.IncludedLSN), Newest: momentOf(m.MaxTimestamp)}
	if m.Written > 0 {
		at := momentOf(m.Written)
		v.Written = &at
	}
	sc := q.Table.Schema()
	v.First, v.Last = wholeKey(sc, m.MinKey), wholeKey(sc, m.MaxKey)
	v.addSpan(q.Table.Layout())
	redo, undo, changed, err := v.addDeltas(ctx, s, q, m, sc)
	if err != nil {
		return nil, err
	}
	if err := v.addColumns(ctx, s, q, m, sc, changed); err != nil {
		return nil, err
	}
	v.addOthers(s, m, redo, undo)
	for _, b := range m.Births[:min(len(m.Births), birthsShown)] {
		v.Births = append(v.Births, birth{int64(b.First), int64(b.Rows), momentOf(b.TS)})
	}
	v.BirthCount = len(m.Births)
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	v.Bloom, err = s.measureBloom(ctx, sc, m)
	if err != nil && unlessFile(err) == nil {
		v.BloomWrong, err = celltext.Printable(s.clean(err)), nil
	}
	return v, err
}

// wholeKey returns a key as text and as JSON.
func wholeKey(sc *schema.Schema, key []byte) keyView {
	v := keyView{Text: celltext.Printable(cut(celltext.Keys(sc)(key), keyBytes/4))}
	cells, err := keyenc.NewEncoder(sc).Decode(key)
	if err == nil && len(key) <= keyBytes {
		if text := celltext.AppendObject(nil, sc.Columns[:sc.Keys], cells); json.Valid(text) {
			v.JSON = string(text)
		}
	}
	return v
}

// addSpan adds where the rowset is among the others.
func (v *rowsetView) addSpan(layout compaction.Layout) {
	for i := range layout.RowSets {
		if layout.RowSets[i].ID == v.ID {
			v.Width, v.Height = round(compaction.Spans(layout)[i].Width(), 4), compaction.Heights(layout)[i]
		}
	}
}

// addColumns adds all columns: of the schema, with or without files, and dropped columns that still
// have files. changed has the number of changes of each column in redos.
func (v *rowsetView) addColumns(
	ctx context.Context, s *server, q *query, m *rowset.Metadata, sc *schema.Schema, changed map[schema.ColumnID]int64,
) error {
	blocks := map[schema.ColumnID]block.ID{}
	ids := make([]block.ID, len(m.Columns))
	for i, c := range m.Columns {
		blocks[c.ID], ids[i] = c.Block, c.Block
	}
	sizes := map[block.ID]int64{}
	base := int64(0)
	for i, n := range s.store.BlockBytes(nil, ids...) {
		sizes[ids[i]] = max(n, 0)
		base += max(n, 0)
	}
	text := 0
	for i := range sc.Columns {
		c := &sc.Columns[i]
		text += len(c.Name)
		id := blocks[c.ID]
		delete(blocks, c.ID)
		column := rowsetColumn{ID: int(c.ID), Name: c.Name, Type: c.TypeName(), Block: uint64(id), Bytes: sizes[id],
			Share: share(sizes[id], base), Updates: changed[c.ID]}
		if id != 0 {
			if err := column.read(s, c, id); err != nil {
				return err
			}
		}
		v.Columns = append(v.Columns, column)
		if err := ctx.Err(); err != nil {
			return err
		}
	}
	for _, c := range m.Columns {
		if id, ok := blocks[c.ID]; ok {
			v.Columns = append(v.Columns,
				rowsetColumn{ID: int(c.ID), Name: fmt.Sprintf("column %d", c.ID), Dropped: true, Block: uint64(id),
					Bytes: sizes[id], Share: share(sizes[id], base)})
		}
	}
	v.Parts = append(v.Parts, part{Name: "columns", Bytes: base,
		Meaning: "Base data: the cells, a file for each column."})
	orders := []order[rowsetColumn]{{"schema", nil}, {"size", func(a, b rowsetColumn) int {
		return cmp.Compare(b.Bytes, a.Bytes)
	}},
		{"updates", func(a, b rowsetColumn) int { return cmp.Compare(b.Updates, a.Updates) }}}
	var err error
	if v.ColumnOrder, v.ColumnOrders, err = sortBy(s, q, "columns", v.Columns, orders); err == nil {
		v.Columns, v.ColumnsShown, err = columnPage(s, q, v.Columns, text)
	}
	return err
}

// read reads the footer and the zone map of the file. Damage becomes its problem.
func (c *rowsetColumn) read(s *server, column *schema.Column, id block.ID) error {
	r, done, err := s.openColumn(id)
	if err == nil {
		defer done()
		info := r.Info()
		c.Form = formText(form{info.Encoding, info.Compression})
		var pointers []cfile.BlockPointer
		if pointers, err = r.BlockPointers(); err == nil {
			c.Cblocks = len(pointers)
			var z *cfile.ZoneMap
			if z, err = r.ZoneMap(); err == nil && z != nil {
				c.Zone = zoneOf(column, &z.File)
			}
		}
	}
	if err != nil && unlessFile(err) == nil {
		c.Problem, err = celltext.Printable(s.clean(err)), nil
	}
	return err
}

// zoneOf formats an entry of a zone map.
func zoneOf(c *schema.Column, e *cfile.ZoneEntry) *zone {
	z := &zone{Nulls: e.Nulls, NaN: e.HasNaN, Cut: e.MinCut || e.MaxRounded}
	z.Min, z.Max = boundText(c, e.Min, e.MinCut), boundText(c, e.Max, e.MaxRounded)
	return z
}

// boundText formats a bound of values; nil is none. A cut bound need not be a value of the type.
func boundText(c *schema.Column, bound []byte, cutOff bool) *string {
	if bound == nil {
		return nil
	}
	text := fmt.Sprintf("0x%x", bound)
	if cell, ok := keyenc.AppendFromComparable([]byte{}, c.Type, bound); ok {
		text = string(celltext.AppendText([]byte{}, c, cell))
	}
	if text = cut(text, boundShown); cutOff && !strings.HasSuffix(text, "…") {
		text += "…"
	}
	text = celltext.Printable(text)
	return &text
}

// addOthers adds the files that are neither columns nor deltas, and the parts of the rowset.
func (v *rowsetView) addOthers(s *server, m *rowset.Metadata, redo, undo int64) {
	sizes := s.store.BlockBytes(nil, m.KeyIndex, m.Bloom, m.RowFile, m.KeyDirectory)
	for i, f := range []rowsetFile{
		{Kind: "key index", Block: uint64(m.KeyIndex), Meaning: "The encoded keys, in order: from a key to a row."},
		{Kind: "bloom filter", Block: uint64(m.Bloom),
			Meaning: "Tells that a key is not in the rowset, without reading the key index."},
		{Kind: "row file", Block: uint64(m.RowFile),
			Meaning: "Each row as one piece, so that a read of a whole row reads one place."},
		{Kind: "key directory", Block: uint64(m.KeyDirectory),
			Meaning: "A hash table from keys to rows, read in one piece at the first read by key."},
	} {
		if f.Block == 0 {
			continue
		}
		f.Bytes = max(sizes[i], 0)
		f.Share = share(f.Bytes, m.Bytes)
		v.Others = append(v.Others, f)
		v.Parts = append(v.Parts, part{Name: f.Kind, Bytes: f.Bytes, Meaning: f.Meaning})
	}
	v.Parts = append(v.Parts, part{Name: "redos", Bytes: redo, Meaning: "Changes since the base data was written."},
		part{Name: "undos", Bytes: undo, Meaning: "Changes that lead back in time."})
	v.Parts = slices.DeleteFunc(v.Parts, func(p part) bool { return p.Bytes == 0 })
	for i := range v.Parts {
		v.Parts[i].Share = share(v.Parts[i].Bytes, m.Bytes)
	}
}

// addDeltas adds the delta files, redos first, and returns their sizes and the number of changes of
// each column in redos.
func (v *rowsetView) addDeltas(
	ctx context.Context, s *server, q *query, m *rowset.Metadata, sc *schema.Schema,
) (redo, undo int64, changed map[schema.ColumnID]int64, err error) {
	changed = map[schema.ColumnID]int64{}
	var from, to int
	v.DeltasShown, from, to = s.pageOf(q, len(m.Redo)+len(m.Undo), deltasShown)
	for i, id := range slices.Concat(m.Redo, m.Undo) {
		size := max(s.store.BlockBytes(nil, id)[0], 0)
		f := deltaFile{Kind: "redo", Block: uint64(id), Bytes: size}
		if redo += size; i >= len(m.Redo) {
			redo -= size
			undo += size
			f.Kind = "undo"
		}
		if shown := i >= from && i < to; !shown && f.Kind == "undo" {
			continue
		}
		stats, err := f.read(s, sc, id)
		if err != nil {
			return 0, 0, nil, err
		}
		if f.Kind == "redo" {
			for _, c := range stats.Columns {
				changed[c.ID] += c.Updates
			}
		}
		if i >= from && i < to {
			v.Deltas = append(v.Deltas, f)
		}
		if err := ctx.Err(); err != nil {
			return 0, 0, nil, err
		}
	}
	return redo, undo, changed, nil
}

// read reads the statistics of a delta file. Damage becomes its problem.
func (f *deltaFile) read(s *server, sc *schema.Schema, id block.ID) (stats delta.Stats, err error) {
	src, err := s.store.OpenBlock(id)
	if err == nil {
		defer src.Close()
		var d *delta.File
		if d, err = delta.OpenFile(src, cfile.ReaderOptions{}); err == nil {
			stats = d.Stats()
			f.set(sc, d.Len(), &stats)
		}
	}
	if err != nil && unlessFile(err) == nil {
		f.Problem, err = celltext.Printable(s.clean(err)), nil
	}
	return stats, err
}

func (f *deltaFile) set(sc *schema.Schema, changes int64, stats *delta.Stats) {
	f.Changes, f.Deletes, f.Reinserts = changes, stats.Deletes, stats.Reinserts
	if changes > 0 {
		oldest, newest := momentOf(stats.Min), momentOf(stats.Max)
		f.Oldest, f.Newest = &oldest, &newest
	}
	for _, c := range stats.Columns {
		name := fmt.Sprintf("column %d", c.ID)
		if i := sc.IndexID(c.ID); i >= 0 {
			name = celltext.Printable(cut(sc.Columns[i].Name, nameShown))
		}
		f.Updates = append(f.Updates, updates{name, c.Updates})
	}
	slices.SortStableFunc(f.Updates, func(a, b updates) int { return cmp.Compare(b.Count, a.Count) })
	if n := len(f.Updates) - updatesShown; n > 0 {
		f.Updates, f.MoreColumns = f.Updates[:updatesShown], n
	}
}

// Probes of a Bloom filter: keys that are not in the rowset, next to some that are, so that they
// reach filters from all of its range.
const (
	probedKeys  = 32
	probesByKey = 512
)

// measureBloom counts the bits of the Bloom filter, and its wrong answers about keys that are not
// in the rowset.
func (s *server) measureBloom(ctx context.Context, sc *schema.Schema, m *rowset.Metadata) (*bloomView, error) {
	src, err := s.store.OpenBlock(m.Bloom)
	if err != nil {
		return nil, err
	}
	defer src.Close()
	r, err := bloom.Open(src, cfile.ReaderOptions{})
	if err != nil {
		return nil, err
	}
	info, err := r.Info()
	if err != nil {
		return nil, err
	}
	v := &bloomView{Filters: info.Filters, Hashes: info.Hashes, Bytes: int64(info.Bitmap), Bits: info.Bits,
		Set: info.Set, SetShare: share(info.Set, info.Bits), Expected: round(info.Wrong, 6)}
	keys, done, err := s.openKeys(sc, m)
	if err != nil {
		return nil, err
	}
	defer done()
	for i := range int64(probedKeys) {
		key, err := keys(batch.Ordinal(i * (m.Rows - 1) / (probedKeys - 1)))
		if err != nil {
			return nil, err
		}
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		for k := range probesByKey {
			// The suffix makes it a key that no row has: it is longer than one of its kind, or,
			// after text, all but certain not to follow it.
			probe := append(slices.Clip(key), 0, byte(k), byte(k>>8), 0xb1, 0x00, 0x4d, 0xe7, byte(i))
			maybe, err := r.MayContain(bloom.MakeProbe(probe))
			if err != nil {
				return nil, err
			}
			if v.Probes++; maybe {
				v.Wrong++
			}
		}
	}
	v.Measured = round(float64(v.Wrong)/float64(v.Probes), 6)
	return v, nil
}

// openKeys opens the file with the keys of a rowset. keys returns the encoded key of a row.
func (s *server) openKeys(
	sc *schema.Schema, m *rowset.Metadata,
) (keys func(batch.Ordinal) ([]byte, error), done func() error, err error) {
	id := m.KeyIndex
	for _, c := range m.Columns {
		if id == 0 && c.ID == sc.Columns[0].ID {
			id = c.Block
		}
	}
	r, done, err := s.openColumn(id)
	if err != nil {
		return nil, nil, err
	}
	if m.KeyIndex != 0 {
		return r.Cell, done, nil
	}
	encoder := keyenc.NewEncoder(sc)
	return func(row batch.Ordinal) ([]byte, error) {
		cell, err := r.Cell(row)
		if err != nil {
			return nil, err
		}
		return encoder.AppendKey(nil, [][]byte{cell}), nil
	}, done, nil
}

// openBlock opens a block of a rowset.
func (s *server) openBlock(id block.ID) (blockmanager.Source, error) {
	src, err := s.store.OpenBlock(id)
	if errors.Is(err, oribi.ErrNotFound) {
		return nil, gone("Block %d is no more.", id)
	}
	return src, err
}
