package oribi

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/oribi-db/oribi/blockmanager"
	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/internal/storedir"
	"github.com/oribi-db/oribi/internal/tablet"
	"github.com/oribi-db/oribi/internal/wal"
	"github.com/oribi-db/oribi/mvcc"
	"github.com/oribi-db/oribi/rowset"
	"github.com/oribi-db/oribi/scan"
)

// Finding is one defect that Verify found.
type Finding struct {
	File    string // within the store's directory
	Offset  int64  // in that file, bytes
	Block   uint64 // 0 if no block is concerned
	Problem string
}

// verification is a call of Verify or VerifyDeep.
type verification struct {
	deep        bool
	missing     map[blockID]bool                       // blocks that are reported as missing
	places      map[blockID]blockmanager.BlockLocation // nil until it is needed
	done, total int64
	progress    []Progress
}

// advance counts checked bytes.
func (o *verification) advance(bytes int64) {
	o.done += bytes
	advance(o.progress, o.done, o.total)
}

// Verify reads and checks all files: containers and blocks with their checksums, the log, the
// journal of the metadata, every column file of every rowset, keys against bounds, counts against
// rows. It calls report for each finding and continues. It returns an error only if it could not
// check everything. It may run while the store is in use. A torn end of the log or the journal is
// not a finding. A block is read twice, as a block and as part of its rowset, and counts twice in
// progress.
func (s *Store) Verify(ctx context.Context, report func(Finding), progress ...Progress) error {
	return s.verify(ctx, report, &verification{progress: progress})
}

// VerifyDeep is like Verify and checks also what no checksum covers, such as errors of a program
// that wrote false data with right checksums: that bloom files, key indexes, and key directories
// find every key; that the changes of each row, in all files together, form one history; that the
// counts, sizes, and LSNs of rowsets are right; that the metadata names every block exactly once;
// that the journal repeats the metadata. It reports every damaged file of a rowset, not only the
// first.
func (s *Store) VerifyDeep(ctx context.Context, report func(Finding), progress ...Progress) error {
	return s.verify(ctx, report, &verification{deep: true, progress: progress})
}

func (s *Store) verify(ctx context.Context, report func(Finding), o *verification) error {
	if report == nil {
		report = func(Finding) {}
	}
	if err := s.enter(); err != nil {
		return err
	}
	defer s.leave()
	o.total = 2 * s.core.Blocks.Stats().LiveBytes
	found := func(file string, off int64, id blockID, problem string) {
		report(Finding{File: file, Offset: off, Block: uint64(id), Problem: problem})
	}
	err := s.core.Blocks.Verify(ctx, found, o.advance)
	if err != nil {
		return fmt.Errorf("oribi: verify: %w", err)
	}
	err = wal.Verify(s.core.LogOptions(), s.core.Blocks.LogStart(), func(file string, off int64, problem string) {
		report(Finding{File: filepath.Join(storedir.LogName, file), Offset: off, Problem: problem})
	})
	if err != nil {
		return fmt.Errorf("oribi: verify: %w", err)
	}
	if o.deep {
		err := s.verifyNames(report, o)
		if err == nil {
			err = s.core.Blocks.CompareJournal(found)
		}
		if err != nil {
			return fmt.Errorf("oribi: verify: %w", err)
		}
	}
	for _, t := range s.sortedTables() {
		if err := t.verify(ctx, report, o); err != nil {
			return fmt.Errorf("oribi: verify: %w", err)
		}
	}
	return nil
}

// verify checks each rowset of a table, then scans the table. Keys must ascend, and the number of
// rows must agree with the metadata.
func (t *Table) verify(ctx context.Context, report func(Finding), o *verification) error {
	damaged := false
	check := t.tab.Check
	if o.deep {
		check = t.tab.CheckDeep
	}
	err := check(ctx, func(m *rowset.Metadata, id blockID, err error) {
		if id == 0 || id != m.RowFile && id != m.KeyDirectory { // which the scan below does not need
			damaged = true
		}
		if o.missing[id] {
			return
		}
		report(o.place(t.store, id, fmt.Sprintf("table %q: rowset %d: %v", t.tab.Name(), m.ID, err)))
	}, func(m *rowset.Metadata) { o.advance(m.Bytes) })
	if err != nil || damaged {
		return err
	}
	want := t.tab.LiveRows()
	snap := mvcc.AsOf(t.store.core.Visible())
	if t.store.core.FirstUnpublished() <= t.store.core.LastLSN() {
		return nil // write batches are in flight: counts would be off by them
	}
	n, err := t.countInOrder(ctx, snap)
	if errors.Is(err, fault.ErrCorrupt) {
		report(Finding{File: storedir.MetaName, Problem: fmt.Sprintf("table %q: %v", t.tab.Name(), err)})
		return nil
	}
	if err == nil && n != want && t.store.opts.ReadOnly {
		report(Finding{File: storedir.MetaName, Problem: fmt.Sprintf("table %q: %d rows, the counts say %d",
			t.tab.Name(), n, want)})
	}
	return err
}

// countInOrder counts rows and checks that their keys ascend.
func (t *Table) countInOrder(ctx context.Context, snap mvcc.Snapshot) (int64, error) {
	v, err := t.tab.View(tablet.Snapshot{At: snap, Latest: true})
	if err != nil {
		return 0, err
	}
	it, err := v.Scan(scan.Options{Keys: true}, true)
	if err != nil {
		return 0, err
	}
	return scan.CountAscending(ctx, it, t.tab.KeyText)
}
