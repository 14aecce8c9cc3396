package delta

import (
	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/mvcc"
)

// Span finds the rows of a rowset that were changed after one timestamp and not after another. A
// row outside of it has the same content as of both. Not for concurrent use. Source: tablet spec
// §8.2, SELECT relevance; both bounds here are inclusive reads.
type Span struct {
	after, upTo mvcc.Timestamp
	files       []cursor
	mem         *MemStore // nil if it has nothing of the span
	rows        []memRow
}

// NewSpan makes a Span of the changes at timestamps in (after, upTo], all of which are published.
// after is not below the history floor, beneath which undos may be gone.
func (t *Tracker) NewSpan(after, upTo mvcc.Timestamp) *Span {
	s := &Span{after: after, upTo: upTo}
	for _, list := range [2][]*File{t.Undo, t.Redo} {
		for _, f := range list {
			if f.stats.Max > after && f.stats.Min <= upTo {
				s.files = append(s.files, cursor{file: f, schema: t.schema()})
			}
		}
	}
	if m := t.Mem; m != nil && m.meets(after, upTo) {
		s.mem = m
	}
	return s
}

// Empty tells that no store holds a change of the span, by its statistics.
func (s *Span) Empty() bool { return len(s.files) == 0 && s.mem == nil }

// Mark sets bit i of rows for each row from+i of [from, from+n) that has a change in the span. It
// is cheapest when windows rise. Errors: ErrCorrupt.
func (s *Span) Mark(from batch.Ordinal, n int, rows batch.Bitmap) error {
	to := uint64(from) + uint64(n)
	for i := range s.files {
		err := s.files[i].scan(uint64(from), to, func(b *deltaBlock, i, j int) {
			for ; i < j; i++ {
				if b.ts[i] > s.after && b.ts[i] <= s.upTo {
					rows.Set(int(uint64(b.rows[i]) - uint64(from)))
				}
			}
		})
		if err != nil {
			return err
		}
	}
	if m := s.mem; m != nil {
		s.rows = m.appendRows(s.rows[:0], from, to)
		for _, r := range s.rows {
			// The newest change that is not too new: if it is too old, so are all before it.
			if ref := newestBefore(m.changes, r.newest, s.upTo+1); ref != 0 && linkAt(m.changes, ref).ts() > s.after {
				rows.Set(int(r.row - from))
			}
		}
	}
	return nil
}

// meets tells whether there may be changes in (after, upTo].
func (m *MemStore) meets(after, upTo mvcc.Timestamp) bool {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return m.maxTS > after && m.minTS <= upTo
}
