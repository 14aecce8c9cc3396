package prooftest

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"time"

	"github.com/oribi-db/oribi/vfs"
)

// Proof is one kind of random test, cut into seeds. A seed does the same each time, but for
// background work.
type Proof struct {
	Name  string
	About string // one sentence
	// Run does what one seed stands for, some seconds at most. What has to lie on a real disk lies
	// in dir, which is empty.
	Run func(seed uint64, dir string) Result
}

// Result is what came of one seed.
type Result struct {
	Tallies []Tally
	Err     error   // nil: all was as it must be
	Script  *Script // what was done; may be nil
	// Alone tells that the script fails when Run carries it out: it can be shortened. Else only the
	// seed fails.
	Alone bool
}

// Tally is a number of things that a proof did.
type Tally struct {
	N    int64
	Unit string // in the plural, without comma
}

// Proofs are all proofs over whole stores. The root package's tests do the same for seconds.
func Proofs() []Proof {
	return []Proof{
		{"model", "Random histories in memory, with crashes; each read is compared with a map from key to versions.", func(seed uint64, _ string) Result {
			return exploreOne(NewRunner(RandomSettings(seed)), 1500)
		}},
		{"bulk", "The same with large write batches, for many operations in little time.", func(seed uint64, _ string) Result {
			return exploreOne(NewRunner(BulkSettings(seed)), 100)
		}},
		{"background", "The same with flushes and compactions in the background.", func(seed uint64, _ string) Result {
			r := exploreOne(NewRunner(BackgroundSettings(seed)), 1500)
			r.Alone = false // it depends on when the background works
			return r
		}},
		{"options", "One history under many sets of options, background work among them; the answers are equal.", func(seed uint64, _ string) Result {
			c, failed, err := EqualAnswers(seed, 400)
			return Result{Err: err, Script: failed, Tallies: c.tallies()}
		}},
		{"disk", "The same in the file system of the machine, without crashes.", func(seed uint64, dir string) Result {
			r := exploreOne(NewDiskRunner(RandomSettings(seed), vfs.OS, filepath.Join(dir, "store")), 400)
			r.Alone = false
			return r
		}},
		{"crashes", "Histories cut at random changes of the disk by kills, power cuts and torn power cuts; what is left is opened and compared.", crashesOne},
		{"states", "Histories cut at random changes of the disk; what crashes leave is gone through: each unsynced change lost or kept alone, torn, forgotten.", statesOne},
		{"recovery", "Crashed stores whose recovery is cut at every change that it makes of the disk, and that of what is left.", recoveryOne},
		{"sequences", "All sequences of three operations on a table of three keys, a crash at every change of the disk.", sequencesOne},
		{"damage", "Bits of one byte of a closed store are changed; its answers are right, or it says that it is damaged.", damageOne},
		{"bits", "Each bit of a closed store of 1 MiB is flipped, one in 1,024 of them a seed; it is found, put right, or used by nobody.", bitsOne},
		{"foreign", "One file of a store is gone, cut, longer, older, in another's place or another store's; its answers are right, or it says that it is damaged.", foreignOne},
		{"faults", "Every call of the disk in a trace fails, in every way that a disk has, reads among them; nothing acknowledged is lost.", faultsOne},
		{"kill", "The real command is killed again and again, at moments and at chosen system calls; nothing acknowledged is lost.", killOne},
	}
}

// SmallSettings are those of a history that is quickly gone through: few keys, few rows.
func SmallSettings(seed uint64) Settings {
	o := RandomSettings(seed)
	o.Keys = 4 + int(seed%40)
	o.Background = seed%4 == 0
	return o
}

// BulkSettings are those of a history that is short, of large write batches.
func BulkSettings(seed uint64) Settings {
	o := RandomSettings(seed)
	o.Batch = 64 << (seed % 3)
	return o
}

// BackgroundSettings are those of a history in which the store flushes and compacts by itself, too.
func BackgroundSettings(seed uint64) Settings {
	o := RandomSettings(seed)
	o.Background, o.FlushBytes = true, 1<<14
	return o
}

// RandomCrashes makes the history of a seed and says how it is cut: one in five is short and cut
// nearly everywhere.
func RandomCrashes(seed uint64) Crashes {
	c := Crashes{Settings: SmallSettings(seed), Steps: 80, Every: 40, After: 12}
	if seed%5 == 0 {
		c.Steps, c.Every = 12, 4
	}
	return c
}

func exploreOne(r *Runner, steps int64) Result {
	r.Explore(func(c Counts) bool { return c.Steps < steps })
	return Result{Err: r.Err, Script: r.Script, Alone: true, Tallies: r.Counts.tallies()}
}

func (c *Counts) tallies() []Tally {
	return []Tally{{1, "histories"}, {c.Steps, "steps"}, {c.Batches, "batches"}, {c.Operations, "operations"}, {c.Reads, "reads"},
		{c.Flushes, "flushes"}, {c.Merges, "merges"}, {c.Crashes, "crashes"}}
}

func crashesOne(seed uint64, _ string) Result {
	script, c, err := RandomCrashes(seed).Run()
	return Result{Err: err, Script: script, Tallies: []Tally{{1, "histories"}, {c.Changes, "changes of the disk"}, {c.Kills, "kills"},
		{c.Cuts, "power cuts"}, {c.Torn, "torn power cuts"}, {c.Steps, "steps after recovery"}}}
}

func statesOne(seed uint64, _ string) Result {
	script, c, err := RandomStates(seed).Run(time.Time{})
	return Result{Err: err, Script: script, Tallies: c.tallies()}
}

func recoveryOne(seed uint64, _ string) Result {
	script, c, err := RandomRecoveries(seed).Run(time.Time{})
	return Result{Err: err, Script: script, Tallies: c.tallies()}
}

// damageOne makes a store and harms 100 copies.
func damageOne(seed uint64, _ string) Result {
	d, err := NewDamage(seed, 40)
	if err != nil {
		return Result{Err: err}
	}
	rng := rand.New(rand.NewPCG(seed, 3))
	var c DamageCounts
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
	return Result{Err: errors.Join(errs...), Script: d.r.Script, Tallies: []Tally{{1, "stores"}, {c.Flips, "flips"}, {c.Refused, "not opened"},
		{c.Errors, "reads refused"}, {c.Answered, "answered"}}}
}

// bitsOne flips the bits of one slice of a store.
func bitsOne(seed uint64, _ string) Result {
	store, slice := BitSlice(seed)
	b, err := NewBits(store)
	if err != nil {
		return Result{Err: err}
	}
	c, err := b.Slice(slice, func(BitCounts) bool { return true })
	return Result{Err: err, Script: b.d.r.Script, Tallies: []Tally{{c.Flips, "bits"}, {c.Opened, "openings"}, {c.Refused, "not opened"}, {c.Errors, "reads refused"},
		{c.Repaired, "repaired"}, {c.Found, "found"}, {c.Unused, "unused"}}}
}

// foreignOne does every kind of harm to every file of a store, closed and killed.
func foreignOne(seed uint64, _ string) Result {
	x, err := NewForeign(seed)
	if err != nil {
		return Result{Err: err}
	}
	all, err := x.All()
	errs := []error{err, x.Whole()}
	var total ForeignCounts
	for _, h := range all {
		c, err := x.Try(h)
		total.Add(c)
		if err != nil {
			errs = append(errs, fmt.Errorf("%v: %w", h, err))
		}
	}
	return Result{Err: errors.Join(errs...), Tallies: []Tally{{1, "stores"}, {total.Harms, "harms"}, {total.Refused, "not opened"},
		{total.Errors, "reads refused"}, {total.Answered, "answered"}}}
}

// SmallFaults makes a trace of a seed that is quickly gone through: the making of a store and its
// first steps, or those of a young one.
func SmallFaults(seed uint64) Faults {
	f := Faults{Settings: SmallSettings(seed), Steps: 10}
	f.Settings.Batch = 0
	if seed%3 > 0 {
		f.Prelude = 30
	}
	return f
}

// RandomFaults makes the trace of a seed: some steps anywhere in a history of a thousand.
func RandomFaults(seed uint64) Faults {
	f := Faults{Settings: SmallSettings(seed), Steps: 14}
	if r := newRand(seed ^ 0xfa17); r.IntN(4) > 0 {
		f.Prelude = r.IntN(1000)
	}
	return f
}

// faultSlices is how many seeds share a trace. Few faults a seed: a poisoned store leaves some
// megabytes behind in its process.
const faultSlices = 64

// faultsOne fails every call of a trace in every way, one a run: all of that with faultSlices seeds
// in a row.
func faultsOne(seed uint64, _ string) Result {
	trace, err := RandomFaults(seed / faultSlices).Trace()
	if err != nil {
		return Result{Err: err}
	}
	var c FaultCounts
	tallies := func() []Tally {
		return []Tally{{c.Runs, "faults"}, {c.Poisoned, "poisoned"}, {c.Refused, "calls made again"}, {c.Unseen, "unseen"}}
	}
	for i, f := range trace.All() {
		if uint64(i)%faultSlices != seed%faultSlices {
			continue
		}
		script, counts, err := trace.Run(f)
		c.Add(counts)
		if err != nil {
			return Result{Err: err, Script: script, Tallies: tallies()}
		}
	}
	return Result{Tallies: tallies()}
}

// killOne kills 50 processes that work on one store.
func killOne(seed uint64, dir string) Result {
	binary, err := BuildCommand(dir)
	if err != nil {
		return Result{Err: err}
	}
	c, err := Kills{Seed: seed, Dir: dir, Binary: binary, Kills: 50}.Run()
	return Result{Err: err, Tallies: []Tally{{c.Kills, "kills"}, {c.Calls, "at a system call"}, {c.Torn, "torn logs"}, {c.Finished, "processes to their end"},
		{c.Batches, "acknowledged batches"}, {c.Ahead, "batches ahead"}, {c.Reads, "tables read"}}}
}

// Shortened is the script to show for a failure: shortened within a time if it fails alone.
func (r *Result) Shortened(within time.Duration) *Script {
	if r.Script == nil || !r.Alone {
		return r.Script
	}
	return Shrink(r.Script, within)
}
