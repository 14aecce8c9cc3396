package kudufs

import (
	"errors"
	"fmt"
	"io"
	"math"
	"path/filepath"
	"slices"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/oribi-db/oribi/block"
	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/internal/kudupb"
	"github.com/oribi-db/oribi/vfs"
)

// RecordKind is the name of the message type of a container's records.
const RecordKind = "kudu.BlockRecordPB" // file format: never change

// maxContainerBytes is the size from which a container gets no further block, as a server's flag
// says.
const maxContainerBytes = 10 << 30

// Writer adds blocks to the data directories of a stopped server. None is part of the directory
// before Commit. Not safe for concurrent use.
type Writer struct {
	d    *Directory
	dirs []int // numbers of the directories to use, in d.byDirectory
	at   int   // in dirs
	last block.ID

	open  map[int]*newContainer // by directory; those that get blocks
	made  []*newContainer
	files []string // of blocks, as the file block manager makes them
}

// newContainer is a container that a Writer makes.
type newContainer struct {
	stem    string
	file    writable
	end     int64 // of the last block, aligned
	align   int64
	records []proto.Message
}

type writable interface {
	io.WriterAt
	Sync() error
	io.Closer
}

// NewWriter returns a Writer whose blocks have IDs above the IDs of all blocks that the directory
// has had, as far as containers and superblocks name them. group has the UUIDs of the data
// directories to use; if group is empty, all are used. Errors: ErrCorrupt if the directory has
// damage of its blocks or superblocks, or lacks a data directory; errors of the file system.
func (d *Directory) NewWriter(group [][]byte) (*Writer, error) {
	if len(d.problems) > 0 {
		return nil, d.problems[0].Err
	}
	if len(d.missing) > 0 {
		return nil, fault.Corruptf("data directory %s is missing", d.missing[0])
	}
	w := &Writer{d: d, open: map[int]*newContainer{}}
	for i, r := range d.byDirectory {
		if len(group) == 0 || slices.ContainsFunc(group, func(id []byte) bool {
			return string(id) == string(r.Data.DirSet.Uuid)
		}) {
			w.dirs = append(w.dirs, i)
		}
	}
	if len(w.dirs) == 0 {
		return nil, fault.Corruptf("the tablet's data directories %q are missing", group)
	}
	return w, w.findLast()
}

// findLast sets the highest ID in use. The file block manager has another meaning of the highest
// bits, which name the directory.
func (w *Writer) findLast() error {
	note := func(id block.ID) {
		if w.d.Manager == fileBlocks {
			id &= 1<<directoryShift - 1
		}
		w.last = max(w.last, id)
	}
	note(w.d.highest)
	for id, err := range w.d.Blocks() {
		if err != nil {
			return err
		}
		note(id)
	}
	tablets, _, err := w.d.Tablets()
	if err != nil {
		return err
	}
	for _, id := range tablets {
		m, err := w.d.Superblock(id)
		if err != nil {
			return err
		}
		for _, r := range m.Rowsets {
			for _, id := range BlocksOf(r) {
				note(id)
			}
		}
		for _, b := range m.OrphanedBlocks {
			note(block.ID(b.GetId()))
		}
	}
	return nil
}

// BlocksOf returns the blocks of a rowset.
func BlocksOf(r *kudupb.RowSetDataPB) (ids []block.ID) {
	add := func(b *kudupb.BlockIdPB) {
		if b != nil {
			ids = append(ids, block.ID(b.GetId()))
		}
	}
	for _, c := range r.Columns {
		add(c.Block)
	}
	add(r.BloomBlock)
	add(r.AdhocIndexBlock)
	for _, list := range [2][]*kudupb.DeltaDataPB{r.RedoDeltas, r.UndoDeltas} {
		for _, b := range list {
			add(b.Block)
		}
	}
	return ids
}

// NextDirectory has the blocks that follow go to the next data directory.
func (w *Writer) NextDirectory() { w.at = (w.at + 1) % len(w.dirs) }

// Copy adds a block with the bytes of src, which are not yet durable.
func (w *Writer) Copy(src io.ReaderAt, size int64) (block.ID, error) {
	limit := block.ID(math.MaxUint64)
	if w.d.Manager == fileBlocks {
		limit = 1<<directoryShift - 1
	}
	if w.last >= limit {
		return 0, errors.New("the directory has the highest block ID that there is: no block can be added")
	}
	w.last++
	if w.d.Manager == fileBlocks {
		return w.copyToFile(src, size)
	}
	c, err := w.container()
	if err != nil {
		return 0, err
	}
	if err := copyAt(c.file, c.end, src, size); err != nil {
		return 0, err
	}
	c.records = append(c.records, &kudupb.BlockRecordPB{BlockId: &kudupb.BlockIdPB{Id: proto.Uint64(uint64(w.last))},
		OpType:      proto.Int32(blockCreated),
		TimestampUs: proto.Uint64(uint64(time.Now().UnixMicro())), Offset: proto.Int64(c.end),
		Length: proto.Int64(size)})
	c.end += (size + c.align - 1) / c.align * c.align
	return w.last, nil
}

// copyAt writes the size bytes of src at off.
func copyAt(dst io.WriterAt, off int64, src io.ReaderAt, size int64) error {
	n, err := io.Copy(io.NewOffsetWriter(dst, off), io.NewSectionReader(src, 0, size))
	if err == nil && n < size {
		err = io.ErrUnexpectedEOF
	}
	return err
}

// container returns the container for the next block. A server that finds data without records does
// not start, so the records are durable, with none yet, before there are data: a crash leaves an
// empty container, or one with bytes that no record names.
func (w *Writer) container() (*newContainer, error) {
	dir := w.dirs[w.at]
	if c := w.open[dir]; c != nil && c.end < maxContainerBytes {
		return c, nil
	}
	r := w.d.byDirectory[dir]
	data := filepath.Join(r.Dir, dataName)
	c := &newContainer{stem: filepath.Join(data, NewID()), align: int64(max(r.Data.GetFilesystemBlockSizeBytes(), 1))}
	if err := Replace(w.d.fs, c.stem+metadataSuffix, AppendContainer(nil, RecordKind)); err != nil {
		return nil, err
	}
	w.made = append(w.made, c)
	f, err := w.d.fs.Create(c.stem + dataSuffix)
	if err != nil {
		return nil, err
	}
	c.file = f
	w.open[dir] = c
	return c, w.d.fs.SyncDir(data)
}

// copyToFile adds a block as the file block manager does.
func (w *Writer) copyToFile(src io.ReaderAt, size int64) (block.ID, error) {
	dir := w.dirs[w.at]
	id := block.ID(dir)<<directoryShift | w.last
	name, err := w.d.blockPath(id)
	if err != nil {
		return 0, err
	}
	if err := w.makeParents(filepath.Dir(name), levels); err != nil {
		return 0, err
	}
	f, err := w.d.fs.Create(name)
	if err != nil {
		return 0, err
	}
	w.files = append(w.files, name)
	if err = copyAt(f, 0, src, size); err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return 0, err
	}
	return id, w.d.fs.SyncDir(filepath.Dir(name))
}

// makeParents makes a directory and those above it, up to n of them, and makes their names durable.
func (w *Writer) makeParents(dir string, n int) error {
	if ok, err := w.d.isDir(dir); ok || err != nil || n == 0 {
		return err
	}
	if err := w.makeParents(filepath.Dir(dir), n-1); err != nil {
		return err
	}
	if err := w.d.fs.Mkdir(dir); err != nil {
		return err
	}
	return w.d.fs.SyncDir(filepath.Dir(dir))
}

// Commit makes all blocks durable and part of the directory. The records of a container are
// replaced as a whole, so that a crash leaves none of them torn.
func (w *Writer) Commit() error {
	for _, c := range w.made {
		if err := c.file.Sync(); err != nil {
			return err
		}
		if err := Replace(w.d.fs, c.stem+metadataSuffix, AppendContainer(nil, RecordKind, c.records...)); err != nil {
			return err
		}
	}
	return w.close()
}

func (w *Writer) close() (err error) {
	for _, c := range w.made {
		if c.file != nil {
			err = errors.Join(err, c.file.Close())
			c.file = nil
		}
	}
	return err
}

// Abort removes all blocks, which nothing may refer to. A crash in it leaves what a server accepts.
func (w *Writer) Abort() error {
	err := w.close()
	for _, c := range w.made {
		// In this order there never are data without records, nor records without data.
		err = errors.Join(err, Replace(w.d.fs, c.stem+metadataSuffix, AppendContainer(nil, RecordKind)),
			vfs.RemoveAll(w.d.fs, c.stem+dataSuffix), vfs.RemoveAll(w.d.fs, c.stem+metadataSuffix))
	}
	for _, name := range w.files {
		err = errors.Join(err, vfs.RemoveAll(w.d.fs, name))
	}
	if err != nil {
		return fmt.Errorf("blocks that nothing refers to may remain: %w", err)
	}
	return nil
}

// ReplaceSuperblock makes m the superblock of a tablet, atomically and durably. The description of
// the messages that the file begins with stays.
func (d *Directory) ReplaceSuperblock(tablet string, m *kudupb.TabletSuperBlockPB) error {
	name := d.SuperblockPath(tablet)
	head, err := d.description(name)
	if err != nil {
		return err
	}
	if head == nil {
		return Replace(d.fs, name, AppendContainer(nil, SuperblockKind, m))
	}
	return Replace(d.fs, name, AppendRecord(head, kudupb.EncodeRow(m)))
}

// description returns the header of a container file and the description of its records; nil if the
// version is another one.
func (d *Directory) description(name string) ([]byte, error) {
	f, err := d.fs.Open(name, false)
	if err != nil {
		return nil, err
	}
	defer f.Close() // read-only: the error does not matter
	size, err := f.Size()
	if err != nil {
		return nil, err
	}
	c, err := NewContainerReader(name, f, size)
	if err != nil || c.version != containerVersion {
		return nil, err
	}
	head := make([]byte, c.Offset())
	_, err = f.ReadAt(head, 0)
	return head, err
}

// CreateTablet adds a tablet to a server that does not run: consensus metadata with this server as
// the only voter, a log without operations in segment, and, last, the superblock: a crash before
// the superblock leaves files that no tablet refers to. Errors: errors of the file system.
func (d *Directory) CreateTablet(m *kudupb.TabletSuperBlockPB, segmentName string, segment []byte) error {
	id := string(m.TabletId)
	logs, _ := d.LogDirs(id)
	if err := d.fs.Mkdir(logs); err != nil {
		return err
	}
	if err := d.fs.SyncDir(filepath.Dir(logs)); err != nil {
		return err
	}
	if err := Replace(d.fs, filepath.Join(logs, segmentName), segment); err != nil {
		return err
	}
	voter := int32(kudupb.RaftMemberType_VOTER)
	consensus := &kudupb.ConsensusMetadataPB{CurrentTerm: proto.Int64(0),
		CommittedConfig: &kudupb.RaftConfigPB{OpidIndex: proto.Int64(-1),
			Peers: []*kudupb.RaftPeerPB{{PermanentUuid: []byte(d.UUID), MemberType: &voter,
				LastKnownAddr: &kudupb.HostPortPB{Host: proto.String("127.0.0.1"), Port: proto.Uint32(7050)}}}}}
	if err := Replace(d.fs, d.ConsensusPath(id), AppendContainer(nil, ConsensusKind, consensus)); err != nil {
		return err
	}
	return Replace(d.fs, d.SuperblockPath(id), AppendContainer(nil, SuperblockKind, m))
}
