package prooftest

import (
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/schema"
)

// given is an insert with the value that an auto-incrementing column gets: one more than next has
// for the table, which it raises; so does an upsert by its value. Any other operation is given as
// it is. Source: tablet spec §12.6.
func (t *Table) given(op *Op, next map[*Table]int64) (_ *Op, value int64) {
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
	for _, r := range t.order {
		if len(r.versions) > 0 {
			t.raise(r.key)
		}
	}
}

// wrongAuto tells whether an operation gives an auto-incrementing column what refuses the whole
// batch.
func wrongAuto(s *schema.Schema, op *Op) bool {
	c := s.AutoIncrement()
	switch {
	case c < 0:
		return false
	case op.Ask.Inserts():
		return op.Set[c]
	}
	return op.Ask.Upserts() && (!op.Set[c] || op.Cells[c] != nil && int64(binary.LittleEndian.Uint64(op.Cells[c])) < 0)
}

// told compares what a batch tells of its last commit.
func told(b *oribi.Batch, out *outcome) error {
	var left []int
	for _, re := range b.Refused() {
		left = append(left, re.Row)
	}
	if !slices.Equal(left, out.left) {
		return fmt.Errorf("rows %v were left out, want %v: %v", left, out.left, b.Refused())
	}
	if !slices.Equal(b.Assigned(), out.assigned) {
		return fmt.Errorf("values %v were given, want %v", b.Assigned(), out.assigned)
	}
	return nil
}
