package arrowio

import (
	"bytes"
	"encoding/base64"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet"
)

// arrowSchemaKey is the key of the metadata entry with the Arrow schema of the rows, a message in
// base64: writers that use Arrow store it in Parquet files.
const arrowSchemaKey = "ARROW:schema"

// durationNotes adds a note to each field whose values are durations: Parquet has no type for them,
// so their unit is only in the Arrow schema, which Arrow's writers add to the metadata. A schema
// that cannot be read is ignored: readers that do not use Arrow do not read it either.
func durationNotes(fields []field, leaves []leaf, text *string) {
	if text == nil {
		return
	}
	message, err := base64.StdEncoding.DecodeString(*text)
	if err != nil {
		return
	}
	src := &source{Reader: bytes.NewReader(message)}
	r, err := guarded(src, func() (*ipc.Reader, error) {
		return openMessages(streamMessages(src, newBounded(memory.NewGoAllocator())))
	})
	if err != nil {
		return
	}
	defer r.Release()
	for i := range fields {
		f := &fields[i]
		if f.err != nil || f.note != "" || leaves[i].node.PhysicalType() != parquet.Types.Int64 {
			continue
		}
		if of, ok := r.Schema().FieldsByName(f.column.Name); ok && len(of) == 1 {
			if unit, ok := durationUnit(of[0].Type); ok {
				f.note = noteDuration(unitNames[unit])
			}
		}
	}
}

// durationUnit returns the unit of durations, or of those in lists.
func durationUnit(t arrow.DataType) (unit arrow.TimeUnit, ok bool) {
	switch t := t.(type) {
	case *arrow.DurationType:
		return t.Unit, true
	case arrow.ListLikeType:
		return durationUnit(t.Elem())
	}
	return 0, false
}
