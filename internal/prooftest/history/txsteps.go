package history

import (
	"errors"
	"fmt"
	"slices"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/internal/prooftest/model"
	"github.com/oribi-db/oribi/internal/prooftest/script"
	"github.com/oribi-db/oribi/internal/prooftest/values"
	"github.com/oribi-db/oribi/schema"
)

// savepoint is a savepoint and the number of operations before it, below 0 after a rollback past it.
type savepoint struct {
	sp  *oribi.Savepoint
	ops int
}

func (r *Runner) savepoint(open *transaction) error {
	sp, err := open.tx.Savepoint()
	if err == nil {
		open.saved = append(open.saved, savepoint{sp, len(open.model.Ops)})
	}
	return err
}

// rollbackTo rolls back to a savepoint, or tries to after a rollback past it.
func (r *Runner) rollbackTo(open *transaction, st *script.Step) error {
	if st.Number >= len(open.saved) {
		return want(open.tx.RollbackTo(nil), oribi.ErrSavepoint)
	}
	to := open.saved[st.Number]
	err := open.tx.RollbackTo(to.sp)
	if to.ops < 0 {
		return want(err, oribi.ErrSavepoint)
	}
	if err != nil {
		return err
	}
	for i := range open.saved[st.Number+1:] {
		open.saved[st.Number+1+i].ops = -1
	}
	if !open.model.RollbackTo(to.ops) {
		return errors.New("the model refuses an operation that it has accepted")
	}
	return nil
}

// txDelete deletes a range of keys.
func (r *Runner) txDelete(open *transaction, st *script.Step) error {
	t, err := r.Store.Table(st.Table)
	if err != nil {
		return err
	}
	m := r.Model.Tables[st.Table]
	var from, to any
	if st.Read.From != nil {
		from = st.Read.From
	}
	if st.Read.To != nil {
		to = st.Read.To
	}
	r.Counts.Operations++
	err = open.tx.DeleteRange(t, from, to)
	open.read[m] = true // it may be
	if done, err := r.advance(open, nil, err); done || err != nil {
		return err
	}
	open.model.DeleteRange(m, &st.Read, m.Expires() >= 0 || len(t.Indexes()) > 0)
	return nil
}

// txGetBy reads by a unique index, unless the step that adds the index was removed.
func (r *Runner) txGetBy(open *transaction, st *script.Step) error {
	t, err := r.Store.Table(st.Table)
	if err != nil {
		return err
	}
	s := t.Schema()
	columns := uniqueColumns(t, st.Name)
	if !fit(s, columns, st.Read.Key) {
		return nil
	}
	given := oribi.Key{}
	for i := range columns {
		given = append(given, oribi.Cell(st.Read.Key[i]))
	}
	r.Counts.Reads++
	_, projected := st.Read.Options(s)
	row, err := open.tx.GetBy(t, st.Name, given, projected)
	m := r.Model.Tables[st.Table]
	if done, err := r.advance(open, m, err); done {
		return err
	}
	wanted := open.model.GetBy(m, columns, st.Read.Key)
	if wanted == nil {
		return want(err, oribi.ErrNotFound)
	}
	if err != nil {
		return fmt.Errorf("%w, want %s", err, script.CellsText(wanted, nil, " "))
	}
	read := st.Read.ColumnsOf(s)
	return differentValues(s, model.Project(wanted, read), read, row)
}

// uniqueColumns returns the columns of a unique index, or nil.
func uniqueColumns(t *oribi.Table, name string) (columns []int) {
	for _, x := range t.Indexes() {
		if x.Name == name && x.Unique {
			for _, c := range x.Columns {
				columns = append(columns, t.Schema().Index(c))
			}
		}
	}
	return columns
}

// fit reports whether cells are values of columns.
func fit(s *schema.Schema, columns []int, cells [][]byte) bool {
	if len(columns) == 0 || len(columns) != len(cells) {
		return false
	}
	for i, c := range columns {
		if t := s.Columns[c].Type; cells[i] == nil || !t.Variable() && len(cells[i]) != t.Width() {
			return false
		}
	}
	return true
}

// txCursor is a cursor of the store and of the model.
type txCursor struct {
	c     *oribi.Cursor
	model *model.Cursor
	read  *script.Read
	table *oribi.Table
}

func (r *Runner) txCursor(open *transaction, st *script.Step) error {
	t, err := r.Store.Table(st.Table)
	if err != nil {
		return err
	}
	s, rd := t.Schema(), &st.Read
	_, projected := rd.Options(s)
	opts := []oribi.TxCursorOption{projected}
	for _, test := range rd.Tests {
		opts = append(opts, oribi.Where(test.Predicate(s)))
	}
	for _, o := range rd.Bounds() {
		opts = append(opts, o)
	}
	c := open.tx.Cursor(t, opts...)
	open.cursors = append(open.cursors, &txCursor{c, open.model.Cursor(r.Model.Tables[st.Table], st.Read), rd, t})
	return nil
}

// txMove moves a cursor, unless that was closed.
func (r *Runner) txMove(open *transaction, st *script.Step) error {
	if st.Number >= len(open.cursors) || open.cursors[st.Number] == nil {
		return nil
	}
	c := open.cursors[st.Number]
	s := c.table.Schema()
	m := r.Model.Tables[c.table.Name()]
	columns := c.read.ColumnsOf(s)
	r.Counts.Reads++
	for i := range st.Moves {
		move := &st.Moves[i]
		found := c.move(move)
		if done, err := r.advance(open, m, c.c.Err()); done || err != nil {
			return err
		}
		wanted := c.model.Move(move)
		cells := c.c.Cells()
		r.answered(cells)
		switch {
		case found != (wanted != nil) || !found && cells != nil:
			return fmt.Errorf("move %d: %v, at %s, want %s", i, found, script.CellsText(cells, nil, " "), script.CellsText(wanted, nil, " "))
		case found:
			if err := DifferentCells(cells, model.Project(wanted, columns)); err != nil {
				return fmt.Errorf("move %d: %w", i, err)
			}
		}
	}
	return nil
}

func (c *txCursor) move(m *script.Move) bool {
	switch m.Where {
	case script.First:
		return c.c.First()
	case script.Last:
		return c.c.Last()
	case script.Next:
		return c.c.Next()
	case script.Prev:
		return c.c.Prev()
	case script.Seek:
		return c.c.Seek(seekKey(m)...)
	}
	return c.c.SeekBefore(seekKey(m)...)
}

func seekKey(m *script.Move) (key []any) {
	for _, cell := range m.Key {
		key = append(key, oribi.Cell(cell))
	}
	return key
}

// closeCursors closes the cursors over a table.
func (open *transaction) closeCursors(t *model.Table) (err error) {
	for i, c := range open.cursors {
		if c != nil && c.model.Of(t) {
			err = errors.Join(err, c.c.Close())
			open.cursors[i] = nil
		}
	}
	return err
}

// txGetBy turns a step into a read by a unique index, usually of a row, or into one by key.
func (g *Generator) txGetBy(r *Runner, st *script.Step, t *model.Table) {
	st.Kind, st.Read = script.TxGet, script.Read{Columns: g.columns(t), Key: g.txKey(t)}
	in, err := r.Store.Table(t.Name)
	if err != nil {
		return
	}
	for _, x := range in.Indexes() {
		if !x.Unique {
			continue
		}
		key := st.Read.Key
		row := r.txs[st.Tx].model.Peek(t, key)
		st.Kind, st.Name, st.Read.Key = script.TxGetBy, x.Name, nil
		for _, c := range uniqueColumns(in, x.Name) {
			switch {
			case c < t.Schema.Keys:
				st.Read.Key = append(st.Read.Key, key[c])
			case row != nil && g.r.IntN(4) > 0:
				st.Read.Key = append(st.Read.Key, row[c])
			default:
				st.Read.Key = append(st.Read.Key, values.RandomCell(g.r, &t.Schema.Columns[c]))
			}
		}
		return
	}
}

// txCursor turns a step into a step that makes or moves a cursor.
func (g *Generator) txCursor(r *Runner, open *transaction, st *script.Step, t *model.Table) {
	alive := slices.DeleteFunc(slices.Clone(open.cursors), func(c *txCursor) bool { return c == nil })
	if len(alive) == 0 || len(alive) < 3 && g.r.IntN(6) == 0 {
		rd := g.scan(r, t)
		st.Kind, st.Read = script.TxCursor, script.Read{Columns: rd.Columns, Tests: rd.Tests, From: rd.From, To: rd.To, Limit: -1}
		return
	}
	c := alive[g.r.IntN(len(alive))]
	st.Kind, st.Table, st.Number = script.TxMove, "", slices.Index(open.cursors, c)
	over := r.Model.Tables[c.table.Name()]
	for range 1 + g.r.IntN(8) {
		m := script.Move{Where: []script.Where{script.First, script.Last, script.Seek, script.SeekBefore, script.Next, script.Next,
			script.Next, script.Prev, script.Prev}[g.r.IntN(9)]}
		if m.Where == script.Seek || m.Where == script.SeekBefore {
			m.Key = g.key(over)[:1+g.r.IntN(over.Schema.Keys)]
		}
		st.Moves = append(st.Moves, m)
	}
}
