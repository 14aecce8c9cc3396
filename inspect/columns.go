package inspect

import (
	"cmp"
	"slices"
	"sync"
	"time"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/block"
	"github.com/oribi-db/oribi/cfile"
	"github.com/oribi-db/oribi/rowset"
	"github.com/oribi-db/oribi/schema"
)

// Sizes of columns are counted rowset by rowset, for as long as a page can wait; the next page
// continues. The counts of a rowset are kept: its files do not change.
const (
	countTime = 60 * time.Millisecond
	mostSizes = 8 << 20 // sizes kept for all tables, 4 bytes each
	mostForms = 100_000 // files of which the form is kept
	mostOpens = 4000    // files that one page opens to learn their form
	mostLooks = 20_000  // files of which one page looks up the form
)

// columnSizes are the sizes of columns of the store's tables. The zero value is ready to use.
type columnSizes struct {
	mu     sync.Mutex
	tables map[string]*tableSizes // by table ID
	kept   int
	forms  map[block.ID]form
}

// form is how a file of a column is stored.
type form struct {
	encoding    schema.Encoding
	compression schema.Compression
}

// tableSizes are the sums of the rowsets that were counted. The IDs of columns are not negative.
type tableSizes struct {
	sets map[*rowset.Metadata][]uint32 // sizes of its columns, then of the bloom file and the key index
	sums map[schema.ColumnID]int64
}

// In sums, what is no column.
const (
	bloomFile schema.ColumnID = -1 - iota
	keyIndexFile
)

// counted are the sizes of the columns of a table.
type counted struct {
	bytes         map[schema.ColumnID]int64
	sets, ofSets  int // rowsets counted, and all
	forms         map[schema.ColumnID][]form
	files, ofFile int // column files whose form is known, and all
}

// of counts the columns of a table, given by its ID, with these rowsets until the deadline.
func (c *columnSizes) of(s *server, id string, sets []*rowset.Metadata, deadline time.Time) counted {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.tables == nil || c.kept > mostSizes {
		c.tables, c.kept = map[string]*tableSizes{}, 0
	}
	sizes := c.tables[id]
	if sizes == nil {
		sizes = &tableSizes{sets: map[*rowset.Metadata][]uint32{}, sums: map[schema.ColumnID]int64{}}
		c.tables[id] = sizes
	}
	c.drop(sizes, sets)
	for _, m := range sets {
		if _, ok := sizes.sets[m]; !ok {
			if s.now().After(deadline) {
				break
			}
			c.count(s, sizes, m)
		}
	}
	out := counted{bytes: map[schema.ColumnID]int64{}, sets: len(sizes.sets), ofSets: len(sets)}
	for id, n := range sizes.sums {
		out.bytes[id] = n
	}
	return out
}

// count adds a rowset.
func (c *columnSizes) count(s *server, sizes *tableSizes, m *rowset.Metadata) {
	ids := make([]block.ID, 0, len(m.Columns)+2)
	for _, column := range m.Columns {
		ids = append(ids, column.Block)
	}
	ids = append(ids, m.Bloom, m.KeyIndex)
	list := make([]uint32, len(ids))
	for i, n := range s.store.BlockBytes(nil, ids...) {
		list[i] = uint32(min(max(n, 0), 1<<32-1))
		sizes.sums[partOf(m, i)] += int64(list[i])
	}
	sizes.sets[m] = list
	c.kept += len(list)
}

// drop subtracts rowsets that the table no longer has.
func (c *columnSizes) drop(sizes *tableSizes, sets []*rowset.Metadata) {
	now := make(map[*rowset.Metadata]bool, len(sets))
	for _, m := range sets {
		now[m] = true
	}
	for m, list := range sizes.sets {
		if now[m] {
			continue
		}
		for i, n := range list {
			sizes.sums[partOf(m, i)] -= int64(n)
		}
		c.kept -= len(list)
		delete(sizes.sets, m)
	}
}

// partOf returns what the i-th size of a rowset belongs to.
func partOf(m *rowset.Metadata, i int) schema.ColumnID {
	switch i - len(m.Columns) {
	case 0:
		return bloomFile
	case 1:
		return keyIndexFile
	}
	return m.Columns[i].ID
}

// addForms reads the encodings of column files, first of the largest rowsets: they are most of the
// table if time runs out.
func (c *columnSizes) addForms(s *server, sets []*rowset.Metadata, out *counted, deadline time.Time) error {
	sets = slices.Clone(sets)
	slices.SortStableFunc(sets, func(a, b *rowset.Metadata) int { return cmp.Compare(b.Bytes, a.Bytes) })
	out.forms = map[schema.ColumnID][]form{}
	opened, looked := 0, 0
	for _, m := range sets {
		out.ofFile += len(m.Columns)
		if looked += len(m.Columns); looked > mostLooks {
			continue
		}
		for _, column := range m.Columns {
			f, ok := c.form(column.Block)
			if !ok && opened < mostOpens && !s.now().After(deadline) {
				opened++
				var err error
				if f, ok, err = c.learn(s, column.Block); err != nil {
					return err
				}
			}
			if !ok {
				continue
			}
			out.files++
			if !slices.Contains(out.forms[column.ID], f) {
				out.forms[column.ID] = append(out.forms[column.ID], f)
			}
		}
	}
	return nil
}

func (c *columnSizes) form(id block.ID) (form, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	f, ok := c.forms[id]
	return f, ok
}

// learn reads the footer of a file. A file that a compaction has dropped, or that is damaged, is
// not known; its rowset's page shows the damage.
func (c *columnSizes) learn(s *server, id block.ID) (f form, ok bool, err error) {
	r, done, err := s.openColumn(id)
	if err != nil {
		return f, false, unlessFile(err)
	}
	defer done()
	info := r.Info()
	f = form{info.Encoding, info.Compression}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.forms == nil || len(c.forms) >= mostForms {
		c.forms = map[block.ID]form{}
	}
	c.forms[id] = f
	return f, true, nil
}

// openColumn opens a block as a column file. The caller calls done at the end.
func (s *server) openColumn(id block.ID) (r *cfile.Reader, done func() error, err error) {
	src, err := s.store.OpenBlock(id)
	if err != nil {
		return nil, nil, err
	}
	r, err = cfile.Open(src, cfile.ReaderOptions{Arrays: true})
	if err != nil {
		src.Close()
		return nil, nil, err
	}
	return r, src.Close, nil
}

// largest returns the largest column of a table. It returns nil if the table has no files, or if
// its rowsets were not all counted before the deadline.
func (c *columnSizes) largest(s *server, t *oribi.Table, deadline time.Time) *sizeView {
	sets := t.RowSets()
	sizes := c.of(s, t.Properties().ID, sets, deadline)
	if sizes.sets < sizes.ofSets {
		return nil
	}
	var best *sizeView
	total := int64(0)
	for id, n := range sizes.bytes {
		if id >= 0 {
			total += n
		}
	}
	columns := t.Schema().Columns
	for i := range columns {
		if n := sizes.bytes[columns[i].ID]; n > 0 && (best == nil || n > best.Bytes) {
			best = &sizeView{Column: columns[i].Name, Bytes: n, Share: share(n, total)}
		}
	}
	return best
}
