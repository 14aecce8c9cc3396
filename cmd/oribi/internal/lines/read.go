package lines

import (
	"bufio"
	"errors"
	"fmt"
	"io"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/cmd/oribi/internal/cell"
	"github.com/oribi-db/oribi/cmd/oribi/internal/jsonin"
	"github.com/oribi-db/oribi/schema"
)

// maxLineBytes bounds a line, and so the memory that an input without line ends takes.
const maxLineBytes = 64 << 20

// Reader reads lines into vectors.
type Reader struct {
	// Line is the number of the line last read, from 1.
	Line int
	// Bytes is about how much memory the cells take that were read since Reset.
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

// NewReader makes a reader of cells of type t or, with array, of arrays of them. Without nullable
// NULL cells are refused.
func NewReader(in io.Reader, t schema.Type, array, nullable bool) *Reader {
	return &Reader{in: bufio.NewReaderSize(in, 256<<10), column: Column(t), array: array, nullable: nullable, arena: make([]byte, 0, 4096)}
}

// Reset empties v for the next cells: those read before are no longer needed.
func (r *Reader) Reset(v *batch.Vector) {
	if r.array {
		v.ResetArrays(0)
	} else {
		v.Reset(0)
	}
	r.arena, r.Bytes = r.arena[:0], 0
}

// cellBytes is about what a cell takes beside its bytes.
const cellBytes = 24

// Next reads a line and appends its cell to v, whose byte strings hold until Reset. io.EOF is the
// end; other errors tell what is wrong with the line, but not its number.
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

// cell reads a value other than null into the arena.
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
