package inspect

import (
	"bytes"
	"cmp"
	"context"
	"html/template"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/compaction"
	"github.com/oribi-db/oribi/internal/celltext"
	"github.com/oribi-db/oribi/internal/figures"
	"github.com/oribi-db/oribi/internal/layoutsvg"
	"github.com/oribi-db/oribi/internal/nearest"
	"github.com/oribi-db/oribi/internal/when"
	"github.com/oribi-db/oribi/rowset"
	"github.com/oribi-db/oribi/schema"
)

var tablePage = page{pattern: "/table", name: "Table", template: "table.html", table: true,
	params: []string{"policy", "budget", "columns", "column_page", "rowsets"}, build: buildTable}

const (
	rowSetsShown = 100
	picksShown   = 50
	duesShown    = 20
	keyShown     = 60   // characters of a key in a list
	mostPicked   = 3000 // rowsets up to which policies are asked that take more than O(n log n)

	defaultPolicy = "overlap"
	defaultBudget = "256MB"
)

// tableView is the page of a table.
type tableView struct {
	Name          string `json:"name"`
	ID            string `json:"id"`
	Comment       string `json:"comment,omitempty"`
	SchemaVersion uint32 `json:"schema_version"`
	Rows          int64  `json:"rows"`
	RowSets       int    `json:"rowsets"`
	Bytes         int64  `json:"bytes"`
	MemBytes      int64  `json:"mem_bytes"`   // rows that are not flushed
	DeltaBytes    int64  `json:"delta_bytes"` // changes of rows on disk that are not flushed

	Retention    string  `json:"history"` // how long old versions are kept
	HistoryFloor *moment `json:"history_floor,omitempty"`
	Expires      string  `json:"expires,omitempty"`
	RowFile      string  `json:"row_file"` // auto, on, or off

	Parts        []part        `json:"parts"` // of Bytes
	Columns      []tableColumn `json:"columns"`
	ColumnsShown pager         `json:"columns_shown"`
	ColumnOrder  string        `json:"column_order"`
	SetsCounted  int           `json:"rowsets_counted"` // of which the sizes of columns are known
	FilesCounted int           `json:"files_counted"`   // column files whose encoding is known
	Files        int           `json:"files"`

	Depth  float64 `json:"depth"`
	Height int     `json:"height"`
	Next   next    `json:"next"`

	List      []tableRowSet `json:"rowset_list"`
	ListShown pager         `json:"rowset_list_shown"`
	ListOrder string        `json:"rowset_list_order"`

	Picture      template.HTML `json:"-"`
	ColumnOrders []crumb       `json:"-"`
	ListOrders   []crumb       `json:"-"`
	Policies     []string      `json:"-"`
}

// tableColumn is a column with its bytes on disk.
type tableColumn struct {
	ID          int      `json:"id"`
	Name        string   `json:"name"`
	Type        string   `json:"type"`
	Key         bool     `json:"key"`
	Nullable    bool     `json:"nullable"`
	Default     *string  `json:"default,omitempty"`
	Encoding    string   `json:"encoding"`    // as the schema says
	Compression string   `json:"compression"` // likewise
	Forms       []string `json:"forms"`       // encoding and compression of its files
	Bytes       int64    `json:"bytes"`
	Share       float64  `json:"share"`         // of the bytes of the columns
	PerRow      float64  `json:"bytes_per_row"` // of rows in files
	Comment     string   `json:"comment,omitempty"`
}

// next is the next background operation.
type next struct {
	Policy  string   `json:"policy"`
	Budget  int64    `json:"budget"`
	RowSets []uint64 `json:"rowsets"` // the first of those that it would merge
	Count   int      `json:"count"`   // of all of these
	Bytes   int64    `json:"bytes"`   // likewise
	Why     string   `json:"why"`
	Deltas  []due    `json:"deltas"`
}

// due is a delta compaction that is due.
type due struct {
	Kind    string   `json:"kind"`
	RowSet  *uint64  `json:"rowset,omitempty"`
	Columns []string `json:"columns"`
	Why     string   `json:"why"`
}

// tableRowSet is a rowset in the list of rowsets.
type tableRowSet struct {
	ID        uint64  `json:"id"`
	First     string  `json:"first_key"`
	Last      string  `json:"last_key"`
	Width     float64 `json:"width"`
	Height    int     `json:"height"`
	Rows      int64   `json:"rows"`
	LiveRows  int64   `json:"live_rows"`
	Bytes     int64   `json:"bytes"`
	Share     float64 `json:"share"` // of the largest rowset
	Redos     int     `json:"redos"`
	RedoBytes int64   `json:"redo_bytes"`
	Undos     int     `json:"undos"`
	UndoBytes int64   `json:"undo_bytes"`
	Picked    bool    `json:"picked"`
}

func buildTable(ctx context.Context, s *server, q *query) (any, error) {
	t := q.Table
	stats, err := t.Stats(false)
	if err != nil {
		return nil, err
	}
	p := t.Properties()
	v := &tableView{Name: t.Name(), ID: p.ID, Comment: celltext.Printable(p.Comment), SchemaVersion: p.SchemaVersion,
		Rows: stats.LiveRows, RowSets: stats.RowSets, Bytes: stats.Bytes,
		Retention: when.FormatAge(p.History), Expires: expiry(p), RowFile: p.RowFile.String()}
	if ts := s.floor(t); ts > 0 {
		floor := momentOf(ts)
		v.HistoryFloor = &floor
	}
	layout := t.Layout()
	v.addMemory(t)
	if err := v.addColumns(s, q, t.RowSets(), &stats, layout); err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if err := v.addLayout(s, q, layout); err != nil {
		return nil, err
	}
	return v, nil
}

func expiry(p oribi.Properties) string {
	switch {
	case p.Expiry.Column == "":
		return ""
	case p.Expiry.Age == 0:
		return "at the time in column " + celltext.Printable(p.Expiry.Column)
	}
	return p.Expiry.Age.String() + " after the time in column " + celltext.Printable(p.Expiry.Column)
}

func (v *tableView) addMemory(t *oribi.Table) {
	u := t.Unflushed()
	v.MemBytes, v.DeltaBytes = u.Rows, u.Changes
}

// addColumns adds the columns with their sizes, and the parts of the table.
func (v *tableView) addColumns(
	s *server, q *query, sets []*rowset.Metadata, stats *oribi.Stats, layout compaction.Layout,
) error {
	sizes := s.columns.of(s, v.ID, sets, s.now().Add(countTime))
	if err := s.columns.addForms(s, sets, &sizes, s.now().Add(countTime)); err != nil {
		return err
	}
	v.SetsCounted, v.FilesCounted, v.Files = sizes.sets, sizes.files, sizes.ofFile
	rows := int64(0)
	for i := range layout.RowSets {
		rows += layout.RowSets[i].Rows
	}
	base := int64(0)
	for id, n := range sizes.bytes {
		if id >= 0 {
			base += n
		}
	}
	sc := q.Table.Schema()
	text := 0
	for i := range sc.Columns {
		v.Columns = append(v.Columns, describeColumn(&sc.Columns[i], i < sc.Keys, &sizes, base, rows))
		text += len(sc.Columns[i].Name) + len(sc.Columns[i].Comment)
	}
	v.addParts(base, &sizes, stats, layout)
	orders := []order[tableColumn]{{"size", func(a, b tableColumn) int {
		return cmp.Compare(b.Bytes, a.Bytes)
	}}, {"schema", nil},
		{"name", func(a, b tableColumn) int { return strings.Compare(a.Name, b.Name) }}}
	var err error
	if v.ColumnOrder, v.ColumnOrders, err = sortBy(s, q, "columns", v.Columns, orders); err == nil {
		v.Columns, v.ColumnsShown, err = columnPage(s, q, v.Columns, text)
	}
	return err
}

// columnPage returns the part of a list of columns that the parameter "column_page" selects: all,
// unless their names, of text bytes, are so long that the page would be too large.
func columnPage[T any](s *server, q *query, columns []T, text int) ([]T, pager, error) {
	size := max(len(columns), 1)
	if text > longNames {
		size = 50
	}
	at, err := q.Int("column_page", 0, 0, maxPageNumber)
	pg, from, to := s.partOf(q, "column_page", at, len(columns), size)
	return columns[from:to], pg, err
}

// longNames is how many bytes the names of columns on one page have at most.
const longNames = 24 << 10

func describeColumn(c *schema.Column, key bool, sizes *counted, base, rows int64) tableColumn {
	out := tableColumn{ID: int(c.ID), Name: c.Name, Type: c.TypeName(), Key: key, Nullable: c.Nullable,
		Encoding: c.Encoding.FileName(), Compression: c.Compression.FileName(),
		Bytes: sizes.bytes[c.ID], Comment: celltext.Printable(c.Comment)}
	if c.Default != nil {
		text := celltext.Printable(cut(string(celltext.AppendText(nil, c, c.Default)), keyShown))
		out.Default = &text
	}
	out.Share = share(out.Bytes, base)
	if rows > 0 && sizes.sets == sizes.ofSets {
		out.PerRow = round(float64(out.Bytes)/float64(rows), 2)
	}
	for _, f := range sizes.forms[c.ID] {
		out.Forms = append(out.Forms, formText(f))
	}
	slices.Sort(out.Forms)
	return out
}

// formText names an encoding and, unless it is none, a compression.
func formText(f form) string {
	if f.compression == schema.NoCompression {
		return f.encoding.FileName()
	}
	return f.encoding.FileName() + " + " + f.compression.FileName()
}

// addParts divides the bytes of the table.
func (v *tableView) addParts(base int64, sizes *counted, stats *oribi.Stats, layout compaction.Layout) {
	redo, undo := int64(0), int64(0)
	for i := range layout.RowSets {
		redo += layout.RowSets[i].RedoBytes
		undo += layout.RowSets[i].UndoBytes
	}
	list := []part{
		{Name: "columns", Bytes: base, Meaning: "Base data: the cells, a file for each column of a rowset."},
		{Name: "key index", Bytes: sizes.bytes[keyIndexFile],
			Meaning: "Encoded keys of tables whose key has several columns."},
		{Name: "bloom filters", Bytes: sizes.bytes[bloomFile],
			Meaning: "They spare reads by key the rowsets that do not have the key."},
		{Name: "redos", Bytes: redo, Meaning: "Changes since the base data was written. A read has to apply them, " +
			"until a compaction does."},
		{Name: "undos", Bytes: undo, Meaning: "Changes that lead back in time. Only reads of the past need them."},
		{Name: "row files", Bytes: stats.RowFileBytes,
			Meaning: "Each row a second time, as one piece, for reads of whole rows."},
		{Name: "key directories", Bytes: stats.KeyDirectoryBytes, Meaning: "Where each key is, for reads by key."},
	}
	rest := stats.Bytes
	for _, p := range list {
		rest -= p.Bytes
	}
	if rest > 0 {
		list = append(list, part{Name: "not yet counted", Bytes: rest,
			Meaning: "Columns, bloom filters and key indexes of rowsets that the next load of this page counts."})
	}
	for _, p := range list {
		if p.Bytes != 0 {
			p.Share = share(p.Bytes, stats.Bytes)
			v.Parts = append(v.Parts, p)
		}
	}
}

// order is an order of a list; nil leaves it as it is.
type order[T any] struct {
	name    string
	compare func(a, b T) int
}

// sortBy sorts a list by the order that a parameter names, by default the first, and returns links
// to all.
func sortBy[T any](
	s *server, q *query, param string, list []T, orders []order[T],
) (name string, links []crumb, err error) {
	name = cmp.Or(q.Text(param), orders[0].name)
	known := false
	var names []string
	for _, o := range orders {
		names = append(names, o.name)
		links = append(links, crumb{Name: o.name,
			URL: s.address(q.page.pattern, q.With(param, o.name, "page", "")), Current: o.name == name})
		if o.name != name {
			continue
		}
		if known = true; o.compare != nil {
			slices.SortStableFunc(list, o.compare)
		}
	}
	if !known {
		return "", nil, badRequest("%s: want %s, not %q.", param, strings.Join(names, ", "), cut(name, 40))
	}
	return name, links, nil
}

// addLayout adds the rowsets, their picture, and the next compactions.
func (v *tableView) addLayout(s *server, q *query, layout compaction.Layout) error {
	spans, heights := compaction.Spans(layout), compaction.Heights(layout)
	for i := range spans {
		v.Depth += spans[i].Width()
		v.Height = max(v.Height, heights[i])
	}
	v.Depth = round(v.Depth, 2)
	pick, err := v.addNext(q, layout)
	if err != nil {
		return err
	}
	picked := map[uint64]bool{}
	for _, id := range pick.RowSets {
		picked[id] = true
	}
	key := celltext.Keys(q.Table.Schema())
	largest := int64(1)
	for i := range layout.RowSets {
		largest = max(largest, layout.RowSets[i].Bytes)
	}
	index := make([]int, len(layout.RowSets))
	for i := range index {
		index[i] = i
	}
	by := func(value func(r *compaction.RowSetInfo, i int) int64) func(a, b int) int {
		return func(a, b int) int { return cmp.Compare(value(&layout.RowSets[b], b), value(&layout.RowSets[a], a)) }
	}
	orders := []order[int]{{"key", nil}, {"size", by(func(r *compaction.RowSetInfo, _ int) int64 { return r.Bytes })},
		{"redos", by(func(r *compaction.RowSetInfo, _ int) int64 {
			return r.RedoBytes
		})}, {"undos", by(func(r *compaction.RowSetInfo, _ int) int64 { return r.UndoBytes })},
		{"height", by(func(_ *compaction.RowSetInfo, i int) int64 { return int64(heights[i]) })}}
	if v.ListOrder, v.ListOrders, err = sortBy(s, q, "rowsets", index, orders); err != nil {
		return err
	}
	var from, to int
	v.ListShown, from, to = s.pageOf(q, len(index), rowSetsShown)
	for _, i := range index[from:to] {
		r := &layout.RowSets[i]
		v.List = append(v.List, tableRowSet{ID: r.ID, First: shortKey(key, r.MinKey), Last: shortKey(key, r.MaxKey),
			Width: round(spans[i].Width(), 4), Height: heights[i],
			Rows: r.Rows, LiveRows: r.LiveRows, Bytes: r.Bytes, Share: share(r.Bytes, largest), Redos: r.Redos,
			RedoBytes: r.RedoBytes, Undos: r.Undos, UndoBytes: r.UndoBytes,
			Picked: picked[r.ID]})
	}
	v.Picture, err = s.picture(q.Table, layout, layoutsvg.Options{Policy: v.Next.Policy, Pick: pick})
	return err
}

// shortKey returns the beginning of the text of a key.
func shortKey(text func([]byte) string, key []byte) string {
	return celltext.Printable(cut(text(key), keyShown))
}

// A picture takes up to about pictureBytes, if a box with its title takes boxBytes besides its
// link.
const pictureBytes, boxBytes = 400 << 10, 350

// picture draws a layout of a table, as an element of a page.
func (s *server) picture(t *oribi.Table, layout compaction.Layout, o layoutsvg.Options) (template.HTML, error) {
	if len(layout.RowSets) == 0 {
		return "", nil
	}
	text := celltext.Keys(t.Schema())
	o.Key = func(key []byte) string { return shortKey(text, key) }
	if o.Apart == 0 {
		o.Apart = pictureBytes / (boxBytes + len(s.address("/rowset", url.Values{"table": {t.Name()}})))
	}
	if o.Link == nil {
		o.Link = func(id uint64) string { return s.rowSetAddress(t, id) }
	}
	var b bytes.Buffer
	if err := layoutsvg.Embed(&b, layout, o); err != nil {
		return "", err
	}
	return template.HTML(b.String()), nil // layoutsvg escapes keys and names
}

// rowSetAddress returns the URL of a rowset's page.
func (s *server) rowSetAddress(t *oribi.Table, id uint64) string {
	return s.address("/rowset", url.Values{"table": {t.Name()}, "rowset": {strconv.FormatUint(id, 10)}})
}

// addNext adds what background work would do next.
func (v *tableView) addNext(q *query, layout compaction.Layout) (pick compaction.Choice, err error) {
	policies := compaction.Named()
	v.Policies = nearest.Keys(policies)
	n := &v.Next
	n.Policy = cmp.Or(q.Text("policy"), defaultPolicy)
	policy := policies[n.Policy]
	if policy == nil {
		return pick, badRequest("policy: want one of %s, not %q.", strings.Join(v.Policies, ", "), cut(n.Policy, 40))
	}
	if n.Budget, err = figures.ParseSize(cmp.Or(q.Text("budget"), defaultBudget)); err != nil {
		return pick, badRequest("budget: %v.", err)
	}
	if len(layout.RowSets) > mostPicked && n.Policy != defaultPolicy {
		n.Why = "This policy takes too long for a page of so many rowsets: use oribi table compact --dry-run."
	} else if pick = policy.Pick(layout, n.Budget); len(pick.RowSets) > 0 {
		n.Why = celltext.Printable(pick.Why)
	}
	n.RowSets, n.Count = pick.RowSets[:min(len(pick.RowSets), picksShown)], len(pick.RowSets)
	sizes := map[uint64]int64{}
	for i := range layout.RowSets {
		sizes[layout.RowSets[i].ID] = layout.RowSets[i].Bytes
	}
	for _, id := range pick.RowSets {
		n.Bytes += sizes[id]
	}
	deltas, err := q.Table.DeltasDue()
	if err != nil {
		return pick, err
	}
	for _, d := range deltas[:min(len(deltas), duesShown)] {
		one := due{Kind: string(d.Kind), Why: celltext.Printable(d.Why)}
		if d.Kind != compaction.UndoGC {
			one.RowSet = &d.RowSet
		}
		for _, name := range d.Columns {
			one.Columns = append(one.Columns, celltext.Printable(name))
		}
		n.Deltas = append(n.Deltas, one)
	}
	return pick, nil
}
