package model

import (
	"encoding/binary"
	"slices"

	"github.com/oribi-db/oribi/internal/prooftest/script"
	"github.com/oribi-db/oribi/schema"
)

// given assigns a value to the auto-incrementing column of an insert: it increments next[t] and
// returns a copy of op with that value, and the value. An upsert raises next[t] to its own value.
// All operations other than inserts are returned unchanged, with value 0.
// Source: tablet spec §12.6.
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

// raise updates the highest auto-incremented value with the value in an inserted key.
func (t *Table) raise(key [][]byte) {
	if c := t.Schema.AutoIncrement(); c >= 0 {
		t.highest = max(t.highest, int64(binary.LittleEndian.Uint64(key[c])))
	}
}

// recount recomputes the highest auto-incremented value after commits were removed.
func (t *Table) recount() {
	t.highest = 0
	for _, r := range t.Order {
		if len(r.Versions) > 0 {
			t.raise(r.Key)
		}
	}
}

// wrongAuto reports whether an operation misuses an auto-incrementing column: an insert that sets
// it, or an upsert that leaves it out or sets a negative value. Such an operation fails the whole
// batch, even a partial one.
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
