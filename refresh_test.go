package oribi

import (
	"context"
	"testing"
	"time"

	"github.com/oribi-db/oribi/internal/fault"
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
		if got := test.s.restarts(test.ctx, test.asOf, test.err, test.tries); got != test.want {
			t.Errorf("%s: %v", test.name, got)
		}
	}
}

// An epoch that the anchor announces is news, but not all the time if there is no such metadata.
// After a refresh that has failed in the middle there always is something to do.
func TestNewsOfAnnouncedEpoch(t *testing.T) {
	mem := vfs.NewMem()
	store, table := pinnedStore(t, mem)
	follower := follow(t, mem)
	had := follower.blocks.Epoch()
	if err := table.Alter(t.Context(), SetComment("x")); err != nil {
		t.Fatal(err)
	}
	epoch := store.blocks.Epoch()
	type announcement struct {
		broken    bool
		announced uint64
		at        time.Time
	}
	for _, test := range []struct {
		name string
		f    announcement
		want bool
	}{
		{"new", announcement{}, true},
		{"announced just now", announcement{announced: epoch, at: time.Now().Add(time.Hour)}, false},
		{"announced before", announcement{announced: epoch, at: time.Now().Add(-2 * announcedAgain)}, true},
		{"after another one", announcement{announced: had, at: time.Now().Add(time.Hour)}, true},
		{"after a failure", announcement{broken: true, announced: epoch, at: time.Now().Add(time.Hour)}, true},
	} {
		f := &follower.following
		f.broken, f.announced, f.at = test.f.broken, test.f.announced, test.f.at
		if got, err := follower.news(); got != test.want || err != nil {
			t.Errorf("%s: %v, %v", test.name, got, err)
		}
	}
	if err := follower.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	if news, err := follower.news(); news || err != nil {
		t.Errorf("after a refresh: %v, %v", news, err)
	}
}
