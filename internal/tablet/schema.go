package tablet

import (
	"github.com/oribi-db/oribi/change"
	"github.com/oribi-db/oribi/internal/expiry"
	"github.com/oribi-db/oribi/internal/meta"
	"github.com/oribi-db/oribi/keyenc"
	"github.com/oribi-db/oribi/schema"
)

// TableSchema is one version of a table's schema, with the formats derived from it. It is
// immutable.
//
// An alteration makes a new TableSchema and a new tabletState. A reader uses the TableSchema of the
// state that it acquired. A write batch uses the TableSchema that was current when the batch was
// started, until Prepare converts the batch.
type TableSchema struct {
	Schema    *schema.Schema
	Version   uint32
	RowFormat *change.RowFormat // of row images
	Encoder   *keyenc.Encoder   // of keys; the encoding is the same in all versions
	All       []int             // indexes of all columns: 0, 1, …
	Expiry    expiry.Rules      // when rows expire

	replaced []schema.ColumnID // columns that others of another type have replaced since the table was opened

	immutable   bool // the schema has an immutable column
	replaceable bool // an upsert of all columns replaces a row: it can set each non-key column, and there is one
	auto        int  // index of the auto-incrementing column; −1 = none
}

// tableSchemaOf returns the schema in a table's metadata row.
func tableSchemaOf(row *meta.Table) *TableSchema {
	sc := newTableSchema(row.Schema, row.SchemaVersion)
	sc.Expiry = row.Expiry
	return sc
}

// newTableSchema returns the schema of a table whose rows do not expire.
func newTableSchema(s *schema.Schema, version uint32) *TableSchema {
	sc := &TableSchema{Schema: s, Version: version, RowFormat: change.NewRowFormat(s),
		Encoder: keyenc.NewEncoder(s), All: make([]int, len(s.Columns)),
		auto: s.AutoIncrement()}
	for i := range sc.All {
		sc.All[i] = i
		sc.immutable = sc.immutable || s.Columns[i].Immutable
	}
	sc.replaceable = !sc.immutable && s.Keys < len(s.Columns)
	return sc
}

// AutoIncrement returns the index of the auto-incrementing column, or −1 if the table has none.
func (sc *TableSchema) AutoIncrement() int { return sc.auto }

// Schema returns the table's current schema; of a closed table, its last one.
func (t *Tablet) Schema() *TableSchema {
	if st := t.state.Load(); st != nil {
		return st.schema
	}
	return t.schema.Load()
}
