package batch

import (
	"errors"
	"fmt"
	"unsafe"

	"github.com/oribi-db/oribi/schema"
)

// Validate returns an error if v does not match the description of Vector: a wrong length, an
// unaligned Data, a code without a word, offsets that do not ascend. The other methods of Vector,
// and functions that take one, require a valid vector; a caller that sets the fields itself calls
// Validate first. It does not check the values of cells. It visits every code and every offset;
// apart from these its cost is constant.
func (v *Vector) Validate() error {
	switch {
	case v == nil:
		return errors.New("nil vector")
	case !v.Type.Valid():
		return fmt.Errorf("a vector of unknown type %d", int32(v.Type))
	case v.Len < 0:
		return fmt.Errorf("a vector of %d cells", v.Len)
	case v.Present != nil && len(v.Present) < (v.Len+63)/64:
		return fmt.Errorf("%d cells with a presence bitmap of %d words, want %d", v.Len, len(v.Present), (v.Len+63)/64)
	case v.Elements != nil:
		return v.validateArrays()
	case v.Type.Variable():
		return v.validateStrings()
	}
	return v.validateFixed()
}

func (v *Vector) validateFixed() error {
	w := v.Type.Width()
	switch {
	case v.Dict != nil:
		return fmt.Errorf("a vector of %s with a dictionary", v.Type)
	case len(v.Data)%w != 0 || len(v.Data)/w != v.Len:
		return fmt.Errorf("%d cells of %s with %d bytes of data, want %d bytes a cell", v.Len, v.Type, len(v.Data), w)
	case uintptr(unsafe.Pointer(unsafe.SliceData(v.Data)))%uintptr(min(w, 8)) != 0:
		return fmt.Errorf("the data of %s is not aligned to %d bytes: allocate it with Reset", v.Type, min(w, 8))
	}
	return nil
}

func (v *Vector) validateStrings() error {
	if v.Dict == nil {
		if len(v.Bytes) != v.Len {
			return fmt.Errorf("%d cells of %s with %d byte strings", v.Len, v.Type, len(v.Bytes))
		}
		return nil
	}
	if len(v.Codes) != v.Len {
		return fmt.Errorf("%d cells of %s with %d codes", v.Len, v.Type, len(v.Codes))
	}
	words := uint32(min(len(v.Dict.Words), 1<<32-1))
	for i, code := range v.Codes {
		if code >= words {
			return fmt.Errorf("cell %d has code %d of a dictionary of %d words", i, code, words)
		}
	}
	return nil
}

func (v *Vector) validateArrays() error {
	e := v.Elements
	switch {
	case v.Type == schema.Array || e.Type != v.Type || e.Elements != nil:
		return fmt.Errorf("arrays of %s with elements of %s", v.Type, e.Type)
	case len(v.Offsets) != v.Len+1:
		return fmt.Errorf("%d arrays with %d offsets, want %d", v.Len, len(v.Offsets), v.Len+1)
	case v.Offsets[0] != 0:
		return fmt.Errorf("the first array begins at element %d, not 0", v.Offsets[0])
	}
	for i, to := range v.Offsets[1:] {
		if to < v.Offsets[i] {
			return fmt.Errorf("array %d begins at element %d and ends at %d", i, v.Offsets[i], to)
		}
	}
	if err := e.Validate(); err != nil {
		return fmt.Errorf("elements: %w", err)
	}
	if last := v.Offsets[v.Len]; int64(last) > int64(e.Len) {
		return fmt.Errorf("the last array ends at element %d of %d", last, e.Len)
	}
	return nil
}
