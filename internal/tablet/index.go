package tablet

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"

	"github.com/oribi-db/oribi/internal/expiry"
	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/internal/meta"
	"github.com/oribi-db/oribi/schema"
)

// An index of a table is a table of its own: it has an entry for each row of the table, in the same
// write batches and with the same history. The key of an entry is one byte string:
//
//	for each indexed column   00 for NULL, or 01 and the cell as in a key that is followed by others;
//	                          without this byte if the column is not nullable
//	the row's encoded key     unless the index is unique and no indexed column is NULL
//
// In an index by email (nullable) of the row with key INT32 7 and email "a": 01 61 00 00 80 00 00 07, and
// in a unique one: 01 61 00 00.
//
// Further columns: of a unique index, the row's encoded key; if the table's rows expire, the column by
// which they do, so that entries expire with their rows.

// Columns of tables with index entries.
const (
	entryColumn = "entry" // the key
	RowColumn   = "row"   // of unique indexes
	clockColumn = "clock" // of tables whose rows expire
)

// RowColumns has the index of RowColumn in the schema of a unique index.
var RowColumns = []int{1}

// NewIndex returns the metadata row of a table for the entries of an index of the table in row, without
// numbers and flushed LSN. Errors: ErrSchema.
func NewIndex(row *meta.Table, x meta.Index) (*meta.Table, error) {
	if err := checkIndex(row.Schema, &x); err != nil {
		return nil, fmt.Errorf("index %q: %w: %w", x.Name, err, fault.ErrSchema)
	}
	columns := []schema.Column{{Name: entryColumn, Type: schema.Binary}}
	if x.Unique {
		columns = append(columns, schema.Column{Name: RowColumn, Type: schema.Binary})
	}
	rule, expires := row.Expiry.Current()
	if expires {
		columns = append(columns, schema.Column{Name: clockColumn, Type: schema.Timestamp, Nullable: true})
	}
	s, err := schema.New(columns, 1)
	if err == nil {
		s, err = s.Created()
	}
	if err != nil {
		return nil, err
	}
	t := &meta.Table{Schema: s, NextColumnID: s.Columns[len(s.Columns)-1].ID + 1, HistorySec: row.HistorySec,
		RowFile: row.RowFile, Index: &x}
	if expires {
		rule.Column = s.Columns[len(s.Columns)-1].ID
		t.Expiry = expiry.Rules(nil).After(0, &rule)
	}
	return t, nil
}

// checkIndex returns an error if a table with the columns s cannot have an index.
func checkIndex(s *schema.Schema, x *meta.Index) error {
	if err := schema.CheckName(x.Name); err != nil {
		return err
	}
	if n := len(x.Columns); n == 0 || n > meta.MaxIndexColumns {
		return fmt.Errorf("%d columns, want 1 to %d", n, meta.MaxIndexColumns)
	}
	for i, id := range x.Columns {
		c := &s.Columns[s.IndexID(id)]
		switch {
		case slices.Contains(x.Columns[:i], id):
			return fmt.Errorf("column %q appears twice", c.Name)
		case !c.Type.Keyable():
			return fmt.Errorf("column %q: a column of type %s cannot be indexed", c.Name, c.TypeName())
		}
	}
	return nil
}

// Index returns what the table has the entries of, nil if it is no index.
func (t *Tablet) Index() *meta.Index { return t.Metadata().Index }

// SetIndexes sets the tables with the entries of the table's indexes. Write batches see it that begin
// later.
func (t *Tablet) SetIndexes(indexes []*Tablet) {
	slices.SortFunc(indexes, Compare)
	t.indexes.Store(&indexes)
	t.plan.Store(nil)
}

// Indexes returns the tables with the entries of the table's indexes, by number. The caller must not modify
// the result.
func (t *Tablet) Indexes() []*Tablet {
	if list := t.indexes.Load(); list != nil {
		return *list
	}
	return nil
}

// Compare compares tables in the order in which their locks are acquired: by number, but indexes come after
// their table.
func Compare(a, b *Tablet) int {
	rank := func(t *Tablet) (of uint32, index bool) {
		if x := t.Index(); x != nil {
			return x.Of, true
		}
		return t.Number, false
	}
	ofA, indexA := rank(a)
	ofB, indexB := rank(b)
	switch {
	case ofA != ofB:
		return cmp.Compare(ofA, ofB)
	case indexA != indexB && indexB:
		return -1
	case indexA != indexB:
		return 1
	}
	return cmp.Compare(a.Number, b.Number)
}

// indexPlan is what a write batch needs to know of a table's indexes. It is immutable.
type indexPlan struct {
	schema  *TableSchema // of the table
	list    []*Tablet    // that it was made of
	indexes []IndexColumns
	watched []int // the columns of the table on which entries depend, ascending
	clock   int   // index in watched of the column by which rows expire; below 0: they do not
}

// IndexColumns are the columns of an index, and how its entries are encoded.
type IndexColumns struct {
	Table   *Tablet // with the entries
	Columns []int   // of the indexed table, in the order of the index
	schema  *schema.Schema
	at      []int // the same as indexes of indexPlan.watched
}

// indexPlan returns the plan for a version of the table's schema, nil if the table has no indexes.
func (t *Tablet) indexPlan(sc *TableSchema) *indexPlan {
	list := t.Indexes()
	if len(list) == 0 {
		return nil
	}
	p := t.plan.Load()
	if p == nil || p.schema != sc || !slices.Equal(p.list, list) {
		p = newIndexPlan(sc, list)
		t.plan.Store(p)
	}
	return p
}

func newIndexPlan(sc *TableSchema, list []*Tablet) *indexPlan {
	p := &indexPlan{schema: sc, list: list, clock: -1}
	for _, t := range list {
		x := t.Index()
		c := IndexColumns{Table: t, schema: sc.Schema}
		for _, id := range x.Columns {
			c.Columns = append(c.Columns, sc.Schema.IndexID(id))
		}
		p.indexes = append(p.indexes, c)
		p.watched = append(p.watched, c.Columns...)
	}
	rule, expires := sc.Expiry.Current()
	if expires {
		p.watched = append(p.watched, sc.Schema.IndexID(rule.Column))
	}
	slices.Sort(p.watched)
	p.watched = slices.Compact(p.watched)
	for i := range p.indexes {
		for _, c := range p.indexes[i].Columns {
			p.indexes[i].at = append(p.indexes[i].at, slices.Index(p.watched, c))
		}
	}
	if expires {
		p.clock = slices.Index(p.watched, sc.Schema.IndexID(rule.Column))
	}
	return p
}

// IndexColumns returns the columns of an index in the table's schema sc.
func (t *Tablet) IndexColumns(sc *TableSchema, index *Tablet) (c IndexColumns, ok bool) {
	if p := t.indexPlan(sc); p != nil {
		for _, c := range p.indexes {
			if c.Table == index {
				return c, true
			}
		}
	}
	return c, false
}

// AppendPrefix appends the beginning of all entries of rows with the given cells in the first columns of the
// index; nil is NULL.
func (c *IndexColumns) AppendPrefix(dst []byte, cells [][]byte) []byte {
	for i, cell := range cells {
		dst = c.AppendValue(dst, i, cell)
	}
	return dst
}

// AppendValue appends what entries have of column i of the index; nil is NULL.
func (c *IndexColumns) AppendValue(dst []byte, i int, cell []byte) []byte {
	return appendValue(dst, &c.schema.Columns[c.Columns[i]], cell)
}

// appendEntry appends the key of the entry of a row with an encoded key.
func (c *IndexColumns) appendEntry(dst, key []byte, watched [][]byte) []byte {
	var few [meta.MaxIndexColumns][]byte
	cells := few[:0]
	null := false
	for _, i := range c.at {
		cells = append(cells, watched[i])
		null = null || watched[i] == nil
	}
	dst = c.AppendPrefix(dst, cells)
	if c.Table.Index().Unique && !null {
		return dst
	}
	return append(dst, key...)
}

// equalCells reports whether two cells are equal; nil is NULL.
func equalCells(a, b []byte) bool { return (a == nil) == (b == nil) && bytes.Equal(a, b) }
