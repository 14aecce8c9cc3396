package rowset

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/block"
	"github.com/oribi-db/oribi/cfile"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/schema"
)

// A window is read in full even if cfile returns only a few values at a time because they are long.
func TestWindowOfLongPrefixValuesIsReadInFull(t *testing.T) {
	const rows = 300
	file := new(block.Memory)
	w := must.Get(cfile.NewWriter(file, cfile.WriterOptions{Type: schema.String, Encoding: schema.Prefix,
		Compression: schema.LZ4, PositionalIndex: true, Nullable: true}))(t)
	want, long := batch.NewVector(schema.String, rows), bytes.Repeat([]byte{'x'}, 60<<10)
	for i := range rows {
		if want.SetCell(i, fmt.Appendf(bytes.Clone(long), "%05d", i)); i%7 == 3 {
			want.SetCell(i, nil)
		}
	}
	must.Do(t, w.Append(want))
	must.Do(t, w.Finish())
	r := must.Get(cfile.Open(file, cfile.ReaderOptions{}))(t)
	got := &batch.Vector{Type: schema.String}
	if n, err := r.NewColumnReader().ReadVector(0, rows, got); err != nil || n >= rows {
		t.Fatalf("%d of %d cells at once, %v: too few for the test", n, rows, err)
	}
	must.Do(t, readFull(r.NewColumnReader(), nil, nil, 0, rows, got))
	must.Equal(t, got.Len, rows)
	for i := range rows {
		must.Equal(t, got.Cell(i), want.Cell(i), "row", i)
		must.Equal(t, got.IsNull(i), want.IsNull(i), "row", i)
	}
}
