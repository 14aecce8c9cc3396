package hfile

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
)

// Writer writes one HFile: entries in ascending order, then Finish.
//
// It keeps in memory the data block being filled, the open index blocks, the chunk of the Bloom
// filter being filled, and meta blocks, and writes each block once it is complete. It copies the
// cells and meta blocks that it is given.
//
// An entry that it refuses changes nothing: the caller may go on with another one. After an error
// from the sink all calls return that error, and the bytes written are no HFile. A Writer is not
// safe for concurrent use. Source: hfile spec §12.
type Writer struct {
	o            WriterOptions // resolved
	blocks       *blockWriter
	cells        *cellEncoder
	index        *indexBuilder
	bloom        *bloomBuilder // nil without one
	deleteFamily *bloomBuilder // of rows with deletes of the family; nil without one
	info         infoWriter
	meta         []metaEntry
	track        tracker

	last, next []byte // key of the last entry; memory for the next one
	lastKey    Key    // last, parsed
	first      []byte // index key of the block being filled
	blockLimit int    // most bytes of a block before compression
	unindexed  int64  // bytes that HBase does not count in the trailer's total
	err        error  // of the sink, or ErrClosed
}

// metaEntry is a meta block to be written.
type metaEntry struct {
	name    string
	content []byte
}

// NewWriter returns a Writer that writes to w, such as a block.Sink, from its current position on.
// Errors: all faults of o.
func NewWriter(w io.Writer, o WriterOptions) (*Writer, error) {
	o, err := o.resolve()
	if err != nil {
		return nil, err
	}
	out := &Writer{o: o, track: newTracker()}
	if out.blocks, err = newBlockWriter(w, &out.o); err != nil {
		return nil, err
	}
	out.cells = newCellEncoder(&out.o)
	out.index = newIndexBuilder(out.blocks, &out.o)
	hash := o.BloomHash.or(Murmur)
	if o.Bloom != BloomNone {
		if out.bloom, err = newBloomBuilder(o.Bloom, hash, o.BloomBlockBytes, o.PrefixBytes); err != nil {
			return nil, err
		}
	}
	if o.StoreFile && o.Bloom != BloomRowCol {
		if out.deleteFamily, err = newBloomBuilder(BloomRow, hash, o.BloomBlockBytes, 0); err != nil {
			return nil, err
		}
	}
	least := o.perChecksum(headerLen)
	out.blockLimit = math.MaxInt32 - headerLen
	out.blockLimit -= 4*(out.blockLimit/least+1) + out.blockLimit/64 // checksums; what a codec may add
	return out, nil
}

// AppendKeyValue appends an entry of Hudi's view: a put of the row key, without family and
// qualifier, at the newest timestamp. Keys ascend as bytes. Errors: as Append.
func (w *Writer) AppendKeyValue(key, value []byte) error {
	return w.Append(Cell{Key: Key{Row: key, Timestamp: math.MaxInt64, Type: Put}, Value: value})
}

// Append appends a cell. Cells ascend as Key.Compare sorts them, and all have the same family.
//
// It refuses a cell that sorts before the last one or, with RefuseEqualKeys, with it; that is
// beyond a limit of the format; that has another family, a negative timestamp or sequence ID, or a
// type that cells do not have; or that has tags or a sequence ID which the options do not store.
// With Hudi it refuses cells that AppendKeyValue could not write. Errors: ErrClosed after Finish;
// errors of the sink.
func (w *Writer) Append(c Cell) error {
	if w.err != nil {
		return w.err
	}
	if err := w.check(&c); err != nil {
		return fmt.Errorf("hfile: entry %d: %w", w.track.entries, err)
	}
	order := -1
	if w.track.entries > 0 {
		order = w.lastKey.Compare(c.Key)
	}
	switch {
	case order > 0:
		return fmt.Errorf("hfile: entry %d: the key (%s) sorts before that of the last entry (%s)", w.track.entries,
			c.Key.text(), w.lastKey.text())
	case order == 0 && w.o.RefuseEqualKeys:
		return fmt.Errorf("hfile: entry %d: the key (%s) equals that of the last entry", w.track.entries, c.Key.text())
	}
	ends := order < 0 && w.blockEnds(&c)
	used := w.cells.size()
	if ends {
		used = 0
	}
	if need := w.cells.plainLen(&c); need > w.blockLimit || used > w.blockLimit-need {
		return fmt.Errorf("hfile: entry %d: a block of %d bytes, more than the limit of %d",
			w.track.entries, used+need, w.blockLimit)
	}
	if err := w.append(&c, ends); err != nil {
		return w.fail(err)
	}
	return nil
}

// check refuses a cell that no file with the options can contain.
func (w *Writer) check(c *Cell) error {
	switch {
	case len(c.Row) > MaxRowBytes:
		return fmt.Errorf("row of %d bytes, more than the limit of %d", len(c.Row), MaxRowBytes)
	case len(c.Family) > MaxFamilyBytes:
		return fmt.Errorf("family of %d bytes, more than the limit of %d", len(c.Family), MaxFamilyBytes)
	case len(c.Qualifier) > math.MaxInt32-keyFixedLen-len(c.Row)-len(c.Family):
		return fmt.Errorf("qualifier of %d bytes, and the limit of a key is %d", len(c.Qualifier), math.MaxInt32)
	case len(c.Value) > math.MaxInt32-c.encodedLen():
		return fmt.Errorf("key of %d bytes and value of %d bytes, and the limit of both is %d",
			c.encodedLen(), len(c.Value), math.MaxInt32)
	case c.Timestamp < 0:
		return fmt.Errorf("negative timestamp %d", c.Timestamp)
	case c.Sequence < 0:
		return fmt.Errorf("negative sequence ID %d", c.Sequence)
	case c.Sequence > 0 && w.o.OmitSequences:
		return fmt.Errorf("sequence ID %d in a file without them (WriterOptions.OmitSequences)", c.Sequence)
	case len(c.Tags) > 0 && !w.o.Tags && w.o.Like == HBase:
		return errors.New("tags in a file without them (WriterOptions.Tags)")
	case len(c.Tags) > math.MaxUint16:
		return fmt.Errorf("tags of %d bytes, more than the limit of %d", len(c.Tags), math.MaxUint16)
	case w.track.entries > 0 && !bytes.Equal(c.Family, w.lastKey.Family):
		return fmt.Errorf("family %q, and the family of the file is %q", c.Family, w.lastKey.Family)
	}
	switch c.Type {
	case Put, Delete, DeleteFamilyVersion, DeleteColumn, DeleteFamily:
	default:
		return fmt.Errorf("%v is not the type of a cell", c.Type)
	}
	if w.o.Like != HBase && (len(c.Family) > 0 || len(c.Qualifier) > 0 || c.Timestamp != math.MaxInt64 ||
		c.Type != Put || c.Sequence != 0 || len(c.Tags) > 0) {
		return errors.New("Hudi's entries have a row and a value only (Writer.AppendKeyValue)")
	}
	if !checkTags(c.Tags) {
		return errors.New("malformed tags (use AppendTag)")
	}
	return nil
}

// hudiCellBytes is the number of bytes that Hudi counts for an entry besides key and value.
const hudiCellBytes = 21

// blockEnds reports whether the block ends before a cell with another key than the last one.
// Source: hfile spec §5.5.
func (w *Writer) blockEnds(c *Cell) bool {
	if w.o.Like == HBase {
		return w.cells.size() >= w.o.BlockBytes
	}
	// The sequence ID 0 is a byte of each cell that makes these the sizes that Hudi counts.
	return w.cells.cells > 0 && w.cells.size()+len(c.Row)+len(c.Value)+hudiCellBytes > w.o.BlockBytes
}

// append appends a cell that was checked; ends says that the block ends before it.
func (w *Writer) append(c *Cell, ends bool) error {
	w.next = appendKey(w.next[:0], c.Key)
	// A chunk of a Bloom filter that this cell fills is written before the cell's block, as HBase
	// adds a cell to the filters first.
	if w.bloom != nil {
		w.bloom.add(c.Key)
	}
	if w.deleteFamily != nil && (c.Type == DeleteFamily || c.Type == DeleteFamilyVersion) {
		w.deleteFamily.add(c.Key)
	}
	if ends {
		if err := w.endBlock(false); err != nil {
			return err
		}
	}
	if w.cells.cells == 0 {
		w.startBlock(c)
	}
	w.cells.add(c, w.next, w.last)
	w.track.add(c, w.next)
	w.last, w.next = w.next, w.last
	w.lastKey, _ = parseKey(w.last)
	return nil
}

// startBlock notes the index key of the block that begins with c.
func (w *Writer) startBlock(c *Cell) {
	switch {
	case w.o.Like == Hudi120 || w.o.Like == Hudi111:
		w.first = append(w.first[:0], w.next[:keyRowLen+len(c.Row)]...)
	case w.o.Like == Hudi || w.track.entries == 0:
		w.first = append(w.first[:0], w.next...)
	default:
		w.first = appendSeparator(w.first[:0], w.lastKey, c.Key)
	}
}

// endBlock writes the data block, and index blocks and chunks of Bloom filters that are complete:
// all of them when closing.
func (w *Writer) endBlock(closing bool) error {
	if w.cells.cells > 0 {
		buf := w.cells.finish()
		w.track.dataBytes += int64(len(buf) - headerLen)
		at, buf, err := w.blocks.write(dataBlock, buf)
		if err != nil {
			return err
		}
		w.cells.buf = buf
		w.cells.reset()
		if w.track.firstBlock < 0 {
			w.track.firstBlock = at.offset
		}
		w.track.lastData = at.offset
		w.index.add(at, w.first)
	}
	if err := w.index.endLeaf(closing); err != nil {
		return err
	}
	for _, b := range []*bloomBuilder{w.bloom, w.deleteFamily} {
		for b != nil && b.ready(closing) {
			at, err := w.blocks.writePayload(bloomChunkBlock, b.takeChunk())
			if err != nil {
				return err
			}
			b.chunkWritten(at.offset, at.size)
		}
	}
	return nil
}

// AddMeta adds a meta block: a named blob, such as Hudi's Bloom filter. Its content is kept until
// Finish. It refuses a name that was added before. Errors: as Append.
func (w *Writer) AddMeta(name string, content []byte) error {
	if w.err != nil {
		return w.err
	}
	if len(content) > w.blockLimit {
		return fmt.Errorf("hfile: meta block %q: %d bytes, more than the limit of %d", name, len(content), w.blockLimit)
	}
	for _, m := range w.meta {
		if m.name == name {
			return fmt.Errorf("hfile: meta block %q was added before", name)
		}
	}
	w.meta = append(w.meta, metaEntry{name, bytes.Clone(content)})
	return nil
}

// AddInfo adds an entry to file info. It refuses keys with the prefix "hfile.", keys that the
// writer itself writes, and a key that was added before. Errors: as Append.
func (w *Writer) AddInfo(key string, value []byte) error {
	switch {
	case w.err != nil:
		return w.err
	case strings.HasPrefix(key, infoReservedPrefix):
		return fmt.Errorf("hfile: file info %q: keys with the prefix %q belong to the format", key,
			infoReservedPrefix)
	case w.o.reserved(key):
		return fmt.Errorf("hfile: file info %q: the writer sets this entry", key)
	case len(key)+len(value) > w.blockLimit-w.info.bytes:
		return fmt.Errorf("hfile: file info %q: more than %d bytes in all", key, w.blockLimit)
	case !w.info.add(key, bytes.Clone(value)):
		return fmt.Errorf("hfile: file info %q was added before", key)
	}
	return nil
}

// Finish completes the file. The Writer takes no more calls: they return ErrClosed.
func (w *Writer) Finish() error {
	if w.err != nil {
		return w.err
	}
	if err := w.finish(); err != nil {
		return w.fail(err)
	}
	w.fail(fmt.Errorf("hfile: writer: %w", ErrClosed))
	return nil
}

// fail makes all later calls return err.
func (w *Writer) fail(err error) error {
	w.err = err
	w.cells = nil // frees its memory
	return err
}

func (w *Writer) finish() error {
	if err := w.endBlock(true); err != nil {
		return err
	}
	metaIndex, err := w.writeMeta()
	if err != nil {
		return err
	}

	// The trailer's total leaves out the blocks of the index after the leaves, as in HBase.
	before := w.blocks.unpacked
	midKey, err := w.index.writeLevels()
	if err != nil {
		return err
	}
	loadOnOpen := w.blocks.offset
	if err := w.index.writeRoot(midKey); err != nil {
		return err
	}
	w.unindexed = w.blocks.unpacked - before

	if _, err := w.blocks.writePayload(rootIndexBlock, metaIndex); err != nil {
		return err
	}
	fileInfo := w.blocks.offset
	w.fileInfo()
	if _, err := w.blocks.writePayload(fileInfoBlock, w.info.payload(w.o.Like)); err != nil {
		return err
	}
	for _, b := range []struct {
		kind  blockKind
		bloom *bloomBuilder
	}{{bloomMetaBlock, w.bloom}, {deleteFamilyBlock, w.deleteFamily}} {
		if b.bloom == nil {
			continue
		}
		if payload := b.bloom.meta(); payload != nil {
			if _, err := w.blocks.writePayload(b.kind, payload); err != nil {
				return err
			}
		}
	}
	return w.blocks.writeAll(w.trailer(fileInfo, loadOnOpen))
}

// unpackedTotal returns the bytes of all blocks before compression, as HBase counts them.
func (w *Writer) unpackedTotal() int64 { return w.blocks.unpacked - w.unindexed }

// writeMeta writes the meta blocks and returns the payload of their index.
func (w *Writer) writeMeta() ([]byte, error) {
	if w.o.Like == Hudi120 || w.o.Like == Hudi111 {
		w.meta = hashMapOrder(w.meta, func(m metaEntry) string { return m.name })
	} else {
		slices.SortFunc(w.meta, func(a, b metaEntry) int { return strings.Compare(a.name, b.name) })
	}
	var index indexChunk
	for _, m := range w.meta {
		at, err := w.blocks.writePayload(metaBlock, m.content)
		if err != nil {
			return nil, err
		}
		index.add(at, []byte(m.name), 0)
	}
	return index.appendRoot(nil, w.index.keyLen), nil
}
