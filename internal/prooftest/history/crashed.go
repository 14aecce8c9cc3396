package history

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/internal/prooftest/files"
	"github.com/oribi-db/oribi/internal/prooftest/model"
	"github.com/oribi-db/oribi/internal/prooftest/script"
	"github.com/oribi-db/oribi/mvcc"
	"github.com/oribi-db/oribi/vfs"
	"github.com/oribi-db/oribi/vfs/crashfs"
)

// Crashed is the disk image of a crash and the states that it may contain.
type Crashed struct {
	Model    *model.Model
	Image    *vfs.Mem
	Least    int            // minimum number of commits
	inFlight *model.Outcome // one more commit that may be included
	unsure   string         // a table that may or may not exist
	altering *script.Step   // an Alter or a Rename that may or may not be included
	Settings script.Settings
	Wall     *Wall

	alteredFrom uint32       // the schema version without it
	altered     *model.Model // the model with it; nil until needed

	Lost int
	Took bool // the batch in flight is included

	visible mvcc.Timestamp // what the store showed when Look had opened it, before any read
}

// Crashed returns the possible result of a crash now; the caller sets Image. Least is the number of
// batches that a power cut must not lose. The caller holds r.State if other goroutines use the
// runner.
func (r *Runner) Crashed() *Crashed {
	m := r.Model.Clone()
	return &Crashed{Model: m, Least: m.Durable, inFlight: r.InFlight.Rebase(m), unsure: r.Unsure,
		altering: r.Altering, alteredFrom: r.alteredFrom,
		Settings: r.Script.Settings, Wall: r.Wall}
}

// Runner returns a runner that has not opened the image yet.
func (p *Crashed) Runner() *Runner {
	return &Runner{Script: &script.Script{Settings: p.Settings}, Model: p.Model, dir: Dir, disk: p.Image,
		Wall: p.Wall.Clone(), ctx: context.Background()}
}

// Recover opens the image for reading and twice for writing, compares it each time, and continues
// with the matching model.
func (p *Crashed) Recover() (*Runner, error) {
	timestamps := p.Model.SurveyTimestamps(p.Least)
	first, err := p.Reader(timestamps)
	if err != nil {
		return nil, err
	}
	visible := p.visible
	r := p.Runner()
	n, m, err := p.Look(r.Options(p.Image), timestamps, nil)
	if err != nil {
		return nil, err
	}
	if n != first {
		return nil, fmt.Errorf("a reader finds %d batches, a writer %d", first, n)
	}
	p.Model, r.Model = m, m
	if err := r.OpenOn(crashfs.New(p.Image)); err != nil {
		return nil, fmt.Errorf("a second time: %w", err)
	}
	return r, p.adopt(r, n, visible)
}

// Reader opens the image for reading, checks that nothing was written, and returns the number of
// batches.
func (p *Crashed) Reader(timestamps []mvcc.Timestamp) (n int, err error) {
	before, err := files.Fingerprint(p.Image, Dir)
	if err != nil {
		return 0, err
	}
	opts := p.Runner().Options(unchanging(p.Image))
	opts.ReadOnly = true
	if n, _, err = p.Look(opts, timestamps, nil); err != nil {
		return 0, fmt.Errorf("read-only: %w", err)
	}
	if after, err := files.Fingerprint(p.Image, Dir); err != nil || before != after {
		return 0, fmt.Errorf("read-only: the files have changed (%v)", err)
	}
	return n, nil
}

// Look opens the store, determines which model it matches and with how many batches, comparing it
// at timestamps, calls then unless it is nil, and closes the store.
func (p *Crashed) Look(
	opts *oribi.Options, timestamps []mvcc.Timestamp, then func(*oribi.Store) error,
) (n int, m *model.Model, err error) {
	s, err := oribi.Open(Dir, opts)
	if err != nil {
		return 0, nil, err
	}
	defer func() {
		if closeErr := s.Close(); err == nil && closeErr != nil {
			err = fmt.Errorf("close: %w", closeErr)
		}
	}()
	p.visible = s.Visible()
	m = p.shown(s)
	v, err := model.SurveyStore(s, timestamps)
	if err == nil {
		n, err = m.Survivors(v, p.Least, p.inFlight, p.unsure)
	}
	if err == nil && then != nil {
		err = then(s)
	}
	return n, m, err
}

// shown returns the model that a store matches: the one before or after the Alter or Rename in
// progress.
func (p *Crashed) shown(s *oribi.Store) *model.Model {
	if p.altering == nil || !p.includes(s) {
		return p.Model
	}
	if p.altered == nil {
		p.altered = p.Model.Clone()
		if t, err := s.Table(p.altering.Table); err == nil {
			p.altered.Since = t.Properties().Expiry.Since
		}
		p.altered.Change(p.altering)
	}
	return p.altered
}

// includes reports whether a store includes the Alter or Rename in progress.
func (p *Crashed) includes(s *oribi.Store) bool {
	if p.altering.Kind == script.Rename {
		_, err := s.Table(p.altering.Name)
		return err == nil
	}
	t, err := s.Table(p.altering.Table)
	return err == nil && t.Properties().SchemaVersion > p.alteredFrom
}

// adopt replaces the model by the state of the open store. ts is the timestamp of the batch in
// flight, if it is included. The store shows it when it is opened first; after reads of rows that
// expire, a later Open may show a higher one, up to which these reads have promised that nothing
// changes.
func (p *Crashed) adopt(r *Runner, n int, ts mvcc.Timestamp) error {
	if p.unsure != "" {
		_, err := r.Store.Table(p.unsure)
		switch there := err == nil; {
		case there && r.Model.Tables[p.unsure] == nil:
			if err := r.Store.DropTable(p.unsure); err != nil {
				return err
			}
		case !there && r.Model.Tables[p.unsure] != nil:
			r.Model.Drop(p.unsure)
		}
	}
	if p.Took = n > len(r.Model.Commits); p.Took {
		if ts <= r.Model.Newest() {
			return fmt.Errorf("the store has another batch, but timestamp %d was visible before", uint64(ts))
		}
		p.Model.Commit(p.inFlight, ts)
	}
	p.Lost = len(r.Model.Commits) - n
	r.Wall.pass(r.Model.Newest()) // it was read, though the crash may have lost it
	r.Model.Truncate(n)
	r.Model.Durable = n
	r.passed = r.Model.Newest()
	return nil
}

// Format completes a store whose creation met the fault.
func (p *Crashed) Format() error {
	r := &Runner{Script: &script.Script{Settings: p.Settings}, Model: p.Model, dir: Dir, disk: p.Image, Mem: p.Image,
		Wall: p.Wall, ctx: context.Background()}
	opts := r.Options(p.Image)
	opts.ErrorIfMissing = true
	s, err := oribi.Open(Dir, opts)
	switch {
	case errors.Is(err, oribi.ErrNotStore) && len(p.Model.Tables) == 0 && p.Model.Durable == 0:
		s, err = oribi.Open(Dir, r.Options(p.Image))
	}
	if err != nil {
		return err
	}
	return s.Close()
}

// Count is Probe at all timestamps that distinguish numbers of batches: a later batch may have
// reverted an earlier one.
func (p *Crashed) Count() (n int, err error) {
	n, _, err = p.Look(p.Runner().Options(p.Image), p.Model.SurveyTimestamps(p.Least), model.Verified)
	return n, err
}

// Probe opens the image for writing, compares all tables, now and at a past timestamp, calls
// Verify, and returns the number of batches.
func (p *Crashed) Probe(rng *rand.Rand) (n int, err error) {
	n, _, err = p.Look(p.Runner().Options(p.Image), p.Model.SampleTimestamps(rng), model.Verified)
	return n, err
}
