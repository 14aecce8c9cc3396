package damage

import (
	"bytes"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/oribi-db/oribi/block"
	"github.com/oribi-db/oribi/blockmanager"
	"github.com/oribi-db/oribi/bloom"
	"github.com/oribi-db/oribi/cache"
	"github.com/oribi-db/oribi/change"
	"github.com/oribi-db/oribi/internal/meta"
	"github.com/oribi-db/oribi/internal/prooftest/files"
	"github.com/oribi-db/oribi/internal/prooftest/history"
	"github.com/oribi-db/oribi/internal/prooftest/model"
	"github.com/oribi-db/oribi/mvcc"
	"github.com/oribi-db/oribi/rowset"
	"github.com/oribi-db/oribi/schema"
	"github.com/oribi-db/oribi/vfs"
)

// bitBlocks flips bits inside blocks and reads them without reopening the store. It uses no cache.
type bitBlocks struct {
	m     *blockmanager.Manager
	image *vfs.Mem
	// by file and by each multiple of blockAlign within the block
	places map[string]map[int64]blockmanager.BlockLocation
	files  map[string]vfs.File
	sets   map[block.ID]*bitSet
}

// bitSet is a rowset with the expected results of its reads.
type bitSet struct {
	schema *schema.Schema
	row    *rowset.Metadata
	sum    [16]byte
	keys   [][]byte // encoded, by row
}

func openBitBlocks(b *Bits) (*bitBlocks, error) {
	image := b.d.image.Clone()
	instance, err := instanceOf(image)
	if err != nil {
		return nil, err
	}
	m, err := blockmanager.Open(blockmanager.Options{FS: image, Dir: history.Dir, Instance: instance, ReadOnly: true})
	if err != nil {
		return nil, err
	}
	bb := &bitBlocks{m: m, image: image, places: map[string]map[int64]blockmanager.BlockLocation{},
		files: map[string]vfs.File{}, sets: map[block.ID]*bitSet{}}
	if err := bb.load(); err != nil {
		bb.close()
		return nil, err
	}
	return bb, nil
}

func (bb *bitBlocks) close() {
	bb.m.Close()
	for _, f := range bb.files {
		f.Close()
	}
}

// instanceOf reads the store's identity from the header page of a container.
func instanceOf(image *vfs.Mem) (id [16]byte, err error) {
	const off = 20
	names, err := files.Files(image, filepath.Join(history.Dir, "data"))
	if err != nil {
		return id, err
	}
	if len(names) == 0 {
		return id, errors.New("the store has no container")
	}
	page, err := files.ReadFile(image, names[0])
	if err == nil {
		copy(id[:], page[off:])
	}
	return id, err
}

// load locates the blocks and reads all rowsets.
func (bb *bitBlocks) load() error {
	for _, p := range bb.m.BlockLocations() {
		at := bb.places[p.File]
		if at == nil {
			at = map[int64]blockmanager.BlockLocation{}
			bb.places[p.File] = at
			f, err := bb.image.Open(filepath.Join(history.Dir, filepath.FromSlash(p.File)), true)
			if err != nil {
				return err
			}
			bb.files[p.File] = f
		}
		for off := p.Offset; off < p.Offset+p.Length; off += blockAlign {
			at[off] = p
		}
	}
	var tables []*meta.Table
	err := bb.m.Rows(meta.TablePrefix(), func(_, value []byte) error {
		row, err := meta.DecodeTable(value)
		tables = append(tables, row)
		return err
	})
	if err != nil {
		return err
	}
	for _, t := range tables {
		err := bb.m.Rows(meta.RowSetPrefix(t.Number), func(_, value []byte) error {
			row, err := rowset.DecodeMetadata(value)
			if err != nil {
				return err
			}
			set := &bitSet{schema: t.Schema, row: row}
			if set.sum, set.keys, err = set.read(bb.m); err != nil {
				return err
			}
			for _, id := range row.Blocks(nil) {
				bb.sets[id] = set
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// at returns the block that contains a byte, including its padding.
func (bb *bitBlocks) at(f Flip) (id block.ID, used bool) {
	p, used := bb.places[f.File][f.Offset-f.Offset%blockAlign]
	return p.ID, used
}

// try flips a bit of a block or its padding, checks that it is found, and flips it back.
func (bb *bitBlocks) try(f Flip, id block.ID) (err error) {
	if err := bb.flip(f); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, bb.flip(f)) }()
	found := false
	err = bb.m.VerifyBlock(id, func(_ string, _ int64, at block.ID, _ string) { found = at == id })
	if err != nil {
		return err
	}
	if !found {
		return fmt.Errorf("VerifyBlock(%d) does not report it", id)
	}
	set := bb.sets[id]
	if set == nil {
		return fmt.Errorf("block %d belongs to no rowset", id)
	}
	switch id {
	case set.row.Bloom, set.row.KeyIndex:
		err = set.find(bb.m, nil)
	case set.row.KeyDirectory: // which is read if there is a cache
		err = set.find(bb.m, cache.New(1<<20))
	default:
		var sum [16]byte
		if sum, _, err = set.read(bb.m); err == nil && sum != set.sum {
			err = fmt.Errorf("%w: the rows of rowset %d", errWrong, set.row.ID)
		}
	}
	return damaged(err)
}

func (bb *bitBlocks) flip(f Flip) error {
	file := bb.files[f.File]
	var b [1]byte
	if _, err := file.ReadAt(b[:], f.Offset); err != nil {
		return err
	}
	b[0] ^= f.Mask
	_, err := file.WriteAt(b[:], f.Offset)
	return err
}

// plainBlocks adapts a manager to rowset.Blocks.
type plainBlocks struct{ m *blockmanager.Manager }

func (p plainBlocks) OpenBlock(id block.ID) (rowset.Block, error) { return p.m.OpenBlock(id) }

// read returns a hash of all rows with all their versions, and the keys.
func (s *bitSet) read(m *blockmanager.Manager) (sum [16]byte, keys [][]byte, err error) {
	set, err := rowset.Open(s.schema, s.row, rowset.Options{Blocks: plainBlocks{m}})
	if err != nil {
		return sum, nil, err
	}
	defer set.Unref()
	h, err := set.Histories(mvcc.Everything)
	if err != nil {
		return sum, nil, err
	}
	d := model.NewDigest()
	for {
		rows, err := h.Next()
		if err != nil {
			return sum, nil, err
		}
		if rows == nil {
			return d.Sum(), keys, nil
		}
		addHistories(d, rows)
		for _, k := range rows.Keys {
			keys = append(keys, bytes.Clone(k))
		}
	}
}

// addHistories adds rows with all their versions to a digest.
func addHistories(d *model.Digest, rows *change.Rows) {
	cells := make([][]byte, 1+len(rows.Batch.Columns))
	for i := range rows.Batch.Len {
		cells[0] = rows.Keys[i]
		for c, v := range rows.Batch.Columns {
			cells[1+c] = v.Cell(i)
		}
		d.Row(cells)
	}
	for _, list := range [][]change.Delta{rows.Undo, rows.Redo} {
		d.Number(uint64(len(list)))
		for i := range list {
			d.Number(uint64(list[i].Row))
			d.Number(uint64(list[i].TS))
			d.Row([][]byte{list[i].List})
		}
	}
}

// find looks up all keys through the bloom file and the key index, or, with a cache, the key
// directory.
func (s *bitSet) find(m *blockmanager.Manager, c *cache.Cache) error {
	set, err := rowset.Open(s.schema, s.row, rowset.Options{Blocks: plainBlocks{m}, Cache: c})
	if err != nil {
		return err
	}
	defer set.Unref()
	for i, key := range s.keys {
		at, found, err := set.Find(bloom.MakeProbe(key))
		if err != nil {
			return err
		}
		if !found || int(at) != i {
			return fmt.Errorf("%w: key %x of row %d: row %d, found: %v", errWrong, key, i, at, found)
		}
	}
	return nil
}
