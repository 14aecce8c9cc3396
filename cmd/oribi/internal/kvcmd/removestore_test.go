package kvcmd

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/kv"
)

// A load that fails removes the store that it has made, but no file that was put there since.
func TestRemovedStoreLeavesOtherFiles(t *testing.T) {
	for name, c := range map[string]struct {
		others []string // files put into the directory
		itself bool     // the directory is to be removed too
		want   []string // what is left, directories too
	}{
		"none, with the directory":    {nil, true, nil},
		"none, without the directory": {nil, false, []string{"."}},
		"next to the store":           {[]string{"mine"}, true, []string{".", "mine"}},
		"in a directory": {[]string{"data/mine/a", "b/c"}, true,
			[]string{".", "b", "b/c", "data", "data/mine", "data/mine/a"}},
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "store")
			db := must.Get(kv.Open(dir, nil))(t)
			for _, other := range c.others {
				file := filepath.Join(dir, filepath.FromSlash(other))
				must.Do(t, errors.Join(os.MkdirAll(filepath.Dir(file), 0o755),
					os.WriteFile(file, []byte("mine"), 0o644)))
			}
			must.Do(t, removeStore(db.Store(), dir, c.itself))
			db.Close() // fails, since there is no LOCK
			var left []string
			must.Do(t, filepath.WalkDir(dir, func(file string, _ fs.DirEntry, err error) error {
				if errors.Is(err, fs.ErrNotExist) {
					return nil
				}
				in, _ := filepath.Rel(dir, file)
				left = append(left, filepath.ToSlash(in))
				return err
			}))
			must.Equal(t, left, c.want)
		})
	}
}
