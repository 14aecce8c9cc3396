package tablet

import (
	"github.com/oribi-db/oribi/change"
	"github.com/oribi-db/oribi/keyenc"
	"github.com/oribi-db/oribi/schema"
)

// Shape is one version of a table's schema, with what is made of it. Immutable, to be shared.
//
// A change of the schema makes a new one, and a tabletState that has it: a reader goes by the shape of
// the state that it holds, a write batch by the one that it was begun with until Prepare converts
// it.
type Shape struct {
	Schema    *schema.Schema
	Version   uint32
	RowFormat *change.RowFormat // of row images
	Encoder   *keyenc.Encoder   // of keys; all shapes of a table encode keys alike
	All       []int             // indexes of all columns: 0, 1, …

	immutable bool // there is an immutable column
	auto      int  // index of the auto-incrementing column; −1 = there is none
}

func newShape(s *schema.Schema, version uint32) *Shape {
	sh := &Shape{Schema: s, Version: version, RowFormat: change.NewRowFormat(s), Encoder: keyenc.NewEncoder(s), All: make([]int, len(s.Columns)),
		auto: s.AutoIncrement()}
	for i := range sh.All {
		sh.All[i] = i
		sh.immutable = sh.immutable || s.Columns[i].Immutable
	}
	return sh
}

// Shape is the table's schema as it is now; as it was last, when the table is closed.
func (t *Tablet) Shape() *Shape { return t.shape.Load() }
