package tablet

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/blockmanager"
	"github.com/oribi-db/oribi/bloom"
	"github.com/oribi-db/oribi/change"
	"github.com/oribi-db/oribi/compaction"
	"github.com/oribi-db/oribi/delta"
	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/internal/record"
	"github.com/oribi-db/oribi/lsn"
	"github.com/oribi-db/oribi/mvcc"
	"github.com/oribi-db/oribi/rowset"
	"github.com/oribi-db/oribi/scan"
)

// Ingest writes rows in key order directly to new rowsets, which become part of the table all at
// once or not at all. Between BeginIngest and Finish, writers, flushes and compactions of the table
// continue. Not safe for concurrent use.
//
// The danger is a key that another writer inserts after Append has checked it:
//
//	ingest:  k does not exist, goes to a file                             commit: k is live twice
//	writer:                                   inserts k, commits
//
// So Finish looks up the keys of concurrent writes in the new files three times: first with
// writers, flushes and compactions running, because there may be many keys; then with flushes and
// compactions excluded; then with writers blocked, when few keys can remain.
//
// The steps of Finish:
//
//  1. All files except the undo files are written and synced. A crash here, or in any step before
//     the 5th, leaves unreferenced blocks.
//  2. Writers are blocked, and the last keys of concurrent writes are looked up.
//  3. An empty batch is appended to the log and synced. Its timestamp and LSN are the ingest's: no
//     other batch is assigned them, even after a crash, and no later batch is visible before it.
//  4. The undo files, which contain the timestamp, are written and synced.
//  5. One metadata commit. The new rowsets' included LSN is the empty batch's: replay applies
//     all later operations to them, and no earlier one affects their rows. The log contains
//     none of the rows, so the commit is confirmed.
//  6. Readers see the new state; then the empty batch is published, and with it the rows.
//
// Source: design §4.2, §5, §7.
type Ingest struct {
	Schema *TableSchema // of the rows; read-only

	// Purge commits deletes of rows that are expired, with these keys. The caller sets it if rows of
	// the table expire.
	Purge func(keys [][]byte) error

	// The files so far. No writer and no reader knows of them before the commit.
	t        *Tablet
	creation *blockmanager.Creation
	writer   *rowset.RollingWriter
	start    time.Time
	rows     int64
	last     []byte // the last appended key
	auto     int64  // the highest value of an auto-incrementing column
	out      []*rowset.Metadata

	// Every key was looked up in the state as of since or a later one, while other writers went on.
	// So only keys that were inserted after since are looked up again, with writers blocked. seen
	// contains the IDs of rowsets without newer rows.
	since mvcc.Timestamp
	seen  map[uint64]bool
	files *rowset.Tree // the new rowsets, opened to look up keys
}

// errOrder is the cause of a *change.RowError about a row out of key order.
var errOrder = errors.New("the key is not greater than the previous row's")

// BeginIngest returns an ingest without rows. The caller calls Abort at the end, also after Finish.
// Errors: ErrNoTable if the table was dropped; ErrClosed.
func (t *Tablet) BeginIngest() (*Ingest, error) {
	in := &Ingest{t: t, start: time.Now(), since: t.opts.Store.Visible(), seen: map[uint64]bool{}}
	st, err := t.acquire()
	if err != nil {
		return nil, err
	}
	defer st.release()
	for _, d := range st.tree.Sets {
		in.seen[d.Metadata().ID] = true
	}
	in.Schema = st.schema
	in.creation = t.opts.Store.NewCreation()
	in.writer = rowset.NewRollingWriter(in.creation, st.schema.Schema, t.newRowSetID, t.opts.TargetBytes)
	in.writer.RowFiles, in.writer.Dictionaries = t.Metadata().RowFile, &t.dictionaries
	return in, nil
}

// Rows returns the number of rows appended.
func (in *Ingest) Rows() int64 { return in.rows }

// Append appends rows, which must have no changes. Pass about a thousand rows or more at a time.
// Append does not retain them. Errors: a *change.RowError for a key that is not greater than the
// previous one, or, with ErrKeyExists, for a key that exists; write errors. After an error only
// Abort may be called.
func (in *Ingest) Append(rows *change.Rows) error {
	keys := rows.Keys
	if len(keys) == 0 {
		return nil
	}
	for i, k := range keys {
		if (i > 0 || in.rows > 0) && bytes.Compare(k, in.last) <= 0 {
			return in.rowError(in.rows+int64(i), k, errOrder)
		}
		in.last = k
	}
	in.last = bytes.Clone(in.last)
	if err := in.checkAbsent(keys); err != nil {
		return err
	}
	if err := in.writer.Append(rows); err != nil {
		return fmt.Errorf("table %q: %w", in.t.Name(), err)
	}
	in.rows += int64(len(keys))
	if i := in.Schema.auto; i >= 0 {
		for row := range len(keys) {
			in.auto = max(in.auto, autoValue(rows.Batch.Columns[i].Cell(row)))
		}
	}
	return nil
}

func (in *Ingest) rowError(row int64, key []byte, cause error) error {
	return &change.RowError{Row: int(row), Table: in.t.Name(), Key: in.t.KeyText(key), Cause: cause}
}

// checkAbsent returns an error for the first key that exists. The keys ascend. An expired row does
// not count as existing: checkAbsent deletes it, since no reader sees it.
func (in *Ingest) checkAbsent(keys [][]byte) error {
	expired, err := in.lookUp(keys)
	if err == nil && len(expired) > 0 {
		err = in.Purge(expired)
	}
	return err
}

// lookUp returns an error for the first of the keys that exists, and those that have an expired row.
func (in *Ingest) lookUp(keys [][]byte) (expired [][]byte, err error) {
	st, err := in.t.acquire()
	if err != nil {
		return nil, err
	}
	defer st.release()
	first, last := keys[0], keys[len(keys)-1]
	if st.memEndsBefore(first) && len(st.tree.Range(nil, first, append(bytes.Clone(last), 0))) == 0 {
		return nil, nil
	}
	w := Write{t: in.t, state: st} // not locked: Finish looks up what was written since
	if err := w.startExpiry(); err != nil {
		return nil, err
	}
	for i, k := range keys {
		p, err := w.find(bloom.MakeProbe(k))
		switch {
		case err != nil:
			return nil, fmt.Errorf("table %q: %w", in.t.Name(), err)
		case w.exists(p):
			return nil, in.rowError(in.rows+int64(i), k, fault.ErrKeyExists)
		case p.live:
			expired = append(expired, k)
		}
	}
	return expired, nil
}

// Finish commits the rows durably and returns their timestamp once they are visible. There must be
// at least one row.
//
// Errors: a *change.RowError with ErrKeyExists for a key that was inserted concurrently;
// ErrConflict if the schema was changed; ErrNoTable if the table was dropped; ctx's; write errors.
// After an error nothing has changed; only after ErrPoisoned the rows may be in the table.
func (in *Ingest) Finish(ctx context.Context) (ts mvcc.Timestamp, err error) {
	t := in.t
	if in.out, err = in.writer.Finish(); err != nil {
		return 0, fmt.Errorf("table %q: %w", t.Name(), err)
	}
	if err = in.creation.Sync(); err != nil {
		return 0, err
	}
	if err = in.openFiles(); err != nil {
		return 0, fmt.Errorf("table %q: %w", t.Name(), err)
	}
	defer in.closeFiles()
	if err = in.checkConcurrent(ctx); err != nil {
		return 0, err
	}
	err = t.exclusively(ctx, func() error {
		if err := in.checkConcurrent(ctx); err != nil {
			return err
		}
		at, lsn, err := in.install(ctx)
		if err == nil {
			ts, err = at, t.opts.Store.Wait(context.WithoutCancel(ctx), lsn)
		}
		return err
	})
	if err != nil {
		return 0, err
	}
	return ts, nil
}

// install is the last part of Finish, for the owner of the table.
func (in *Ingest) install(ctx context.Context) (ts mvcc.Timestamp, lsn lsn.LSN, err error) {
	t := in.t
	j, err := t.beginBlocked(ctx)
	if err != nil {
		return 0, 0, err
	}
	defer j.end()
	if j.st.schema != in.Schema {
		return 0, 0, fmt.Errorf("table %q: the schema was changed during the ingest: %w", t.Name(), fault.ErrConflict)
	}
	if err := in.checkConcurrentIn(ctx, j.st); err != nil {
		return 0, 0, err
	}
	in.closeFiles()
	if err := ctx.Err(); err != nil {
		return 0, 0, err
	}
	var rec record.Writer
	rec.Begin(0)
	ts, lsn, publish, err := t.opts.Store.Append(&rec, t.Number)
	if err != nil {
		return 0, 0, err
	}
	defer publish()
	j.start = in.start
	e := &j.edit
	e.Kind, e.Why = compaction.Ingest, "rows in key order"
	e.RowsRead, e.RowsWritten = in.rows, in.rows
	e.Created = append(e.Created, in.creation)
	e.Confirm, e.AutoIncrement = true, in.auto
	e.add(in.out, lsn)
	j.announce()
	for _, m := range in.out {
		m.Births = []delta.Birth{{Rows: uint32(m.Rows), TS: ts}}
		m.MaxTimestamp = ts
	}
	err = j.commit()
	j.record(err)
	return ts, lsn, err
}

// Abort discards what Finish has not committed. It is called once, at the end.
func (in *Ingest) Abort() {
	in.closeFiles()
	in.creation.Abort()
}

// openFiles opens the new rowsets. They have bloom files and key indexes, but no births yet.
func (in *Ingest) openFiles() (err error) {
	in.files, err = in.t.openUncommitted(in.creation, in.Schema, in.out)
	return err
}

func (in *Ingest) closeFiles() {
	closeUncommitted(in.files)
	in.files = nil
}

// checkConcurrent looks up the keys that were inserted since the previous check. Writers are not
// blocked.
func (in *Ingest) checkConcurrent(ctx context.Context) error {
	now := in.t.opts.Store.Visible() // read before the state, which therefore contains everything up to it
	st, err := in.t.acquire()
	if err != nil {
		return err
	}
	defer st.release()
	if err := in.checkConcurrentIn(ctx, st); err != nil {
		return err
	}
	in.since = now
	return nil
}

// checkConcurrentIn looks up in the new files the keys of a state that were inserted after since:
// the keys of rowsets with newer rows, from concurrent flushes and compactions, and of the
// MemRowSets.
func (in *Ingest) checkConcurrentIn(ctx context.Context, st *tabletState) error {
	first, last := in.out[0].MinKey, in.out[len(in.out)-1].MaxKey
	upper := append(bytes.Clone(last), 0)
	for _, d := range st.tree.Range(nil, first, upper) {
		m := d.Metadata()
		if !in.seen[m.ID] && m.MaxTimestamp > in.since {
			if err := in.checkRowSet(ctx, d, first, upper); err != nil {
				return err
			}
		}
		in.seen[m.ID] = true // rows are never added to a rowset
	}
	for _, m := range st.mems {
		it := m.ChangedSince(in.since, first, last)
		for keys := it.Next(batch.WindowRows); keys != nil; keys = it.Next(batch.WindowRows) {
			for _, k := range keys {
				if err := in.checkKey(k); err != nil {
					return err
				}
			}
		}
	}
	return ctx.Err()
}

// checkRowSet looks up in the new files the live rows of a rowset with keys in [lower, upper).
func (in *Ingest) checkRowSet(ctx context.Context, d *rowset.DiskRowSet, lower, upper []byte) error {
	req, err := scan.NewRequest(scan.Options{Schema: d.Schema, Lower: lower, Upper: upper,
		Snapshot: mvcc.Everything, Keys: true})
	if err != nil {
		return fmt.Errorf("table %q: %w", in.t.Name(), err)
	}
	it, err := d.NewIterator(req)
	if err != nil {
		return fmt.Errorf("table %q: %w", in.t.Name(), err)
	}
	defer it.Close()
	for it.Next() {
		sel := it.Batch().Selection
		for i := sel.Next(0); i >= 0; i = sel.Next(i + 1) {
			if err := in.checkKey(it.Keys()[i]); err != nil {
				return err
			}
		}
		if err := ctx.Err(); err != nil {
			return err
		}
	}
	if err := it.Close(); err != nil {
		return fmt.Errorf("table %q: %w", in.t.Name(), err)
	}
	return nil
}

// checkKey returns an error if the new files contain a key that is live elsewhere.
func (in *Ingest) checkKey(key []byte) error {
	var buf [1]*rowset.DiskRowSet
	for _, d := range in.files.Candidates(buf[:0], key) {
		at, found, err := d.Find(bloom.MakeProbe(key))
		if err != nil {
			return fmt.Errorf("table %q: %w", in.t.Name(), err)
		}
		if !found {
			continue
		}
		row := int64(at)
		for _, m := range in.out {
			if m.ID == d.Metadata().ID {
				break
			}
			row += m.Rows
		}
		return in.rowError(row, key, fault.ErrKeyExists)
	}
	return nil
}
