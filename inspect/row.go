package inspect

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/internal/cell"
	"github.com/oribi-db/oribi/internal/celltext"
	"github.com/oribi-db/oribi/schema"
)

var rowPage = page{pattern: "/row", name: "One row", template: "row.html", table: true,
	params: []string{"key", "before", "column", "offset"}, build: buildRow}

// Limits of the page of a row.
const (
	fieldChars   = 4 << 10   // of a cell's text
	fieldsBytes  = 300 << 10 // of all cells in the page
	versionsMost = 50        // on a page
	changesEach  = 12        // cells of a version
	versionChars = 200       // of a cell of a version
	versionBytes = 250 << 10 // of all of them in the page
	partBytes    = 128 << 10 // of one cell that is shown alone
)

// rowView is the page of one row: its cells in one state, its versions, and how a read finds it.
type rowView struct {
	Table  string          `json:"table"`
	Key    json.RawMessage `json:"key,omitempty"`
	At     moment          `json:"at"`     // the state
	Exists bool            `json:"exists"` // in that state
	Fields []fieldView     `json:"fields"`
	Part   *cellPart       `json:"part,omitempty"` // of one cell, if the address asks for it
	// of a state of the past in which the row exists: what has changed
	Since    *sinceView    `json:"changed_since,omitempty"`
	Versions []versionView `json:"versions"`      // newest first
	More     bool          `json:"more_versions"` // there are older ones
	Read     *readView     `json:"read,omitempty"`
	Times    timesView     `json:"times"`

	Form     rowForm    `json:"-"`
	Ages     []shortcut `json:"-"`
	RowsURL  string     `json:"-"` // the rows from this one on
	OlderURL string     `json:"-"` // older versions
	NewerURL string     `json:"-"` // the newest versions
}

// fieldView is a cell of the row.
type fieldView struct {
	Column string    `json:"column"`
	Type   string    `json:"type"`
	Key    bool      `json:"key"`
	Cell   valueView `json:"cell"`

	URL string `json:"-"` // of the whole cell
}

// sinceView is how a row differs now from a state of the past.
type sinceView struct {
	Deleted bool         `json:"deleted"` // the row does not exist now
	Changes []cellChange `json:"changes"` // the first of them
	Further int          `json:"further_changes"`
}

// cellPart is a part of a long cell.
type cellPart struct {
	Column string `json:"column"`
	Type   string `json:"type"`
	Bytes  int    `json:"bytes"` // of the cell, or of the text of an array
	From   int    `json:"from"`  // the part is [From, To)
	To     int    `json:"to"`
	Text   string `json:"text"` // with every character visible

	PreviousURL, NextURL, RowURL string `json:"-"`
}

// versionView is one version of the row.
type versionView struct {
	Time    *moment      `json:"time,omitempty"` // none: it is older than the table's history
	Kind    string       `json:"kind"`           // insert, update, delete, base
	Current bool         `json:"current"`        // it is the one in the state of the page
	Changes []cellChange `json:"changes"`        // the first of them
	Further int          `json:"further_changes"`

	URL     string `json:"-"` // the row as of it
	RowsURL string `json:"-"` // what else changed then
}

// cellChange is a cell that a version changed.
type cellChange struct {
	Column string     `json:"column"`
	Before *valueView `json:"before,omitempty"` // none: the version inserted the row
	After  valueView  `json:"after"`
}

// rowForm is the form that asks for a key.
type rowForm struct {
	Action, Table, Key, At string // Table is the result of formTable
	Example, Short         string // forms of a key; Short is empty if there is only one
}

func buildRow(ctx context.Context, s *server, q *query) (any, error) {
	t, sc := q.Table, q.Table.Schema()
	at, err := s.stateAt(ctx, q.At)
	if err != nil {
		return nil, err
	}
	defer at.release()
	v := &rowView{Table: t.Name(), At: momentOf(at.ts), Fields: []fieldView{}, Versions: []versionView{},
		Form: rowForm{Action: s.address("/row", nil), Table: s.formTable(t.Name()), Key: escapeJSON(q.Text("key")),
			At: q.Text("at"), Example: keyExample(sc), Short: shortExample(sc)}}
	if !q.Has("key") || q.Text("key") == "" {
		return v, nil
	}
	key, err := cell.Key(sc, objectOf(sc, q.Text("key")), false)
	if err != nil {
		return nil, &problem{status: 400, text: "key: " + trimmed(err) + ".",
			hint: "A key looks like " + v.Form.Example + "."}
	}
	v.Key = keyJSON(keyText(sc, key))
	r := &rowRequest{s: s, q: q, schema: sc, key: key, at: at}
	if column := q.Text("column"); column != "" {
		v.Part, err = r.part(ctx, column)
		return v, err
	}
	if err := r.fields(ctx, v); err != nil {
		return nil, err
	}
	if err := r.since(ctx, v); err != nil {
		return nil, err
	}
	if err := r.versions(ctx, v); err != nil {
		return nil, err
	}
	if v.Read, err = r.read(ctx); err != nil {
		return nil, err
	}
	v.Times = s.times(ctx, q, at, [][][]byte{key}, "")
	v.Ages = s.shortcuts(q, "at")
	v.RowsURL = r.rowsURL("at", q.Text("at"))
	return v, nil
}

// keyExample returns the form of a key.
func keyExample(s *schema.Schema) string {
	var b bytes.Buffer
	for i := range s.Keys {
		c := &s.Columns[i]
		value := "1"
		if !numeric(c) {
			value = `"…"`
		}
		if s.SingleKey() {
			return value
		}
		fmt.Fprintf(&b, ",%s:%s", celltext.AppendQuoted(nil, []byte(c.Name)), value)
	}
	return "{" + b.String()[1:] + "}"
}

// shortExample returns the short form of a key of several columns.
func shortExample(s *schema.Schema) string {
	if s.SingleKey() {
		return ""
	}
	values := make([]string, s.Keys)
	for i := range values {
		if values[i] = "…"; numeric(&s.Columns[i]) {
			values[i] = "1"
		}
	}
	return strings.Join(values, ", ")
}

// objectOf returns the JSON object for a key of several columns in its short form: values with
// commas between them, as pages show keys. The last value may have commas, and text needs no
// quotes.
func objectOf(s *schema.Schema, text string) string {
	text = strings.TrimSpace(text)
	values := strings.SplitN(text, ",", s.Keys)
	if s.SingleKey() || len(values) != s.Keys || strings.HasPrefix(text, "{") {
		return text
	}
	var b []byte
	for i, value := range values {
		c := &s.Columns[i]
		if value = strings.TrimSpace(value); !numeric(c) && !strings.HasPrefix(value, `"`) {
			value = string(celltext.AppendQuoted(nil, []byte(value)))
		}
		b = fmt.Appendf(b, ",%s:%s", celltext.AppendQuoted(nil, []byte(c.Name)), value)
	}
	return "{" + string(b[1:]) + "}"
}

// rowRequest is the request for a page of a row.
type rowRequest struct {
	s      *server
	q      *query
	schema *schema.Schema
	key    [][]byte
	at     state

	columns []schema.Column // of the row in that state
	cells   [][]byte        // nil: there is none
}

// rowsURL returns the address of the rows from this one on.
func (r *rowRequest) rowsURL(changes ...string) string {
	return r.s.address("/rows",
		r.q.With(append([]string{"key", "", "before", "", "column", "", "offset", "", "page", "", "from",
			keyText(r.schema, r.key)}, changes...)...))
}

// fields sets the cells of the row.
func (r *rowRequest) fields(ctx context.Context, v *rowView) error {
	columns, cells, err := r.q.Table.GetCells(ctx, r.key, r.at.option)
	if errors.Is(err, oribi.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	r.columns, r.cells = columns, cells
	v.Exists = true
	var views []*valueView
	v.Fields = make([]fieldView, len(cells))
	for i := range cells {
		c := &r.schema.Columns[i]
		v.Fields[i] = fieldView{Column: celltext.Printable(c.Name), Type: c.TypeName(), Key: i < r.schema.Keys,
			Cell: viewOf(c, cells[i], fieldChars)}
		views = append(views, &v.Fields[i].Cell)
	}
	fit(views, fieldsBytes)
	for i := range v.Fields {
		if v.Fields[i].Cell.Cut {
			v.Fields[i].URL = r.s.address("/row", r.q.With("column", r.schema.Columns[i].Name, "before", ""))
		}
	}
	return nil
}

// since sets what has changed since a state of the past, of which fields has read the row.
func (r *rowRequest) since(ctx context.Context, v *rowView) error {
	if !v.Exists || r.at.ts >= r.s.store.Visible() {
		return nil
	}
	v.Since = &sinceView{Changes: []cellChange{}}
	columns, is, err := r.q.Table.GetCells(ctx, r.key)
	if errors.Is(err, oribi.ErrNotFound) {
		v.Since.Deleted = true
		return nil
	}
	if err != nil {
		return err
	}
	if !slices.EqualFunc(columns, r.columns, func(a, b schema.Column) bool { return a.ID == b.ID }) {
		v.Since = nil // the table has been altered in the meantime
		return nil
	}
	for i, was := range r.cells {
		c := &r.columns[i]
		if (was == nil) == (is[i] == nil) && bytes.Equal(was, is[i]) {
			continue
		}
		if len(v.Since.Changes) == changesEach {
			v.Since.Further++
			continue
		}
		before := viewOf(c, was, versionChars)
		v.Since.Changes = append(v.Since.Changes,
			cellChange{celltext.Printable(c.Name), &before, viewOf(c, is[i], versionChars)})
	}
	return nil
}

// part returns a part of one cell.
func (r *rowRequest) part(ctx context.Context, column string) (*cellPart, error) {
	from, err := r.q.Int("offset", 0, 0, 1<<30)
	if err != nil {
		return nil, err
	}
	columns, cells, err := r.q.Table.GetCells(ctx, r.key, r.at.option, oribi.Columns(column))
	if err != nil {
		return nil, err
	}
	c, whole := &columns[0], cells[0]
	if c.Type != schema.String && c.Type != schema.Varchar && c.Type != schema.Binary {
		whole = celltext.AppendText(nil, c, whole)
	}
	if from > len(whole) {
		return nil, badRequest("offset: the cell has %d bytes.", len(whole))
	}
	piece := whole[from:min(from+partBytes, len(whole))]
	if from+len(piece) < len(whole) && c.Type != schema.Binary {
		piece = wholeRunes(piece)
	}
	p := &cellPart{Column: celltext.Printable(column), Type: c.TypeName(), Bytes: len(whole),
		From: from, To: from + len(piece)}
	if c.Type == schema.Binary {
		p.Text = string(celltext.AppendText(nil, c, piece))
	} else {
		p.Text = celltext.Printable(string(piece))
	}
	to := func(offset int) string { return r.s.address("/row", r.q.With("offset", strconv.Itoa(offset))) }
	if from > 0 {
		p.PreviousURL = to(max(0, from-partBytes))
	}
	if p.To < p.Bytes {
		p.NextURL = to(p.To)
	}
	p.RowURL = r.s.address("/row", r.q.With("column", "", "offset", ""))
	return p, nil
}

// versions sets the versions of the row.
func (r *rowRequest) versions(ctx context.Context, v *rowView) error {
	var options []oribi.GetOption
	before, err := r.s.otherState(ctx, r.q, "before")
	if err != nil {
		return err
	}
	if before != nil {
		defer before.release()
		options = append(options, before.option)
		v.NewerURL = r.s.address("/row", r.q.With("before", ""))
	}
	var list []oribi.Version
	for version, err := range r.q.Table.History(ctx, r.key, options...) {
		if errors.Is(err, oribi.ErrNotFound) {
			break
		}
		if err != nil {
			return err
		}
		list = append(list, version)
		if len(list) > versionsMost {
			break
		}
	}
	v.Versions = make([]versionView, 0, min(len(list), versionsMost))
	var views []*valueView
	for i := range list[:min(len(list), versionsMost)] {
		var older *oribi.Version
		if i+1 < len(list) {
			older = &list[i+1]
		}
		one := r.version(&list[i], older)
		for k := range one.Changes {
			views = append(views, &one.Changes[k].After)
			if b := one.Changes[k].Before; b != nil {
				views = append(views, b)
			}
		}
		v.Versions = append(v.Versions, one)
	}
	fit(views, versionBytes)
	for i := range v.Versions {
		if ts := list[i].Timestamp; ts <= r.at.ts {
			v.Versions[i].Current = true
			break
		}
	}
	if v.More = len(list) > versionsMost; v.More {
		v.OlderURL = r.s.address("/row",
			r.q.With("before", strconv.FormatUint(uint64(list[versionsMost-1].Timestamp)-1, 10)))
	}
	return nil
}

// version returns the view of a version, of which older is the next older version, or nil.
func (r *rowRequest) version(version, older *oribi.Version) versionView {
	v := versionView{Kind: version.Kind.String(), Changes: []cellChange{}}
	if version.Kind != oribi.Base {
		at := momentOf(version.Timestamp)
		ts := strconv.FormatUint(at.TS, 10)
		v.Time, v.URL = &at, r.s.address("/row", r.q.With("at", ts, "before", "", "page", ""))
		since := ""
		if version.Timestamp-1 >= r.s.floor(r.q.Table) {
			since = strconv.FormatUint(at.TS-1, 10)
		}
		v.RowsURL = r.rowsURL("at", ts, "since", since)
	}
	for i, after := range version.Cells {
		c := &version.Columns[i]
		var before *valueView
		if older != nil && older.Cells != nil {
			was := older.Cells[i]
			if (was == nil) == (after == nil) && bytes.Equal(was, after) {
				continue
			}
			view := viewOf(c, was, versionChars)
			before = &view
		} else if i < r.schema.Keys {
			continue // the key is above
		}
		if len(v.Changes) == changesEach {
			v.Further++
			continue
		}
		v.Changes = append(v.Changes, cellChange{celltext.Printable(c.Name), before, viewOf(c, after, versionChars)})
	}
	return v
}

// Sign marks a version without color.
func (v *versionView) Sign() string {
	return map[string]string{"insert": "+", "update": "~", "delete": "−", "base": "•"}[v.Kind]
}

// Word describes a version.
func (v *versionView) Word() string {
	return map[string]string{"insert": "inserted", "update": "updated", "delete": "deleted",
		"base": "the row when the history begins"}[v.Kind]
}

// KeyText returns the key for the heading.
func (v *rowView) KeyText() string {
	text := celltext.Printable(string(v.Key))
	if utf8.RuneCountInString(text) > 200 {
		text = firstRunes(text, 200) + "…"
	}
	return text
}
