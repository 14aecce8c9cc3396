package prooftest

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/mvcc"
)

// versions is what a history should give: the row's versions with timestamps in (since, upTo],
// newest first, by content of the columns, and what was there at since.
func (t *Table) versions(key [][]byte, columns []int, since, upTo mvcc.Timestamp) (out []string) {
	r := t.rows[keyText(key)]
	if r == nil {
		return nil
	}
	text := func(ts mvcc.Timestamp) string {
		if cells := r.at(ts); cells != nil {
			return "row " + cellsText(project(cells, columns), nil, " ")
		}
		return ""
	}
	before := text(since)
	if before != "" {
		out = append(out, "0 base "+before)
	}
	for i, v := range r.versions {
		if v.ts <= since || v.ts > upTo || i+1 < len(r.versions) && r.versions[i+1].ts == v.ts {
			continue
		}
		if now := text(v.ts); now != before {
			out = append(out, fmt.Sprintf("%d %v %s", uint64(v.ts), kindOf(before != "", now != ""), now))
			before = now
		}
	}
	slices.Reverse(out)
	return out
}

func kindOf(before, after bool) oribi.ChangeKind {
	switch {
	case !before:
		return oribi.Inserted
	case !after:
		return oribi.Deleted
	}
	return oribi.Updated
}

// history reads the versions of one row.
func (r *Runner) history(st *Step) error {
	rd, t, may, err := r.reading(st)
	if err != nil {
		return err
	}
	now := r.wall.time()
	var got []string
	for v, err := range t.History(r.ctx, rd.Key, rd.options(t.Schema())...) {
		if errors.Is(err, oribi.ErrNotFound) && got == nil {
			break
		}
		if done, err := r.ended(rd, may, err); done || err != nil {
			return err
		}
		text := fmt.Sprintf("%d %v ", uint64(v.Timestamp), v.Kind)
		if v.Cells != nil {
			text += "row " + cellsText(v.Cells, nil, " ")
		}
		got = append(got, text)
	}
	if r.mustBeOld(rd) {
		return fmt.Errorf("%d versions, want %w", len(got), oribi.ErrTooOld)
	}
	r.Counts.Rows += int64(len(got))
	r.answered(got)
	model, columns := r.Model.Tables[st.Table], rd.columns(t.Schema())
	want := []string(nil)
	for _, since := range r.begins(model, rd.Key, now) {
		if want = model.versions(rd.Key, columns, since, rd.timestamp()); slices.Equal(got, want) {
			return nil
		}
	}
	return fmt.Errorf("versions %q, want %q", got, want)
}

// begins are the timestamps at which the history of a row may begin, as far as its versions tell
// them apart.
func (r *Runner) begins(t *Table, key [][]byte, now time.Time) []mvcc.Timestamp {
	o := &r.Script.Settings
	if !o.Hybrid || o.History <= 0 {
		return []mvcc.Timestamp{mvcc.Min}
	}
	low, high := mvcc.FromTime(now.Add(-o.History)), mvcc.EndOf(r.latest(now).Add(-o.History))
	out := []mvcc.Timestamp{low, high}
	if row := t.rows[keyText(key)]; row != nil {
		for _, v := range row.versions {
			if v.ts >= low && v.ts <= high {
				out = append(out, v.ts)
			}
		}
	}
	return out
}

// diff reads the rows that differ between two timestamps.
func (r *Runner) diff(st *Step) error {
	from, to := st.Read, st.Read
	from.At, to.At = min(st.Read.At, st.Read.Until), max(st.Read.At, st.Read.Until)
	from.AsOf, to.AsOf = true, true
	t, err := r.store.Table(st.Table)
	if err != nil {
		return err
	}
	r.Counts.Reads++
	may := r.expect(&to)
	if may&rows != 0 {
		passed := r.passed
		if may = may&future | r.expect(&from); may&future != 0 {
			r.passed = passed // the later one may be refused before the clock hears of the earlier one
		}
	}
	s := t.Schema()
	columns := from.columns(s)
	opts := scanOptions(t, &Read{Columns: from.Columns, From: from.From, To: from.To, Limit: -1})
	var got []string
	for c, err := range t.Diff(r.ctx, from.At, to.At, opts...) {
		if done, err := r.ended(&from, may, err); done || err != nil {
			return err
		}
		got = append(got, fmt.Sprintf("%v %s: %s -> %s", c.Kind, cellsText(c.Key, nil, " "), cellsText(c.Before, nil, " "), cellsText(c.After, nil, " ")))
	}
	if may&rows == 0 || r.mustBeOld(&from) {
		return fmt.Errorf("%d differences, want an error", len(got))
	}
	r.Counts.Rows += int64(len(got))
	r.answered(got)
	return different(got, r.Model.Tables[st.Table].differences(columns, &from, &to))
}

// differences are the rows that differ, of keys in the bounds that both reads have.
func (t *Table) differences(columns []int, from, to *Read) (out []string) {
	text := func(cells [][]byte) string {
		if cells == nil {
			return cellsText(nil, nil, " ")
		}
		return cellsText(project(cells, columns), nil, " ")
	}
	for _, row := range t.order {
		if from.From != nil && compareKeys(t.Schema, row.key, from.From) < 0 || from.To != nil && compareKeys(t.Schema, row.key, from.To) >= 0 {
			continue
		}
		a, b := row.at(from.At), row.at(to.At)
		if (a == nil) != (b == nil) || text(a) != text(b) {
			out = append(out, fmt.Sprintf("%v %s: %s -> %s", kindOf(a != nil, b != nil), cellsText(row.key, nil, " "), text(a), text(b)))
		}
	}
	return out
}

func different(got, want []string) error {
	if !slices.Equal(got, want) {
		return fmt.Errorf("%d of %d%s", len(got), len(want), firstDifference(got, want))
	}
	return nil
}

// many reads rows by several keys.
func (r *Runner) many(st *Step) error {
	rd, t, may, err := r.reading(st)
	if err != nil {
		return err
	}
	s := t.Schema()
	keys := make([]any, len(st.Keys))
	for i, key := range st.Keys {
		if keys[i] = key; rd.Values {
			keys[i] = rowValues(s, key, nil)
		}
	}
	var got []oribi.Row
	var cells [][][]byte
	if rd.Values {
		got, err = t.GetMany(r.ctx, keys, rd.options(s)...)
	} else {
		_, cells, err = t.GetManyCells(r.ctx, keys, rd.options(s)...)
	}
	if done, err := r.ended(rd, may, err); done || err != nil {
		return err
	}
	r.answered(got, cells)
	columns := rd.columns(s)
	for i, key := range st.Keys {
		model := r.Model.Tables[st.Table].Row(key, rd.timestamp())
		if there := rd.Values && got[i] != nil || !rd.Values && cells[i] != nil; there != (model != nil) {
			return fmt.Errorf("key %d: a row is there: %t, want %s", i, there, cellsText(model, nil, " "))
		}
		if model == nil {
			continue
		}
		r.Counts.Rows++
		want := project(model, columns)
		if rd.Values {
			err = differentValues(s, want, columns, got[i])
		} else {
			err = differentCells(cells[i], want)
		}
		if err != nil {
			return fmt.Errorf("key %d: %w", i, err)
		}
	}
	return nil
}
