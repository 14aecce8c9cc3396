package kudufs

import (
	"bytes"
	"errors"
	"io"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"github.com/oribi-db/oribi/block"
	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/internal/fuzztest"
	"github.com/oribi-db/oribi/internal/kudupb"
	"github.com/oribi-db/oribi/internal/memtest"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/vfs"
)

// metadataFile is the .metadata of a container, from the specification: block 1 is created and
// deleted, block 2 has bytes [4096, 4196).
const metadataFile = `
	6b 75 64 75 63 6e 74 72 02 00 00 00 5f 08 2b b5
	16 00 00 00 88 e8 46 65 0a 00 12 12 6b 75 64 75 2e 42 6c 6f 63 6b 52 65 63 6f 72 64 50 42 18 42
	bf 5f
	1b 00 00 00 25 10 65 35 0a 09 09 01 00 00 00 00 00 00 00 10 01 18 80 80 f9 c0 c1 c4 82 03 20 00
	28 80 20 15 90 e4 d6
	1b 00 00 00 25 10 65 35 0a 09 09 02 00 00 00 00 00 00 00 10 01 18 81 80 f9 c0 c1 c4 82 03 20 80
	20 28 64 09 3e 46 d8
	16 00 00 00 88 e8 46 65 0a 09 09 01 00 00 00 00 00 00 00 10 02 18 82 80 f9 c0 c1 c4 82 03 f4 be
	79 dd`

// server makes a directory with one container and returns it.
func server(t testing.TB, metadata []byte, dataBytes int) *vfs.Mem {
	t.Helper()
	fsys := vfs.NewMem()
	for _, dir := range []string{"/ts", "/ts/data", "/ts/wals", "/ts/tablet-meta", "/ts/consensus-meta"} {
		must.Do(t, fsys.Mkdir(dir))
	}
	uuid := []byte("0123456789abcdef0123456789abcdef")
	instance := &kudupb.InstanceMetadataPB{Uuid: uuid, FormatStamp: proto.String("Formatted at 2026-11-23 on test")}
	data := &kudupb.DirInstanceMetadataPB{DirSet: &kudupb.DirSetPB{Uuid: uuid, AllUuids: [][]byte{uuid}},
		DirType:                  proto.String("log"),
		FilesystemBlockSizeBytes: proto.Uint64(4096)}
	for name, content := range map[string][]byte{
		"/ts/instance":                    AppendContainer(nil, InstanceKind, instance),
		"/ts/data/block_manager_instance": AppendContainer(nil, DataKind, data),
		"/ts/data/c.metadata":             metadata,
		"/ts/data/c.data":                 bytes.Repeat([]byte{7}, dataBytes),
	} {
		must.Do(t, Replace(fsys, name, content))
	}
	return fsys
}

func open(t testing.TB, fsys vfs.FS) *Directory {
	t.Helper()
	return must.Get(Open(fsys, "/ts"))(t)
}

func TestContainerFilesAreTheSpecifications(t *testing.T) {
	want := must.Hex(t, metadataFile)
	record := func(id uint64, op kudupb.BlockRecordType, us uint64, extent ...int64) proto.Message {
		m := &kudupb.BlockRecordPB{BlockId: &kudupb.BlockIdPB{Id: &id}, OpType: proto.Int32(int32(op)),
			TimestampUs: &us}
		if len(extent) > 0 {
			m.Offset, m.Length = &extent[0], &extent[1]
		}
		return m
	}
	const us = 1700000000000000
	got := AppendContainer(nil, "kudu.BlockRecordPB", record(1, kudupb.BlockRecordType_CREATE, us, 0, 4096),
		record(2, kudupb.BlockRecordType_CREATE, us+1, 4096, 100), record(1, kudupb.BlockRecordType_DELETE, us+2))
	must.Equal(t, got, want)
	d := open(t, server(t, want, 8192))
	if n, _, err := d.FindBlock(2); n != 100 || err != nil {
		t.Errorf("block 2 has %d bytes (%v)", n, err)
	}
	must.Fail(t, must.Err(d.OpenBlock(1)), fault.ErrCorrupt)
	if len(d.Problems()) > 0 {
		t.Errorf("problems: %v", d.Problems())
	}
	b := must.Get(d.OpenBlock(2))(t)
	must.Equal(t, len(must.Get(io.ReadAll(b))(t)), 100)
	must.Do(t, errors.Join(b.Close(), b.Close()))
}

// A cut at any byte loses the records after it and nothing else; without a cut at the end of a
// record it is repaired in silence, as Kudu does. Any changed bit of a record is found.
func TestDamagedContainersLoseOnlyWhatIsAfterTheDamage(t *testing.T) {
	whole := must.Hex(t, metadataFile)
	const first, second, deleted = 50, 89, 128 // offsets of the records
	for n := containerHeaderLen; n < len(whole); n++ {
		d := open(t, server(t, whole[:n], 8192))
		_, _, one := d.FindBlock(1)
		_, _, two := d.FindBlock(2)
		must.Equal(t, one == nil, n >= second, n, one, two)
		must.Equal(t, two == nil, n >= deleted, n, one, two)
		must.Equal(t, len(d.Problems()) == 0, n >= first, n)
	}
	for n := first; n < len(whole); n++ {
		changed := bytes.Clone(whole)
		changed[n] ^= 1
		if d := open(t, server(t, changed, 8192)); len(d.Problems()) == 0 {
			t.Errorf("byte %d changed: no problem", n)
		}
	}
}

// A block past the end of its data file is not readable; the others are.
func TestBlocksPastTheEndOfTheFileAreRefused(t *testing.T) {
	d := open(t, server(t, must.Hex(t, metadataFile), 4195))
	if _, err := d.OpenBlock(2); !errors.Is(err, fault.ErrCorrupt) || len(d.Problems()) != 1 ||
		d.Problems()[0].Block != 2 {
		t.Errorf("%v, problems %v", err, d.Problems())
	}
}

// The path is from the example in the blockmanager spec.
func TestPathsOfFileBlocks(t *testing.T) {
	d := &Directory{byDirectory: []*Root{nil, {Dir: "/r"}}}
	must.Equal(t, must.Get(d.blockPath(0x0001123456789abc))(t), "/r/data/12/34/56/0301490975054524")
	must.Fail(t, must.Err(d.blockPath(5)), fault.ErrCorrupt, "a block of a missing directory")
}

func TestEncryptedAndUnknownDirectoriesAreUnsupported(t *testing.T) {
	for _, kind := range []string{"logr", "new"} {
		fsys := server(t, must.Hex(t, metadataFile), 8192)
		data := &kudupb.DirInstanceMetadataPB{DirSet: &kudupb.DirSetPB{Uuid: []byte("u")}, DirType: &kind}
		must.Do(t, Replace(fsys, "/ts/data/block_manager_instance", AppendContainer(nil, DataKind, data)))
		must.Fail(t, must.Err(Open(fsys, "/ts")), fault.ErrUnsupported, kind)
	}
	fsys := server(t, must.Hex(t, metadataFile), 8192)
	instance := &kudupb.InstanceMetadataPB{Uuid: []byte("u"), FormatStamp: proto.String(""),
		ServerKey: proto.String("k")}
	must.Do(t, Replace(fsys, "/ts/instance", AppendContainer(nil, InstanceKind, instance)))
	must.Fail(t, must.Err(Open(fsys, "/ts")), fault.ErrUnsupported)
	must.Fail(t, must.Err(Open(fsys, "/nowhere")), fault.ErrNotStore)
}

// FuzzContainerMetadata gives records with valid checksums to the log block manager.
func FuzzContainerMetadata(f *testing.F) {
	f.Add(must.Hex(f, "0a 09 09 02 00 00 00 00 00 00 00 10 01 18 81 80 f9 c0 c1 c4 82 03 20 80 20 28 64"),
		[]byte{}, []byte("12"))
	fuzztest.Run(f, func(t *testing.T, first, second, pages []byte) {
		file := AppendRecord(AppendRecord(AppendContainer(nil, "kudu.BlockRecordPB"), first), second)
		d := open(t, server(t, file, len(pages)*4096))
		for id := range d.Blocks() {
			readBlock(t, d, id)
		}
	})
}

// readBlock reads a block that is listed, which must have all its bytes.
func readBlock(t *testing.T, d *Directory, id block.ID) {
	b := must.Get(d.OpenBlock(id))(t)
	defer b.Close()
	must.Equal(t, must.Get(io.Copy(io.Discard, b))(t), b.Size(), id)
}

// FuzzContainerFile gives any bytes to the reader of container files.
func FuzzContainerFile(f *testing.F) {
	f.Add(must.Hex(f, metadataFile))
	f.Add(append(must.Hex(f, metadataFile), make([]byte, 100)...))
	f.Add(append([]byte("kuducntr\x01\x00\x00\x00"),
		must.Hex(f, "16 00 00 00 0a 09 09 01 00 00 00 00 00 00 00 10 02 18 82 80 f9 c0 c1 c4 82 03 77 a4 48 03")...))
	fuzztest.Run(f, func(t *testing.T, file []byte) {
		r, err := NewContainerReader("file", bytes.NewReader(file), int64(len(file)))
		for err == nil {
			_, err = r.Next(maxBlockRecord)
		}
		if err != io.EOF && !errors.Is(err, fault.ErrCorrupt) && !errors.Is(err, fault.ErrUnsupported) {
			t.Error(err)
		}
	})
}

// FuzzSuperblock gives messages with valid checksums to the readers of superblocks and consensus
// metadata.
func FuzzSuperblock(f *testing.F) {
	f.Add([]byte{})
	f.Add(kudupb.EncodeRow(&kudupb.TabletSuperBlockPB{TableId: []byte("t"), TabletId: []byte("x"),
		LastDurableMrsId: proto.Int64(-1), TableName: proto.String("n"),
		Schema: &kudupb.SchemaPB{}, SchemaVersion: proto.Uint32(0), Partition: &kudupb.PartitionPB{}}))
	config := &kudupb.RaftConfigPB{Peers: []*kudupb.RaftPeerPB{{}}}
	f.Add(kudupb.EncodeRow(&kudupb.ConsensusMetadataPB{CommittedConfig: config, CurrentTerm: proto.Int64(1)}))
	fuzztest.Run(f, func(t *testing.T, message []byte) {
		fsys := server(t, must.Hex(t, metadataFile), 8192)
		file := AppendRecord(AppendContainer(nil, SuperblockKind), message)
		for _, name := range []string{"/ts/tablet-meta/x", "/ts/consensus-meta/x"} {
			must.Do(t, Replace(fsys, name, file))
		}
		d := open(t, fsys)
		if m, err := d.Superblock("x"); err == nil && string(m.TabletId) != "x" ||
			err != nil && !errors.Is(err, fault.ErrCorrupt) {
			t.Errorf("superblock: %v", err)
		}
		m, err := d.Consensus("x")
		if err != nil && !errors.Is(err, fault.ErrCorrupt) {
			t.Errorf("consensus metadata: %v", err)
		}
		Voters(m)
	})
}

// A superblock of empty messages is refused before they take memory, and so are other files.
func TestMemoryOfEmptyMessagesIsBounded(t *testing.T) {
	const size, tablet = 8 << 20, "00000000000000000000000000000001"
	fsys := server(t, must.Hex(t, metadataFile), 8192)
	d := open(t, fsys)
	file := func(name, kind string, message []byte) {
		t.Helper()
		must.Do(t, Replace(fsys, name, AppendRecord(AppendContainer(nil, kind), message)))
	}
	refused := func(what string, most int64, read func() error) {
		t.Helper()
		var err error
		if n := memtest.Allocated(func() { err = read() }); n > most {
			t.Errorf("%s: allocates %d bytes", what, n)
		}
		must.Fail(t, err, fault.ErrCorrupt, what)
	}
	file(d.SuperblockPath(tablet), SuperblockKind, bytes.Repeat([]byte{6<<3 | 2, 0}, size/2))
	refused("superblock", 2*size, func() error { _, err := d.Superblock(tablet); return err })
	peers := protowire.AppendBytes([]byte{1<<3 | 2}, bytes.Repeat([]byte{3<<3 | 2, 0}, maxConsensusBytes/4))
	file(d.ConsensusPath(tablet), ConsensusKind, peers)
	refused("consensus metadata", 2<<20, func() error { _, err := d.Consensus(tablet); return err })
	file("/ts/instance", InstanceKind, bytes.Repeat([]byte{6<<3 | 2, 0}, maxInstanceBytes/2))
	refused("instance", 2*maxInstanceBytes, func() error { _, err := Open(fsys, "/ts"); return err })
}
