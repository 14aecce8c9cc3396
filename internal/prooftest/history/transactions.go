package history

import (
	"errors"
	"fmt"
	"slices"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/internal/prooftest/model"
	"github.com/oribi-db/oribi/internal/prooftest/script"
	"github.com/oribi-db/oribi/mvcc"
)

// transaction is an open transaction of the store and of the model.
type transaction struct {
	tx    *oribi.Tx
	model *model.Tx
}

// mostTransactions is the number of transactions that are open at the same time.
const mostTransactions = 3

// inTransaction makes a step of a transaction. If the transaction is not open, the step does
// nothing. Reads and writes that fail for another reason than the state of the rows end the
// transaction.
func (r *Runner) inTransaction(st *script.Step) (err error) {
	open := r.txs[st.Tx]
	switch {
	case st.Kind == script.Begin && open == nil:
		return r.begin(st)
	case open == nil:
		return nil
	}
	switch st.Kind {
	case script.TxGet:
		err = r.txGet(open, st)
	case script.TxScan:
		err = r.txScan(open, st)
	case script.TxWrite:
		err = r.txWrite(open, st)
	case script.TxCommit:
		delete(r.txs, st.Tx)
		return r.txCommit(open, st)
	case script.Rollback:
		r.rollback(st.Tx)
	}
	if err != nil {
		r.rollback(st.Tx)
	}
	return err
}

func (r *Runner) rollback(i int) {
	r.txs[i].tx.Rollback()
	delete(r.txs, i)
}

// rollbackAll ends the transactions that which selects. The store may be closed.
func (r *Runner) rollbackAll(which func(*model.Tx) bool) {
	for i, open := range r.txs {
		if which(open.model) {
			r.rollback(i)
		}
	}
}

func every(*model.Tx) bool { return true }

func (r *Runner) begin(st *script.Step) error {
	tx, err := r.Store.Begin(r.ctx)
	if err != nil {
		return err
	}
	if tx.Timestamp() < r.Model.Newest() {
		tx.Rollback()
		return fmt.Errorf("the transaction reads the state at %d, the newest batch is at %d",
			uint64(tx.Timestamp()), uint64(r.Model.Newest()))
	}
	r.pass(tx.Timestamp())
	r.answered(tx.Timestamp())
	if r.txs == nil {
		r.txs = map[int]*transaction{}
	}
	r.txs[st.Tx] = &transaction{tx, r.Model.Begin(tx.Timestamp())}
	return nil
}

func (r *Runner) txGet(open *transaction, st *script.Step) error {
	t, err := r.Store.Table(st.Table)
	if err != nil {
		return err
	}
	r.Counts.Reads++
	row := open.model.Get(r.Model.Tables[st.Table], st.Read.Key)
	_, projected := st.Read.Options(t.Schema())
	_, cells, err := open.tx.GetCells(t, st.Read.Key, projected)
	if err != nil && !errors.Is(err, oribi.ErrNotFound) {
		return err
	}
	r.answered(cells)
	switch {
	case row == nil && err == nil:
		return fmt.Errorf("there is a row %s, want none", script.CellsText(cells, nil, " "))
	case row == nil:
		return nil
	case err != nil:
		return fmt.Errorf("%w, want %s", err, script.CellsText(row, nil, " "))
	}
	return DifferentCells(cells, model.Project(row, st.Read.ColumnsOf(t.Schema())))
}

func (r *Runner) txScan(open *transaction, st *script.Step) error {
	t, err := r.Store.Table(st.Table)
	if err != nil {
		return err
	}
	r.Counts.Reads++
	s, rd := t.Schema(), &st.Read
	columns := rd.ColumnsOf(s)
	var wanted []string
	for _, row := range open.model.Scan(r.Model.Tables[st.Table], rd, st.Stop) {
		wanted = append(wanted, scanned(s, model.Project(row, columns), columns, true))
	}
	var opts []oribi.RowsOption
	_, projected := rd.Options(s)
	opts = append(opts, projected)
	for _, test := range rd.Tests {
		opts = append(opts, oribi.Where(test.Predicate(s)))
	}
	for _, o := range rd.Bounds() {
		opts = append(opts, o)
	}
	if rd.Limit >= 0 {
		opts = append(opts, oribi.Limit(rd.Limit))
	}
	if rd.Desc {
		opts = append(opts, oribi.Desc())
	}
	var got []string
	for row, err := range open.tx.Scan(t, opts...).Rows() {
		if err != nil {
			return err
		}
		if got = append(got, valuesText(s, columns, row)); len(got) == st.Stop {
			break
		}
	}
	r.Counts.Rows += int64(len(got))
	r.answered(got)
	return different(got, wanted)
}

// txWrite writes rows one by one; the transaction goes on after a refused one.
func (r *Runner) txWrite(open *transaction, st *script.Step) error {
	t, err := r.Store.Table(st.Table)
	if err != nil {
		return err
	}
	m := r.Model.Tables[st.Table]
	for i := range st.Ops {
		op := &st.Ops[i]
		if !r.Model.Malformed(op) && open.model.Unseen(m, op) {
			continue
		}
		r.Counts.Operations++
		var err error
		if op.Computed() {
			err = open.tx.Row(op.Ask, t, rowOf(t.Schema(), op))
		} else {
			err = open.tx.Cells(op.Ask, t, op.Cells, op.Set)
		}
		out := &model.Outcome{Refused: -1}
		if r.Model.Malformed(op) {
			out.Refused = 0
		} else if cause, refused := open.model.Write(m, op); refused {
			out.Refused, out.Cause = 0, cause
		}
		switch {
		case out.Refused < 0 && err != nil:
			return err
		case out.Refused < 0:
			continue
		}
		r.answered(err)
		if err := refusal(err, out, st.Ops[i:]); err != nil {
			return fmt.Errorf("operation %d: %w", i, err)
		}
	}
	return nil
}

func (r *Runner) txCommit(open *transaction, st *script.Step) error {
	var opts []oribi.CommitOption
	if !st.Sync {
		opts = append(opts, oribi.NoSync)
	}
	must, may := open.model.Conflict()
	if must {
		_, err := open.tx.Commit(opts...)
		r.Counts.Conflicts++
		return want(err, oribi.ErrConflict)
	}
	if len(open.model.Ops) == 0 {
		ts, err := open.tx.Commit(opts...)
		if err == nil && ts != open.tx.Timestamp() {
			err = fmt.Errorf("a commit without writes is at %d, want %d", uint64(ts), uint64(open.tx.Timestamp()))
		}
		return err
	}
	out := r.Model.Resolve(open.model.Ops, false)
	if out.Refused >= 0 { // an operand
		_, err := open.tx.Commit(opts...)
		if out.Cause == oribi.ErrNotFound || may && errors.Is(err, oribi.ErrConflict) {
			r.Counts.Conflicts++
			return want(err, oribi.ErrConflict)
		}
		r.Counts.Refused++
		return want(err, oribi.ErrOverflow)
	}
	err := r.take(out, open.model.Ops, st.Sync, func() (mvcc.Timestamp, error) { return open.tx.Commit(opts...) })
	switch {
	case err == nil:
		r.Counts.Transactions++
		if !slices.Equal(open.tx.Assigned(), out.Assigned) {
			return fmt.Errorf("assigned values %v, want %v", open.tx.Assigned(), out.Assigned)
		}
		return compareResults(open.tx.Results(), r.Model.Joined(open.model.Ops, open.tx.Results(), out.Results))
	case may && errors.Is(err, oribi.ErrConflict):
		r.Counts.Conflicts++
		r.notInFlight(out)
		return nil
	}
	return err
}

// transactionStep turns a step into one of a transaction, on a table.
func (g *Generator) transactionStep(r *Runner, st *script.Step, t *model.Table) {
	st.Tx = 1 + g.r.IntN(mostTransactions)
	for len(r.txs) > 0 && r.txs[st.Tx] == nil && g.r.IntN(4) > 0 {
		st.Tx = 1 + g.r.IntN(mostTransactions)
	}
	open := r.txs[st.Tx]
	if open == nil {
		st.Kind, st.Table = script.Begin, ""
		return
	}
	switch n := g.r.IntN(100); {
	case n < 20:
		st.Kind, st.Read = script.TxGet, script.Read{Columns: g.columns(t), Key: g.key(t)}
	case n < 40:
		st.Kind, st.Read = script.TxScan, g.scan(r, t)
		st.Read.AsOf, st.Read.At, st.Read.Any, st.Read.Workers = false, 0, false, 0
		if g.r.IntN(4) == 0 {
			st.Stop = 1 + g.r.IntN(5)
		}
	case n < 75:
		st.Kind = script.TxWrite
		for range 1 + g.r.IntN(4)*g.r.IntN(4) {
			key := g.key(t)
			op := g.op(t, key, open.model.Peek(t, key) != nil, &script.Op{})
			st.Ops = append(st.Ops, op)
		}
	case n < 96:
		st.Kind, st.Table, st.Sync = script.TxCommit, "", g.r.IntN(3) == 0
	default:
		st.Kind, st.Table = script.Rollback, ""
	}
}

// beforeChange ends the transactions that have written to a table before it is dropped or its
// schema is changed, and prepares the others for the change.
func (r *Runner) beforeChange(st *script.Step) {
	t := r.Model.Tables[st.Table]
	r.rollbackAll(func(x *model.Tx) bool { return x.Writes(t) })
	for _, open := range r.txs {
		open.model.Altered(t)
	}
}
