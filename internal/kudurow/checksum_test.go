package kudurow

import (
	"testing"

	"github.com/oribi-db/oribi/internal/must"
)

// The sum of the three rows of the example, computed in Python from the description.
func TestChecksum(t *testing.T) {
	s := exampleSchema(t)
	m, sidecars := exampleAnswer(t)
	b := must.Get(new(Decoder).Decode(s.Columns, m, sidecars))(t)
	var sum Summer
	sum.Add(b)
	must.Equal(t, sum.Sum, 0x171c8cd6f)
	must.Equal(t, sum.Rows, 3)
	b.Selection.ClearRange(0, 3)
	sum.Add(b)
	must.Equal(t, sum.Rows, 3)
}
