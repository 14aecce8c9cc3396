package model

import (
	"encoding/binary"
	"slices"

	"github.com/oribi-db/oribi/internal/prooftest/script"
	"github.com/oribi-db/oribi/schema"
)

// given is an insert with the value that an auto-incrementing column gets: one more than next has
// for the table, which it raises; so does an upsert by its value. Any other operation is given as
// it is. Source: tablet spec §12.6.
func (t *Table) given(op *script.Op, next map[*Table]int64) (_ *script.Op, value int64) {
	c := t.Schema.AutoIncrement()
	if c < 0 || !op.Ask.Inserts() && !op.Ask.Upserts() {
		return op, 0
	}
	if _, ok := next[t]; !ok {
		next[t] = t.highest
	}
	if op.Ask.Upserts() {
		next[t] = max(next[t], int64(binary.LittleEndian.Uint64(op.Cells[c])))
		return op, 0
	}
	next[t]++
	with := *op
	with.Cells, with.Set = slices.Clone(op.Cells), slices.Clone(op.Set)
	with.Cells[c], with.Set[c] = binary.LittleEndian.AppendUint64(nil, uint64(next[t])), true
	return &with, next[t]
}

// raise notes the value of a key that was inserted.
func (t *Table) raise(key [][]byte) {
	if c := t.Schema.AutoIncrement(); c >= 0 {
		t.highest = max(t.highest, int64(binary.LittleEndian.Uint64(key[c])))
	}
}

// recount finds the highest value anew, after commits were taken back.
func (t *Table) recount() {
	t.highest = 0
	for _, r := range t.Order {
		if len(r.Versions) > 0 {
			t.raise(r.Key)
		}
	}
}

// wrongAuto reports whether an operation gives an auto-incrementing column what refuses the whole
// batch.
func wrongAuto(s *schema.Schema, op *script.Op) bool {
	c := s.AutoIncrement()
	switch {
	case c < 0:
		return false
	case op.Ask.Inserts():
		return op.Set[c]
	}
	return op.Ask.Upserts() && (!op.Set[c] || op.Cells[c] != nil && int64(binary.LittleEndian.Uint64(op.Cells[c])) < 0)
}
