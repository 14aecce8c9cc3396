package conflict

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/internal/seedtest"
	"github.com/oribi-db/oribi/mvcc"
)

// TestChangesAreFoundInReadSets compares the log and read sets with lists of changes, keys, and
// ranges.
func TestChangesAreFoundInReadSets(t *testing.T) {
	rng := seedtest.Rand(t)
	key := func() []byte { return fmt.Appendf(nil, "%02d", rng.IntN(50))[:1+rng.IntN(2)] }
	for range 300 {
		log := NewLog(1 << 40)
		must.Get(log.Begin(func() (mvcc.Timestamp, error) { return 1, nil }))(t)
		var all []Change
		for i := range rng.IntN(40) {
			c := Change{Timestamp: mvcc.Timestamp(10 + i/3), Table: uint32(1 + rng.IntN(2)), Key: key()}
			log.Add(c.Timestamp, c.Table, c.Key)
			all = append(all, c)
		}
		var reads ReadSet
		type span struct{ lower, upper []byte }
		spans := map[uint32][]span{}
		for range rng.IntN(4) {
			table, s := uint32(1+rng.IntN(2)), span{key(), key()}
			if rng.IntN(4) == 0 {
				s.upper = nil
			}
			spans[table] = append(spans[table], s)
			if rng.IntN(2) == 0 {
				reads.AddRange(table, s.lower, s.upper)
			} else {
				reads.AddRange(table, nil, nil).Narrow(s.lower, s.upper)
			}
			k := key()
			reads.AddKey(table, k)
			spans[table] = append(spans[table], span{k, append(bytes.Clone(k), 0)})
		}
		contains := func(c Change) bool {
			for _, s := range spans[c.Table] {
				if bytes.Compare(c.Key, s.lower) >= 0 && (s.upper == nil || bytes.Compare(c.Key, s.upper) < 0) {
					return true
				}
			}
			return false
		}
		after := mvcc.Timestamp(5 + rng.IntN(20))
		want := false
		for _, c := range all {
			must.Equal(t, reads.Contains(c.Table, c.Key), contains(c),
				"contains table", c.Table, "key", c.Key, spans[c.Table])
			want = want || c.Timestamp > after && contains(c)
		}
		if c, got := log.Since(after).In(&reads); got != want || got && (c.Timestamp <= after || !contains(c)) {
			t.Fatalf("changes after %d: %v, %v, want %v", after, c, got, want)
		}
		for table := range spans {
			var last *Range
			for _, r := range reads.Ranges(table) {
				if last != nil && (last.Upper == nil || bytes.Compare(last.Upper, r.Lower) >= 0) {
					t.Fatalf("ranges [%q, %q) and [%q, %q) of one read set", last.Lower, last.Upper, r.Lower, r.Upper)
				}
				last = &r
			}
		}
	}
}

func TestLogForgetsTheOldestChanges(t *testing.T) {
	log := NewLog(1 << 20)
	since, err := log.Begin(func() (mvcc.Timestamp, error) { return 7, nil })
	if err != nil || since != 7 || !log.Recording() {
		t.Fatalf("begin: complete above %d, %v, recording %v, want 7", since, err, log.Recording())
	}
	var reads ReadSet
	reads.AddKey(1, []byte("key 99999"))
	const n = 100_000
	for i := range n {
		log.Add(mvcc.Timestamp(10+i), 1, fmt.Appendf(nil, "key %d", i))
	}
	if log.bytes > 1<<20 {
		t.Errorf("the log takes %d bytes, limit %d", log.bytes, 1<<20)
	}
	changes := log.Since(9)
	if c, ok := changes.In(&reads); !ok || c.Timestamp != 10+99999 || changes.Newest(0) != 10+n-1 {
		t.Errorf("newest change: %v, %v, newest timestamp %d", c, ok, changes.Newest(0))
	}
	first := changes.parts[len(changes.parts)-1][0].Timestamp
	if changes.Complete != first-1 || first == 10 {
		t.Errorf("complete above %d, the first change is at %d", changes.Complete, first)
	}
	if !log.Room(mostChanges) || log.Room(mostChanges+1) || !log.Recording() {
		t.Error("the log of a transaction lists the keys of a large batch, or omits the keys of a small one")
	}
	log.End()
	log.Room(1)
	must.Equal(t, log.Recording(), false, "a log without transactions goes on recording")
}

func TestUnknownChangesAreThoseOfTablesThatWereRead(t *testing.T) {
	log := NewLog(1 << 20)
	must.Get(log.Begin(func() (mvcc.Timestamp, error) { return 1, nil }))(t)
	var reads ReadSet
	reads.AddKey(2, nil)
	for i, table := range []uint32{1, 2, 2, 3} {
		log.AddUnknown(mvcc.Timestamp(10+i), table)
	}
	got := log.Since(5).Unknown(&reads)
	must.Equal(t, len(got), 1, "unknown changes")
	must.Equal(t, got[2], 12, "unknown changes")
	if _, ok := log.Since(5).In(&reads); ok {
		t.Error("an unknown change was taken for one of the empty key")
	}
}
