package history

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/internal/prooftest/model"
	"github.com/oribi-db/oribi/internal/prooftest/script"
	"github.com/oribi-db/oribi/internal/prooftest/values"
	"github.com/oribi-db/oribi/mvcc"
)

// bulk makes a bulk call and compares the result.
func (r *Runner) bulk(st *script.Step) error {
	t, err := r.Store.Table(st.Table)
	if err != nil {
		return err
	}
	r.Counts.Bulk++
	m := r.Model.Tables[st.Table]
	switch {
	case st.Kind == script.Restore:
		return r.restore(st, t)
	case st.Kind == script.UpdateWhere && m.RefusesSet(st):
		res, err := bulkCall(r.ctx, t, st)
		if err := want(err, oribi.ErrSchema); err != nil {
			return err
		}
		return compareBulk(res, 0)
	}
	ops := m.BulkOps(st)
	r.Counts.Operations += int64(len(ops))
	// All rows of a range are deleted in one write batch, whatever its size, unless rows expire or have indexes.
	whole := st.Kind != script.UpdateWhere && len(st.Read.Tests) == 0 && m.Expires() < 0 && len(t.Indexes()) == 0
	if st.Size > 0 && !whole {
		return r.inPieces(st, t, ops)
	}
	out := r.Model.Resolve(ops, false)
	var res oribi.BulkResult
	err = r.take(out, ops, st.Sync, func() (mvcc.Timestamp, error) {
		res, err = bulkCall(r.ctx, t, st)
		return r.timestamp(res, err)
	})
	if err != nil {
		return err
	}
	return compareBulk(res, out.Rows())
}

// timestamp returns the timestamp of a bulk call that ended with err. A call that has changed
// nothing has none: an empty write batch has the place of the call in time.
func (r *Runner) timestamp(res oribi.BulkResult, err error) (mvcc.Timestamp, error) {
	switch {
	case err != nil || res.Rows > 0:
		return res.Timestamp, err
	case res.Timestamp != 0:
		return 0, fmt.Errorf("no row was changed, at %d", uint64(res.Timestamp))
	}
	return r.Store.NewBatch().Commit(r.ctx)
}

// restore makes a call of RestoreTo and compares the result.
func (r *Runner) restore(st *script.Step, t *oribi.Table) error {
	may := r.expect(&st.Read)
	out := r.Model.Tables[st.Table].Restored(st.Read.At)
	r.Counts.Operations += out.Rows()
	var res oribi.BulkResult
	err := r.take(out, nil, true, func() (mvcc.Timestamp, error) {
		var err error
		res, err = t.RestoreTo(r.ctx, st.Read.At)
		return r.timestamp(res, err)
	})
	if err == nil && (may&rows == 0 || r.mustBeOld(&st.Read)) {
		return fmt.Errorf("the table is as of %d, which cannot be read", uint64(st.Read.At))
	}
	if err != nil {
		var done bool
		if done, err = r.ended(&st.Read, may, err); done {
			r.notInFlight(out)
		}
		return err
	}
	return compareBulk(res, out.Rows())
}

// notInFlight records that a batch was refused and is not in the log.
func (r *Runner) notInFlight(out *model.Outcome) {
	r.State.Lock()
	defer r.State.Unlock()
	if r.InFlight == out {
		r.InFlight = nil
	}
}

func compareBulk(res oribi.BulkResult, rows int64) error {
	switch {
	case res.Rows != rows:
		return fmt.Errorf("the call has changed %d rows, want %d", res.Rows, rows)
	case res.Next != nil:
		return fmt.Errorf("the next key is %v, want none", res.Next)
	}
	return nil
}

// bulkCall makes the call of a step that is not a Restore.
func bulkCall(ctx context.Context, t *oribi.Table, st *script.Step) (oribi.BulkResult, error) {
	s, rd := t.Schema(), &st.Read
	var opts []oribi.BulkOption
	if st.Size > 0 {
		opts = append(opts, oribi.PieceBytes(int64(st.Size)))
	}
	if !st.Sync {
		opts = append(opts, oribi.NoSync)
	}
	if st.Kind == script.Truncate {
		return t.Truncate(ctx, opts...)
	}
	for i := range rd.Tests {
		opts = append(opts, oribi.Where(rd.Tests[i].Predicate(s)))
	}
	if st.Kind == script.DeleteRange {
		var from, to any
		if rd.From != nil {
			from = rd.From
		}
		if rd.To != nil {
			to = rd.To
		}
		return t.DeleteRange(ctx, from, to, opts...)
	}
	for _, o := range rd.Bounds() {
		opts = append(opts, o)
	}
	if st.Kind == script.DeleteWhere {
		return t.DeleteWhere(ctx, opts...)
	}
	var set oribi.Row
	if len(st.Ops) > 0 {
		set = rowOf(s, &st.Ops[0])
	}
	return t.UpdateWhere(ctx, set, opts...)
}

// inPieces makes a bulk call that commits several write batches, each of which the model commits
// too. If the step says so, the call is canceled after some of them, and a second one does the
// rest.
func (r *Runner) inPieces(st *script.Step, t *oribi.Table, ops []script.Op) error {
	p := &pieces{Context: r.ctx, r: r, st: st, ops: ops, seen: r.Store.Visible()}
	if err := p.divide(t); err != nil {
		return err
	}
	p.begin()
	res, err := bulkCall(p, t, st)
	ts := res.Timestamp
	if err == nil && res.Rows == 0 {
		if ts, err = r.timestamp(res, nil); err != nil {
			return err
		}
	}
	if ts > p.seen { // the last write batch, which Err has not seen
		p.committed(ts)
	}
	m, done := r.Model.Tables[st.Table], p.outs[:p.done]
	rows := int64(0)
	for _, out := range done {
		rows += out.Rows()
	}
	switch {
	case p.err != nil:
		return p.err
	case res.Rows != rows:
		return fmt.Errorf("the call has changed %d rows in %d of %d pieces, want %d (%w)", res.Rows,
			p.done, len(p.outs), rows, err)
	case err == nil && (p.done != len(p.outs) || res.Next != nil):
		return fmt.Errorf("the call ended after %d of %d pieces, with the next key %v", p.done, len(p.outs), res.Next)
	case err == nil:
		return nil
	case p.done < len(p.outs) && p.outs[p.done].Refused >= 0 && !p.stopped():
		r.Counts.Refused++
		return p.refused(m, res, err)
	case !errors.Is(err, context.Canceled) || !p.stopped():
		return err
	}
	if p.done < len(p.outs) {
		r.notInFlight(p.outs[p.done])
	}
	doneOps := p.ends[p.done-1]
	next, err := nextKey(m, res.Next)
	if err != nil {
		return err
	}
	last, left := ops[doneOps-1].Cells[:m.Schema.Keys], ops[doneOps:]
	if model.CompareKeys(m.Schema, next, last) < 0 ||
		len(left) > 0 && model.CompareKeys(m.Schema, next, left[0].Cells[:m.Schema.Keys]) > 0 {
		return fmt.Errorf("the next key is %v after %d rows", res.Next, rows)
	}
	rest := *st
	rest.Read.From, rest.Stop = next, 0
	return r.inPieces(&rest, t, m.BulkOps(&rest))
}

// nextKey returns the cells of a key that a bulk call returned.
func nextKey(m *model.Table, key oribi.Key) ([][]byte, error) {
	for _, row := range m.Order {
		same := len(key) == len(row.Key)
		for i := 0; same && i < len(key); i++ {
			same = values.SameValue(key[i], values.GoValue(&m.Schema.Columns[i], row.Key[i]))
		}
		if same {
			return row.Key, nil
		}
	}
	return nil, fmt.Errorf("the next key is %v, which no row has", key)
}

// pieces is the context of a bulk call in several write batches. The call calls Err before each of
// them, so Err can check that the previous one is visible, and at which timestamp.
type pieces struct {
	context.Context
	r    *Runner
	st   *script.Step
	ops  []script.Op
	outs []*model.Outcome // of the write batches that change rows, up to a batch that is refused
	ends []int            // by index in outs: operations up to there
	done int              // of outs
	seen mvcc.Timestamp   // of the last write batch that is done
	err  error
}

// divide divides the operations into write batches of at most st.Size bytes, but of at least one
// operation. It leaves out those that change nothing, of which nobody learns.
func (p *pieces) divide(t *oribi.Table) error {
	b := p.r.Store.NewBatch()
	from, before := 0, int64(0)
	refused := false
	add := func(end int) {
		out := p.r.Model.Resolve(p.ops[from:end], false)
		if refused = out.Refused >= 0; refused || len(out.Changes) > 0 {
			p.outs, p.ends = append(p.outs, out), append(p.ends, end)
		}
	}
	for i := range p.ops {
		start := b.Bytes()
		if op := &p.ops[i]; op.Computed() {
			b.Row(op.Ask, t, rowOf(t.Schema(), op))
		} else {
			b.Cells(op.Ask, t, op.Cells, op.Set)
		}
		if b.Bytes()-before > int64(p.st.Size) && i > from {
			if add(i); refused {
				return b.Err()
			}
			from, before = i, start
		}
	}
	if add(len(p.ops)); len(p.outs) == 0 {
		p.outs, p.ends = []*model.Outcome{{Refused: -1}}, []int{len(p.ops)}
	}
	return b.Err()
}

// refused compares the result of a call that ended with a refused write batch.
func (p *pieces) refused(m *model.Table, res oribi.BulkResult, err error) error {
	p.r.notInFlight(p.outs[p.done])
	from := 0
	if p.done > 0 {
		from = p.ends[p.done-1]
	}
	next, nextErr := nextKey(m, res.Next)
	if nextErr != nil {
		return nextErr
	}
	end := p.ends[p.done]
	piece := slices.IndexFunc(p.ops[from:end], func(op script.Op) bool { // those before it have changed nothing
		return model.CompareKeys(m.Schema, op.Cells[:m.Schema.Keys], next) == 0
	})
	if piece < 0 {
		return fmt.Errorf("the next key is %v after %d operations (%w)", res.Next, from, err)
	}
	return refusal(err, p.r.Model.Resolve(p.ops[from+piece:end], false), p.ops[from+piece:end])
}

// begin records that the next write batch is in flight.
func (p *pieces) begin() {
	p.r.State.Lock()
	defer p.r.State.Unlock()
	if p.r.InFlight == nil { // else an earlier one failed, and the store refuses others
		p.r.InFlight = p.outs[p.done]
	}
}

// committed records that the store has committed the write batch in flight.
func (p *pieces) committed(ts mvcc.Timestamp) {
	p.seen = ts
	switch {
	case p.err != nil:
		return
	case p.done == len(p.outs):
		p.err = fmt.Errorf("a write batch at %d, after all %d pieces", uint64(ts), p.done)
		return
	case p.r.InFlight != p.outs[p.done]:
		p.err = fmt.Errorf("a batch was accepted after one had failed")
		return
	case ts <= p.r.passed:
		p.err = fmt.Errorf("timestamp %d is not above the earlier %d", uint64(ts), uint64(p.r.passed))
		return
	}
	p.r.answered(ts)
	p.r.committed(p.outs[p.done], ts, p.st.Sync)
	if p.done++; p.done < len(p.outs) {
		p.begin()
	}
}

func (p *pieces) stopped() bool { return p.st.Stop > 0 && p.done >= p.st.Stop }

// Err returns the first difference from the model, or context.Canceled after st.Stop write batches,
// so that a call that never stops committing ends.
func (p *pieces) Err() error {
	if ts := p.r.Store.Visible(); ts > p.seen {
		p.committed(ts)
	}
	switch {
	case p.err != nil:
		return p.err
	case p.stopped():
		return context.Canceled
	}
	return p.Context.Err()
}

// bulk fills in a bulk call on a table: all rows, or the rows that pass some tests in a key range.
func (g *Generator) bulk(r *Runner, t *model.Table, st *script.Step) {
	st.Sync = g.r.IntN(3) == 0
	if g.r.IntN(4) == 0 {
		st.Mask = g.mask()
		st.During = g.rewrite()
	}
	if st.Kind == script.Restore {
		st.Sync = true
		st.Read = script.Read{AsOf: true, At: g.past(r), Limit: -1}
		return
	}
	if g.r.IntN(2) == 0 {
		st.Size = 1 + g.r.IntN(1<<(6+g.r.IntN(10)))
		if g.r.IntN(2) == 0 {
			st.Stop = 1 + g.r.IntN(3)
		}
	}
	st.Read.Limit = -1
	if st.Kind == script.Truncate {
		return
	}
	if g.r.IntN(6) > 0 {
		st.Read = g.scan(r, t)
		st.Read = script.Read{Tests: st.Read.Tests, From: st.Read.From, To: st.Read.To, Limit: -1}
	}
	if st.Kind == script.UpdateWhere {
		st.Ops = []script.Op{g.set(t)}
		if g.r.IntN(2) == 0 {
			g.operands(t.Schema, &st.Ops[0])
		}
	}
}

// set returns the columns that an UpdateWhere sets. It seldom returns columns that the call must
// refuse.
func (g *Generator) set(t *model.Table) script.Op {
	s := t.Schema
	op := script.Op{Ask: oribi.OpUpdate, Table: t.Name, Cells: make([][]byte, len(s.Columns)),
		Set: make([]bool, len(s.Columns))}
	refused := g.seldom(30)
	some := g.r.IntN(len(s.Columns))
	for i := range s.Columns {
		c := &s.Columns[i]
		if (i < s.Keys || c.Immutable) && !refused || i != some && g.r.IntN(3) > 0 {
			continue
		}
		op.Set[i] = true
		if !(c.Nullable || refused) || g.r.IntN(4) > 0 {
			op.Cells[i] = values.RandomCell(g.r, c)
		}
	}
	return op
}

// rewrite returns a kind of step that rewrites a table, for a batch in the middle of it.
func (g *Generator) rewrite() script.Kind {
	kinds := []script.Kind{script.Flush, script.Flush, script.Flush, script.Flush, script.Merge, script.Merge,
		script.Compact, script.Deltas, script.Minor, script.Major, script.Recompress}
	if g.inside {
		kinds = []script.Kind{script.Merge, script.Merge, script.Merge, script.Minor, script.Major, script.Recompress}
	}
	return kinds[g.r.IntN(len(kinds))]
}

// mask returns the mask of a step that writes in the middle of a rewrite.
func (g *Generator) mask() uint64 {
	if g.inside { // of most rowsets, with any flushes inside
		return (g.r.Uint64()|g.r.Uint64())&(1<<56-1) | g.r.Uint64()<<56
	}
	return g.r.Uint64() & g.r.Uint64()
}

// rename renames a table, in the store and then in the model. Handles of the table stay valid.
func (r *Runner) rename(st *script.Step) error {
	t, err := r.Store.Table(st.Table)
	if err != nil {
		return err
	}
	switch {
	case st.Name == st.Table:
		return t.Rename(r.ctx, st.Name)
	case st.Name == "":
		return want(t.Rename(r.ctx, st.Name), oribi.ErrSchema)
	case r.Model.Tables[st.Name] != nil:
		return want(t.Rename(r.ctx, st.Name), oribi.ErrExists)
	}
	if err := r.change(st, func() error { return t.Rename(r.ctx, st.Name) }); err != nil {
		return err
	}
	if _, err := r.Store.Table(st.Table); want(err, oribi.ErrNoTable) != nil {
		return fmt.Errorf("the old name: %w", want(err, oribi.ErrNoTable))
	}
	if now, err := r.Store.Table(st.Name); err != nil || now != t || t.Name() != st.Name {
		return fmt.Errorf("table %q, but the handle is for table %q (%w)", st.Name, t.Name(), err)
	}
	return nil
}

// rename returns the new name of a table: usually an unused one, seldom an invalid one or the
// table's own name.
func (g *Generator) rename(r *Runner, table string) string {
	names := r.Model.Names()
	switch g.r.IntN(12) {
	case 0:
		return names[g.r.IntN(len(names))]
	case 1:
		return ""
	}
	name := fmt.Sprintf("t%d", g.r.IntN(g.made+2))
	for slices.Contains(names, name) {
		g.made++
		name = fmt.Sprintf("t%d", g.made)
	}
	g.Pools[name] = g.Pools[table] // a crash may bring the old name back, which keeps its keys
	return name
}
