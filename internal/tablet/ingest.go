package tablet

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/oribi-db/oribi/blockmanager"
	"github.com/oribi-db/oribi/bloom"
	"github.com/oribi-db/oribi/change"
	"github.com/oribi-db/oribi/compaction"
	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/lsn"
	"github.com/oribi-db/oribi/mvcc"
	"github.com/oribi-db/oribi/rowset"
	"github.com/oribi-db/oribi/scan"
)

// Ingest writes rows that come in key order straight to new rowsets, which become part of the table
// all at once or not at all. Between Begin and Finish the table's writers, flushes and compactions
// go on. For one goroutine.
//
// The danger is a key that another writer inserts after it was looked for here:
//
//	ingest:  k is not there, goes to a file                               commit: k is live twice
//	writer:                                  inserts k, committed
//
// So what came to live meanwhile is looked for in the new files, from the other side: first while
// writers go on, since that may be much, then flushes shut out, then writers too, when hardly
// anything can have come since.
//
// The order of the end:
//
//  1. All files but the undos are written and synced. A crash here, or in any step before the 5th,
//     leaves blocks that nobody names.
//  2. Writers are shut out, and what came meanwhile is looked for.
//  3. An empty batch goes to the log, synced. It is the ingest's place in time: no other batch gets
//     its timestamp or its LSN, before a crash or after it, and none with a later one is visible
//     before it.
//  4. The undos, for which the timestamp was needed, are written and synced.
//  5. One metadata commit. The new rowsets' included LSN is that of the empty batch: replay gives
//     them all that comes after, and no operation on their rows comes before. Nothing of the rows
//     is in the log, so the anchor accepts no older state from there on.
//  6. Readers see the new state; then the empty batch is published, and with it the rows.
//
// Source: design §4.2, §5, §7.
type Ingest struct {
	Shape *Shape // of the rows; must not be replaced

	t        *Tablet
	creation *blockmanager.Creation
	writer   *rowset.RollingWriter
	start    time.Time
	rows     int64
	last     []byte // the last key
	auto     int64  // the highest value of an auto-incrementing column
	out      []*rowset.Metadata

	// Every key was looked for in what was there at since, or later. seen are the rowsets that hold
	// nothing newer.
	since mvcc.Timestamp
	seen  map[uint64]bool
	files *rowset.Tree // the new rowsets, opened to look for keys
}

// errOrder is the cause of a *fault.RowError about a row that does not come in key order.
var errOrder = errors.New("the key does not come after that of the row before")

// BeginIngest starts with no row. It is ended by Abort, after Finish too. Errors: ErrNotFound when
// the table was dropped; ErrClosed.
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
	in.Shape = st.shape
	in.creation = t.opts.Store.NewCreation()
	in.writer = rowset.NewRollingWriter(in.creation, st.shape.Schema, t.newRowSetID, t.opts.TargetBytes)
	return in, nil
}

// Rows is the number of rows so far.
func (in *Ingest) Rows() int64 { return in.rows }

// Append takes rows, without changes: some thousand at a time. Nothing of them is kept. Errors: a
// *fault.RowError for keys that do not rise and, with ErrKeyExists, for one that is there; those of
// writing. After an error only Abort makes sense.
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
	if err := in.lookFor(keys); err != nil {
		return err
	}
	if err := in.writer.Append(rows); err != nil {
		return fmt.Errorf("table %q: %w", in.t.Name(), err)
	}
	in.rows += int64(len(keys))
	if i := in.Shape.auto; i >= 0 {
		for row := range len(keys) {
			in.auto = max(in.auto, autoValue(rows.Batch.Columns[i].Cell(row)))
		}
	}
	return nil
}

func (in *Ingest) rowError(row int64, key []byte, cause error) error {
	return &fault.RowError{Row: int(row), Table: in.t.Name(), Key: in.t.KeyText(key), Cause: cause}
}

// lookFor finds the first of the keys, which rise, that is there.
func (in *Ingest) lookFor(keys [][]byte) error {
	st, err := in.t.acquire()
	if err != nil {
		return err
	}
	defer st.release()
	first, last := keys[0], keys[len(keys)-1]
	if st.memEndsBefore(first) && len(st.tree.Range(nil, first, append(bytes.Clone(last), 0))) == 0 {
		return nil
	}
	for i, k := range keys {
		p, err := st.find(bloom.MakeProbe(k))
		if err != nil {
			return fmt.Errorf("table %q: %w", in.t.Name(), err)
		}
		if p.live {
			return in.rowError(in.rows+int64(i), k, fault.ErrKeyExists)
		}
	}
	return nil
}

// Finish makes the rows, at least one, part of the table, durably, and returns their timestamp when
// they are visible.
//
// Errors: a *fault.RowError with ErrKeyExists for a key that came meanwhile; ErrConflict when the
// schema was changed; ErrNotFound when the table was dropped; ctx's; those of writing. Nothing has
// happened then, unless it is ErrPoisoned.
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
	if err = in.lookForNew(ctx); err != nil {
		return 0, err
	}
	t.exclusively(func() {
		if err = in.lookForNew(ctx); err != nil {
			return
		}
		var lsn lsn.LSN
		if ts, lsn, err = in.install(ctx); err == nil {
			err = t.opts.Store.Wait(context.WithoutCancel(ctx), lsn)
		}
	})
	if err != nil {
		return 0, err
	}
	return ts, nil
}

// install is the end of Finish, under the work lock.
func (in *Ingest) install(ctx context.Context) (ts mvcc.Timestamp, lsn lsn.LSN, err error) {
	t := in.t
	j, err := t.beginBlocked(ctx)
	if err != nil {
		return 0, 0, err
	}
	defer j.end()
	if j.st.shape != in.Shape {
		return 0, 0, fmt.Errorf("table %q: the schema was changed during the ingest: %w", t.Name(), fault.ErrConflict)
	}
	if err := in.lookForNewIn(ctx, j.st); err != nil {
		return 0, 0, err
	}
	in.closeFiles()
	if err := ctx.Err(); err != nil {
		return 0, 0, err
	}
	ts, lsn, publish, err := t.opts.Store.AppendEmpty()
	if err != nil {
		return 0, 0, err
	}
	defer publish()
	j.start = in.start
	e := &j.edit
	e.Kind, e.Why = compaction.Ingest, "rows came in key order"
	e.RowsRead, e.RowsWritten = in.rows, in.rows
	e.Created = append(e.Created, in.creation)
	e.Confirm, e.AutoIncrement = true, in.auto
	e.add(in.out, lsn)
	if err = rowset.WriteInserts(j.creation, in.out, ts); err != nil {
		err = fmt.Errorf("table %q: %w", t.Name(), err)
	} else {
		err = j.commit()
	}
	j.record(err)
	return ts, lsn, err
}

// Abort gives up what was not finished. Once, at the end.
func (in *Ingest) Abort() {
	in.closeFiles()
	in.creation.Abort()
}

// openFiles opens the new rowsets: bloom files and key indexes are there, the undos are not.
func (in *Ingest) openFiles() (err error) {
	in.files, err = in.t.openUncommitted(in.creation, in.Shape, in.out)
	return err
}

func (in *Ingest) closeFiles() {
	closeUncommitted(in.files)
	in.files = nil
}

// lookForNew looks for keys that came to live since the last time, while writers go on: what comes
// from now on is for the next time.
func (in *Ingest) lookForNew(ctx context.Context) error {
	now := in.t.opts.Store.Visible() // before the state: all up to there is in it
	st, err := in.t.acquire()
	if err != nil {
		return err
	}
	defer st.release()
	if err := in.lookForNewIn(ctx, st); err != nil {
		return err
	}
	in.since = now
	return nil
}

// lookForNewIn looks in the new files for the keys of a state that came to live after since: those
// of rowsets with newer rows, from flushes and compactions meanwhile, and those of the MemRowSets.
func (in *Ingest) lookForNewIn(ctx context.Context, st *tabletState) error {
	first, last := in.out[0].MinKey, in.out[len(in.out)-1].MaxKey
	upper := append(bytes.Clone(last), 0)
	for _, d := range st.tree.Range(nil, first, upper) {
		m := d.Metadata()
		if !in.seen[m.ID] && m.MaxTimestamp > in.since {
			if err := in.lookForRows(ctx, d, first, upper); err != nil {
				return err
			}
		}
		in.seen[m.ID] = true // no row is ever added to it
	}
	for _, m := range st.mems {
		it := m.ChangedSince(in.since, first, last)
		for keys := it.Next(memInputRows); keys != nil; keys = it.Next(memInputRows) {
			for _, k := range keys {
				if err := in.lookInFiles(k); err != nil {
					return err
				}
			}
		}
	}
	return ctx.Err()
}

// lookForRows looks in the new files for the live rows of a rowset with keys in [lower, upper).
func (in *Ingest) lookForRows(ctx context.Context, d *rowset.DiskRowSet, lower, upper []byte) error {
	it, err := d.NewIterator(&scan.Request{Schema: d.Schema, Lower: lower, Upper: upper, Snapshot: mvcc.Everything, Keys: true})
	if err != nil {
		return fmt.Errorf("table %q: %w", in.t.Name(), err)
	}
	defer it.Close()
	for it.Next() {
		sel := it.Batch().Selection
		for i := sel.Next(0); i >= 0; i = sel.Next(i + 1) {
			if err := in.lookInFiles(it.Keys()[i]); err != nil {
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

// lookInFiles looks in the new files for a key that is live elsewhere.
func (in *Ingest) lookInFiles(key []byte) error {
	var few [1]*rowset.DiskRowSet
	for _, d := range in.files.Candidates(few[:0], key) {
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
