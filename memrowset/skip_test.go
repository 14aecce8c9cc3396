package memrowset

import (
	"testing"

	"github.com/oribi-db/oribi/change"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/mvcc"
)

// A row with many versions, three of them at each timestamp, is found in every snapshot.
func TestSkipsFindEveryVersion(t *testing.T) {
	const versions = 30_000
	m := New(testSchema(t), nil)
	key := []byte("key")
	m.Insert(key, 10, 1, image(m, "key", 0, ""))
	for i := range versions {
		m.Mutate(key, mvcc.Timestamp(20+i/3), 2, change.AppendReplace(nil, image(m, "key", 1+i, "")))
	}
	ref := m.find(key, false)
	for ts := mvcc.Timestamp(9); ts < 20+versions/3+1; ts += 7 {
		snap := mvcc.AsOf(ts)
		want := m.newest(ref) // by a walk over all links
		for want != 0 && !snap.Sees(m.link(want).ts()) {
			want = m.link(want).older()
		}
		must.Equal(t, m.newestIn(ref, snap), want, "as of", ts, "link")
	}
}
