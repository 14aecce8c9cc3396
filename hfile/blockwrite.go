package hfile

import (
	"encoding/binary"
	"fmt"
	"io"
	"math"
)

// blockKind is a kind of block that a writer writes: data blocks of all encodings are one kind.
type blockKind uint8

const (
	dataBlock blockKind = iota
	leafIndexBlock
	innerIndexBlock
	rootIndexBlock
	metaBlock
	fileInfoBlock
	bloomChunkBlock
	bloomMetaBlock
	deleteFamilyBlock
	blockKinds // their number
)

// blockWriter frames payloads as blocks and writes them one after the other.
type blockWriter struct {
	w      io.Writer
	o      *WriterOptions // resolved
	codec  compressor
	magics [blockKinds]string

	offset   int64             // where the next block starts
	previous [blockKinds]int64 // offset of the last block of the kind, -1 without one
	block    []byte            // memory of writePayload
	unpacked int64             // headers and payloads before compression, of all blocks so far
}

// blockAt is where a block is.
type blockAt struct {
	offset int64
	size   int32 // on disk: header, payload, checksums
}

func newBlockWriter(w io.Writer, o *WriterOptions) (*blockWriter, error) {
	codec, err := newCompressor(o.Codec, o.CodecBuffer)
	if err != nil {
		return nil, err
	}
	b := &blockWriter{w: w, o: o, codec: codec}
	b.magics = [blockKinds]string{
		dataBlock:         magicData,
		leafIndexBlock:    magicLeafIndex,
		innerIndexBlock:   magicInnerIndex,
		rootIndexBlock:    magicRootIndex,
		metaBlock:         magicMeta,
		fileInfoBlock:     magicFileInfo,
		bloomChunkBlock:   magicBloomChunk,
		bloomMetaBlock:    magicBloomMeta,
		deleteFamilyBlock: magicDeleteFamily,
	}
	if o.Encoding != EncodingNone {
		b.magics[dataBlock] = magicEncodedData
	}
	for i := range b.previous {
		b.previous[i] = -1
	}
	return b, nil
}

// writePayload writes a block with a copy of the payload.
func (b *blockWriter) writePayload(kind blockKind, payload []byte) (at blockAt, err error) {
	if b.block == nil {
		b.block = make([]byte, headerLen, headerLen+len(payload))
	}
	at, b.block, err = b.write(kind, append(b.block[:headerLen], payload...))
	return at, err
}

// write writes a block. buf is headerLen bytes, which write overwrites, and the payload. It
// returns buf for its memory, which may have grown.
func (b *blockWriter) write(kind blockKind, buf []byte) (_ blockAt, _ []byte, err error) {
	out, unpacked := buf, len(buf)-headerLen
	if b.codec.codec != None {
		if out, err = b.codec.pack(buf[headerLen:]); err != nil {
			return blockAt{}, buf, fmt.Errorf("hfile: block at byte %d: %w", b.offset, err)
		}
	}
	onDisk := len(out)
	perChecksum := b.o.perChecksum(onDisk)
	checksums := checksumLen * ((onDisk + perChecksum - 1) / perChecksum)
	if unpacked > math.MaxInt32 || onDisk+checksums > math.MaxInt32 {
		return blockAt{}, buf, fmt.Errorf("hfile: block at byte %d: %d bytes are more than the format has room for",
			b.offset, max(unpacked, onDisk+checksums))
	}
	copy(out, b.magics[kind])
	binary.BigEndian.PutUint32(out[headerOnDiskOff:], uint32(onDisk+checksums-headerLen))
	binary.BigEndian.PutUint32(out[headerSizeOff:], uint32(unpacked))
	binary.BigEndian.PutUint64(out[headerPrevOff:], uint64(b.previousOffset(kind)))
	out[headerChecksumOff] = byte(b.o.checksum())
	binary.BigEndian.PutUint32(out[headerBytesPerOff:], uint32(perChecksum))
	binary.BigEndian.PutUint32(out[headerDataSizeOff:], uint32(onDisk))
	out = appendChecksums(out, b.o.checksum(), perChecksum)
	if b.codec.codec == None {
		buf = out
	} else {
		b.codec.out = out // it may have grown
	}
	at := blockAt{b.offset, int32(len(out))}
	b.previous[kind] = b.offset
	b.unpacked += int64(headerLen + unpacked)
	return at, buf, b.writeAll(out)
}

// previousOffset returns what the header of the next block says about the previous one of its kind.
func (b *blockWriter) previousOffset(kind blockKind) int64 {
	switch {
	case b.o.Like == HBase:
		return b.previous[kind]
	case kind != dataBlock:
		return -1
	case b.o.Like != Hudi && b.previous[kind] >= 0:
		return b.offset // a mistake of these releases: hfile spec §3.5
	}
	return b.previous[kind]
}

func (b *blockWriter) writeAll(p []byte) error {
	n, err := b.w.Write(p)
	if err == nil && n < len(p) {
		err = io.ErrShortWrite
	}
	if err != nil {
		return fmt.Errorf("hfile: write at byte %d: %w", b.offset, err)
	}
	b.offset += int64(n)
	return nil
}

// appendChecksums appends the checksums of a block that is complete without them.
func appendChecksums(block []byte, kind Checksum, perChecksum int) []byte {
	onDisk := len(block)
	for from := 0; from < onDisk; from += perChecksum {
		sum := kind.of(block[from:min(from+perChecksum, onDisk)])
		block = binary.BigEndian.AppendUint32(block, sum)
	}
	return block
}
