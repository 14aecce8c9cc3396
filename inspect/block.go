package inspect

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"

	"github.com/oribi-db/oribi/block"
	"github.com/oribi-db/oribi/blockmanager"
	"github.com/oribi-db/oribi/bloom"
	"github.com/oribi-db/oribi/cfile"
	"github.com/oribi-db/oribi/change"
	"github.com/oribi-db/oribi/delta"
	"github.com/oribi-db/oribi/internal/celltext"
	"github.com/oribi-db/oribi/internal/dump"
	"github.com/oribi-db/oribi/internal/keydir"
	"github.com/oribi-db/oribi/rowset"
	"github.com/oribi-db/oribi/schema"
)

var blockPage = page{pattern: "/block", name: "Block", template: "block.html", table: true,
	params: []string{"rowset", "block", "part", "line", "changes"}, build: buildBlock}

const (
	cblocksShown = 50
	linesShown   = 256 // of annotated bytes
	lineBytes    = 16  // bytes of one line
	changesShown = 50
	cellShown    = 60 // characters of a cell in a change
	cellsShown   = 16 // cells in a change
	maxDirectory = 64 << 20
)

// blockView is the page of a block.
type blockView struct {
	Table  string `json:"table"`
	RowSet uint64 `json:"rowset"`
	Block  uint64 `json:"block"`
	Kind   string `json:"kind"` // column, key index, bloom filter, row file, key directory, redo, undo
	Column string `json:"column,omitempty"`
	Bytes  int64  `json:"bytes"`

	File         *fileView    `json:"file,omitempty"` // of all but a key directory
	Cblocks      []cblockView `json:"cblocks"`
	CblocksShown pager        `json:"cblocks_shown"`

	Changes      []changeView `json:"changes"` // of a delta file
	ChangesShown *pager       `json:"changes_shown,omitempty"`

	Part       *partView `json:"part,omitempty"` // whose bytes are shown
	HeaderURL  string    `json:"-"`
	FooterURL  string    `json:"-"`
	ContentURL string    `json:"-"` // of a key directory
}

// fileView describes a column file.
type fileView struct {
	Type        string `json:"type"`
	Encoding    string `json:"encoding"`
	Compression string `json:"compression"`
	Nullable    bool   `json:"nullable"`
	Array       bool   `json:"array"`
	Rows        int64  `json:"rows"`
	Version     int    `json:"version"`
	Checksums   bool   `json:"checksums"`
	Ordinals    bool   `json:"ordinal_index"`
	Values      bool   `json:"value_index"`
	ZoneMap     bool   `json:"zone_map"`
	Header      int64  `json:"header_bytes"`
	Footer      int64  `json:"footer_bytes"`
}

// cblockView is a cblock in the list.
type cblockView struct {
	Kind     string  `json:"kind"`
	Offset   int64   `json:"offset"`
	Size     int64   `json:"size"`
	RawSize  int     `json:"raw_size"`
	Ratio    float64 `json:"ratio"`
	Rows     *int    `json:"rows,omitempty"` // of data
	First    *int64  `json:"first_ordinal,omitempty"`
	Encoding string  `json:"encoding,omitempty"`
	Entries  *int    `json:"entries,omitempty"` // of an index node, the dictionary, the zone map
	Zone     *zone   `json:"zone,omitempty"`
	Problem  string  `json:"problem,omitempty"`
	Current  bool    `json:"current"` // its bytes are shown
	URL      string  `json:"-"`
}

// changeView is a change in a delta file.
type changeView struct {
	Row   uint32     `json:"row"`
	At    moment     `json:"at"`
	Kind  string     `json:"kind"`
	Cells []cellView `json:"cells"`
	More  int        `json:"more_cells"`
}

type cellView struct {
	Column string `json:"column"`
	Text   string `json:"text"`
}

// partView are annotated bytes.
type partView struct {
	Name    string     `json:"name"`
	Offset  int64      `json:"offset"`
	Size    int64      `json:"size"`
	Lines   []lineView `json:"lines"`
	Shown   pager      `json:"lines_shown"`
	Problem string     `json:"problem,omitempty"`
}

// lineView is a line of annotated bytes, or a heading or a note.
type lineView struct {
	Depth   int    `json:"depth"`
	Offset  *int64 `json:"offset,omitempty"`
	Hex     string `json:"hex,omitempty"`
	Text    string `json:"text,omitempty"` // the bytes as ASCII, with dots
	Meaning string `json:"meaning,omitempty"`
}

// blockOf returns what block of the rowset a number is.
func blockOf(m *rowset.Metadata, sc *schema.Schema, id block.ID) (kind string, column *schema.Column, ok bool) {
	for _, c := range m.Columns {
		if c.Block == id {
			if i := sc.IndexID(c.ID); i >= 0 {
				return "column", &sc.Columns[i], true
			}
			return "column", nil, true
		}
	}
	for _, list := range []struct {
		kind string
		ids  []block.ID
	}{{"redo", m.Redo}, {"undo", m.Undo}, {"key index", []block.ID{m.KeyIndex}}, {"bloom filter", []block.ID{m.Bloom}},
		{"row file", []block.ID{m.RowFile}}, {"key directory", []block.ID{m.KeyDirectory}}} {
		for _, one := range list.ids {
			if one == id && id != 0 {
				return list.kind, nil, true
			}
		}
	}
	return "", nil, false
}

func buildBlock(ctx context.Context, s *server, q *query) (any, error) {
	m, err := findRowset(q)
	if err != nil {
		return nil, err
	}
	number, err := q.Number("block")
	if err != nil {
		return nil, err
	}
	id, sc := block.ID(number), q.Table.Schema()
	v := &blockView{Table: q.Table.Name(), RowSet: m.ID, Block: number}
	kind, column, ok := blockOf(m, sc, id)
	if !ok {
		return nil, gone("Rowset %d has no block %d, or no more.", m.ID, number)
	}
	if v.Kind = kind; column != nil {
		v.Column = column.Name
	}
	src, err := s.openBlock(id)
	if err != nil {
		return nil, err
	}
	defer src.Close()
	v.Bytes = src.Size()
	if kind == "key directory" {
		return v, v.addDirectory(s, q, src)
	}
	r, err := cfile.Open(src, cfile.ReaderOptions{Arrays: true})
	if err != nil {
		return nil, err
	}
	v.addFile(s, q, r)
	if err := v.addCblocks(ctx, s, q, r, column); err != nil {
		return nil, err
	}
	if kind == "redo" || kind == "undo" {
		if err := v.addChanges(ctx, s, q, src, sc); err != nil {
			return nil, err
		}
	}
	return v, v.addPart(s, q, src, r)
}

func (v *blockView) addFile(s *server, q *query, r *cfile.Reader) {
	i := r.Info()
	v.File = &fileView{Type: i.Type.String(), Encoding: i.Encoding.FileName(), Compression: i.Compression.FileName(),
		Nullable: i.Nullable, Array: i.Array, Rows: i.Rows,
		Version: i.Version, Checksums: i.Checksums, Ordinals: i.PositionalIndex,
		Values: i.ValueIndex, ZoneMap: i.ZoneMap}
	v.File.Header, v.File.Footer = r.Ends()
	v.HeaderURL, v.FooterURL = s.partURL(q, "header"), s.partURL(q, "footer")
}

// partURL returns the address of the page with the bytes of a part.
func (s *server) partURL(q *query, part string) string {
	return s.address("/block", q.With("part", part, "line", "")) + "#bytes"
}

// addCblocks adds a part of the list of cblocks. Damage of one becomes its problem.
func (v *blockView) addCblocks(ctx context.Context, s *server, q *query, r *cfile.Reader, column *schema.Column) error {
	all, err := r.ListCblocks()
	if err != nil {
		return err
	}
	z, err := r.ZoneMap()
	if err != nil {
		z = nil // its cblock shows the damage
	}
	var from, to int
	v.CblocksShown, from, to = s.pageOf(q, len(all), cblocksShown)
	for _, c := range all[from:to] {
		if err := ctx.Err(); err != nil {
			return err
		}
		part := strconv.FormatInt(c.Pointer.Offset, 10)
		one := cblockView{Kind: c.Kind.String(), Offset: c.Pointer.Offset, Size: int64(c.Pointer.Size),
			URL: s.partURL(q, part), Current: q.Text("part") == part}
		err := r.DescribeCblocks([]cfile.Cblock{c}, func(c cfile.Cblock) error {
			one.set(&c)
			return nil
		})
		if err != nil {
			if unlessFile(err) != nil {
				return err
			}
			one.Problem = celltext.Printable(s.clean(err))
		}
		if n := c.Number(); z != nil && column != nil && n >= 0 && n < len(z.Entries) {
			one.Zone = zoneOf(column, &z.Entries[n])
		}
		v.Cblocks = append(v.Cblocks, one)
	}
	return nil
}

func (v *cblockView) set(c *cfile.Cblock) {
	v.RawSize, v.Ratio = c.Payload, round(float64(c.Payload)/float64(max(c.Pointer.Size, 1)), 2)
	switch {
	case c.Kind == cfile.DataCblock && c.Rows > 0:
		v.Rows, v.First = &c.Rows, &c.First
	case c.Kind != cfile.DataCblock:
		v.Entries = &c.Entries
	}
	if c.Encoding != schema.Auto {
		v.Encoding = c.Encoding.FileName()
	}
}

// errEnough ends an iteration.
var errEnough = errors.New("enough")

// addChanges adds a part of the changes of a delta file, in its order.
func (v *blockView) addChanges(ctx context.Context, s *server, q *query, src block.Source, sc *schema.Schema) error {
	f, err := delta.OpenFile(src, cfile.ReaderOptions{})
	if err != nil {
		return err
	}
	at, err := q.Int("changes", 0, 0, maxPageNumber)
	if err != nil {
		return err
	}
	pg, from, to := s.partOf(q, "changes", at, int(f.Len()), changesShown)
	v.ChangesShown = &pg
	i := -1
	err = f.Changes(sc, func(d change.Delta) error {
		if i++; i < from {
			return ctx.Err()
		}
		if i == to {
			return errEnough
		}
		v.Changes = append(v.Changes, describeChange(sc, d))
		return nil
	})
	if errors.Is(err, errEnough) {
		return nil
	}
	return err
}

func describeChange(sc *schema.Schema, d change.Delta) changeView {
	v := changeView{Row: d.Row, At: momentOf(d.TS), Kind: d.List.Kind().String()}
	columns := d.List.Columns()
	for id, cell, ok := columns.Next(); ok; id, cell, ok = columns.Next() {
		if len(v.Cells) == cellsShown {
			v.More++
			continue
		}
		c := cellView{Column: fmt.Sprintf("column %d", id), Text: fmt.Sprintf("0x%x", cell[:min(len(cell), cellShown)])}
		if i := sc.IndexID(id); i >= 0 {
			c.Column, c.Text = celltext.Printable(cut(sc.Columns[i].Name, nameShown)),
				cellText(&sc.Columns[i], cell, cellShown)
		}
		v.Cells = append(v.Cells, c)
	}
	return v
}

// cellText returns the beginning of a cell as text, with every character visible.
func cellText(c *schema.Column, cell []byte, most int) string {
	if cell == nil {
		return "NULL"
	}
	if c.Type.Variable() && c.Type != schema.Array {
		cell = cell[:min(len(cell), 4*most)]
	}
	return celltext.Printable(cut(string(celltext.AppendText(nil, c, cell)), most))
}

// addPart adds the bytes of the part that is asked for.
func (v *blockView) addPart(s *server, q *query, src block.Source, r *cfile.Reader) error {
	word := q.Text("part")
	if word == "" {
		return nil
	}
	header, footer := r.Ends()
	part, p := cfile.Part{}, &partView{Name: word}
	switch word {
	case "header":
		part.Header, p.Size = true, header
	case "footer":
		part.Footer, p.Offset, p.Size = true, src.Size()-footer, footer
	default:
		found, kind, err := findCblock(r, word)
		if err != nil {
			return err
		}
		part.Cblock, p.Offset, p.Size, p.Name = found, found.Offset, int64(found.Size), kind+" cblock"
	}
	annotate := func(use func(int, int64, []byte, string) error) error { return r.Annotate(part, use) }
	if v.Kind == "bloom filter" && p.Name == "data cblock" {
		b, err := bloom.Open(src, cfile.ReaderOptions{})
		if err != nil {
			return err
		}
		annotate = func(use func(int, int64, []byte, string) error) error { return b.Annotate(part.Cblock, use) }
	}
	return v.annotated(s, q, p, annotate)
}

// findCblock returns the cblock that begins at an offset.
func findCblock(r *cfile.Reader, word string) (p cfile.BlockPointer, kind string, err error) {
	off, err := strconv.ParseInt(word, 10, 64)
	if err != nil {
		return p, "", badRequest("part: want header, footer, or the offset of a cblock, not %q.", cut(word, 40))
	}
	all, err := r.ListCblocks()
	if err != nil {
		return p, "", err
	}
	for _, c := range all {
		if c.Pointer.Offset == off {
			return c.Pointer, c.Kind.String(), nil
		}
	}
	return p, "", notFound("No cblock begins at byte %d.", off)
}

// annotated adds the lines of a part that the parameter "line" selects.
func (v *blockView) annotated(
	s *server, q *query, p *partView,
	annotate func(use func(depth int, off int64, b []byte, meaning string) error) error,
) error {
	at, err := q.Int("line", 0, 0, maxPageNumber)
	if err != nil {
		return err
	}
	l := lineWindow{from: at * linesShown, to: (at + 1) * linesShown}
	if err = annotate(l.add); err != nil && unlessFile(err) == nil {
		p.Problem, err = celltext.Printable(s.clean(err)), nil
	}
	var from int
	if p.Shown, from, _ = s.partOf(q, "line", at, l.count, linesShown); from != l.from && err == nil {
		l = lineWindow{from: from, to: from + linesShown} // there are fewer: the last ones
		annotate(l.add)
	}
	p.Lines, v.Part = l.lines, p
	for _, link := range []*string{&p.Shown.Previous, &p.Shown.Next} {
		if *link != "" {
			*link += "#bytes"
		}
	}
	return err
}

// lineWindow keeps some of the lines of annotated bytes.
type lineWindow struct {
	from, to, count int
	lines           []lineView
}

// add adds a field, of which each line has up to lineBytes bytes, a heading, or a note.
func (l *lineWindow) add(depth int, off int64, b []byte, meaning string) error {
	if off < 0 || len(b) == 0 {
		l.put(func() lineView { return lineView{Depth: depth, Meaning: celltext.Printable(cut(meaning, 400))} })
		return nil
	}
	// Lines before and after the window are only counted: a field may have many bytes.
	n := (len(b) + lineBytes - 1) / lineBytes
	first := max(0, min(l.from-l.count, n))
	l.count += first
	for i := first; i < n; i++ {
		if l.count >= l.to {
			l.count += n - i
			break
		}
		l.put(func() lineView {
			part, at := b[i*lineBytes:min((i+1)*lineBytes, len(b))], off+int64(i*lineBytes)
			line := lineView{Depth: depth, Offset: &at, Hex: fmt.Sprintf("% x", part), Text: ascii(part)}
			if i == 0 || i == first && l.count == l.from {
				line.Meaning = celltext.Printable(cut(meaning, 400))
			}
			return line
		})
	}
	return nil
}

// put adds a line, if it is in the window.
func (l *lineWindow) put(make func() lineView) {
	if l.count >= l.from && l.count < l.to {
		l.lines = append(l.lines, make())
	}
	l.count++
}

// ascii returns bytes as text: a dot for each that is not a printable ASCII character.
func ascii(b []byte) string {
	text := make([]byte, len(b))
	for i, c := range b {
		if text[i] = c; c < ' ' || c > '~' {
			text[i] = '.'
		}
	}
	return string(text)
}

// addDirectory adds the bytes of a key directory: the buckets that the parameter "page" selects.
func (v *blockView) addDirectory(s *server, q *query, src blockmanager.Source) error {
	if src.Size() > maxDirectory {
		return &problem{status: errTooLarge.status,
			text: fmt.Sprintf("A key directory of %d bytes is too large for a page.", src.Size())}
	}
	data := make([]byte, src.Size())
	if _, err := src.ReadAt(data, 0); err != nil && err != io.EOF {
		return err
	}
	const bucketsShown = 32
	buckets, err := keydir.Annotate(data, 0, 0, func(dump.Line) error { return nil })
	if err != nil {
		return err
	}
	var from, to int
	v.CblocksShown, from, to = s.pageOf(q, int(buckets), bucketsShown)
	p := &partView{Name: "buckets", Size: src.Size()}
	l := lineWindow{to: 4 * linesShown}
	_, err = keydir.Annotate(data, uint64(from), uint64(to), func(line dump.Line) error {
		return l.add(line.Depth, line.Offset, line.Bytes, line.Text)
	})
	p.Lines, v.Part = l.lines, p
	if n := len(l.lines); n > 0 {
		p.Shown = pager{Total: n, First: 1, Last: n}
	}
	return err
}
