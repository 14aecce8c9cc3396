package tablet

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/oribi-db/oribi/bloom"
	"github.com/oribi-db/oribi/change"
	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/internal/record"
	"github.com/oribi-db/oribi/lsn"
	"github.com/oribi-db/oribi/mvcc"
	"github.com/oribi-db/oribi/rowset"
)

// Ingest writes rows in key order directly to new rowsets, which become part of the table all at
// once or not at all, and with them the entries of the rows in its indexes. Between BeginIngest and
// Finish, writers, flushes and compactions of the table continue. Not safe for concurrent use.
//
// The danger is a key that another writer inserts after Append has checked it:
//
//	ingest:  k does not exist, goes to a file                             commit: k is live twice
//	writer:                                   inserts k, commits
//
// So Finish looks up the keys of concurrent writes in the new files three times: first with
// writers, flushes and compactions running, because there may be many keys; then with flushes and
// compactions excluded; then with writers blocked, when few keys can remain. So it does for the
// entries of unique indexes.
//
// The steps of Finish:
//
//  1. All files are written and synced. A crash here, or in any step before the 4th, leaves
//     unreferenced blocks.
//  2. Writers are blocked, and the last keys of concurrent writes are looked up.
//  3. An empty batch is appended to the log and synced. Its timestamp and LSN are the ingest's: no
//     other batch is assigned them, even after a crash, and no later batch is visible before it.
//  4. One metadata commit for the table and its indexes. The new rowsets' included LSN is the empty
//     batch's: replay applies all later operations to them, and no earlier one affects their rows.
//     The log contains none of the rows, so the commit is confirmed.
//  5. Readers see the new states; then the empty batch is published, and with it the rows.
//
// Source: design §4.2, §5, §7.
type Ingest struct {
	Schema *TableSchema // of the rows; read-only

	// Purge commits deletes of rows of the table or of entries of an index that are expired, with these keys.
	// The caller sets it if rows of the table expire.
	Purge func(t *Tablet, keys [][]byte) error

	// IndexBytes is the memory for entries of indexes; the caller may set it before Append.
	IndexBytes int64

	intake
	start   time.Time
	rows    int64
	last    []byte // the last appended key
	auto    int64  // the highest value of an auto-incrementing column
	plan    *indexPlan
	indexes []indexIntake
}

// errOrder is the cause of a *change.RowError about a row out of key order.
var errOrder = errors.New("the key is not greater than the previous row's")

// BeginIngest returns an ingest without rows. The caller calls Abort at the end, also after Finish.
// Errors: ErrNoTable if the table was dropped; ErrClosed.
func (t *Tablet) BeginIngest() (*Ingest, error) {
	in := &Ingest{start: time.Now(), IndexBytes: defaultIndexBytes}
	if err := in.begin(t); err != nil {
		in.Abort()
		return nil, err
	}
	return in, nil
}

func (in *Ingest) begin(t *Tablet) (err error) {
	if in.intake, err = t.beginIntake(); err != nil {
		return err
	}
	in.Schema, in.taken = in.schema, in.keyTaken
	if in.plan = t.indexPlan(in.schema); in.plan == nil {
		return nil
	}
	in.indexes = make([]indexIntake, len(in.plan.indexes))
	for i := range in.indexes {
		x := &in.indexes[i]
		x.IndexColumns, x.in = &in.plan.indexes[i], in
		if x.intake, err = x.Table.beginIntake(); err != nil {
			return err
		}
		if x.Table.Index().Unique {
			x.taken = x.entryTaken // the key of another entry ends with the key of its row
		}
	}
	return nil
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
	for i := range in.indexes {
		if err := in.indexes[i].add(rows, in.rows-int64(len(keys))); err != nil {
			return in.orAltered(err)
		}
	}
	return nil
}

func (in *Ingest) altered() error {
	return fmt.Errorf("table %q: the schema was changed during the ingest: %w", in.t.Name(), fault.ErrConflict)
}

// orAltered returns err, or what it means if an index was dropped.
func (in *Ingest) orAltered(err error) error {
	if errors.Is(err, fault.ErrNoTable) && in.plan != in.t.indexPlan(in.schema) {
		return in.altered()
	}
	return err
}

func (in *Ingest) rowError(row int64, key []byte, cause error) error {
	return &change.RowError{Row: int(row), Table: in.t.Name(), Key: in.t.KeyText(key), Cause: cause}
}

// checkAbsent returns an error for the first key that exists. The keys ascend. An expired row does
// not count as existing: checkAbsent deletes it, since no reader sees it.
func (in *Ingest) checkAbsent(keys [][]byte) error {
	expired, err := in.lookUp(keys)
	if err == nil && len(expired) > 0 {
		err = in.Purge(in.t, expired)
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
// Errors: a *change.RowError with ErrKeyExists for a key that was inserted concurrently, or with
// ErrNotUnique; ErrConflict if the schema or the indexes were changed; ErrNoTable if the table was
// dropped; ctx's; write errors. After an error nothing has changed; only after ErrPoisoned the rows may
// be in the table.
func (in *Ingest) Finish(ctx context.Context) (ts mvcc.Timestamp, err error) {
	tables := []*Tablet{in.t}
	for i := range in.indexes {
		x := &in.indexes[i]
		if err = x.write(); err != nil {
			return 0, in.orAltered(err)
		}
		tables = append(tables, x.Table)
	}
	for k := range in.parts {
		if err = k.finish(); err != nil {
			return 0, err
		}
	}
	if err = in.checkConcurrent(ctx); err != nil {
		return 0, in.orAltered(err)
	}
	err = exclusively(ctx, tables, func() error {
		if err := in.checkConcurrent(ctx); err != nil {
			return err
		}
		at, lsn, err := in.install(ctx)
		if err == nil {
			ts, err = at, in.t.opts.Store.Wait(context.WithoutCancel(ctx), lsn)
		}
		return err
	})
	if err != nil {
		return 0, in.orAltered(err)
	}
	return ts, nil
}

// parts yields the table's part and its indexes' parts, in the order in which locks are acquired.
func (in *Ingest) parts(yield func(*intake) bool) {
	if in.t == nil || !yield(&in.intake) {
		return
	}
	for i := range in.indexes {
		if in.indexes[i].t == nil || !yield(&in.indexes[i].intake) {
			return
		}
	}
}

// checkConcurrent looks up the keys and the entries of unique indexes that were inserted since the previous
// check. Writers are not blocked.
func (in *Ingest) checkConcurrent(ctx context.Context) error {
	for k := range in.parts {
		if err := k.checkConcurrent(ctx); err != nil {
			return err
		}
	}
	return nil
}

// install is the last part of Finish, for the owner of the table and its indexes.
func (in *Ingest) install(ctx context.Context) (ts mvcc.Timestamp, lsn lsn.LSN, err error) {
	t := in.t
	var jobs []*job
	defer func() {
		for _, j := range slices.Backward(jobs) {
			j.end()
		}
	}()
	for k := range in.parts {
		j, err := k.t.beginBlocked(ctx)
		if err != nil {
			return 0, 0, err
		}
		jobs = append(jobs, j)
		if k.t == t && (j.st.schema != k.schema || in.plan != t.indexPlan(in.schema)) {
			return 0, 0, in.altered() // the columns of an index stay the same
		}
		if err := k.checkConcurrentIn(ctx, j.st); err != nil {
			return 0, 0, err
		}
	}
	for k := range in.parts {
		k.closeFiles()
	}
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
	jobs[0].edit.AutoIncrement = in.auto
	n := 0
	for k := range in.parts {
		k.fill(jobs[n], ts, lsn, in.rows)
		jobs[n].start = in.start
		jobs[n].announce()
		n++
	}
	err = commitJobs(jobs)
	for _, j := range jobs {
		j.record(err)
	}
	return ts, lsn, err
}

// Abort discards what Finish has not committed. It is called once, at the end.
func (in *Ingest) Abort() {
	for k := range in.parts {
		k.closeFiles()
		k.creation.Abort()
	}
}

// keyTaken returns the error of a key of the new files that is live elsewhere.
func (in *Ingest) keyTaken(_ *tabletState, key []byte, row int64, _ *rowset.DiskRowSet) error {
	return in.rowError(row, key, fault.ErrKeyExists)
}
