package versions

import (
	"cmp"
	"iter"
	"slices"

	"github.com/oribi-db/oribi/change"
	"github.com/oribi-db/oribi/internal/salvage/damaged"
	"github.com/oribi-db/oribi/lsn"
	"github.com/oribi-db/oribi/mvcc"
)

// logKnowledge has the facts about a row that the log proves.
type logKnowledge struct {
	included lsn.LSN          // the row contains all operations on it up to here, see full // inclusive
	full     lsn.LSN          // all of its cells are known as of here, whatever is missing before
	from, to mvcc.Timestamp   // it did not exist before from, and not after to, when another row with its key began
	alive    []mvcc.Timestamp // when operations found that it existed
}

// key merges the rows with a key and the operations on it.
func (m *Merge) key(key []byte, ops []LoggedOp) {
	for _, r := range m.rows {
		r.log = logKnowledge{included: r.set.IncludedLSN, full: r.set.IncludedLSN, to: mvcc.Max, alive: r.log.alive[:0]}
	}
	if len(ops) > 0 {
		m.endOlder()
	}
	var last *history // of the log
	for i := range ops {
		last = m.apply(&ops[i], last)
	}
	m.spans, m.runs, m.pieces = m.spans[:0], m.runs[:0], m.pieces[:0]
	for _, r := range m.rows {
		r.finish()
		from := len(m.spans)
		m.spans = r.spans(m.spans)
		m.addRuns(r, m.spans[from:])
		r.rewind()
	}
	if len(m.rows) > 1 {
		m.resolve(key)
	}
	for i := range m.runs {
		m.runs[i].addPieces(&m.pieces)
	}
	if m.sortPieces(); len(m.pieces) > 0 {
		m.out.write(key, m.pieces)
	}
}

// exists reports whether a row is known to exist at a time after its newest change so far, and
// whether it may exist.
func (s *history) exists(at mvcc.Timestamp) (known, may bool) {
	switch {
	case at < s.log.from || at > s.log.to:
		return false, false
	case s.state.unknown.is():
		return false, true
	}
	return s.state.exists, s.state.exists
}

// endOlder ends the rowsets' rows that exist when the row that began last begins.
func (m *Merge) endOlder() {
	if len(m.rows) == 1 {
		return
	}
	var newest *run
	var runs []run
	for _, r := range m.rows {
		if _, may := r.exists(mvcc.Max); !may {
			continue
		}
		r.finish()
		note := r.note
		r.note = nil
		spans := r.spans(nil)
		r.note = note
		r.rewind()
		run := run{src: r, spans: spans[:runLength(spans)]}
		run.find(m.Options.Floor)
		runs = append(runs, run)
	}
	for i := range runs {
		if r := &runs[i]; r.known && (newest == nil || newest.before(r)) {
			newest = r
		}
	}
	if newest == nil {
		return
	}
	newest.src.log.from = newest.first
	for i := range runs {
		if r := &runs[i]; r != newest {
			r.src.log.to = newest.first
		}
	}
}

// apply applies an operation of the log. last is the last row of the log so far, or nil; apply
// returns it, or a new one.
//
// An insert that the rowsets do not contain begins a row. Another operation changes the row that
// exists, unless that contains it. If it is not known whether a row exists, the operation shows that
// it does, unless there are several such rows. Whatever existed before a row that begins, or is
// deleted, does not exist afterwards.
func (m *Merge) apply(op *LoggedOp, last *history) *history {
	if op.Kind == change.Insert {
		if op.LSN <= m.Flushed {
			return last
		}
		return m.insert(op, last)
	}
	var target *history
	var unsure []*history
	contained := false
	for r := range m.open(last) {
		known, may := r.exists(op.TS)
		switch {
		case r.log.included >= op.LSN:
			contained = true
		case known:
			target = r
		case may:
			unsure = append(unsure, r)
		}
	}
	if target == nil && !contained && len(unsure) == 1 && op.Kind != change.Delete {
		target = unsure[0]
	}
	switch {
	case op.Kind == change.Delete:
		if target != nil {
			target.found(op.TS)
			unsure = append(unsure, target)
		}
		for _, r := range unsure {
			r.change(op.TS, change.AppendDelete(nil))
		}
	case target == nil && contained:
	case target == nil && op.Kind == change.Replace && (len(unsure) > 0 || m.Incomplete):
		return m.insert(op, last)
	case target == nil:
		if len(unsure) > 0 || m.Incomplete {
			m.Dropped(op)
		}
	case op.Kind == change.Replace:
		target.found(op.TS)
		target.change(op.TS, m.format.AppendUpdate(nil, op.Body))
		target.log.full = op.LSN
	case m.missed(target.log.full, op.LSN):
		target.found(op.TS)
		m.Dropped(op)
	default:
		target.found(op.TS)
		target.change(op.TS, op.Body)
	}
	return last
}

// open returns the rows that operations may still change: the rows of rowsets, and the last row of
// the log.
func (m *Merge) open(last *history) iter.Seq[*history] {
	return func(yield func(*history) bool) {
		for _, r := range m.rows {
			if r.set == nil {
				break
			}
			if !yield(r) {
				return
			}
		}
		if last != nil {
			yield(last)
		}
	}
}

// found notes that the row existed at a time.
func (s *history) found(ts mvcc.Timestamp) { s.log.alive = append(s.log.alive, ts) }

// missed reports whether records are missing between two LSNs.
func (m *Merge) missed(from, to lsn.LSN) bool {
	for _, g := range m.Gaps {
		if g.From < to && g.To > from {
			return true
		}
	}
	return false
}

// insert begins a row of the log with an insert or a replacement.
func (m *Merge) insert(op *LoggedOp, last *history) *history {
	for r := range m.open(last) {
		if r.log.included >= op.LSN {
			continue
		}
		if known, may := r.exists(op.TS); may && !known {
			r.change(op.TS, change.AppendDelete(nil))
		}
		r.log.to = min(r.log.to, op.TS-1)
	}
	r := &history{schema: m.Schema, o: &m.Options, key: op.Key}
	r.state.begin(len(m.Schema.Columns))
	for c := range r.state.cells {
		r.state.cells[c] = m.format.Cell(op.Body, c)
	}
	birth := change.Delta{TS: op.TS, List: change.AppendDelete(nil)}
	r.undos = []damaged.Change{{Delta: birth}}
	r.begin()
	r.log.included, r.log.full, r.log.to = op.LSN-1, op.LSN, mvcc.Max // its own batch may change it
	m.rows = append(m.rows, r)
	return r
}

// run is spans of a row that follow one another: it began once and ended once.
type run struct {
	src   *history
	spans []span         // newest first
	known bool           // some span is
	begin mvcc.Timestamp // of the oldest known span, at least the floor
	first mvcc.Timestamp // of the oldest known span
	cut   mvcc.Timestamp // it ends here if not before
}

// runLength returns how many of the first spans follow one another.
func runLength(spans []span) int {
	n := min(1, len(spans))
	for n < len(spans) && spans[n].to == spans[n-1].from {
		n++
	}
	return n
}

// find finds when the run began.
func (r *run) find(floor mvcc.Timestamp) {
	r.cut = mvcc.Max
	for _, s := range r.spans {
		if s.known {
			r.known, r.first, r.begin = true, s.from, max(s.from, floor)
		}
	}
}

// before reports whether r began before o. If that is unknown, it reports whether the rowset of r is
// the older one.
func (r *run) before(o *run) bool {
	id := func(s *history) uint64 {
		if s.set == nil {
			return 1 << 63
		}
		return s.set.ID
	}
	return cmp.Or(cmp.Compare(r.begin, o.begin), cmp.Compare(r.src.log.included, o.src.log.included),
		cmp.Compare(id(r.src), id(o.src))) < 0
}

func (m *Merge) addRuns(s *history, spans []span) {
	for len(spans) > 0 {
		n := runLength(spans)
		r := run{src: s, spans: spans[:n:n]}
		if r.find(m.Options.Floor); r.known {
			m.runs = append(m.runs, r)
		}
		spans = spans[n:]
	}
}

// resolve ends runs that overlap with runs that began later.
func (m *Merge) resolve(key []byte) {
	slices.SortStableFunc(m.runs, func(a, b run) int {
		if a.before(&b) {
			return -1
		}
		return 1
	})
	for i := range m.runs {
		old := &m.runs[i]
		for j := i + 1; j < len(m.runs); j++ {
			newer := &m.runs[j]
			if newer.begin >= min(old.spans[0].to, old.cut) {
				break // and so do all others
			}
			if newer.src == old.src || !old.overlaps(newer) {
				continue
			}
			old.cut = min(newer.first, max(old.first, m.existed(old.src, newer.first))+1)
			m.Conflict(&Conflict{Key: key, From: old.cut, To: newer.first, Older: old.src.source(),
				Newer: newer.src.source()})
		}
	}
}

// overlaps reports whether both runs have known spans at some time.
func (r *run) overlaps(o *run) bool {
	for _, a := range r.spans {
		for _, b := range o.spans {
			if a.known && b.known && max(a.from, b.from) < min(a.to, b.to, r.cut) {
				return true
			}
		}
	}
	return false
}

// existed returns the last time before end of which it is known that s existed, or that nothing
// about it is missing.
func (m *Merge) existed(s *history, end mvcc.Timestamp) (ts mvcc.Timestamp) {
	if s.set != nil {
		ts = s.set.MaxTimestamp
	}
	for _, g := range m.Gaps {
		if g.To <= s.log.included {
			continue
		}
		if g.From > s.log.included {
			ts = max(ts, g.Before)
		}
		break
	}
	for _, at := range s.log.alive {
		if at < end {
			ts = max(ts, at)
		}
	}
	return ts
}

// piece is a time in which the row with a key has the versions of one source.
type piece struct {
	src      *history
	from, to mvcc.Timestamp
}

func (r *run) addPieces(dst *[]piece) {
	for _, s := range r.spans {
		if to := min(s.to, r.cut); s.known && s.from < to {
			*dst = append(*dst, piece{r.src, s.from, to})
		}
	}
}

// sortPieces sorts pieces, newest first, and makes them disjoint.
func (m *Merge) sortPieces() {
	slices.SortStableFunc(m.pieces, func(a, b piece) int { return cmp.Compare(b.to, a.to) })
	kept, end := m.pieces[:0], mvcc.Max
	for _, p := range m.pieces {
		if p.to = min(p.to, end); p.from < p.to {
			kept, end = append(kept, p), p.from
		}
	}
	m.pieces = kept
}

// seek makes the state of the source the one before the end of the piece.
func (p *piece) seek() {
	var touched []int
	for p.src.next < len(p.src.steps) && p.src.steps[p.src.next].ts >= p.to {
		p.src.earlier(&touched)
	}
}
