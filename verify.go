package oribi

import (
	"context"
	"fmt"

	"github.com/oribi-db/oribi/internal/store"
	"github.com/oribi-db/oribi/storeinfo"
)

// Finding is one defect that Verify found.
type Finding = storeinfo.Finding

// Verify reads and checks all files: containers and blocks with their checksums, the log, the
// journal of the metadata, every column file of every rowset, keys against bounds, counts against
// rows. It calls report for each finding and continues. It returns an error only if it could not
// check everything. It may run while the store is in use. A torn end of the log or the journal is
// not a finding. A block is read twice, as a block and as part of its rowset, and counts twice in
// progress.
func (s *Store) Verify(ctx context.Context, report func(Finding), progress ...Progress) error {
	return s.verify(ctx, &store.Verification{Report: report}, progress)
}

// VerifyDeep is like Verify and checks also what no checksum covers, such as errors of a program
// that wrote false data with right checksums: that bloom files, key indexes, and key directories
// find every key; that the changes of each row, in all files together, form one history; that the
// counts, sizes, and LSNs of rowsets are right; that the metadata names every block exactly once;
// that the journal repeats the metadata. It reports every damaged file of a rowset, not only the
// first.
func (s *Store) VerifyDeep(ctx context.Context, report func(Finding), progress ...Progress) error {
	return s.verify(ctx, &store.Verification{Report: report, Deep: true}, progress)
}

func (s *Store) verify(ctx context.Context, v *store.Verification, progress []Progress) error {
	if v.Report == nil {
		v.Report = func(Finding) {}
	}
	v.Progress = func(done, total int64) { advance(progress, done, total) }
	if err := s.enter(); err != nil {
		return err
	}
	defer s.leave()
	if err := s.core.Verify(ctx, v); err != nil {
		return fmt.Errorf("oribi: verify: %w", err)
	}
	return nil
}
