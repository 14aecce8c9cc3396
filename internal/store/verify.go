package store

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/oribi-db/oribi/block"
	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/internal/storedir"
	"github.com/oribi-db/oribi/internal/tablet"
	"github.com/oribi-db/oribi/internal/wal"
	"github.com/oribi-db/oribi/mvcc"
	"github.com/oribi-db/oribi/rowset"
	"github.com/oribi-db/oribi/scan"
	"github.com/oribi-db/oribi/storeinfo"
)

// Verify reads and checks all files. Errors: ctx.Err(); ErrClosed; the errors of the file system.
func (s *Store) Verify(ctx context.Context, o *Verification) error {
	o.total = 2 * s.Blocks.Stats().LiveBytes
	found := func(file string, off int64, id block.ID, problem string) {
		o.Report(storeinfo.Finding{File: file, Offset: off, Block: uint64(id), Problem: problem})
	}
	err := s.Blocks.Verify(ctx, found, o.advance)
	if err != nil {
		return err
	}
	err = wal.Verify(s.LogOptions(), s.Blocks.LogStart(), func(file string, off int64, problem string) {
		o.Report(storeinfo.Finding{File: filepath.Join(storedir.LogName, file), Offset: off, Problem: problem})
	})
	if err != nil {
		return err
	}
	if o.Deep {
		err := s.verifyNames(o)
		if err == nil {
			err = s.Blocks.CompareJournal(found)
		}
		if err != nil {
			return err
		}
	}
	for _, t := range s.Tablets() {
		if err := s.verifyTable(ctx, t, o); err != nil {
			return err
		}
	}
	return nil
}

// verifyTable checks each rowset of a table, then scans the table. Keys must ascend, and the number
// of rows must agree with the metadata.
func (s *Store) verifyTable(ctx context.Context, t *tablet.Tablet, o *Verification) error {
	damaged := false
	check := t.Check
	if o.Deep {
		check = t.CheckDeep
	}
	err := check(ctx, func(m *rowset.Metadata, id block.ID, err error) {
		if id == 0 || id != m.RowFile && id != m.KeyDirectory { // which the scan below does not need
			damaged = true
		}
		if o.missing[id] {
			return
		}
		o.Report(o.place(s, id, fmt.Sprintf("table %q: rowset %d: %v", t.Name(), m.ID, err)))
	}, func(m *rowset.Metadata) { o.advance(m.Bytes) })
	if err != nil || damaged {
		return err
	}
	want := t.LiveRows()
	snap := mvcc.AsOf(s.Visible())
	if s.FirstUnpublished() <= s.LastLSN() {
		return nil // write batches are in flight: counts would be off by them
	}
	n, err := countInOrder(ctx, t, snap)
	if errors.Is(err, fault.ErrCorrupt) {
		o.Report(storeinfo.Finding{File: storedir.MetaName, Problem: fmt.Sprintf("table %q: %v", t.Name(), err)})
		return nil
	}
	if err == nil && n != want && s.Writer == nil {
		o.Report(storeinfo.Finding{File: storedir.MetaName, Problem: fmt.Sprintf("table %q: %d rows, the counts say %d",
			t.Name(), n, want)})
	}
	if err == nil && o.Deep {
		err = s.verifyIndexes(ctx, t, o)
	}
	return err
}

// verifyIndexes compares the indexes of a table with the table.
func (s *Store) verifyIndexes(ctx context.Context, t *tablet.Tablet, o *Verification) error {
	if len(t.Indexes()) == 0 {
		return nil
	}
	ts := s.Pins.PinLatest(t, s.NewestOf(t))
	defer s.Pins.Unpin(ts)
	for _, x := range t.Indexes() {
		if err := s.verifyIndex(ctx, t, x, tablet.Snapshot{At: mvcc.AsOf(ts), Latest: true}); err != nil {
			if !errors.Is(err, fault.ErrCorrupt) {
				return err
			}
			o.Report(storeinfo.Finding{File: storedir.MetaName, Problem: fmt.Sprintf("table %q: %v", t.Name(), err)})
		}
	}
	return nil
}

func (s *Store) verifyIndex(ctx context.Context, t, index *tablet.Tablet, snap tablet.Snapshot) error {
	v, err := t.View(snap)
	if err != nil {
		return err
	}
	defer v.Release()
	entries, err := index.View(snap)
	if err != nil {
		return err
	}
	defer entries.Release()
	if index.Index().Building {
		return nil
	}
	return v.CheckIndex(ctx, index, &entries)
}

// countInOrder counts rows and checks that their keys ascend.
func countInOrder(ctx context.Context, t *tablet.Tablet, snap mvcc.Snapshot) (int64, error) {
	v, err := t.View(tablet.Snapshot{At: snap, Latest: true})
	if err != nil {
		return 0, err
	}
	it, err := v.Scan(scan.Options{Keys: true}, true)
	if err != nil {
		return 0, err
	}
	return scan.CountAscending(ctx, it, t.KeyText)
}
