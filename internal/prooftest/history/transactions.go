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
	tx      *oribi.Tx
	model   *model.Tx
	attempt *attempt              // nil: none of Update
	held    map[*model.Table]bool // tables that its steps name
	read    map[*model.Table]bool // by an exclusive attempt
	saved   []savepoint
	cursors []*txCursor
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
	if t := r.Model.Tables[st.Table]; t != nil {
		open.held[t] = true
	}
	switch st.Kind {
	case script.TxGet:
		err = r.txGet(open, st)
	case script.TxGetBy:
		err = r.txGetBy(open, st)
	case script.TxScan:
		err = r.txScan(open, st)
	case script.TxWrite:
		err = r.txWrite(open, st)
	case script.TxDelete:
		err = r.txDelete(open, st)
	case script.TxCursor:
		err = r.txCursor(open, st)
	case script.TxMove:
		err = r.txMove(open, st)
	case script.Savepoint:
		err = r.savepoint(open)
	case script.RollbackTo:
		err = r.rollbackTo(open, st)
	case script.TxCommit:
		delete(r.txs, st.Tx)
		return r.txCommit(open, st)
	case script.Rollback:
		return r.rollback(st.Tx)
	}
	if err != nil {
		err = errors.Join(r.unlessEnded(open, err), r.rollback(st.Tx))
	}
	return err
}

func (r *Runner) rollback(i int) (err error) {
	if open := r.txs[i]; open.attempt != nil {
		err = want(open.attempt.end(errRollback), errRollback)
	} else {
		open.tx.Rollback()
	}
	delete(r.txs, i)
	return err
}

// rollbackAll ends the transactions that which selects. The store may be closed.
func (r *Runner) rollbackAll(which func(*model.Tx) bool) (err error) {
	for i, open := range r.txs {
		if which(open.model) {
			err = errors.Join(err, r.rollback(i))
		}
	}
	return err
}

func every(*model.Tx) bool { return true }

func (r *Runner) begin(st *script.Step) (err error) {
	open := &transaction{held: map[*model.Table]bool{}, read: map[*model.Table]bool{}}
	switch {
	case !st.Exclusive:
		open.tx, err = r.Store.Begin(r.ctx)
	case r.exclusive() != nil:
		return nil // they run one after another
	default:
		open.attempt, open.tx, err = beginAttempt(r.ctx, r.Store, st.Sync)
	}
	if err != nil {
		return err
	}
	tx := open.tx
	if r.txs == nil {
		r.txs = map[int]*transaction{}
	}
	r.txs[st.Tx] = open
	if tx.Timestamp() < r.Model.Newest() {
		r.rollback(st.Tx)
		return fmt.Errorf("the transaction reads the state at %d, the newest batch is at %d",
			uint64(tx.Timestamp()), uint64(r.Model.Newest()))
	}
	r.pass(tx.Timestamp())
	r.answered(tx.Timestamp())
	open.model = r.Model.Begin(tx.Timestamp())
	return nil
}

func (r *Runner) txGet(open *transaction, st *script.Step) error {
	t, err := r.Store.Table(st.Table)
	if err != nil {
		return err
	}
	r.Counts.Reads++
	_, projected := st.Read.Options(t.Schema())
	_, cells, err := open.tx.GetCells(t, st.Read.Key, projected)
	if done, err := r.advance(open, r.Model.Tables[st.Table], err); done {
		return err
	}
	row := open.model.Get(r.Model.Tables[st.Table], st.Read.Key)
	return r.compareGet(err, cells, row, st.Read.ColumnsOf(t.Schema()))
}

// compareGet compares the result of a read of one row with the row of the model, nil for none.
func (r *Runner) compareGet(err error, cells, row [][]byte, columns []int) error {
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
	return DifferentCells(cells, model.Project(row, columns))
}

func (r *Runner) txScan(open *transaction, st *script.Step) error {
	t, err := r.Store.Table(st.Table)
	if err != nil {
		return err
	}
	r.Counts.Reads++
	s, rd := t.Schema(), &st.Read
	columns := rd.ColumnsOf(s)
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
	for row, e := range open.tx.Scan(t, opts...).Rows() {
		if err = e; err != nil {
			break
		}
		if got = append(got, valuesText(s, columns, row)); len(got) == st.Stop {
			break
		}
	}
	m := r.Model.Tables[st.Table]
	if done, err := r.advance(open, m, err); done || err != nil {
		return err
	}
	var wanted []string
	for _, row := range open.model.Scan(m, rd, st.Stop, len(t.Indexes()) > 0) {
		wanted = append(wanted, scanned(s, model.Project(row, columns), columns, true))
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
		open.read[m] = true // it may be
		if done, err := r.advance(open, nil, err); done {
			return err
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
	commit, sync := func() (mvcc.Timestamp, error) { return open.tx.Commit(opts...) }, st.Sync
	if a := open.attempt; a != nil {
		sync = a.sync
		commit = func() (mvcc.Timestamp, error) {
			before := r.Store.Visible()
			err := a.end(nil)
			if ts := r.Store.Visible(); ts > before {
				return ts, err
			}
			return open.tx.Timestamp(), err
		}
	}
	must, may := open.model.Conflict()
	if must {
		_, err := commit()
		r.Counts.Conflicts++
		return want(err, oribi.ErrConflict)
	}
	if len(open.model.Ops) == 0 {
		ts, err := commit()
		if err == nil && ts != open.tx.Timestamp() {
			err = fmt.Errorf("a commit without writes is at %d, want %d", uint64(ts), uint64(open.tx.Timestamp()))
		}
		return err
	}
	out := r.Model.Resolve(open.model.Ops, false)
	if out.Refused >= 0 { // an operand
		_, err := commit()
		if out.Cause == oribi.ErrNotFound || may && errors.Is(err, oribi.ErrConflict) {
			r.Counts.Conflicts++
			return want(err, oribi.ErrConflict)
		}
		r.Counts.Refused++
		return want(err, oribi.ErrOverflow)
	}
	err := r.take(out, open.model.Ops, sync, commit)
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
		if st.Exclusive = g.r.IntN(5) == 0; st.Exclusive {
			st.Sync = g.r.IntN(3) == 0
		}
		return
	}
	switch n := g.r.IntN(100); {
	case n < 10:
		st.Kind, st.Read = script.TxGet, script.Read{Columns: g.columns(t), Key: g.txKey(t)}
	case n < 20:
		g.txGetBy(r, st, t)
	case n < 32:
		g.txCursor(r, open, st, t)
	case n < 38:
		st.Kind, st.Table = script.Savepoint, ""
	case n < 43:
		st.Kind, st.Table, st.Number = script.RollbackTo, "", g.r.IntN(len(open.saved)+1)
	case n < 46:
		rd := g.scan(r, t)
		st.Kind, st.Read = script.TxDelete, script.Read{From: rd.From, To: rd.To, Limit: -1}
	case n < 57:
		st.Kind, st.Read = script.TxScan, g.scan(r, t)
		st.Read.AsOf, st.Read.At, st.Read.Any, st.Read.Workers = false, 0, false, 0
		if g.r.IntN(4) == 0 {
			st.Stop = 1 + g.r.IntN(5)
		}
	case n < 86:
		st.Kind = script.TxWrite
		for range 1 + g.r.IntN(4)*g.r.IntN(4) {
			key := g.txKey(t)
			op := g.op(t, key, open.model.Peek(t, key) != nil, &script.Op{})
			st.Ops = append(st.Ops, op)
		}
	case n < 96:
		st.Kind, st.Table, st.Sync = script.TxCommit, "", g.r.IntN(3) == 0
	default:
		st.Kind, st.Table = script.Rollback, ""
	}
}

// txKey returns a key for a step of a transaction: often one of few, so that steps meet.
func (g *Generator) txKey(t *model.Table) [][]byte {
	if pool := g.Pools[t.Name]; t.Schema.AutoIncrement() < 0 && g.r.IntN(2) == 0 {
		return pool[g.r.IntN(min(3, len(pool)))]
	}
	return g.key(t)
}

// beforeChange ends the transactions that have written to a table before it is dropped or its
// schema is changed, and prepares the others for the change.
func (r *Runner) beforeChange(st *script.Step) error {
	t := r.Model.Tables[st.Table]
	if err := r.rollbackAll(func(x *model.Tx) bool { return x.Writes(t) }); err != nil {
		return err
	}
	for _, open := range r.txs {
		open.model.Altered(t)
		if err := open.closeCursors(t); err != nil {
			return err
		}
	}
	return nil
}
