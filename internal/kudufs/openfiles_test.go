package kudufs

import (
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/oribi-db/oribi/block"
	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/internal/kudupb"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/vfs"
)

// countingFS counts the files that are open.
type countingFS struct {
	vfs.FS
	open atomic.Int64
	most atomic.Int64 // the largest value of open
}

func (c *countingFS) Open(name string, write bool) (vfs.File, error) {
	f, err := c.FS.Open(name, write)
	if err != nil {
		return nil, err
	}
	n := c.open.Add(1)
	for most := c.most.Load(); n > most && !c.most.CompareAndSwap(most, n); most = c.most.Load() {
	}
	return &countedFile{File: f, fs: c}, nil
}

type countedFile struct {
	vfs.File
	fs *countingFS
}

func (f *countedFile) Close() error {
	f.fs.open.Add(-1)
	return f.File.Close()
}

// manyContainers makes a directory with n containers of one block each, which contains its ID.
func manyContainers(t *testing.T, n int) (*countingFS, *Directory) {
	t.Helper()
	fsys := server(t, nil, 0)
	for id := uint64(1); id <= uint64(n); id++ {
		record := &kudupb.BlockRecordPB{BlockId: &kudupb.BlockIdPB{Id: &id}, OpType: proto.Int32(blockCreated),
			TimestampUs: proto.Uint64(1),
			Offset:      proto.Int64(4096), Length: proto.Int64(8)}
		stem := fmt.Sprintf("/ts/data/many%05d", id)
		err := Replace(fsys, stem+metadataSuffix, AppendContainer(nil, "kudu.BlockRecordPB", record))
		if err == nil {
			err = Replace(fsys, stem+dataSuffix, fmt.Appendf(make([]byte, 4096), "%08d", id))
		}
		must.Do(t, err)
	}
	counting := &countingFS{FS: fsys}
	d := open(t, counting)
	counting.most.Store(0)
	return counting, d
}

// All blocks of a directory with many containers are open and read by several goroutines, and few
// files are open meanwhile.
func TestFewContainersAreOpen(t *testing.T) {
	const containers, readers = 300, 4
	fsys, d := manyContainers(t, containers)
	d.files.most = 10
	var blocks []*Block
	for id := block.ID(1); id <= containers; id++ {
		b := must.Get(d.OpenBlock(id))(t)
		blocks = append(blocks, b)
	}
	var wait sync.WaitGroup
	for r := range readers {
		wait.Go(func() {
			for i := range 2 * len(blocks) {
				b := blocks[(i*(r+1)+r)%len(blocks)]
				var text [8]byte
				if _, err := b.ReadAt(text[:], 0); err != nil || string(text[:]) != fmt.Sprintf("%08d", b.ID()) {
					t.Errorf("block %d: %q (%v)", b.ID(), text, err)
				}
			}
		})
	}
	wait.Wait()
	if n := fsys.most.Load(); n > int64(d.files.most+readers) {
		t.Errorf("%d files were open", n)
	}
	for _, b := range blocks {
		must.Do(t, b.Close())
	}
	if n := fsys.open.Load(); n != 0 || d.files.recent.Len() != 0 {
		t.Errorf("%d files are open after their blocks were closed, %d are listed", n, d.files.recent.Len())
	}
}

// Blocks of one container share its file, and the last one closes it.
func TestBlocksOfContainerShareItsFile(t *testing.T) {
	fsys, d := manyContainers(t, 2)
	var blocks []*Block
	for range 3 {
		b := must.Get(d.OpenBlock(1))(t)
		blocks = append(blocks, b)
	}
	for i, b := range blocks {
		must.Equal(t, fsys.open.Load(), 1, i)
		must.Equal(t, must.Get(io.ReadAll(b))(t), []byte("00000001"))
		b.Close()
	}
	must.Equal(t, fsys.open.Load(), 0, "files are open after all blocks were closed")
}

// A file that is removed while it is closed, but has open blocks, is damage.
func TestContainerRemovedBetweenReadsIsCorrupt(t *testing.T) {
	fsys, d := manyContainers(t, 2)
	d.files.most = 1
	first := must.Get(d.OpenBlock(1))(t)
	defer first.Close()
	second := must.Get(d.OpenBlock(2))(t)
	defer second.Close()
	must.Do(t, fsys.Remove("/ts/data/many00001.data"))
	must.Fail(t, must.Err(io.ReadAll(first)), fault.ErrCorrupt)
}
