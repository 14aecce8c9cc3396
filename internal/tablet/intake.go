package tablet

import (
	"bytes"
	"context"
	"fmt"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/blockmanager"
	"github.com/oribi-db/oribi/bloom"
	"github.com/oribi-db/oribi/compaction"
	"github.com/oribi-db/oribi/delta"
	"github.com/oribi-db/oribi/lsn"
	"github.com/oribi-db/oribi/mvcc"
	"github.com/oribi-db/oribi/rowset"
	"github.com/oribi-db/oribi/scan"
)

// intake is the part of an Ingest that concerns the table, or one of its indexes: new rowsets, whose keys must
// not be live elsewhere when they become part of the table. No writer and no reader knows of them before the
// commit.
type intake struct {
	t        *Tablet
	schema   *TableSchema
	creation *blockmanager.Creation
	writer   *rowset.RollingWriter
	out      []*rowset.Metadata // all that are finished
	files    *rowset.Tree       // those of out that are open, to look up keys

	// Every key was looked up in the state as of since or a later one, while other writers went on.
	// So only keys that were inserted after since are looked up again, with writers blocked. seen
	// contains the IDs of rowsets without newer rows.
	since mvcc.Timestamp
	seen  map[uint64]bool

	// taken returns the error of a key that is live in st, and row of the new files, in d. nil: keys need not be
	// looked up.
	taken func(st *tabletState, key []byte, row int64, d *rowset.DiskRowSet) error
}

func (t *Tablet) beginIntake() (k intake, err error) {
	since := t.opts.Store.Visible() // read before the state, which therefore contains everything up to it
	st, err := t.acquire()
	if err != nil {
		return k, err
	}
	defer st.release()
	k = intake{t: t, schema: st.schema, creation: t.opts.Store.NewCreation(), since: since, seen: map[uint64]bool{}}
	for _, d := range st.tree.Sets {
		k.seen[d.Metadata().ID] = true
	}
	k.beginRun()
	return k, nil
}

// beginRun begins a run of rows in key order.
func (k *intake) beginRun() {
	k.writer = rowset.NewRollingWriter(k.creation, k.schema.Schema, k.t.newRowSetID, k.t.opts.TargetBytes)
	k.writer.RowFiles, k.writer.Dictionaries = k.t.Metadata().RowFile, &k.t.dictionaries
}

// endRun finishes the files of a run.
func (k *intake) endRun() error {
	out, err := k.writer.Finish()
	if err != nil {
		return k.errorf(err)
	}
	k.out = append(k.out, out...)
	return nil
}

// open opens the new rowsets. They have bloom files and key indexes, but no births yet.
func (k *intake) open() error {
	k.closeFiles()
	var err error
	if k.files, err = k.t.openUncommitted(k.creation, k.schema, k.out); err != nil {
		return k.errorf(err)
	}
	return nil
}

// finish finishes, syncs, and opens the new files.
func (k *intake) finish() error {
	if err := k.endRun(); err != nil {
		return err
	}
	if err := k.creation.Sync(); err != nil {
		return err
	}
	return k.open()
}

func (k *intake) closeFiles() {
	closeUncommitted(k.files)
	k.files = nil
}

func (k *intake) errorf(err error) error { return fmt.Errorf("table %q: %w", k.t.Name(), err) }

// fill fills in the edit of the job that commits the new rowsets.
func (k *intake) fill(j *job, ts mvcc.Timestamp, at lsn.LSN, rows int64) {
	e := &j.edit
	e.Kind, e.Why = compaction.Ingest, "rows in key order"
	e.RowsRead, e.RowsWritten = rows, rows
	e.Created = append(e.Created, k.creation)
	e.Confirm = true
	e.add(k.out, at)
	for _, m := range k.out {
		m.Births = []delta.Birth{{Rows: uint32(m.Rows), TS: ts}}
		m.MaxTimestamp = ts
	}
}

// checkConcurrent looks up the keys that were inserted since the previous check. Writers are not
// blocked.
func (k *intake) checkConcurrent(ctx context.Context) error {
	now := k.t.opts.Store.Visible() // read before the state, which therefore contains everything up to it
	st, err := k.t.acquire()
	if err != nil {
		return err
	}
	defer st.release()
	if err := k.checkConcurrentIn(ctx, st); err != nil {
		return err
	}
	k.since = now
	return nil
}

// checkConcurrentIn looks up in the new files the keys of a state that were inserted after since:
// the keys of rowsets with newer rows, from concurrent flushes and compactions, and of the
// MemRowSets.
func (k *intake) checkConcurrentIn(ctx context.Context, st *tabletState) error {
	if k.taken == nil {
		return nil
	}
	first, last := k.out[0].MinKey, k.out[0].MaxKey
	for _, m := range k.out {
		if bytes.Compare(m.MinKey, first) < 0 {
			first = m.MinKey
		}
		if bytes.Compare(m.MaxKey, last) > 0 {
			last = m.MaxKey
		}
	}
	upper := append(bytes.Clone(last), 0)
	for _, d := range st.tree.Range(nil, first, upper) {
		m := d.Metadata()
		if !k.seen[m.ID] && m.MaxTimestamp > k.since {
			if err := k.checkRowSet(ctx, st, d, first, upper); err != nil {
				return err
			}
		}
		k.seen[m.ID] = true // rows are never added to a rowset
	}
	for _, m := range st.mems {
		it := m.ChangedSince(k.since, first, last)
		for keys := it.Next(batch.WindowRows); keys != nil; keys = it.Next(batch.WindowRows) {
			for _, key := range keys {
				if err := k.checkKey(st, key); err != nil {
					return err
				}
			}
		}
	}
	return ctx.Err()
}

// checkRowSet looks up in the new files the live rows of a rowset with keys in [lower, upper).
func (k *intake) checkRowSet(ctx context.Context, st *tabletState, d *rowset.DiskRowSet, lower, upper []byte) error {
	req, err := scan.NewRequest(scan.Options{Schema: d.Schema, Lower: lower, Upper: upper,
		Snapshot: mvcc.Everything, Keys: true})
	if err != nil {
		return k.errorf(err)
	}
	it, err := d.NewIterator(req)
	if err != nil {
		return k.errorf(err)
	}
	defer it.Close()
	for it.Next() {
		sel := it.Batch().Selection
		for i := sel.Next(0); i >= 0; i = sel.Next(i + 1) {
			if err := k.checkKey(st, it.Keys()[i]); err != nil {
				return err
			}
		}
		if err := ctx.Err(); err != nil {
			return err
		}
	}
	if err := it.Close(); err != nil {
		return k.errorf(err)
	}
	return nil
}

// checkKey returns an error if the new files contain a key that is live in st.
func (k *intake) checkKey(st *tabletState, key []byte) error {
	d, at, err := k.find(bloom.MakeProbe(key))
	if err != nil || d == nil {
		return err
	}
	row := int64(at)
	for _, m := range k.out {
		if m.ID == d.Metadata().ID {
			break
		}
		row += m.Rows
	}
	return k.taken(st, key, row, d)
}

// find returns the new rowset, of those that are open, with a key, and its row there, or nil.
func (k *intake) find(p bloom.Probe) (*rowset.DiskRowSet, batch.Ordinal, error) {
	if k.files == nil {
		return nil, 0, nil
	}
	var buf [1]*rowset.DiskRowSet
	for _, d := range k.files.Candidates(buf[:0], p.Key) {
		at, found, err := d.Find(p)
		if err != nil {
			return nil, 0, k.errorf(err)
		}
		if found {
			return d, at, nil
		}
	}
	return nil, 0, nil
}
