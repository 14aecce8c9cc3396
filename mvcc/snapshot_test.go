package mvcc

import (
	"testing"

	"github.com/oribi-db/oribi/internal/must"
)

func TestSnapshotBounds(t *testing.T) {
	for _, c := range []struct {
		name       string
		snap       Snapshot
		seen       Timestamp // the highest timestamp that snap sees, or Min
		unseen     Timestamp // the lowest timestamp that snap does not see, or Max
		roundTrips bool      // AsOf(Newest) is the snapshot
	}{
		{"nothing", Nothing, Min, First, false},
		{"before the first", Before(First), Min, First, true},
		{"before 3", Before(3), 2, 3, true},
		{"as of 3", AsOf(3), 3, 4, true},
		{"as of the last", AsOf(Last), Last, Last + 1, true},
		{"as of the maximum", AsOf(Max), Max - 1, Max, true},
		{"everything", Everything, Last, Max, true},
	} {
		if c.snap != Nothing && !c.snap.Sees(c.seen) {
			t.Errorf("%s: does not see %d", c.name, uint64(c.seen))
		}
		must.Equal(t, c.snap.Sees(c.unseen), false, c.name, "sees", uint64(c.unseen))
		must.Equal(t, AsOf(c.snap.Newest()) == c.snap, c.roundTrips, c.name, "AsOf(Newest()) is the snapshot")
	}
}
