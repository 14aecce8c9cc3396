package lines

import (
	"bufio"
	"errors"
	"fmt"
	"io"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/internal/cell"
	"github.com/oribi-db/oribi/internal/jsonin"
	"github.com/oribi-db/oribi/schema"
)

// maxLineBytes bounds a line, and so the memory for an input without line ends.
const maxLineBytes = 64 << 20

// Reader reads lines into vectors.
type Reader struct {
	// Line is the number of the line last read, from 1.
	Line int
	// Bytes is the approximate memory of the cells read since Reset.
	Bytes int

	in       *bufio.Reader
	column   schema.Column
	array    bool
	nullable bool
	checker  jsonin.Checker
	text     []byte
	arena    []byte
	elements [][]byte
}

// NewReader returns a reader of cells of type t or, with array, of arrays of type t. It refuses
// NULL cells unless nullable is set.
func NewReader(in io.Reader, t schema.Type, array, nullable bool) *Reader {
	return &Reader{in: bufio.NewReaderSize(in, 256<<10), column: Column(t), array: array,
		nullable: nullable, arena: make([]byte, 0, 4096)}
}

// Reset empties v for the next cells and makes those read before invalid.
func (r *Reader) Reset(v *batch.Vector) {
	if r.array {
		v.ResetArrays(0)
	} else {
		v.Reset(0)
	}
	r.arena, r.Bytes = r.arena[:0], 0
}

// cellBytes is the approximate memory of a cell in addition to its bytes.
const cellBytes = 24

// Next reads a line and appends its cell to v, whose byte strings are valid until Reset. It returns
// io.EOF at the end; other errors describe the line, but do not include its number.
func (r *Reader) Next(v *batch.Vector) error {
	text, err := jsonin.ReadLine(r.in, r.text[:0], maxLineBytes)
	if err != nil {
		return err
	}
	r.text = text
	r.Line++
	r.Bytes += cellBytes
	value := jsonin.Trim(text)
	if err := r.checker.Check(value); err != nil {
		return err
	}
	if jsonin.IsNull(value) {
		switch {
		case !r.nullable:
			return errors.New("null in a column that is not nullable")
		case r.array:
			v.AppendNullArray()
		default:
			v.AppendCell(nil)
		}
		return nil
	}
	if r.array {
		return r.appendArray(v, value)
	}
	c, err := r.cell(value)
	if err != nil {
		return err
	}
	v.AppendCell(c)
	return nil
}

// cell parses a value other than null into the arena.
func (r *Reader) cell(value []byte) ([]byte, error) {
	from := len(r.arena)
	arena, err := cell.FromJSON(r.arena, &r.column, value)
	if err != nil {
		return nil, err
	}
	r.arena = arena
	r.Bytes += len(arena) - from
	return arena[from:len(arena):len(arena)], nil
}

func (r *Reader) appendArray(v *batch.Vector, value []byte) error {
	if value[0] != '[' {
		return fmt.Errorf("want an array, not %s", jsonin.Kind(value))
	}
	r.elements = r.elements[:0]
	for w := jsonin.Walk(value); w.Next(); {
		r.Bytes += cellBytes
		if jsonin.IsNull(w.Value) {
			r.elements = append(r.elements, nil)
			continue
		}
		c, err := r.cell(w.Value)
		if err != nil {
			return fmt.Errorf("element %d: %w", len(r.elements), err)
		}
		r.elements = append(r.elements, c)
	}
	v.AppendArray(r.elements)
	return nil
}
