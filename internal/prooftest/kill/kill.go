// Package kill runs the real command on one store, one process after the other, and kills most of
// them: at random times and at chosen system calls.
package kill

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// Life is the life of one store on a real disk. The command makes it, fills it and tends it, one
// process after the other, and most of them are killed (SIGKILL): at a moment, behind an
// acknowledgement, or, where strace is there, as they enter a chosen system call. The next process
// goes on with the directory as it was left, so processes that recover are killed too.
//
// After each kill the command reads the store, which changes no byte, and then, at the latest with
// the next process, writes to it. What must hold: verify finds nothing; of the batches a prefix is
// there, with all that were acknowledged, none in part; each table is what the model says, now and
// as of acknowledged timestamps of the past.
//
// What is killed where is chosen by the seed, what it meets there depends on the machine. It is for
// unix.
type Life struct {
	Seed   uint64
	Dir    string // empty, on a real disk; takes the store and what the command reads
	Binary string // the command
	Kills  int64  // ends after so many
}

// Counts are how much a Life did.
type Counts struct {
	Kills    int64
	Calls    int64 // of these, as a system call was entered
	Finished int64 // processes that came to their end
	Batches  int64 // that were acknowledged
	Ahead    int64 // batches that a kill left though they were not acknowledged
	Torn     int64 // kills that were seen to have left a torn end of the log
	Reads    int64 // tables that were read and compared
}

// Add sums two up.
func (c *Counts) Add(o Counts) {
	c.Kills += o.Kills
	c.Calls += o.Calls
	c.Finished += o.Finished
	c.Batches += o.Batches
	c.Ahead += o.Ahead
	c.Torn += o.Torn
	c.Reads += o.Reads
}

// killLife is a life in progress.
type killLife struct {
	Life
	rng    *rand.Rand
	counts Counts
	store  string
	tracer string // strace; empty without it
	model  *killModel

	within map[string]time.Duration // how long a verb takes, about: kills come before
	upTo   map[string]int           // how often a verb makes a system call in one thread, about
	behind bool                     // the last process was killed
	last   []string                 // the last command lines
}

// killSteps bounds the processes of a life, whose kills may come too late.
const killSteps = 8

// Run lives the life. An error tells of a wrong answer, or of a process that failed; then the store
// is kept, and the error says where.
func (k Life) Run() (Counts, error) {
	l := &killLife{Life: k, rng: rand.New(rand.NewPCG(k.Seed, 7)), store: filepath.Join(k.Dir, "store"), model: newKillModel(),
		within: map[string]time.Duration{}, upTo: map[string]int{}, tracer: findTracer(k.Dir)}
	err := l.begin()
	for n := int64(0); err == nil && l.counts.Kills < k.Kills; n++ {
		if n > killSteps*(k.Kills+10) {
			err = errors.New("hardly a process can be killed")
			break
		}
		err = l.step()
	}
	if err == nil {
		err = l.finish()
	}
	if err != nil {
		err = l.kept(err)
	}
	return l.counts, err
}

// kept moves the store away from where it would be removed, and adds to err where it is and what
// was done last.
func (l *killLife) kept(err error) error {
	dir, failed := os.MkdirTemp("", "oribi-kill-")
	if failed == nil {
		failed = os.Rename(l.store, filepath.Join(dir, "store"))
	}
	at := "the store is in " + dir
	if failed != nil {
		at = failed.Error()
	}
	return fmt.Errorf("%w\n%s; the last commands:\n%s", err, at, strings.Join(l.last, "\n"))
}

// begin makes the store and its tables, killed at it too.
func (l *killLife) begin() error {
	schema := filepath.Join(l.Dir, "schema.json")
	if err := os.WriteFile(schema, []byte(killSchema), 0o600); err != nil {
		return err
	}
	for cut := false; ; cut = true {
		done, err := l.run(l.plan("init"), "store", "init", l.store)
		if err != nil {
			return err
		}
		if done.killed {
			if out, err := l.run(killPlan{}, "store", "info", l.store); err != nil {
				return err
			} else if out.code != 0 && out.code != 4 {
				return out.unexpected()
			}
			continue
		}
		// A process that was killed behind its last change has made the store.
		if made := cut && done.code == 1 && strings.Contains(done.errs, "exists already"); done.code != 0 && !made {
			return done.unexpected()
		}
		break
	}
	for _, name := range killTables {
		for {
			there, err := l.tables()
			if err != nil {
				return err
			}
			if _, ok := there[name]; ok {
				break
			}
			if _, err := l.tend("create", "table", "create", l.store, name, "--schema", schema); err != nil {
				return err
			}
		}
	}
	return l.check(&killRun{})
}

// step is one process, and what is checked after it.
func (l *killLife) step() error {
	r := &killRun{}
	var err error
	switch n := l.rng.IntN(20); {
	case n < 5:
		err = l.apply(r, 60, false)
	case n < 9:
		err = l.apply(r, 60, false, "--no-sync")
	case n < 10:
		err = l.apply(r, 9, true, "--no-sync")
	case n < 12:
		err = l.load(r)
	case n < 14:
		err = l.scratch(r)
	case n < 16:
		_, err = l.tend("flush", "table", "flush", l.store, l.anyTable())
	case n < 19:
		kind := []string{"merge", "merge", "major", "minor", "undo-gc"}[l.rng.IntN(5)]
		_, err = l.tend("compact", "table", "compact", l.store, l.anyTable(), "--kind", kind)
	default:
		change := []string{"compression s=zlib", "compression s=none", "encoding s=plain", "encoding s=dict", "encoding n=rle", "encoding n=plain"}[l.rng.IntN(6)]
		flag, value, _ := strings.Cut(change, " ")
		_, err = l.tend("alter", "table", "alter", l.store, l.anyTable(), "--"+flag, value)
	}
	if err != nil {
		return err
	}
	if !l.behind && l.rng.IntN(4) > 0 && !r.inDoubt() {
		return l.adoptAll(r)
	}
	return l.check(r)
}

func (l *killLife) anyTable() string { return killTables[l.rng.IntN(len(killTables))] }

// finish lets some processes come to their end, and looks at what they leave.
func (l *killLife) finish() error {
	for _, table := range killTables {
		if out, err := l.run(killPlan{}, "table", "compact", l.store, table); err != nil || out.code != 0 {
			return errors.Join(err, out.unexpected())
		}
	}
	if err := l.check(&killRun{}); err != nil {
		return err
	}
	info, err := l.info()
	if err == nil && (!info.Clean || info.TornBytes != 0) {
		err = fmt.Errorf("after processes that came to their end: %+v", info)
	}
	return err
}

// tend runs a command that changes no row of what the model knows; it may be killed.
func (l *killLife) tend(verb string, args ...string) (killOutcome, error) {
	out, err := l.run(l.plan(verb), args...)
	if err == nil && !out.killed && out.code != 0 {
		err = out.unexpected()
	}
	return out, err
}

// apply applies up to most batches.
func (l *killLife) apply(r *killRun, most int, large bool, flags ...string) error {
	input := filepath.Join(l.Dir, "batches.jsonl")
	var err error
	if r.batches, err = l.model.writeBatches(l.rng, input, 1+l.rng.IntN(most), large); err != nil {
		return err
	}
	verb := "apply"
	if large {
		verb = "apply large"
	}
	stamps, plan := "-", l.plan(verb)
	if plan.call == "" && l.rng.IntN(2) == 0 {
		plan = killPlan{acks: 1 + l.rng.IntN(len(r.batches))}
	}
	if plan.acks == 0 && l.rng.IntN(2) == 0 {
		stamps = filepath.Join(l.Dir, "stamps")
		if err := os.WriteFile(stamps, nil, 0o600); err != nil { // the command may be killed before it makes it anew
			return err
		}
	}
	out, err := l.run(plan, append([]string{"apply", l.store, input, "--timestamps", stamps}, flags...)...)
	if err != nil {
		return err
	}
	told := out.out
	if stamps != "-" {
		if told, err = os.ReadFile(stamps); err != nil {
			return err
		}
	}
	if r.stamps, err = parseStamps(told); err != nil {
		return err
	}
	if !out.killed && (out.code != 0 || len(r.stamps) != len(r.batches)) {
		return fmt.Errorf("%d timestamps of %d batches: %w", len(r.stamps), len(r.batches), out.unexpected())
	}
	l.counts.Batches += int64(len(r.stamps))
	return nil
}

// load loads a file into table b.
func (l *killLife) load(r *killRun) error {
	input := filepath.Join(l.Dir, "rows.csv")
	r.per = 1 + l.rng.IntN(80)
	var err error
	if r.rows, err = l.model.writeRows(l.rng, input, 1+l.rng.IntN(400)); err != nil {
		return err
	}
	out, err := l.tend("load", "table", "load", l.store, killTables[1], input, "--mode", "upsert", "--batch", fmt.Sprint(r.per))
	r.all = !out.killed
	return err
}

// scratch brings table c one step on: it is made, filled with rows in the order of their keys,
// which go straight to files, and dropped.
func (l *killLife) scratch(r *killRun) error {
	m := l.model
	const name = "c"
	switch {
	case m.scratch == noScratch:
		out, err := l.tend("create", "table", "create", l.store, name, "--schema", filepath.Join(l.Dir, "schema.json"))
		r.scratch = []int64{0}
		if out.killed {
			r.scratch = append(r.scratch, noScratch)
		}
		return err
	case m.scratch == 0:
		input := filepath.Join(l.Dir, "scratch.csv")
		if err := writeScratch(input); err != nil {
			return err
		}
		out, err := l.tend("ingest", "table", "load", l.store, name, input, "--batch", fmt.Sprint(scratchPer))
		r.scratch = []int64{scratchRows}
		for n := int64(0); out.killed && n < scratchRows; n += scratchPer {
			r.scratch = append(r.scratch, n)
		}
		return err
	}
	out, err := l.tend("drop", "table", "drop", l.store, name, "--yes")
	r.scratch = []int64{noScratch}
	if out.killed {
		r.scratch = append(r.scratch, m.scratch)
	}
	return err
}
