package history

import (
	"errors"
	"fmt"
	"path/filepath"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/internal/prooftest/model"
	"github.com/oribi-db/oribi/mvcc"
	"github.com/oribi-db/oribi/vfs"
)

// surveyed is how many commits a copy is compared as of: the last ones, and as many others.
const surveyed = 12

// copy makes a checkpoint of the open store next to it, compares it, and removes it.
func (r *Runner) copy() error {
	fsys := r.fs()
	dir := filepath.Join(filepath.Dir(r.dir), "copy")
	if err := vfs.RemoveAll(fsys, dir); err != nil { // a crash may have left it
		return err
	}
	c, err := r.Store.Checkpoint(r.ctx, dir)
	if err != nil {
		return err
	}
	if err := r.CompareCopy(fsys, dir, c); err != nil {
		return fmt.Errorf("copy: %w", err)
	}
	return vfs.RemoveAll(fsys, dir)
}

// CompareCopy opens a copy of the open store, to which nothing was committed since, verifies it,
// compares it with the model, as of the newest commits and of some others, and writes to it.
func (r *Runner) CompareCopy(fsys vfs.FS, dir string, c oribi.CopyResult) (err error) {
	r.pass(c.Timestamp)
	opts := &oribi.Options{FS: fsys, Manual: true, ErrorIfMissing: true, MemoryLimit: r.Script.Settings.Memory,
		Clock: mvcc.NewLogicalClock(mvcc.First)}
	if r.Script.Settings.Hybrid {
		opts.Clock = mvcc.NewHybridClock(r.Wall.time)
	}
	s, err := oribi.Open(dir, opts)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	if !s.Recovery().Clean || s.Visible() != c.Timestamp {
		return fmt.Errorf("%+v, visible %d, want %d", s.Recovery(), uint64(s.Visible()), uint64(c.Timestamp))
	}
	all := len(r.Model.Commits)
	times := r.Model.SurveyTimestamps(max(0, all-surveyed))
	for i := range surveyed {
		if n := all * i / surveyed; n < all {
			times = append(times, r.Model.Commits[n].TS)
		}
	}
	v, err := model.SurveyStore(s, model.Ordered(times))
	if err != nil {
		return err
	}
	r.Counts.Rows += v.Rows
	r.Counts.Copies++
	if err := r.Model.Compare(v, all, ""); err != nil {
		return err
	}
	if err := model.Verified(s); err != nil {
		return err
	}
	ts, err := s.NewBatch().Commit(r.ctx)
	if err == nil && ts <= c.Timestamp {
		err = fmt.Errorf("the copy assigns timestamp %d, and has all up to %d", uint64(ts), uint64(c.Timestamp))
	}
	return err
}
