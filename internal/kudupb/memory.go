package kudupb

import (
	"reflect"
	"sync"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/oribi-db/oribi/internal/fault"
)

// Bounds of the memory of a message. The most that a server's messages take is 10 times their
// bytes: lists of delta files, 13 bytes each, are two messages of 56 bytes and their pointers. A
// message without fields has 2 bytes and takes up to 300.
const (
	memoryPerByte = 16
	freeBytes     = 16 << 10 // messages up to this length are not examined: they take 3 MB at most
	maxNesting    = 100      // of messages in messages; Kudu's have 5 levels
)

// CheckMemory returns ErrCorrupt if the message in b, which is one of m's type, would take much
// more memory than its bytes, or is malformed. It is called before a message from a file is
// unmarshaled, and itself allocates nothing that depends on b.
func CheckMemory(b []byte, m proto.Message) error {
	if len(b) <= freeBytes {
		return nil
	}
	left := int64(len(b)) * memoryPerByte
	switch ok := layoutOf(m.ProtoReflect()).charge(b, &left, 0); {
	case !ok:
		return fault.Corruptf("malformed message")
	case left < 0:
		return fault.Corruptf("a message of %d bytes would take more than %d in memory", len(b), len(b)*memoryPerByte)
	}
	return nil
}

// layout says how much memory the messages of one type take.
type layout struct {
	bytes  int64 // of a message without fields, and the pointer to it
	fields map[protowire.Number]field
}

// field is a field that takes memory of its own.
type field struct {
	message *layout // of the field's messages; nil if the field has no messages
	bytes   int64   // of each occurrence, besides the bytes of a string
	packed  int64   // of each byte of a list of integers in one field
}

var layouts = struct {
	sync.Mutex
	of map[protoreflect.FullName]*layout
}{of: map[protoreflect.FullName]*layout{}}

func layoutOf(m protoreflect.Message) *layout {
	layouts.Lock()
	defer layouts.Unlock()
	return makeLayout(m)
}

// makeLayout returns the layout of the type of m. The caller has locked layouts.
func makeLayout(m protoreflect.Message) *layout {
	const word, sliceBytes, mapEntry = 8, 24, 128
	d := m.Descriptor()
	if l := layouts.of[d.FullName()]; l != nil {
		return l
	}
	l := &layout{bytes: word + int64(reflect.TypeOf(m.Interface()).Elem().Size()), fields: map[protowire.Number]field{}}
	layouts.of[d.FullName()] = l
	for i := range d.Fields().Len() {
		d := d.Fields().Get(i)
		f := field{bytes: word}
		switch {
		case d.IsMap():
			f.bytes = mapEntry
		case d.Message() != nil && d.IsList():
			f.message = makeLayout(m.NewField(d).List().NewElement().Message())
		case d.Message() != nil:
			f.message = makeLayout(m.NewField(d).Message())
		case d.Kind() == protoreflect.BytesKind || d.Kind() == protoreflect.StringKind:
			f.bytes = sliceBytes
		case d.IsList():
			f.packed = word
		}
		l.fields[d.Number()] = f
	}
	return l
}

// charge subtracts the memory of a message with this layout from left, and stops when that is
// negative. It returns false for a malformed message.
func (l *layout) charge(b []byte, left *int64, level int) bool {
	if level > maxNesting {
		return false
	}
	for *left -= l.bytes; len(b) > 0 && *left >= 0; {
		number, kind, n := protowire.ConsumeTag(b)
		if n < 0 {
			return false
		}
		b = b[n:]
		if n = protowire.ConsumeFieldValue(number, kind, b); n < 0 {
			return false
		}
		f, known := l.fields[number]
		*left -= f.bytes
		switch {
		case f.message != nil && kind == protowire.BytesType:
			value, _ := protowire.ConsumeBytes(b)
			if !f.message.charge(value, left, level+1) {
				return false
			}
		case !known || kind == protowire.BytesType:
			*left -= int64(n) * (1 + f.packed)
		}
		b = b[n:]
	}
	return true
}
