package inspect

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/internal/cell"
	"github.com/oribi-db/oribi/internal/celltext"
	"github.com/oribi-db/oribi/schema"
)

var rowsPage = page{pattern: "/rows", name: "Rows", template: "rows.html", table: true,
	params: []string{"since", "where", "from", "limit", "column"}, build: buildRows}

// Limits of the page of rows.
const (
	rowsInitial = 50
	rowsMost    = 200
	columnsMost = 40        // of a grid, without the key
	gridBytes   = 600 << 10 // of its cells in the page
	rowsTime    = 100 * time.Millisecond
)

// rowsView is the page of rows: a grid of some columns of some rows in one state, with the changes
// since another state.
type rowsView struct {
	Table    string  `json:"table"`
	At       moment  `json:"at"`              // the state
	Since    *moment `json:"since,omitempty"` // the state with which it is compared
	Where    string  `json:"where,omitempty"`
	Inserted int     `json:"inserted"` // rows on this page, by the kind of change
	Updated  int     `json:"updated"`
	Deleted  int     `json:"deleted"`

	Columns []headView `json:"columns"` // of the cells
	Total   int        `json:"total_columns"`
	Rows    []gridRow  `json:"rows"`

	Incomplete bool            `json:"incomplete"`     // time was up before the page was full: further rows may follow
	Next       json.RawMessage `json:"next,omitempty"` // key from which on to continue
	Read       *scanView       `json:"read"`
	Times      timesView       `json:"times"`

	Key    []string `json:"-"` // names of the key columns
	Form   rowsForm `json:"-"`
	Links  rowLinks `json:"-"`
	Marked bool     `json:"-"` // there is a column of marks
}

// headView is the head of a column.
type headView struct {
	Name    string `json:"name"`
	Type    string `json:"type"`
	Key     bool   `json:"key"`
	Numeric bool   `json:"-"`
	class   string // of its cells
}

// gridRow is a row of the grid.
type gridRow struct {
	Key json.RawMessage `json:"key"`
	// insert, update, delete: what leads from the other state to this one
	Change string `json:"change,omitempty"`
	// entered, left: whether an update made "where" true or false
	Match  string                `json:"match,omitempty"`
	Cells  []valueView           `json:"cells"`            // of Columns
	Before map[string]*valueView `json:"before,omitempty"` // of the cells that an update changed, by column

	URL     string     `json:"-"`
	columns []headView // of the page
	Later   bool       `json:"-"` // the other state is a later one
}

// rowsForm has the values of the form.
type rowsForm struct {
	Action                  string
	At, Since, Where, Limit string
	Most                    int         // rows on a page
	Example                 string      // of an expression
	Hidden                  [][2]string // other parameters, that the form keeps
}

// rowLinks are links to other parts of the table.
type rowLinks struct {
	First, Previous, Next, NextChange string
	FewerColumns, MoreColumns         string
	FirstColumn, LastColumn           int // of those that are not in the key, from 1
	Since                             []shortcut
	Ages                              []shortcut
}

// rowsRequest is the request for a page of rows.
type rowsRequest struct {
	s           *server
	q           *query
	grid        *grid
	at          state
	since       *state // the state with which it is compared, earlier or later; may be nil
	from        []byte // encoded
	limit       int
	firstColumn int // of the window, in the columns that are not in the key
}

func buildRows(ctx context.Context, s *server, q *query) (any, error) {
	r, err := s.newRowsRequest(ctx, q)
	if err != nil {
		return nil, err
	}
	defer r.release()
	v := &rowsView{Table: q.Table.Name(), At: momentOf(r.at.ts), Where: q.Text("where"),
		Total: len(r.grid.schema.Columns)}
	lines, end, err := r.grid.read(ctx, r.at.option, r.from, r.limit)
	if err != nil {
		return nil, err
	}
	read := r.grid.scanned
	v.Read = &read
	rows := make([]gridLine, len(lines))
	for i := range lines {
		rows[i] = gridLine{now: &lines[i]}
	}
	if r.since != nil {
		since := momentOf(r.since.ts)
		v.Since, v.Marked = &since, true
		if rows, end, err = r.compare(ctx, lines, end); err != nil {
			return nil, err
		}
	}
	r.fill(v, rows, end)
	v.Incomplete = end != nil && len(rows) < r.limit
	v.Times = s.times(ctx, q, r.at, keysOf(rows), "since")
	r.link(ctx, v, rows, end)
	return v, nil
}

// newRowsRequest parses the parameters and opens the state, which the caller releases.
func (s *server) newRowsRequest(ctx context.Context, q *query) (*rowsRequest, error) {
	r := &rowsRequest{s: s, q: q}
	sc := q.Table.Schema()
	var err error
	if r.limit, err = q.Int("limit", rowsInitial, 1, rowsMost); err != nil {
		return nil, err
	}
	values := len(sc.Columns) - sc.Keys
	if r.firstColumn, err = q.Int("column", 0, 0, max(values-1, 0)); err != nil {
		return nil, err
	}
	last := sc.Keys + min(r.firstColumn+columnsMost, values)
	columns := append(append([]schema.Column{}, sc.Columns[:sc.Keys]...), sc.Columns[sc.Keys+r.firstColumn:last]...)
	r.grid = newGrid(q.Table, columns, time.Now().Add(rowsTime))
	if word := q.Text("where"); word != "" {
		if err := r.grid.filter(word); err != nil {
			return nil, badRequest("where: %s.", strings.TrimSuffix(trimmed(err), "."))
		}
	}
	if word := q.Text("from"); word != "" {
		cells, err := cell.Key(sc, word, true)
		if err != nil {
			return nil, badRequest("from: %v.", err)
		}
		r.from = r.grid.encoder.AppendPrefix(nil, cells)
	}
	if r.at, err = s.stateAt(ctx, q.At); err != nil {
		return nil, err
	}
	if r.since, err = s.otherState(ctx, q, "since"); err != nil {
		r.release()
		return nil, err
	}
	return r, nil
}

// release releases the states.
func (r *rowsRequest) release() {
	r.at.release()
	if r.since != nil {
		r.since.release()
	}
}

// gridLine is a row in both states. Without a comparison, before is nil.
type gridLine struct {
	now, before *line
	match       string // entered, left
}

// line returns the row as it is shown.
func (l *gridLine) line() *line {
	if l.now != nil {
		return l.now
	}
	return l.before
}

func keysOf(rows []gridLine) (keys [][][]byte) {
	for i := range rows {
		keys = append(keys, rows[i].line().cells)
	}
	return keys
}

// compare reads the other state and merges its rows with the rows of this state, which are complete
// up to the key end.
func (r *rowsRequest) compare(ctx context.Context, now []line, end []byte) ([]gridLine, []byte, error) {
	before, endBefore, err := r.grid.read(ctx, r.since.option, r.from, r.limit)
	if err != nil {
		return nil, nil, err
	}
	if end == nil || endBefore != nil && bytes.Compare(endBefore, end) < 0 {
		end = endBefore
	}
	var rows []gridLine
	for len(now) > 0 || len(before) > 0 {
		order := -1
		switch {
		case len(now) == 0:
			order = 1
		case len(before) > 0:
			order = bytes.Compare(now[0].key, before[0].key)
		}
		var l gridLine
		if order <= 0 {
			l.now, now = &now[0], now[1:]
		}
		if order >= 0 {
			l.before, before = &before[0], before[1:]
		}
		if key := l.line().key; len(rows) == r.limit || end != nil && bytes.Compare(key, end) >= 0 {
			if end == nil || bytes.Compare(key, end) < 0 {
				end = key
			}
			break
		}
		rows = append(rows, l)
	}
	for i := range rows {
		if err := r.complete(ctx, &rows[i]); err != nil {
			return nil, nil, err
		}
	}
	return rows, end, nil
}

// complete finds out whether a row that is in one state only does not exist in the other, or does
// not match there.
func (r *rowsRequest) complete(ctx context.Context, l *gridLine) error {
	if len(r.grid.where) == 0 || l.now != nil && l.before != nil {
		return nil
	}
	at, match := r.at.option, "left"
	if l.before == nil {
		at, match = r.since.option, "entered"
	}
	other, ok, err := r.grid.get(ctx, at, l.line().cells)
	if err != nil || !ok {
		return err
	}
	if l.match = match; l.before == nil {
		l.before = &other
	} else {
		l.now = &other
	}
	return nil
}

// fill fills in the columns and the rows, whose cells it shortens so that they fit in a page.
func (r *rowsRequest) fill(v *rowsView, rows []gridLine, end []byte) {
	keys := r.grid.schema.Keys
	for i := range r.grid.columns {
		c := &r.grid.columns[i]
		v.Columns = append(v.Columns, headView{celltext.Printable(c.Name), c.TypeName(),
			i < keys, numeric(c), classOf(c)})
		if i < keys {
			v.Key = append(v.Key, celltext.Printable(c.Name))
		}
	}
	v.Rows = make([]gridRow, 0, len(rows))
	var cells []*valueView
	for i := range rows {
		row := r.row(v, &rows[i])
		v.Rows = append(v.Rows, row)
		for c := range row.Cells {
			cells = append(cells, &row.Cells[c])
		}
		for _, c := range row.Before {
			cells = append(cells, c)
		}
	}
	fit(cells, gridBytes)
	if end != nil {
		v.Next = keyJSON(r.keyText(end))
	}
}

// row returns a row of the grid, and counts what changed.
func (r *rowsRequest) row(v *rowsView, l *gridLine) gridRow {
	shown := l.line()
	text := keyText(r.grid.schema, shown.cells)
	row := gridRow{Key: keyJSON(text), Match: l.match, Cells: shown.views, columns: v.Columns,
		Later: v.Since != nil && v.Since.TS > v.At.TS}
	if len(text) <= maxParamBytes {
		row.URL = r.s.address("/row", r.q.With("key", text, "since", "", "where", "", "from", "", "limit",
			"", "column", "", "page", ""))
	}
	switch {
	case v.Since == nil:
	case l.before == nil:
		row.Change = oribi.Inserted.String()
		v.Inserted++
	case l.now == nil:
		row.Change = oribi.Deleted.String()
		v.Deleted++
	default:
		for i := range l.before.views {
			if b := &l.before.views[i]; !b.same(&shown.views[i]) {
				if row.Before == nil {
					row.Before = map[string]*valueView{}
				}
				row.Before[v.Columns[i].Name] = b
			}
		}
		if row.Before != nil || l.match != "" {
			row.Change = oribi.Updated.String()
			v.Updated++
		}
	}
	return row
}

// keyText returns the parameter for an encoded key, empty if it has none.
func (r *rowsRequest) keyText(key []byte) string {
	cells, err := r.grid.encoder.Decode(key)
	if err != nil {
		return ""
	}
	text := keyText(r.grid.schema, cells)
	if len(text) > maxParamBytes {
		return ""
	}
	return text
}

// link sets the links to other parts of the table, and the form.
func (r *rowsRequest) link(ctx context.Context, v *rowsView, rows []gridLine, end []byte) {
	q, l := r.q, &v.Links
	to := func(changes ...string) string { return r.s.address("/rows", q.With(changes...)) }
	if r.from != nil {
		l.First = to("from", "")
		if key := r.grid.before(ctx, r.at.option, r.from, r.limit); key != nil {
			l.Previous = to("from", r.keyText(key))
		}
	}
	if end != nil {
		if text := r.keyText(end); text != "" {
			l.Next = to("from", text)
			if v.Since != nil {
				l.NextChange = r.nextChange(ctx, end, to)
			}
		}
	}
	values := len(r.grid.schema.Columns) - r.grid.schema.Keys
	last := min(r.firstColumn+columnsMost, values)
	l.FirstColumn, l.LastColumn = min(r.firstColumn+1, values), last
	if r.firstColumn > 0 {
		l.FewerColumns = to("column", strconv.Itoa(max(r.firstColumn-columnsMost, 0)))
	}
	if last < values {
		l.MoreColumns = to("column", strconv.Itoa(last))
	}
	l.Ages = r.s.shortcuts(q, "at")
	for _, c := range r.s.shortcuts(q, "since") {
		if c.Name == "now" {
			c.Name = "nothing"
		}
		l.Since = append(l.Since, c)
	}
	v.Form = rowsForm{Action: r.s.address("/rows", nil), At: q.Text("at"), Since: q.Text("since"),
		Where: q.Text("where"), Limit: q.Text("limit"), Most: rowsMost, Example: whereExample(r.grid.schema)}
	v.Form.Hidden = append(v.Form.Hidden, [2]string{"table", r.s.formTable(q.Table.Name())})
	for _, name := range []string{"from", "column"} {
		if value := q.Text(name); value != "" {
			v.Form.Hidden = append(v.Form.Hidden, [2]string{name, escapeJSON(value)})
		}
	}
}

// whereExample returns an expression about a column of the table.
func whereExample(s *schema.Schema) string {
	for i := len(s.Columns) - 1; i >= 0; i-- {
		name := s.Columns[i].Name
		if plain := strings.Trim(strings.ToLower(name), "abcdefghijklmnopqrstuvwxyz_") == ""; !plain || len(name) > 20 {
			continue
		}
		switch c := &s.Columns[i]; {
		case numeric(c):
			return name + " > 100"
		case c.Type == schema.String || c.Type == schema.Varchar:
			return name + " like 'a%'"
		}
	}
	return "size > 100"
}

// nextChange returns the link to the first change after the page. It is empty if no change follows,
// or none is found in time.
func (r *rowsRequest) nextChange(ctx context.Context, end []byte, to func(...string) string) string {
	ctx, cancel := context.WithTimeout(ctx, previousTime)
	defer cancel()
	from, err := r.grid.encoder.Decode(end)
	if err != nil {
		return ""
	}
	for d, err := range r.q.Table.Diff(ctx, min(r.since.ts, r.at.ts), max(r.since.ts, r.at.ts), oribi.From(from),
		oribi.Columns(r.grid.names()...)) {
		if err != nil {
			return ""
		}
		if text := keyText(r.grid.schema, d.Key); len(text) <= maxParamBytes {
			return to("from", text)
		}
		return ""
	}
	return ""
}

// gridCell is a cell in the template.
type gridCell struct {
	valueView
	Before *valueView // nil: it did not change
	Key    bool
	Class  string
}

// Grid returns the cells for the template.
func (r *gridRow) Grid() []gridCell {
	cells := make([]gridCell, len(r.Cells))
	for i := range cells {
		head := &r.columns[i]
		c := &cells[i]
		c.valueView, c.Before, c.Key, c.Class = r.Cells[i], r.Before[head.Name], head.Key, head.class
		if c.Before != nil {
			c.Class += " changed"
		}
	}
	return cells
}

// Class returns what happened to the row from the earlier to the later of the two states.
func (r *gridRow) Class() string {
	if r.Later {
		return map[string]string{"insert": "delete", "update": "update", "delete": "insert"}[r.Change]
	}
	return r.Change
}

// Sign and Word mark a row without color.
func (r *gridRow) Sign() string {
	return map[string]string{"insert": "+", "update": "~", "delete": "−"}[r.Class()]
}

// Word describes what changed.
func (r *gridRow) Word() string {
	words := map[string]string{"insert": "inserted", "update": "updated", "delete": "deleted"}
	if r.Later {
		words = map[string]string{"insert": "deleted later", "update": "updated later", "delete": "inserted later"}
	}
	word := words[r.Change]
	switch r.Match {
	case "entered":
		word += ", matches only here"
	case "left":
		word += ", matches only there"
	}
	return word
}

// Summary returns what differs on the page, in one sentence.
func (v *rowsView) Summary() string {
	switch {
	case v.Inserted+v.Updated+v.Deleted == 0:
		return "None of these rows differs."
	case v.Since.TS > v.At.TS:
		return fmt.Sprintf("On this page: %d deleted later, %d updated later, %d inserted later.",
			v.Inserted, v.Updated, v.Deleted)
	}
	return fmt.Sprintf("On this page: %d inserted, %d updated, %d deleted.", v.Inserted, v.Updated, v.Deleted)
}

// trimmed returns the text of an error without the name of the library.
func trimmed(err error) string {
	text := err.Error()
	for _, prefix := range []string{"oribi: ", "expression: "} {
		if len(text) > len(prefix) && text[:len(prefix)] == prefix {
			text = text[len(prefix):]
		}
	}
	return celltext.Printable(text)
}
