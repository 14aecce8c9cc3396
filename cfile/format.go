package cfile

import (
	"encoding/binary"
	"fmt"

	"google.golang.org/protobuf/proto"

	"github.com/oribi-db/oribi/internal/kudupb"
)

// Header, at the start of the file. Source: cfile spec §2.1.
//
//	offset  width   field     meaning
//	0       8       magic     "kuducfil" in version 1, "kuducfl2" in version 2
//	8       4       length    bytes of the message, at most 65536
//	12      length  message   CFileHeaderPB: metadata pairs
//	…       4       checksum  CRC-32C of all bytes before it; only where the footer's feature bit 0 is set
//
// Version 2, no metadata: 6b 75 64 75 63 66 6c 32 00 00 00 00 02 94 3a d3
//
// Footer, at the end of the file.
//
//	offset  width   field     meaning
//	0       4       checksum  CRC-32C of all bytes after it; only with feature bit 0
//	…       length  message   CFileFooterPB
//	…       8       magic     as in the header
//	…       4       length    bytes of the message, at most 65536
//
// INT32, bitshuffle, 3 values, root of the ordinal index 23 bytes at 57: 3b 54 d2 49 08 05 10 06 18
// 03 22 06 0a 04 08 39 10 17 30 01 40 00 50 01 6b 75 64 75 63 66 6c 32 14 00 00 00
const (
	magicV1 = "kuducfil" // file format: never change
	magicV2 = "kuducfl2" // file format: never change

	magicLen    = 8
	preludeLen  = magicLen + 4 // magic and length: the start of a header, the end of a footer
	checksumLen = 4
	maxMessage  = 65536 // file format: never change

	// Feature bits that a reader must know.
	featureChecksum = 1 << 0 // file format: never change
	featureArray    = 1 << 1 // file format: never change
	featuresKnown   = featureChecksum | featureArray
)

// magicOf returns the magic of a version, 1 or 2.
func magicOf(version int) string {
	if version == 1 {
		return magicV1
	}
	return magicV2
}

// versionOf returns the version that a magic identifies, or 0 if it is not a cfile's magic.
func versionOf(magic []byte) int {
	switch string(magic) {
	case magicV1:
		return 1
	case magicV2:
		return 2
	}
	return 0
}

// Pair is a key and a value in the header or the footer of a file.
type Pair struct {
	Key   string
	Value []byte
}

// Keys of the pairs that this package interprets.
const (
	// DeltaStatsKey marks delta files, whose value index need not ascend within a row. Package
	// delta defines the value.
	DeltaStatsKey = "deltafilestats" // file format: never change
	// zoneMapKey is the key of the pair whose value is a BlockPointerPB to the zone map.
	zoneMapKey = "oribi.zonemap" // file format: never change
)

// BlockPointer is the position and size of a cblock in its file. Size includes the checksum, if the
// file has checksums.
type BlockPointer struct {
	Offset int64
	Size   int32
}

func (p BlockPointer) end() int64 { return p.Offset + int64(p.Size) }

func (p BlockPointer) String() string { return fmt.Sprintf("%d bytes at byte %d", p.Size, p.Offset) }

func (p BlockPointer) message() *kudupb.BlockPointerPB {
	return &kudupb.BlockPointerPB{Offset: &p.Offset, Size: &p.Size}
}

// pointerOf converts a message to a pointer. For nil it returns the zero pointer, which means no
// cblock.
func pointerOf(m *kudupb.BlockPointerPB) BlockPointer {
	return BlockPointer{m.GetOffset(), m.GetSize()}
}

func pairMessages(pairs []Pair) []*kudupb.FileMetadataPairPB {
	out := make([]*kudupb.FileMetadataPairPB, len(pairs))
	for i := range pairs {
		// nil would be left out, and the field is required.
		out[i] = &kudupb.FileMetadataPairPB{Key: &pairs[i].Key, Value: append([]byte{}, pairs[i].Value...)}
	}
	return out
}

// appendHeader appends a header of version 2. Source: cfile spec §2.1, §2.7.
func appendHeader(dst []byte, metadata []Pair, checksums bool) ([]byte, error) {
	message, err := proto.Marshal(&kudupb.CFileHeaderPB{Metadata: pairMessages(metadata)})
	if err != nil {
		return dst, fmt.Errorf("cfile: header: %w", err)
	}
	if len(message) > maxMessage {
		return dst, fmt.Errorf("cfile: header of %d bytes, at most %d", len(message), maxMessage)
	}
	start := len(dst)
	dst = append(dst, magicV2...)
	dst = binary.LittleEndian.AppendUint32(dst, uint32(len(message)))
	dst = append(dst, message...)
	if checksums {
		dst = appendCRC(dst, start)
	}
	return dst, nil
}

// appendFooter appends a footer of version 2. Source: cfile spec §2.1, §2.4.
func appendFooter(dst []byte, footer *kudupb.CFileFooterPB, checksums bool) ([]byte, error) {
	message, err := proto.Marshal(footer)
	if err != nil {
		return dst, fmt.Errorf("cfile: footer: %w", err)
	}
	if len(message) > maxMessage {
		return dst, fmt.Errorf("cfile: footer of %d bytes, at most %d", len(message), maxMessage)
	}
	start := len(dst)
	if checksums {
		dst = append(dst, 0, 0, 0, 0)
	}
	covered := len(dst)
	dst = append(dst, message...)
	dst = append(dst, magicV2...)
	dst = binary.LittleEndian.AppendUint32(dst, uint32(len(message)))
	if checksums {
		putCRC(dst[start:], dst[covered:])
	}
	return dst, nil
}
