package arrowio

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/bits"
	"unsafe"

	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/file"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/schema"
)

// leafWriter writes the vectors of one column to the column chunks of a Parquet file.
type leafWriter struct {
	out      file.ColumnChunkWriter // of the open row group
	typ      schema.Type            // of the values; of the elements in a column of arrays
	list     bool
	nullable bool
	length   int  // bytes of a decimal of more than 18 digits
	copies   bool // byte strings are valid during the call only
	delta    bool // values are stored as differences

	ones   []int16 // all 1
	defs   []int16
	reps   []int16
	values batch.Vector // those that are not NULL, if some are
	words  []int32
	bools  []bool
	codes  codeWriter
	page   int // rows since the last page of differences
	nan    uint64
	nans   bool // a NaN was written to the column chunk: nan are its bits
}

func newLeafWriter(c *schema.Column) *leafWriter {
	w := &leafWriter{typ: c.Stored(), list: c.Type == schema.Array, nullable: c.Nullable}
	if w.typ == schema.Decimal128 {
		w.length = decimalBytes(c.Precision)
	}
	return w
}

// integers reports whether the values are integers in Parquet.
func (w *leafWriter) integers() bool {
	switch w.typ {
	case schema.Bool, schema.Float, schema.Double:
		return false
	}
	return w.typ.Width() > 0 && w.length == 0
}

// pageRows and pageText limit what is written at a time: arrow-go ends a page, of about 1 MiB, only
// between two calls.
const (
	pageRows = 4096
	pageText = 256 << 10 // bytes of byte strings
)

// write appends cells [from, to) of v.
func (w *leafWriter) write(v *batch.Vector, from, to int) error {
	for from < to {
		end := min(to, from+pageRows)
		if v.Type.Variable() {
			size := 0
			for i, cell := range cellsOf(v, from, end) {
				if size += len(cell); size > pageText {
					end = from + i + 1
					break
				}
			}
		}
		write := w.cells
		if w.list {
			write = w.lists
		}
		if err := write(v, from, end); err != nil {
			return err
		}
		if err := w.endPage(end - from); err != nil {
			return err
		}
		from = end
	}
	return nil
}

// deltaPageRows is the number of rows of a page of differences. arrow-go would end it at 1 MiB,
// which may be all rows of a row group: the page index would be of no use.
const deltaPageRows = 1 << 17

// endPage ends a page of differences, to which n rows were added, if it is large enough.
func (w *leafWriter) endPage(n int) error {
	if !w.delta {
		return nil
	}
	if w.page += n; w.page < deltaPageRows {
		return nil
	}
	w.page = 0
	return w.out.(interface{ FlushCurrentPage() error }).FlushCurrentPage()
}

// differs reports whether the values of a vector take fewer bytes as differences from one to the
// next: whether the range of these has at most three quarters of the bits of a value.
func differs(v *batch.Vector) bool {
	n := min(v.Len, pageRows)
	if n < 2 {
		return false
	}
	values := make([]int64, 0, n)
	for i := range n {
		if v.IsNull(i) {
			continue
		}
		switch cell := v.Cell(i); len(cell) {
		case 8:
			values = append(values, int64(binary.LittleEndian.Uint64(cell)))
		case 4:
			values = append(values, int64(int32(binary.LittleEndian.Uint32(cell))))
		default: // of 8 or 16 bits
			return false
		}
	}
	least, most := int64(math.MaxInt64), int64(math.MinInt64)
	for i := 1; i < len(values); i++ {
		d := values[i] - values[i-1]
		least, most = min(least, d), max(most, d)
	}
	return len(values) > 1 && 4*bits.Len64(uint64(most-least)) <= 3*8*v.Type.Width()
}

// cells appends cells of a column that has no arrays.
func (w *leafWriter) cells(v *batch.Vector, from, to int) error {
	if !w.nullable {
		if v.Present != nil && v.Present.CountRange(from, to) < to-from {
			for i := from; ; i++ {
				if v.IsNull(i) {
					return cellErrorf(i, "NULL in a column that is not nullable")
				}
			}
		}
		return w.scalars(v, from, to, nil, false)
	}
	n := to - from
	if v.Present == nil || v.Present.CountRange(from, to) == n {
		for len(w.ones) < n {
			w.ones = append(w.ones, 1)
		}
		return w.scalars(v, from, to, w.ones[:n], false)
	}
	w.defs = w.defs[:0]
	for i := from; i < to; i++ {
		w.defs = append(w.defs, int16(v.Present[i>>6]>>(i&63)&1))
	}
	return w.scalars(v, from, to, w.defs, true)
}

// scalars appends cells of a column that has no arrays, with their definition levels, nil in a
// column that is not nullable. nulls reports whether some are NULL.
func (w *leafWriter) scalars(v *batch.Vector, from, to int, defs []int16, nulls bool) error {
	if out, ok := w.out.(*file.ByteArrayColumnChunkWriter); ok {
		done, err := w.codes.write(out, v, from, to, defs)
		if done || err != nil {
			return err
		}
		defer w.codes.note(v, from, to)
	}
	if !nulls {
		return w.put(v, from, to, defs, nil)
	}
	w.values.Type = v.Type
	w.values.Reset(0)
	if v.Type.Variable() {
		w.values.Bytes = nil // arrow-go may keep the lowest and the greatest
	}
	w.values.AppendSelected(v, v.Present, from, to)
	return w.put(&w.values, 0, w.values.Len, defs, nil)
}

// lists appends cells of a column of arrays. Levels of repetition are 0 at the first element of an
// array, or for an array without elements, and 1 at the others. Levels of definition are, for a
// nullable column: 0 for NULL, 1 for no elements, 2 for a NULL element, 3 for another element; one
// less for other columns.
func (w *leafWriter) lists(v *batch.Vector, from, to int) error {
	arrays := batch.NewArrays(w.typ)
	if err := arrays.AppendUnpacked(v, from, to); err != nil {
		return err
	}
	w.defs, w.reps = w.defs[:0], w.reps[:0]
	empty := int16(0)
	if w.nullable {
		empty = 1
	}
	for i := range arrays.Len {
		first, last := arrays.Array(i)
		switch {
		case arrays.IsNull(i) && !w.nullable:
			return cellErrorf(from+i, "NULL in a column that is not nullable")
		case arrays.IsNull(i):
			w.defs, w.reps = append(w.defs, 0), append(w.reps, 0)
			continue
		case first == last:
			w.defs, w.reps = append(w.defs, empty), append(w.reps, 0)
			continue
		}
		for k := first; k < last; k++ {
			level := empty + 2
			if arrays.Elements.IsNull(k) {
				level = empty + 1
			}
			w.defs, w.reps = append(w.defs, level), append(w.reps, 1)
		}
		w.reps[len(w.reps)-(last-first)] = 0
	}
	elements := arrays.Elements
	if elements.Present == nil {
		return w.put(elements, 0, elements.Len, w.defs, w.reps)
	}
	dense := batch.NewVector(w.typ, 0)
	dense.AppendSelected(elements, elements.Present, 0, elements.Len)
	return w.put(dense, 0, dense.Len, w.defs, w.reps)
}

// put appends values [from, to) of v, none of them NULL, with their levels.
func (w *leafWriter) put(v *batch.Vector, from, to int, defs, reps []int16) (err error) {
	switch out := w.out.(type) {
	case *file.BooleanColumnChunkWriter:
		w.bools = w.bools[:0]
		for _, b := range v.Data[from:to] {
			w.bools = append(w.bools, b != 0)
		}
		_, err = out.WriteBatch(w.bools, defs, reps)
	case *file.Int32ColumnChunkWriter:
		_, err = out.WriteBatch(w.narrow(v, from, to), defs, reps)
	case *file.Int64ColumnChunkWriter:
		_, err = out.WriteBatch(batch.Raw[int64](v)[from:to], defs, reps)
	case *file.Float32ColumnChunkWriter:
		values := batch.Values[float32](v)[from:to]
		keepNaNs(w, values, func(x float32) uint64 { return uint64(math.Float32bits(x)) })
		_, err = out.WriteBatch(values, defs, reps)
	case *file.Float64ColumnChunkWriter:
		values := batch.Values[float64](v)[from:to]
		keepNaNs(w, values, math.Float64bits)
		_, err = out.WriteBatch(values, defs, reps)
	case *file.ByteArrayColumnChunkWriter:
		_, err = out.WriteBatch(w.byteArrays(v, from, to), defs, reps)
	case *file.FixedLenByteArrayColumnChunkWriter:
		_, err = out.WriteBatch(w.bigEndian(batch.Values[batch.Int128](v)[from:to]), defs, reps)
	default:
		err = fmt.Errorf("no values of %s for %T", v.Type, w.out)
	}
	return err
}

// keepNaNs ends the dictionary of the column chunk if values have a NaN with other bits than the
// dictionary's NaN: a dictionary of arrow-go has one NaN, and would return its bits for all.
func keepNaNs[T float32 | float64](w *leafWriter, values []T, bits func(T) uint64) {
	for _, x := range values {
		switch {
		case x == x:
		case !w.nans:
			w.nan, w.nans = bits(x), true
		case bits(x) != w.nan:
			w.out.FallbackToPlain()
			return
		}
	}
}

// narrow returns values of up to 32 bits as int32, the bits of those without sign.
func (w *leafWriter) narrow(v *batch.Vector, from, to int) []int32 {
	if v.Type.Width() == 4 {
		return batch.Raw[int32](v)[from:to]
	}
	w.words = w.words[:0]
	switch v.Type {
	case schema.Int8:
		w.words = appendWords(w.words, batch.Values[int8](v)[from:to])
	case schema.Uint8:
		w.words = appendWords(w.words, batch.Values[uint8](v)[from:to])
	case schema.Int16:
		w.words = appendWords(w.words, batch.Values[int16](v)[from:to])
	default:
		w.words = appendWords(w.words, batch.Values[uint16](v)[from:to])
	}
	return w.words
}

func appendWords[T int8 | uint8 | int16 | uint16](dst []int32, values []T) []int32 {
	for _, x := range values {
		dst = append(dst, int32(x))
	}
	return dst
}

// byteArrays returns byte strings. arrow-go keeps some of them, for statistics, so they must not be
// overwritten later.
func (w *leafWriter) byteArrays(v *batch.Vector, from, to int) []parquet.ByteArray {
	if v.Dict == nil && !w.copies {
		cells := v.Bytes[from:to]
		return unsafe.Slice((*parquet.ByteArray)(unsafe.Pointer(unsafe.SliceData(cells))), len(cells))
	}
	out := make([]parquet.ByteArray, 0, to-from)
	var text []byte
	for _, cell := range cellsOf(v, from, to) {
		if w.copies && len(cell) > 0 {
			text, cell = appendText(text, cell)
		}
		out = append(out, cell)
	}
	return out
}

// appendText appends a copy of cell to buf, or to a new buffer if it does not fit.
func appendText(buf, cell []byte) (grown, copied []byte) {
	if cap(buf)-len(buf) < len(cell) {
		buf = make([]byte, 0, max(len(cell), 64<<10))
	}
	at := len(buf)
	buf = append(buf, cell...)
	return buf, buf[at:len(buf):len(buf)]
}

// bigEndian returns integers in the form of decimals, in new memory: arrow-go keeps some.
func (w *leafWriter) bigEndian(values []batch.Int128) []parquet.FixedLenByteArray {
	memory, out := make([]byte, w.length*len(values)), make([]parquet.FixedLenByteArray, len(values))
	for i, x := range values {
		b := memory[i*w.length : (i+1)*w.length : (i+1)*w.length]
		for k := range b {
			at := w.length - 1 - k // of the byte, from the lowest on
			if at < 8 {
				b[k] = byte(x.Lo >> (8 * at))
			} else {
				b[k] = byte(x.Hi >> (8 * (at - 8)))
			}
		}
		out[i] = b
	}
	return out
}
