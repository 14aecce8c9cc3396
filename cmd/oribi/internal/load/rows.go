package load

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/cmd/oribi/internal/apply"
	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/schema"
)

// rows becomes one write batch: cells column by column, and for each row the line of the input that
// contains it.
type rows struct {
	vectors []*batch.Vector // one for each column of the table
	auto    int             // index of the auto-incrementing column; −1 = none
	places  []place
	bytes   int    // approximate size of the write batch
	largest int    // the size of the largest row
	set     []bool // rows × columns: which cells the input set; used by upserts only
	varied  bool   // rows set different columns
	text    []byte // the byte strings of vectors, unless reallocated
	raw     []byte // the records as in the input; used by SkipBad only
	bad     []badRecord
	err     error // ends the input after these rows: io.EOF, or why the load ends
}

// place is the position of a row in the input: the line on which its record begins, and the range
// of the record in raw.
type place struct{ line, from, to int }

// badRecord is a record that is not a valid row.
type badRecord struct {
	raw []byte
	err *apply.LineError
}

func newRows(s *schema.Schema) *rows {
	r := &rows{auto: s.AutoIncrement(), text: make([]byte, 0, 64<<10)} // never nil: an empty cell is not NULL
	for i := range s.Columns {
		r.vectors = append(r.vectors, &batch.Vector{Type: s.Columns[i].Type})
	}
	return r
}

func (r *rows) reset() {
	for _, v := range r.vectors {
		v.Reset(0)
	}
	clear(r.bad)
	*r = rows{vectors: r.vectors, auto: r.auto, places: r.places[:0], set: r.set[:0], text: r.text[:0],
		raw: r.raw[:0], bad: r.bad[:0]}
}

func (r *rows) len() int { return len(r.places) }

// rawOf returns the record of row i.
func (r *rows) rawOf(i int) []byte { return r.raw[r.places[i].from:r.places[i].to] }

// columns returns the vectors as Batch.Vectors takes them: nil for columns that no row sets. The
// rows must not be varied.
func (r *rows) columns() []*batch.Vector {
	if len(r.set) == 0 && r.auto < 0 {
		return r.vectors
	}
	given := make([]*batch.Vector, len(r.vectors))
	for i, v := range r.vectors {
		if len(r.set) > 0 && r.set[i] || len(r.set) == 0 && i != r.auto {
			given[i] = v
		}
	}
	return given
}

// keep removes the rows that have an entry in drop.
func (r *rows) keep(drop map[int]error) {
	n, width := 0, len(r.vectors)
	selection := batch.MakeBitmap(r.len())
	for i := range r.len() {
		if drop[i] != nil {
			continue
		}
		selection.Set(i)
		r.places[n] = r.places[i]
		if len(r.set) > 0 {
			copy(r.set[n*width:(n+1)*width], r.set[i*width:])
		}
		n++
	}
	total := r.len()
	r.places, r.set = r.places[:n], r.set[:min(len(r.set), n*width)]
	for i, v := range r.vectors {
		kept := &batch.Vector{Type: v.Type}
		kept.Reset(0)
		kept.AppendSelected(v, selection, 0, total)
		r.vectors[i] = kept
	}
}

// maker builds rows from cells, one record at a time.
type maker struct {
	schema *schema.Schema
	upsert bool // otherwise rows are inserted, and must not set an auto-incrementing column
	raw    bool // records are kept
	limit  int  // maximum bytes of a cell
	width  int  // bytes of a row's fixed widths and bookkeeping

	where *batch.Filter // rows for which it is not true are left out; nil selects all rows

	cells [][]byte // of the current record, nil for NULL
	set   []bool   // which cells the record sets
	fixed []byte   // cells of fixed width
}

// rowOverhead is the approximate size of a row in a write batch in addition to its cells.
const rowOverhead = 128

// defaultCellBytes is the default of oribi.Options.CellLimit.
const defaultCellBytes = 64 << 10

func newMaker(s *schema.Schema, o *Options) *maker {
	n := len(s.Columns)
	m := &maker{schema: s, upsert: o.Mode == oribi.OpUpsert, raw: o.SkipBad != nil,
		limit: cmp.Or(o.CellLimit, defaultCellBytes), where: o.Where, width: rowOverhead, cells: make([][]byte, n),
		set: make([]bool, n), fixed: make([]byte, 0, 16*n)}
	for i := range s.Columns {
		m.width += s.Columns[i].Type.Width() + 1
	}
	return m
}

func (m *maker) begin() {
	clear(m.cells)
	clear(m.set)
	m.fixed = m.fixed[:0]
}

// put sets the cell of column i to the bytes that read appends.
func (m *maker) put(
	dst *rows, i int, value []byte, read func([]byte, *schema.Column, []byte) ([]byte, error),
) (err error) {
	buffer := &m.fixed
	c := &m.schema.Columns[i]
	if c.Type.Variable() {
		buffer = &dst.text
	}
	from := len(*buffer)
	if *buffer, err = read(*buffer, c, value); err != nil {
		return columnError(c.Name, err)
	}
	m.cells[i], m.set[i] = (*buffer)[from:len(*buffer):len(*buffer)], true
	return nil
}

var (
	errNull   = errors.New("NULL in a column that is not nullable")
	errNotSet = errors.New("not set, and the column has no default and is not nullable")
	errNoKey  = errors.New("not set, and it is in the key")
	errAuto   = errors.New("is auto-incrementing: use --mode upsert for rows with their own values")
)

// errLeftOut means that a row is well-formed, but not wanted.
var errLeftOut = errors.New("left out")

// cellOf returns the cell of a column of the current record.
func (m *maker) cellOf(id schema.ColumnID) []byte {
	for i := range m.schema.Columns {
		if m.schema.Columns[i].ID == id {
			return m.cells[i]
		}
	}
	return nil
}

// end appends the cells of the current record as one row. Errors: errLeftOut; others describe why
// it is not a row.
func (m *maker) end(dst *rows, line int, raw []byte) error {
	size := m.width
	for i := range m.cells {
		c := &m.schema.Columns[i]
		switch {
		case m.set[i] && c.AutoIncrement && !m.upsert:
			return columnError(c.Name, errAuto)
		case len(m.cells[i]) > m.limit:
			return columnError(c.Name, fault.CellTooLong(len(m.cells[i]), m.limit))
		case m.cells[i] != nil:
			size += len(m.cells[i])
		case m.set[i] && !c.Nullable:
			return columnError(c.Name, errNull)
		case m.set[i]:
		case i < m.schema.Keys && (m.upsert || !c.AutoIncrement):
			return columnError(c.Name, errNoKey)
		case c.Required() && !m.upsert: // an upsert may find an existing row
			return columnError(c.Name, errNotSet)
		default:
			m.cells[i] = c.Unset()
		}
	}
	if m.where != nil && !m.where.EvalRow(m.cellOf) {
		return errLeftOut
	}
	for i, v := range dst.vectors {
		v.AppendCell(m.cells[i])
	}
	from := len(dst.raw)
	if m.raw {
		dst.raw = appendLine(dst.raw, raw)
	}
	dst.places = append(dst.places, place{line, from, len(dst.raw)})
	dst.bytes += size
	dst.largest = max(dst.largest, size)
	if m.upsert {
		dst.addSet(m.set)
	}
	return nil
}

// addSet adds which cells of a row the input set.
func (r *rows) addSet(set []bool) {
	r.set = append(r.set, set...)
	r.varied = r.varied || !slices.Equal(set, r.set[:len(set)])
}

// appendLine appends a record, and a line end if it has none, like the last record of some inputs.
func appendLine(dst, raw []byte) []byte {
	dst = append(dst, raw...)
	if len(raw) == 0 || raw[len(raw)-1] != '\n' {
		dst = append(dst, '\n')
	}
	return dst
}

func columnError(name string, err error) error { return fmt.Errorf("column %q: %w", name, err) }
