package followers

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/vfs"
)

// Counts counts the work of a proof.
type Counts struct {
	Opens, Refreshes int64
	Operations       int64 // of writers
	Inside           int64 // opens and refreshes within which the writer went on
	Retries          int64 // of opens and refreshes
	TooOld           int64 // answers ErrTooOld
	Locked           int64 // answers ErrLocked
	Kills            int64 // of processes
	Cuts             int64 // of the power
	Full             int64 // steps that a full disk refused
	Damaged          int64 // stores with a damaged byte
}

// Add adds o to c.
func (c *Counts) Add(o Counts) {
	c.Opens += o.Opens
	c.Refreshes += o.Refreshes
	c.Operations += o.Operations
	c.Inside += o.Inside
	c.Retries += o.Retries
	c.TooOld += o.TooOld
	c.Locked += o.Locked
	c.Kills += o.Kills
	c.Cuts += o.Cuts
	c.Full += o.Full
	c.Damaged += o.Damaged
}

const storeDir = "/store"

// Run runs a trace turn by turn in another goroutine, on a disk in memory. Each call of look is
// between two turns; it may advance the trace. Run ends when the trace has, and look was called
// once more; or with an error of the trace or of look. wrap, if it is not nil, is between the
// writer and the disk.
func Run(
	f *Trace, trace func(*Trace), o oribi.Options, wrap func(vfs.FS) vfs.FS, look func(disk *vfs.Mem, w *Turns) error,
) error {
	disk := vfs.NewMem()
	w := NewTurns()
	w.Release()
	fsys := vfs.FS(disk)
	if wrap != nil {
		fsys = wrap(fsys)
	}
	o.FS, o.Manual, o.LogSegmentBytes = NewFS(fsys, w.Turn), true, 4096
	var err error
	if f.Store, err = oribi.Open(storeDir, &o); err != nil {
		return err
	}
	w.Stop()
	closed := make(chan error, 1)
	go func() {
		defer w.End()
		trace(f)
		closed <- f.Store.Close()
	}()
	w.Advance(0)
	for over := false; !over && err == nil && f.Err() == nil; {
		over = w.Over()
		err = look(disk, w)
	}
	w.Release()
	if cerr := <-closed; cerr != nil && f.May == nil {
		err = errors.Join(err, cerr)
	}
	return errors.Join(err, f.Err())
}

// Follower is a follower whose file operations are turns of their own. Opens, refreshes, and reads
// are compared with the states of a trace.
type Follower struct {
	Counts

	f    *Trace
	fs   vfs.FS
	last int // the state of the last look; the next is not before it
	s    *oribi.Store

	mu     sync.Mutex // a scan reads columns in parallel
	before func()     // is called before each operation
}

// NewFollower returns a follower of a trace, which is not open yet. view, if it is not nil, is
// between the follower and the disk.
func NewFollower(f *Trace, disk vfs.FS) *Follower {
	l := &Follower{f: f}
	l.fs = NewFS(disk, func(call func()) {
		l.mu.Lock()
		defer l.mu.Unlock()
		if l.before != nil {
			l.before()
		}
		call()
	})
	return l
}

// Close closes the follower, which may be opened again.
func (l *Follower) Close() error {
	if l.s == nil {
		return nil
	}
	s := l.s
	l.s = nil
	return s.Close()
}

// Look opens or refreshes the follower, and compares what it then sees. before, if it is not nil,
// is called before each file operation of the open or refresh. Errors: a wrong answer, and each
// other error than ErrTooOld or ErrLocked.
func (l *Follower) Look(before func(n int)) error {
	ctx := context.Background()
	from, _ := l.f.Moments()
	n := 0
	if before != nil {
		l.before = func() { before(n); n++ }
	}
	var err error
	if l.s == nil {
		l.Opens++
		l.s, err = oribi.Open(storeDir,
			&oribi.Options{FS: l.fs, Follow: true, Logger: slog.New(retryCounter{&l.Retries})})
	} else {
		l.Refreshes++
		err = l.s.Refresh(ctx)
	}
	l.before = nil
	_, to := l.f.Moments()
	if err != nil {
		if errors.Is(err, oribi.ErrLocked) {
			l.Locked++
			return nil
		}
		return fmt.Errorf("after %d operations: %w", n, err)
	}
	got, err := Content(l.s)
	switch {
	case errors.Is(err, oribi.ErrTooOld):
		l.TooOld++
		return nil
	case err != nil:
		return err
	}
	at := l.f.Find(got, max(from, l.last), to)
	if at < 0 {
		return fmt.Errorf("after %d operations of an open or refresh the follower has state %d\n%s\nwant one of the "+
			"states from %d to %d, not before %d:\n%s",
			n, l.f.Find(got, 0, to), got, from, to, l.last, l.f.States(from, to))
	}
	l.last = at
	if before == nil && (l.Opens+l.Refreshes)%3 == 0 {
		return l.compareWithNew()
	}
	return nil
}

// compareWithNew compares the tables of the follower, which has just been refreshed, with the
// tables of a follower that is opened now: rowsets, counters, and rows in memory. A refresh keeps
// parts of the old state, which must equal the state that an open reads.
func (l *Follower) compareWithNew() error {
	other, err := oribi.Open(storeDir, &oribi.Options{FS: l.fs, Follow: true})
	if err != nil {
		return err
	}
	defer other.Close()
	got, err := tablesText(l.s)
	if err != nil {
		return err
	}
	want, err := tablesText(other)
	if err == nil && got != want {
		err = fmt.Errorf("after a refresh the tables are\n%s\nof a new follower they are\n%s", got, want)
	}
	return err
}

func tablesText(s *oribi.Store) (string, error) {
	var b strings.Builder
	for _, t := range s.Tables() {
		st, err := t.Stats(false)
		if err != nil {
			return "", err
		}
		n, err := t.Count(context.Background())
		if err != nil {
			return "", err
		}
		fmt.Fprintf(&b, "%s: %d rows, %+v, %+v\n", t.Name(), n, st, t.Layout().RowSets)
	}
	return b.String(), nil
}

// retryCounter is a slog.Handler that counts what a follower says of its retries.
type retryCounter struct{ n *int64 }

// retryMessage begins the messages that are counted.
const retryMessage = "a follower tries again"

func (retryCounter) Enabled(context.Context, slog.Level) bool { return true }
func (c retryCounter) WithAttrs([]slog.Attr) slog.Handler     { return c }
func (c retryCounter) WithGroup(string) slog.Handler          { return c }

func (c retryCounter) Handle(_ context.Context, r slog.Record) error {
	if strings.HasPrefix(r.Message, retryMessage) {
		atomic.AddInt64(c.n, 1)
	}
	return nil
}

// Pause is one way to interleave a follower and a writer: before operation At of each open and
// refresh of the follower, the writer does Run operations, and between two of them Between. The
// first look is after First operations of the writer. Open makes each look an open.
type Pause struct {
	At, Run, Between, First int
	Open                    bool
}

// Interleave runs a trace with one way to interleave. steps is the largest number of operations of
// an open or refresh: with a higher At the writer does not run within them.
func Interleave(trace func(*Trace), o oribi.Options, p Pause) (c Counts, steps int, err error) {
	f := NewTrace()
	var l *Follower
	first, opened := true, 0
	err = Run(f, trace, o, nil, func(disk *vfs.Mem, w *Turns) error {
		if first {
			first, opened = false, w.Taken()
			w.Advance(p.First)
			l = NewFollower(f, disk)
		}
		if p.Open {
			if err := l.Close(); err != nil {
				return err
			}
		}
		at := w.Taken()
		var before func(n int)
		if p.Run > 0 {
			before = func(n int) {
				if n == p.At {
					w.Advance(p.Run)
					l.Inside++
				}
				steps = max(steps, n+1)
			}
		}
		if err := l.Look(before); err != nil {
			return fmt.Errorf("%+v, writer at operations %d to %d: %w", p, at, w.Taken(), err)
		}
		w.Advance(p.Between)
		if w.Taken() == at {
			w.Advance(1) // the look had too few operations for the pause
		}
		c.Operations = int64(w.Taken() - opened)
		return nil
	})
	if l != nil {
		err = errors.Join(err, l.Close())
		l.Operations = c.Operations
		c = l.Counts
	}
	return c, steps, err
}

// Pauses returns all ways to interleave a trace whose opens and refreshes take up to so many
// operations, with one pause within each of them. Together they put a pause before each operation
// of an open or refresh that begins after each operation of the writer.
func Pauses(steps int) (list []Pause) {
	for _, open := range []bool{true, false} {
		for _, run := range []int{1, 2, 3, 5, 8, 13, 30} {
			for at := range steps {
				for first := range min(run, 3) {
					list = append(list, Pause{At: at, Run: run, First: first, Open: open})
				}
			}
		}
		for between := range 12 { // no pause, but more has changed
			list = append(list, Pause{At: steps, Between: 1 + between*between, Open: open})
		}
	}
	return list
}

// sliceSteps is above the number of operations of a try to open or refresh in a short trace, and
// slicePart is how many ways to interleave one are a slice. Slices is the number of slices: first
// with a writer that keeps the files that followers need, then with a writer that keeps none.
const (
	sliceSteps = 100
	slicePart  = 20
	Slices     = 2 * ((pauseCount + slicePart - 1) / slicePart)
	pauseCount = 3624 // len(Pauses(sliceSteps))
)

// Slice runs part of all ways to interleave a short trace. After the last of Slices they repeat.
func Slice(n uint64) (total Counts, err error) {
	list, o := Pauses(sliceSteps), oribi.Options{}
	if len(list) != pauseCount {
		return total, fmt.Errorf("there are %d ways to interleave a trace, not %d", len(list), pauseCount)
	}
	if n %= Slices; n >= Slices/2 {
		n, o.FollowerLag = n-Slices/2, -1
	}
	at := n * slicePart
	for _, p := range list[at:min(at+slicePart, pauseCount)] {
		c, steps, err := Interleave(Short, o, p)
		if total.Add(c); err == nil && c.Retries == 0 && steps >= sliceSteps {
			err = fmt.Errorf("%+v: an open or refresh had %d operations, and the ways to interleave are for less "+
				"than %d", p, steps, sliceSteps)
		}
		if err != nil {
			return total, err
		}
	}
	return total, nil
}

// Explore runs a random trace with a follower that is looked at very often, at random moments, and
// opened again now and then. Between its looks, snapshots must stay as they are.
func Explore(seed uint64, steps int) (Counts, error) {
	r := rand.New(rand.NewPCG(seed, 4801))
	o := oribi.Options{}
	if seed%3 == 0 { // the writer keeps nothing
		o.FollowerLag = -1
	}
	f := NewTrace()
	var l *Follower
	var kept keptSnapshot
	err := Run(f, Random(rand.New(rand.NewPCG(seed, 4802)), steps), o, nil, func(disk *vfs.Mem, w *Turns) error {
		if l == nil {
			l = NewFollower(f, disk)
		}
		if r.IntN(60) == 0 {
			if err := errors.Join(kept.close(), l.Close()); err != nil {
				return err
			}
		}
		var before func(n int)
		at := w.Taken()
		if r.IntN(3) == 0 {
			l.Inside++
			from, pauses, most := r.IntN(30), 1+r.IntN(4), []int{1, 3, 20, 100}[r.IntN(4)]
			before = func(n int) {
				if n >= from && n < from+pauses {
					w.Advance(1 + r.IntN(most))
				}
			}
		}
		err := l.Look(before)
		if err == nil && l.s != nil && r.IntN(8) == 0 {
			err = kept.next(l)
		}
		if err != nil {
			return fmt.Errorf("writer at operations %d to %d: %w", at, w.Taken(), err)
		}
		w.Advance(r.IntN(5))
		if r.IntN(50) == 0 {
			w.Advance(r.IntN(200))
		}
		l.Operations = int64(w.Taken())
		return nil
	})
	if l == nil {
		return Counts{}, err
	}
	return l.Counts, errors.Join(err, kept.close(), l.Close())
}

// keptSnapshot is a snapshot of a follower, with the rows that a table had in it.
type keptSnapshot struct {
	sn    *oribi.Snapshot
	table *oribi.Table
	rows  string
}

func (k *keptSnapshot) close() error {
	if k.sn == nil {
		return nil
	}
	sn := k.sn
	k.sn = nil
	return sn.Close()
}

// next checks the snapshot and closes it, or takes one.
func (k *keptSnapshot) next(l *Follower) (err error) {
	if k.sn != nil {
		rows, err := k.read()
		switch {
		case errors.Is(err, oribi.ErrTooOld):
			l.TooOld++
		case err != nil:
			return fmt.Errorf("snapshot: %w", err)
		case rows != k.rows:
			return fmt.Errorf("table %s has in a snapshot\n%s\nhad\n%s", k.table.Name(), rows, k.rows)
		}
		return k.close()
	}
	tables := l.s.Tables()
	if len(tables) == 0 {
		return nil
	}
	if k.sn, err = l.s.Snapshot(context.Background()); err != nil {
		return err
	}
	k.table = tables[0]
	if k.rows, err = k.read(); err != nil {
		k.close()
		if errors.Is(err, oribi.ErrTooOld) {
			return nil
		}
	}
	return err
}

func (k *keptSnapshot) read() (string, error) {
	var b strings.Builder
	for row, err := range k.table.Scan(context.Background(), oribi.At(k.sn)).Rows() {
		if err != nil {
			return "", err
		}
		fmt.Fprintf(&b, " %d=%d", row["k"], row["v"])
	}
	return b.String(), nil
}
