package arrowio

import (
	"fmt"
	"math/bits"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/schema"
)

// importer makes vectors of a column of the arrays of an Arrow type. Where the layouts agree, a
// vector aliases its array. Cells that are copied are in memory of the importer, which the next
// call reuses.
type importer struct {
	column  schema.Column
	typ     arrow.DataType
	convert convert
	values  *importer // of a dictionary or of runs
	element *importer // of lists
	round   bool      // times down to microseconds

	words    []uint64 // memory of cells of fixed width, aligned
	presence batch.Bitmap
	cells    [][]byte
	codes    []uint32
	packed   *batch.Vector
}

// newImporter returns an importer of arrays of an Arrow type into a column. round says that times
// in nanoseconds are rounded down. Errors: ErrUnsupported for a type of which no column represents
// each value; ErrSchema if this one does not.
func newImporter(c schema.Column, typ arrow.DataType, round bool) (*importer, error) {
	im := &importer{column: c, typ: typ, round: round}
	var natural schema.Column
	if err := setType(&natural, typ); err != nil {
		return nil, err
	}
	for {
		e, ok := im.typ.(arrow.ExtensionType)
		if !ok {
			break
		}
		im.typ = e.StorageType()
	}
	var err error
	switch t := im.typ.(type) {
	case *arrow.DictionaryType:
		im.values, err = newImporter(c, t.ValueType, round)
	case *arrow.RunEndEncodedType:
		im.values, err = newImporter(c, t.Encoded(), round)
	case arrow.ListLikeType:
		if c.Type != schema.Array {
			break
		}
		im.element, err = newImporter(c.Elements(), t.Elem(), round)
	}
	if err != nil || im.values != nil || im.element != nil {
		return im, err
	}
	if im.convert = conversion(&c, im.typ); im.convert == nil {
		return nil, fmt.Errorf("%s does not fit a column of type %s: %w", typ, c.TypeName(), ErrSchema)
	}
	return im, nil
}

// vector returns the cells of an array. It is valid until the next call, and for as long as the
// array is. Errors: a *cellError for a value that the column cannot represent; ErrCorrupt for an
// array that is not well-formed.
func (im *importer) vector(a arrow.Array) (v *batch.Vector, err error) {
	defer guard(&err, nil)
	for {
		e, ok := a.(array.ExtensionArray)
		if !ok {
			break
		}
		a = e.Storage()
	}
	if n := a.Len(); n > unchecked && n/8 > bytesIn(a.Data()) {
		switch id := a.DataType().ID(); {
		case id != arrow.NULL && id != arrow.RUN_END_ENCODED:
			return nil, corruptf("%d cells in %d bytes", n, bytesIn(a.Data()))
		case n > maxImplied:
			return nil, unsupportedf("a record batch of %d cells in %d bytes, limit %d", n,
				bytesIn(a.Data()), maxImplied)
		}
	}
	v = &batch.Vector{Type: im.column.Type, Len: a.Len(), Present: im.present(a)}
	switch runs, _ := a.(*array.RunEndEncoded); {
	case runs != nil:
		err = im.runs(v, runs)
	case im.values != nil:
		err = im.dictionary(v, a.(*array.Dictionary))
	case im.element != nil:
		return im.lists(v, a)
	default:
		err = im.convert(im, v, a)
	}
	return v, err
}

// unchecked is the number of cells up to which an array may have less than a bit for each.
const unchecked = 1 << 16

// maxImplied is the number of cells up to which an array of runs, or without values, may have as
// few bytes as it wants.
const maxImplied = 1 << 24

// bytesIn returns the bytes of all buffers of an array.
func bytesIn(data arrow.ArrayData) (n int) {
	for _, b := range data.Buffers() {
		if b != nil {
			n += b.Len()
		}
	}
	for _, child := range data.Children() {
		n += bytesIn(child)
	}
	return n
}

// present returns the presence bitmap of an array, nil if no cell is NULL.
func (im *importer) present(a arrow.Array) batch.Bitmap {
	data, n := a.Data(), a.Len()
	if a.NullN() == 0 || n == 0 || len(data.Buffers()) == 0 || data.Buffers()[0] == nil {
		return nil
	}
	from, words := data.Offset(), (n+63)/64
	b := data.Buffers()[0].Bytes()
	b = b[from/8 : (from+n+7)/8] // panics if the bitmap is too short
	last := ^uint64(0) >> (63 - uint(n-1)&63)
	if from%64 == 0 && len(b) >= 8*words {
		if alias := batch.Bitmap(valuesOf[uint64](b, words)); alias[words-1]&^last == 0 {
			return alias
		}
	}
	im.presence = im.presence.Resize(n)
	to := bytesOf(im.presence)
	if shift := from % 8; shift == 0 {
		copy(to, b)
	} else {
		for i := range (n + 7) / 8 {
			to[i] = b[i] >> shift
			if i+1 < len(b) {
				to[i] |= b[i+1] << (8 - shift)
			}
		}
	}
	im.presence[words-1] &= last
	return im.presence
}

// fixed gives v memory for its cells of fixed width and returns it.
func (im *importer) fixed(v *batch.Vector) {
	n := v.Len * v.Type.Width()
	if words := (n + 7) / 8; cap(im.words) < words {
		im.words = make([]uint64, words)
	}
	v.Data = bytesOf(im.words[:(n+7)/8])[:n]
	clear(v.Data) // of NULLs too
}

// eachPresent calls f for each cell of v that is not NULL, until it returns an error.
func eachPresent(v *batch.Vector, f func(i int) error) error {
	if v.Present == nil {
		for i := range v.Len {
			if err := f(i); err != nil {
				return err
			}
		}
		return nil
	}
	for k, w := range v.Present {
		for ; w != 0; w &= w - 1 {
			if err := f(64*k + bits.TrailingZeros64(w)); err != nil {
				return err
			}
		}
	}
	return nil
}

// dictionary sets the cells of v to the values of a dictionary array.
func (im *importer) dictionary(v *batch.Vector, a *array.Dictionary) error {
	words, err := im.values.vector(a.Dictionary())
	if err != nil {
		return err
	}
	codes := im.newCodes(v.Len)
	err = eachPresent(v, func(i int) error {
		code := a.GetValueIndex(i)
		if code < 0 || code >= words.Len {
			return corruptf("cell %d has index %d of a dictionary of %d values", i, code, words.Len)
		}
		codes[i] = uint32(code)
		return nil
	})
	if err != nil {
		return err
	}
	return im.coded(v, words, codes)
}

// runs sets the cells of v to the values of a run-end encoded array: cells [ends[k-1], ends[k])
// have value k. Run ends 2 and 5 with values a and b are the cells a a b b b. The array may be a
// slice of these cells.
func (im *importer) runs(v *batch.Vector, a *array.RunEndEncoded) error {
	words, err := im.values.vector(a.Values())
	if err != nil {
		return err
	}
	read := wideReader(a.RunEndsArr().DataType())
	ends, from := read(a.RunEndsArr()), int64(a.Data().Offset())
	codes, filled, last := im.newCodes(v.Len), 0, int64(0)
	for k := 0; filled < v.Len; k++ {
		if k >= words.Len || k >= a.RunEndsArr().Len() {
			return corruptf("runs of %d cells, want %d", filled, v.Len)
		}
		x, _ := ends(k)
		end := int64(x.Lo)
		if end <= last {
			return corruptf("run %d ends at cell %d, the one before at cell %d", k, end, last)
		}
		for last = end; filled < v.Len && int64(filled)+from < end; filled++ {
			codes[filled] = uint32(k)
		}
	}
	return im.coded(v, words, codes)
}

// newCodes returns memory for n codes, all 0.
func (im *importer) newCodes(n int) []uint32 {
	if cap(im.codes) < n {
		im.codes = make([]uint32, n)
	}
	codes := im.codes[:n]
	clear(codes)
	return codes
}

// coded sets the cells of v that are not NULL to the words with the given codes.
func (im *importer) coded(v *batch.Vector, words *batch.Vector, codes []uint32) error {
	if words.Present != nil {
		present := batch.MakeBitmap(v.Len)
		eachPresent(v, func(i int) error {
			if !words.IsNull(int(codes[i])) {
				present.Set(i)
			}
			return nil
		})
		v.Present = present
	}
	if !v.Type.Variable() {
		im.fixed(v)
		width := v.Type.Width()
		return eachPresent(v, func(i int) error {
			k := int(codes[i]) * width
			copy(v.Data[i*width:(i+1)*width], words.Data[k:k+width])
			return nil
		})
	}
	if words.Dict != nil { // a dictionary of dictionaries
		words.Materialize()
	}
	if words.Len == 0 || v.Type == schema.Array {
		return setCells(im, v, func(i int) ([]byte, error) { return words.Bytes[codes[i]], nil })
	}
	v.Codes, v.Dict = codes, &batch.Dictionary{Words: words.Bytes}
	return nil
}

// lists returns the cells of a column of arrays: byte strings as schema.AppendArray makes them.
func (im *importer) lists(v *batch.Vector, a arrow.Array) (*batch.Vector, error) {
	list := a.(array.ListLike)
	least, most, err := listBounds(v, list)
	if err != nil {
		return nil, err
	}
	values := array.NewSlice(list.ListValues(), least, most)
	defer values.Release()
	elements, err := im.element.vector(values)
	if err != nil {
		return nil, inList(err, v, list, least)
	}
	var cells [][]byte
	var packed []byte
	total := 0
	err = setCells(im, v, func(i int) ([]byte, error) {
		from, to := list.ValueOffsets(i)
		cells = cells[:0]
		size := 0
		for k := from - least; k < to-least; k++ {
			cell := elements.Cell(int(k))
			cells, size = append(cells, cell), size+len(cell)
		}
		if size > maxArrayBytes {
			return nil, cellErrorf(i, "an array of %d bytes, limit %d", size, maxArrayBytes)
		}
		var cell []byte
		packed, cell = appendPacked(packed, im.column.Element, cells)
		if total += len(cell); total > maxText {
			return nil, unsupportedf("arrays of more than %d bytes in a record batch", maxText)
		}
		return cell, nil
	})
	return v, err
}

// maxArrayBytes is the number of bytes of the elements of an array: no row has more.
const maxArrayBytes = 8 << 20

// appendPacked appends the cell of an array to buf, or to a new buffer if it may not fit.
func appendPacked(buf []byte, element schema.Type, cells [][]byte) (grown, cell []byte) {
	size := 2 + len(cells)/8 + 1 + 4*len(cells)
	for _, c := range cells {
		size += len(c)
	}
	if cap(buf)-len(buf) < size {
		buf = make([]byte, 0, max(size, 64<<10))
	}
	at := len(buf)
	buf = schema.AppendArray(buf, element, cells)
	return buf, buf[at:len(buf):len(buf)]
}

// listBounds returns the first and the last position of all elements of lists that are not NULL.
// Errors: ErrCorrupt for a list whose elements are not there.
func listBounds(v *batch.Vector, list array.ListLike) (least, most int64, err error) {
	have := int64(list.ListValues().Len())
	least = have
	err = eachPresent(v, func(i int) error {
		from, to := list.ValueOffsets(i)
		switch {
		case from < 0 || to < from || to > have:
			return corruptf("list %d is the elements [%d, %d) of %d", i, from, to, have)
		case to-from > schema.MaxElements:
			return cellErrorf(i, "an array of %d elements, limit %d", to-from, schema.MaxElements)
		case from < to:
			least, most = min(least, from), max(most, to)
		}
		return nil
	})
	return min(least, most), most, err
}

// inList returns the error of an element, counted from least on, as an error of the list with the
// element.
func inList(err error, v *batch.Vector, list array.ListLike, least int64) error {
	e, ok := err.(*cellError)
	if !ok {
		return err
	}
	at, found := least+int64(e.cell), err
	eachPresent(v, func(i int) error {
		from, to := list.ValueOffsets(i)
		if from <= at && at < to {
			found = &cellError{i, fmt.Errorf("element %d: %w", at-from, e.err)}
			return found
		}
		return nil
	})
	return found
}
