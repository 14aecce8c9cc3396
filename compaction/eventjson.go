package compaction

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/oribi-db/oribi/internal/fault"
)

// member is a member of a JSON object: its name and a pointer to its value. The lists of members
// below are the format of the event log, for writing and for reading.
type member struct {
	name  string
	value any
}

func (e *Event) members() []member {
	return []member{
		{"time", &e.Time}, {"job", &e.Job}, {"begin", &e.Begin}, {"kind", &e.Kind},
		{"table", &e.Table}, {"why", &e.Why},
		{"inputs", &e.Inputs}, {"outputs", &e.Outputs},
		{"rows_read", &e.RowsRead}, {"rows_written", &e.RowsWritten},
		{"bytes_read", &e.BytesRead}, {"bytes_written", &e.BytesWritten},
		{"duration_ns", &e.Duration}, {"error", &e.Err}, {"before", &e.Before}, {"after", &e.After},
	}
}

func (l *Layout) members() []member {
	return []member{{"table", &l.Table}, {"rowset_bytes", &l.RowSetBytes}, {"rowsets", &l.RowSets}}
}

func (r *RowSetInfo) members() []member {
	return []member{
		{"id", &r.ID}, {"min", &r.MinKey}, {"max", &r.MaxKey},
		{"rows", &r.Rows}, {"live_rows", &r.LiveRows}, {"bytes", &r.Bytes},
		{"redos", &r.Redos}, {"undos", &r.Undos}, {"redo_bytes", &r.RedoBytes}, {"undo_bytes", &r.UndoBytes},
	}
}

// appendEvent appends the line of an event.
func appendEvent(dst []byte, e *Event) ([]byte, error) {
	start := len(dst)
	dst = append(appendObject(dst, e.members(), false), '\n')
	if len(dst)-start > maxEventLine {
		return dst[:start], fmt.Errorf("an event of %d bytes, limit %d", len(dst)-start, maxEventLine)
	}
	return dst, nil
}

// appendObject appends a JSON object. It leaves out members that are zero, unless all is set.
func appendObject(dst []byte, members []member, all bool) []byte {
	dst = append(dst, '{')
	first := true
	for _, m := range members {
		if !all && zero(m.value) {
			continue
		}
		if !first {
			dst = append(dst, ',')
		}
		first = false
		dst = append(append(append(dst, '"'), m.name...), '"', ':')
		dst = appendValue(dst, m.value)
	}
	return append(dst, '}')
}

func zero(value any) bool {
	switch v := value.(type) {
	case *bool:
		return !*v
	case *string:
		return *v == ""
	case *int64:
		return *v == 0
	case *time.Duration:
		return *v == 0
	case *error:
		return *v == nil
	case *[]RowSetInfo:
		return len(*v) == 0
	case *Layout:
		return v.Table == "" && v.RowSetBytes == 0 && len(v.RowSets) == 0
	}
	return false
}

func appendValue(dst []byte, value any) []byte {
	switch v := value.(type) {
	case *bool:
		return strconv.AppendBool(dst, *v)
	case *string:
		return appendString(dst, *v)
	case *Kind:
		return appendString(dst, string(*v))
	case *error:
		return appendString(dst, (*v).Error())
	case *time.Time:
		return append(v.UTC().AppendFormat(append(dst, '"'), time.RFC3339Nano), '"')
	case *[]byte:
		return append(hex.AppendEncode(append(dst, `"0x`...), *v), '"')
	case *uint64:
		return strconv.AppendUint(dst, *v, 10)
	case *int:
		return strconv.AppendInt(dst, int64(*v), 10)
	case *int64:
		return strconv.AppendInt(dst, *v, 10)
	case *time.Duration:
		return strconv.AppendInt(dst, int64(*v), 10)
	case *Layout:
		return appendObject(dst, v.members(), false)
	case *[]RowSetInfo:
		dst = append(dst, '[')
		for i := range *v {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = appendObject(dst, (*v)[i].members(), true)
		}
		return append(dst, ']')
	}
	panic(fmt.Sprintf("compaction: a member of an event is a %T", value))
}

func appendString(dst []byte, s string) []byte {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(s); err != nil { // no string is refused
		panic(err)
	}
	return append(dst, bytes.TrimSuffix(b.Bytes(), []byte("\n"))...)
}

// eventParser reads a line token by token. It allocates in proportion to the line: no rowset is
// accepted without all of its members, and a value that does not fit is not read completely.
type eventParser struct{ *json.Decoder }

// parseEvent reads a line into *e.
func parseEvent(line []byte, e *Event) error {
	p := eventParser{json.NewDecoder(bytes.NewReader(line))}
	p.UseNumber()
	err := p.object(e.members(), "time", "job", "kind")
	if err == nil {
		if _, more := p.Token(); more != io.EOF {
			err = errors.New("text after the object")
		}
	}
	if err == nil && !slices.Contains(kinds, e.Kind) {
		err = fmt.Errorf("unknown kind %q", e.Kind)
	}
	if err != nil {
		return fault.Corruptf("%v", err)
	}
	return nil
}

var kinds = []Kind{Flush, DeltaFlush, Merge, MinorDelta, MajorDelta, Recompress, UndoGC, Ingest, Stall}

// object reads an object with some of the members: at least those that are required.
func (p eventParser) object(members []member, required ...string) error {
	if err := p.delim('{'); err != nil {
		return err
	}
	var seen uint64 // by index in members
	for p.More() {
		t, err := p.Token()
		if err != nil {
			return syntax(err)
		}
		name, _ := t.(string) // in an object, Token checks that names are strings
		i := slices.IndexFunc(members, func(m member) bool { return m.name == name })
		switch {
		case i < 0:
			return fmt.Errorf("unknown member %q", name)
		case seen>>i&1 != 0:
			return fmt.Errorf("member %q appears twice", name)
		}
		seen |= 1 << i
		if err := p.value(members[i].value); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	for i, m := range members {
		if seen>>i&1 == 0 && slices.Contains(required, m.name) {
			return fmt.Errorf("no member %q", m.name)
		}
	}
	return p.delim('}')
}

func (p eventParser) delim(want json.Delim) error {
	t, err := p.Token()
	if err != nil {
		return syntax(err)
	}
	if t != want {
		return fmt.Errorf("%v, want %q", t, want)
	}
	return nil
}

func syntax(err error) error {
	if err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	return fmt.Errorf("not JSON: %w", err)
}

// rowSetMembers are required of each rowset.
var rowSetMembers = func() (names []string) {
	for _, m := range new(RowSetInfo).members() {
		names = append(names, m.name)
	}
	return names
}()

// value reads a value of the type to which dst points.
func (p eventParser) value(dst any) error {
	switch d := dst.(type) {
	case *Layout:
		return p.object(d.members())
	case *[]RowSetInfo:
		if err := p.delim('['); err != nil {
			return err
		}
		for p.More() {
			var r RowSetInfo
			if err := p.object(r.members(), rowSetMembers...); err != nil {
				return fmt.Errorf("rowset %d: %w", len(*d), err)
			}
			*d = append(*d, r)
		}
		return p.delim(']')
	}
	t, err := p.Token()
	if err != nil {
		return syntax(err)
	}
	switch v := t.(type) {
	case bool:
		if d, ok := dst.(*bool); ok {
			*d = v
			return nil
		}
	case string:
		return setText(dst, v)
	case json.Number:
		return setNumber(dst, v)
	}
	return fmt.Errorf("%v does not fit", t)
}

func setText(dst any, text string) (err error) {
	switch d := dst.(type) {
	case *string:
		*d = text
	case *Kind:
		*d = Kind(text)
	case *error:
		*d = errors.New(text)
	case *time.Time:
		if !strings.HasSuffix(text, "Z") {
			return fmt.Errorf("%q is not a time in UTC", text)
		}
		*d, err = time.Parse(time.RFC3339Nano, text)
	case *[]byte:
		digits, ok := strings.CutPrefix(text, "0x")
		if !ok || digits != strings.ToLower(digits) {
			return fmt.Errorf("%q is not 0x and lower-case hex", text)
		}
		*d, err = hex.DecodeString(digits)
	default:
		return fmt.Errorf("a string does not fit")
	}
	return err
}

func setNumber(dst any, text json.Number) error {
	n, err := strconv.ParseUint(string(text), 10, 63)
	if err != nil {
		return fmt.Errorf("%s is not an integer from 0 to 2^63-1", text)
	}
	switch d := dst.(type) {
	case *uint64:
		*d = n
	case *int:
		if n > math.MaxInt32 {
			return fmt.Errorf("%d is not below 2^31", n)
		}
		*d = int(n)
	case *int64:
		*d = int64(n)
	case *time.Duration:
		*d = time.Duration(n)
	default:
		return fmt.Errorf("a number does not fit")
	}
	return nil
}
