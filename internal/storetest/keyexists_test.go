package storetest

import (
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/mvcc"
	"github.com/oribi-db/oribi/vfs"
)

// slowLog is a disk on which syncs of the log block until a gate opens.
type slowLog struct {
	*vfs.Mem
	shut atomic.Bool
	gate chan struct{}
}

type slowFile struct {
	vfs.File
	fs *slowLog
}

func (s *slowLog) Create(name string) (vfs.File, error) { return s.wrap(name)(s.Mem.Create(name)) }
func (s *slowLog) Open(name string, write bool) (vfs.File, error) {
	return s.wrap(name)(s.Mem.Open(name, write))
}

func (s *slowLog) wrap(name string) func(vfs.File, error) (vfs.File, error) {
	return func(f vfs.File, err error) (vfs.File, error) {
		if err != nil || !strings.HasSuffix(name, ".wal") {
			return f, err
		}
		return slowFile{f, s}, nil
	}
}

func (f slowFile) Sync() error {
	if f.fs.shut.Load() {
		<-f.fs.gate
	}
	return f.File.Sync()
}

// A batch that is refused because of a row of another batch returns when that batch is visible: a
// caller that gets ErrKeyExists finds the key.
func TestErrKeyExistsIsReturnedWhenTheRowIsVisible(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		disk := &slowLog{Mem: vfs.NewMem(), gate: make(chan struct{})}
		store := must.Get(oribi.Open("/slow",
			&oribi.Options{FS: disk, Clock: mvcc.NewLogicalClock(mvcc.First), Manual: true}))(t)
		defer store.Close()
		table := numbersTable(t, store, "t")
		disk.shut.Store(true)
		acknowledged, refused := make(chan error, 1), make(chan error, 1)
		insert := func() error {
			b := store.NewBatch()
			b.Insert(table, oribi.Row{"k": 1, "v": 1})
			_, err := b.Commit(t.Context())
			return err
		}
		go func() { acknowledged <- insert() }()
		synctest.Wait() // for the disk
		go func() {
			err := insert()
			if _, missing := table.Get(t.Context(), 1); missing != nil {
				t.Errorf("the insert says %v, and a read after it %v", err, missing)
			}
			refused <- err
		}()
		synctest.Wait()
		close(disk.gate)
		must.Do(t, <-acknowledged)
		must.Fail(t, <-refused, oribi.ErrKeyExists, "a second insert")
	})
}
