package storetest

import (
	"runtime"
	"testing"
	"time"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/internal/prooftest/followers"
)

// needFollowers skips a test where there are no followers.
func needFollowers(t testing.TB) {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("needs Options.Follow, which has no effect on Windows: open files cannot be removed there")
	}
}

// interleave runs all ways to interleave a trace, and returns their counts.
func interleave(
	t *testing.T, trace func(*followers.Trace), o oribi.Options, ways ...followers.Pause,
) (total followers.Counts) {
	t.Helper()
	for _, p := range ways {
		c, _, err := followers.Interleave(trace, o, p)
		total.Add(c)
		must.Do(t, err)
	}
	t.Logf("%+v", total)
	return total
}

// A follower that is opened or refreshed between any two file operations of a writer sees a state
// of that moment, at once: nothing that a writer leaves between two operations is an error, and
// makes the follower try again.
func TestFollowerLooksAfterEachOperationOfAWriter(t *testing.T) {
	needFollowers(t)
	for _, open := range []bool{true, false} {
		c := interleave(t, followers.All, oribi.Options{}, followers.Pause{Between: 1, Open: open})
		if c.Retries > 0 || c.Locked > 0 {
			t.Errorf("open=%v: %d retries, %d times ErrLocked", open, c.Retries, c.Locked)
		}
		if n := c.Opens + c.Refreshes; n < 200 || n < c.Operations-2 {
			t.Errorf("open=%v: %d looks at %d operations", open, n, c.Operations)
		}
	}
}

// The writer goes on for some operations before each operation of an open or refresh, which begins
// after each operation of the writer. The test takes part of all ways to do that; the others are in
// the campaign of package followers.
func TestWriterGoesOnWithinEachOperationOfAFollower(t *testing.T) {
	needFollowers(t)
	all := followers.Pauses(80)
	every := 17
	if testing.Short() {
		every = 71
	}
	var ways []followers.Pause
	for i := 0; i < len(all); i += every {
		ways = append(ways, all[i])
	}
	for _, lag := range []time.Duration{0, -1} {
		c := interleave(t, followers.Short, oribi.Options{FollowerLag: lag}, ways...)
		if c.Inside == 0 || c.Locked > 0 {
			t.Errorf("%+v", c)
		}
	}
}

// Random traces, with a follower that is looked at at random moments. Its snapshots keep their
// state.
func TestFollowerOfRandomTraces(t *testing.T) {
	needFollowers(t)
	seeds, steps := uint64(6), 300
	if testing.Short() {
		seeds, steps = 3, 150
	}
	var total followers.Counts
	for seed := range seeds {
		c, err := followers.Explore(seed, steps)
		total.Add(c)
		must.Do(t, err, "seed", seed)
	}
	t.Logf("%+v", total)
}

// A disk that is full now and then, power cuts, and damage.
func TestFollowerOnFailingDisk(t *testing.T) {
	needFollowers(t)
	var total followers.Counts
	for seed := range uint64(3) {
		c, err := followers.Harm(seed, 100)
		total.Add(c)
		must.Do(t, err, "seed", seed)
	}
	if total.Full == 0 || total.Cuts == 0 || total.Damaged == 0 {
		t.Errorf("%+v", total)
	}
	t.Logf("%+v", total)
}

// A writer and followers at once.
func TestFollowersNextToWriter(t *testing.T) {
	needFollowers(t)
	c := must.Get(followers.Rush(1, 3, time.Second))(t)
	if c.Refreshes == 0 || c.Opens == 0 {
		t.Errorf("%+v", c)
	}
	t.Logf("%+v", c)
}

// A writer and followers in processes of their own, of which one after the other is killed.
func TestFollowersInProcesses(t *testing.T) {
	needFollowers(t)
	within := 3 * time.Second
	if testing.Short() {
		within = time.Second
	}
	c := must.Get(followers.Processes(t.TempDir(), 1, 3, within))(t)
	if c.Refreshes == 0 || c.Opens == 0 || c.Kills == 0 {
		t.Errorf("%+v", c)
	}
	t.Logf("%+v", c)
}
