package history

import (
	"errors"
	"fmt"
	"time"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/internal/prooftest/model"
	"github.com/oribi-db/oribi/internal/prooftest/script"
	"github.com/oribi-db/oribi/internal/prooftest/values"
	"github.com/oribi-db/oribi/mvcc"
	"github.com/oribi-db/oribi/schema"
)

// answer is the set of permitted results of a read at a timestamp.
type answer int

const (
	rows   answer = 1 << iota // the rows as of then
	tooOld                    // ErrTooOld
	future                    // ErrFuture
)

// reading starts a step that reads a table, and counts it.
func (r *Runner) reading(st *script.Step) (rd *script.Read, t *oribi.Table, may answer, err error) {
	if t, err = r.Store.Table(st.Table); err != nil {
		return nil, nil, may, err
	}
	r.Counts.Reads++
	r.whole = t.Properties().HistoryFloor == mvcc.Min // of each table in turn, if the step names none
	return &st.Read, t, r.expect(&st.Read), nil
}

// expect returns the permitted results of a read, and records that the clock passes its timestamp.
//
// History begins at the clock's time minus the retention. The clock's time is only known to be at
// or above the wall clock, and at or below the maximum of the wall clock and the passed timestamps.
func (r *Runner) expect(rd *script.Read) answer {
	if !rd.AsOf {
		return rows
	}
	o := &r.Script.Settings
	if !o.Hybrid {
		r.pass(rd.At)
		return rows
	}
	now := r.Wall.time()
	if rd.At > max(r.passed, mvcc.EndOf(now)) {
		if rd.At <= mvcc.EndOf(r.latest(now)) { // the wall clock went back: the store may have seen the later time
			return rows | future | r.old(rd.At, now)
		}
		return future
	}
	r.pass(rd.At)
	return rows | r.old(rd.At, now)
}

// pass records that the clock is past ts.
func (r *Runner) pass(ts mvcc.Timestamp) {
	r.passed = max(r.passed, ts)
	r.Wall.pass(ts)
}

// old is tooOld if a read at ts may be refused, and has no rows if it must be.
func (r *Runner) old(ts mvcc.Timestamp, now time.Time) answer {
	if r.Script.Settings.History <= 0 {
		return 0
	}
	if ts < mvcc.FromTime(r.latest(now).Add(-r.Script.Settings.History)) {
		return tooOld
	}
	return 0
}

// latest returns the maximum possible time of the store's clock.
func (r *Runner) latest(now time.Time) time.Time {
	latest := now
	if t := r.Wall.passed(); t.After(now) {
		latest = t
	}
	return latest.Add(time.Millisecond) // for timestamps assigned for other purposes than batches
}

// mustBeOld reports whether a read at ts must be refused. Transactions pin history, and a new
// table has none to drop.
func (r *Runner) mustBeOld(rd *script.Read) bool {
	o := &r.Script.Settings
	return rd.AsOf && len(r.txs) == 0 && !r.whole && o.Hybrid && o.History > 0 &&
		rd.At < mvcc.FromTime(r.Wall.time().Add(-o.History))
}

// ended compares the result of a read with the permitted ones. done means that there are no rows to
// compare.
func (r *Runner) ended(rd *script.Read, may answer, err error) (done bool, _ error) {
	switch {
	case may&rows == 0 && may&future != 0:
		return true, want(err, oribi.ErrFuture)
	case may&future != 0 && errors.Is(err, oribi.ErrFuture):
		return true, nil
	case r.mustBeOld(rd):
		return true, want(err, oribi.ErrTooOld)
	case may&tooOld != 0 && errors.Is(err, oribi.ErrTooOld):
		return true, nil
	}
	return false, err
}

// get reads one row, as cells or as values.
func (r *Runner) get(st *script.Step) error {
	rd, t, may, err := r.reading(st)
	if err != nil {
		return err
	}
	s := t.Schema()
	want := r.Model.Tables[st.Table].Row(rd.Key, rd.Newest())
	var cells [][]byte
	var row oribi.Row
	at, columns := rd.Options(s)
	if rd.Values {
		key := values.RowValues(s, rd.Key, nil)
		row, err = t.Get(r.ctx, key, at, columns)
	} else {
		_, cells, err = t.GetCells(r.ctx, rd.Key, at, columns)
	}
	if errors.Is(err, oribi.ErrNotFound) && may&rows != 0 && !r.mustBeOld(rd) {
		if want != nil {
			return fmt.Errorf("not found, want %s", script.CellsText(want, nil, " "))
		}
		r.answered(nil)
		return nil
	}
	if done, err := r.ended(rd, may, err); done || err != nil {
		return err
	}
	r.Counts.Rows++
	r.answered(row, cells)
	switch columns := rd.ColumnsOf(s); {
	case want == nil:
		return fmt.Errorf("there is a row %v %v, want none", script.CellsText(cells, nil, " "), row)
	case rd.Values:
		return differentValues(s, model.Project(want, columns), columns, row)
	default:
		return DifferentCells(cells, model.Project(want, columns))
	}
}

// DifferentCells returns an error if two rows differ.
func DifferentCells(got, want [][]byte) error {
	if string(model.AppendCells(nil, got)) != string(model.AppendCells(nil, want)) {
		return fmt.Errorf("got row %s, want %s", script.CellsText(got, nil, " "), script.CellsText(want, nil, " "))
	}
	return nil
}

func differentValues(s *schema.Schema, want [][]byte, columns []int, got oribi.Row) error {
	names := map[string]bool{}
	for i, c := range columns {
		column := &s.Columns[c]
		names[column.Name] = true
		value, ok := got[column.Name]
		if w := values.GoValue(column, want[i]); !ok || !values.SameValue(value, w) {
			return fmt.Errorf("column %s: got %v (%T), want %v (%T)", column.Name, value, value, w, w)
		}
	}
	if len(got) != len(names) {
		return fmt.Errorf("got columns %v, want %v", got, names)
	}
	return nil
}

// countOptions returns the options that select the rows of a read.
func countOptions(t *oribi.Table, rd *script.Read) []oribi.CountOption {
	s := t.Schema()
	at, _ := rd.Options(s)
	opts := []oribi.CountOption{at}
	for _, test := range rd.Tests {
		opts = append(opts, oribi.Where(test.Predicate(s)))
	}
	for _, o := range rd.Bounds() {
		opts = append(opts, o)
	}
	return opts
}

// scanOptions returns all options of a scan.
func scanOptions(t *oribi.Table, rd *script.Read) []oribi.ScanOption {
	_, columns := rd.Options(t.Schema())
	opts := []oribi.ScanOption{columns}
	for _, o := range countOptions(t, rd) {
		opts = append(opts, o)
	}
	if rd.Limit >= 0 {
		opts = append(opts, oribi.Limit(rd.Limit))
	}
	switch {
	case rd.Any && rd.Workers > 0:
		opts = append(opts, oribi.Workers(rd.Workers))
	case rd.Any:
		opts = append(opts, oribi.AnyOrder())
	case rd.Desc:
		opts = append(opts, oribi.Desc())
	}
	return opts
}
