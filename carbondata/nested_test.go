package carbondata

import (
	"encoding/binary"
	"errors"
	"testing"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/carbondata/internal/codec"
	"github.com/oribi-db/oribi/internal/memtest"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/schema"
)

// TestEmptyArraysBeginAnywhere decodes arrays without elements whose index of the first is not in
// the page of the elements.
func TestEmptyArraysBeginAnywhere(t *testing.T) {
	column := Column{Name: "a", Type: Array, Children: []Column{{Name: "val", Type: String, nested: true}}}
	words := batch.Dictionary{Words: [][]byte{[]byte("x")}}
	for name, child := range map[string]page{
		"strings":      {form: formStrings, offsets: []uint32{0, 0}},
		"a dictionary": {form: formSurrogates, codes: []uint32{0}, dict: &dictionary{words: words}},
		"numbers": {form: formNumbers,
			numbers: numbers{width: 4, enc: encDirectCompress, typ: Int, data: make([]byte, 4)}},
	} {
		for _, first := range []string{"\x00\x00\x00\x00", "\x00\x00\x00\x09", "\xff\xff\xff\xff", "\x80\x00\x00\x00"} {
			c := newCells(&column)
			c.page = page{column: &column, form: formElements, rows: 1, data: []byte("\x00\x00\x00\x00" + first)}
			must.Do(t, c.page.checkElements())
			child.column = &column.Children[0]
			c.children[0].page, c.children[0].dict = child, child.dict
			v := &batch.Vector{Type: schema.Array}
			v.Reset(1)
			must.Do(t, c.fill(v, 0, 0, 1), name)
			budget := 1
			must.Equal(t, len(must.Get(c.value(0, &budget))(t).([]any)), 0, name)
		}
	}
}

// TestArrayCountsBeyondTheElements decodes an array that counts many more elements than the page of
// its elements has bytes. Nothing is allocated for the count.
func TestArrayCountsBeyondTheElements(t *testing.T) {
	for _, count := range []uint32{5, 1 << 30, 1<<31 - 1} {
		list := page{column: &Column{Type: Array}, rows: 1, form: formElements}
		data := append(binary.BigEndian.AppendUint32(nil, count), 0, 0, 0, 0)
		must.Do(t, list.decode(codec.Snappy, snappyLiteral(data), nil, &memory{left: 1 << 20}))
		must.Equal(t, list.elements, int(count))
		for name, child := range map[string]page{
			"strings":      {column: &Column{Type: String, nested: true}, form: formStrings, prefix: lengthLen},
			"a dictionary": {column: &Column{Type: String, nested: true}, form: formSurrogates},
			"numbers": {column: &Column{Type: Int, nested: true}, form: formNumbers,
				numbers: numbers{width: 4, enc: encDirectCompress, typ: Int}},
			"arrays":  {column: &Column{Type: Array, nested: true}, form: formElements},
			"structs": {column: &Column{Type: Struct, nested: true}, form: formFields},
			"dates":   {column: &Column{Type: Date, nested: true}, form: formNestedDates, prefix: lengthLen},
		} {
			child.rows = list.elements
			var err error
			n := memtest.Allocated(func() {
				err = child.decode(codec.Snappy, snappyLiteral(make([]byte, 4)), nil, &memory{left: 1 << 20})
			})
			if !errors.Is(err, ErrCorrupt) || n > 1<<20 {
				t.Errorf("%d elements, %s: %v, %d bytes allocated", count, name, err, n)
			}
		}
	}
}
