package tablet

import (
	"context"
	"time"

	"github.com/oribi-db/oribi/blockmanager"
	"github.com/oribi-db/oribi/delta"
	"github.com/oribi-db/oribi/internal/meta"
	"github.com/oribi-db/oribi/lsn"
	"github.com/oribi-db/oribi/mvcc"
	"github.com/oribi-db/oribi/rowset"
)

// job is a running flush, compaction, ingest or alteration. Its caller has the claims on the parts
// of the table that it replaces. It computes an Edit from a state of the table, commits it, and
// installs the next state.
type job struct {
	t        *Tablet
	schema   *TableSchema
	st       *tabletState           // while writers are blocked, the current one; nil after detach
	kept     []*rowset.DiskRowSet   // rowsets that the job reads without a state
	edit     Edit                   // filled in step by step, complete at commit
	creation *blockmanager.Creation // one of edit.Created
	at       cutover                // the point as of which memory is written
	// logged receives the result of freeze's wait for the log. It is nil before freeze, and after
	// awaitLog.
	logged   chan error
	logging  []*delta.MemStore // stores whose change logs end with the job
	blocked  bool              // the gate is held
	done     bool              // the edit is committed, in metadata at least
	report   *report           // of the committed edit
	start    time.Time
	number   uint64 // in events; 0 until the job is announced
	recorded bool   // there is an event of its end
}

// begin starts a job without blocking writers. The caller calls end.
func (t *Tablet) begin() (*job, error) {
	st, err := t.acquire()
	if err != nil {
		return nil, err
	}
	c := t.opts.Store.NewCreation()
	return &job{t: t, schema: st.schema, st: st, edit: Edit{Created: []*blockmanager.Creation{c}}, creation: c,
		start: time.Now()}, nil
}

// beginBlocked starts a job that blocks the table's writers until it ends, and waits until
// everything in the log is durable and published.
func (t *Tablet) beginBlocked(ctx context.Context) (*job, error) {
	// Wait for the log before writers are blocked, so that they do not wait for most of the I/O.
	if err := t.opts.Store.Wait(ctx, t.opts.Store.LastLSN()); err != nil {
		return nil, err
	}
	j, err := t.begin()
	if err != nil {
		return nil, err
	}
	started := false
	defer func() {
		if !started {
			j.end()
		}
	}()
	err = j.cut()
	if err == nil {
		err = t.opts.Store.Wait(ctx, j.at.lsn)
	}
	if err != nil {
		return nil, err
	}
	started = true
	return j, nil
}

// blockWriters takes the gate and continues with the current state. Other jobs may have replaced
// other parts of the table. The rowsets and the frozen MemRowSet that the job replaces are still in
// it, and so is the schema: only their owner replaces them.
func (j *job) blockWriters() error {
	j.t.gate.Lock()
	j.blocked = true
	st, err := j.t.acquire()
	if err != nil {
		return err
	}
	j.release()
	j.st = st
	return nil
}

// detach releases the job's state, except for the rowsets that the job replaces. A merge may take
// long; its state would keep what concurrent jobs have replaced since: the memory of MemRowSets,
// and the space of files.
func (j *job) detach() {
	for _, d := range j.edit.Removed {
		d.Ref()
		j.kept = append(j.kept, d)
	}
	for i := range j.edit.Replaced {
		d := j.edit.Replaced[i].Set
		d.Ref()
		j.kept = append(j.kept, d)
	}
	j.st.release()
	j.st = nil
}

// release releases the job's state, or what detach has kept of it.
func (j *job) release() {
	if j.st != nil {
		j.st.release()
		j.st = nil
	}
	for _, d := range j.kept {
		d.Unref()
	}
	j.kept = nil
}

func (j *job) unblockWriters() {
	j.blocked = false
	j.t.gate.Unlock()
}

// cut blocks writers and sets the job's cutover point.
func (j *job) cut() error {
	if err := j.blockWriters(); err != nil {
		return err
	}
	j.at = cutover{lsn: j.t.opts.Store.LastLSN(), snap: mvcc.AsOf(j.st.maxTimestamp()), auto: j.t.auto}
	if len(j.st.schema.Expiry) == 0 {
		return nil
	}
	var err error
	j.at.now, err = j.t.opts.Store.Timestamp()
	return err
}

// freeze sets the cutover point L as of which memory is written. take, called with writers blocked,
// starts the change logs of the stores that the job replaces. After it, the outputs are written
// while the log is synced; finish begins when everything up to L is durable and published:
//
//	claims   ├─────────────────────────────────────────────────────────────────────────┤   no other job
//	gate       ├─┤                                                              ├──────┤   of these parts
//	log          ├──────┤ sync up to L
//	            ▲     write and sync the outputs   catch up in   commit to    catch  last round,
//	            L     as of L                      rounds        metadata     up     install
//
// With the gate held, every write batch of the table that is in the log has been applied. So the
// stores contain all batches of the table with LSNs up to L, which at.snap sees, and no later ones.
// Later operations go
//
//	an insert           to the new MemRowSet, even if the frozen one or a rowset has a ghost
//	                    of the key
//	a change of a row   to the store that has the row: the frozen MemRowSet or a rowset's
//	                    delta mem store
//
// and the outputs, written as of at.snap, contain none of them. The stores that are replaced log
// such changes, and finish applies them to the delta mem stores of the outputs. The included LSN
// of the outputs is L, and so is the table's flushed LSN after a flush. Replay therefore applies
// the same changes to the outputs, and later inserts to a MemRowSet.
//
// A failure before the commit leaves the frozen MemRowSet next to the new one: the next flush
// writes it first, as of the L at which it was frozen. The delta mem stores were never replaced;
// their change logs end.
//
// A flush may run inside a merge, or cross its beginning or end:
//
//	merge of A, B into C   ├─ L1 ───────────────────────────────────────── commit ─┤
//	flush into D                     ├─ L2 ─────────────── commit ─┤
//
// Each has its own rowsets, stores and change logs, so their edits commute: the result is the same
// as of one job after the other, in either order. They share
//
//   - the table's metadata row. Each commit computes it from the row of the one before; no other
//     commit runs in between. Flushed LSN, floor and counters only rise.
//   - log_start. Each commit asks a state that was current shortly before for its first LSN. It
//     contains the delta mem stores of A and B until the merge is installed, and the frozen MemRowSet
//     until the flush is. So the log keeps every change that a running job has caught up, or will.
//   - replay, which compares an LSN with the included LSNs of the rowsets that have the key and,
//     for an insert, with the flushed LSN. These need not rise from one commit to the next. A row of
//     A that was deleted and inserted again between L1 and L2 is in C and D; the log's DELETE is
//     above L1, so it is applied to C; its INSERT is not above L2, so D has it. Later changes find
//     the key deleted in C.
//
// Source: design §5, tablet spec §13.1–§13.3.
func (j *job) freeze(ctx context.Context, take func()) error {
	if err := j.cut(); err != nil {
		return err
	}
	take()
	j.unblockWriters()
	j.detach()
	logged := make(chan error, 1)
	go func() { logged <- j.t.opts.Store.Wait(ctx, j.at.lsn) }()
	j.logged = logged
	return nil
}

// awaitLog waits until everything up to the cutover point is durable and published.
func (j *job) awaitLog() error {
	if j.logged == nil {
		return nil
	}
	err := <-j.logged
	j.logged = nil
	return err
}

// startChangeLog makes the delta mem store of d log its changes until the job ends. Writers are
// blocked.
func (j *job) startChangeLog(d *rowset.DiskRowSet) {
	j.logging = append(j.logging, d.StartChangeLog())
}

// commit carries out the edit of a job that has blocked writers, in metadata and then in memory.
// Writers are blocked until it has succeeded.
func (j *job) commit() error { return commitJobs([]*job{j}) }

// commitJobs is commit of several jobs, in one metadata commit.
func commitJobs(jobs []*job) error {
	var commits []MetaCommit
	for _, j := range jobs {
		if err := j.creation.Sync(); err != nil { // most jobs have synced their blocks with concurrent writers
			return err
		}
		j.countWritten()
		first := func() lsn.LSN { return j.edit.firstLSN(j.st) }
		commits = append(commits, j.metaCommit(first, j.install))
	}
	if err := jobs[0].t.opts.Store.CommitMeta(commits...); err != nil {
		return err
	}
	for _, j := range jobs {
		j.unblockWriters()
		j.st.openReplaced(j.edit.reopened(j.st)) // the job still owns the rowsets that replace them
	}
	return nil
}

// countWritten sets the number of bytes that the job has written to new files.
func (j *job) countWritten() {
	j.edit.BytesWritten = 0
	for _, c := range j.edit.Created {
		j.edit.BytesWritten += c.Bytes()
	}
}

// metaCommit returns the job's part in a metadata commit: the edit, and install, which carries it
// out in memory. All blocks are synced.
func (j *job) metaCommit(first func() lsn.LSN, install func() error) MetaCommit {
	t, e := j.t, &j.edit
	e.stamp(t.opts.Store.Now())
	// Readers of earlier states may not have opened every file yet.
	for _, d := range e.Removed {
		d.OpenFiles()
	}
	for _, r := range e.Replaced {
		r.Set.OpenDropped(r.Row)
	}
	var row *meta.Table
	return MetaCommit{
		Table: t,
		Edit: func() blockmanager.Edit {
			row = e.tableRow(t.Metadata(), t.nextID.Load())
			return e.metadata(row)
		},
		First: first,
		Committed: func() {
			j.done = true
			t.metadata.Store(row)
		},
		Install: install,
	}
}

// install replaces the table's state after the metadata commit, with writers blocked. An error
// means that memory no longer agrees with the metadata, and the store poisons itself.
func (j *job) install() error {
	t, e := j.t, &j.edit
	before := states(j.st)
	dropped := e.dropped(j.st)
	next, err := e.apply(j.st, t.opts.RowSets)
	if err != nil {
		return err
	}
	if e.Kind != "" {
		j.report = t.reports.reserve(before, states(next))
	}
	t.auto = max(t.auto, t.Metadata().AutoIncrement)
	t.install(next)
	for _, m := range dropped {
		m.Release()
	}
	return nil
}

// openReplaced opens all files of sets, rowsets of the state that were replaced by others with the
// same blocks, if a reader uses them through this state or an earlier one. By the time that reader
// needs a file, a compaction of the replacement may have removed its block.
func (st *tabletState) openReplaced(sets []*rowset.DiskRowSet) {
	read := st.refs.Load() > 1 // one reference is the caller's, and no reader can acquire this state any more
	for _, d := range sets {
		if read || d.Shared() {
			d.OpenFiles()
		}
	}
}

// record saves the event of the edit, which was committed or failed with err, to be sent when the
// job has ended.
func (j *job) record(err error) {
	t := j.t
	ev := j.edit.event()
	ev.Job, ev.Time, j.recorded = j.number, time.Now(), true
	ev.Table, ev.Duration, ev.Err = t.Name(), time.Since(j.start), err
	if j.report == nil {
		now := t.Info()
		ev.Before, ev.After = now, now
		t.reports.add(ev)
		return
	}
	ev.Before, ev.After = t.describe(j.report.before), t.describe(j.report.after)
	t.reports.complete(j.report, ev)
}

// end ends the job and discards everything that was not committed.
func (j *job) end() {
	j.recordPanic()
	j.awaitLog() // an error does not matter any more
	for _, m := range j.logging {
		m.StopChangeLog()
	}
	j.edit.closeAdded()
	if !j.done {
		j.creation.Abort()
		j.edit.release()
	}
	j.release()
	if j.blocked {
		j.unblockWriters()
	}
}
