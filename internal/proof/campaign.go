package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"time"
)

// errFailed reports that a proof has failed: the code under test is wrong.
var errFailed = errors.New("a proof has failed")

// campaign is one run of the command.
type campaign struct {
	options
	proof    string
	last     uint64 // seed of the proof; 0 if the proof has no last seed
	root     string // of the module
	log      io.Writer
	deadline time.Time // zero: none
}

// left returns the remaining time; false if the deadline has passed. Without a deadline it returns
// 0, which means no limit for the worker processes.
func (c *campaign) left() (time.Duration, bool) {
	if c.deadline.IsZero() {
		return 0, true
	}
	d := time.Until(c.deadline)
	return d, d > 0
}

// begin returns the first seed for a target and the number of seeds to run.
func (c *campaign) begin(target string) (first, seeds uint64, err error) {
	first, seeds = max(c.seed, 1), c.seeds
	if seeds == 0 {
		seeds = math.MaxUint64 - first
	}
	defer func() {
		if c.last > 0 {
			seeds = min(seeds, max(c.last+1, first)-first)
		}
	}()
	if c.ledger == "" {
		return first, seeds, nil
	}
	rows, err := readLedger(c.ledger)
	if err != nil {
		return 0, 0, err
	}
	for i := range rows {
		r := &rows[i]
		if r.proof != c.proof || r.target != target || len(r.seeds) == 0 {
			continue
		}
		last := r.seeds[len(r.seeds)-1].last
		if c.resume {
			first = max(first, last+1)
		} else if r.commit == c.commit && last >= first {
			return 0, 0,
				fmt.Errorf("%s already has seeds %s of %s at this commit; use --resume to continue after them, or "+
					"--ledger '' to record nothing", c.ledger, r.seeds, c.name(target))
		}
	}
	return first, seeds, nil
}

func (c *campaign) name(target string) string {
	if target == "" {
		return c.proof
	}
	return c.proof + " " + target
}

// have returns the count of a unit that the ledger has for this commit.
func (c *campaign) have(target, unit string) (int64, error) {
	if c.ledger == "" {
		return 0, nil
	}
	rows, err := readLedger(c.ledger)
	if err != nil {
		return 0, err
	}
	for i := range rows {
		if rows[i].sameKey(&row{commit: c.commit, proof: c.proof, target: target}) {
			return rows[i].counts.of(unit), nil
		}
	}
	return 0, nil
}

// enter adds a row to the ledger.
func (c *campaign) enter(r row) error {
	if c.ledger == "" || len(r.counts) == 0 && len(r.failures) == 0 {
		return nil
	}
	r.commit, r.proof = c.commit, c.proof
	return addToLedger(c.ledger, r)
}

// report prints a line of progress.
func (c *campaign) report(target string, seed uint64, sum counts, unit string, since time.Time) {
	rate := float64(sum.of(unit)) / max(time.Since(since).Seconds(), 1e-3)
	format := "%.0f"
	if rate < 10 {
		format = "%.1f"
	}
	fmt.Fprintf(c.log, "%s %s: seed %d: %s; "+format+" %s per second\n", time.Now().Format(time.TimeOnly),
		c.name(target), seed, sum, rate, unit)
}

// stores runs one of the proofs over whole stores, several seeds per process.
func (c *campaign) stores(ctx context.Context) error {
	first, seeds, err := c.begin("")
	if err != nil {
		return err
	}
	var total, pending counts
	from, next := first, first // seeds [from, next) are completed and not yet in the ledger
	started, entered := time.Now(), time.Now()
	flush := func(failures ...string) error {
		r := row{counts: pending, failures: failures}
		to := next
		if len(failures) > 0 {
			to++
		}
		if to > from {
			r.seeds = spans{{from, to - 1}}
		}
		from, pending, entered = to, nil, time.Now()
		return c.enter(r)
	}
	for {
		left, ok := c.left()
		if !ok || ctx.Err() != nil || next-first >= seeds {
			c.report("", next-1, total, total.first(), started)
			return flush()
		}
		cmd, err := workerCommand(ctx, c.proof, next, min(seedsOfProcess, seeds-(next-first)), left)
		if err != nil {
			return errors.Join(err, flush())
		}
		output, err := runChild(ctx, cmd, quietStore, func(_ uint64, sum counts) {
			next++
			total, pending = total.plus(sum), pending.plus(sum)
		})
		switch {
		case ctx.Err() != nil:
			return flush()
		case err != nil:
			fmt.Fprintf(c.log, "%s\n%s: seed %d: %v\nto repeat: go run ./internal/proof %s --seed %d --seeds 1 "+
				"--ledger ''\n", output, c.proof, next, err, c.proof, next)
			return errors.Join(errFailed, flush(fmt.Sprintf("seed %d", next)))
		}
		if time.Since(entered) >= enterEvery {
			c.report("", next-1, total, total.first(), started)
			if err := flush(); err != nil {
				return err
			}
		}
	}
}

// enterEvery is how often a campaign writes the ledger. A kill leaves at most this much work
// unrecorded.
const enterEvery = 20 * time.Second
