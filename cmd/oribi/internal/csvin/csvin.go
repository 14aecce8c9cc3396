// Package csvin reads records of delimited text: RFC 4180, with any delimiter of one byte.
//
//	r := csvin.NewReader(in, ',')
//	for {
//		switch err := r.Next(); {
//		case err == io.EOF: return nil
//		case err != nil: …
//		}
//		use(r.Line, r.Fields)
//	}
//
// It differs from encoding/csv in four ways that a store needs: a field reports whether it was
// quoted (an empty field is "not set", "" is the empty string); line ends within quotes are kept;
// the raw bytes of a record are available, also of a malformed record; and the memory for a record
// is bounded.
//
// The input is read in large pieces and split in place: fields alias the reader's buffer and are
// valid until the next call of Next. A Reader is not safe for concurrent use.
//
// Lines end in LF or CR LF; the last one may end in neither, or in CR. If the first line ends in CR
// alone, all lines may. Otherwise CR alone within a field without quotes is an error.
package csvin

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
)

// MaxRecordBytes bounds one record, and with it the memory of a Reader. A row of a table is at most
// half as long.
const MaxRecordBytes = 16 << 20

const firstBufferBytes = 256 << 10

// Field is one field of a record.
type Field struct {
	Text   []byte // unquoted
	Quoted bool
}

// Reader reads records.
type Reader struct {
	Line   int     // line of the input, from 1, on which the current record begins
	Fields []Field // of the current record, at least one

	in        io.Reader
	delimiter byte
	err       error // of in; returned after the input before it is consumed
	most      int   // maximum bytes of a record

	buffer     []byte
	start, end int    // range of the buffer that is not consumed yet
	size       int    // bytes of the current record, including its line end
	lines      int    // line ends in it
	spans      []span // fields of a record with quotes
	unquoted   []byte // memory of fields with doubled quotes
	block      Block
	begun      bool
	cr         bool // lines may end in CR alone
}

// span is the position of a field, relative to the start of its record.
type span struct {
	from, to        int
	quoted, doubled bool
}

// BadRecord is the error for a malformed record. Reading can continue after it. Field is the index
// of the malformed field.
type BadRecord struct {
	Field int
	Cause error
}

func (e *BadRecord) Error() string { return fmt.Sprintf("field %d: %v", e.Field+1, e.Cause) }
func (e *BadRecord) Unwrap() error { return e.Cause }

// Causes of a BadRecord, and ErrTooLong and ErrUTF16, which end the reading.
var (
	ErrUnclosed   = errors.New("a quote is never closed")
	ErrBare       = errors.New("a quote within an unquoted field")
	ErrAfterQuote = errors.New("text after a closing quote")
	ErrBareCR     = errors.New("a carriage return within an unquoted field: put the field in quotes, or end all " +
		"lines in LF")
	ErrTooLong = fmt.Errorf("the record is longer than %d bytes", MaxRecordBytes)
	ErrUTF16   = errors.New("the text is UTF-16, want UTF-8")
)

// NewReader returns a reader of records with fields separated by delimiter. It skips a byte order
// mark at the start.
func NewReader(in io.Reader, delimiter byte) *Reader {
	return newReader(in, delimiter, firstBufferBytes)
}

func newReader(in io.Reader, delimiter byte, bufferBytes int) *Reader {
	return &Reader{in: in, delimiter: delimiter, most: MaxRecordBytes, buffer: make([]byte, bufferBytes), Line: 1}
}

// Raw returns the bytes of the current record in the input, including its line end if it has one.
// They are valid until the next call of Next.
func (r *Reader) Raw() []byte { return r.buffer[r.start : r.start+r.size] }

// Next reads the next record and skips empty lines.
//
// Errors: io.EOF at the end; *BadRecord, after which the next call continues after the record (or
// after its first line if a quote is never closed); ErrTooLong, ErrUTF16 and errors of the input
// end the reading. Line is set with all of them.
func (r *Reader) Next() error {
	if !r.begun {
		r.begun = true
		if err := r.passMark(); err != nil {
			return err
		}
		r.findLineEnd()
	}
	r.pass()
	for {
		switch b, ok := r.at(0); {
		case !ok:
			return r.ended()
		case b == '\n':
			r.size, r.lines = 1, 1
		case b == '\r':
			b, ok := r.at(1)
			switch {
			case ok && b == '\n':
				r.size, r.lines = 2, 1
			case ok && r.cr:
				r.size, r.lines = 1, 1
			case ok || r.cut():
				return r.record()
			default:
				r.size = 1
			}
		default:
			return r.record()
		}
		r.pass()
	}
}

// findLineEnd determines whether the first line ends in CR alone.
func (r *Reader) findLineEnd() {
	quoted := false
	for i := 0; ; i++ {
		switch b, ok := r.at(i); {
		case !ok, b == '\n' && !quoted:
			return
		case b == '"':
			quoted = !quoted
		case b == '\r' && !quoted:
			if next, ok := r.at(i + 1); ok && next != '\n' {
				r.cr = true
			}
			return
		}
	}
}

// lineEnds counts the line ends in a text.
func (r *Reader) lineEnds(text []byte) int {
	n := bytes.Count(text, []byte{'\n'})
	if r.cr {
		n += bytes.Count(text, []byte{'\r'}) - bytes.Count(text, []byte("\r\n"))
	}
	return n
}

// passMark skips a UTF-8 byte order mark and refuses byte order marks of UTF-16.
func (r *Reader) passMark() error {
	for i := range 3 {
		r.at(i)
	}
	head := r.buffer[r.start:r.end]
	switch {
	case bytes.HasPrefix(head, []byte{0xef, 0xbb, 0xbf}):
		r.start += 3
	case bytes.HasPrefix(head, []byte{0xff, 0xfe}), bytes.HasPrefix(head, []byte{0xfe, 0xff}):
		return ErrUTF16
	}
	return nil
}

// pass advances past the current record.
func (r *Reader) pass() {
	r.start += r.size
	r.Line += r.lines
	r.size, r.lines = 0, 0
}

// at returns the byte at an offset from the record's start, or false if the input or the maximum
// record ends before it.
func (r *Reader) at(i int) (byte, bool) {
	for r.start+i >= r.end {
		if !r.fill() {
			return 0, false
		}
	}
	return r.buffer[r.start+i], true
}

// full reports whether the record has reached the maximum length.
func (r *Reader) full() bool { return r.end-r.start >= r.most }

// fill reads more of the input into the buffer. It returns false at the end of the input or if the
// record is full.
func (r *Reader) fill() bool {
	if r.err != nil || r.full() {
		return false
	}
	if r.start > 0 && r.end == len(r.buffer) {
		copy(r.buffer, r.buffer[r.start:r.end])
		r.start, r.end = 0, r.end-r.start
	}
	if r.end == len(r.buffer) {
		r.buffer = append(r.buffer, make([]byte, min(len(r.buffer), r.most-r.end))...)
	}
	for range 100 { // a reader may return 0 bytes, but not forever
		var n int
		n, r.err = r.in.Read(r.buffer[r.end:])
		if r.end += n; n > 0 {
			return true
		}
		if r.err != nil {
			return false
		}
	}
	r.err = io.ErrNoProgress
	return false
}

// ended returns the error for the end of the input when no complete record is left.
func (r *Reader) ended() error {
	if r.full() {
		return ErrTooLong
	}
	return r.err
}

// cut reports whether the record may be incomplete because the input failed at its end.
func (r *Reader) cut() bool { return r.full() || r.err != io.EOF }

// record reads the record at start, of which there is at least one byte.
func (r *Reader) record() error {
	r.Fields = r.Fields[:0]
	line, whole, err := r.line(0)
	if err != nil {
		return err
	}
	if bytes.IndexByte(line, '"') >= 0 {
		return r.quotedRecord()
	}
	n := len(line)
	if r.size = n; whole {
		r.size, r.lines = r.withLineEnd(n), 1
	}
	line = bytes.TrimSuffix(r.buffer[r.start:r.start+n], []byte{'\r'})
	if i := bytes.IndexByte(line, '\r'); i >= 0 {
		return &BadRecord{Field: bytes.Count(line[:i], []byte{r.delimiter}), Cause: ErrBareCR}
	}
	from := 0
	for i, b := range line {
		if b == r.delimiter {
			r.Fields = append(r.Fields, Field{Text: line[from:i:i]})
			from = i + 1
		}
	}
	r.Fields = append(r.Fields, Field{Text: line[from:]})
	return nil
}

// withLineEnd returns the size of a record of n bytes with the line end after it.
func (r *Reader) withLineEnd(n int) int {
	if b, _ := r.at(n); b == '\r' {
		if b, ok := r.at(n + 1); ok && b == '\n' {
			return n + 2
		}
	}
	return n + 1
}

// line returns the rest of a line from an offset from the record's start, without its line end;
// whole reports whether it has one. quotedRecord handles lines with a quote, after which a line end
// may be part of a field.
func (r *Reader) line(offset int) (text []byte, whole bool, err error) {
	for seen := offset; ; {
		rest := r.buffer[r.start+seen : r.end]
		if i := r.lineEnd(rest); i >= 0 {
			return r.buffer[r.start+offset : r.start+seen+i], true, nil
		}
		seen += len(rest)
		if r.fill() {
			continue
		}
		if r.cut() {
			return nil, false, r.ended()
		}
		return r.buffer[r.start+offset : r.end], false, nil
	}
}

// lineEnd returns the index of the first byte that ends a line, or −1.
func (r *Reader) lineEnd(text []byte) int {
	if r.cr {
		return bytes.IndexAny(text, "\r\n")
	}
	return bytes.IndexByte(text, '\n')
}

// quotedRecord splits the record at start, which has a quote in its first line.
func (r *Reader) quotedRecord() error {
	r.spans = r.spans[:0]
	for i := 0; ; {
		s, next, cause := r.field(i)
		if cause != nil {
			return r.bad(len(r.spans), next, cause)
		}
		r.spans = append(r.spans, s)
		b, ok := r.at(next)
		switch {
		case !ok && r.cut():
			return r.ended()
		case !ok:
			r.size = next
		case b == r.delimiter:
			i = next + 1
			continue
		case b == '\n':
			r.size = next + 1
		case b == '\r':
			b, ok := r.at(next + 1)
			switch {
			case ok && b == '\n':
				r.size = next + 2
			case ok && r.cr:
				r.size = next + 1
			case ok:
				return r.bad(len(r.spans)-1, next, ErrAfterQuote)
			case r.cut():
				return r.ended()
			default:
				r.size = next + 1
			}
		default:
			return r.bad(len(r.spans)-1, next, ErrAfterQuote)
		}
		r.lines = r.lineEnds(r.Raw())
		r.makeFields()
		return nil
	}
}

// field finds the field at offset i and the offset after it, where a delimiter, a line end, or the
// end of the input is.
func (r *Reader) field(i int) (s span, next int, cause error) {
	if b, ok := r.at(i); ok && b == '"' {
		return r.quotedField(i)
	}
	for next = i; ; next++ {
		b, ok := r.at(next)
		switch {
		case !ok || b == r.delimiter || b == '\n':
			to := next // b is 0 at the end of the input
			if b != r.delimiter && to > i && r.buffer[r.start+to-1] == '\r' {
				to--
			}
			return span{from: i, to: to}, next, nil
		case b == '"':
			return s, next, ErrBare
		case b == '\r' && r.cr:
			return span{from: i, to: next}, next, nil
		case b == '\r':
			if after, ok := r.at(next + 1); ok && after != '\n' {
				return s, next, ErrBareCR
			}
		}
	}
}

func (r *Reader) quotedField(i int) (s span, next int, cause error) {
	s = span{from: i + 1, quoted: true}
	for at := i + 1; ; {
		rest := r.buffer[r.start+at : r.end]
		k := bytes.IndexByte(rest, '"')
		if k < 0 {
			at += len(rest)
			if !r.fill() {
				return s, at, ErrUnclosed
			}
			continue
		}
		at += k
		if b, ok := r.at(at + 1); !ok || b != '"' {
			s.to = at
			return s, at + 1, nil
		}
		s.doubled = true
		at += 2
	}
}

// bad ends a record with a malformed field: at the end of the line that contains offset at or, if a
// quote is never closed, at the end of its first line.
func (r *Reader) bad(field, at int, cause error) error {
	if cause == ErrUnclosed {
		if r.err != io.EOF && !r.full() {
			return r.err // the closing quote may be in the part that could not be read
		}
		at = 0
	}
	line, whole, err := r.line(at)
	if err != nil {
		return err
	}
	if r.size = at + len(line); whole {
		r.size = r.withLineEnd(r.size)
	}
	r.lines = r.lineEnds(r.Raw())
	return &BadRecord{Field: field, Cause: cause}
}

func (r *Reader) makeFields() {
	raw := r.Raw()
	r.unquoted = slices.Grow(r.unquoted[:0], len(raw)) // not moved below: fields alias it
	for _, s := range r.spans {
		text := raw[s.from:s.to:s.to]
		if s.doubled {
			from := len(r.unquoted)
			for len(text) > 0 {
				k := bytes.IndexByte(text, '"')
				if k < 0 {
					k = len(text) - 1
				}
				r.unquoted = append(r.unquoted, text[:k+1]...)
				text = text[min(k+2, len(text)):]
			}
			text = r.unquoted[from:len(r.unquoted):len(r.unquoted)]
		}
		r.Fields = append(r.Fields, Field{Text: text, Quoted: s.quoted})
	}
}
