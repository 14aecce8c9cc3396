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

// StoreDigest returns the hash of a table's rows as of ts, read by an ordered scan, and their
// number. mvcc.Max reads the newest state.
func StoreDigest(ctx context.Context, t *oribi.Table, ts mvcc.Timestamp) (sum [16]byte, rows int64, err error) {
	at := oribi.Latest()
	if ts != mvcc.Max {
		at = oribi.AsOf(ts)
	}
	return ScanDigest(ctx, t, at)
}

// ScanDigest returns the hash of all rows that an ordered scan of all columns returns, and their
// number.
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

// Survey records the contents of a store opened after a crash: for each table the hashes of its
// rows at some timestamps.
type Survey struct {
	Timestamps []mvcc.Timestamp        // ascending; the last is mvcc.Max, the newest state
	Tables     map[string][][16]byte   // by name; hash i is that at Timestamps[i]
	skip       map[mvcc.Timestamp]bool // too old, or ahead of the clock of a read-only store: no hash
	Future     map[mvcc.Timestamp]bool // ahead of a writer's clock: no batch is at or above it
	Rows       int64

	now mvcc.Timestamp // the present time of the store
}

// SurveyStore reads all tables of a store at all the given timestamps.
func SurveyStore(s *oribi.Store, timestamps []mvcc.Timestamp) (*Survey, error) {
	v := &Survey{Timestamps: timestamps, Tables: map[string][][16]byte{}, skip: map[mvcc.Timestamp]bool{},
		Future: map[mvcc.Timestamp]bool{}}
	sn, err := s.Snapshot(context.Background())
	if err != nil {
		return nil, err
	}
	v.now = sn.Timestamp()
	sn.Close()
	for _, t := range s.Tables() {
		sums := make([][16]byte, len(timestamps))
		for i, ts := range timestamps {
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

// SurveyTimestamps returns the timestamps for a survey that decides how many commits after the
// first n survived: the timestamps of the n-th commit and all later ones, and mvcc.Max.
func (m *Model) SurveyTimestamps(n int) []mvcc.Timestamp {
	var out []mvcc.Timestamp
	for _, c := range m.Commits[max(n-1, 0):] {
		out = append(out, c.TS)
	}
	return append(out, mvcc.Max)
}

// Ordered returns timestamps in the order of a survey, each once.
func Ordered(timestamps []mvcc.Timestamp) []mvcc.Timestamp {
	slices.Sort(timestamps)
	return slices.Compact(timestamps)
}

// Compare returns an error unless a survey shows exactly the first n commits. The table unsure may
// be present or absent.
func (m *Model) Compare(v *Survey, n int, unsure string) error {
	last := mvcc.Min
	if n > 0 {
		last = m.Commits[n-1].TS
	}
	for name, sums := range v.Tables {
		switch {
		case m.Tables[name] != nil:
		case name != unsure:
			return fmt.Errorf("unexpected table %s", name)
		case slices.ContainsFunc(sums, func(sum [16]byte) bool { return sum != NewDigest().Sum() }):
			return fmt.Errorf("table %s has rows, but its creation had not returned", name)
		}
	}
	for name, t := range m.Tables {
		sums, ok := v.Tables[name]
		if !ok && name != unsure {
			return fmt.Errorf("table %s is missing", name)
		}
		for i, sum := range sums {
			ts := v.Timestamps[i]
			switch {
			case v.Future[ts] && ts <= last:
				return fmt.Errorf("table %s: a read at %d is ahead of the clock", name, uint64(ts))
			case v.skip[ts] || v.Future[ts]:
				continue
			}
			if sum != t.digestIn(v, ts, last) {
				return fmt.Errorf("table %s differs at %d", name, uint64(ts))
			}
		}
	}
	return nil
}

// digestIn returns the hash of the rows at a timestamp of a survey, without commits after last.
func (t *Table) digestIn(v *Survey, ts, last mvcc.Timestamp) [16]byte {
	stored := min(ts, last)
	if len(t.rules) == 0 {
		return t.Digest(stored)
	}
	if ts == mvcc.Max {
		ts = v.now
	}
	return t.digestAt(stored, ts)
}

// Survivors returns how many commits a survey shows: at least n, at most all and the one in flight,
// which is nil when there was none. Trailing commits that changed nothing leave no trace, so
// Survivors returns the smallest number that matches.
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
			whole = err // in the end the error with k = all
		}
	}
	return 0, fmt.Errorf("the rows match no number of commits from %d to %d; compared with the first %d: %w",
		n, len(m.Commits), all, whole)
}

// Verified runs the store's deep Verify and returns its error, else its first finding as an
// ErrCorrupt.
func Verified(s *oribi.Store) error {
	var found error
	err := s.VerifyDeep(context.Background(), func(f oribi.Finding) {
		if found == nil {
			found = fmt.Errorf("verify: %+v: %w", f, oribi.ErrCorrupt)
		}
	})
	if err == nil {
		err = found
	}
	return err
}

// SampleTimestamps returns mvcc.Max and, unless there are no commits, the timestamp of a random
// commit.
func (m *Model) SampleTimestamps(rng *rand.Rand) []mvcc.Timestamp {
	if len(m.Commits) == 0 {
		return []mvcc.Timestamp{mvcc.Max}
	}
	return []mvcc.Timestamp{m.Commits[rng.IntN(len(m.Commits))].TS, mvcc.Max}
}
