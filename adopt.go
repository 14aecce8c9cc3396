package oribi

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"

	"github.com/oribi-db/oribi/blockmanager"
	"github.com/oribi-db/oribi/internal/record"
	"github.com/oribi-db/oribi/internal/tablet"
	"github.com/oribi-db/oribi/mvcc"
	"github.com/oribi-db/oribi/rowset"
	"github.com/oribi-db/oribi/schema"
)

// Adoption is a table that Store.Adopt makes of finished files.
type Adoption struct {
	Name string

	// Schema has the columns with the IDs that they have in the files. Their read defaults are the
	// values in rowsets that lack the column.
	Schema        *schema.Schema
	SchemaVersion uint32

	// HistoryFloor is the earliest timestamp as of which the files are complete.
	HistoryFloor mvcc.Timestamp

	// RowSets yields the rowsets. Their key ranges may overlap, but at most one has a live row with
	// a key; where a row was deleted and inserted again, several rowsets have parts of its history.
	// Adopt closes the blocks that it opens, and uses a rowset only until the next step. An error
	// ends Adopt and is returned.
	//
	// Of the metadata, the ID, the numbers of bytes, the timestamps, and the included LSN are
	// ignored. Columns that the schema lacks are dropped ones: their blocks are not copied, and
	// their IDs never used again.
	RowSets iter.Seq2[rowset.Files, error]
}

// Adopt creates a table from finished files, with their history: one metadata commit, durably. It
// copies the blocks as they are and verifies the copies in full, which takes about as long as a
// merge of the table: checksums, kinds and types of files, bounds and order of keys, key indexes
// and bloom files, changes, counts, and that no key is live twice. It needs memory for a window of
// rows with their changes, later of each rowset, and for the metadata of all.
//
// Reads as of a.HistoryFloor or any later timestamp return what the files say, unless the option
// History makes the time too old: with HistoryForever, the history stays, however old it is. The
// store's clock advances past the newest timestamp in the files. A read without AsOf sees all
// changes as soon as there is the table. Writers of other tables do not wait.
//
// Errors: ErrExists; ErrSchema; ErrFuture if a timestamp is more than 10 s ahead of the machine's
// clock; ErrCorrupt, ErrUnsupported for files that are damaged or of an unknown kind; ErrReadOnly;
// ErrNoSpace; ErrPoisoned; ErrClosed; ctx.Err(); the errors of a.RowSets. After an error nothing
// has changed, except after ErrPoisoned, when the next Open decides. Source: tablet spec §11.
func (s *Store) Adopt(ctx context.Context, a Adoption, opts ...TableOption) (*Table, error) {
	if err := s.enterWriting(); err != nil {
		return nil, err
	}
	defer s.leave()
	t, err := s.adopt(ctx, &a, opts)
	if err != nil {
		return nil, callErr(fmt.Sprintf("adopt table %q", a.Name), err)
	}
	s.core.Background.Poke()
	return t, nil
}

func (s *Store) adopt(ctx context.Context, a *Adoption, opts []TableOption) (*Table, error) {
	row, err := s.newTable(a.Name, a.Schema, func(c *schema.Schema) (*schema.Schema, error) {
		return schema.New(slices.Clone(c.Columns), c.Keys)
	}, opts)
	if err != nil {
		return nil, err
	}
	row.SchemaVersion, row.HistoryFloor = a.SchemaVersion, a.HistoryFloor
	files := tablet.NewAdoption(s.core.TabletOptions(), row.Schema)
	defer files.Abort()
	if a.RowSets == nil {
		return nil, errors.New("no rowsets to iterate over: nil")
	}
	for f, err := range a.RowSets {
		if err == nil {
			err = s.core.HasSpace()
		}
		if err == nil {
			err = files.Add(ctx, f)
		}
		if err != nil {
			return nil, err
		}
	}
	if err := files.Finish(ctx); err != nil {
		return nil, err
	}
	if err := s.core.Clock.Advance(max(files.MaxTimestamp, a.HistoryFloor)); err != nil {
		return nil, err
	}
	// An empty batch makes the newest timestamp visible, and its LSN separates the table from
	// whatever the log has. A crash before the commit leaves that batch and unreferenced blocks.
	var rec record.Writer
	rec.Begin(0)
	_, at, publish, err := s.core.Writer.Announce(&rec, 0)
	if err != nil {
		return nil, err
	}
	publish()
	if err := s.core.WaitLSN(ctx, at); err != nil {
		return nil, err
	}
	return s.addTable(row, func() (blockmanager.Edit, []*rowset.Metadata) {
		return files.Edit(row, at), files.RowSets()
	})
}
