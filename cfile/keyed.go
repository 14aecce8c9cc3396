package cfile

import (
	"bytes"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/internal/coding"
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

// VisitKey calls visit with the value of a key in a Keyed file and its row. If the file does not
// have the key, visit is not called. VisitKey reads one cblock, apart from the index, into memory
// that is used again: the value is valid during the call only. The cache is neither asked nor
// filled, so this is for files of which a caller needs one value and keeps a copy. Errors:
// ErrCorrupt, with block and byte offset; visit's.
func (r *Reader) VisitKey(key []byte, visit func(row batch.Ordinal, value []byte) error) error {
	if !r.info.ValueIndex {
		return r.errNoValues()
	}
	p, ok, err := r.findNode(key)
	if err != nil || !ok {
		return err
	}
	// Only Verify compares the two indexes: the ordinal index may list other cblocks, or fewer.
	return r.visit(unnumbered, p, func(first batch.Ordinal, cells Cells) error {
		return cells.visitKey(first, key, visit)
	})
}

// visitKey calls visit with the value of a key and its row, if the key is among the cells. The
// first cell is in row first.
func (c Cells) visitKey(first batch.Ordinal, key []byte, visit func(row batch.Ordinal, value []byte) error) error {
	lo, hi := 0, c.Len() // the key is in [lo, hi), if anywhere
	for lo < hi {
		mid := int(uint(lo+hi) >> 1)
		cell, err := c.Cell(mid)
		if err != nil {
			return err
		}
		at, value, err := SplitKeyed(cell)
		if err != nil {
			return c.r.at(c.p, err)
		}
		switch cmp := bytes.Compare(at, key); {
		case cmp == 0:
			return visit(first+batch.Ordinal(mid), value)
		case cmp < 0:
			lo = mid + 1
		default:
			hi = mid
		}
	}
	return nil
}
