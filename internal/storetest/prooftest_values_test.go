package storetest

import (
	"testing"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/internal/prooftest/values"
	"github.com/oribi-db/oribi/schema"
)

func TestRandomCellsFitTheirColumns(t *testing.T) {
	r := values.NewRand(5)
	for range 3000 {
		s := values.RandomSchema(r)
		for i := range s.Columns {
			c := &s.Columns[i]
			cell := values.RandomCell(r, c)
			if w := c.Type.Width(); w > 0 && len(cell) != w {
				t.Fatalf("%s: %d bytes", c.TypeName(), len(cell))
			}
			if d, ok := values.GoValue(c, cell).(oribi.Decimal); ok && !d.Unscaled.FitsDigits(c.Precision) {
				t.Fatalf("%s: %v", c.TypeName(), d)
			}
			if c.Type == schema.Array {
				must.Do(t, schema.CheckArray(c.Element, cell), c.TypeName())
			} else if p := (batch.Predicate{Type: c.Type, Op: batch.Eq, Values: [][]byte{cell}}); p.Prepare() != nil {
				t.Fatalf("%s: %x is not a valid cell", c.TypeName(), cell)
			}
		}
	}
}
