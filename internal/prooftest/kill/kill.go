// Package kill runs the real command on a store in a sequence of processes and kills most of them,
// at random times and at chosen system calls.
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

// Life is the history of one store on a real disk. The command creates, fills and maintains the
// store in a sequence of processes. Most of them are killed (SIGKILL): at a random time, after an
// acknowledgement, or, if strace is installed, on entry to a chosen system call. The next process
// uses the directory as the kill left it; processes are thus also killed during recovery.
//
// After each kill, commands that only read check the store and must not change a byte; the next
// process then writes to it. Life checks that verify finds nothing, that the store contains a
// prefix of the batches, each completely, with all acknowledged ones, and that each table equals
// the model, now and as of acknowledged timestamps.
//
// The seed determines the commands and the kills; the state at a kill depends on the machine. Life
// needs Unix.
type Life struct {
	Seed   uint64
	Dir    string // empty directory on a real disk, for the store and input files
	Binary string // the command
	Kills  int64  // number of kills after which the Life ends
}

// Counts counts the work of a Life.
type Counts struct {
	Kills    int64
	Calls    int64 // of these, on entry to a system call
	Finished int64 // processes that completed
	Batches  int64 // acknowledged batches
	Ahead    int64 // batches found after a kill that were not acknowledged
	Torn     int64 // kills after which "store info" reported a torn end of the log
	Reads    int64 // tables read and compared
}

// Add adds o to c.
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

	within map[string]time.Duration // estimated duration of a verb; kills are scheduled before it
	upTo   map[string]int           // estimated number of system calls of a verb in one thread
	behind bool                     // the last process was killed
	last   []string                 // the last command lines
}

// killSteps bounds the number of processes per kill, since kills may come too late.
const killSteps = 8

// Run runs the history. It returns an error for a wrong answer and for a process that failed; the
// error then names the directory in which the store is kept.
func (k Life) Run() (Counts, error) {
	l := &killLife{Life: k, rng: rand.New(rand.NewPCG(k.Seed, 7)),
		store: filepath.Join(k.Dir, "store"), model: newKillModel(),
		within: map[string]time.Duration{}, upTo: map[string]int{}, tracer: findTracer(k.Dir)}
	err := l.begin()
	for n := int64(0); err == nil && l.counts.Kills < k.Kills; n++ {
		if n > killSteps*(k.Kills+10) {
			err = errors.New("too few processes were killed")
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

// kept moves the store to a directory that is not removed, and adds its name and the last commands
// to err.
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

// begin creates the store and its tables; these processes may be killed too.
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
		// A process killed after its last change has created the store.
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

// step runs one process and the checks after it.
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
		kind := []string{"merge", "merge", "major", "minor", "recompress", "undo-gc"}[l.rng.IntN(6)]
		_, err = l.tend("compact", "table", "compact", l.store, l.anyTable(), "--kind", kind)
	default:
		change := []string{"compression s=zlib", "compression s=none", "compression s=dense", "encoding s=plain",
			"encoding s=dict", "encoding n=rle", "encoding n=plain"}[l.rng.IntN(7)]
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

// finish runs some processes to completion and checks the result.
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
		err = fmt.Errorf("after completed processes: %+v", info)
	}
	return err
}

// tend runs a command that may be killed and does not change the model.
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
		if err := os.WriteFile(stamps, nil, 0o600); err != nil { // the command may be killed before it creates the file
			return err
		}
	}
	out, err := l.run(plan, append([]string{"apply", l.store, input, "--timestamps", stamps}, flags...)...)
	if err != nil {
		return err
	}
	acks := out.out
	if stamps != "-" {
		if acks, err = os.ReadFile(stamps); err != nil {
			return err
		}
	}
	if r.stamps, err = parseStamps(acks); err != nil {
		return err
	}
	if !out.killed && (out.code != 0 || len(r.stamps) != len(r.batches)) {
		return fmt.Errorf("%d timestamps for %d batches: %w", len(r.stamps), len(r.batches), out.unexpected())
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
	out, err := l.tend("load", "table", "load", l.store, killTables[1], input, "--mode",
		"upsert", "--batch", fmt.Sprint(r.per))
	r.all = !out.killed
	return err
}

// scratch advances table c by one step: it is created, filled with rows in key order, which are
// ingested, and dropped.
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
