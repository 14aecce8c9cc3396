package delta

import (
	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/mvcc"
)

// Span finds the rows of a rowset that were changed between two snapshots. All other rows have the
// same content in both. Not for concurrent use. Source: tablet spec §8.2, SELECT relevance.
type Span struct {
	from, to mvcc.Snapshot
	files    []cursor
	mem      *MemStore // nil if it has no change in the span
	births   []Birth   // in the span
	rows     []memRow
}

// NewSpan returns the Span of the changes that to sees and from does not. All of them must be
// published, and from must be at or above the history floor: below it undos may be missing.
func (t *Tracker) NewSpan(from, to mvcc.Snapshot) *Span {
	s := &Span{from: from, to: to}
	for _, list := range [2][]*File{t.Undo, t.Redo} {
		for _, f := range list {
			if need := (filter{kind: between, from: from, to: to}); f.has(need) {
				s.files = append(s.files, cursor{file: f, schema: t.schema(), filter: need})
			}
		}
	}
	if m := t.Mem; m != nil && m.meets(from, to) {
		s.mem = m
	}
	for _, b := range t.birthsSince(from) {
		if !from.Sees(b.TS) && to.Sees(b.TS) {
			s.births = append(s.births, b)
		}
	}
	return s
}

// Empty reports whether the statistics show that no store has a change in the span.
func (s *Span) Empty() bool { return len(s.files) == 0 && s.mem == nil && s.births == nil }

// SetChanged sets bit i of rows for each row from+i of [from, from+n) that has a change in the
// span. It is cheapest when windows ascend. Errors: ErrCorrupt.
func (s *Span) SetChanged(from batch.Ordinal, n int, rows batch.Bitmap) error {
	to := uint64(from) + uint64(n)
	for i := range s.files {
		err := s.files[i].scan(uint64(from), to, func(b *deltaBlock, k, end int) {
			low, high := b.keyBound(s.from), b.keyBound(s.to)
			for ; k < end; k++ {
				for i, j := b.of(k); i < j; i++ {
					if key := b.keys.at(i); key >= low && key < high {
						rows.Set(int(uint64(b.row(k)) - uint64(from)))
						break
					}
				}
			}
		})
		if err != nil {
			return err
		}
	}
	if m := s.mem; m != nil {
		s.rows = m.appendRows(s.rows[:0], from, to, false)
		for _, r := range s.rows {
			// If from sees the newest change that to sees, it sees all older ones.
			if ref := newestBefore(m.changes, r.newest, s.to); ref != 0 && !s.from.Sees(linkAt(m.changes, ref).ts()) {
				rows.Set(int(r.row - from))
			}
		}
	}
	for _, b := range birthsOf(s.births, uint64(from), to) {
		lo, hi := b.within(uint64(from), to)
		rows.SetRange(int(lo-uint64(from)), int(hi-uint64(from)))
	}
	return nil
}

// Each calls visit with the row and the timestamp of each change in the span of the rows
// [from, from+n), store by store; births are left out. It is cheapest when windows ascend. Errors:
// ErrCorrupt.
func (s *Span) Each(from batch.Ordinal, n int, visit func(row batch.Ordinal, ts mvcc.Timestamp)) error {
	to := uint64(from) + uint64(n)
	for i := range s.files {
		err := s.files[i].scan(uint64(from), to, func(b *deltaBlock, k, end int) {
			for d := range b.entriesOf(k, end) {
				if !s.from.Sees(d.TS) && s.to.Sees(d.TS) {
					visit(batch.Ordinal(d.Row), d.TS)
				}
			}
		})
		if err != nil {
			return err
		}
	}
	if m := s.mem; m != nil {
		s.rows = m.appendRows(s.rows[:0], from, to, false)
		for _, r := range s.rows {
			for ref := newestBefore(m.changes, r.newest, s.to); ref != 0; {
				l := linkAt(m.changes, ref)
				if s.from.Sees(l.ts()) {
					break
				}
				visit(r.row, l.ts())
				ref = l.prev()
			}
		}
	}
	return nil
}

// Births returns the births in the span, by row.
func (s *Span) Births() []Birth { return s.births }

// meets reports whether the store may have changes that to sees and from does not.
func (m *MemStore) meets(from, to mvcc.Snapshot) bool {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return !from.Sees(m.stats.Max) && to.Sees(m.stats.Min)
}
