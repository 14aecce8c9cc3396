package schema

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/internal/fuzztest"
	"github.com/oribi-db/oribi/internal/must"
)

// These are the examples of the format table and the cases that it omits.
func TestArrayCellsMatchWorkedExamples(t *testing.T) {
	for _, test := range []struct {
		name     string
		element  Type
		elements [][]byte
		want     string
	}{
		{"int32", Int32, [][]byte{{5, 0, 0, 0}, nil, {255, 255, 255, 255}}, "03 00 05 05 00 00 00 ff ff ff ff"},
		{"string", String, [][]byte{[]byte("hi"), {}, []byte("x")},
			"03 00 07 02 00 00 00 02 00 00 00 03 00 00 00 68 69 78"},
		{"none", Double, nil, "00 00"},
		{"NULLs alone", Int64, make([][]byte, 9), "09 00 00 00"},
		{"a NULL string", Binary, [][]byte{nil, {7}}, "02 00 02 01 00 00 00 07"},
		{"bools", Bool, [][]byte{{1}, {0}, nil}, "03 00 03 01 00"},
	} {
		want := must.Hex(t, test.want)
		got := AppendArray([]byte("before"), test.element, test.elements)[6:]
		must.Equal(t, got, want, test.name)
		elements, err := ArrayElements(nil, test.element, want)
		if err != nil || !sameElements(elements, test.elements) || ArrayLen(want) != len(test.elements) {
			t.Errorf("%s: read as %x, %v", test.name, elements, err)
		}
	}
}

func sameElements(a, b [][]byte) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if (a[i] == nil) != (b[i] == nil) || !bytes.Equal(a[i], b[i]) {
			return false
		}
	}
	return true
}

func TestArrayElementsRefusesNonCanonicalCells(t *testing.T) {
	for _, test := range []struct {
		name    string
		element Type
		cell    string
	}{
		{"empty", Int32, ""},
		{"half a count", Int32, "00"},
		{"trailing bytes after no elements", Int32, "00 00 00"},
		{"no presence", Int32, "01 00"},
		{"presence of more elements than there are", Int8, "01 00 03 05 05"},
		{"one value too few", Int32, "02 00 03 05 00 00 00"},
		{"one byte too many", Int8, "01 00 01 05 05"},
		{"a value of a NULL", Int8, "01 00 00 05"},
		{"a bool of 2", Bool, "01 00 01 02"},
		{"truncated ends", String, "01 00 01 00 00 00"},
		{"end beyond the heap", String, "01 00 01 02 00 00 00 61"},
		{"trailing bytes in the heap", String, "01 00 01 01 00 00 00 61 62"},
		{"descending ends", String, "02 00 03 02 00 00 00 01 00 00 00 61 62"},
		{"end below zero", String, "01 00 01 ff ff ff ff 61"},
		{"65535 elements in no bytes", String, "ff ff"},
	} {
		cell := must.Hex(t, test.cell)
		must.Fail(t, CheckArray(test.element, cell), fault.ErrCorrupt, test.name)
		if elements, err := ArrayElements(nil, test.element, cell); err == nil || elements != nil {
			t.Errorf("%s: read as %x, %v", test.name, elements, err)
		}
	}
}

// Each array has one encoding, so equal arrays have equal bytes.
func FuzzArrayCellRoundTrip(f *testing.F) {
	r := rand.New(rand.NewPCG(1, 2))
	kinds := []Type{Bool, Int8, Int16, Int32, Double, String}
	for i, element := range kinds {
		elements := make([][]byte, r.IntN(20))
		for k := range elements {
			if r.IntN(3) > 0 {
				elements[k] = make([]byte, element.Width())
			}
		}
		f.Add(byte(i), AppendArray(nil, element, elements))
	}
	fuzztest.Run(f, func(t *testing.T, kind byte, cell []byte) {
		element := kinds[int(kind)%len(kinds)]
		elements, err := ArrayElements(nil, element, cell)
		if err != nil {
			must.Fail(t, err, fault.ErrCorrupt)
			return
		}
		must.Equal(t, AppendArray(nil, element, elements), cell, cell, "of", element)
	})
}

func TestUnsetRequiredArrayIsWellFormed(t *testing.T) {
	c := Column{Name: "a", Type: Array, Element: String}
	must.Do(t, CheckArray(c.Element, c.Unset()))
}
