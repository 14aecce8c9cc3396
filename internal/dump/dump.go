// Package dump prints bytes next to their meaning, one field per line, for people and for tests.
//
// Each format has a function Dump(w io.Writer, data []byte) error that walks its bytes with a
// Writer. Its output is the format's golden file, so that a change of bytes shows up as changed
// lines, and the inspect commands print it:
//
//	header
//	  0       6b 75 64 75 63 66 6c 32  magic
//	  8       00 00 00 00              length of the message: 0
//	  12      02 94 3a d3              crc 02943ad3
//
// A Writer is for use by one goroutine. It keeps the first error of the io.Writer and prints
// nothing after it.
package dump

import (
	"fmt"
	"hash/crc32"
	"io"
	"strings"
)

const (
	lineBytes  = 8  // bytes of a field printed on one line
	fieldBytes = 64 // bytes of a field printed at all
	offWidth   = 8  // columns of an offset
)

// Writer prints one dump.
type Writer struct {
	w     io.Writer
	use   func(Line) error // instead of w
	whole bool             // long fields too
	depth int
	line  []byte
	err   error
}

// New returns a Writer that prints to w.
func New(w io.Writer) *Writer { return &Writer{w: w} }

// NewWhole returns a Writer that prints all bytes of every field, however long: for small files.
func NewWhole(w io.Writer) *Writer { return &Writer{w: w, whole: true} }

// Line is a heading, a field, or a note.
type Line struct {
	Depth  int
	Offset int64  // of the first byte; −1: a heading or a note, without bytes
	Bytes  []byte // of the field, all of them; valid during the call
	Text   string
}

// NewFunc returns a Writer that passes each line to use, which may stop it by an error.
func NewFunc(use func(Line) error) *Writer { return &Writer{use: use} }

// Section prints a heading and sets what comes below it, until the End that answers it, further to
// the right. The heading is a format with args, as in fmt.Printf.
func (d *Writer) Section(heading string, args ...any) {
	d.printLine(fmt.Sprintf(heading, args...))
	d.depth++
}

// End closes the innermost open Section.
func (d *Writer) End() { d.depth = max(d.depth-1, 0) }

// Field prints bytes of a field, the first of which is at byte off, and their meaning, a format
// with args. Fields may have no bytes. Of a long field the first 64 bytes are printed, then how
// many follow and their CRC-32 (IEEE), so that no change goes unseen; a Writer of NewWhole prints
// them all.
func (d *Writer) Field(off int64, b []byte, meaning string, args ...any) {
	text := fmt.Sprintf(meaning, args...)
	if d.use != nil {
		d.pass(Line{Depth: d.depth, Offset: off, Bytes: b, Text: text})
		return
	}
	shown := b
	long := !d.whole && len(b) > fieldBytes+lineBytes
	if long { // a rest of less than a line is shown too
		shown = b[:fieldBytes]
	}
	for first := true; first || len(shown) > 0; first = false {
		n := min(len(shown), lineBytes)
		d.printLine(fmt.Sprintf("%-*d%-*s%s", offWidth, off, 3*lineBytes+1, fmt.Sprintf("% x", shown[:n]), text))
		off += int64(n)
		shown, text = shown[n:], ""
	}
	if long {
		rest := b[fieldBytes:]
		d.printLine(fmt.Sprintf("%-*d… %d bytes more, crc %08x", offWidth, off, len(rest), crc32.ChecksumIEEE(rest)))
	}
}

// Note prints a line without bytes: what is concluded from the fields, or what is wrong with them.
func (d *Writer) Note(text string, args ...any) { d.printLine(fmt.Sprintf(text, args...)) }

// Err returns the first error of the io.Writer.
func (d *Writer) Err() error { return d.err }

// printLine prints text as one line, indented, without blanks at its end.
func (d *Writer) printLine(text string) {
	if d.use != nil {
		d.pass(Line{Depth: d.depth, Offset: -1, Text: text})
		return
	}
	if d.err != nil {
		return
	}
	d.line = d.line[:0]
	for range d.depth {
		d.line = append(d.line, "  "...)
	}
	d.line = append(d.line, strings.TrimRight(text, " ")...)
	d.line = append(d.line, '\n')
	_, d.err = d.w.Write(d.line)
}

// pass passes a line to the function.
func (d *Writer) pass(l Line) {
	if d.err == nil {
		d.err = d.use(l)
	}
}
