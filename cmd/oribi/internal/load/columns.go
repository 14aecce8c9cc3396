package load

import (
	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/schema"
)

// Rows of record batches are appended column by column: without the bookkeeping of single rows, this
// takes about a third of the time. Rows that the table refuses are found here but not described: for
// them, next reads the same rows one by one.

// columnReader appends rows of a batch column by column.
type columnReader struct {
	possible bool       // for the columns of the input and the table
	copied   []bool     // by field: cells are copied as they are
	cells    [][][]byte // by field, if not copied: the cells of the rows
	missing  []int      // columns of the table that no field sets
	sizes    []int      // of the rows
	skip     int        // rows to be read one by one, since one of them is bad
	fixed    []byte     // memory of cells of fixed width
}

// newColumnReader returns a reader of the fields of a source.
func newColumnReader(s *batchSource) columnReader {
	r := columnReader{possible: !s.maker.raw, cells: make([][][]byte, len(s.fields))}
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
	to, n := s.measure(most, maxBatchBytes-dst.bytes)
	text := len(dst.text)
	if !s.convertRows(dst, to) {
		dst.text = dst.text[:text]
		r.skip = n - 1
		return false
	}
	for i := range s.fields {
		v := dst.vectors[s.fields[i].to]
		if r.copied[i] {
			v.AppendSelected(s.now.Columns[i], s.now.Selection, s.at, to)
			continue
		}
		for _, cell := range r.cells[i] {
			v.AppendCell(cell)
		}
	}
	for _, i := range r.missing {
		for range n {
			dst.vectors[i].AppendCell(s.schema.Columns[i].Unset())
		}
	}
	for k, size := range r.sizes {
		dst.places = append(dst.places, place{line: s.count + k + 1})
		dst.bytes += size
		dst.largest = max(dst.largest, size)
		if s.upsert {
			dst.set = append(dst.set, s.given...)
		}
	}
	s.count += n
	s.at = s.now.Selection.Next(to)
	return true
}

// measure finds the next rows: n rows, the selected ones of [s.at, to). They are at most most rows,
// and end with the row that makes them exceed the given size, if any.
func (s *batchSource) measure(most, bytes int) (to, n int) {
	r := &s.columns
	r.sizes = r.sizes[:0]
	for row := s.at; row >= 0 && n < most && bytes > 0; row = s.now.Selection.Next(row + 1) {
		size := s.width
		for i, v := range s.now.Columns[:len(s.fields)] {
			if !r.copied[i] && s.schema.Columns[s.fields[i].to].Type.Variable() {
				size += len(v.Cell(row))
			}
		}
		r.sizes = append(r.sizes, size)
		to, n, bytes = row+1, n+1, bytes-size
	}
	return to, n
}

// convertRows converts the cells that are not copied, and checks all. It returns false if a row is
// bad.
func (s *batchSource) convertRows(dst *rows, to int) bool {
	r := &s.columns
	r.fixed = r.fixed[:0]
	for i := range s.fields {
		f := &s.fields[i]
		c := &s.schema.Columns[f.to]
		v := s.now.Columns[i]
		if !c.Nullable && v.Present != nil && s.hasNull(v, to) {
			return false
		}
		if !r.copied[i] && !s.convertColumn(dst, i, c, v, to) {
			return false
		}
	}
	return true
}

// hasNull reports whether one of the selected rows of [s.at, to) is NULL.
func (s *batchSource) hasNull(v *batch.Vector, to int) bool {
	for row := s.at; row >= 0 && row < to; row = s.now.Selection.Next(row + 1) {
		if !v.Present.Get(row) {
			return true
		}
	}
	return false
}

// convertColumn converts the selected rows of [s.at, to) of a field.
func (s *batchSource) convertColumn(dst *rows, i int, c *schema.Column, v *batch.Vector, to int) bool {
	buffer := &s.columns.fixed
	if c.Type.Variable() {
		buffer = &dst.text
	}
	convert, cells := s.fields[i].convert, s.columns.cells[i][:0]
	for row := s.at; row >= 0 && row < to; row = s.now.Selection.Next(row + 1) {
		cell := v.Cell(row)
		if cell == nil {
			cells = append(cells, nil)
			continue
		}
		from := len(*buffer)
		var err error
		if *buffer, err = convert(*buffer, c, cell); err != nil || len(*buffer)-from > maxCellBytes {
			return false
		}
		cells = append(cells, (*buffer)[from:len(*buffer):len(*buffer)])
	}
	s.columns.cells[i] = cells
	return true
}
