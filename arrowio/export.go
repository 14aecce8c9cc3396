package arrowio

import (
	"encoding/binary"
	"fmt"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/schema"
)

// exporter makes arrays of the vectors of one column.
//
//	column                              array                    cells
//	integers, floats, date, timestamp   the same                 the vector's memory
//	decimal of more than 18 digits      decimal128               the vector's memory
//	decimal of up to 18 digits          decimal128               copied, wider
//	bool                                bool                     copied, one bit each
//	string, varchar, binary             utf8, binary             copied, back to back
//	the same as dictionary              dictionary<int32, …>     codes: the vector's memory
//	array                               list                     elements unpacked
//
// The presence bitmap is the vector's memory, too.
type exporter struct {
	column  schema.Column
	typ     arrow.DataType
	mem     memory.Allocator
	element *exporter // of a list

	words map[string]uint32 // of a dictionary that is made of byte strings
	last  *batch.Dictionary // the one of which dict is made
	dict  arrow.Array       // nil: none yet
}

func newExporter(c schema.Column, typ arrow.DataType, mem memory.Allocator) *exporter {
	x := &exporter{column: c, typ: typ, mem: mem}
	if list, ok := typ.(*arrow.ListType); ok {
		x.element = newExporter(c.Elements(), list.Elem(), mem)
	}
	return x
}

// release releases the dictionary that x keeps for later batches.
func (x *exporter) release() {
	if x.dict != nil {
		x.dict.Release()
		x.dict, x.last = nil, nil
	}
}

// array returns cells [from, to) of v, which nobody changes afterwards. from is a multiple of 64.
func (x *exporter) array(v *batch.Vector, from, to int) (arrow.Array, error) {
	n := to - from
	present := v.Present
	if present != nil {
		present = present[from/64 : (to+63)/64]
		if n%64 != 0 && present[len(present)-1]>>(n%64) != 0 { // it goes on after to
			present = append(batch.Bitmap(nil), present...)
			present[len(present)-1] &= 1<<(n%64) - 1
		}
	}
	bits, nulls := validity(present, n)
	width := v.Type.Width()
	switch {
	case x.element != nil:
		return x.list(v, from, to, bits, nulls)
	case x.typ.ID() == arrow.DICTIONARY:
		return x.dictionary(v, from, to, bits, nulls)
	case width == 0:
		cells, err := x.strings(cellsOf(v, from, to))
		if err != nil {
			return nil, err
		}
		return makeArray(x.typ, n, nulls, append([]*memory.Buffer{bits}, cells...)), nil
	case v.Type == schema.Bool:
		return makeArray(x.typ, n, nulls, []*memory.Buffer{bits, x.bits(v.Data[from:to])}), nil
	case v.Type == schema.Decimal32:
		return makeArray(x.typ, n, nulls, []*memory.Buffer{bits, widened(x.mem, batch.Values[int32](v)[from:to])}), nil
	case v.Type == schema.Decimal64:
		return makeArray(x.typ, n, nulls, []*memory.Buffer{bits, widened(x.mem, batch.Values[int64](v)[from:to])}), nil
	}
	return makeArray(x.typ, n, nulls, []*memory.Buffer{bits, borrowed(v.Data[from*width : to*width])}), nil
}

// widened returns a buffer of the values as integers of 128 bits.
func widened[T int32 | int64](mem memory.Allocator, values []T) *memory.Buffer {
	b := allocate(mem, 16*len(values))
	out := b.Bytes()
	for i, x := range values {
		binary.LittleEndian.PutUint64(out[16*i:], uint64(x))
		binary.LittleEndian.PutUint64(out[16*i+8:], uint64(int64(x)>>63))
	}
	return b
}

// bits returns a buffer with one bit for each bool.
func (x *exporter) bits(bools []byte) *memory.Buffer {
	b := allocate(x.mem, (len(bools)+7)/8)
	out := b.Bytes()
	clear(out)
	for i, v := range bools {
		out[i/8] |= (v & 1) << (i % 8)
	}
	return b
}

// cellsOf returns byte strings [from, to) of v, with nil for NULL.
func cellsOf(v *batch.Vector, from, to int) func(yield func(i int, cell []byte) bool) {
	return func(yield func(int, []byte) bool) {
		if v.Dict == nil {
			for i, cell := range v.Bytes[from:to] {
				if !yield(i, cell) {
					return
				}
			}
			return
		}
		words := v.Dict.Words
		for i, code := range v.Codes[from:to] {
			var cell []byte
			if !v.IsNull(from + i) {
				cell = words[code]
			}
			if !yield(i, cell) {
				return
			}
		}
	}
}

// maxText is the number of bytes of byte strings in one array, whose offsets have 32 bits.
const maxText = 1<<31 - 1

// strings returns the buffers of byte strings: their offsets, and they themselves back to back.
func (x *exporter) strings(cells func(yield func(i int, cell []byte) bool)) ([]*memory.Buffer, error) {
	n, size := 0, 0
	for _, cell := range cells {
		n, size = n+1, size+len(cell)
	}
	if size > maxText {
		return nil, fmt.Errorf("%d bytes in %d cells, limit %d: %w", size, n, maxText, ErrUnsupported)
	}
	ends, text := allocate(x.mem, 4*(n+1)), allocate(x.mem, size)
	offsets, to, at := valuesOf[int32](ends.Bytes(), n+1), text.Bytes(), 0
	offsets[0] = 0
	for i, cell := range cells {
		at += copy(to[at:], cell)
		offsets[i+1] = int32(at)
	}
	return []*memory.Buffer{ends, text}, nil
}

// list returns arrays, whose cells are byte strings, as lists.
func (x *exporter) list(v *batch.Vector, from, to int, bits *memory.Buffer, nulls int) (arrow.Array, error) {
	lists := batch.NewArrays(x.column.Element)
	if err := lists.AppendUnpacked(v, from, to); err != nil {
		return nil, err
	}
	elements, err := x.element.array(lists.Elements, 0, lists.Elements.Len)
	if err != nil {
		return nil, err
	}
	defer elements.Release()
	return makeArray(x.typ, to-from, nulls, []*memory.Buffer{bits, borrowed(lists.Offsets)}, elements.Data()), nil
}

// dictionary returns byte strings as codes. A batch has the dictionary of the one before if its
// vector has the same.
func (x *exporter) dictionary(v *batch.Vector, from, to int, bits *memory.Buffer, nulls int) (arrow.Array, error) {
	dictionary, codes := v.Dict, v.Codes
	if dictionary == nil {
		dictionary, codes = x.encode(v, from, to)
	} else {
		codes = codes[from:to]
	}
	if dictionary != x.last {
		x.release()
		words, err := x.strings(func(yield func(int, []byte) bool) {
			for i, w := range dictionary.Words {
				if !yield(i, w) {
					return
				}
			}
		})
		if err != nil {
			return nil, err
		}
		x.dict = makeArray(x.typ.(*arrow.DictionaryType).ValueType, len(dictionary.Words), 0,
			append([]*memory.Buffer{nil}, words...))
		x.last = dictionary
	}
	data := array.NewDataWithDictionary(x.typ, to-from, []*memory.Buffer{bits, borrowed(codes)}, nulls,
		0, x.dict.Data().(*array.Data))
	defer data.Release()
	return array.NewDictionaryData(data), nil
}

// encode returns a dictionary of the distinct byte strings, and their codes.
func (x *exporter) encode(v *batch.Vector, from, to int) (*batch.Dictionary, []uint32) {
	if x.words == nil {
		x.words = map[string]uint32{}
	}
	clear(x.words)
	d, codes := &batch.Dictionary{}, make([]uint32, to-from)
	for i, cell := range cellsOf(v, from, to) {
		if v.IsNull(from + i) {
			continue
		}
		code, ok := x.words[string(cell)]
		if !ok {
			code = uint32(len(d.Words))
			d.Words = append(d.Words, cell)
			x.words[string(cell)] = code
		}
		codes[i] = code
	}
	return d, codes
}
