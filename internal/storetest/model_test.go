package storetest

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/internal/prooftest/history"
	"github.com/oribi-db/oribi/internal/prooftest/script"
	"github.com/oribi-db/oribi/internal/seedtest"
	"github.com/oribi-db/oribi/vfs"
)

var (
	forFlag    = flag.Duration("proof.for", 0, "how long each random test runs; 0 takes its default")
	scriptFlag = flag.String("proof.script", "", "a file with a history to run again")
)

// proofTime returns how long a random test runs: as set by -proof.for, otherwise for a third of d,
// with $ORIBI_FULL for a second or for d if it is longer.
func proofTime(d time.Duration) time.Duration {
	switch {
	case *forFlag > 0:
		return *forFlag
	case seedtest.Full():
		return max(d, time.Second)
	}
	return d / 3
}

// explore runs histories with consecutive seeds until the time is over, and adds up their counts.
func explore(
	t *testing.T, seed uint64, d time.Duration, steps int64, settings func(uint64) script.Settings,
) (total history.Counts) {
	t.Helper()
	end := time.Now().Add(d)
	histories := 0
	for ; time.Now().Before(end); seed++ {
		r := history.Explore(settings(seed), func(c history.Counts) bool {
			return c.Steps < steps && time.Now().Before(end)
		})
		total.Add(r.Counts)
		histories++
		if r.Err != nil {
			t.Fatal(failure(seed, r.Err, history.Shrink(r.Script, 20*time.Second)))
		}
	}
	t.Logf("%d histories: %+v", histories, total)
	return total
}

// page is the maximum number of bytes that a failing test prints of an error, and of a history.
const page = 3 << 10

// failure returns the message of a failing test: the seed, the error, and the history, or the name
// of a file with the history if it is longer than page.
func failure(seed uint64, err error, s *script.Script) string {
	text := err.Error()
	if len(text) > page {
		text = text[:page] + "…"
	}
	return fmt.Sprintf("-seed=%d: %s\n%s", seed, text, scriptText(s))
}

// failures counts the failed cases of a test.
type failures int

// check fails the test if err is not nil, and stops it at the tenth failure.
func (f *failures) check(t *testing.T, seed uint64, what any, err error) {
	t.Helper()
	if err == nil {
		return
	}
	t.Errorf("-seed=%d: %v: %.300v", seed, what, err)
	if *f++; *f == 10 {
		t.FailNow()
	}
}

// scriptText returns the text of a script, or the name of a file with it.
func scriptText(s *script.Script) string {
	text := s.String()
	if len(text) < page {
		return "the history, which -proof.script=FILE runs again:\n" + text
	}
	f, err := os.CreateTemp("", "oribi-*.script")
	if err == nil {
		_, err = f.WriteString(text)
		err = errors.Join(err, f.Close())
	}
	if err != nil {
		return err.Error()
	}
	return "to run the history again: -proof.script=" + f.Name()
}

// Random histories: write batches with all eight operations over several tables of all types;
// flushes, merges of any rowsets, clean reopenings, kills, power cuts, torn power cuts. Every read,
// at the newest and at past timestamps, must equal the read of a map from key to versions.
func TestRandomHistoriesMatchTheModel(t *testing.T) {
	explore(t, seedtest.Seed(t), proofTime(300*time.Millisecond), 1500, history.RandomSettings)
}

// The same with flushes and compactions in the background too, at times that are not repeatable.
func TestRandomHistoriesWithBackgroundWorkMatchTheModel(t *testing.T) {
	explore(t, seedtest.Seed(t), proofTime(250*time.Millisecond), 1500, history.BackgroundSettings)
}

// The same on the real file system, with its locks, syncs and holes, but without crashes, which it
// cannot simulate.
func TestRandomHistoriesOnDiskMatchTheModel(t *testing.T) {
	seed := seedtest.Seed(t)
	end := time.Now().Add(proofTime(300 * time.Millisecond))
	var total history.Counts
	for ; time.Now().Before(end); seed++ {
		r := history.NewDiskRunner(history.RandomSettings(seed), vfs.OS, filepath.Join(t.TempDir(), "store"))
		r.Explore(func(c history.Counts) bool { return c.Steps < 400 && time.Now().Before(end) })
		total.Add(r.Counts)
		if r.Err != nil {
			t.Fatal(failure(seed, r.Err, r.Script))
		}
	}
	t.Logf("%+v", total)
}

// One history runs under more than sixteen sets of options: sizes of MemRowSets, rowsets, caches
// and cblocks, encodings, policies, background work or none, batches synced or not, rows never or
// constantly compacted. All give the same answers, refusals and timestamps.
func TestOneHistoryGivesEqualAnswersUnderAllOptions(t *testing.T) {
	seed, steps := seedtest.Seed(t), int64(160)
	if testing.Short() {
		steps = 120
	}
	end := time.Now().Add(proofTime(300 * time.Millisecond))
	var total history.Counts
	for first := true; first || time.Now().Before(end); seed++ {
		first = false
		counts, failed, err := history.EqualAnswers(seed, steps)
		total.Add(counts)
		if err != nil {
			t.Fatal(failure(seed, err, failed))
		}
	}
	t.Logf("%+v", total)
}

// A history in a file is replayed: the output of a failing run, or a part of it.
func TestReplayHistoryFile(t *testing.T) {
	if *scriptFlag == "" {
		t.Skip("no -proof.script")
	}
	text := must.Get(os.ReadFile(*scriptFlag))(t)
	s := must.Get(script.Parse(string(text)))(t)
	must.Do(t, history.Run(s).Err)
}
