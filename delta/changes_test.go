package delta

import (
	"errors"
	"path/filepath"
	"testing"

	"github.com/oribi-db/oribi/block"
	"github.com/oribi-db/oribi/cfile"
	"github.com/oribi-db/oribi/change"
	"github.com/oribi-db/oribi/internal/corpustest"
	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/mvcc"
	"github.com/oribi-db/oribi/schema"
)

// Changes are returned in file order: within a row, redos have ascending and undos descending
// timestamps.
func TestChangesIteratesInFileOrder(t *testing.T) {
	for name, want := range map[string][]mvcc.Timestamp{"redo-basic": {1, 2, 2, 3, 4, 2}, "undo-basic": {9, 5, 5}} {
		data := corpustest.Read(t, filepath.Join("testdata", "golden", name+".delta"))
		f := must.Get(OpenFile(&block.Memory{Bytes: data}, cfile.ReaderOptions{}))(t)
		var got []mvcc.Timestamp
		must.Do(t, f.Changes(nil, func(d change.Delta) error {
			got = append(got, d.TS)
			return nil
		}))
		must.Equal(t, int64(len(got)), f.Len(), name, "changes")
		for i := range want {
			if i >= len(got) || got[i] != want[i] {
				t.Fatalf("%s: timestamps %v, want %v", name, got, want)
			}
		}
		stop := errors.New("stop")
		must.Fail(t, f.Changes(nil, func(change.Delta) error { return stop }), stop)
	}
}

func TestChangesAreCheckedAgainstTheSchema(t *testing.T) {
	data := corpustest.Read(t, filepath.Join("testdata", "golden", "redo-basic.delta"))
	f := must.Get(OpenFile(&block.Memory{Bytes: data}, cfile.ReaderOptions{}))(t)
	s := must.Get(schema.New([]schema.Column{{ID: 1, Name: "k", Type: schema.Int8},
		{ID: 11, Name: "v", Type: schema.Int64}}, 1))(t)
	must.Fail(t, f.Changes(s, func(change.Delta) error { return nil }), fault.ErrCorrupt, "4 bytes in a column of 8")
}
