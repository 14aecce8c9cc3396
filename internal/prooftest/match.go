package prooftest

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/mvcc"
)

// storeDigest is the hash of a table's rows as of a timestamp, mvcc.Max for the newest state, read
// by an ordered scan.
func storeDigest(ctx context.Context, t *oribi.Table, ts mvcc.Timestamp) (sum [16]byte, rows int64, err error) {
	var opts []oribi.ReadOption
	if ts != mvcc.Max {
		opts = append(opts, oribi.AsOf(ts))
	}
	return scanDigest(ctx, t, opts...)
}

// scanDigest is the hash of what an ordered scan of all columns gives.
func scanDigest(ctx context.Context, t *oribi.Table, opts ...oribi.ReadOption) (sum [16]byte, rows int64, err error) {
	d := newDigest()
	var cells [][]byte
	for b, err := range t.Scan(ctx, opts...).Batches() {
		if err != nil {
			return sum, rows, err
		}
		cells = slices.Grow(cells[:0], len(b.Columns))[:len(b.Columns)]
		for i := b.Selection.Next(0); i >= 0; i = b.Selection.Next(i + 1) {
			for c, v := range b.Columns {
				cells[c] = v.Cell(i)
			}
			d.row(cells)
			rows++
		}
	}
	return d.sum(), rows, nil
}

// survey is what a store that was opened after a crash holds: of each table the hashes at some
// timestamps.
type survey struct {
	moments []mvcc.Timestamp // rising; the last is mvcc.Max, the newest state
	tables  map[string][][16]byte
	skip    map[mvcc.Timestamp]bool // refused as too old, or by a reader whose wall clock went back
	future  map[mvcc.Timestamp]bool // refused as ahead of the clock: no batch at or behind it is there
	rows    int64
}

// surveyStore reads all tables at all moments.
func surveyStore(s *oribi.Store, moments []mvcc.Timestamp) (*survey, error) {
	v := &survey{moments: moments, tables: map[string][][16]byte{}, skip: map[mvcc.Timestamp]bool{}, future: map[mvcc.Timestamp]bool{}}
	for _, t := range s.Tables() {
		sums := make([][16]byte, len(moments))
		for i, ts := range moments {
			sum, n, err := storeDigest(context.Background(), t, ts)
			switch {
			case errors.Is(err, oribi.ErrTooOld), errors.Is(err, oribi.ErrFuture) && s.ReadOnly():
				v.skip[ts] = true
			case errors.Is(err, oribi.ErrFuture):
				v.future[ts] = true
			case err != nil:
				return nil, fmt.Errorf("table %s at %d: %w", t.Name(), uint64(ts), err)
			}
			sums[i] = sum
			v.rows += n
		}
		v.tables[t.Name()] = sums
	}
	return v, nil
}

// moments are the timestamps at which a survey looks: those of the commits from the n-th on, the
// one before, and now.
func (m *Model) moments(n int) []mvcc.Timestamp {
	var out []mvcc.Timestamp
	for _, c := range m.Commits[max(n-1, 0):] {
		out = append(out, c.TS)
	}
	return append(out, mvcc.Max)
}

// compare tells whether a survey shows exactly the first n commits. unsure is a table that may be
// there or not.
func (m *Model) compare(v *survey, n int, unsure string) error {
	last := mvcc.Min
	if n > 0 {
		last = m.Commits[n-1].TS
	}
	for name, sums := range v.tables {
		switch {
		case m.Tables[name] != nil:
		case name != unsure:
			return fmt.Errorf("table %s is there", name)
		case slices.ContainsFunc(sums, func(sum [16]byte) bool { return sum != newDigest().sum() }):
			return fmt.Errorf("table %s, which was about to be made, has rows", name)
		}
	}
	for name, t := range m.Tables {
		sums, ok := v.tables[name]
		if !ok && name != unsure {
			return fmt.Errorf("table %s is missing", name)
		}
		for i, sum := range sums {
			ts := v.moments[i]
			switch {
			case v.future[ts] && ts <= last:
				return fmt.Errorf("table %s: a read at %d is ahead of the clock", name, uint64(ts))
			case v.skip[ts] || v.future[ts]:
				continue
			}
			if sum != t.digest(min(ts, last)) {
				return fmt.Errorf("table %s differs at %d", name, uint64(ts))
			}
		}
	}
	return nil
}

// survivors finds out how many commits a survey shows, at least n of them and possibly one more
// that was in flight, as the last. Commits at the end that changed nothing are not told from none:
// the smallest number that fits counts.
func (m *Model) survivors(v *survey, n int, inFlight *outcome, unsure string) (int, error) {
	all := len(m.Commits)
	if inFlight != nil {
		m.commit(inFlight, mvcc.Max-1)
		defer m.truncate(all)
	}
	var whole error
	for k := n; k <= len(m.Commits); k++ {
		err := m.compare(v, k, unsure)
		if err == nil {
			return k, nil
		}
		if k <= all || whole == nil {
			whole = err // compared with all of them, in the end
		}
	}
	return 0, fmt.Errorf("the rows are not those of the first %d to %d commits; against the first %d: %w", n, len(m.Commits), all, whole)
}

// verify has the store check itself.
func (r *Runner) verify() error { return verified(r.store) }

func verified(s *oribi.Store) error {
	var found error
	err := s.Verify(background, func(f oribi.Finding) {
		if found == nil {
			found = fmt.Errorf("verify: %+v: %w", f, oribi.ErrCorrupt)
		}
	})
	if err == nil {
		err = found
	}
	return err
}

// check compares all rows of all tables, now and at the step's timestamp, and the counts.
func (r *Runner) check(st *Step) error {
	names := []string{}
	for _, t := range r.store.Tables() {
		names = append(names, t.Name())
	}
	if !slices.Equal(names, r.Model.Names()) {
		return fmt.Errorf("tables %v, want %v", names, r.Model.Names())
	}
	for _, name := range names {
		for _, rd := range []Read{{Limit: -1}, st.Read} {
			rd.Columns, rd.Limit = nil, -1
			if err := r.find(&Step{Table: name, Read: rd}); err != nil {
				return fmt.Errorf("table %s: %w", name, err)
			}
		}
		if err := r.count(&Step{Table: name, Read: Read{Limit: -1}}); err != nil {
			return fmt.Errorf("table %s: %w", name, err)
		}
	}
	return nil
}
