package mvcc

import (
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/internal/seedtest"
)

// wallClock is a wall clock that a test sets.
type wallClock struct{ now time.Time }

func (w *wallClock) read() time.Time { return w.now }

var noon = time.UnixMicro(1700000000000000)

func TestTimestampIsMicrosecondsAndALogicalPart(t *testing.T) {
	// Tablet spec §4.1.
	if ts := FromTime(noon); ts != 0x60a24181e4000000 {
		t.Errorf("FromTime(1700000000000000 µs) = %x", uint64(ts))
	}
	if ts := EndOf(noon); ts != 0x60a24181e4000fff {
		t.Errorf("EndOf = %x", uint64(ts))
	}
	if got := FromTime(noon).Time(); !got.Equal(noon) {
		t.Errorf("Time() = %v, want %v", got, noon)
	}
	must.Equal(t, FromTime(time.Unix(-1, 0)), Min, "before 1970")
	must.Equal(t, FromTime(time.UnixMicro(1<<52)), Max, "beyond the last timestamp")
}

// now returns the clock's next timestamp.
func now(t rapid.TB, c Clock) Timestamp {
	t.Helper()
	return must.Get(c.Now())(t)
}

// A clock past the last timestamp returns an error, repeatedly, and never a timestamp beyond Last.
func TestClockPastTheLastTimestampReturnsError(t *testing.T) {
	wall := &wallClock{time.Date(2112, 9, 18, 0, 0, 0, 0, time.UTC)}
	late := NewHybridClock(wall.read)
	restored := NewHybridClock(nil)
	restored.Restore(Last)
	spent := NewLogicalClock(Last)
	must.Equal(t, now(t, spent), Last, "last timestamp of a logical clock")
	for name, c := range map[string]Clock{"wall clock in 2112": late, "restored to Last": restored,
		"counted to Last": spent} {
		for range 2 {
			if ts, err := c.Now(); err == nil {
				t.Errorf("%s: Now returns %d, want an error", name, ts)
			}
		}
	}
	wall.now = noon
	must.Equal(t, now(t, late), FromTime(noon), "after the wall clock was corrected")
}

func TestHybridClockAscendsWhateverTheWallClockDoes(t *testing.T) {
	wall := &wallClock{noon}
	c := NewHybridClock(wall.read)
	last := Min
	step := func(what string) Timestamp {
		ts := now(t, c)
		if ts <= last {
			t.Fatalf("%s: %d after %d", what, ts, last)
		}
		last = ts
		return ts
	}
	must.Equal(t, step("first"), FromTime(noon), "first timestamp")
	for range 5000 { // more than the logical part can count
		step("standing wall clock")
	}
	must.Equal(t, last.Time().After(noon), true, "the logical part did not run over", last)
	wall.now = noon.Add(-time.Hour)
	step("wall clock set back")
	wall.now = noon.Add(time.Hour)
	must.Equal(t, step("wall clock ahead"), FromTime(wall.now), "timestamp")
}

func TestHybridClockAdvancesAtMostTenSeconds(t *testing.T) {
	wall := &wallClock{noon}
	c := NewHybridClock(wall.read)
	limit := EndOf(noon.Add(MaxAhead))

	must.Fail(t, c.Advance(limit+1), fault.ErrFuture, "Advance beyond the bound")
	must.Equal(t, now(t, c), FromTime(noon), "a refused Advance moved the clock to")
	must.Do(t, c.Advance(limit), "Advance to the bound")
	must.Equal(t, now(t, c), limit+1, "after Advance")
	must.Do(t, c.Advance(FromTime(noon)), "Advance into the past")
	must.Equal(t, now(t, c), limit+2, "Advance into the past moved the clock to")
}

func TestRestoredClockStaysAheadOfTheWallClock(t *testing.T) {
	wall := &wallClock{noon}
	c := NewHybridClock(wall.read)
	far := FromTime(noon.Add(24 * 365 * time.Hour))
	c.Restore(far)
	must.Equal(t, now(t, c), far+1, "after Restore")
	// The clock is beyond it anyway, so a read at it is not refused although it is a year ahead.
	must.Do(t, c.Advance(far), "Advance to a timestamp before the clock")
	c.Restore(First)
	must.Equal(t, now(t, c), far+2, "Restore lowered the clock to")
}

func TestLogicalClockCounts(t *testing.T) {
	c := NewLogicalClock(0)
	must.Equal(t, now(t, c), First, "counted")
	must.Equal(t, now(t, c), First+1)
	must.Do(t, c.Advance(99))
	must.Equal(t, now(t, c), 100, "after Advance(99)")
	must.Fail(t, c.Advance(Last), fault.ErrFuture, "Advance that leaves no timestamp")
	if c.Physical() || !NewHybridClock(nil).Physical() {
		t.Error("only the hybrid clock has a physical part")
	}
}

func TestClocksGiveDistinctTimestampsToManyGoroutines(t *testing.T) {
	for name, c := range map[string]Clock{"hybrid": NewHybridClock(nil), "logical": NewLogicalClock(1)} {
		t.Run(name, func(t *testing.T) {
			const workers, each = 4, 2000
			got := make([][]Timestamp, workers)
			var wg sync.WaitGroup
			for w := range workers {
				wg.Go(func() {
					for range each {
						ts, err := c.Now()
						if err != nil {
							t.Error(err)
							return
						}
						got[w] = append(got[w], ts)
					}
				})
			}
			wg.Wait()
			seen := make(map[Timestamp]bool)
			for _, list := range got {
				for i, ts := range list {
					if seen[ts] || i > 0 && ts <= list[i-1] {
						t.Fatalf("timestamp %d twice or falling", ts)
					}
					seen[ts] = true
				}
			}
		})
	}
}

// TestClockContract tests both clocks with random calls against the documentation of Clock.
func TestClockContract(t *testing.T) {
	seedtest.Check(t, func(t *rapid.T) {
		wall := &wallClock{noon}
		var c Clock = NewHybridClock(wall.read)
		if rapid.Bool().Draw(t, "logical") {
			c = NewLogicalClock(FromTime(noon))
		}
		above := Min // Now must return more than this
		near := rapid.Custom(func(t *rapid.T) Timestamp {
			return FromTime(noon.Add(time.Duration(rapid.Int64Range(-30e6, 30e6).Draw(t, "µs")) * time.Microsecond))
		})
		t.Repeat(map[string]func(*rapid.T){
			"now": func(t *rapid.T) {
				ts := now(t, c)
				if ts <= above {
					t.Fatalf("Now() = %v, want more than %v", ts, above)
				}
				above = ts
			},
			"wall": func(t *rapid.T) { wall.now = near.Draw(t, "to").Time() },
			"advance": func(t *rapid.T) {
				ts := near.Draw(t, "ts")
				err := c.Advance(ts)
				tooFar := c.Physical() && ts > EndOf(wall.now.Add(MaxAhead)) && ts > above
				switch {
				case err == nil && tooFar:
					t.Fatalf("Advance(%v) passed with the wall clock at %v", ts, wall.now)
				case err != nil && !tooFar:
					t.Fatalf("Advance(%v) with the wall clock at %v: %v", ts, wall.now, err)
				case err == nil:
					above = max(above, ts)
				}
			},
			"restore": func(t *rapid.T) {
				ts := near.Draw(t, "ts")
				c.Restore(ts)
				above = max(above, ts)
			},
		})
	})
}
