package damage

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/blockmanager"
	"github.com/oribi-db/oribi/internal/prooftest/files"
	"github.com/oribi-db/oribi/internal/prooftest/history"
	"github.com/oribi-db/oribi/internal/prooftest/model"
	"github.com/oribi-db/oribi/salvage"
	"github.com/oribi-db/oribi/vfs"
)

// SalvageCounts counts salvaged copies of stores, and their rows that were kept, changed, and lost.
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
	losses []salvage.Loss
	c      SalvageCounts
}

// RandomSalvage damages a copy of the store in one to three places: in containers, the log, the
// journal, or other files. Only files for which damaged returns true, by their path in the store,
// are damaged.
func (d *Store) RandomSalvage(r *rand.Rand, damaged func(name string) bool) (*Salvage, error) {
	s := &Salvage{d: d, image: d.image.Clone(), FillNull: r.IntN(2) == 0}
	classes := map[string][]string{}
	for _, name := range d.files {
		if rel, err := filepath.Rel(history.Dir, name); err == nil && damaged(filepath.ToSlash(rel)) {
			class, _, _ := strings.Cut(filepath.ToSlash(rel), "/")
			if class != "data" && class != "wal" && class != blockmanager.JournalName {
				class = "meta"
			}
			classes[class] = append(classes[class], name)
		}
	}
	if len(classes) == 0 {
		return s, nil
	}
	order := slices.Sorted(maps.Keys(classes))
	for range 1 + r.IntN(3) {
		// How many numbers a harm draws depends on the file, which is not the same in each run: it
		// names the process, or containers.
		one := rand.New(rand.NewPCG(r.Uint64(), r.Uint64()))
		names := classes[order[r.IntN(len(order))]]
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
//   - each row, as of each timestamp, equals the model's. If a loss is reported for its table, or
//     for all, it may be missing, or have NULL in the place of cells for which that is reported; if
//     records of the log or metadata are lost, it may be as it was once before;
//   - no row is missing that the damaged store returns, unless records or metadata are lost;
//   - each key is there once, in scans, counts, and histories;
//   - the new store is verified, and can be compacted. The same is so afterwards.
func (s *Salvage) Run() (c SalvageCounts, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
		}
		c = s.c
	}()
	before, err := files.Fingerprint(s.image, history.Dir)
	if err != nil {
		return c, err
	}
	var options []salvage.Option
	if s.FillNull {
		options = append(options, salvage.FillNull())
	}
	_, err = salvage.Run(context.Background(), history.Dir, salvagedDir, s.d.r.Options(s.image), func(l salvage.Loss) {
		s.losses = append(s.losses, l)
	}, options...)
	if after, ferr := files.Fingerprint(s.image, history.Dir); ferr != nil || after != before {
		return c, fmt.Errorf("the damaged store was changed, %v", ferr)
	}
	if errors.Is(err, oribi.ErrCorrupt) && s.harmed("/meta/") && s.harmed("/"+blockmanager.JournalName) {
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
	if s.lostMetadata() {
		s.c.Older++
	}
	if err := s.compare(out); err != nil {
		return c, fmt.Errorf("%w; losses: %+v", err, s.losses)
	}
	if err := s.compacted(out); err != nil {
		return c, fmt.Errorf("compacted: %w; losses: %+v", err, s.losses)
	}
	return c, nil
}

// compacted compacts the new store and compares it again.
func (s *Salvage) compacted(out *oribi.Store) error {
	if err := s.d.compact(out); err != nil {
		return err
	}
	if err := model.Verified(out); err != nil {
		return err
	}
	counts := s.c
	defer func() { s.c = counts }()
	return s.compare(out)
}
