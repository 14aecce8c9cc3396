package damage

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/internal/prooftest/history"
	"github.com/oribi-db/oribi/internal/prooftest/model"
	"github.com/oribi-db/oribi/internal/prooftest/script"
	"github.com/oribi-db/oribi/mvcc"
	"github.com/oribi-db/oribi/salvage"
	"github.com/oribi-db/oribi/schema"
)

// compare compares the new store with the model and the damaged store.
func (s *Salvage) compare(out *oribi.Store) error {
	o := s.d.r.Options(s.image)
	o.ReadOnly = true
	damaged, err := oribi.Open(history.Dir, o)
	if err == nil {
		defer damaged.Close()
	}
	older := s.lostMetadata()
	if got, want := len(out.Tables()), len(s.d.r.Model.Tables); got != want && !older {
		return fmt.Errorf("%d tables, want %d", got, want)
	}
	for name, m := range s.d.r.Model.Tables {
		t, err := out.Table(name)
		if errors.Is(err, oribi.ErrNoTable) && older {
			continue
		} else if err != nil {
			return err
		}
		var old *oribi.Table
		if damaged != nil {
			if old, err = damaged.Table(name); err != nil {
				return err
			}
		}
		if older && !s.d.fixed {
			m = nil // the table may have been another one
		}
		if err := s.compareTable(t, old, m); err != nil {
			return fmt.Errorf("table %s: %w", name, err)
		}
	}
	return nil
}

// compareTable compares a table by scans as of some timestamps, and by the histories of all keys.
// If m is nil, it only compares these with each other.
func (s *Salvage) compareTable(t, old *oribi.Table, m *model.Table) error {
	sc := t.Schema()
	for _, ts := range s.d.moms {
		at := oribi.Latest()
		if ts != mvcc.Max {
			at = oribi.AsOf(ts)
		}
		rows, err := scanRows(t, sc, at)
		if err != nil {
			return fmt.Errorf("as of %d: %w", uint64(ts), err)
		}
		n, err := t.Count(context.Background(), at)
		if err != nil || n != int64(len(rows)) {
			return fmt.Errorf("as of %d: counted %d rows, read %d, %w", uint64(ts), n, len(rows), err)
		}
		if m == nil {
			continue
		}
		for _, r := range m.Order {
			key := keyText(r.Key)
			if err := s.compareRow(t, m, r, rows[key], ts); err != nil {
				return fmt.Errorf("as of %d: %w", uint64(ts), err)
			}
			if err := s.readable(old, r, rows[key] != nil, ts); err != nil {
				return err
			}
			delete(rows, key)
		}
		for key := range rows {
			return fmt.Errorf("as of %d: %w: an unknown row %q", uint64(ts), errWrong, key)
		}
	}
	if m == nil {
		return nil
	}
	for _, r := range m.Order {
		if err := s.compareHistory(t, m, r); err != nil {
			return err
		}
	}
	return nil
}

// compareHistory compares all versions of a row.
func (s *Salvage) compareHistory(t *oribi.Table, m *model.Table, r *model.Row) error {
	type state struct {
		ts    mvcc.Timestamp
		cells [][]byte
	}
	var got []state // newest first
	for v, err := range t.History(context.Background(), r.Key) {
		if errors.Is(err, oribi.ErrNotFound) {
			break
		} else if err != nil {
			return fmt.Errorf("history of %s: %w", script.CellsText(r.Key, nil, " "), err)
		}
		if n := len(got); n > 0 && v.Timestamp >= got[n-1].ts {
			return fmt.Errorf("history of %s: %w: a version of %d after one of %d", script.CellsText(r.Key, nil, " "),
				errWrong, uint64(v.Timestamp), uint64(got[n-1].ts))
		}
		got = append(got, state{v.Timestamp, v.Cells})
	}
	var times []mvcc.Timestamp
	for _, v := range r.Versions {
		times = append(times, v.TS)
	}
	for _, v := range got {
		times = append(times, v.ts)
	}
	slices.Sort(times)
	for _, ts := range slices.Compact(times) {
		var cells [][]byte
		if i := slices.IndexFunc(got, func(v state) bool { return v.ts <= ts }); i >= 0 {
			cells = got[i].cells
		}
		if err := s.compareRow(t, m, r, cells, ts); err != nil {
			return fmt.Errorf("history, as of %d: %w", uint64(ts), err)
		}
	}
	return nil
}

// compareRow compares a row as of a timestamp; nil is a row that does not exist.
func (s *Salvage) compareRow(t *oribi.Table, m *model.Table, r *model.Row, got [][]byte, ts mvcc.Timestamp) error {
	want, key := r.At(ts), script.CellsText(r.Key, nil, " ")
	switch {
	case want == nil && got == nil:
	case got != nil && (want == nil || history.DifferentCells(got, want) != nil) && s.lostRecords() &&
		s.wasOnce(t.Name(), m.Schema, r, got, ts):
		s.c.Stale++
	case want == nil:
		return fmt.Errorf("%w: row %s should not exist", errWrong, key)
	case got != nil:
		filled, err := s.compareCells(t.Name(), m.Schema, got, want)
		if err != nil {
			return fmt.Errorf("%w: row %s: %v", errWrong, key, err)
		}
		s.c.Kept++
		if filled {
			s.c.Filled++
		}
	default:
		s.c.Lost++
		if !s.reported(t.Name()) {
			return fmt.Errorf("%w: row %s is missing, no loss was reported", errWrong, key)
		}
	}
	return nil
}

// readable checks that a row is not missing which the damaged store returns.
func (s *Salvage) readable(old *oribi.Table, r *model.Row, kept bool, ts mvcc.Timestamp) error {
	want := r.At(ts)
	if old == nil || want == nil {
		return nil
	}
	at := oribi.Latest()
	if ts != mvcc.Max {
		at = oribi.AsOf(ts)
	}
	if _, cells, err := old.GetCells(context.Background(), r.Key, at); err == nil &&
		history.DifferentCells(cells, want) == nil {
		s.c.Readable++
		if !kept && !s.lostRecords() {
			return fmt.Errorf("%w: row %s is missing, and the damaged store returns it", errWrong,
				script.CellsText(r.Key, nil, " "))
		}
	}
	return nil
}

// lostRecords reports whether the loss of log records or metadata was reported: rows may then be
// older than they should be.
func (s *Salvage) lostRecords() bool {
	return s.lostMetadata() || slices.ContainsFunc(s.losses, func(l salvage.Loss) bool {
		return strings.HasPrefix(l.File, "wal") && l.Table == ""
	})
}

// lostMetadata reports whether it was reported that only earlier metadata can be read.
func (s *Salvage) lostMetadata() bool {
	return slices.ContainsFunc(s.losses, func(l salvage.Loss) bool { return l.File == "meta" && l.Table == "" })
}

// reported reports whether a loss of a table was reported.
func (s *Salvage) reported(table string) bool {
	return slices.ContainsFunc(s.losses, func(l salvage.Loss) bool { return l.Table == table || l.Table == "" })
}

// wasOnce reports whether a row had these cells at or before a timestamp. Cells that are reported
// as filled with NULL are not compared.
func (s *Salvage) wasOnce(table string, sc *schema.Schema, r *model.Row, cells [][]byte, ts mvcc.Timestamp) bool {
	for _, v := range r.Versions {
		if v.TS > ts {
			break
		}
		if want := r.At(v.TS); want != nil {
			if _, err := s.compareCells(table, sc, cells, want); err == nil {
				return true
			}
		}
	}
	return false
}

// compareCells reports whether cells that are reported as filled with NULL differ. Others must not.
func (s *Salvage) compareCells(table string, sc *schema.Schema, got, want [][]byte) (filled bool, err error) {
	want = slices.Clone(want)
	for i := range want {
		if got[i] == nil && want[i] != nil && s.reportedFilled(table, sc.Columns[i].Name) {
			want[i], filled = nil, true
		}
	}
	return filled, history.DifferentCells(got, want)
}

func (s *Salvage) reportedFilled(table, column string) bool {
	return s.FillNull && slices.ContainsFunc(s.losses, func(l salvage.Loss) bool {
		return l.Table == table && strings.Contains(l.Lost, fmt.Sprintf("column %q: filled with NULL", column))
	})
}

// scanRows returns all rows by their keys.
func scanRows(t *oribi.Table, sc *schema.Schema, at oribi.ReadOption) (map[string][][]byte, error) {
	rows := map[string][][]byte{}
	for b, err := range t.Scan(context.Background(), at).Batches() {
		if err != nil {
			return nil, err
		}
		for i := b.Selection.Next(0); i >= 0; i = b.Selection.Next(i + 1) {
			cells := make([][]byte, len(b.Columns))
			for c, v := range b.Columns {
				if cell := v.Cell(i); cell != nil {
					cells[c] = append([]byte{}, cell...)
				}
			}
			key := keyText(cells[:sc.Keys])
			if rows[key] != nil {
				return nil, errors.New("two rows have one key")
			}
			rows[key] = cells
		}
	}
	return rows, nil
}

func keyText(cells [][]byte) string { return fmt.Sprintf("%x", cells) }
