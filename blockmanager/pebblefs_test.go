package blockmanager

import (
	"errors"
	"testing"
	"testing/synctest"

	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/vfs"

	pvfs "github.com/cockroachdb/pebble/v2/vfs"
)

// slowFS is a file system whose Create waits.
type slowFS struct {
	vfs.FS
	create chan struct{}
}

func (f *slowFS) Create(name string) (vfs.File, error) {
	<-f.create
	return f.FS.Create(name)
}

// A call of an abandoned Pebble may be in progress. It must not change a directory that the caller
// has removed and made anew.
func TestAbandonedPebbleWritesNothingLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mem := vfs.NewMem()
		must.Do(t, mem.Mkdir("/meta"))
		slow := &slowFS{mem, make(chan struct{})}
		poison := newPoison()
		s := &metaStore{mode: metaWrite, fs: newPebbleFS(slow, false, poison), poison: poison}
		go s.fs.Create("/meta/000002.log", pvfs.WriteCategoryUnspecified)
		synctest.Wait()
		poison.set(errors.New("the disk failed"))
		closed := false
		go func() {
			s.close()
			closed = true
		}()
		synctest.Wait()
		must.Equal(t, closed, false, "closed while a file is being created")
		close(slow.create)
		synctest.Wait()
		if _, err := mem.Stat("/meta/000002.log"); err != nil || !closed {
			t.Errorf("closed: %t; the file: %v", closed, err)
		}
	})
}
