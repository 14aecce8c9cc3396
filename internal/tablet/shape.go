package tablet

import (
	"github.com/oribi-db/oribi/change"
	"github.com/oribi-db/oribi/keyenc"
	"github.com/oribi-db/oribi/schema"
)

// Shape is one version of a table's schema, with the formats derived from it. It is immutable.
//
// An alteration makes a new Shape and a tabletState that has it. A reader uses the Shape of the
// state that it acquired; a write batch uses the one that it began with, until Prepare converts it.
type Shape struct {
	Schema    *schema.Schema
	Version   uint32
	RowFormat *change.RowFormat // of row images
	Encoder   *keyenc.Encoder   // of keys; all shapes of a table encode keys alike
	All       []int             // indexes of all columns: 0, 1, …

	immutable bool // the schema has an immutable column
	auto      int  // index of the auto-incrementing column; −1 = none
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

// Shape returns the table's current schema; of a closed table, its last one.
func (t *Tablet) Shape() *Shape { return t.shape.Load() }
