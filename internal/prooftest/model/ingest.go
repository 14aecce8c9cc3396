package model

import (
	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/internal/prooftest/script"
	"github.com/oribi-db/oribi/mvcc"
)

// ResolveIngest returns the outcome of an ingest and changes nothing. It checks the rows in groups
// of st.Size, in three passes, and the first row that fails ends the ingest. The first pass goes
// column by column and looks for missing or NULL values in NOT NULL columns, the second for keys
// out of order, the third for keys that exist already.
func (m *Model) ResolveIngest(st *script.Step) *Outcome {
	t := m.Tables[st.Table]
	s := t.Schema
	o := &Outcome{Refused: -1}
	size := max(st.Size, 1)
	for from := 0; from < len(st.Ops); from += size {
		part := st.Ops[from:min(len(st.Ops), from+size)]
		for c := range s.Columns {
			column := &s.Columns[c]
			if !part[0].Set[c] && column.Default == nil && !column.Nullable {
				return &Outcome{Refused: from}
			}
			for i := range part {
				if part[i].Set[c] && part[i].Cells[c] == nil && !column.Nullable {
					return &Outcome{Refused: from + i}
				}
			}
		}
		for i := range part {
			if at := from + i; at > 0 && CompareKeys(s, st.Ops[at-1].Cells[:s.Keys], part[i].Cells[:s.Keys]) >= 0 {
				return &Outcome{Refused: at}
			}
		}
		for i := range part {
			key := part[i].Cells[:s.Keys]
			if t.Row(key, mvcc.Max) != nil {
				return &Outcome{Refused: from + i, Cause: oribi.ErrKeyExists}
			}
			o.Changes = append(o.Changes, rowChange{table: t, key: KeyText(key), cells: part[i].Cells, row: t.newRow(&part[i])})
		}
	}
	return o
}
