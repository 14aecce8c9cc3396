package cfile

import (
	"bytes"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/internal/coding"
	"github.com/oribi-db/oribi/internal/encoding"
	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/schema"
)

// A cell of a file with WriterOptions.Keyed is a key and a value. The keys ascend, and the value
// index has them. The footer's pair oribi.keyed, one byte 1, marks such a file.
//
//	width  field
//	1–5    length of the key, base 128
//	…      key
//	rest   value
//
// "ab" with value "xyz": 02 61 62 78 79 7a
const (
	keyedPair    = "oribi.keyed" // file format: never change
	keyedVersion = 1             // file format: never change
)

// AppendKeyed appends a cell of a file with WriterOptions.Keyed.
func AppendKeyed(dst, key, value []byte) []byte {
	dst = coding.AppendUvarint32(dst, uint32(len(key)))
	return append(append(dst, key...), value...)
}

// SplitKeyed splits a cell of a file with WriterOptions.Keyed; key and value alias it. Errors:
// ErrCorrupt.
func SplitKeyed(cell []byte) (key, value []byte, err error) {
	n, used, ok := coding.Uvarint32(cell)
	if !ok || uint64(n) > uint64(len(cell)-used) {
		return nil, nil, fault.Corruptf("malformed key in a cell of %d bytes", len(cell))
	}
	end := used + int(n)
	return cell[used:end:end], cell[end:], nil
}

// keyOf is WriterOptions.IndexKey of files with WriterOptions.Keyed.
func keyOf(cell []byte) []byte {
	key, _, _ := SplitKeyed(cell)
	return key
}

// isKeyed reports whether the file was written with WriterOptions.Keyed.
func (r *Reader) isKeyed() bool {
	v, ok := r.Metadata(keyedPair)
	return ok && bytes.Equal(v, []byte{keyedVersion}) && r.info.Type == schema.Binary && r.info.ValueIndex &&
		!r.info.Nullable
}

// VisitFloor calls visit with the last cell of a Keyed file whose key is at or before key: its row,
// its key, and its value. If all keys are after key, visit is not called. VisitFloor reads one
// cblock, apart from the index, into memory that is used again: the key and the value are valid
// during the call only. The cache is neither asked nor filled, so this is for files of which a
// caller needs one value and keeps a copy. Errors: ErrCorrupt, with block and byte offset; visit's.
func (r *Reader) VisitFloor(key []byte, visit func(row batch.Ordinal, at, value []byte) error) error {
	if !r.info.ValueIndex {
		return r.errNoValues()
	}
	p, ok, err := r.findNode(key)
	if err != nil || !ok {
		return err
	}
	// Only Verify compares the two indexes: the ordinal index may list other cblocks, or fewer.
	s := scratches.Get().(*scratch)
	defer s.release()
	payload, _, err := r.readBlock(p, s)
	if err != nil {
		return err
	}
	return r.visitFloor(p, payload, &s.offsets, key, visit)
}

// visitFloor is VisitFloor in the cblock at p, which has the payload. A cblock of a row file has few
// cells, often one, so that making a dataBlock of it would take as long as reading it.
func (r *Reader) visitFloor(p BlockPointer, payload []byte, memory *[]uint32, key []byte,
	visit func(row batch.Ordinal, at, value []byte) error) error {
	first, offsets, err := r.plainCells(payload, memory)
	if err != nil {
		return r.at(p, err)
	}
	cell := func(i int) []byte { return payload[offsets[i]:offsets[i+1]] }
	i, floor, value, err := searchKeyed(len(offsets)-1, cell, key)
	if err != nil {
		return r.at(p, err)
	}
	if i < 0 {
		return nil
	}
	return visit(first+batch.Ordinal(i), floor, value)
}

// plainCells returns the first row of the payload of a cblock of a Keyed file, and the offsets in it
// of its cells and of their end.
func (r *Reader) plainCells(payload []byte, memory *[]uint32) (first batch.Ordinal, offsets []uint32, err error) {
	if r.info.Encoding != schema.Plain {
		return 0, nil, fault.Unsupportedf("cells with keys in encoding %s", r.info.Encoding)
	}
	first, offsets, err = encoding.PlainStrings(payload, memory)
	if rows := int64(len(offsets)) - 1; err == nil && (rows < 1 || int64(first)+rows > r.info.Rows) {
		err = fault.Corruptf("rows [%d,%d) in a file of %d rows", first, int64(first)+rows, r.info.Rows)
	}
	return first, offsets, err
}

// searchKeyed returns the last of n cells whose key is at or before key, its key and its value; −1 if
// all keys are after key.
func searchKeyed(n int, cell func(i int) []byte, key []byte) (i int, floor, value []byte, err error) {
	lo, hi := 0, n // keys below lo are at or before key, keys from hi on after it
	for lo < hi {
		mid := int(uint(lo+hi) >> 1)
		at, v, err := SplitKeyed(cell(mid))
		if err != nil {
			return 0, nil, nil, err
		}
		if bytes.Compare(at, key) <= 0 {
			lo, floor, value = mid+1, at, v
		} else {
			hi = mid
		}
	}
	return lo - 1, floor, value, nil
}
