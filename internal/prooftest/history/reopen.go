package history

import (
	"context"
	"fmt"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/internal/prooftest/files"
	"github.com/oribi-db/oribi/internal/prooftest/model"
	"github.com/oribi-db/oribi/internal/prooftest/script"
	"github.com/oribi-db/oribi/internal/prooftest/values"
	"github.com/oribi-db/oribi/vfs"
	"github.com/oribi-db/oribi/vfs/crashfs"
	"github.com/oribi-db/oribi/vfs/faultfs"
)

// reopen closes or crashes the store, opens it again, and compares everything that may have
// changed.
func (r *Runner) reopen(st *script.Step) error {
	least := len(r.Model.Commits)
	switch st.Kind {
	case script.Reopen, script.ReadOnly:
		r.Counts.Reopenings++
		if err := r.Store.Close(); err != nil {
			return fmt.Errorf("close: %w", err)
		}
		if st.Kind == script.ReadOnly {
			if err := r.readOnly(); err != nil {
				return err
			}
		}
	default:
		r.Counts.Crashes++
		if st.Kind != script.Kill {
			least = r.Model.Durable
		}
		if err := r.crash(st); err != nil {
			return err
		}
	}
	if err := r.rollbackAll(every); err != nil { // after the store was closed, or the crash
		return err
	}
	if err := r.open(); err != nil {
		return err
	}
	n, v, err := r.compareOpen(least)
	if err != nil {
		return err
	}
	r.Counts.Lost += int64(len(r.Model.Commits) - n)
	r.Model.Truncate(n)
	r.Model.Durable = n // opening the store has made replayed batches durable
	r.passed = r.Model.Newest()
	for _, ts := range v.Timestamps[:len(v.Timestamps)-1] { // the reads advanced the clock, even past lost batches
		if len(v.Tables) > 0 && !v.Future[ts] {
			r.pass(ts)
		}
	}
	return nil
}

// crash replaces the disk with the disk as a crash leaves it. The old store is closed on the old
// disk.
func (r *Runner) crash(st *script.Step) error {
	defer r.Store.Close()
	if r.crashes == nil {
		if r.Mem == nil || st.Kind != script.Kill {
			return fmt.Errorf("there are no crashes on this disk")
		}
		r.Mem = r.Mem.Clone()
		r.disk = r.Mem
		return nil
	}
	at := r.crashes.Point()
	switch st.Kind {
	case script.Kill:
		r.crashes = at.Resume()
	case script.Cut:
		r.crashes = crashfs.New(at.Cut())
	case script.Tear:
		r.crashes = crashfs.New(at.Random(values.NewRand(st.Mask)))
	}
	r.disk = r.crashes
	return nil
}

// compareOpen returns the number of commits of the open store, at least n, and the reads made to
// determine it.
func (r *Runner) compareOpen(n int) (int, *model.Survey, error) {
	v, err := model.SurveyStore(r.Store, r.Model.SurveyTimestamps(n))
	if err != nil {
		return 0, nil, err
	}
	r.Counts.Rows += v.Rows
	n, err = r.Model.Survivors(v, n, nil, "")
	return n, v, err
}

// readOnly opens the closed store for reading, twice at the same time, compares it, and checks that
// nothing was written.
func (r *Runner) readOnly() error {
	before, err := files.Fingerprint(r.disk, r.dir)
	if err != nil {
		return err
	}
	opts := r.Options(unchanging(r.disk))
	opts.ReadOnly = true
	s, err := oribi.Open(r.dir, opts)
	if err != nil {
		return fmt.Errorf("open to read: %w", err)
	}
	err = r.compareReadOnly(s)
	if closeErr := s.Close(); err == nil {
		err = closeErr
	}
	if err != nil {
		return fmt.Errorf("read-only: %w", err)
	}
	after, err := files.Fingerprint(r.disk, r.dir)
	if err == nil && before != after {
		err = fmt.Errorf("read-only: the files have changed")
	}
	return err
}

// unchanging refuses all changes of the disk.
func unchanging(disk vfs.FS) vfs.FS {
	f := faultfs.New(disk)
	f.Watch(func(c faultfs.Call) error {
		if c.Changes() {
			return fmt.Errorf("a reader changes the disk: %s %s", c.Op, c.Name)
		}
		return nil
	})
	return f
}

func (r *Runner) compareReadOnly(s *oribi.Store) error {
	second := r.Options(unchanging(r.disk))
	second.ReadOnly = true
	other, err := oribi.Open(r.dir, second)
	if err != nil {
		return fmt.Errorf("a second reader: %w", err)
	}
	defer other.Close()
	if _, err := oribi.Open(r.dir, r.Options(r.disk)); want(err, oribi.ErrLocked) != nil {
		return fmt.Errorf("a writer while readers are open: %w", err)
	}
	n := len(r.Model.Commits)
	v, err := model.SurveyStore(s, r.Model.SurveyTimestamps(n))
	if err != nil {
		return err
	}
	r.Counts.Rows += v.Rows
	if _, err := r.Model.Survivors(v, n, nil, ""); err != nil {
		return err
	}
	return refusesWrites(s)
}

// refusesWrites checks that a read-only store refuses every write.
func refusesWrites(s *oribi.Store) error {
	ctx := context.Background()
	_, err := s.NewBatch().Commit(ctx)
	if err := want(err, oribi.ErrReadOnly); err != nil {
		return fmt.Errorf("commit: %w", err)
	}
	for _, t := range s.Tables() {
		if err := want(t.Flush(ctx), oribi.ErrReadOnly); err != nil {
			return fmt.Errorf("flush: %w", err)
		}
		if err := want(t.Compact(ctx), oribi.ErrReadOnly); err != nil {
			return fmt.Errorf("compact: %w", err)
		}
		if err := want(s.DropTable(t.Name()), oribi.ErrReadOnly); err != nil {
			return fmt.Errorf("drop: %w", err)
		}
		_, err := s.CreateTable("new", t.Schema())
		if err := want(err, oribi.ErrReadOnly); err != nil {
			return fmt.Errorf("create: %w", err)
		}
	}
	return nil
}
