package batch

import (
	"testing"

	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/schema"
)

func dictionaryVector(codes ...uint32) *Vector {
	v := &Vector{Type: schema.String}
	v.UseCodes(&Dictionary{Words: [][]byte{[]byte("a"), []byte("b")}}, len(codes))
	copy(v.Codes, codes)
	return v
}

func arraysVector() *Vector {
	v := NewArrays(schema.Int32)
	v.AppendArray([][]byte{{1, 0, 0, 0}, nil})
	v.AppendNullArray()
	v.AppendArray([][]byte{{2, 0, 0, 0}})
	return v
}

func TestValidateAcceptsWellFormedVectors(t *testing.T) {
	nulls := NewVector(schema.Double, 100)
	nulls.SetCell(64, nil)
	for name, v := range map[string]*Vector{
		"no cells":        {Type: schema.Int64},
		"fixed width":     NewVector(schema.Int128, 3),
		"NULLs":           nulls,
		"byte strings":    NewVector(schema.Binary, 2),
		"packed arrays":   NewVector(schema.Array, 2),
		"dictionary":      dictionaryVector(0, 1, 1),
		"arrays":          arraysVector(),
		"arrays, no cell": NewArrays(schema.String),
	} {
		must.Do(t, v.Validate(), name)
	}
}

func TestValidateRefusesMalformedVectors(t *testing.T) {
	arrays := func(bend func(v *Vector)) *Vector { v := arraysVector(); bend(v); return v }
	for name, v := range map[string]*Vector{
		"nil":                        nil,
		"unknown type":               {Type: 99},
		"negative type":              {Type: -1},
		"negative length":            {Type: schema.Int64, Len: -1},
		"no data":                    {Type: schema.Int64, Len: 1},
		"short data":                 {Type: schema.Int64, Len: 2, Data: make([]byte, 8)},
		"long data":                  {Type: schema.Int64, Len: 1, Data: make([]byte, 16)},
		"half a cell":                {Type: schema.Int64, Len: 1, Data: make([]byte, 12)},
		"huge length":                {Type: schema.Int64, Len: 1 << 62, Data: make([]byte, 8)},
		"data on an odd address":     {Type: schema.Int64, Len: 1, Data: growAligned(nil, 9)[1:]},
		"dictionary of numbers":      {Type: schema.Int64, Len: 1, Data: make([]byte, 8), Dict: &Dictionary{}},
		"short presence bitmap":      {Type: schema.Int8, Len: 65, Data: make([]byte, 65), Present: MakeBitmap(64)},
		"empty presence bitmap":      {Type: schema.Int8, Len: 1, Data: make([]byte, 1), Present: Bitmap{}},
		"no byte strings":            {Type: schema.String, Len: 1},
		"too many byte strings":      {Type: schema.String, Len: 1, Bytes: make([][]byte, 2)},
		"no codes":                   {Type: schema.String, Len: 1, Dict: &Dictionary{Words: make([][]byte, 1)}},
		"code beyond the dictionary": dictionaryVector(0, 2),
		"empty dictionary":           {Type: schema.String, Len: 1, Codes: []uint32{0}, Dict: &Dictionary{}},
		"no offsets":                 arrays(func(v *Vector) { v.Offsets = nil }),
		"one offset too few":         arrays(func(v *Vector) { v.Offsets = v.Offsets[:3] }),
		"first offset not 0":         arrays(func(v *Vector) { v.Offsets[0] = 1 }),
		"descending offsets":         arrays(func(v *Vector) { v.Offsets[1] = 3 }),
		"offset beyond the elements": arrays(func(v *Vector) { v.Offsets[3] = 4 }),
		"elements of another type":   arrays(func(v *Vector) { v.Elements = NewVector(schema.Int64, 3) }),
		"arrays of arrays":           arrays(func(v *Vector) { v.Elements = arraysVector() }),
		"malformed elements":         arrays(func(v *Vector) { v.Elements.Data = nil }),
	} {
		must.Refuse(t, v.Validate(), name)
	}
}
