package output

import (
	"encoding/binary"
	"math"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/internal/celltext"
	"github.com/oribi-db/oribi/internal/figures"
	"github.com/oribi-db/oribi/schema"
)

// The window: the rows seen before the widths are fixed, up to the first of these limits. It bounds
// the memory of a table.
const (
	lookRows  = 500
	lookBytes = 4 << 20
)

// Style is the layout of a table. The zero value is for output that is not a terminal.
type Style struct {
	Width int  // columns of the terminal; 0 = no terminal: nothing is cut or omitted
	Color bool // the header bold, NULL and the count dim
	Bare  bool // neither header nor count

	Sizes []string // columns of type int64 that are byte counts, shown with their units

	// Figure, if not nil, reports whether a cell of a string column is a number or a size: such
	// cells are aligned to the right of the widest one in the window.
	Figure func(row int64, column int) bool
}

// Colors.
const (
	bold  = "\x1b[1m"
	dim   = "\x1b[2m"
	plain = "\x1b[0m"
)

// tableRows prints aligned columns under a header, numbers to the right, everything else to the
// left, and the number of rows.
//
// The first rows, the window, are held back until it is full and determine the widths. In later
// rows, text that is wider than its column is cut on a terminal; a wider number is not cut and
// sticks out. A single row that is too wide is printed with a line for each column.
type tableRows struct {
	columns []schema.Column
	style   Style
	widths  []int // of the columns shown; nil while rows are held back
	rows    int64

	seen  []column
	cells []heldCell // of the held rows, len(columns) each, the header first
	text  []byte     // of cells
}

// heldCell is one cell of a held row: its text is the next length bytes of tableRows.text.
type heldCell struct {
	length, width int
	null          bool
	figure        bool // text that is aligned to the right of the other figures in its column
}

func newTableRows(columns []schema.Column) *tableRows {
	r := &tableRows{columns: columns, seen: make([]column, len(columns))}
	for i := range columns {
		var n int
		r.text, n = appendPrintable(r.text, []byte(columns[i].Name), math.MaxInt)
		r.seen[i] = column{header: n, cut: columns[i].Type.Variable()}
	}
	r.text = r.text[:0]
	return r
}

func (r *tableRows) begin(dst []byte) []byte { return dst }

func (r *tableRows) row(dst []byte, vectors []*batch.Vector, i int) []byte {
	r.rows++
	if r.widths == nil {
		r.hold(vectors, i)
		if r.rows >= lookRows || len(r.text) >= lookBytes {
			dst = r.flush(dst)
		}
		return dst
	}
	for k := range r.widths {
		r.text = r.text[:0]
		h := r.render(k, vectors[k].Cell(i))
		dst = r.appendCell(dst, k, r.text, h)
	}
	return r.endLine(dst)
}

// hold adds a row to the window.
func (r *tableRows) hold(vectors []*batch.Vector, i int) {
	for k, v := range vectors {
		h := r.render(k, v.Cell(i))
		r.seen[k].cells = max(r.seen[k].cells, h.width)
		if h.figure {
			r.seen[k].figures = max(r.seen[k].figures, h.width)
		}
		r.cells = append(r.cells, h)
	}
}

// render appends the text of a cell of column k to r.text.
func (r *tableRows) render(k int, cell []byte) heldCell {
	from := len(r.text)
	if cell == nil {
		r.text = append(r.text, nullWord...)
		return heldCell{length: len(nullWord), width: len(nullWord), null: true}
	}
	// Text wider than the terminal will be cut: no more of it is appended than fits. The first row
	// may be the only one.
	limit := math.MaxInt
	if r.style.Width > 0 && r.rows > 1 {
		limit = r.style.Width
	}
	var width int
	figure := false
	switch r.columns[k].Type {
	case schema.String, schema.Varchar:
		r.text, width = appendPrintable(r.text, cell, limit)
		figure = r.style.Figure != nil && r.style.Figure(r.rows-1, k)
	case schema.Array:
		r.text, width = appendPrintable(r.text, celltext.AppendText(nil, &r.columns[k], cell), limit)
	case schema.Binary:
		cell = cell[:min(len(cell), limit)]
		fallthrough
	default:
		if r.seen[k].size {
			r.text = append(r.text, figures.Size(int64(binary.LittleEndian.Uint64(cell)))...)
		} else {
			r.text = celltext.AppendText(r.text, &r.columns[k], cell)
		}
		width = len(r.text) - from
	}
	return heldCell{length: len(r.text) - from, width: width, figure: figure}
}

// flush chooses the widths, unless they are chosen already, and prints the header and the buffered
// rows.
func (r *tableRows) flush(dst []byte) []byte {
	if r.widths != nil {
		return dst
	}
	if r.style.Width > 0 {
		r.widths = fit(r.seen, r.style.Width)
	} else {
		for i := range r.seen {
			r.widths = append(r.widths, min(r.seen[i].natural(), max(mostWidth, r.seen[i].header)))
		}
	}
	dst = r.appendHeader(dst)
	text := r.text
	for len(r.cells) > 0 {
		for k := range r.columns {
			h := r.cells[k]
			if k < len(r.widths) {
				dst = r.appendCell(dst, k, text[:h.length], h)
			}
			text = text[h.length:]
		}
		dst = r.endLine(dst)
		r.cells = r.cells[len(r.columns):]
	}
	r.cells, r.text = nil, nil
	return dst
}

func (r *tableRows) appendHeader(dst []byte) []byte {
	if r.style.Bare {
		return dst
	}
	if r.style.Color {
		dst = append(dst, bold...)
	}
	for k := range r.widths {
		name, width := appendPrintable(nil, []byte(r.columns[k].Name), math.MaxInt)
		dst = r.appendAligned(dst, k, name, width, true, "")
	}
	if r.style.Color {
		dst = append(dst, plain...)
	}
	return r.endLine(dst)
}

// fits reports whether all columns of the window fit side by side, uncut.
func (r *tableRows) fits() bool {
	return r.style.Width == 0 || total(r.seen, (*column).natural) <= room(len(r.seen), len(r.seen), r.style.Width)
}

// upright prints the only row with a line for each column, nothing cut.
func (r *tableRows) upright(dst []byte) []byte {
	r.widths = make([]int, len(r.columns)) // all columns are shown
	widest := 0
	for i := range r.seen {
		widest = max(widest, r.seen[i].header)
	}
	text := r.text
	for k, h := range r.cells {
		if r.style.Color {
			dst = append(dst, bold...)
		}
		dst, _ = appendPrintable(dst, []byte(r.columns[k].Name), math.MaxInt)
		if r.style.Color {
			dst = append(dst, plain...)
		}
		dst = appendBlanks(dst, widest-r.seen[k].header+gap)
		if h.null && r.style.Color {
			dst = append(append(append(dst, dim...), text[:h.length]...), plain...)
		} else {
			dst = append(dst, text[:h.length]...)
		}
		text = text[h.length:]
		dst = append(dst, '\n')
	}
	r.cells, r.text = nil, nil
	return dst
}

// end prints the window and the number of rows. A single row that does not fit is printed upright.
func (r *tableRows) end(dst []byte) []byte {
	if r.widths == nil && r.rows == 1 && !r.style.Bare && !r.fits() {
		dst = r.upright(dst)
	}
	dst = r.flush(dst)
	if r.style.Bare {
		return dst
	}
	if r.style.Color {
		dst = append(dst, dim...)
	}
	switch r.rows {
	case 0:
		dst = append(dst, "(no rows"...)
	case 1:
		dst = append(dst, "(1 row"...)
	default:
		dst = append(append(append(dst, '('), figures.Thousands(r.rows)...), " rows"...)
	}
	if shown := len(r.widths); shown < len(r.columns) {
		dst = append(append(append(dst, ", "...), figures.Thousands(int64(shown))...), " of "...)
		dst = append(append(dst, figures.Thousands(int64(len(r.columns)))...), " columns shown"...)
	}
	dst = append(dst, ')')
	if r.style.Color {
		dst = append(dst, plain...)
	}
	return append(dst, '\n')
}

// appendCell appends a cell of column k.
func (r *tableRows) appendCell(dst []byte, k int, text []byte, h heldCell) []byte {
	color := ""
	if h.null && r.style.Color {
		color = dim
	}
	if pad := min(r.seen[k].figures, r.widths[k]) - h.width; h.figure && pad > 0 {
		text = append(appendBlanks(nil, pad), text...)
		h.width += pad
	}
	return r.appendAligned(dst, k, text, h.width, r.seen[k].cut || h.null, color)
}

// appendAligned appends text in column k, cut if necessary and allowed, with the gap before it and
// without blanks at the end of a line.
func (r *tableRows) appendAligned(dst []byte, k int, text []byte, width int, cut bool, color string) []byte {
	if k > 0 {
		dst = appendBlanks(dst, gap)
	}
	right := Right(r.columns[k].Type)
	pad := r.widths[k] - width
	if right {
		dst = appendBlanks(dst, pad)
	}
	dst = append(dst, color...)
	if cut && r.style.Width > 0 {
		dst, width = appendCut(dst, text, width, r.widths[k])
		pad = r.widths[k] - width
	} else {
		dst = append(dst, text...)
	}
	if color != "" {
		dst = append(dst, plain...)
	}
	if last := k == len(r.widths)-1 && len(r.widths) == len(r.columns); !right && !last {
		dst = appendBlanks(dst, pad)
	}
	return dst
}

// endLine ends a line, with a mark if columns are omitted.
func (r *tableRows) endLine(dst []byte) []byte {
	if len(r.widths) < len(r.columns) {
		dst = append(appendBlanks(dst, gap), ellipsis...)
	}
	return append(dst, '\n')
}

func appendBlanks(dst []byte, n int) []byte {
	for ; n > 0; n-- {
		dst = append(dst, ' ')
	}
	return dst
}

// Right reports whether tables align values of a type to the right.
func Right(t schema.Type) bool { return !t.Variable() && t != schema.Date && t != schema.Bool }
