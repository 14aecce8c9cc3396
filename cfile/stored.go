package cfile

import (
	"encoding/binary"
	"sync"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/internal/compress"
	"github.com/oribi-db/oribi/internal/encoding"
	"github.com/oribi-db/oribi/schema"
)

// StoredBlock is a data cblock as it is stored, which another file can take. It is valid until
// Release. Not safe for concurrent use.
type StoredBlock struct {
	r       *Reader
	p       BlockPointer
	b       *dataBlock
	s       scratch // its memory
	payload []byte

	zone        *ZoneEntry // nil: the file has no zone map
	first, last []byte     // values; only if the file has a value index

	codes [batch.WindowRows]uint32 // memory
}

var storedBlocks = sync.Pool{New: func() any { return new(StoredBlock) }}

// BlockOf returns the number of the data cblock of a row, which is below Rows, and the rows [first,
// end) of that cblock. It is for files with a positional index. Errors: ErrCorrupt.
func (r *Reader) BlockOf(row batch.Ordinal) (i int, first, end batch.Ordinal, err error) {
	x, err := r.ordinalIndex()
	if err != nil {
		return 0, 0, 0, err
	}
	i, end = x.find(uint32(row)), batch.Ordinal(r.info.Rows)
	if i+1 < len(x.first) {
		end = batch.Ordinal(x.first[i+1])
	}
	return i, batch.Ordinal(x.first[i]), end, nil
}

// Stored reads data cblock i of a file with a positional index, past the cache. Errors: ErrCorrupt,
// as for a read of its cells.
func (r *Reader) Stored(i int) (*StoredBlock, error) {
	x, err := r.ordinalIndex()
	if err != nil {
		return nil, err
	}
	c := storedBlocks.Get().(*StoredBlock)
	payload, crc, err := r.readBlock(x.blocks[i], &c.s)
	if err == nil {
		c.r, c.p, c.payload = r, x.blocks[i], payload
		c.b, err = r.parse(i, x.blocks[i], payload, crc, &c.s)
	}
	if err == nil {
		err = r.checkOrdinal(x, c.b.index, c.b.first, c.b.rows)
	}
	if err == nil {
		err = c.checkCodes()
	}
	if err == nil {
		err = c.summarize()
	}
	if err != nil {
		c.Release()
		return nil, err
	}
	return c, nil
}

// checkCodes checks that all codes are in the file's dictionary: another file's dictionary may have
// more words.
func (c *StoredBlock) checkCodes() error {
	if c.b.codes == nil {
		return nil
	}
	for i, n := 0, c.b.values.Len(); i < n; i += len(c.codes) {
		k := min(n-i, len(c.codes))
		if err := c.b.codes.Codes(i, k, c.codes[:k]); err != nil {
			return c.at(err)
		}
	}
	return nil
}

// summarize sets what the indexes of another file need.
func (c *StoredBlock) summarize() error {
	z, err := c.r.ZoneMap()
	if err != nil {
		return err
	}
	c.zone = nil
	if z != nil {
		c.zone = &z.Entries[c.b.index] // parse found it
	}
	n := c.b.values.Len()
	if !c.r.info.ValueIndex || n == 0 {
		return nil
	}
	first, err := c.b.values.Cell(0)
	if err != nil {
		return c.at(err)
	}
	last, err := c.b.values.Cell(n - 1)
	if err != nil {
		return c.at(err)
	}
	c.first, c.last = append(c.first[:0], first...), append(c.last[:0], last...)
	return nil
}

// at returns an error of the cblock with its place.
func (c *StoredBlock) at(err error) error { return c.r.at(c.p, err) }

// end returns the first value for 0, the last one for any other value.
func (c *StoredBlock) end(i int) ([]byte, error) {
	if i == 0 {
		return c.first, nil
	}
	return c.last, nil
}

// Release makes c invalid.
func (c *StoredBlock) Release() {
	c.r, c.b, c.payload, c.zone = nil, nil, nil, nil
	if cap(c.s.stored)+cap(c.s.payload)+4*cap(c.s.offsets) <= maxPooled {
		storedBlocks.Put(c)
	}
}

// Takes reports whether the file can have data cblocks of r as they are stored there: it has the
// same type, encoding, compression and features. Prefix encoding is excluded, since its ordinals
// have no fixed place, and so are arrays.
func (w *Writer) Takes(r *Reader) bool {
	_, movable := encoding.OrdinalOffset(w.o.Type, w.o.Encoding)
	i := &r.info
	return movable && !i.Array && !w.o.Array && i.PositionalIndex && i.Version == 2 &&
		i.Checksums && !w.o.NoChecksums && i.Type == w.o.Type && i.Encoding == w.o.Encoding &&
		i.Compression == w.o.Compression && i.Nullable == w.o.Nullable &&
		i.ZoneMap == (w.zone != nil)
}

// leastStoredRows is the number of rows from which on a cblock is worth taking even if it has few
// bytes. Merges of small rowsets must not leave many small cblocks.
const leastStoredRows = 2 * batch.WindowRows

// hasUsualSize reports whether a cblock has about the size that the file's own cblocks have.
func (w *Writer) hasUsualSize(c *StoredBlock) bool {
	size, limit, width := len(c.payload), w.o.BlockBytes, w.o.Type.Width()
	switch {
	case w.o.Type.Variable() && c.b.codes == nil:
		limit = w.o.StringBytes
	case c.b.codes != nil:
		width = schema.Uint32.Width()
	}
	if w.o.Encoding == schema.Bitshuffle || c.b.codes != nil {
		size = width * c.b.values.Len()
	}
	return (size >= limit/4 || c.b.rows >= leastStoredRows) && size <= 2*limit
}

// AppendStored appends all rows of a data cblock of a file that w Takes, as a cblock of their own.
// It returns false, and appends nothing, if they should be encoded anew: because the cblock is much
// smaller or larger than others of this file, because its codes refer to another dictionary, or to
// the dictionary of a file with a value index, or because it has no codes while the cblocks of this
// file have. The file gets the same cells as by Append. c must not be used again but for Release.
// It returns errors of the sink.
func (w *Writer) AppendStored(c *StoredBlock) (taken bool, err error) {
	if w.err != nil {
		return false, w.err
	}
	if w.Rows()+int64(c.b.rows) > maxRows || !w.hasUsualSize(c) || !w.agrees(c) {
		return false, nil
	}
	if err := w.finishBlock(); err != nil {
		return false, w.fail(err)
	}
	p, crc, err := w.writeStored(c)
	if err != nil {
		return false, w.fail(err)
	}
	if w.zone != nil {
		entry := *c.zone
		entry.crc = crc
		w.zone.entries = entry.append(w.zone.entries)
		w.zone.count++
	}
	if err := w.index(p, c.b.rows, c.end); err != nil {
		return false, w.fail(err)
	}
	if w.onStrings != nil {
		if err := w.reportStrings(p, c.payload, c.b.rows, c.b.rank); err != nil {
			return false, w.fail(err)
		}
	}
	w.first += int64(c.b.rows)
	if c.b.codes != nil {
		w.coded += int64(c.b.values.Len())
	}
	return true, nil
}

// agrees reports whether c's cblock can be moved unchanged: whether the file's indexes, and its
// dictionary, fit its cells. It may add words to the dictionary.
func (w *Writer) agrees(c *StoredBlock) bool {
	switch {
	case w.zone != nil && (c.zone == nil || c.zone.Rows != c.b.rows), w.keys != nil && !c.r.info.ValueIndex:
		return false
	case w.words == nil:
		return true
	case c.b.codes == nil:
		return !w.words.Coded() // a dictionary may be worth more here than in the file of c
	}
	// The dictionary of a file with a value index must be sorted like its values, for Seek. Another
	// file's dictionary may have words that come after other values.
	return w.keys == nil && w.words.Share(c.b.codes.Dict())
}

// writeStored writes a cblock with the ordinal of the next row, compressed as it is if possible.
func (w *Writer) writeStored(c *StoredBlock) (BlockPointer, uint32, error) {
	at, _ := encoding.OrdinalOffset(w.o.Type, w.o.Encoding)
	if w.o.Nullable {
		_, _, values, err := splitPrologue(c.payload)
		if err != nil {
			return BlockPointer{}, 0, err
		}
		at += len(c.payload) - len(values)
	}
	var ordinal [4]byte
	binary.LittleEndian.PutUint32(ordinal[:], uint32(w.first))
	form := c.s.stored[:len(c.s.stored)-checksumLen]
	stream := form
	if w.out.codec != compress.None {
		stream = form[frameLenV2:]
	}
	switch {
	case len(stream) == len(c.payload): // not compressed
		copy(stream[at:], ordinal[:])
	case w.out.codec != compress.LZ4 || !compress.LZ4Patch(stream, at, ordinal[:]):
		copy(c.payload[at:], ordinal[:])
		return w.out.writeBlock(c.payload)
	}
	return w.out.writeForm(form)
}
