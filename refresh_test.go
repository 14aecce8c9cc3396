package oribi

import (
	"context"
	"testing"

	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/vfs"
)

// A read of the newest state of a follower begins again three times, if it needs something that the
// writer has removed. No other read does, and none after another error.
func TestReadsBeginAgain(t *testing.T) {
	mem := vfs.NewMem()
	store, _ := pinnedStore(t, mem)
	follower := follow(t, mem)
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	for _, test := range []struct {
		name  string
		ctx   context.Context
		s     *Store
		asOf  bool
		err   error
		tries int
		want  bool
	}{
		{"first", t.Context(), follower, false, fault.ErrTooOld, 0, true},
		{"third", t.Context(), follower, false, fault.ErrTooOld, 2, true},
		{"fourth", t.Context(), follower, false, fault.ErrTooOld, 3, false},
		{"as of a timestamp", t.Context(), follower, true, fault.ErrTooOld, 0, false},
		{"damage", t.Context(), follower, false, fault.ErrCorrupt, 0, false},
		{"canceled", canceled, follower, false, fault.ErrTooOld, 0, false},
		{"writer", t.Context(), store, false, fault.ErrTooOld, 0, false},
	} {
		must.Equal(t, test.s.core.Restarts(test.ctx, test.asOf, test.err, test.tries), test.want, test.name)
	}
}

// After a change of the metadata, a follower needs a refresh until it has refreshed.
func TestRefreshIsNeededAfterMetadataChange(t *testing.T) {
	mem := vfs.NewMem()
	store, table := pinnedStore(t, mem)
	follower := follow(t, mem)
	must.Equal(t, must.Get(follower.core.Follower.NeedsRefresh())(t), false, "before a change")
	must.Do(t, table.Alter(t.Context(), SetComment("x")))
	must.Do(t, store.core.Blocks.Confirm())
	must.Equal(t, must.Get(follower.core.Follower.NeedsRefresh())(t), true, "after a change")
	must.Do(t, follower.Refresh(t.Context()))
	must.Equal(t, must.Get(follower.core.Follower.NeedsRefresh())(t), false, "after a refresh")
}
