package kuduwal

import (
	"errors"
	"fmt"
	"path/filepath"
	"sort"
	"strconv"
	"strings"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/internal/kudupb"
	"github.com/oribi-db/oribi/schema"
	"github.com/oribi-db/oribi/vfs"
)

// Segment is one file of a log.
type Segment struct {
	Number uint64 // from 1
	Path   string
}

// Segments returns the segments in a directory, in the order of their numbers. Other files, such as
// indexes, are ignored. A directory that does not exist has none.
func Segments(fs vfs.FS, dir string) ([]Segment, error) {
	names, err := fs.List(dir)
	if err != nil {
		if isAbsent(err) {
			return nil, nil
		}
		return nil, err
	}
	var out []Segment
	for _, name := range names {
		digits, ok := strings.CutPrefix(name, "wal-")
		if !ok || len(digits) < 9 {
			continue
		}
		if n, err := strconv.ParseUint(digits, 10, 64); err == nil {
			out = append(out, Segment{n, filepath.Join(dir, name)})
		}
	}
	sort.Slice(out, func(i, j int) bool { return out[i].Number < out[j].Number })
	return out, nil
}

// Finding is something about a log that is not as a server leaves it, or that may mean lost
// entries, although the log can be read.
type Finding struct {
	Path    string // of the segment or directory
	Offset  int64  // in the segment, -1 for all of it
	Problem string
}

func (f Finding) String() string {
	if f.Offset < 0 {
		return fmt.Sprintf("%s: %s", f.Path, f.Problem)
	}
	return fmt.Sprintf("%s: at byte %d: %s", f.Path, f.Offset, f.Problem)
}

// Error is an error with its place in the log.
type Error struct {
	Path   string // of the segment or directory
	Offset int64  // of the batch of entries, -1 for all of the file
	Err    error
}

func (e *Error) Error() string {
	if e.Offset < 0 {
		return fmt.Sprintf("kuduwal: %s: %v", e.Path, e.Err)
	}
	return fmt.Sprintf("kuduwal: %s: batch of entries at byte %d: %v", e.Path, e.Offset, e.Err)
}

func (e *Error) Unwrap() error { return e.Err }

// located returns err with a place, unless it has one.
func located(path string, off int64, err error) error {
	if err == nil || errors.As(err, new(*Error)) {
		return err
	}
	return &Error{path, off, err}
}

// DecodeSchema reads a SchemaPB. Errors: ErrCorrupt.
func DecodeSchema(b []byte) (*kudupb.SchemaPB, error) {
	if n, ok := countFields(b, 1); !ok || n > schema.MaxColumns {
		return nil, fault.Corruptf("schema: malformed, or more than %d columns", schema.MaxColumns)
	}
	m := new(kudupb.SchemaPB)
	if err := unmarshal(b, m); err != nil {
		return nil, fault.Corruptf("schema: %v", err)
	}
	return m, nil
}

// unmarshal reads a message and drops fields that it does not have.
func unmarshal(b []byte, m proto.Message) error {
	return proto.UnmarshalOptions{DiscardUnknown: true}.Unmarshal(b, m)
}

// countFields returns how often a message contains a field; ok is false if it is malformed. A small
// message may have millions of messages in it, each of which takes many bytes of memory.
func countFields(b []byte, field protowire.Number) (n int, ok bool) {
	for len(b) > 0 {
		number, _, size := protowire.ConsumeField(b)
		if size < 0 {
			return 0, false
		}
		if number == field {
			n++
		}
		b = b[size:]
	}
	return n, true
}

// nextMessage returns the first message or byte string of a repeated field in b, and the bytes
// after it, nil at the end. ok is false if b is malformed.
func nextMessage(b []byte, field protowire.Number) (m, rest []byte, ok bool) {
	for len(b) > 0 {
		number, kind, size := protowire.ConsumeTag(b)
		if size < 0 {
			return nil, nil, false
		}
		b = b[size:]
		if number == field && kind == protowire.BytesType {
			m, size := protowire.ConsumeBytes(b)
			if size < 0 {
				return nil, nil, false
			}
			return m[:len(m):len(m)], b[size:], true
		}
		if size = protowire.ConsumeFieldValue(number, kind, b); size < 0 {
			return nil, nil, false
		}
		b = b[size:]
	}
	return nil, nil, true
}
