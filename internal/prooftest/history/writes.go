package history

import (
	"errors"
	"fmt"
	"slices"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/compaction"
	"github.com/oribi-db/oribi/internal/prooftest/model"
	"github.com/oribi-db/oribi/internal/prooftest/script"
	"github.com/oribi-db/oribi/internal/prooftest/values"
	"github.com/oribi-db/oribi/mvcc"
	"github.com/oribi-db/oribi/schema"
)

// compareCommit compares what a batch reports about its last commit.
func compareCommit(b *oribi.Batch, out *model.Outcome) error {
	var left []int
	for _, re := range b.Refused() {
		left = append(left, re.Row)
	}
	if !slices.Equal(left, out.Left) {
		return fmt.Errorf("omitted rows %v, want %v: %v", left, out.Left, b.Refused())
	}
	if err := compareResults(b.Results(), out.Results); err != nil {
		return err
	}
	if !slices.Equal(b.Assigned(), out.Assigned) {
		return fmt.Errorf("assigned values %v, want %v", b.Assigned(), out.Assigned)
	}
	return nil
}

// compareResults compares the results of operands.
func compareResults(got []oribi.Result, want []model.Result) error {
	for i, g := range got {
		if i == len(want) || g.Row != want[i].Op || g.Column != want[i].Column.Name ||
			!values.SameValue(g.Value, values.GoValue(want[i].Column, want[i].Cell)) {
			return fmt.Errorf("results %v, want %v", got, want)
		}
	}
	if len(got) < len(want) {
		return fmt.Errorf("results %v, want %v", got, want)
	}
	return nil
}

// rowOf returns the values and operands of an operation.
func rowOf(s *schema.Schema, op *script.Op) oribi.Row {
	row := values.RowValues(s, op.Cells, op.Set)
	for i := range s.Columns {
		if op.Set[i] {
			row[s.Columns[i].Name] = op.Operand(i).Of(row[s.Columns[i].Name])
		}
	}
	return row
}

// Ways of adding operations to a batch.
const (
	AsCells   = "cells"
	asRows    = "rows"
	asVectors = "vectors"
)

func (r *Runner) create(st *script.Step) error {
	if r.Model.Tables[st.Table] != nil {
		_, err := r.Store.CreateTable(st.Table, st.Schema)
		return want(err, oribi.ErrExists)
	}
	return r.define(st.Table, func() error {
		var options []oribi.TableOption
		if st.RowFile {
			options = append(options, oribi.RowFile(schema.FullRowFile))
		}
		if st.Expires > 0 {
			options = append(options, oribi.Expires(st.Schema.Columns[st.Expires-1].Name, st.Time))
		}
		_, err := r.Store.CreateTable(st.Table, st.Schema, options...)
		return err
	}, func() {
		r.Model.Create(st.Table, st.Schema)
		if st.Expires > 0 {
			r.Model.Tables[st.Table].Expire(st.Expires-1, st.Time)
		}
	})
}

func (r *Runner) drop(st *script.Step) error {
	if err := r.beforeChange(st); err != nil {
		return err
	}
	return r.define(st.Table, func() error { return r.Store.DropTable(st.Table) }, func() { r.Model.Drop(st.Table) })
}

// define creates or drops a table, in the store and then in the model. After a failure the table
// may or may not exist.
func (r *Runner) define(table string, do func() error, then func()) error {
	r.State.Lock()
	if r.Unsure == "" { // else an earlier one failed, and the store refuses others
		r.Unsure = table
	}
	r.State.Unlock()
	if err := do(); err != nil {
		return err
	}
	r.State.Lock()
	defer r.State.Unlock()
	if r.Unsure != table {
		return fmt.Errorf("a change of table %s was accepted after one of %s had failed", table, r.Unsure)
	}
	then()
	r.Unsure = ""
	return nil
}

func want(err, target error) error {
	switch {
	case errors.Is(err, target):
		return nil
	case err == nil:
		return fmt.Errorf("got no error, want %v", target)
	}
	return fmt.Errorf("got error %w, want %v", err, target)
}

// write commits a batch and compares the result.
func (r *Runner) write(st *script.Step) error {
	ops := slices.DeleteFunc(slices.Clone(st.Ops), func(op script.Op) bool { return r.Model.Tables[op.Table] == nil })
	r.Counts.Operations += int64(len(ops))
	out := r.Model.Resolve(ops, st.Partial)
	b := r.Store.NewBatch()
	if err := r.fill(b, ops, st.As); err != nil {
		return err
	}
	if err := r.look(b, ops); err != nil {
		return err
	}
	commit := b.Commit
	if st.Partial {
		commit = b.CommitPartial
	}
	var opts []oribi.CommitOption
	if !st.Sync {
		opts = append(opts, oribi.NoSync)
	}
	err := r.take(out, ops, st.Sync, func() (mvcc.Timestamp, error) { return commit(r.ctx, opts...) })
	if err == nil && out.Refused < 0 {
		err = compareCommit(b, out)
	}
	return err
}

// take applies operations to the store and compares the result.
func (r *Runner) take(out *model.Outcome, ops []script.Op, sync bool, commit func() (mvcc.Timestamp, error)) error {
	if out.Refused < 0 {
		r.State.Lock()
		if r.InFlight == nil { // else an earlier one failed, and the store refuses others
			r.InFlight = out
		}
		r.State.Unlock()
	}
	ts, err := commit()
	switch {
	case out.Refused >= 0:
		r.Counts.Refused++
		r.answered(err)
		return refusal(err, out, ops)
	case err != nil:
		return err // the batch stays in flight: it may or may not be in the log
	case r.InFlight != out:
		return fmt.Errorf("a batch was accepted after one had failed")
	case ts <= r.passed:
		return fmt.Errorf("timestamp %d is not above the earlier %d", uint64(ts), uint64(r.passed))
	}
	r.answered(ts)
	r.committed(out, ts, sync)
	return nil
}

// committed records a batch that the store has committed.
func (r *Runner) committed(out *model.Outcome, ts mvcc.Timestamp, sync bool) {
	r.State.Lock()
	defer r.State.Unlock()
	r.InFlight = nil
	r.pass(ts)
	if len(out.Changes) > 0 { // else nothing was logged, and the timestamp may be reused after a crash
		r.Model.Commit(out, ts)
	}
	r.Counts.Batches++
	if sync {
		r.Model.Durable = len(r.Model.Commits)
	}
}

// refusal compares an error with the model's first refused row.
func refusal(err error, out *model.Outcome, ops []script.Op) error {
	var re *oribi.RowError
	switch {
	case !errors.Is(err, oribi.ErrRow) || !errors.As(err, &re):
		return fmt.Errorf("got %w, want a row error for operation %d (%v)", err, out.Refused, out.Cause)
	case re.Row != out.Refused || re.Table != ops[out.Refused].Table:
		return fmt.Errorf("got %w, want row %d to be refused (%v)", err, out.Refused, out.Cause)
	case out.Cause != nil && !errors.Is(err, out.Cause):
		return fmt.Errorf("got %w, want %v for row %d", err, out.Cause, out.Refused)
	}
	return nil
}

// fill adds operations to a batch.
func (r *Runner) fill(b *oribi.Batch, ops []script.Op, as string) error {
	if as == asVectors && r.addVectors(b, ops) {
		return nil
	}
	for i := range ops {
		op := &ops[i]
		t, err := r.Store.Table(op.Table)
		if err != nil {
			return err
		}
		switch {
		case op.Condition():
			addCondition(b, t, op)
		case as == asRows || op.Computed():
			b.Row(op.Ask, t, rowOf(t.Schema(), op))
		default:
			b.Cells(op.Ask, t, op.Cells, op.Set)
		}
	}
	if b.Err() == nil && b.Len() != len(ops) {
		return fmt.Errorf("the batch has %d operations, want %d", b.Len(), len(ops))
	}
	return nil
}

// addVectors adds all operations as one set of vectors if possible: if they are of one kind that
// takes rows, on one table, well-formed, and set the same columns, at least one.
func (r *Runner) addVectors(b *oribi.Batch, ops []script.Op) bool {
	if len(ops) == 0 || !slices.Contains(ops[0].Set, true) { // the number of rows follows from a vector
		return false
	}
	first := &ops[0]
	switch first.Ask {
	case oribi.OpInsert, oribi.OpInsertIgnore, oribi.OpUpsert, oribi.OpUpsertIgnore:
	default:
		return false
	}
	for i := range ops {
		if ops[i].Computed() || ops[i].Ask != first.Ask || ops[i].Table != first.Table ||
			!slices.Equal(ops[i].Set, first.Set) || r.Model.Malformed(&ops[i]) {
			return false
		}
	}
	t, err := r.Store.Table(first.Table)
	if err != nil {
		return false
	}
	b.Vectors(first.Ask, t, vectorsOf(t.Schema(), ops))
	return true
}

func vectorsOf(s *schema.Schema, ops []script.Op) []*batch.Vector {
	columns := make([]*batch.Vector, len(s.Columns))
	for c := range columns {
		if !ops[0].Set[c] {
			continue
		}
		columns[c] = batch.NewVector(s.Columns[c].Type, len(ops))
		for i := range ops {
			columns[c].SetCell(i, ops[i].Cells[c])
		}
		if s.Columns[c].Type == schema.Array && len(ops)%2 == 0 { // the other form that the store accepts
			arrays := batch.NewArrays(s.Columns[c].Element)
			if err := arrays.AppendUnpacked(columns[c], 0, len(ops)); err != nil {
				panic(err) // bug in the generator
			}
			columns[c] = arrays
		}
	}
	return columns
}

// flushAll flushes all tables together.
func (r *Runner) flushAll() error {
	before := len(r.Model.Commits)
	r.Counts.Flushes++
	if err := r.Store.FlushTables(r.ctx, r.Store.Tables()...); err != nil {
		return err
	}
	r.State.Lock()
	defer r.State.Unlock()
	for _, t := range r.Model.Tables {
		r.Model.Flushed(t, before)
	}
	return nil
}

// rewrite flushes, compacts or merges a table.
func (r *Runner) rewrite(st *script.Step) error {
	t, err := r.Store.Table(st.Table)
	if err != nil {
		return err
	}
	before := len(r.Model.Commits)
	switch st.Kind {
	case script.Flush:
		r.Counts.Flushes++
		err = t.Flush(r.ctx)
	case script.Compact:
		r.Counts.Merges++
		err = t.Compact(r.ctx)
	case script.Merge:
		err = r.merge(t, st.Mask)
	default:
		err = r.compactDeltas(t, st)
	}
	if err != nil {
		return err
	}
	if st.Kind == script.Flush || st.Kind == script.Compact {
		r.State.Lock()
		r.Model.Flushed(r.Model.Tables[st.Table], before)
		r.State.Unlock()
	}
	layout := t.Layout()
	r.Counts.MaxRowSets = max(r.Counts.MaxRowSets, int64(len(layout.RowSets)))
	if st.Kind == script.Compact {
		for i := 1; i < len(layout.RowSets); i++ {
			if string(layout.RowSets[i-1].MaxKey) >= string(layout.RowSets[i].MinKey) {
				return fmt.Errorf("rowsets %d and %d overlap", layout.RowSets[i-1].ID, layout.RowSets[i].ID)
			}
		}
	}
	return nil
}

// compactDeltas flushes or compacts changes.
func (r *Runner) compactDeltas(t *oribi.Table, st *script.Step) (err error) {
	before := len(t.Layout().RowSets)
	switch st.Kind {
	case script.Deltas:
		r.Counts.Flushes++
		_, err = t.FlushDeltas(r.ctx)
	case script.Minor:
		r.Counts.DeltaCompactions++
		if _, err = t.CompactMinor(r.ctx); err == nil && !r.Script.Settings.Background && !r.inside {
			err = checkRowSets(t, func(s compaction.RowSetInfo) bool { return s.Redos <= 1 })
		}
	case script.Major:
		r.Counts.DeltaCompactions++
		var names []string
		for i, c := range t.Schema().Columns {
			if i >= t.Schema().Keys && st.Mask>>(i%64)&1 != 0 {
				names = append(names, c.Name)
			}
		}
		_, err = t.CompactMajor(r.ctx, names...)
	case script.Recompress:
		r.Counts.DeltaCompactions++
		_, err = t.Recompress(r.ctx)
	case script.UndoGC:
		r.Counts.DeltaCompactions++
		_, err = t.CollectUndos(r.ctx)
	}
	if r.Script.Settings.Background || r.inside {
		return err // background work, or a flush inside, changes rowsets
	}
	if n := len(t.Layout().RowSets); err == nil && n != before && (st.Kind != script.UndoGC || n > before) {
		return fmt.Errorf("%d rowsets before, %d after", before, n)
	}
	return err
}

func checkRowSets(t *oribi.Table, good func(compaction.RowSetInfo) bool) error {
	for _, s := range t.Layout().RowSets {
		if !good(s) {
			return fmt.Errorf("rowset %d: %d redo files, %d undo files", s.ID, s.Redos, s.Undos)
		}
	}
	return nil
}

func (r *Runner) merge(t *oribi.Table, mask uint64) error {
	c := compaction.Choice{Why: "chosen by the history"}
	for i, set := range t.Layout().RowSets {
		if mask>>(i%64)&1 != 0 {
			c.RowSets = append(c.RowSets, set.ID)
		}
	}
	if len(c.RowSets) < 2 {
		return nil
	}
	r.Counts.Merges++
	err := t.Merge(r.ctx, c)
	if r.Script.Settings.Background && errors.Is(err, oribi.ErrNotFound) {
		return nil // background work has replaced one of the rowsets
	}
	return err
}
