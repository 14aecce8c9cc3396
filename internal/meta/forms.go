package meta

import (
	"slices"

	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/internal/kudupb"
	"github.com/oribi-db/oribi/schema"
)

// formMessages returns what Kudu's message of the schema cannot say: the columns whose compression
// is LZ4HC or Dense.
func formMessages(s *schema.Schema) (forms []*kudupb.ColumnForm) {
	for i := range s.Columns {
		if c := &s.Columns[i]; c.Compression != c.Compression.Codec() {
			forms = append(forms, &kudupb.ColumnForm{Column: int32(c.ID), Compression: uint32(c.Compression)})
		}
	}
	return forms
}

// withForms returns s with the compressions in forms. Those that a newer version has added are
// ignored: the column keeps Kudu's codec. Errors: ErrCorrupt.
func withForms(s *schema.Schema, forms []*kudupb.ColumnForm) (*schema.Schema, error) {
	if len(forms) == 0 {
		return s, nil
	}
	columns := slices.Clone(s.Columns)
	for _, f := range forms {
		i, k := s.IndexID(schema.ColumnID(f.Column)), schema.Compression(f.Compression)
		if k != schema.LZ4HC && k != schema.Dense {
			continue
		}
		if i < 0 || columns[i].Compression != k.Codec() {
			return nil, fault.Corruptf("column %d is not one of %s", f.Column, k)
		}
		columns[i].Compression = k
	}
	return schema.New(columns, s.Keys)
}
