package arrowio

import (
	"fmt"

	"github.com/apache/arrow-go/v18/parquet/file"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/schema"
)

// leafReader reads the column chunks of one field.
type leafReader struct {
	leaf   leaf
	column schema.Column
	values decoder
	pages  *pageReader
	chunk  file.ColumnChunkReader // decodes the pages of the open row group; nil if none is open
	budget int                    // bytes of byte strings that are read for a batch

	vector batch.Vector
	dense  *batch.Vector // values that are not NULL
	defs   []int16
	reps   []int16

	// Cells of a column of byte strings that were read but not returned: byte strings, nil for
	// NULL, or their codes.
	cells [][]byte
	codes []uint32
	words *wordCoder // nil: there are no codes
	text  []byte     // memory of the newest byte strings

	open     bool     // of a list: the last one may have more elements
	null     bool     // it is NULL
	elements [][]byte // of it
}

func newLeafReader(c *schema.Column, l leaf, round bool) (*leafReader, error) {
	values := schema.Column{Name: c.Name, Type: c.Stored(), Precision: c.Precision, Scale: c.Scale, Length: c.Length}
	d, err := newDecoder(&values, l.node, round)
	if err != nil {
		return nil, err
	}
	return &leafReader{leaf: l, column: *c, values: d, dense: batch.NewVector(values.Type, 0)}, nil
}

// levels returns memory for n levels.
func levels(buf []int16, n int) []int16 {
	if cap(buf) < n {
		return make([]int16, n)
	}
	return buf[:n]
}

// errShort is the error of a column chunk that ends before the row group does.
var errShort = fmt.Errorf("the column chunk ends before the row group: %w", ErrCorrupt)

// ready returns the number of cells that were read but not returned.
func (r *leafReader) ready() int { return len(r.cells) + len(r.codes) }

// fill reads cells of a column of byte strings until n of them are ready or they are many bytes; at
// least one.
func (r *leafReader) fill(n int) error {
	size := 0
	for r.column.Type.Variable() && r.ready() < n && size < r.budget {
		before := len(r.cells)
		var err error
		if r.leaf.list {
			err = r.readLists()
		} else {
			err = r.readStrings(min(n-r.ready(), valuesPerRead))
		}
		if err != nil {
			return err
		}
		for _, cell := range r.cells[before:] {
			size += len(cell)
		}
	}
	return nil
}

// valuesPerRead is the number of values that are read at a time into r.cells.
const valuesPerRead = 256

// readStrings reads n byte strings.
func (r *leafReader) readStrings(n int) error {
	r.defs = levels(r.defs, n)
	got, values, err := r.values.read(r.chunk, n, r.defs, nil, r.dense)
	switch {
	case err != nil:
		return inRow(err, r.ready(), r.defs[:got], r.leaf.most)
	case got == 0:
		return errShort
	}
	defs := r.defs[:got]
	if !r.leaf.nullable {
		defs = nil
		if values < got {
			return errShort
		}
	} else if present(defs) > values {
		return corruptf("more definition levels than values")
	}
	i, at := 0, 0
	if r.words != nil {
		if i, at = r.code(defs, got); i < got {
			r.decode()
		}
	}
	for ; i < got; i++ {
		if defs != nil && defs[i] == 0 {
			r.cells = append(r.cells, nil)
			continue
		}
		r.cells = append(r.cells, r.copied(r.dense.Bytes[at]))
		at++
	}
	return nil
}

// present returns the number of cells that are not NULL.
func present(defs []int16) (n int) {
	for _, def := range defs {
		if def != 0 {
			n++
		}
	}
	return n
}

// code appends the codes of n cells that were read to r.codes. It returns the numbers of cells, and
// of values among them, that it has coded: fewer than all of them if the values repeat too little.
func (r *leafReader) code(defs []int16, n int) (cells, values int) {
	for i := range n {
		if defs != nil && defs[i] == 0 {
			r.codes = append(r.codes, nullCode)
			continue
		}
		code, ok := r.words.code(r.dense.Bytes[values])
		if !ok {
			return i, values
		}
		r.codes = append(r.codes, code)
		values++
	}
	return n, values
}

// decode turns codes into cells. The rest of the column chunk is not coded.
func (r *leafReader) decode() {
	for _, code := range r.codes {
		var cell []byte
		if code != nullCode {
			cell = r.words.words[code]
		}
		r.cells = append(r.cells, cell)
	}
	r.codes, r.words = r.codes[:0], nil
}

// copied returns a copy of a byte string, which is not nil.
func (r *leafReader) copied(cell []byte) []byte {
	if len(cell) == 0 {
		return []byte{}
	}
	r.text, cell = appendText(r.text, cell)
	return cell
}

// readLists reads some levels of a list, and with them zero or more rows.
func (r *leafReader) readLists() error {
	r.defs, r.reps = levels(r.defs, valuesPerRead), levels(r.reps, valuesPerRead)
	got, values, err := r.values.read(r.chunk, valuesPerRead, r.defs, r.reps, r.dense)
	if err != nil {
		return inRow(err, len(r.cells), r.defs[:got], r.leaf.most)
	}
	if got == 0 {
		if !r.open {
			return errShort
		}
		return r.closeList()
	}
	full := r.leaf.most // the level of an element
	if r.leaf.elements {
		full--
	}
	at := 0
	for i := range got {
		def := r.defs[i]
		if def > r.leaf.most || r.reps[i] > 1 {
			return corruptf("levels %d and %d of a list", def, r.reps[i])
		}
		if r.reps[i] == 0 {
			if err := r.closeList(); err != nil {
				return err
			}
			r.open, r.null = true, r.leaf.nullable && def == 0
		} else if !r.open || def < full {
			return corruptf("a list continues without an element")
		}
		switch {
		case def == r.leaf.most:
			if at == values {
				return corruptf("more definition levels than values")
			}
			r.elements = append(r.elements, r.copied(r.dense.Cell(at)))
			at++
		case def == full:
			r.elements = append(r.elements, nil)
		}
		if len(r.elements) > schema.MaxElements {
			return cellErrorf(len(r.cells), "an array of more than %d elements", schema.MaxElements)
		}
	}
	return nil
}

// closeList appends the cell of the open list. It does nothing if no list is open.
func (r *leafReader) closeList() error {
	if !r.open {
		return nil
	}
	var cell []byte
	if !r.null {
		cell = schema.AppendArray([]byte{}, r.column.Element, r.elements)
	}
	r.cells = append(r.cells, cell)
	r.elements = r.elements[:0]
	r.open = false
	return nil
}

// take returns the next n rows. The vector is valid until the next call, or belongs to the caller.
func (r *leafReader) take(n int, owned bool) (*batch.Vector, error) {
	v := &r.vector
	if owned {
		v = &batch.Vector{}
	}
	v.Type = r.column.Type
	if !v.Type.Variable() {
		return v, r.readFixed(v, n)
	}
	if len(r.codes) > 0 {
		if d := r.words.dictionary(); len(d.Words) > 0 {
			r.takeCodes(v, d, n)
			return v, nil
		}
		r.decode() // all are NULL
	}
	v.Reset(n)
	copy(v.Bytes, r.cells)
	if r.leaf.nullable {
		for i, cell := range r.cells[:n] {
			if cell == nil {
				v.NeedPresent().Clear(i)
			}
		}
	}
	rest := copy(r.cells, r.cells[n:])
	clear(r.cells[rest:])
	r.cells = r.cells[:rest]
	return v, nil
}

// takeCodes moves n codes to v, in dictionary form.
func (r *leafReader) takeCodes(v *batch.Vector, d *batch.Dictionary, n int) {
	v.Reset(0)
	v.UseCodes(d, n)
	copy(v.Codes, r.codes)
	if r.leaf.nullable {
		for i, code := range v.Codes {
			if code == nullCode {
				v.NeedPresent().Clear(i)
				v.Codes[i] = 0
			}
		}
	}
	r.codes = r.codes[:copy(r.codes, r.codes[n:])]
}

// readFixed reads n cells of fixed width into v.
func (r *leafReader) readFixed(v *batch.Vector, n int) error {
	r.defs = levels(r.defs, n)
	got, values, err := r.values.read(r.chunk, n, r.defs, nil, v)
	if err != nil {
		return inRow(err, 0, r.defs[:got], r.leaf.most)
	}
	if got < n {
		return errShort
	}
	if !r.leaf.nullable {
		if values < n {
			return errShort
		}
		return nil
	}
	if values == n {
		return nil
	}
	present := v.ZeroPresent()
	width, at := v.Type.Width(), values
	for i := n - 1; i >= 0; i-- {
		if r.defs[i] == 0 {
			continue
		}
		if at--; at < 0 {
			return corruptf("more definition levels than values")
		}
		present.Set(i)
		copy(v.Data[i*width:(i+1)*width], v.Data[at*width:(at+1)*width])
	}
	return nil
}

// inRow returns the error of a value as an error of its row. base is the number of rows read
// before.
func inRow(err error, base int, defs []int16, most int16) error {
	e, ok := err.(*cellError)
	if !ok {
		return err
	}
	left := e.cell
	for i, def := range defs {
		if most > 0 && def < most {
			continue
		}
		if left == 0 {
			return &cellError{base + i, e.err}
		}
		left--
	}
	return &cellError{base + e.cell, e.err}
}

// end closes the column chunk, which must have no more values.
func (r *leafReader) end() error {
	if r.chunk == nil {
		return nil
	}
	if r.open {
		return corruptf("a list has elements after the last row")
	}
	more := r.chunk.HasNext() || r.ready() > 0
	err := r.chunk.Err()
	r.chunk.Close()
	r.chunk = nil
	if err == nil && more {
		err = corruptf("the column chunk has more values than the row group")
	}
	return err
}
