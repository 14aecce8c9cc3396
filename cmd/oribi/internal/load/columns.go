package load

import (
	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/schema"
)

// Rows of record batches are appended column by column: without the bookkeeping of single rows,
// this takes about a third of the time. Rows that the table refuses are found here but not
// described: for them, next reads the same rows one by one.

// columnReader appends rows of a batch column by column.
type columnReader struct {
	possible bool       // for the columns of the input and the table
	copied   []bool     // by field: cells are copied as they are
	cells    [][][]byte // by field, if neither copied nor coded: the cells of the rows
	words    []words    // by field: of the last dictionary
	coded    []bool     // by field: codes of words are copied
	missing  []int      // columns of the table that no field sets
	rows     []int      // of the batch, that are appended
	sizes    []int      // of the rows
	skip     int        // rows to be read one by one, since one of them is bad
	fixed    []byte     // memory of cells of fixed width
}

// newColumnReader returns a reader of the fields of a source.
func newColumnReader(s *batchSource) columnReader {
	n := len(s.fields)
	r := columnReader{possible: !s.maker.raw, cells: make([][][]byte, n),
		words: make([]words, n), coded: make([]bool, n)}
	for i := range s.fields {
		f := &s.fields[i]
		to := &s.schema.Columns[f.to]
		r.possible = r.possible && (!to.AutoIncrement || s.upsert)
		r.copied = append(r.copied, f.same && !to.Type.Variable())
	}
	for i := range s.schema.Columns {
		c := &s.schema.Columns[i]
		switch {
		case s.given[i]:
			continue
		case i < s.schema.Keys && (s.upsert || !c.AutoIncrement), c.Required() && !s.upsert:
			r.possible = false // each row is bad
		}
		r.missing = append(r.missing, i)
	}
	return r
}

// appendRows appends some of the next rows of the current batch to dst, up to most of them. It
// returns false if it appends none, since next must read the next row.
func (s *batchSource) appendRows(dst *rows, most int) bool {
	r := &s.columns
	if !r.possible || most == 0 {
		return false
	}
	if r.skip > 0 {
		r.skip--
		return false
	}
	if s.advance() != nil {
		return false // next returns it
	}
	s.measure(most, maxBatchBytes-dst.bytes)
	n, text := len(r.rows), len(dst.text)
	to := r.rows[n-1] + 1
	if !s.convertRows(dst) {
		dst.text = dst.text[:text]
		r.skip = n - 1
		return false
	}
	for i := range s.fields {
		v := dst.vectors[s.fields[i].to]
		switch {
		case r.copied[i]:
			v.AppendSelected(s.now.Columns[i], s.now.Selection, s.at, to)
		case r.coded[i]:
			appendCodes(v, s.now.Columns[i], r.words[i].converted, r.rows)
		default:
			appendCells(v, r.cells[i])
		}
	}
	for _, i := range r.missing {
		cell := s.schema.Columns[i].Unset()
		for range n {
			dst.vectors[i].AppendCell(cell)
		}
	}
	for k, size := range r.sizes {
		dst.places = append(dst.places, place{line: s.count + k + 1})
		dst.bytes += size
		dst.largest = max(dst.largest, size)
		if s.upsert {
			dst.addSet(s.given)
		}
	}
	s.count += n
	s.at = s.now.Selection.Next(to)
	return true
}

// appendCells appends cells to a vector in one of its own forms.
func appendCells(v *batch.Vector, cells [][]byte) {
	at := v.Len
	v.Extend(len(cells))
	if !v.Type.Variable() || v.Present != nil {
		for i, cell := range cells {
			v.SetCell(at+i, cell)
		}
		return
	}
	copy(v.Bytes[at:], cells)
	for i, cell := range cells {
		if cell == nil {
			v.SetCell(at+i, nil)
		}
	}
}

// words are the words of a dictionary, converted to cells of a column.
type words struct {
	of *batch.Dictionary
	// in memory of its own; nil if one of the words is no cell of the column
	converted *batch.Dictionary
}

// convert makes w the words of the dictionary of v. It returns false if v has none, if it has more
// words than cells, which would take longer than converting the cells, or if a word is no cell of
// column c of at most limit bytes: some cell may have it, or none.
func (w *words) convert(f *field, c *schema.Column, v *batch.Vector, limit int) bool {
	if v.Dict == nil || !c.Type.Variable() || w.of != v.Dict && len(v.Dict.Words) > v.Len {
		return false
	}
	if w.of == v.Dict {
		return w.converted != nil
	}
	*w = words{of: v.Dict}
	text, cells := []byte{}, make([][]byte, len(v.Dict.Words))
	for i, word := range v.Dict.Words {
		from := len(text)
		var err error
		if text, err = f.convert(text, c, word); err != nil || len(text)-from > limit {
			return false
		}
		cells[i] = text[from:len(text):len(text)]
	}
	w.converted = &batch.Dictionary{Words: cells}
	return true
}

// appendCodes appends the cells of some rows of src, whose dictionary is replaced.
func appendCodes(v, src *batch.Vector, d *batch.Dictionary, rows []int) {
	coded := *src
	coded.Dict = d
	for from := 0; from < len(rows); {
		to := from + 1
		for to < len(rows) && rows[to] == rows[to-1]+1 {
			to++
		}
		v.AppendCoded(&coded, rows[from], rows[to-1]+1)
		from = to
	}
}

// measure finds the next rows, at least one and at most most. They end with the row that makes them
// exceed the given size, if any.
func (s *batchSource) measure(most, bytes int) {
	r := &s.columns
	r.rows, r.sizes = r.rows[:0], r.sizes[:0]
	for row := s.at; row >= 0 && len(r.rows) < most && bytes > 0; row = s.now.Selection.Next(row + 1) {
		size := s.width
		for i, v := range s.now.Columns[:len(s.fields)] {
			if !r.copied[i] && s.schema.Columns[s.fields[i].to].Type.Variable() {
				size += len(v.Cell(row))
			}
		}
		r.rows, r.sizes = append(r.rows, row), append(r.sizes, size)
		bytes -= size
	}
}

// convertRows converts the cells that are not copied, and checks all. It returns false if a row is
// bad.
func (s *batchSource) convertRows(dst *rows) bool {
	r := &s.columns
	r.fixed = r.fixed[:0]
	for i := range s.fields {
		f := &s.fields[i]
		c := &s.schema.Columns[f.to]
		v := s.now.Columns[i]
		if !c.Nullable && v.Present != nil && hasNull(v, r.rows) {
			return false
		}
		r.coded[i] = !r.copied[i] && r.words[i].convert(f, c, v, s.limit)
		switch {
		case !r.copied[i] && !r.coded[i] && !s.convertColumn(dst, i, c, v),
			r.copied[i] && c.Type == schema.Date && !validDates(v, r.rows):
			return false
		}
	}
	return true
}

// validDates reports whether the dates in some rows are in the range of the type.
func validDates(v *batch.Vector, rows []int) bool {
	days := batch.Values[int32](v)
	for _, row := range rows {
		if day := days[row]; (day < schema.MinDate || day > schema.MaxDate) && !v.IsNull(row) {
			return false
		}
	}
	return true
}

// hasNull reports whether v, which has NULLs, has one in some rows.
func hasNull(v *batch.Vector, rows []int) bool {
	for _, row := range rows {
		if !v.Present.Get(row) {
			return true
		}
	}
	return false
}

// convertColumn converts the cells of a field.
func (s *batchSource) convertColumn(dst *rows, i int, c *schema.Column, v *batch.Vector) bool {
	buffer := &s.columns.fixed
	if c.Type.Variable() {
		buffer = &dst.text
	}
	convert, cells := s.fields[i].convert, s.columns.cells[i][:0]
	for _, row := range s.columns.rows {
		cell := v.Cell(row)
		if cell == nil {
			cells = append(cells, nil)
			continue
		}
		from := len(*buffer)
		var err error
		if *buffer, err = convert(*buffer, c, cell); err != nil || len(*buffer)-from > s.limit {
			return false
		}
		cells = append(cells, (*buffer)[from:len(*buffer):len(*buffer)])
	}
	s.columns.cells[i] = cells
	return true
}
