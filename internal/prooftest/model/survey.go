package model

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/mvcc"
)

// StoreDigest is the hash of a table's rows as of a timestamp, mvcc.Max for the newest state, read
// by an ordered scan.
func StoreDigest(ctx context.Context, t *oribi.Table, ts mvcc.Timestamp) (sum [16]byte, rows int64, err error) {
	at := oribi.Latest()
	if ts != mvcc.Max {
		at = oribi.AsOf(ts)
	}
	return ScanDigest(ctx, t, at)
}

// ScanDigest is the hash of what an ordered scan of all columns gives.
func ScanDigest(ctx context.Context, t *oribi.Table, at oribi.ReadOption) (sum [16]byte, rows int64, err error) {
	d := NewDigest()
	var cells [][]byte
	for b, err := range t.Scan(ctx, at).Batches() {
		if err != nil {
			return sum, rows, err
		}
		cells = slices.Grow(cells[:0], len(b.Columns))[:len(b.Columns)]
		for i := b.Selection.Next(0); i >= 0; i = b.Selection.Next(i + 1) {
			for c, v := range b.Columns {
				cells[c] = v.Cell(i)
			}
			d.Row(cells)
			rows++
		}
	}
	return d.Sum(), rows, nil
}

// Survey is what a store that was opened after a crash holds: of each table the hashes at some
// timestamps.
type Survey struct {
	Moments []mvcc.Timestamp // rising; the last is mvcc.Max, the newest state
	Tables  map[string][][16]byte
	skip    map[mvcc.Timestamp]bool // refused as too old, or by a reader whose wall clock went back
	Future  map[mvcc.Timestamp]bool // refused as ahead of the clock: no batch at or behind it is there
	Rows    int64
}

// SurveyStore reads all tables at all moments.
func SurveyStore(s *oribi.Store, moments []mvcc.Timestamp) (*Survey, error) {
	v := &Survey{Moments: moments, Tables: map[string][][16]byte{}, skip: map[mvcc.Timestamp]bool{}, Future: map[mvcc.Timestamp]bool{}}
	for _, t := range s.Tables() {
		sums := make([][16]byte, len(moments))
		for i, ts := range moments {
			sum, n, err := StoreDigest(context.Background(), t, ts)
			switch {
			case errors.Is(err, oribi.ErrTooOld), errors.Is(err, oribi.ErrFuture) && s.ReadOnly():
				v.skip[ts] = true
			case errors.Is(err, oribi.ErrFuture):
				v.Future[ts] = true
			case err != nil:
				return nil, fmt.Errorf("table %s at %d: %w", t.Name(), uint64(ts), err)
			}
			sums[i] = sum
			v.Rows += n
		}
		v.Tables[t.Name()] = sums
	}
	return v, nil
}

// Moments are the timestamps at which a survey looks: those of the commits from the n-th on, the
// one before, and now.
func (m *Model) Moments(n int) []mvcc.Timestamp {
	var out []mvcc.Timestamp
	for _, c := range m.Commits[max(n-1, 0):] {
		out = append(out, c.TS)
	}
	return append(out, mvcc.Max)
}

// Compare reports whether a survey shows exactly the first n commits. unsure is a table that may be
// there or not.
func (m *Model) Compare(v *Survey, n int, unsure string) error {
	last := mvcc.Min
	if n > 0 {
		last = m.Commits[n-1].TS
	}
	for name, sums := range v.Tables {
		switch {
		case m.Tables[name] != nil:
		case name != unsure:
			return fmt.Errorf("table %s is there", name)
		case slices.ContainsFunc(sums, func(sum [16]byte) bool { return sum != NewDigest().Sum() }):
			return fmt.Errorf("table %s, which was about to be made, has rows", name)
		}
	}
	for name, t := range m.Tables {
		sums, ok := v.Tables[name]
		if !ok && name != unsure {
			return fmt.Errorf("table %s is missing", name)
		}
		for i, sum := range sums {
			ts := v.Moments[i]
			switch {
			case v.Future[ts] && ts <= last:
				return fmt.Errorf("table %s: a read at %d is ahead of the clock", name, uint64(ts))
			case v.skip[ts] || v.Future[ts]:
				continue
			}
			if sum != t.Digest(min(ts, last)) {
				return fmt.Errorf("table %s differs at %d", name, uint64(ts))
			}
		}
	}
	return nil
}

// Survivors finds out how many commits a survey shows, at least n of them and possibly one more
// that was in flight, as the last. Commits at the end that changed nothing are not told from none:
// the smallest number that fits counts.
func (m *Model) Survivors(v *Survey, n int, inFlight *Outcome, unsure string) (int, error) {
	all := len(m.Commits)
	if inFlight != nil {
		m.Commit(inFlight, mvcc.Max-1)
		defer m.Truncate(all)
	}
	var whole error
	for k := n; k <= len(m.Commits); k++ {
		err := m.Compare(v, k, unsure)
		if err == nil {
			return k, nil
		}
		if k <= all || whole == nil {
			whole = err // compared with all of them, in the end
		}
	}
	return 0, fmt.Errorf("the rows are not those of the first %d to %d commits; against the first %d: %w", n, len(m.Commits), all, whole)
}

// Verified has a store verify itself and returns the first finding.
func Verified(s *oribi.Store) error {
	var found error
	err := s.Verify(context.Background(), func(f oribi.Finding) {
		if found == nil {
			found = fmt.Errorf("verify: %+v: %w", f, oribi.ErrCorrupt)
		}
	})
	if err == nil {
		err = found
	}
	return err
}

// SomeMoments are the timestamp of a commit, and now.
func (m *Model) SomeMoments(rng *rand.Rand) []mvcc.Timestamp {
	if len(m.Commits) == 0 {
		return []mvcc.Timestamp{mvcc.Max}
	}
	return []mvcc.Timestamp{m.Commits[rng.IntN(len(m.Commits))].TS, mvcc.Max}
}
