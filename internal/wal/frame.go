package wal

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"

	"github.com/zeebo/xxh3"

	"github.com/oribi-db/oribi/lsn"
)

// Header of a frame, at a multiple of 8. The payload follows, then zeros up to a multiple of 8.
//
//	offset  width  field    meaning
//	0       4      length   of the payload, bytes, at most 16 MiB
//	4       1      type     1
//	5       1      last     1 in the last part of a record, else 0
//	6       2      part     of the record, from 0
//	8       8      segment  number of the segment; another number means stale bytes
//	16      8      LSN      of the record
//	24      8      durable  highest LSN known durable when this was written; below LSN
//	32      8      term     for an external log; 0
//	40      8      index    for an external log; 0
//	48      8      hash     xxh3-64 of the payload
//	56      4      check    CRC32C of the payload
//	60      4      crc      CRC32C of the store's instance (16 bytes) and bytes 0–59
//
// Payload "abc" as LSN 9 in segment 2 of instance 00 01 … 0f, with LSN 7 durable:
//
//	03 00 00 00 01 01 00 00  02 00 00 00 00 00 00 00
//	09 00 00 00 00 00 00 00  07 00 00 00 00 00 00 00
//	00 00 00 00 00 00 00 00  00 00 00 00 00 00 00 00
//	50 39 2f 89 94 5f af 78  b7 3f 4b 36 8a 6b ad bd
//	61 62 63 00 00 00 00 00
//
// The chain hash covers the headers: at a segment's start it is the xxh3-64 of the segment header.
// After each frame it is the xxh3-64 of 8 bytes, the hash before the frame, and the frame's header.
// It covers the payloads too, by their hash and check in the frame headers.
const (
	frameTypeOff    = 4
	frameLastOff    = 5
	framePartOff    = 6
	frameSegmentOff = 8
	frameLSNOff     = 16
	frameDurableOff = 24
	frameTermOff    = 32
	frameIndexOff   = 40
	frameHashOff    = 48
	frameCheckOff   = 56
	frameCRCOff     = 60
	frameLen        = 64 // file format: never change

	typeRecord = 1
	typeFooter = 2

	alignment = 8
	chainLen  = 8
)

// frame is a frame's header.
type frame struct {
	length  int
	last    bool
	part    int
	segment uint64
	lsn     lsn.LSN
	durable lsn.LSN
	hash    uint64
	check   uint32
}

func padded(n int) int { return (n + alignment - 1) &^ (alignment - 1) }

// size is the length of the whole frame in its file.
func (f *frame) size() int64 { return int64(frameLen + padded(f.length)) }

// crcWith continues seed, the CRC of the bytes before b, with b.
func crcWith(seed uint32, b []byte) uint32 { return crc32.Update(seed, castagnoli, b) }

// seedCRC is the CRC of the instance, with which the CRC of frames and footers starts.
func seedCRC(instance [16]byte) uint32 { return crc32c(instance[:]) }

// encode writes the header into b[:frameLen].
func (f *frame) encode(b []byte, seed uint32) {
	le := binary.LittleEndian
	b = b[:frameLen]
	le.PutUint32(b, uint32(f.length))
	b[frameTypeOff] = typeRecord
	b[frameLastOff] = 0
	if f.last {
		b[frameLastOff] = 1
	}
	le.PutUint16(b[framePartOff:], uint16(f.part))
	le.PutUint64(b[frameSegmentOff:], f.segment)
	le.PutUint64(b[frameLSNOff:], uint64(f.lsn))
	le.PutUint64(b[frameDurableOff:], uint64(f.durable))
	le.PutUint64(b[frameTermOff:], 0)
	le.PutUint64(b[frameIndexOff:], 0)
	le.PutUint64(b[frameHashOff:], f.hash)
	le.PutUint32(b[frameCheckOff:], f.check)
	le.PutUint32(b[frameCRCOff:], crcWith(seed, b[:frameCRCOff]))
}

// frameIntact reports whether b begins with a frame header of the segment. It checks nothing else.
func frameIntact(b []byte, segment uint64, seed uint32) bool {
	le := binary.LittleEndian
	return len(b) >= frameLen && b[frameTypeOff] == typeRecord && le.Uint64(b[frameSegmentOff:]) == segment &&
		le.Uint32(b[frameCRCOff:]) == crcWith(seed, b[:frameCRCOff])
}

// parseFrame parses the header in b; problem says why there is none.
func parseFrame(b []byte, segment uint64, seed uint32) (f frame, problem string) {
	le := binary.LittleEndian
	if len(b) < frameLen {
		return f, fmt.Sprintf("%d bytes, too short for a frame header", len(b))
	}
	if crc, want := le.Uint32(b[frameCRCOff:]), crcWith(seed, b[:frameCRCOff]); crc != want {
		return f, fmt.Sprintf("frame header crc %08x, want %08x", crc, want)
	}
	if b[frameTypeOff] != typeRecord || b[frameLastOff] > 1 {
		return f, fmt.Sprintf("frame type %d, last %d", b[frameTypeOff], b[frameLastOff])
	}
	f = frame{
		length:  int(le.Uint32(b)),
		last:    b[frameLastOff] == 1,
		part:    int(le.Uint16(b[framePartOff:])),
		segment: le.Uint64(b[frameSegmentOff:]),
		lsn:     lsn.LSN(le.Uint64(b[frameLSNOff:])),
		durable: lsn.LSN(le.Uint64(b[frameDurableOff:])),
		hash:    le.Uint64(b[frameHashOff:]),
		check:   le.Uint32(b[frameCheckOff:]),
	}
	switch {
	case f.segment != segment:
		return f, fmt.Sprintf("frame of segment %d", f.segment)
	case f.length > maxFrameBytes:
		return f, fmt.Sprintf("frame of %d bytes, at most %d", f.length, maxFrameBytes)
	}
	return f, ""
}

// nextChain returns the chain hash after a frame, from that before it.
func nextChain(chain uint64, frameHeader []byte) uint64 {
	var b [chainLen + frameLen]byte
	binary.LittleEndian.PutUint64(b[:], chain)
	copy(b[chainLen:], frameHeader[:frameLen])
	return xxh3.Hash(b[:])
}

// Footer of a sealed segment, after its last frame.
//
//	offset  width  field    meaning
//	0       4      length   0, as of a frame without payload
//	4       1      type     2
//	5       3      zero
//	8       8      segment  number of the segment
//	16      8      last     LSN of its last record; without one, the header's first - 1
//	24      8      durable  highest LSN known durable when this was written; at most last, and last wherever
//	                       this program writes it
//	32      8      chain    chain hash after the last frame
//	40      8      bytes    of the segment, this footer included
//	48      4      frames   in this segment
//	52      4      crc      CRC32C of the store's instance (16 bytes) and bytes 0–51
//
// Segment 2 of instance 00 01 … 0f ends at byte 208 with one frame, LSN 8, not yet durable; chain
// hash 1122334455667788:
//
//	00 00 00 00 02 00 00 00  02 00 00 00 00 00 00 00
//	08 00 00 00 00 00 00 00  07 00 00 00 00 00 00 00
//	88 77 66 55 44 33 22 11  d0 00 00 00 00 00 00 00
//	01 00 00 00 8c 76 14 56
const (
	footerLastOff    = frameLSNOff
	footerDurableOff = frameDurableOff
	footerChainOff   = 32
	footerBytesOff   = 40
	footerFramesOff  = 48
	footerCRCOff     = 52
	footerLen        = 56 // file format: never change
)

// footer is a sealed segment's footer.
type footer struct {
	segment uint64
	last    lsn.LSN
	durable lsn.LSN
	chain   uint64
	bytes   int64
	frames  uint32
}

func (f *footer) encode(seed uint32) []byte {
	le := binary.LittleEndian
	b := make([]byte, footerLen)
	b[frameTypeOff] = typeFooter
	le.PutUint64(b[frameSegmentOff:], f.segment)
	le.PutUint64(b[footerLastOff:], uint64(f.last))
	le.PutUint64(b[footerDurableOff:], uint64(f.durable))
	le.PutUint64(b[footerChainOff:], f.chain)
	le.PutUint64(b[footerBytesOff:], uint64(f.bytes))
	le.PutUint32(b[footerFramesOff:], f.frames)
	le.PutUint32(b[footerCRCOff:], crcWith(seed, b[:footerCRCOff]))
	return b
}

// parseFooter parses the footer in b, if b begins with one of this segment.
func parseFooter(b []byte, segment uint64, seed uint32) (f footer, ok bool) {
	le := binary.LittleEndian
	if len(b) < footerLen || b[frameTypeOff] != typeFooter || le.Uint64(b[frameSegmentOff:]) != segment ||
		le.Uint32(b[footerCRCOff:]) != crcWith(seed, b[:footerCRCOff]) {
		return f, false
	}
	return footer{
		segment: segment,
		last:    lsn.LSN(le.Uint64(b[footerLastOff:])),
		durable: lsn.LSN(le.Uint64(b[footerDurableOff:])),
		chain:   le.Uint64(b[footerChainOff:]),
		bytes:   int64(le.Uint64(b[footerBytesOff:])),
		frames:  le.Uint32(b[footerFramesOff:]),
	}, true
}
