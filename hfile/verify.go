package hfile

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"slices"
	"unicode/utf8"

	"github.com/oribi-db/oribi/internal/fault"
)

// Verify reads the whole file and checks it: every block with its checksums, all levels of the
// index, the order of keys, counts, and everything else that follows from the entries, such as file
// info and Bloom filters. It returns the first problem, in the order of the file.
//
// In a file with checksums of type NULL, as Hudi's writer makes them, a changed value cannot be
// found. Errors: ErrCorrupt, ErrUnsupported, errors of the source, ctx.Err().
func (r *Reader) Verify(ctx context.Context) error {
	v := verifier{r: r, ctx: ctx}
	if err := v.blooms(); err != nil {
		return err
	}
	if err := v.index(); err != nil {
		return err
	}
	if err := v.metaIndex(); err != nil {
		return err
	}
	if err := v.entries(); err != nil {
		return err
	}
	if err := v.counts(); err != nil {
		return err
	}
	return v.info()
}

// verifier checks one file.
type verifier struct {
	r   *Reader
	ctx context.Context

	at  int64 // up to where blocks have been checked
	b   loadedBlock
	buf blockBuffer

	indexBlocks int // blocks of the index below the root, by the index
	indexSeen   int // the same, in the file
	metaSeen    int // meta blocks in the file
	chunks      int // of Bloom filters, by their metadata
	chunksSeen  int // the same, in the file

	general, deletes *bloomVerifier // nil if the file lacks the filter
	hudi             *HudiBloom

	cells    int64
	first    indexEntry // of the first data block
	last     indexEntry // of the last data block
	lastKey  Key        // of the last cell, with memory of its own
	rows     int        // of the row index of the current block, so far
	sequence int64      // the largest
}

// blooms checks the Bloom filters with all their chunks.
func (v *verifier) blooms() error {
	check := func(f *BloomFilter, err error) (*bloomVerifier, error) {
		if f == nil || err != nil {
			return nil, err
		}
		v.chunks += len(f.chunks)
		if err := f.Check(); err != nil {
			return nil, err
		}
		return newBloomVerifier(f), v.ctx.Err()
	}
	var err error
	if v.general, err = check(v.r.Bloom()); err != nil {
		return err
	}
	if v.deletes, err = check(v.r.DeleteFamilyBloom()); err != nil {
		return err
	}
	v.hudi, err = v.r.HudiBloom()
	return err
}

// inBlooms checks that the Bloom filters do not exclude a cell.
func (v *verifier) inBlooms(k Key) error {
	if v.general != nil && v.general.f.info.Kind != BloomNone {
		if err := v.general.check(k); err != nil {
			return err
		}
	}
	if v.deletes != nil && (k.Type == DeleteFamily || k.Type == DeleteFamilyVersion) {
		if err := v.deletes.check(k); err != nil {
			return err
		}
	}
	if v.hudi != nil && utf8.Valid(k.Row) && !v.hudi.MayContain(k.Row) {
		return fault.Corruptf("hfile: Hudi's Bloom filter excludes key %.100q, which is in the file", k.Row)
	}
	return nil
}

// index checks that the keys of the index ascend, through all its levels.
func (v *verifier) index() error {
	var last []byte
	for e, err := range v.r.IndexEntries() {
		if err != nil {
			return err
		}
		if last != nil && v.compareIndexKeys(last, e.Key) > 0 {
			return v.r.at(e.Offset, fault.Corruptf("index: its key is before the previous entry's key"))
		}
		last = append(last[:0], e.Key...)
		if e.Depth < v.r.trailer.IndexLevels-1 {
			v.indexBlocks++
		}
	}
	if _, err := v.r.MidKey(); err != nil {
		return err
	}
	return v.ctx.Err()
}

// compareIndexKeys compares two keys of the index, which are well-formed.
func (v *verifier) compareIndexKeys(a, b []byte) int {
	x, _ := parseIndexKey(a)
	y, _ := parseIndexKey(b)
	return v.compare(x, y)
}

// compare compares two keys as the file orders them.
func (v *verifier) compare(a, b Key) int {
	if v.r.Hudi() {
		return bytes.Compare(a.Row, b.Row)
	}
	return a.Compare(b)
}

// metaIndex checks that names are unique and that the index names meta blocks.
func (v *verifier) metaIndex() error {
	for i := range v.r.meta {
		e := v.r.metaAt(i)
		if i > 0 && bytes.Equal(v.r.metaAt(i-1).key, e.key) {
			return v.r.at(e.offset, fault.Corruptf("meta index: %.200q occurs twice", e.key))
		}
		h, err := v.r.headerAt(e.offset)
		if err != nil {
			return err
		}
		if h.magic != magicMeta || h.size != int(e.size) {
			return v.r.at(e.offset, fault.Corruptf("meta index: type %q and %d bytes, want %q and %d",
				h.magic, h.size, magicMeta, e.size))
		}
	}
	return v.ctx.Err()
}

// entries checks all cells, and all blocks in the order of the file.
func (v *verifier) entries() error {
	c := v.r.NewCursor(CursorOptions{})
	for ok := c.First(); ok; ok = c.Next() {
		if c.w.at == c.w.start {
			if err := v.block(c); err != nil {
				return err
			}
		}
		if err := v.cell(c); err != nil {
			return err
		}
	}
	if c.err != nil {
		return c.err
	}
	return v.blocksUpTo(v.r.end)
}

// block checks the blocks between the previous data block and c's block, and the key of c's block
// in the index.
func (v *verifier) block(c *Cursor) error {
	if err := v.ctx.Err(); err != nil {
		return err
	}
	e := c.leaf()
	if err := v.blocksUpTo(e.offset); err != nil {
		return err
	}
	v.at += int64(e.size)
	if v.cells == 0 {
		v.first = e
	}
	v.last = e
	key, _ := parseIndexKey(e.key)
	if v.compare(key, c.w.currentKey()) > 0 {
		return v.r.at(e.offset, fault.Corruptf("index: its key is after the first cell"))
	}
	if v.cells > 0 && v.compare(v.lastKey, key) > 0 {
		return v.r.at(e.offset, fault.Corruptf("index: its key is before the last cell of the block before"))
	}
	return nil
}

// blocksUpTo checks the blocks up to an offset, none of which is a data block that the index names.
func (v *verifier) blocksUpTo(end int64) error {
	for v.at < end {
		if err := v.ctx.Err(); err != nil {
			return err
		}
		h, err := v.r.headerAt(v.at)
		if err != nil {
			return err
		}
		if err := v.r.loadInto(&v.b, &v.buf, v.at, int32(h.size), h.magic); err != nil {
			return err
		}
		if err := v.other(h.magic); err != nil {
			return v.r.at(v.at, err)
		}
		v.at += int64(h.size)
	}
	if v.at != end {
		return v.r.at(end, fault.Corruptf("the block before it ends at byte %d", v.at))
	}
	return nil
}

// other counts a block that is no data block and checks that it is in its section of the file.
// Source: hfile spec §1.
func (v *verifier) other(magic string) error {
	onOpen := v.at >= v.r.trailer.LoadOnOpenOffset
	switch magic {
	case magicLeafIndex, magicInnerIndex:
		v.indexSeen++
	case magicMeta:
		v.metaSeen++
	case magicBloomChunk:
		v.chunksSeen++
	case magicRootIndex, magicFileInfo, magicBloomMeta, magicDeleteFamily:
		if onOpen {
			return nil
		}
		return fault.Corruptf("type %q before the root index", magic)
	default:
		return fault.Corruptf("type %q, which the index does not name", magic)
	}
	if onOpen {
		return fault.Corruptf("type %q after the root index", magic)
	}
	return nil
}

// cell checks the current cell of c against the one before.
func (v *verifier) cell(c *Cursor) error {
	w := &c.w
	key := w.currentKey()
	if v.cells > 0 && v.compare(v.lastKey, key) > 0 {
		return v.cellError(c, "its key is before the previous cell's key")
	}
	if v.cells > 0 && !bytes.Equal(v.lastKey.Family, key.Family) {
		return v.cellError(c, "another family than in the cell before it: HBase does not sort by family")
	}
	if w.layout.tags && !checkTags(w.current().Tags) {
		return v.cellError(c, "malformed tags")
	}
	if w.layout.encoding == EncodingRowIndexV1 {
		if err := v.rowIndex(c, key); err != nil {
			return err
		}
	}
	if err := v.inBlooms(key); err != nil {
		return err
	}
	v.cells++
	v.sequence = max(v.sequence, w.sequence)
	v.lastKey.Row = append(v.lastKey.Row[:0], key.Row...)
	v.lastKey.Family = append(v.lastKey.Family[:0], key.Family...)
	v.lastKey.Qualifier = append(v.lastKey.Qualifier[:0], key.Qualifier...)
	v.lastKey.Timestamp, v.lastKey.Type = key.Timestamp, key.Type
	return nil
}

func (v *verifier) cellError(c *Cursor, problem string) error {
	return v.r.at(c.block.offset, fault.Corruptf("cell at byte %d: %s", c.w.at, problem))
}

// rowIndex checks that the row index has the current cell if, and only if, it is the first of its
// row in the block.
func (v *verifier) rowIndex(c *Cursor, key Key) error {
	w := &c.w
	if w.at == w.start {
		v.rows = 0
	} else if bytes.Equal(v.lastKey.Row, key.Row) {
		return nil
	}
	if v.rows >= w.rows() || int(w.rowOffset(v.rows)) != w.at-w.start {
		return v.cellError(c, "the row index does not have the first cell of this row")
	}
	if v.rows++; v.rows < w.rows() && int(w.rowOffset(v.rows)) <= w.at-w.start {
		return v.cellError(c, "the row index has this row twice")
	}
	return nil
}

// counts checks the trailer against what was found.
func (v *verifier) counts() error {
	t := v.r.trailer
	problem := func(format string, args ...any) error {
		return fmt.Errorf("hfile: trailer at byte %d: %w", v.r.end, fault.Corruptf(format, args...))
	}
	switch {
	case v.cells != t.EntryCount:
		return problem("%d entries, the file has %d", t.EntryCount, v.cells)
	case v.indexSeen != v.indexBlocks:
		return problem("the index names %d of its %d blocks", v.indexBlocks, v.indexSeen)
	case v.metaSeen != len(v.r.meta):
		return problem("the meta index names %d of %d meta blocks", len(v.r.meta), v.metaSeen)
	case v.chunksSeen != v.chunks:
		return problem("Bloom filters name %d of %d chunks", v.chunks, v.chunksSeen)
	case v.cells > 0 && (t.FirstDataBlock != v.first.offset || t.LastDataBlock != v.last.offset):
		return problem("data blocks from byte %d to %d, the file has them from %d to %d", t.FirstDataBlock,
			t.LastDataBlock, v.first.offset, v.last.offset)
	}
	return nil
}

// info checks the keys of file info that readers rely on.
func (v *verifier) info() error {
	problem := func(format string, args ...any) error {
		return v.r.at(v.r.trailer.FileInfoOffset, fault.Corruptf("file info: "+format, args...))
	}
	keys := make([][]byte, len(v.r.info))
	for i, e := range v.r.info {
		keys[i] = e.Key
	}
	slices.SortFunc(keys, bytes.Compare)
	for i := 1; i < len(keys); i++ {
		if bytes.Equal(keys[i-1], keys[i]) {
			return problem("%.200q occurs twice", keys[i])
		}
	}
	if b, ok := v.r.InfoValue(infoMaxMemstoreTS); ok {
		if len(b) != 8 || v.sequence > int64(binary.BigEndian.Uint64(b)) {
			return problem("%s is %x, a cell has sequence ID %d", infoMaxMemstoreTS, b, v.sequence)
		}
	}
	// Hudi stores an empty key in a file without entries.
	if last, ok := v.r.InfoValue(infoLastKey); ok && (len(last) > 0 || v.cells > 0) {
		key, valid := parseIndexKey(last)
		if !valid || v.cells == 0 || !bytes.Equal(key.Row, v.lastKey.Row) ||
			!v.r.Hudi() && key.Compare(v.lastKey) != 0 {
			return problem("%s is not the last key of the file", infoLastKey)
		}
	}
	return nil
}
