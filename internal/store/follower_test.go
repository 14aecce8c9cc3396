package store

import (
	"testing"
	"time"

	"github.com/oribi-db/oribi/internal/must"
)

// An epoch that the anchor announces needs a refresh, but not at once again if there is no such
// metadata.
func TestAnnouncedEpochNeedsRefresh(t *testing.T) {
	now := time.Now()
	for _, test := range []struct {
		name string
		announcement
		want bool
	}{
		{"new", announcement{}, true},
		{"announced just now", announcement{5, now}, false},
		{"announced before", announcement{5, now.Add(-2 * announcedAgain)}, true},
		{"after another epoch", announcement{4, now}, true},
	} {
		must.Equal(t, test.needsRefresh(5, now), test.want, test.name)
	}
}
