package cfile

import (
	"testing"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/block"
	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/schema"
)

func TestAppendRefusesMalformedVectors(t *testing.T) {
	vector := func(typ schema.Type, bend func(*batch.Vector)) *batch.Vector {
		v := batch.NewVector(typ, 100)
		bend(v)
		return v
	}
	for name, tc := range map[string]struct {
		o WriterOptions
		v *batch.Vector
	}{
		"nil": {WriterOptions{Type: schema.Int64}, nil},
		"short data": {WriterOptions{Type: schema.Int64}, vector(schema.Int64, func(v *batch.Vector) {
			v.Data = v.Data[:8]
		})},
		"short presence bitmap": {WriterOptions{Type: schema.Int64, Nullable: true},
			vector(schema.Int64, func(v *batch.Vector) {
				v.Present = batch.Bitmap{1}
			})},
		"short strings": {WriterOptions{Type: schema.String}, vector(schema.String, func(v *batch.Vector) {
			v.Bytes = v.Bytes[:1]
		})},
		"code without a word": {WriterOptions{Type: schema.String}, vector(schema.String, func(v *batch.Vector) {
			v.UseCodes(&batch.Dictionary{}, 100)
		})},
		"wrong width":          {WriterOptions{Type: schema.Int64}, vector(schema.Int32, func(*batch.Vector) {})},
		"strings for integers": {WriterOptions{Type: schema.Int64}, vector(schema.String, func(*batch.Vector) {})},
		"integers for strings": {WriterOptions{Type: schema.String}, vector(schema.Int64, func(*batch.Vector) {})},
		"arrays for scalars":   {WriterOptions{Type: schema.Int64}, batch.NewArrays(schema.Int64)},
		"arrays without offsets": {WriterOptions{Type: schema.Int64, Array: true}, func() *batch.Vector {
			v := batch.NewArrays(schema.Int64)
			v.Len = 2
			return v
		}()},
	} {
		t.Run(name, func(t *testing.T) {
			tc.o.PositionalIndex = true
			w := must.Get(NewWriter(new(block.Memory), tc.o))(t)
			must.Fail(t, w.Append(tc.v), fault.ErrSchema)
			must.Fail(t, w.Finish(), fault.ErrSchema, "Finish after it")
		})
	}
}
