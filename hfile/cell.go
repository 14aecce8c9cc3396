package hfile

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"fmt"
	"math"
)

// Type says whether a cell stores a value or deletes older cells. Source: hfile spec §5.3.
type Type uint8

// Types of cells. Minimum and Maximum occur only in keys to search for and in keys of indexes.
const (
	Minimum             Type = 0
	Put                 Type = 4
	Delete              Type = 8  // deletes one version of a column
	DeleteFamilyVersion Type = 10 // deletes one version of all columns of the family
	DeleteColumn        Type = 12 // deletes this and all older versions of a column
	DeleteFamily        Type = 14 // deletes this and all older versions of the family
	Maximum             Type = 255
)

func (t Type) String() string {
	switch t {
	case Minimum:
		return "Minimum"
	case Put:
		return "Put"
	case Delete:
		return "Delete"
	case DeleteFamilyVersion:
		return "DeleteFamilyVersion"
	case DeleteColumn:
		return "DeleteColumn"
	case DeleteFamily:
		return "DeleteFamily"
	case Maximum:
		return "Maximum"
	}
	return fmt.Sprintf("type %d", uint8(t))
}

// Key is the key of a cell: what cells are sorted by.
type Key struct {
	Row       []byte // at most MaxRowBytes
	Family    []byte // at most MaxFamilyBytes; the same in all cells of a file
	Qualifier []byte
	Timestamp int64 // milliseconds since 1970 by convention, not negative; newer cells sort first
	Type      Type
}

// Cell is one entry of a file.
type Cell struct {
	Key
	Value    []byte
	Tags     []byte // as AppendTag writes them and Tags reads them; nil without tags
	Sequence int64  // HBase's sequence ID (mvcc), not negative; 0 where the file stores none
}

// KeyValue is one entry in Hudi's view: the row is the key.
type KeyValue struct {
	Key, Value []byte
}

// Limits of the format.
const (
	MaxRowBytes    = math.MaxInt16
	MaxFamilyBytes = math.MaxInt8
)

// text returns the key as errors print it.
func (k Key) text() string {
	return fmt.Sprintf("row %q, column %q, timestamp %d, type %v", k.Row,
		fmt.Sprintf("%s:%s", k.Family, k.Qualifier), k.Timestamp, k.Type)
}

// FirstOnRow returns the first possible key of a row: it sorts before every cell of the row.
func FirstOnRow(row []byte) Key {
	return Key{Row: row, Timestamp: math.MaxInt64, Type: Maximum}
}

// Compare returns -1, 0, or 1 as k sorts before, with, or after other in HBase's order: row;
// family (by length only, since a file has one); qualifier; timestamp, newest first; type, greatest
// first. A key of type Minimum without family and qualifier sorts after all others of its row.
// Source: hfile spec §5.4.
func (k Key) Compare(other Key) int {
	if c := bytes.Compare(k.Row, other.Row); c != 0 {
		return c
	}
	if a, b := k.lastOnRow(), other.lastOnRow(); a != b {
		if a {
			return 1
		}
		return -1
	}
	if c := cmp.Compare(len(k.Family), len(other.Family)); c != 0 {
		return c
	}
	if c := bytes.Compare(k.Qualifier, other.Qualifier); c != 0 {
		return c
	}
	if c := cmp.Compare(other.Timestamp, k.Timestamp); c != 0 {
		return c
	}
	return cmp.Compare(other.Type, k.Type)
}

func (k Key) lastOnRow() bool {
	return k.Type == Minimum && len(k.Family) == 0 && len(k.Qualifier) == 0
}

// Clone returns a copy that shares no memory with c.
func (c Cell) Clone() Cell {
	c.moveTo(make([]byte, 0, c.bytes()))
	return c
}

// bytes returns the number of bytes of the parts of c.
func (c *Cell) bytes() int {
	return len(c.Row) + len(c.Family) + len(c.Qualifier) + len(c.Value) + len(c.Tags)
}

// moveTo appends the parts of c to b, which has room for them, and makes c refer to them there.
func (c *Cell) moveTo(b []byte) []byte {
	for _, part := range [...]*[]byte{&c.Row, &c.Family, &c.Qualifier, &c.Value, &c.Tags} {
		if *part != nil {
			n := len(b)
			b = append(b, *part...)
			*part = b[n:len(b):len(b)]
		}
	}
	return b
}

// Key of a cell, as in data blocks, indexes, and Bloom filters of kind ROWCOL.
//
//	width      field            meaning
//	2          rowLength        big-endian, 0 to 32767
//	rowLength  row
//	1          familyLength     0 to 127
//	…          family
//	…          qualifier        up to the last 9 bytes
//	8          timestamp        big-endian, signed
//	1          type
//
// Row "key1", Put, timestamp 2^63-1, without family and qualifier:
//
//	00 04  6b 65 79 31  00  7f ff ff ff ff ff ff ff  04
//
// Source: hfile spec §5.2.
const (
	keyRowLen    = 2  // file format: never change
	keyFamilyLen = 1  // file format: never change
	keySuffixLen = 9  // file format: never change; timestamp and type
	keyFixedLen  = 12 // file format: never change; all but row, family, and qualifier
)

// encodedLen returns the number of bytes that appendKey appends.
func (k Key) encodedLen() int {
	return keyFixedLen + len(k.Row) + len(k.Family) + len(k.Qualifier)
}

// appendKey appends the key as bytes. The caller has checked the limits.
func appendKey(dst []byte, k Key) []byte {
	dst = binary.BigEndian.AppendUint16(dst, uint16(len(k.Row)))
	dst = append(dst, k.Row...)
	dst = append(dst, byte(len(k.Family)))
	dst = append(dst, k.Family...)
	dst = append(dst, k.Qualifier...)
	dst = binary.BigEndian.AppendUint64(dst, uint64(k.Timestamp))
	return append(dst, byte(k.Type))
}

// parseKey reads a whole key; its slices alias b. ok is false if the lengths do not fit b.
func parseKey(b []byte) (k Key, ok bool) {
	if len(b) < keyFixedLen {
		return Key{}, false
	}
	row := int(int16(binary.BigEndian.Uint16(b)))
	if row < 0 || row > len(b)-keyFixedLen {
		return Key{}, false
	}
	familyStart := keyRowLen + row + keyFamilyLen
	family := int(b[familyStart-1])
	suffix := len(b) - keySuffixLen
	if family > MaxFamilyBytes || familyStart+family > suffix {
		return Key{}, false
	}
	return Key{
		Row:       b[keyRowLen : keyRowLen+row : keyRowLen+row],
		Family:    b[familyStart : familyStart+family : familyStart+family],
		Qualifier: b[familyStart+family : suffix : suffix],
		Timestamp: int64(binary.BigEndian.Uint64(b[suffix:])),
		Type:      Type(b[len(b)-1]),
	}, true
}
