// Package jsonin reads the JSON input of the command.
//
// A text is checked once, by jsontext, which refuses duplicate names in an object, invalid UTF-8,
// lone surrogates and trailing text after the value. Then it is walked in place, without a copy and
// without a map per object:
//
//	if err := checker.Check(line); err != nil { … }
//	for w := jsonin.Walk(line); w.Next(); {
//		use(w.Name, w.Value)
//	}
//
// Values remain text until they are parsed by a column's type; a 64-bit integer is therefore never
// rounded to a float. Names and values alias the text. A Checker is not safe for concurrent use.
package jsonin

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/go-json-experiment/json/jsontext"
)

// Error is the reason why a JSON text is refused, and its position.
type Error struct {
	Path   []string // names and array indexes from the outside in, to the faulty value
	Offset int64    // byte of the text at or after which the fault is
	Cause  error
}

func (e *Error) Error() string { return fmt.Sprintf("byte %d: %s", e.Offset+1, e.Reason()) }

// Reason returns the message without the position.
func (e *Error) Reason() string {
	if errors.Is(e.Cause, jsontext.ErrDuplicateName) && len(e.Path) > 0 {
		return fmt.Sprintf("the name %q appears twice", e.Path[len(e.Path)-1])
	}
	if e.Cause == errGoesOn {
		return e.Cause.Error()
	}
	return "not JSON: " + e.Cause.Error()
}

func (e *Error) Unwrap() error { return e.Cause }

// InColumn returns the error for a text that is a row: with the column that has the fault instead
// of the position, if it is known.
func (e *Error) InColumn() error {
	if len(e.Path) == 0 {
		return e
	}
	return fmt.Errorf("column %q: %s", e.Path[0], e.Reason())
}

// Checker checks texts, reusing its memory.
type Checker struct {
	decoder *jsontext.Decoder
	buffer  bytes.Buffer
}

// Check returns an *Error unless text is exactly one JSON value.
func (c *Checker) Check(text []byte) error {
	c.buffer = *bytes.NewBuffer(text)
	if c.decoder == nil {
		c.decoder = jsontext.NewDecoder(&c.buffer)
	} else {
		c.decoder.Reset(&c.buffer)
	}
	if _, err := c.decoder.ReadValue(); err != nil {
		if err == io.EOF {
			err = errors.New("no value")
		}
		return place(err, int64(len(text)))
	}
	end := c.decoder.InputOffset()
	if _, err := c.decoder.ReadToken(); err != io.EOF {
		return &Error{Offset: end, Cause: errors.New("text after the value")}
	}
	return nil
}

// Check returns an *Error unless text is exactly one JSON value.
func Check(text []byte) error { return new(Checker).Check(text) }

// place converts an error of jsontext to an Error, which separates the position from the reason.
func place(err error, end int64) error {
	if syntax, ok := errors.AsType[*jsontext.SyntacticError](err); ok {
		e := &Error{Offset: syntax.ByteOffset, Cause: syntax.Err}
		for name := range syntax.JSONPointer.Tokens() {
			e.Path = append(e.Path, name)
		}
		return e
	}
	return &Error{Offset: end, Cause: err}
}

// Kind returns the kind of a checked value, for messages.
func Kind(value []byte) string {
	switch value[0] {
	case '{':
		return "an object"
	case '[':
		return "an array"
	case '"':
		return "a string"
	case 't', 'f':
		return "a boolean"
	case 'n':
		return "null"
	}
	return "a number"
}

// IsNull reports whether a checked value is null.
func IsNull(value []byte) bool { return value[0] == 'n' }

// String returns the decoded value of a checked string. It aliases value unless the string has
// escapes.
func String(value []byte) []byte {
	if bytes.IndexByte(value, '\\') < 0 {
		return value[1 : len(value)-1]
	}
	// The only error is bad UTF-8, which Check has refused.
	text, _ := jsontext.AppendUnquote(nil, value)
	return text
}

// AppendString appends the decoded value of a checked string.
func AppendString(dst, value []byte) []byte {
	if bytes.IndexByte(value, '\\') < 0 {
		return append(dst, value[1:len(value)-1]...)
	}
	dst, _ = jsontext.AppendUnquote(dst, value) // no error, as above
	return dst
}
