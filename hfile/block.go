package hfile

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"io"
	"math"

	"github.com/oribi-db/oribi/cache"
	"github.com/oribi-db/oribi/internal/coding"
	"github.com/oribi-db/oribi/internal/fault"
)

// Block: what a file consists of, up to its trailer, without gaps. Integers are big-endian.
// Source: hfile spec §3.1, §3.2.
//
//	offset  width  field             meaning
//	0       8      magic             type of the block
//	8       4      onDiskSize        bytes after the header: stored payload and checksums
//	12      4      uncompressedSize  bytes of the payload, uncompressed
//	16      8      prevOffset        of the previous block of this type, or -1; only a hint
//	24      1      checksumType      0 none, 1 CRC-32, 2 CRC-32C
//	25      4      bytesPerChecksum
//	29      4      dataSize          33 and the bytes of the stored payload
//	33      …      payload           as the codec stores it
//	…       4 each checksums         of bytes [i·bytesPerChecksum, …) up to dataSize; type 0: zeros
//
// A data block of 93 bytes, neither compressed nor covered by checksums:
//
//	44 41 54 41 42 4c 4b 2a  00 00 00 61  00 00 00 5d  ff ff ff ff ff ff ff ff  00  00 00 40 00
//	00 00 00 7e  … 93 bytes …  00 00 00 00
const (
	headerLen         = 33 // file format: never change
	headerOnDiskOff   = 8  // file format: never change
	headerSizeOff     = 12 // file format: never change
	headerPrevOff     = 16 // file format: never change
	headerChecksumOff = 24 // file format: never change
	headerBytesPerOff = 25 // file format: never change
	headerDataSizeOff = 29 // file format: never change
	checksumLen       = 4  // file format: never change
)

// blockHeader is the header of a block.
type blockHeader struct {
	magic            string
	size             int   // of the whole block: header, stored payload, checksums
	uncompressed     int   // bytes of the payload
	prev             int64 // a hint
	checksum         Checksum
	bytesPerChecksum int
	dataSize         int // of header and stored payload
}

// parseHeader reads the header at the front of b and checks its fields against each other.
func parseHeader(b []byte) (h blockHeader, err error) {
	if len(b) < headerLen {
		return h, fault.Corruptf("%d bytes are too short for a header", len(b))
	}
	onDisk := int32(binary.BigEndian.Uint32(b[headerOnDiskOff:]))
	uncompressed := int32(binary.BigEndian.Uint32(b[headerSizeOff:]))
	bytesPer := int32(binary.BigEndian.Uint32(b[headerBytesPerOff:]))
	dataSize := int32(binary.BigEndian.Uint32(b[headerDataSizeOff:]))
	h = blockHeader{
		magic:            blockType(b),
		size:             int(min(int64(onDisk)+headerLen, math.MaxInt)),
		uncompressed:     int(uncompressed),
		prev:             int64(binary.BigEndian.Uint64(b[headerPrevOff:])),
		checksum:         Checksum(b[headerChecksumOff]),
		bytesPerChecksum: int(bytesPer),
		dataSize:         int(dataSize),
	}
	switch {
	case h.magic == "":
		return h, fault.Corruptf("unknown type %q", b[:magicLen])
	case onDisk < 0 || uncompressed < 0:
		return h, fault.Corruptf("%d bytes on disk, %d uncompressed", onDisk, uncompressed)
	case h.dataSize < headerLen || h.dataSize > h.size:
		return h, fault.Corruptf("%d bytes of header and payload in a block of %d", dataSize, h.size)
	case h.checksum > ChecksumCRC32C:
		return h, fault.Corruptf("checksum type %d", h.checksum)
	case bytesPer < 0 || bytesPer == 0 && h.checksum != ChecksumNull:
		return h, fault.Corruptf("%d bytes per checksum", bytesPer)
	}
	checksums := int64(0)
	if bytesPer > 0 {
		checksums = (int64(dataSize) + int64(bytesPer) - 1) / int64(bytesPer)
	}
	if area := int64(h.size - h.dataSize); area != checksums*checksumLen {
		return h, fault.Corruptf("%d bytes of checksums, want %d checksums", area, checksums)
	}
	return h, nil
}

// blockType returns the magic at the front of b, or "" if it is none of a block.
func blockType(b []byte) string {
	for _, magic := range blockTypes {
		if string(b[:magicLen]) == magic {
			return magic
		}
	}
	return ""
}

// blockTypes lists the magics of blocks.
var blockTypes = [...]string{magicData, magicEncodedData, magicLeafIndex, magicInnerIndex, magicRootIndex, magicMeta,
	magicFileInfo, magicBloomChunk,
	magicBloomMeta, magicDeleteFamily}

// verify compares the checksums of b, the whole block, with its bytes. Checksums of type NULL must
// be zeros: otherwise one flipped bit, in the type, would turn the others off.
func (h blockHeader) verify(b []byte) error {
	sums := b[h.dataSize:]
	if h.checksum == ChecksumNull {
		for _, c := range sums {
			if c != 0 {
				return fault.Corruptf("checksums of type NULL are not zeros")
			}
		}
		return nil
	}
	for at := 0; at < h.dataSize; at += h.bytesPerChecksum {
		covered := b[at:h.dataSize]
		if len(covered) > h.bytesPerChecksum {
			covered = covered[:h.bytesPerChecksum]
		}
		crc := h.checksum.of(covered)
		if want := binary.BigEndian.Uint32(sums); crc != want {
			return fault.Corruptf("%v of its bytes from %d is %08x, want %08x", h.checksum, at, crc, want)
		}
		sums = sums[checksumLen:]
	}
	return nil
}

// of returns the checksum of b.
func (c Checksum) of(b []byte) uint32 {
	switch c {
	case ChecksumCRC32:
		return crc32.ChecksumIEEE(b)
	case ChecksumCRC32C:
		return coding.CRC32C(b)
	}
	return 0
}

// loadedBlock is a block in memory. It is immutable and may be shared.
type loadedBlock struct {
	header  blockHeader
	offset  int64
	payload []byte
	entries int       // of a block of the index below the root
	seeks   seekTable // of a data block
}

// blockBuffer is memory for one block at a time. A zero blockBuffer allocates.
type blockBuffer struct {
	stored  []byte // the block as in the file
	payload []byte // uncompressed; not used with codec NONE
}

// buffered returns a buffer of n bytes, which reuses b if it is long enough.
func buffered(b []byte, n int) []byte {
	if n > cap(b) {
		return make([]byte, n)
	}
	return b[:n]
}

// readAt fills b with the bytes at the given offset.
func (r *Reader) readAt(b []byte, offset int64) error {
	if n, err := r.src.ReadAt(b, offset); n < len(b) {
		if err == nil || err == io.EOF {
			err = fault.Corruptf("%d of %d bytes", n, len(b))
		}
		return r.at(offset, err)
	}
	return nil
}

// at adds the place to an error of the block at offset.
func (r *Reader) at(offset int64, err error) error {
	if id := r.src.ID(); id != 0 {
		return fmt.Errorf("hfile: file %v: block at byte %d: %w", id, offset, err)
	}
	return fmt.Errorf("hfile: block at byte %d: %w", offset, err)
}

// headerAt reads the header at offset. Not more than the header is read, and the checksum is not
// verified.
func (r *Reader) headerAt(offset int64) (blockHeader, error) {
	var b [headerLen]byte
	if offset < 0 || offset > r.end-headerLen {
		return blockHeader{}, r.at(offset, fault.Corruptf("outside of the blocks, which end at byte %d", r.end))
	}
	if err := r.readAt(b[:], offset); err != nil {
		return blockHeader{}, err
	}
	h, err := parseHeader(b[:])
	if err != nil {
		return h, r.at(offset, err)
	}
	if int64(h.size) > r.end-offset {
		return h, r.at(offset, fault.Corruptf("%d bytes, the blocks end at byte %d", h.size, r.end))
	}
	return h, nil
}

// readBlock returns the block at offset, of the given size in bytes and type, from the cache or the
// file. Blocks of the index below the root have been checked, see checkIndexBlock.
func (r *Reader) readBlock(offset int64, size int32, magic string) (*loadedBlock, error) {
	if r.cache == nil {
		return r.loadBlock(new(blockBuffer), offset, size, magic)
	}
	key := cache.Key{Block: r.cacheID, Offset: uint64(offset)}
	if v, ok := r.cache.Get(key); ok {
		if b, ok := v.(*loadedBlock); ok && b.header.magic == magic && b.header.size == int(size) {
			return b, nil
		}
	}
	b, err := r.loadBlock(new(blockBuffer), offset, size, magic)
	if err != nil {
		return nil, err
	}
	r.cache.Put(key, b, b.memory())
	return b, nil
}

// memory returns the most bytes that b occupies, including what seeks in it will add.
func (b *loadedBlock) memory() int64 {
	n := int64(cap(b.payload)) + 256
	if b.header.magic == magicData || b.header.magic == magicEncodedData {
		n += int64(seekTableBytes(len(b.payload)))
	}
	return n
}

// loadBlock reads a block into buf, which must not be used again while the result is in use.
func (r *Reader) loadBlock(buf *blockBuffer, offset int64, size int32, magic string) (*loadedBlock, error) {
	b := new(loadedBlock)
	if err := r.loadInto(b, buf, offset, size, magic); err != nil {
		return nil, err
	}
	return b, nil
}

// loadInto is loadBlock with memory for the result.
func (r *Reader) loadInto(b *loadedBlock, buf *blockBuffer, offset int64, size int32, magic string) error {
	if err := r.readStored(buf, offset, size); err != nil {
		return err
	}
	return r.openInto(b, buf, offset, magic)
}

// readStored reads the bytes of a block into buf.stored.
func (r *Reader) readStored(buf *blockBuffer, offset int64, size int32) error {
	if offset < 0 || size < headerLen || int64(size) > r.end || offset > r.end-int64(size) {
		return r.at(offset, fault.Corruptf("%d bytes, the blocks end at byte %d", size, r.end))
	}
	buf.stored = buffered(buf.stored, int(size))
	return r.readAt(buf.stored, offset)
}

// openInto checks and uncompresses the block in buf.stored.
func (r *Reader) openInto(b *loadedBlock, buf *blockBuffer, offset int64, magic string) error {
	h, payload, err := r.openBlock(buf, magic)
	if err != nil {
		return r.at(offset, err)
	}
	b.header, b.offset, b.payload, b.entries = h, offset, payload, 0
	b.seeks.reset()
	if magic == magicLeafIndex || magic == magicInnerIndex {
		if b.entries, err = checkIndexBlock(payload, r.end); err != nil {
			return r.at(offset, err)
		}
	}
	return nil
}

// openBlock checks the block in buf.stored and uncompresses its payload.
func (r *Reader) openBlock(buf *blockBuffer, magic string) (h blockHeader, payload []byte, err error) {
	b := buf.stored
	if string(b[:magicLen]) != magic {
		return h, nil, fault.Corruptf("type %q, want %q", b[:magicLen], magic)
	}
	if h, err = parseHeader(b); err != nil {
		return h, nil, err
	}
	if h.size != len(b) {
		return h, nil, fault.Corruptf("%d bytes in its header, %d in the index", h.size, len(b))
	}
	if !r.skipChecksums {
		if err := h.verify(b); err != nil {
			return h, nil, err
		}
	}
	stored := b[headerLen:h.dataSize]
	if r.trailer.Codec == None {
		if len(stored) != h.uncompressed {
			return h, nil, fault.Corruptf("%d bytes of payload, want %d", len(stored), h.uncompressed)
		}
		payload = stored
	}
	if h.uncompressed > r.maxBlock {
		// A header alone is no reason to call the block too large.
		if payload == nil {
			if err := measure(r.trailer.Codec, stored, h.uncompressed); err != nil {
				return h, nil, err
			}
		}
		return h, nil,
			fault.Unsupportedf("%d bytes of payload, more than MaxBlockBytes, %d", h.uncompressed, r.maxBlock)
	}
	if payload == nil {
		if payload, err = decompress(r.trailer.Codec, buf.payload, stored, h.uncompressed); err != nil {
			return h, nil, err
		}
		buf.payload = payload
	}
	return h, payload, nil
}
