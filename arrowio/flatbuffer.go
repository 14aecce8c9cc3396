package arrowio

import (
	"encoding/binary"

	"github.com/klauspost/compress/zstd"
)

// The metadata of Arrow messages and files are FlatBuffers. arrow-go trusts the lengths of vectors
// in them and allocates as much, so they are checked first: every table, string, and vector must be
// inside the buffer.
//
//	table   int32: distance back to its vtable; then the fields
//	vtable  uint16: its bytes; uint16: bytes of the table; uint16 for each field: offset in the table, 0 = absent
//	string, vector, table as a field
//	        uint32: distance to it; strings and vectors begin with their length
//
// Source: https://flatbuffers.dev/internals

// fbKind is the kind of a field.
type fbKind uint8

const (
	fbScalar fbKind = iota // of size bytes
	fbString
	fbVector // of elements of size bytes
	fbTable  // of type of
	fbTables // vector of tables of type of
	fbUnion  // of the type whose number is in the field before, by unions
)

// fbField is a field of a table, by its position in the vtable.
type fbField struct {
	kind   fbKind
	size   int
	of     *fbType
	unions map[byte]*fbType
	what   string // that a union is the type of
}

// fbType is a type of tables.
type fbType struct{ fields []fbField }

// Types of Schema.fbs, Message.fbs, and File.fbs of Apache Arrow, as far as their fields have
// lengths.
var (
	fbKeyValue = &fbType{[]fbField{{kind: fbString}, {kind: fbString}}}
	fbNumbers  = &fbType{[]fbField{{size: 1}, {size: 1}, {size: 1}, {size: 1}}} // a type with scalars only
	fbZoned    = &fbType{[]fbField{{size: 2}, {kind: fbString}}}
	fbUnionOf  = &fbType{[]fbField{{size: 2}, {kind: fbVector, size: 4}}}
	fbCoded    = &fbType{[]fbField{{size: 8}, {kind: fbTable, of: fbNumbers}, {size: 1}, {size: 2}}}
	fbFieldOf  = &fbType{}
	fbSchema   = &fbType{[]fbField{{size: 2}, {kind: fbTables, of: fbFieldOf},
		{kind: fbTables, of: fbKeyValue}, {kind: fbVector, size: 8}}}
	fbBatch = &fbType{[]fbField{{size: 8}, {kind: fbVector, size: 16}, {kind: fbVector, size: 16},
		{kind: fbTable, of: fbNumbers}, {kind: fbVector, size: 8}}}
	fbDict    = &fbType{[]fbField{{size: 8}, {kind: fbTable, of: fbBatch}, {size: 1}}}
	fbMessage = &fbType{[]fbField{{size: 2}, {size: 1},
		{kind: fbUnion, what: "a message", unions: map[byte]*fbType{1: fbSchema, 2: fbDict, 3: fbBatch}}, {size: 8},
		{kind: fbTables, of: fbKeyValue}}}
	fbFooter = &fbType{[]fbField{{size: 2}, {kind: fbTable, of: fbSchema}, {kind: fbVector, size: fbBlockLen},
		{kind: fbVector, size: fbBlockLen}, {kind: fbTables, of: fbKeyValue}}}
)

const (
	fbBlockLen  = 24 // of a Block: offset int64, bytes of metadata int32, padding, bytes of body int64
	fbMaxDepth  = 80
	fbUnionType = 14 // number of the union type of a field: the only one with a vector
	fbTimestamp = 10

	fbNewestType = 26 // a large list view
)

func init() {
	types := map[byte]*fbType{}
	for n := byte(1); n <= fbNewestType; n++ {
		types[n] = fbNumbers
	}
	types[fbTimestamp], types[fbUnionType] = fbZoned, fbUnionOf
	fbFieldOf.fields = []fbField{{kind: fbString}, {size: 1}, {size: 1},
		{kind: fbUnion, what: "a column", unions: types}, {kind: fbTable, of: fbCoded},
		{kind: fbTables, of: fbFieldOf}, {kind: fbTables, of: fbKeyValue}}
}

// flatBuffer is a buffer whose root table has a type.
type flatBuffer struct {
	b      []byte
	tables int // visited so far
}

// checkFlatBuffer returns ErrCorrupt unless all parts of a buffer are inside it, and otherwise the
// position of the root table.
func checkFlatBuffer(b []byte, root *fbType) (at int, err error) {
	f := flatBuffer{b: b}
	if at, err = f.target(0); err == nil {
		err = f.table(at, root, 0)
	}
	return at, err
}

var errFlatBuffer = corruptf("malformed metadata")

// target returns the position to which the offset at a position refers.
func (f *flatBuffer) target(at int) (int, error) {
	if at < 0 || at > len(f.b)-4 {
		return 0, errFlatBuffer
	}
	to := int64(at) + int64(binary.LittleEndian.Uint32(f.b[at:]))
	if to > int64(len(f.b)-4) {
		return 0, errFlatBuffer
	}
	return int(to), nil
}

// vector returns the number of elements of a vector at a position, which have size bytes.
func (f *flatBuffer) vector(at, size int) (int, error) {
	n := int64(binary.LittleEndian.Uint32(f.b[at:]))
	if n*int64(size) > int64(len(f.b)-at-4) {
		return 0, errFlatBuffer
	}
	return int(n), nil
}

// slot returns the position of a field of the table at a position, 0 if it is absent.
func (f *flatBuffer) slot(table, i int) (at int, err error) {
	if table < 0 || table > len(f.b)-4 {
		return 0, errFlatBuffer
	}
	v := int64(table) - int64(int32(binary.LittleEndian.Uint32(f.b[table:])))
	if v < 0 || v > int64(len(f.b)-4) {
		return 0, errFlatBuffer
	}
	n := int(binary.LittleEndian.Uint16(f.b[v:]))
	// Whether a field is half inside a vtable of an odd size depends on the reader.
	if n < 4 || n%2 != 0 || int(v)+n > len(f.b) {
		return 0, errFlatBuffer
	}
	if 4+2*i+2 > n {
		return 0, nil
	}
	offset := int(binary.LittleEndian.Uint16(f.b[int(v)+4+2*i:]))
	if offset == 0 {
		return 0, nil
	}
	return table + offset, nil
}

func (f *flatBuffer) table(at int, t *fbType, depth int) error {
	// Tables may be shared, but not so that visiting them takes long.
	if f.tables++; depth > fbMaxDepth || f.tables > len(f.b) {
		return errFlatBuffer
	}
	for i := range t.fields {
		field := &t.fields[i]
		pos, err := f.slot(at, i)
		if err != nil {
			return err
		}
		if pos == 0 {
			continue
		}
		if field.kind == fbScalar {
			if pos+field.size > len(f.b) {
				return errFlatBuffer
			}
			continue
		}
		to, err := f.target(pos)
		if err != nil {
			return err
		}
		switch field.kind {
		case fbString:
			_, err = f.vector(to, 1)
		case fbVector:
			_, err = f.vector(to, field.size)
		case fbTable:
			err = f.table(to, field.of, depth+1)
		case fbTables:
			err = f.each(to, field.of, depth+1)
		case fbUnion:
			err = f.union(at, i, to, field, depth+1)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// each checks a vector of tables.
func (f *flatBuffer) each(at int, t *fbType, depth int) error {
	n, err := f.vector(at, 4)
	for i := 0; i < n && err == nil; i++ {
		var to int
		if to, err = f.target(at + 4 + 4*i); err == nil {
			err = f.table(to, t, depth)
		}
	}
	return err
}

// union checks the table of a union: field i of the table at a position. The field before has its
// type.
func (f *flatBuffer) union(table, i, to int, field *fbField, depth int) error {
	pos, err := f.slot(table, i-1)
	if err != nil {
		return err
	}
	if pos == 0 || pos >= len(f.b) {
		return errFlatBuffer
	}
	t := field.unions[f.b[pos]]
	if t == nil {
		return unsupportedf("%s of the unknown type %d", field.what, f.b[pos])
	}
	return f.table(to, t, depth)
}

// supported returns ErrUnsupported if the version of the metadata, in the first field of a message
// or a footer that was checked, is not between oldest and newestMetadata.
func (f *flatBuffer) supported(table int, oldest uint16) error {
	version := uint16(0)
	if pos, err := f.slot(table, 0); err == nil && pos != 0 {
		version = binary.LittleEndian.Uint16(f.b[pos:])
	}
	if version < oldest || version > newestMetadata {
		return unsupportedf("Arrow metadata of version %d, want %d or %d", version+1,
			oldestMetadata+1, newestMetadata+1)
	}
	return nil
}

// Versions of the metadata: V4 and V5, which began with Arrow 0.8 and 1.0.
const (
	oldestMetadata = 3
	newestMetadata = 4
)

// scalar returns an integer of 8 bytes in field i of the root table of a checked buffer, 0 if it is
// absent.
func (f *flatBuffer) scalar(table, i int) int64 {
	pos, err := f.slot(table, i)
	if err != nil || pos == 0 {
		return 0
	}
	return int64(binary.LittleEndian.Uint64(f.b[pos:]))
}

// block is the place of a message in a file.
type block struct{ at, metadata, body int64 }

// blocks returns the blocks in field i of a footer that was checked.
func (f *flatBuffer) blocks(footer, i int) []block {
	pos, err := f.slot(footer, i)
	if err != nil || pos == 0 {
		return nil
	}
	to, err := f.target(pos)
	if err != nil {
		return nil
	}
	n, err := f.vector(to, fbBlockLen)
	if err != nil {
		return nil
	}
	out := make([]block, n)
	for k := range out {
		b := f.b[to+4+k*fbBlockLen:]
		out[k] = block{int64(binary.LittleEndian.Uint64(b)), int64(int32(binary.LittleEndian.Uint32(b[8:]))),
			int64(binary.LittleEndian.Uint64(b[16:]))}
	}
	return out
}

// schemaMessage returns a message with the schema of a footer that was checked: a table before a
// copy of the footer, whose offsets are relative.
func (f *flatBuffer) schemaMessage(footer int) []byte {
	const (
		frame  = 8  // continuation, length
		vtable = 4  // positions in the metadata
		table  = 20 //
		header = table + 4
		copied = 32
		v5     = 4 // the version of the metadata
	)
	schema := 0
	if pos, err := f.slot(footer, 1); err == nil && pos != 0 {
		schema, _ = f.target(pos)
	}
	out := make([]byte, frame+copied, frame+copied+len(f.b))
	le, m := binary.LittleEndian, out[frame:]
	le.PutUint32(out, continuation)
	le.PutUint32(out[4:], uint32(copied+len(f.b)))
	le.PutUint32(m, table)
	// bytes of vtable and table; version, type, and header in it; no body
	for i, x := range []uint16{12, 12, 8, 10, 4, 0} {
		le.PutUint16(m[vtable+2*i:], x)
	}
	le.PutUint32(m[table:], table-vtable)
	le.PutUint32(m[header:], uint32(copied+schema-header))
	le.PutUint16(m[table+8:], v5)
	m[table+10] = 1 // a schema
	return append(out, f.b...)
}

// maxWindow is the largest window of zstd that its own library accepts by default.
const maxWindow = 128 << 20

// checkExpansion returns ErrCorrupt if a compressed buffer in the body of a message states more
// bytes than it can have. The message was checked.
func (f *flatBuffer) checkExpansion(message int, body []byte) error {
	child := func(table, i int) int {
		pos, err := f.slot(table, i)
		if err != nil || pos == 0 {
			return 0
		}
		to, _ := f.target(pos)
		return to
	}
	batch := child(message, 2)
	kind, err := f.slot(message, 1)
	if err != nil || kind == 0 || batch == 0 {
		return nil
	}
	switch f.b[kind] {
	case 2: // a dictionary: its values are a record batch
		batch = child(batch, 1)
	case 3:
	default:
		return nil
	}
	if batch == 0 || child(batch, 3) == 0 || child(batch, 2) == 0 {
		return nil // not compressed
	}
	const newestCodec = 1 // zstd; 0 is LZ4
	for i, newest := range []byte{newestCodec, 0} {
		if pos, err := f.slot(child(batch, 3), i); err == nil && pos != 0 && f.b[pos] > newest {
			return unsupportedf("a record batch in the unknown compression %d", f.b[pos])
		}
	}
	buffers := child(batch, 2)
	n, err := f.vector(buffers, 16)
	if err != nil {
		return err
	}
	for i := range n {
		b := f.b[buffers+4+16*i:]
		at, size := int64(binary.LittleEndian.Uint64(b)), int64(binary.LittleEndian.Uint64(b[8:]))
		if at < 0 || size < 0 || at > int64(len(body)) || size > int64(len(body))-at {
			return corruptf("a buffer of %d bytes at byte %d of %d", size, at, len(body))
		}
		if size < 8 {
			continue
		}
		// −1 means that the buffer is stored as it is.
		if stated := int64(binary.LittleEndian.Uint64(body[at:])); stated < -1 || stated > (size-8)*maxExpansion {
			return corruptf("a buffer of %d bytes is said to have %d", size, stated)
		}
		var frame zstd.Header // of LZ4, it is none
		if frame.Decode(body[at+8:at+size]) == nil && frame.WindowSize > maxWindow {
			return unsupportedf("zstd with a window of %d bytes, limit %d", frame.WindowSize, maxWindow)
		}
	}
	return nil
}
