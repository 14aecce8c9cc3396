package kudufs

import (
	"errors"
	"io"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"sort"
	"strings"

	"google.golang.org/protobuf/proto"

	"github.com/oribi-db/oribi/block"
	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/internal/kudupb"
)

// The log block manager stores blocks in containers, each a file <id>.data of bytes and a file
// <id>.metadata of records. The latter is a protobuf container file of BlockRecordPB, to which a
// server appends:
//
//	field         number  meaning
//	block_id      1       BlockIdPB: the ID, fixed64
//	op_type       2       1 the block was created, 2 it was deleted
//	timestamp_us  3       when, microseconds since 1970
//	offset        4       in the data file, bytes; of a created block only
//	length        5       bytes; of a created block only
//
// Block 2 is created at byte 4096, 100 bytes long:
//
//	0a 09 09 02 00 00 00 00 00 00 00 10 01 18 81 80 f9 c0 c1 c4 82 03 20 80 20 28 64
//
// A block begins at a multiple of the file system's block size. The bytes between blocks, and after
// the last block, are undefined. A block without bytes may share its offset with the next one. The
// space of a deleted block is never used again, so bytes that a block has had stay or become zeros.
// Source: blockmanager spec §4, §5.
const (
	dataSuffix     = ".data"     // file format: never change
	metadataSuffix = ".metadata" // file format: never change
	blockCreated   = int32(kudupb.BlockRecordType_CREATE)
	blockDeleted   = int32(kudupb.BlockRecordType_DELETE)
	maxBlockRecord = 1 << 16 // bytes; Kudu's have less than 50
)

// container is a data file with blocks.
type container struct {
	file
	size int64
}

// extent is where the bytes of a block are.
type extent struct {
	c              *container
	offset, length int64
}

// loadContainers reads the metadata of all containers of a data directory.
func (d *Directory) loadContainers(dir string) error {
	names, err := d.fs.List(dir)
	if err != nil {
		return err
	}
	stems := map[string]bool{}
	for _, name := range names {
		for _, suffix := range []string{dataSuffix, metadataSuffix} {
			if stem, ok := strings.CutSuffix(name, suffix); ok {
				stems[stem] = true
			}
		}
	}
	var sorted []string
	for stem := range stems {
		sorted = append(sorted, stem)
	}
	sort.Strings(sorted)
	for _, stem := range sorted {
		if err := d.loadContainer(filepath.Join(dir, stem)); err != nil {
			return err
		}
	}
	return nil
}

// sizeOf returns the size of a file, 0 if it is absent.
func (d *Directory) sizeOf(name string) (int64, error) {
	info, err := d.fs.Stat(name)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}

// loadContainer reads the metadata of one container. Damage is added to the problems of d, so that
// the other containers can be read. An error is an error of the file system. Source: blockmanager
// spec §5.2, §5.3.
func (d *Directory) loadContainer(stem string) error {
	meta, data := stem+metadataSuffix, stem+dataSuffix
	metaSize, err := d.sizeOf(meta)
	if err != nil {
		return err
	}
	size, err := d.sizeOf(data)
	if err != nil {
		return err
	}
	if metaSize < containerV1Len {
		if size > 0 {
			d.problem(meta, -1, 0, fault.Corruptf("%s: the container's records are missing; %s has %d bytes",
				meta, data, size))
		}
		return nil // a server ended while it created the container
	}
	c := &container{file: file{name: data}, size: size}
	live := map[block.ID]*extent{}
	at, err := d.replayContainer(meta, metaSize, c, live)
	for _, id := range slices.Sorted(maps.Keys(live)) {
		if other := d.blocks[id]; other != nil {
			d.badBlock(meta, -1, id, fault.Corruptf("%s: block %d is also in %s", meta, id, other.c.name))
			continue
		}
		d.blocks[id] = live[id]
	}
	switch {
	case err == nil:
		return nil
	case errors.Is(err, ErrIncomplete):
		return nil // a server ended while it appended a record; Kudu cuts it off
	case errors.Is(err, fault.ErrCorrupt), errors.Is(err, fault.ErrUnsupported):
		d.problem(meta, at, 0, err)
		return nil
	}
	return err
}

// replayContainer reads the records of a container into live: the blocks that it has at the end, or
// before the first record that cannot be read. at is the position of that record.
func (d *Directory) replayContainer(
	meta string, metaSize int64, c *container, live map[block.ID]*extent,
) (at int64, err error) {
	f, err := d.fs.Open(meta, false)
	if err != nil {
		return -1, err
	}
	defer f.Close() // read-only: the error does not matter
	r, err := NewContainerReader(meta, f, metaSize)
	if errors.Is(err, ErrIncomplete) && c.size > 0 {
		return 0, fault.Corruptf("%v", err)
	}
	if err != nil {
		return 0, err
	}
	var m kudupb.BlockRecordPB
	for {
		at = r.Offset()
		b, err := r.Next(maxBlockRecord)
		if err == io.EOF {
			return at, nil
		}
		if err != nil {
			return at, err
		}
		if err := proto.Unmarshal(b, &m); err != nil {
			return at, fault.Corruptf("%s: byte %d: %v", meta, at, err)
		}
		d.applyRecord(meta, at, &m, c, live)
	}
}

// applyRecord adds what a record says to live. A record that makes no sense makes its block
// unusable, except a deletion of a block that the container does not have: another one may have it.
func (d *Directory) applyRecord(
	meta string, at int64, m *kudupb.BlockRecordPB, c *container, live map[block.ID]*extent,
) {
	id := block.ID(m.GetBlockId().GetId())
	e := &extent{c: c, offset: m.GetOffset(), length: m.GetLength()}
	d.highest = max(d.highest, id)
	bad := func(problem string, args ...any) {
		d.badBlock(meta, at, id, fault.Corruptf("%s: byte %d: block %d: "+problem,
			append([]any{meta, at, uint64(id)}, args...)...))
	}
	switch _, have := live[id]; {
	case m.GetOpType() == blockDeleted && !have:
		d.problem(meta, at, id, fault.Corruptf("%s: byte %d: block %d: deleted, but the container does not have it",
			meta, at, uint64(id)))
	case m.GetOpType() == blockDeleted:
		delete(live, id)
	case m.GetOpType() != blockCreated:
		bad("record of kind %d", m.GetOpType())
	case have:
		bad("created twice")
	case id == 0 || m.Offset == nil || m.Length == nil || e.offset < 0 || e.length < 0:
		bad("offset %d, length %d", e.offset, e.length)
	case e.length > 0 && (e.offset > c.size || e.length > c.size-e.offset):
		bad("bytes [%d, %d) of %s, which has %d", e.offset, e.offset+e.length, c.name, c.size)
	default:
		live[id] = e
	}
}

// maxProblems bounds the list of problems: a damaged metadata file may have millions of wrong
// records, which must not fill the memory.
const maxProblems = 10_000

func (d *Directory) problem(file string, at int64, id block.ID, err error) {
	if len(d.problems) < maxProblems {
		d.problems = append(d.problems, Problem{File: file, Offset: at, Block: id, Err: err})
	}
}

// errManyProblems is the error of the blocks whose own errors are not kept.
var errManyProblems = fault.Corruptf("the block is one of more than %d that are damaged", maxProblems)

// badBlock records a problem that makes a block unusable.
func (d *Directory) badBlock(file string, at int64, id block.ID, err error) {
	if len(d.problems) >= maxProblems {
		err = errManyProblems
	}
	d.problem(file, at, id, err)
	d.bad[id] = err
}
