package prooftest

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"time"

	"github.com/oribi-db/oribi/internal/prooftest/crash"
	"github.com/oribi-db/oribi/internal/prooftest/damage"
	"github.com/oribi-db/oribi/internal/prooftest/faults"
	"github.com/oribi-db/oribi/internal/prooftest/followers"
	"github.com/oribi-db/oribi/internal/prooftest/harm"
	"github.com/oribi-db/oribi/internal/prooftest/history"
	"github.com/oribi-db/oribi/internal/prooftest/isolation"
	"github.com/oribi-db/oribi/internal/prooftest/kill"
	"github.com/oribi-db/oribi/internal/prooftest/large"
	"github.com/oribi-db/oribi/internal/prooftest/script"
	"github.com/oribi-db/oribi/vfs"
)

// Proof is one kind of random test, divided into seeds. A seed is deterministic except for
// background work.
type Proof struct {
	Name  string
	About string // one sentence
	// the number of seeds of an exhaustive proof: later seeds add nothing; 0 if every seed is new
	Seeds uint64
	// Run runs one seed, for a few seconds at most. Files that must be on a real disk go into dir,
	// which is empty.
	Run func(seed uint64, dir string) Result
}

// Result is the result of one seed.
type Result struct {
	Tallies []Tally
	Err     error          // the first failure
	Script  *script.Script // the steps; may be nil
	// Alone means that running the script alone reproduces the failure, and the script can be
	// shortened. Otherwise only the seed reproduces it.
	Alone bool
}

// Tally is a count of the work of a proof.
type Tally struct {
	N    int64
	Unit string // in the plural, without a comma
}

// Proofs returns all proofs over whole stores. The tests in storetest run them for seconds.
func Proofs() []Proof {
	return []Proof{
		{Name: "model", About: "Random histories in memory, with crashes. Each read is compared with a map from key " +
			"to versions.", Run: func(seed uint64, _ string) Result {
			return exploreOne(history.NewRunner(history.RandomSettings(seed)), 1500)
		}},
		{Name: "bulk", About: "Like model, with large write batches: many operations in little time.",
			Run: func(seed uint64, _ string) Result {
				return exploreOne(history.NewRunner(history.BulkSettings(seed)), 100)
			}},
		{Name: "background", About: "Like model, with flushes and compactions in the background.",
			Run: func(seed uint64, _ string) Result {
				r := exploreOne(history.NewRunner(history.BackgroundSettings(seed)), 1500)
				r.Alone = false // depends on the timing of background work
				return r
			}},
		{Name: "options", About: "One history under many sets of options, including background work. All answers " +
			"must be equal.", Run: func(seed uint64, _ string) Result {
			c, failed, err := history.EqualAnswers(seed, 400)
			return Result{Err: err, Script: failed, Tallies: tallies(&c)}
		}},
		{Name: "disk", About: "Like model, on the machine's file system, without crashes.",
			Run: func(seed uint64, dir string) Result {
				r := exploreOne(history.NewDiskRunner(history.RandomSettings(seed), vfs.OS,
					filepath.Join(dir, "store")), 400)
				r.Alone = false
				return r
			}},
		{Name: "crashes", About: "Kills, power cuts and torn power cuts at random disk changes. Each resulting store " +
			"is opened and compared.", Run: func(seed uint64, _ string) Result {
			return crashesOne(crash.RandomCrashes(seed))
		}},
		{Name: "inside", About: "Like crashes, with flushes and writes inside merges and delta compactions of the " +
			"same table.", Run: func(seed uint64, _ string) Result {
			return crashesOne(crash.RandomInside(seed))
		}},
		{Name: "states", About: "Crashes at random disk changes. Many possible disk states are opened: each unsynced " +
			"change lost, kept or torn, or a sync ignored.", Run: statesOne},
		{Name: "recovery", About: "Crashes at every disk change of a recovery, and of the recovery after that.",
			Run: recoveryOne},
		{Name: "sequences", About: "All sequences of three operations on a table of three keys, with a crash at " +
			"every disk change.", Run: sequencesOne},
		{Name: "damage", About: "One damaged byte in a closed store. Every answer must be correct or report the " +
			"damage.", Run: damageOne},
		{Name: "salvage", About: "Closed stores damaged in several places and salvaged. The new store must have " +
			"every row that the damaged one could return, no wrong value, and a report of what it lacks.",
			Run: salvageOne},
		{Name: "salvage-large", About: "Like salvage, of stores with ten thousands of rows in many rowsets with " +
			"several deltas.", Run: salvageLargeOne},
		{Name: "bits", About: "Every bit of a closed 1 MiB store flipped, one in 1,024 bits per seed. The flip must " +
			"be found or repaired, or the bit unused. Also bits of an open store that reads by chunk marks.", Run: bitsOne},
		{Name: "foreign", About: "One file of a store missing, truncated, extended, older, swapped or of another " +
			"store. Every answer must be correct or report the damage.", Run: foreignOne},
		{Name: "faults", About: "Every file system call of a trace fails, reads too, in every way a disk can fail. " +
			"No acknowledged batch may be lost.", Run: faultsOne},
		{Name: "isolation", About: "Concurrent transactions over lists and sets, with flushes and compactions. Some " +
			"order of them must explain all that they have read.", Run: isolationOne},
		{Name: "followers", About: "Followers next to a writer: all interleavings of short traces, random ones of " +
			"long traces, full disks, power cuts, damage, and killed processes.", Run: followersOne},
		{Name: "follower-pauses", About: "A follower and a short trace of its writer, in all interleavings in which " +
			"the writer goes on once within each open or refresh. They end after the last seed.",
			Seeds: followers.Slices, Run: func(seed uint64, _ string) Result {
				c, err := followers.Slice(seed - 1)
				return Result{Err: err, Tallies: followerTallies(&c)}
			}},
		{Name: "large", About: "Tables of 16 to 256 million rows on a real disk, loaded, scanned, read, updated, " +
			"followed, and backed up. Each answer is compared with the formula that makes the rows.",
			Seeds: uint64(len(large.Sizes)), Run: largeOne},
		{Name: "kill", About: "The real command killed repeatedly, at random times and at chosen system calls. No " +
			"acknowledged batch may be lost.", Run: killOne},
		{Name: "kudu", About: "Tables copied into a running Kudu cluster and back, with writers, alterations, cut " +
			"connections, lost and repeated answers, killed copies and servers, and new leaders. All copies must agree.",
			Run: harmOne},
	}
}

func exploreOne(r *history.Runner, steps int64) Result {
	r.Explore(func(c history.Counts) bool { return c.Steps < steps })
	return Result{Err: r.Err, Script: r.Script, Alone: true, Tallies: tallies(&r.Counts)}
}

func tallies(c *history.Counts) []Tally {
	return []Tally{{1, "histories"}, {c.Steps, "steps"}, {c.Batches, "batches"}, {c.Operations, "operations"},
		{c.Bulk, "bulk calls"}, {c.Transactions, "transactions"}, {c.Conflicts, "conflicts"}, {c.Reads, "reads"},
		{c.Flushes, "flushes"}, {c.Merges, "merges"}, {c.Crashes, "crashes"}}
}

func crashesOne(x crash.Crashes) Result {
	script, c, err := x.Run()
	return Result{Err: err, Script: script,
		Tallies: []Tally{{1, "histories"}, {c.Inside, "flushes inside compactions"},
			{c.Changes, "disk changes"}, {c.Kills, "kills"},
			{c.Cuts, "power cuts"}, {c.Torn, "torn power cuts"}, {c.Steps, "steps after recovery"}}}
}

func statesOne(seed uint64, _ string) Result {
	script, c, err := crash.RandomStates(seed).Run(time.Time{})
	return Result{Err: err, Script: script, Tallies: stateTallies(&c)}
}

func recoveryOne(seed uint64, _ string) Result {
	script, c, err := crash.RandomRecoveries(seed).Run(time.Time{})
	return Result{Err: err, Script: script, Tallies: recoveryTallies(&c)}
}

// damageOne creates a store and damages 100 copies.
func damageOne(seed uint64, _ string) Result {
	d, err := damage.New(seed, 40)
	if err != nil {
		return Result{Err: err}
	}
	rng := rand.New(rand.NewPCG(seed, 3))
	var c damage.Counts
	var errs []error
	for range 100 {
		flip, err := d.RandomFlip(rng)
		if err != nil {
			return Result{Err: err}
		}
		counts, err := d.Try(flip, rng.IntN(2) == 0)
		c.Add(counts)
		if err != nil {
			errs = append(errs, fmt.Errorf("%v: %w", flip, err))
		}
	}
	return Result{Err: errors.Join(errs...), Script: d.Script(),
		Tallies: []Tally{{1, "stores"}, {c.Flips, "flips"}, {c.Refused, "not opened"},
			{c.Errors, "reads refused"}, {c.Answered, "answered"}}}
}

// salvageOne creates a store and salvages 50 damaged copies. Most stores are tiny; one in eight has
// tables that were altered, and one in 32 is large.
func salvageOne(seed uint64, _ string) Result {
	var d *damage.Store
	var err error
	switch {
	case seed%32 == 31:
		d, err = damage.New(seed, 400)
	case seed%8 == 7:
		d, err = damage.New(seed, 40)
	default:
		d, err = damage.NewTiny(seed)
	}
	if err != nil {
		return Result{Err: err}
	}
	return salvageCopies(d, seed, 50)
}

// salvageLargeOne creates a large store and salvages 10 damaged copies.
func salvageLargeOne(seed uint64, _ string) Result {
	d, err := damage.NewLarge(seed)
	if err != nil {
		return Result{Err: err}
	}
	return salvageCopies(d, seed, 10)
}

// salvageCopies salvages damaged copies of a store.
func salvageCopies(d *damage.Store, seed uint64, copies int) Result {
	rng := rand.New(rand.NewPCG(seed, 7))
	var c damage.SalvageCounts
	var errs []error
	for range copies {
		s, err := d.RandomSalvage(rng, func(string) bool { return true })
		if err != nil {
			return Result{Err: err}
		}
		counts, err := s.Run()
		c.Add(counts)
		if err != nil {
			errs = append(errs, fmt.Errorf("%v: %w", s, err))
		}
	}
	return Result{Err: errors.Join(errs...), Script: d.Script(),
		Tallies: []Tally{{1, "stores"}, {c.Harms, "harms"}, {c.Salvaged, "salvaged"}, {c.Whole, "without a loss"},
			{c.Kept, "rows compared"}, {c.Filled, "rows with NULL"}, {c.Lost, "rows lost"},
			{c.Readable, "rows that the damaged store returned"}}}
}

// markedFlips is the number of bits that bitsOne flips in an open store.
const markedFlips = 100

// bitsOne flips the bits of one slice of a closed store, and bits of an open one.
func bitsOne(seed uint64, _ string) Result {
	store, slice := damage.BitSlice(seed)
	b, err := damage.NewBits(store)
	if err != nil {
		return Result{Err: err}
	}
	c, err := b.Slice(slice, func(damage.BitCounts) bool { return true })
	m, failed := damage.NewMarked(seed)
	if failed == nil {
		var marked damage.BitCounts
		marked, failed = m.Flip(markedFlips, func() bool { return true })
		c.Add(marked)
		failed = errors.Join(failed, m.Close())
	}
	err = errors.Join(err, failed)
	return Result{Err: err, Script: b.Script(),
		Tallies: []Tally{{c.Flips, "bits"}, {c.Opened, "openings"},
			{c.Refused, "not opened"}, {c.Errors, "reads refused"},
			{c.Repaired, "repaired"}, {c.Found, "found"}, {c.Unused, "unused"}}}
}

// foreignOne applies every kind of harm to every file of a store, closed and killed.
func foreignOne(seed uint64, _ string) Result {
	x, err := damage.NewForeign(seed)
	if err != nil {
		return Result{Err: err}
	}
	all, err := x.All()
	errs := []error{err, x.Whole()}
	var total damage.ForeignCounts
	for _, h := range all {
		c, err := x.Try(h)
		total.Add(c)
		if err != nil {
			errs = append(errs, fmt.Errorf("%v: %w", h, err))
		}
	}
	return Result{Err: errors.Join(errs...),
		Tallies: []Tally{{1, "stores"}, {total.Harms, "harms"}, {total.Refused, "not opened"},
			{total.Errors, "reads refused"}, {total.Answered, "answered"}}}
}

// faultSlices is the number of seeds that share a trace. A seed has few faults, since each poisoned
// store leaks some megabytes in its process.
const faultSlices = 64

// faultsOne fails calls of a trace, one per run. faultSlices consecutive seeds cover every call and
// every kind of fault.
func faultsOne(seed uint64, _ string) Result {
	trace, err := faults.Random(seed / faultSlices).Trace()
	if err != nil {
		return Result{Err: err}
	}
	var c faults.Counts
	done := func() []Tally {
		return []Tally{{c.Runs, "faults"}, {c.Poisoned, "poisoned"}, {c.Refused, "retried calls"}, {c.Unseen, "unseen"}}
	}
	for i, f := range trace.All() {
		if uint64(i)%faultSlices != seed%faultSlices {
			continue
		}
		script, counts, err := trace.Run(f)
		c.Add(counts)
		if err != nil {
			return Result{Err: err, Script: script, Tallies: done()}
		}
	}
	return Result{Tallies: done()}
}

// largeOne runs one size. Memory is bounded by the memory limit of 256 MiB and 128 MiB more, apart
// from a tenth of a byte per row.
func largeOne(seed uint64, dir string) Result {
	run := large.Run{Dir: dir, Rows: large.Sizes[seed-1] * 1e6, Gets: 1e6, Updates: 1e6,
		Progress: func(text string) { fmt.Println(text) }}
	c, err := run.Do()
	if bound := 384 + run.Rows/10>>20; err == nil && c.Peak > bound {
		err = fmt.Errorf("resident set of %d MiB, want at most %d", c.Peak, bound)
	}
	return Result{Err: err, Tallies: []Tally{{c.Rows, "rows"}, {c.Scanned, "rows scanned"}, {c.Gets, "gets"},
		{c.Updates, "updates"}, {c.Copies, "backups"}, {c.Disk, "MiB of disk"}, {c.Peak, "MiB of memory"}}}
}

// killOne kills 50 processes that work on one store.
func killOne(seed uint64, dir string) Result {
	binary, err := kill.BuildCommand(dir)
	if err != nil {
		return Result{Err: err}
	}
	c, err := kill.Life{Seed: seed, Dir: dir, Binary: binary, Kills: 50}.Run()
	return Result{Err: err, Tallies: []Tally{{c.Kills, "kills"}, {c.Calls, "at a system call"}, {c.Torn, "torn logs"},
		{c.Finished, "completed processes"},
		{c.Batches, "acknowledged batches"}, {c.Ahead, "unacknowledged batches"}, {c.Reads, "tables read"}}}
}

// harmOne copies one table.
func harmOne(seed uint64, dir string) (r Result) {
	counts, err := harm.Run(seed, dir)
	for _, c := range counts {
		r.Tallies = append(r.Tallies, Tally(c))
	}
	r.Err = err
	return r
}

// Shortened returns the script to print for a failure. It is shortened, for about the given time,
// if it reproduces the failure alone.
func (r *Result) Shortened(within time.Duration) *script.Script {
	if r.Script == nil || !r.Alone {
		return r.Script
	}
	return history.Shrink(r.Script, within)
}

func recoveryTallies(c *crash.RecoveryCounts) []Tally {
	return []Tally{{1, "traces"}, {c.Recoveries, "recoveries"}, {c.Changes, "disk changes by them"},
		{c.States.Opened, "states"}, {c.States.Steps, "steps"}}
}

func stateTallies(c *crash.StateCounts) []Tally {
	return []Tally{{c.States, "states"}, {1, "histories"}, {c.Steps, "steps"}, {c.Changes, "disk changes"},
		{c.Points, "crash points"}, {c.Opened, "opened"},
		{c.Readers, "opened read-only"}, {c.IgnoredSync, "with ignored syncs"},
		{c.Refused, "refused after ignored syncs"}, {c.Lost, "batches lost"}, {c.InFlight, "batches in flight found"}}
}

// isolationOne runs some thousand transactions.
func isolationOne(seed uint64, _ string) Result {
	c, err := isolation.Run(seed, 4000)
	return Result{Err: err, Tallies: []Tally{{c.Transactions, "transactions"}, {c.Conflicts, "conflicts"},
		{c.Reads, "reads"}, {c.Jobs, "flushes and compactions"}}}
}

// sequencesOfSeed is the number of sequences of one seed.
const sequencesOfSeed = 20

// sequencesOne runs sequences of three operations and opens all their crash states. After some
// hundreds of seeds the sequences repeat.
func sequencesOne(seed uint64, _ string) Result {
	q, err := crash.NewSequences(3, 0)
	if err != nil {
		return Result{Err: err}
	}
	var total crash.StateCounts
	sequences := int64(0)
	for i := range sequencesOfSeed {
		script, c, err := q.Run((int(seed-1)*sequencesOfSeed + i) % q.Count())
		total.Add(c)
		if err != nil {
			return Result{Err: err, Script: script}
		}
		sequences += min(c.Points, 1)
	}
	return Result{Tallies: []Tally{{sequences, "sequences"}, {total.Points, "crash points"},
		{total.States, "states"}, {total.Opened, "opened"},
		{sequencesOfSeed - sequences, "refused sequences"}}}
}

// followersOne is, by the seed modulo 8, one of the kinds of package followers.
func followersOne(seed uint64, dir string) (res Result) {
	var c followers.Counts
	switch seed % 8 {
	case 0, 4:
		c, res.Err = followers.Processes(dir, seed, 8, 8*time.Second)
	case 1:
		c, res.Err = followers.Slice(seed / 8)
	case 2:
		c, res.Err = followers.Harm(seed, 400)
	case 3, 7:
		c, res.Err = followers.Rush(seed/8, 8, 8*time.Second)
	default:
		c, res.Err = followers.Explore(seed, 1500)
	}
	res.Tallies = followerTallies(&c)
	return res
}

func followerTallies(c *followers.Counts) []Tally {
	return []Tally{{c.Refreshes, "refreshes"}, {c.Opens, "opens"}, {c.Inside, "with a writer inside"},
		{c.Operations, "operations of writers"}, {c.TooOld, "reads too old"},
		{c.Locked, "locked"}, {c.Kills, "kills"}, {c.Cuts, "power cuts"}, {c.Full, "steps on a full disk"},
		{c.Damaged, "damaged stores"}}
}
