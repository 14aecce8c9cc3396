package history

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/internal/prooftest/model"
	"github.com/oribi-db/oribi/internal/prooftest/script"
	"github.com/oribi-db/oribi/internal/prooftest/values"
	"github.com/oribi-db/oribi/mvcc"
)

// history reads the versions of one row.
func (r *Runner) history(st *script.Step) error {
	rd, t, may, err := r.reading(st)
	if err != nil {
		return err
	}
	now := r.Wall.time()
	var got []string
	at, projected := rd.Options(t.Schema())
	for v, err := range t.History(r.ctx, rd.Key, at, projected) {
		if errors.Is(err, oribi.ErrNotFound) && got == nil {
			break
		}
		if done, err := r.ended(rd, may, err); done || err != nil {
			return err
		}
		text := fmt.Sprintf("%d %v ", uint64(v.Timestamp), v.Kind)
		if v.Cells != nil {
			text += "row " + script.CellsText(v.Cells, nil, " ")
		}
		got = append(got, text)
	}
	if r.mustBeOld(rd) {
		return fmt.Errorf("%d versions, want %w", len(got), oribi.ErrTooOld)
	}
	r.Counts.Rows += int64(len(got))
	r.answered(got)
	model, columns := r.Model.Tables[st.Table], rd.ColumnsOf(t.Schema())
	want := []string(nil)
	for _, since := range r.begins(model, rd.Key, now) {
		if want = model.Versions(rd.Key, columns, since, rd.Newest()); slices.Equal(got, want) {
			return nil
		}
	}
	return fmt.Errorf("versions %q, want %q", got, want)
}

// begins returns the timestamps at which the history of a row may begin, as far as its versions
// distinguish them.
func (r *Runner) begins(t *model.Table, key [][]byte, now time.Time) []mvcc.Timestamp {
	o := &r.Script.Settings
	if !o.Hybrid || o.History <= 0 {
		return []mvcc.Timestamp{mvcc.Min}
	}
	low, high := mvcc.FromTime(now.Add(-o.History)), mvcc.EndOf(r.latest(now).Add(-o.History))
	out := []mvcc.Timestamp{low, high}
	if r.whole {
		out = append(out, mvcc.Min)
	}
	for _, open := range r.txs {
		low = min(low, open.tx.Timestamp())
		out = append(out, open.tx.Timestamp())
	}
	if row := t.ByKey[model.KeyText(key)]; row != nil {
		for _, v := range row.Versions {
			if v.TS >= low && v.TS <= high {
				out = append(out, v.TS-1, v.TS) // the version before may have expired
			}
		}
	}
	return out
}

// diff reads the rows that differ between two timestamps.
func (r *Runner) diff(st *script.Step) error {
	from, to := st.Read, st.Read
	from.At, to.At = min(st.Read.At, st.Read.Until), max(st.Read.At, st.Read.Until)
	from.AsOf, to.AsOf = true, true
	t, err := r.Store.Table(st.Table)
	if err != nil {
		return err
	}
	r.Counts.Reads++
	may := r.expect(&to)
	if may&rows != 0 {
		passed := r.passed
		if may = may&future | r.expect(&from); may&future != 0 {
			r.passed = passed // the later timestamp may be refused before the clock advances to the earlier one
		}
	}
	s := t.Schema()
	columns := from.ColumnsOf(s)
	_, projected := from.Options(s)
	opts := []oribi.RowsOption{projected}
	for _, o := range from.Bounds() {
		opts = append(opts, o)
	}
	var got []string
	for c, err := range t.Diff(r.ctx, from.At, to.At, opts...) {
		if done, err := r.ended(&from, may, err); done || err != nil {
			return err
		}
		got = append(got, fmt.Sprintf("%v %s: %s -> %s", c.Kind, script.CellsText(c.Key, nil, " "),
			script.CellsText(c.Before, nil, " "), script.CellsText(c.After, nil, " ")))
	}
	// With itself, the newest state can be compared however old it is.
	if may&rows == 0 || from.At < to.At && r.mustBeOld(&from) {
		return fmt.Errorf("%d differences, want an error", len(got))
	}
	r.Counts.Rows += int64(len(got))
	r.answered(got)
	return different(got, r.Model.Tables[st.Table].Differences(columns, &from, &to))
}

func different(got, want []string) error {
	if !slices.Equal(got, want) {
		return fmt.Errorf("%d of %d%s", len(got), len(want), firstDifference(got, want))
	}
	return nil
}

// many reads rows by several keys.
func (r *Runner) many(st *script.Step) error {
	rd, t, may, err := r.reading(st)
	if err != nil {
		return err
	}
	s := t.Schema()
	keys := make([]any, len(st.Keys))
	for i, key := range st.Keys {
		if keys[i] = key; rd.Values {
			keys[i] = values.RowValues(s, key, nil)
		}
	}
	var got []oribi.Row
	var cells [][][]byte
	at, projected := rd.Options(s)
	if rd.Values {
		got, err = t.GetMany(r.ctx, keys, at, projected)
	} else {
		_, cells, err = t.GetManyCells(r.ctx, keys, at, projected)
	}
	if done, err := r.ended(rd, may, err); done || err != nil {
		return err
	}
	r.answered(got, cells)
	columns := rd.ColumnsOf(s)
	for i, key := range st.Keys {
		row := r.Model.Tables[st.Table].Row(key, rd.Newest())
		if there := rd.Values && got[i] != nil || !rd.Values && cells[i] != nil; there != (row != nil) {
			return fmt.Errorf("key %d: row exists: %t, want %s", i, there, script.CellsText(row, nil, " "))
		}
		if row == nil {
			continue
		}
		r.Counts.Rows++
		want := model.Project(row, columns)
		if rd.Values {
			err = differentValues(s, want, columns, got[i])
		} else {
			err = DifferentCells(cells[i], want)
		}
		if err != nil {
			return fmt.Errorf("key %d: %w", i, err)
		}
	}
	return nil
}
