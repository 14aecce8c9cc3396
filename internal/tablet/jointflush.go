package tablet

import (
	"context"
	"errors"
	"fmt"

	"github.com/oribi-db/oribi/blockmanager"
	"github.com/oribi-db/oribi/internal/fault"
)

// jointFlush is a flush of several tables. Their files share containers, and they become part of
// the tables in one metadata commit. Each table has a job, with its own cutover point:
//
//	table 1   ├─ freeze, write ─┤                                   ├─ install ─┤
//	table 2                     ├─ freeze, write ─┤  one sync of       one metadata   ├─ install ─┤
//	table 3                                       …  the containers    commit
//
// A job holds the gate of its table alone, as in a flush of one table, and never two gates are held
// at once.
type jointFlush struct {
	creation *blockmanager.Creation
	jobs     []*job
	left     []*Tablet // tables of which only a MemRowSet is flushed that an earlier flush has left
}

// FlushTogether is Flush for several tables of one store, in ascending order of their numbers. It
// passes over dropped tables, and returns the number of bytes that it wrote to new files. After an
// error each table has what it had before, in memory or, if the store is poisoned, perhaps in files.
func FlushTogether(ctx context.Context, tables []*Tablet) (bytes int64, err error) {
	owned := 0
	defer func() {
		for _, t := range tables[:owned] {
			t.sendEvents()
		}
	}()
	defer func() {
		for _, t := range tables[:owned] {
			t.claims.endFlush()
		}
	}()
	for _, t := range tables {
		if err := t.claims.beginFlush(ctx); err != nil {
			return 0, err
		}
		owned++
	}
	if len(tables) == 0 {
		return 0, nil
	}
	f := jointFlush{creation: tables[0].opts.Store.NewCreation()}
	if err := f.run(ctx, tables); err != nil {
		return 0, err
	}
	for _, j := range f.jobs {
		bytes += j.edit.BytesWritten
	}
	for _, t := range f.left {
		rest, err := t.flush(ctx)
		if bytes += rest.BytesWritten; err != nil {
			return bytes, err
		}
	}
	return bytes, nil
}

// run flushes tables, all or none.
func (f *jointFlush) run(ctx context.Context, tables []*Tablet) (err error) {
	defer func() {
		for _, j := range f.jobs {
			j.end()
		}
		f.creation.Abort()
	}()
	for _, t := range tables {
		if err = f.write(ctx, t); err != nil {
			break
		}
	}
	if err == nil {
		err = f.commit(ctx)
	}
	for _, j := range f.jobs {
		j.record(err)
	}
	return err
}

// write begins the job of a table and writes its memory. It does nothing if the table was dropped or
// has nothing in memory.
func (f *jointFlush) write(ctx context.Context, t *Tablet) error {
	j, err := t.begin()
	if errors.Is(err, fault.ErrNoTable) {
		return nil
	}
	if err != nil {
		return err
	}
	left := j.st.frozen != nil
	if err = j.freeze(ctx, j.takeMemory); err == nil && !j.flushes() {
		err = j.awaitLog()
	}
	if err != nil || j.edit.Kind == "" {
		j.end()
		return err
	}
	j.creation, j.edit.Created = f.creation, []*blockmanager.Creation{f.creation}
	f.jobs = append(f.jobs, j)
	if left {
		f.left = append(f.left, t)
	}
	j.announce()
	before := f.creation.Bytes()
	err = j.writeMemory(ctx)
	j.edit.BytesWritten = f.creation.Bytes() - before
	return err
}

// commit commits the edits of all jobs, in metadata and then in memory.
func (f *jointFlush) commit(ctx context.Context) error {
	if len(f.jobs) == 0 {
		return nil
	}
	for _, j := range f.jobs {
		if err := j.awaitLog(); err != nil {
			return err
		}
	}
	if err := f.creation.Sync(); err != nil {
		return err
	}
	commits := make([]MetaCommit, len(f.jobs))
	for i, j := range f.jobs {
		c := newCatchUp(j)
		defer c.close()
		var err error
		if commits[i], err = c.metaCommit(ctx); err != nil {
			return fmt.Errorf("table %q: %w", j.t.Name(), err)
		}
	}
	return f.jobs[0].t.opts.Store.CommitMeta(commits...)
}
