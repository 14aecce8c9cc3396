package blockmanager

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/internal/seedtest"
	"github.com/oribi-db/oribi/vfs"
	"github.com/oribi-db/oribi/vfs/crashfs"
)

// After a kill, a manifest or names in meta/ may be only in the kernel's page cache. They are made
// durable before Pebble removes files that they no longer refer to.
func TestManifestIsDurableBeforePebbleUsesIt(t *testing.T) {
	r := seedtest.Rand(t)
	o := testOptions(nil)
	disk := crashfs.New(formatted(t, o))
	var kills []*crashfs.Point
	disk.OnOperation(func(c crashfs.Operation) error {
		if c.Op == "sync" && strings.HasPrefix(filepath.Base(c.Name), "MANIFEST-") ||
			c.Op == "syncdir" && c.Name == o.metaDir() {
			kills = append(kills, c.Point())
		}
		return nil
	})
	o.FS = disk
	m := openWriter(t, o)
	for range 3 {
		add(t, m, randomBytes(r, 100))
		must.Do(t, m.meta.flush())
	}
	must.Do(t, m.Close())
	if len(kills) < 10 {
		t.Fatalf("%d kills", len(kills))
	}
	waiting, removed := 0, 0
	for i, kill := range kills {
		if !slices.Equal(metaOf(t, o, kill.Kill()), metaOf(t, o, kill.Cut())) {
			waiting++
		}
		next := kill.Resume()
		looked := false
		next.OnOperation(func(c crashfs.Operation) error {
			if filepath.Dir(c.Name) != o.metaDir() || c.Op != "remove" || filepath.Ext(c.Name) == ".dbtmp" || looked {
				return nil
			}
			looked = true
			removed++
			if got, want := metaOf(t, o, c.Point().Cut()), metaOf(t, o, c.Point().Kill()); !slices.Equal(got, want) {
				t.Errorf("kill %d, before %s of %s: durable is %q, Pebble saw %q", i, c.Op, c.Name, got, want)
			}
			return nil
		})
		o.FS = next
		must.Do(t, openWriter(t, o).Close())
	}
	if waiting == 0 || removed == 0 {
		t.Errorf("after %d kills not all was durable, after %d Pebble removed something: the test proves nothing",
			waiting, removed)
	}
}

// metaOf returns the names in meta/, with the content of manifests.
func metaOf(t *testing.T, o Options, m *vfs.Mem) (all []string) {
	names := must.Get(m.List(o.metaDir()))(t)
	for _, name := range names {
		if strings.HasPrefix(name, "MANIFEST-") {
			f, err := m.Open(filepath.Join(o.metaDir(), name), false)
			if err != nil {
				t.Error(err)
				continue
			}
			size, _ := f.Size()
			content := make([]byte, size)
			must.Do(t, must.Err(f.ReadAt(content, 0)))
			f.Close()
			name += string(content)
		}
		all = append(all, name)
	}
	return all
}
