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
	values  *importer // of a dictionary
	element *importer // of lists

	words    []uint64 // memory of cells of fixed width, aligned
	presence batch.Bitmap
	cells    [][]byte
	codes    []uint32
	packed   *batch.Vector
}

// newImporter returns an importer of arrays of an Arrow type into a column. Errors: ErrUnsupported
// for a type of which no column represents each value; ErrSchema if this one does not.
func newImporter(c schema.Column, typ arrow.DataType) (*importer, error) {
	im := &importer{column: c, typ: typ}
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
		im.values, err = newImporter(c, t.ValueType)
	case arrow.ListLikeType:
		if c.Type != schema.Array {
			break
		}
		im.element, err = newImporter(c.Elements(), t.Elem())
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
		return nil, corruptf("%d cells in %d bytes", n, bytesIn(a.Data()))
	}
	v = &batch.Vector{Type: im.column.Type, Len: a.Len(), Present: im.present(a)}
	switch {
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

// dictionary sets the cells of v to those of a dictionary array.
func (im *importer) dictionary(v *batch.Vector, a *array.Dictionary) error {
	words, err := im.values.vector(a.Dictionary())
	if err != nil {
		return err
	}
	if cap(im.codes) < v.Len {
		im.codes = make([]uint32, v.Len)
	}
	codes := im.codes[:v.Len]
	clear(codes)
	nulls := false
	err = eachPresent(v, func(i int) error {
		code := a.GetValueIndex(i)
		if code < 0 || code >= words.Len {
			return corruptf("cell %d has index %d of a dictionary of %d values", i, code, words.Len)
		}
		codes[i] = uint32(code)
		nulls = nulls || words.IsNull(code)
		return nil
	})
	if err != nil {
		return err
	}
	if nulls { // of the dictionary
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
	if words.Len == 0 {
		v.Bytes = make([][]byte, v.Len)
		return nil
	}
	v.Codes, v.Dict = codes, &batch.Dictionary{Words: words.Bytes}
	return nil
}

// lists returns the cells of a column of arrays: byte strings as schema.AppendArray makes them.
func (im *importer) lists(v *batch.Vector, a arrow.Array) (*batch.Vector, error) {
	list := a.(array.ListLike)
	n, first, last := v.Len, int64(0), int64(0)
	offsets := make([]uint32, 1, n+1)
	for i := range n {
		from, to := list.ValueOffsets(i)
		if i == 0 {
			first, last = from, from
		}
		switch {
		case from != last || to < from || to-first > maxText:
			return nil, corruptf("list %d is the elements [%d, %d), want them from %d on", i, from, to, last)
		case to-from > schema.MaxElements && !v.IsNull(i):
			return nil, cellErrorf(i, "an array of %d elements, limit %d", to-from, schema.MaxElements)
		}
		last = to
		offsets = append(offsets, uint32(to-first))
	}
	values := array.NewSlice(list.ListValues(), first, last)
	defer values.Release()
	elements, err := im.element.vector(values)
	if err != nil {
		return nil, inList(err, offsets)
	}
	unpacked := &batch.Vector{Type: im.column.Element, Len: n, Present: v.Present, Elements: elements, Offsets: offsets}
	out := batch.NewVector(schema.Array, 0)
	if err := out.AppendPacked(unpacked); err != nil {
		return nil, err
	}
	return out, nil
}

// inList returns the error of an element as that of its list.
func inList(err error, offsets []uint32) error {
	e, ok := err.(*cellError)
	if !ok {
		return err
	}
	for i, to := range offsets[1:] {
		if e.cell < int(to) {
			return &cellError{i, fmt.Errorf("element %d: %w", e.cell-int(offsets[i]), e.err)}
		}
	}
	return err
}
