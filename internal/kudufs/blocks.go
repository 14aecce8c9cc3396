package kudufs

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"

	"github.com/oribi-db/oribi/block"
	"github.com/oribi-db/oribi/internal/fault"
)

// Block is the bytes of one block. It is safe for concurrent use until Close.
type Block struct {
	*io.SectionReader
	id    block.ID
	files *openFiles
	file  *file
	done  sync.Once
}

// ID returns the number of the block.
func (b *Block) ID() block.ID { return b.id }

// Close ends the use of the block. It may be called twice, and not during a read.
func (b *Block) Close() (err error) {
	b.done.Do(func() { err = b.files.release(b.file) })
	return err
}

// newBlock returns the block in [offset, offset+length) of a file, which ends the use of the file
// when it is closed.
func (d *Directory) newBlock(id block.ID, f *file, offset, length int64) *Block {
	return &Block{SectionReader: io.NewSectionReader(fileReader{d.files, f}, offset, length), id: id,
		files: d.files, file: f}
}

// OpenBlock opens a block. Errors: ErrCorrupt if there is no such block, or its container is
// damaged; errors of the file system.
func (d *Directory) OpenBlock(id block.ID) (*Block, error) {
	if d.Manager == fileBlocks {
		return d.openFileBlock(id)
	}
	e, err := d.find(id)
	if err != nil {
		return nil, err
	}
	if _, err := d.files.use(&e.c.file); err != nil {
		return nil, missing(e.c.name, err)
	}
	return d.newBlock(id, &e.c.file, e.offset, e.length), nil
}

// find returns where a block of the log block manager is. Errors: ErrCorrupt.
func (d *Directory) find(id block.ID) (*extent, error) {
	if err := d.bad[id]; err != nil {
		return nil, err
	}
	if e := d.blocks[id]; e != nil {
		return e, nil
	}
	return nil, d.lost(id)
}

// lost returns the error of a block that is not there. It wraps the first damage found in the
// metadata of the containers, if they are damaged, since the block may be in the damaged part.
func (d *Directory) lost(id block.ID) error {
	switch {
	case len(d.missing) > 0:
		return fault.Corruptf("block %d is missing; so is data directory %s", uint64(id), d.missing[0])
	case len(d.problems) > 0:
		return fmt.Errorf("block %d is missing: %w", uint64(id), d.problems[0].Err)
	}
	return fault.Corruptf("block %d is missing", uint64(id))
}

// FindBlock returns the size of a block and the file that has its bytes. Errors: as OpenBlock.
func (d *Directory) FindBlock(id block.ID) (bytes int64, file string, err error) {
	if d.Manager == fileBlocks {
		name, err := d.blockPath(id)
		if err != nil {
			return 0, "", err
		}
		info, err := d.fs.Stat(name)
		if errors.Is(err, fs.ErrNotExist) {
			err = d.lost(id)
		}
		if err != nil {
			return 0, name, err
		}
		return info.Size(), name, nil
	}
	e, err := d.find(id)
	if err != nil {
		return 0, "", err
	}
	return e.length, e.c.name, nil
}

// Blocks returns the IDs of all blocks that can be opened, in no order.
func (d *Directory) Blocks() iter.Seq2[block.ID, error] {
	if d.Manager == fileBlocks {
		return d.walkFileBlocks
	}
	return func(yield func(block.ID, error) bool) {
		for id := range maps.Keys(d.blocks) {
			if d.bad[id] == nil && !yield(id, nil) {
				return
			}
		}
	}
}

// The file block manager stores each block in a file of its own. The ID has the number of the data
// directory, in the order of the instance files, in its highest 16 bits; the next three bytes name
// directories:
//
//	block 0x0001123456789abc: directory 1, data/12/34/56/0301490975054524
//
// The file's name is the ID in decimal, with at least 16 digits. Source: blockmanager spec §3.
const (
	directoryShift = 48 // file format: never change
	levels         = 3  // file format: never change
	idDigits       = 16 // file format: never change
)

// blockPath returns the path of a block's file. Errors: ErrCorrupt if its directory is missing.
func (d *Directory) blockPath(id block.ID) (string, error) {
	n := int(id >> directoryShift)
	if n >= len(d.byDirectory) || d.byDirectory[n] == nil {
		return "", fault.Corruptf("block %d is in data directory %d, which is missing", uint64(id), n)
	}
	path := filepath.Join(d.byDirectory[n].Dir, dataName)
	for i := range levels {
		path = filepath.Join(path, fmt.Sprintf("%02x", byte(id>>(directoryShift-8*(i+1)))))
	}
	return filepath.Join(path, fmt.Sprintf("%0*d", idDigits, uint64(id))), nil
}

func (d *Directory) openFileBlock(id block.ID) (*Block, error) {
	name, err := d.blockPath(id)
	if err != nil {
		return nil, err
	}
	f := &file{name: name}
	size, err := d.files.use(f)
	if errors.Is(err, os.ErrNotExist) {
		return nil, d.lost(id)
	}
	if err != nil {
		return nil, err
	}
	return d.newBlock(id, f, 0, size), nil
}

// walkFileBlocks calls yield for each block of the file block manager. Other files are ignored.
func (d *Directory) walkFileBlocks(yield func(block.ID, error) bool) {
	var walk func(dir string, level int) bool
	walk = func(dir string, level int) bool {
		names, err := d.fs.List(dir)
		if err != nil {
			return yield(0, err)
		}
		for _, name := range names {
			path := filepath.Join(dir, name)
			if level < levels {
				if ok, err := d.isDir(path); err != nil {
					return yield(0, err)
				} else if ok && len(name) == 2 && !walk(path, level+1) {
					return false
				}
				continue
			}
			n, err := strconv.ParseUint(name, 10, 64)
			if err != nil {
				continue
			}
			if want, err := d.blockPath(block.ID(n)); err == nil && want == path && !yield(block.ID(n), nil) {
				return false
			}
		}
		return true
	}
	for _, r := range slices.Compact(slices.Clone(d.byDirectory)) {
		if r != nil && !walk(filepath.Join(r.Dir, dataName), 0) {
			return
		}
	}
}
