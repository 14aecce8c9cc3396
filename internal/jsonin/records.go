package jsonin

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/go-json-experiment/json/jsontext"
)

// Records reads a sequence of JSON values: one per line, or the elements of one array, which may be
// spread over lines in any way. The first byte decides which of the two. Not safe for concurrent
// use.
type Records struct {
	Line int    // on which the value last read begins, from 1
	Raw  []byte // its text as in the input, without the line end; valid until the next call

	in      *bufio.Reader
	most    int
	checker Checker
	begun   bool

	number int // of the line last read

	// State of reading an array.
	array  *jsontext.Decoder
	source lineCounter
}

// NewRecords returns a reader of values of at most about most bytes each. It skips a byte order
// mark.
func NewRecords(in io.Reader, most int) *Records {
	return &Records{Line: 1, in: bufio.NewReaderSize(in, 256<<10), most: most}
}

// Next reads and checks the next value. It skips blank lines.
//
// Errors: io.EOF at the end; *Error for a value that is not JSON, after which the next call
// continues; other errors end the reading. Line and Raw are set with all of them.
func (r *Records) Next() ([]byte, error) {
	if !r.begun {
		r.begun = true
		if err := r.begin(); err != nil {
			return nil, err
		}
	}
	if r.array != nil {
		return r.element()
	}
	for {
		text, err := ReadLine(r.in, r.Raw[:0], r.most)
		r.number++
		r.Line = r.number
		if err != nil {
			return nil, err
		}
		r.Raw = text
		if value := Trim(text); len(value) > 0 {
			return value, r.line(r.checker.Check(value))
		}
	}
}

// errGoesOn is the fault of a value that is spread over lines.
var errGoesOn = errors.New("the value goes on after the line: want one value per line, as jq -c . FILE prints them")

// line returns the error about the value on a line. A value that ends too early, but not with the
// input, is likely spread over lines.
func (r *Records) line(err error) error {
	bad, ok := errors.AsType[*Error](err)
	if !ok || !errors.Is(bad.Cause, io.ErrUnexpectedEOF) {
		return err
	}
	if _, last := r.in.Peek(1); last == nil {
		bad.Cause = errGoesOn
	}
	return bad
}

// begin determines whether the input is an array.
func (r *Records) begin() error {
	SkipMark(r.in)
	for {
		b, err := r.in.ReadByte()
		switch {
		case err == io.EOF:
			return nil
		case err != nil:
			return err
		case b == '\n':
			r.number++
		case blank(b):
		case b == '[':
			return r.beginArray()
		default:
			return r.in.UnreadByte()
		}
	}
}

func (r *Records) beginArray() error {
	if err := r.in.UnreadByte(); err != nil {
		return err
	}
	r.source = lineCounter{in: r.in, line: r.number + 1, most: int64(r.most) + 1<<20}
	// Check tests names and UTF-8; its errors do not end the reading.
	r.array = jsontext.NewDecoder(&r.source, jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	_, err := r.array.ReadToken()
	return r.arrayError(err)
}

// element reads the next element of the array.
func (r *Records) element() ([]byte, error) {
	if r.array.PeekKind() == ']' {
		if _, err := r.array.ReadToken(); err != nil {
			return nil, r.arrayError(err)
		}
		_, err := r.array.ReadToken()
		switch {
		case err == io.EOF:
			return nil, err
		case err != nil && r.source.err != nil && r.source.err != io.EOF:
			return nil, r.source.err
		}
		r.Line = r.source.lineOf(r.array.InputOffset())
		if syntax, ok := errors.AsType[*jsontext.SyntacticError](err); ok {
			r.Line = r.source.lineOf(syntax.ByteOffset)
		}
		return nil, errors.New("text after the array")
	}
	value, err := r.array.ReadValue()
	if err != nil {
		return nil, r.arrayError(err)
	}
	r.Line = r.source.lineOf(r.array.InputOffset() - int64(len(value)))
	r.source.used = r.array.InputOffset()
	r.Raw = value
	return value, r.checker.Check(value)
}

// arrayError returns the error that ends the reading of an array.
func (r *Records) arrayError(err error) error {
	if err == nil {
		return nil
	}
	r.Line = r.source.lineOf(r.array.InputOffset())
	if r.source.err != nil && r.source.err != io.EOF {
		return r.source.err
	}
	if errors.Is(err, io.ErrUnexpectedEOF) || err == io.EOF {
		return errors.New("the array is not closed: the file is truncated")
	}
	if syntax, ok := errors.AsType[*jsontext.SyntacticError](err); ok {
		r.Line = r.source.lineOf(syntax.ByteOffset)
		err = syntax.Err
	}
	return fmt.Errorf("not JSON: %w", err)
}

// lineCounter counts the line ends that are read through it, and bounds how far the reader is ahead
// of the values returned.
type lineCounter struct {
	in   io.Reader
	most int64
	used int64
	err  error

	read int64
	line int     // of the byte before the first of ends
	ends []int64 // offsets of line ends not passed yet
}

func (c *lineCounter) Read(p []byte) (int, error) {
	if c.read-c.used > c.most {
		c.err = fmt.Errorf("the value is longer than %d bytes", c.most)
		return 0, c.err
	}
	n, err := c.in.Read(p)
	for at := 0; ; at++ {
		i := bytes.IndexByte(p[at:n], '\n')
		if i < 0 {
			break
		}
		at += i
		c.ends = append(c.ends, c.read+int64(at))
	}
	c.read += int64(n)
	if err != nil {
		c.err = err
	}
	return n, err
}

// lineOf returns the line of an offset. Offsets must not decrease from call to call.
func (c *lineCounter) lineOf(offset int64) int {
	passed := 0
	for passed < len(c.ends) && c.ends[passed] < offset {
		passed++
	}
	c.line += passed
	c.ends = append(c.ends[:0], c.ends[passed:]...)
	return c.line
}
