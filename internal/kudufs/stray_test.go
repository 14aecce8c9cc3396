package kudufs

import (
	"encoding/binary"
	"errors"
	"io/fs"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/oribi-db/oribi/block"
	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/internal/kudupb"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/vfs"
)

// closedFS has one directory that may not be read.
type closedFS struct {
	vfs.FS
	dir string
}

func (c closedFS) List(dir string) ([]string, error) {
	if dir == c.dir {
		return nil, &fs.PathError{Op: "open", Path: dir, Err: fs.ErrPermission}
	}
	return c.FS.List(dir)
}

// Files that no server writes do not stop the reading of the server's files.
func TestStrayFilesAreNotRead(t *testing.T) {
	fsys := server(t, must.Hex(t, metadataFile), 8192)
	tablet := strings.Repeat("0a", 16)
	for _, name := range []string{".nfs0001", tablet, tablet + "0", strings.Repeat("xy", 16),
		tablet + temporary + ".1"} {
		must.Do(t, Replace(fsys, "/ts/tablet-meta/"+name, nil))
	}
	for _, dir := range []string{"/lost+found", "/ts/tablet-meta/lost+found", "/ts/data/lost+found"} {
		must.Do(t, fsys.Mkdir(dir))
	}
	d := must.Get(Open(closedFS{fsys, "/lost+found"}, "/"))(t)
	ids, others, err := d.Tablets()
	if len(ids) != 1 || ids[0] != tablet || len(others) != 4 || err != nil {
		t.Errorf("tablets %q, others %q, %v", ids, others, err)
	}
	must.Fail(t, must.Err(Open(closedFS{fsys, "/ts"}, "/")), fs.ErrPermission, "the only root may not be read")
}

// blockRecord returns a record of a container: the block with extent, or its deletion without one.
func blockRecord(id uint64, extent ...int64) proto.Message {
	m := &kudupb.BlockRecordPB{BlockId: &kudupb.BlockIdPB{Id: &id}, OpType: proto.Int32(blockDeleted),
		TimestampUs: proto.Uint64(1)}
	if len(extent) > 0 {
		*m.OpType, m.Offset, m.Length = blockCreated, &extent[0], &extent[1]
	}
	return m
}

// A data file that is not there, or not any more, is damage of its blocks, even of one without
// bytes.
func TestDataFilesThatAreMissing(t *testing.T) {
	fsys := server(t, AppendContainer(nil, "kudu.BlockRecordPB", blockRecord(1, 0, 4096), blockRecord(2, 4096, 0)),
		4096)
	d := open(t, fsys)
	must.Do(t, fsys.Remove("/ts/data/c.data"))
	must.Fail(t, must.Err(d.OpenBlock(1)), fault.ErrCorrupt, "file removed after Open")
	must.Fail(t, must.Err(open(t, fsys).OpenBlock(2)), fault.ErrCorrupt, "block without bytes and file")
	must.Fail(t, must.Err(d.Superblock("x")), fault.ErrCorrupt, "superblock without file")
}

// A container that deletes a block of another one is damaged, and the block is not.
func TestDeletionsOfOthersBlocks(t *testing.T) {
	fsys := server(t, AppendContainer(nil, "kudu.BlockRecordPB", blockRecord(1, 0, 4096)), 4096)
	for _, name := range []string{"a", "d"} { // before and after the container c
		must.Do(t, Replace(fsys, "/ts/data/"+name+".metadata",
			AppendContainer(nil, "kudu.BlockRecordPB", blockRecord(1))))
	}
	d := open(t, fsys)
	if b, err := d.OpenBlock(1); err != nil {
		t.Error(err)
	} else {
		b.Close()
	}
	must.Equal(t, len(d.Problems()), 2)
}

// A server may have as many data directories as a block's ID can name.
func TestManyDataDirectories(t *testing.T) {
	for n, want := range map[int]error{maxDirectories: nil, maxDirectories + 1: fault.ErrCorrupt} {
		fsys := server(t, must.Hex(t, metadataFile), 8192)
		set := &kudupb.DirSetPB{Uuid: binary.BigEndian.AppendUint32(nil, 7)}
		for i := range n {
			set.AllUuids = append(set.AllUuids, binary.BigEndian.AppendUint32(nil, uint32(i)))
		}
		m := &kudupb.DirInstanceMetadataPB{DirSet: set, DirType: proto.String("log"),
			FilesystemBlockSizeBytes: proto.Uint64(4096)}
		must.Do(t, Replace(fsys, "/ts/data/block_manager_instance", AppendContainer(nil, DataKind, m)))
		d, err := Open(fsys, "/ts")
		if !errors.Is(err, want) || err == nil && (len(d.MissingDirectories()) != n-1 || d.byDirectory[7] == nil) {
			t.Errorf("%d directories: %v", n, err)
		}
	}
}

// Of very many damaged blocks, the errors of some are kept, and all are refused.
func TestManyDamagedBlocks(t *testing.T) {
	var records []proto.Message
	for id := range uint64(maxProblems + 100) {
		records = append(records, blockRecord(id+1, 0, 4096))
	}
	d := open(t, server(t, AppendContainer(nil, "kudu.BlockRecordPB", records...), 4095))
	must.Equal(t, len(d.Problems()), maxProblems)
	for id, want := range map[block.ID]string{1: "bytes [0, 4096)", maxProblems + 100: "more than"} {
		if _, err := d.OpenBlock(id); !errors.Is(err, fault.ErrCorrupt) || !strings.Contains(err.Error(), want) {
			t.Errorf("block %d: %v", id, err)
		}
	}
}
