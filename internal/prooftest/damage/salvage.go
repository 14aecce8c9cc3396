package damage

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/internal/prooftest/files"
	"github.com/oribi-db/oribi/internal/prooftest/history"
	"github.com/oribi-db/oribi/internal/prooftest/model"
	"github.com/oribi-db/oribi/internal/prooftest/script"
	"github.com/oribi-db/oribi/mvcc"
	"github.com/oribi-db/oribi/schema"
	"github.com/oribi-db/oribi/vfs"
)

// SalvageCounts counts salvaged copies of stores, and what became of their rows.
type SalvageCounts struct {
	Harms    int64
	Salvaged int64
	Older    int64 // of those, copies of which only earlier metadata could be read
	Refused  int64 // both copies of the metadata were damaged
	Whole    int64 // of those, copies of which nothing was lost
	Kept     int64 // rows, as of each of some timestamps
	Stale    int64 // rows as they were at or before that time, where log records are lost
	Filled   int64 // of those kept, rows with NULL in the place of a value
	Lost     int64 // rows that are not in the new store
	Readable int64 // rows that the damaged store could return: all of them are in the new store
}

// Add adds o to c.
func (c *SalvageCounts) Add(o SalvageCounts) {
	c.Harms += o.Harms
	c.Salvaged += o.Salvaged
	c.Whole += o.Whole
	c.Older += o.Older
	c.Refused += o.Refused
	c.Kept += o.Kept
	c.Filled += o.Filled
	c.Stale += o.Stale
	c.Lost += o.Lost
	c.Readable += o.Readable
}

// Salvage is one salvage of a damaged copy of a Store.
type Salvage struct {
	Harms    []string // what was done to the copy
	FillNull bool

	d      *Store
	image  *vfs.Mem
	losses []oribi.Loss
	c      SalvageCounts
}

// RandomSalvage damages a copy of the store in one to three places. Only files for which damaged
// returns true, by their path in the store, are damaged.
func (d *Store) RandomSalvage(r *rand.Rand, damaged func(name string) bool) (*Salvage, error) {
	s := &Salvage{d: d, image: d.image.Clone(), FillNull: r.IntN(2) == 0}
	var names []string
	for _, name := range d.files {
		if rel, err := filepath.Rel(history.Dir, name); err == nil && damaged(filepath.ToSlash(rel)) {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return s, nil
	}
	for range 1 + r.IntN(3) {
		// How many numbers a harm draws depends on the file, which is not the same in each run: it
		// names the process, or containers.
		one := rand.New(rand.NewPCG(r.Uint64(), r.Uint64()))
		if err := s.harm(one, names[r.IntN(len(names))]); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// harm damages a file: bytes, pages, its end, or all of it.
func (s *Salvage) harm(r *rand.Rand, name string) error {
	b, err := files.ReadFile(s.image, name)
	if err != nil || len(b) == 0 {
		return nil // an earlier harm has removed it
	}
	at := r.IntN(len(b))
	for range 64 { // files are mostly padding
		if b[at] != 0 {
			break
		}
		at = r.IntN(len(b))
	}
	switch kind := r.IntN(20); {
	case kind < 14:
		b[at] ^= byte(1 + r.IntN(255))
		s.note("%s: byte %d", name, at)
	case kind < 17:
		from := at &^ 4095
		clear(b[from:min(len(b), from+4096)])
		s.note("%s: page at %d", name, from)
	case kind < 18:
		b = b[:at]
		s.note("%s: cut to %d", name, at)
	case kind < 19:
		b[at] ^= 1
		s.note("%s: bit at %d", name, at)
	default:
		s.note("%s: removed", name)
		return s.image.Remove(name)
	}
	if err := s.image.Remove(name); err != nil {
		return err
	}
	f, err := s.image.Create(name)
	if err != nil {
		return err
	}
	if _, err := f.WriteAt(b, 0); err != nil {
		return err
	}
	return f.Close()
}

func (s *Salvage) note(format string, args ...any) {
	s.c.Harms++
	s.Harms = append(s.Harms, fmt.Sprintf(format, args...))
}

// harmed reports whether something was done to files whose names contain part.
func (s *Salvage) harmed(part string) bool {
	return slices.ContainsFunc(s.Harms, func(h string) bool { return strings.Contains(h, part) })
}

func (s *Salvage) String() string {
	text := strings.Join(s.Harms, ", ")
	if s.FillNull {
		text += ", NULL filled"
	}
	return text
}

const salvagedDir = "/salvaged"

// Run salvages the copy, and compares the new store with the model:
//
//   - the damaged one is unchanged;
//   - each row, as of some timestamps, is that of the model, apart from cells that are reported as
//     filled with NULL;
//   - without a reported loss no row is missing;
//   - no row is missing that the damaged store returns;
//   - the new store is verified.
func (s *Salvage) Run() (c SalvageCounts, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v", p)
		}
		c = s.c
	}()
	before, err := files.Fingerprint(s.image, history.Dir)
	if err != nil {
		return c, err
	}
	var options []oribi.SalvageOption
	if s.FillNull {
		options = append(options, oribi.FillNull())
	}
	_, err = oribi.Salvage(context.Background(), history.Dir, salvagedDir, s.d.r.Options(s.image), func(l oribi.Loss) { s.losses = append(s.losses, l) }, options...)
	if after, ferr := files.Fingerprint(s.image, history.Dir); ferr != nil || after != before {
		return c, fmt.Errorf("the damaged store was changed, %v", ferr)
	}
	if errors.Is(err, oribi.ErrCorrupt) && s.harmed("/meta/") && s.harmed("/JOURNAL") {
		s.c.Refused++
		return c, nil
	} else if err != nil {
		return c, fmt.Errorf("salvage: %w", err)
	}
	s.c.Salvaged++
	if len(s.losses) == 0 {
		s.c.Whole++
	}
	out, err := oribi.Open(salvagedDir, s.d.r.Options(s.image))
	if err != nil {
		return c, fmt.Errorf("the new store: %w", err)
	}
	defer out.Close()
	if err := model.Verified(out); err != nil {
		return c, fmt.Errorf("the new store: %w", err)
	}
	if slices.ContainsFunc(s.losses, func(l oribi.Loss) bool { return l.File == "meta" }) { // a state from before: tables may differ
		s.c.Older++
		return c, s.d.compact(out)
	}
	if err := s.compare(out); err != nil {
		return c, fmt.Errorf("%w; losses: %+v", err, s.losses)
	}
	return c, s.d.compact(out)
}

// compare compares the new store with the model and the damaged store.
func (s *Salvage) compare(out *oribi.Store) error {
	o := s.d.r.Options(s.image)
	o.ReadOnly = true
	damaged, err := oribi.Open(history.Dir, o)
	if err == nil {
		defer damaged.Close()
	}
	if got, want := len(out.Tables()), len(s.d.r.Model.Tables); got != want {
		return fmt.Errorf("%d tables, want %d", got, want)
	}
	for name, m := range s.d.r.Model.Tables {
		t, err := out.Table(name)
		if err != nil {
			return err
		}
		var old *oribi.Table
		if damaged != nil {
			if old, err = damaged.Table(name); err != nil {
				return err
			}
		}
		for _, ts := range s.d.moms {
			if err := s.compareTable(t, old, m, ts); err != nil {
				return fmt.Errorf("table %s as of %d: %w", name, uint64(ts), err)
			}
		}
	}
	return nil
}

func (s *Salvage) compareTable(t, old *oribi.Table, m *model.Table, ts mvcc.Timestamp) error {
	at := oribi.Latest()
	if ts != mvcc.Max {
		at = oribi.AsOf(ts)
	}
	rows, err := scanRows(t, m.Schema, at)
	if err != nil {
		return err
	}
	for _, r := range m.Order {
		want, key := r.At(ts), keyText(r.Key)
		got, ok := rows[key]
		delete(rows, key)
		switch {
		case want == nil && !ok:
		case ok && s.lostRecords() && s.wasOnce(r, got, ts):
			s.c.Stale++
		case want == nil:
			return fmt.Errorf("%w: row %s should not exist", errWrong, script.CellsText(r.Key, nil, " "))
		case ok:
			filled, err := s.compareRow(t.Name(), m.Schema, got, want)
			if err != nil {
				return fmt.Errorf("%w: row %s: %v", errWrong, script.CellsText(r.Key, nil, " "), err)
			}
			s.c.Kept++
			if filled {
				s.c.Filled++
			}
		default:
			s.c.Lost++
			if len(s.losses) == 0 {
				return fmt.Errorf("%w: row %s is missing, no loss was reported", errWrong, script.CellsText(r.Key, nil, " "))
			}
		}
		if old == nil || want == nil {
			continue
		}
		if _, cells, err := old.GetCells(context.Background(), r.Key, at); err == nil && history.DifferentCells(cells, want) == nil {
			s.c.Readable++
			if !ok {
				return fmt.Errorf("%w: row %s is missing, and the damaged store returns it", errWrong, script.CellsText(r.Key, nil, " "))
			}
		}
	}
	for key := range rows {
		return fmt.Errorf("%w: an unknown row %q", errWrong, key)
	}
	return nil
}

// lostRecords reports whether the loss of log records was reported: rows may then be older than
// they should be.
func (s *Salvage) lostRecords() bool {
	return slices.ContainsFunc(s.losses, func(l oribi.Loss) bool { return strings.HasPrefix(l.File, "wal") })
}

// wasOnce reports whether cells are those of a row at or before a timestamp.
func (s *Salvage) wasOnce(r *model.Row, cells [][]byte, ts mvcc.Timestamp) bool {
	for _, v := range r.Versions {
		if v.TS > ts {
			break
		}
		if want := r.At(v.TS); want != nil && history.DifferentCells(cells, want) == nil {
			return true
		}
	}
	return false
}

// compareRow reports whether cells that are reported as filled with NULL differ. Others must not.
func (s *Salvage) compareRow(table string, sc *schema.Schema, got, want [][]byte) (filled bool, err error) {
	want = slices.Clone(want)
	for i := range want {
		if got[i] == nil && want[i] != nil && s.reportedFilled(table, sc.Columns[i].Name) {
			want[i], filled = nil, true
		}
	}
	return filled, history.DifferentCells(got, want)
}

func (s *Salvage) reportedFilled(table, column string) bool {
	return s.FillNull && slices.ContainsFunc(s.losses, func(l oribi.Loss) bool {
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
