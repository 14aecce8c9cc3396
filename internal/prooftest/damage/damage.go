// Package damage damages the files of closed stores and checks that every read afterwards returns
// the correct answer or an error.
//
// Store changes random bytes. Bits flips every bit of a store, slice by slice. It flips bits inside
// blocks under open readers, which takes microseconds; opening the store would take milliseconds.
// Foreign removes, truncates, swaps and replaces whole files.
package damage

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/internal/prooftest/files"
	"github.com/oribi-db/oribi/internal/prooftest/history"
	"github.com/oribi-db/oribi/internal/prooftest/model"
	"github.com/oribi-db/oribi/internal/prooftest/script"
	"github.com/oribi-db/oribi/mvcc"
	"github.com/oribi-db/oribi/vfs"
)

// Store is a small closed store with its model. Copies of it are damaged.
type Store struct {
	r     *history.Runner
	image *vfs.Mem
	files []string
	moms  []mvcc.Timestamp
	fixed bool // no table was altered, renamed or dropped
}

// Counts counts the damaged copies and the outcomes.
type Counts struct {
	Flips    int64
	Refused  int64 // Open failed
	Errors   int64 // a read failed
	Answered int64 // all reads were correct
	Found    int64 // of those, Verify reported the damage
}

// Add adds o to c.
func (c *Counts) Add(o Counts) {
	c.Flips += o.Flips
	c.Refused += o.Refused
	c.Errors += o.Errors
	c.Answered += o.Answered
	c.Found += o.Found
}

// New creates the store of a seed from a random history without crashes. It is closed with rows in
// files and rows in the log.
func New(seed uint64, steps int64) (*Store, error) {
	o := history.RandomSettings(seed)
	o.Hybrid, o.History, o.NoCrashes, o.Keys = false, 0, true, 60
	return newStore(o, func(r *history.Runner) bool { return r.Counts.Steps < steps })
}

// NewTiny creates the store of a seed with few keys, which are inserted, deleted, ingested and
// flushed again and again. Its tables do not change.
func NewTiny(seed uint64) (*Store, error) {
	o := history.RandomSettings(seed)
	o.Hybrid, o.History, o.NoCrashes, o.Keys, o.Batch = false, 0, true, 1+int(seed%5), 0
	o.Segment = []int64{0, 0, 4 << 10}[seed%3]
	r, g := history.NewRunner(o), history.NewChurn(o)
	for r.Err == nil && r.Counts.Steps < 6+int64(seed%40) {
		r.Do(g.Next(r))
	}
	d, err := closed(r)
	if err == nil {
		d.fixed = true
	}
	return d, err
}

// NewLarge creates the store of a seed with some ten thousands of rows, in many rowsets with
// several deltas. Its tables do not change.
func NewLarge(seed uint64) (*Store, error) {
	const enough, most = 20_000, 400
	o := history.LargeSettings(seed)
	r, g := history.NewRunner(o), history.NewLarge(o)
	rows := func() (n int) {
		for _, t := range r.Model.Tables {
			n += len(t.Order)
		}
		return n
	}
	for r.Err == nil && rows() < enough && r.Counts.Steps < most {
		r.Do(g.Next(r))
	}
	d, err := closed(r)
	if err == nil {
		d.fixed = true
	}
	return d, err
}

// newStore creates a store by random steps until more returns false.
func newStore(o script.Settings, more func(*history.Runner) bool) (*Store, error) {
	r := history.NewRunner(o)
	g := history.NewGenerator(o)
	for r.Err == nil && more(r) {
		r.Do(g.Next(r))
	}
	for _, name := range r.Model.Names() {
		r.Do(script.Step{Kind: script.Flush, Table: name})
	}
	for range 5 { // for the log
		st := g.Write(r, r.Model.Names())
		r.Do(st)
	}
	return closed(r)
}

// closed closes the store of a runner.
func closed(r *history.Runner) (*Store, error) {
	r.Close()
	if r.Err != nil {
		return nil, r.Err
	}
	d := &Store{r: r, image: r.Written()}
	d.moms = []mvcc.Timestamp{mvcc.Max}
	if n := len(r.Model.Commits); n > 0 {
		d.moms = []mvcc.Timestamp{r.Model.Commits[n/3].TS, r.Model.Commits[n*4/5].TS, mvcc.Max}
	}
	var err error
	if d.files, err = files.Files(d.image, history.Dir); err != nil {
		return nil, err
	}
	return d, d.sortContainers()
}

// sortContainers puts containers, whose names are random, in the order of their content. So a seed
// damages the same blocks in each run.
func (d *Store) sortContainers() error {
	content := map[string][]byte{}
	isContainer := func(name string) bool { return strings.HasSuffix(name, ".data") }
	from := max(0, slices.IndexFunc(d.files, isContainer))
	to := from
	for ; to < len(d.files) && isContainer(d.files[to]); to++ {
		b, err := files.ReadFile(d.image, d.files[to])
		if err != nil {
			return err
		}
		content[d.files[to]] = b[min(len(b), headerPage):] // the header page has the name
	}
	slices.SortFunc(d.files[from:to], func(a, b string) int { return bytes.Compare(content[a], content[b]) })
	return nil
}

// Script returns the history that created the store.
func (d *Store) Script() *script.Script { return d.r.Script }

// Flip is a change of bits in one byte of a file.
type Flip struct {
	File   string
	Offset int64
	Mask   byte
}

func (f Flip) String() string { return fmt.Sprintf("%s byte %d ^ %02x", f.File, f.Offset, f.Mask) }

// RandomFlip chooses a file, then a byte of it, then a bit or several.
func (d *Store) RandomFlip(r *rand.Rand) (Flip, error) {
	for {
		name := d.files[r.IntN(len(d.files))]
		b, err := files.ReadFile(d.image, name)
		if err != nil {
			return Flip{}, err
		}
		if len(b) == 0 {
			continue
		}
		f := Flip{name, int64(r.IntN(len(b))), 1 << r.IntN(8)}
		if r.IntN(4) == 0 {
			f.Mask = byte(1 + r.IntN(255))
		}
		if r.IntN(2) == 0 { // files are mostly padding: move half of the flips to nonzero bytes
			for range 64 {
				if b[f.Offset] != 0 {
					break
				}
				f.Offset = int64(r.IntN(len(b)))
			}
		}
		return f, nil
	}
}

// Try damages a copy and reads all of it by scans, keys and count, opened for reading or writing. A
// writer also compacts and reads again. Try returns an error for a wrong answer and for an error
// that does not report the damage.
func (d *Store) Try(f Flip, readOnly bool) (c Counts, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v", p)
		}
	}()
	c.Flips = 1
	image := d.image.Clone()
	if err := flip(image, f); err != nil {
		return c, err
	}
	opts := d.r.Options(image)
	opts.ReadOnly = readOnly
	s, err := oribi.Open(history.Dir, opts)
	if err != nil {
		c.Refused = 1
		return c, damaged(err)
	}
	defer s.Close()
	if err = d.read(s); err == nil && !readOnly {
		if err = d.compact(s); err == nil {
			err = d.read(s)
		}
	}
	if err != nil {
		c.Errors = 1
		return c, damaged(err)
	}
	c.Answered = 1
	err = s.Verify(context.Background(), func(oribi.Finding) { c.Found = 1 })
	return c, damaged(err)
}

func flip(m *vfs.Mem, fl Flip) error {
	f, err := m.Open(fl.File, true)
	if err != nil {
		return err
	}
	defer f.Close()
	var b [1]byte
	if _, err := f.ReadAt(b[:], fl.Offset); err != nil {
		return err
	}
	b[0] ^= fl.Mask
	_, err = f.WriteAt(b[:], fl.Offset)
	return err
}

// damaged returns nil for errors that report damage, which are expected, and any other err.
func damaged(err error) error {
	for _, ok := range []error{nil, oribi.ErrCorrupt, oribi.ErrNotStore, oribi.ErrUnsupported} {
		if errors.Is(err, ok) {
			return nil
		}
	}
	return err
}

var errWrong = errors.New("wrong answer")

// read compares the whole store with its model.
func (d *Store) read(s *oribi.Store) error { return readStore(s, d.r.Model, d.moms) }

// readStore compares the tables as of some timestamps, by scans, and each key now.
func readStore(s *oribi.Store, all *model.Model, timestamps []mvcc.Timestamp) error {
	if got, want := len(s.Tables()), len(all.Tables); got != want {
		return fmt.Errorf("%w: %d tables, want %d", errWrong, got, want)
	}
	for name, m := range all.Tables {
		t, err := s.Table(name)
		if err != nil {
			return fmt.Errorf("%w: table %s: %v", errWrong, name, err)
		}
		for _, ts := range timestamps {
			sum, _, err := model.StoreDigest(context.Background(), t, ts)
			if err != nil {
				return err
			}
			if sum != m.Digest(ts) {
				return fmt.Errorf("%w: table %s as of %d", errWrong, name, uint64(ts))
			}
		}
		if err := readKeys(context.Background(), t, m); err != nil {
			return err
		}
	}
	return nil
}

// readKeys gets every key ever written, and counts the rows.
func readKeys(ctx context.Context, t *oribi.Table, m *model.Table) error {
	var live int64
	for _, r := range m.Order {
		want := r.At(mvcc.Max)
		_, cells, err := t.GetCells(ctx, r.Key)
		switch {
		case want == nil && errors.Is(err, oribi.ErrNotFound):
			continue
		case errors.Is(err, oribi.ErrNotFound), err == nil && want == nil:
			return fmt.Errorf("%w: table %s: key %s: %v", errWrong, m.Name, script.CellsText(r.Key, nil, " "), err)
		case err != nil:
			return err
		}
		live++
		if err := history.DifferentCells(cells, want); err != nil {
			return fmt.Errorf("%w: table %s: %v", errWrong, m.Name, err)
		}
	}
	n, err := t.Count(ctx)
	if err == nil && n != live {
		err = fmt.Errorf("%w: table %s: %d rows, want %d", errWrong, m.Name, n, live)
	}
	return err
}

func (d *Store) compact(s *oribi.Store) error {
	for _, t := range s.Tables() {
		if err := t.Compact(context.Background()); err != nil {
			return err
		}
	}
	return nil
}
