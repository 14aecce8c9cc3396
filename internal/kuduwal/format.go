package kuduwal

import (
	"bytes"
	"encoding/binary"

	"github.com/oribi-db/oribi/internal/coding"
)

// A segment of the log, file wal-NNNNNNNNN. Source: tablet spec §18.2.
//
//	width  field
//	8      magic: "kudulogf"
//	4      n, length of the header message, at most 8 MiB
//	n      LogSegmentHeaderPB
//	then batches of entries, each:
//	4      c, length of the payload as stored
//	4      u, length of the payload, at least 1; absent if the header has deprecated_major_version
//	4      CRC32C of the payload as stored
//	4      CRC32C of the fields of the batch before this one
//	c      payload: LogEntryBatchPB, compressed as the header says
//	then, if the segment was closed:
//	m      LogSegmentFooterPB
//	8      magic: "closedls"
//	4      m, length of the footer message, at most 8 MiB
//
// Zeros may follow the last batch of a segment that was not closed.
//
// The payload "kudu", stored as it is:
//
//	04 00 00 00 04 00 00 00 9c de e1 47 fa 31 54 d1 6b 75 64 75
//
// The footer of 2 entries that replicate index 1, closed at 1700000000000000:
//
//	08 02 10 01 18 01 20 80 80 f9 c0 c1 c4 82 03 63 6c 6f 73 65 64 6c 73 0f 00 00 00
const (
	headMagic = "kudulogf" // file format: never change
	footMagic = "closedls" // file format: never change

	lengthLen     = 4                          // file format: never change
	headLen       = len(headMagic) + lengthLen // before the header message
	tailLen       = len(footMagic) + lengthLen // after the footer message
	batchLen      = 16                         // file format: never change
	oldBatchLen   = 12                         // file format: never change
	maxMessageLen = 8 << 20                    // of header and footer; file format: never change
)

// batchHeader precedes a batch of entries.
type batchHeader struct {
	stored  uint32 // length of the payload as stored
	payload uint32 // length of the payload
	crc     uint32 // of the payload as stored
}

// parseBatchHeader reads the header of a batch, which has width bytes. It reports whether its
// checksum is right and its lengths are not 0.
func parseBatchHeader(b []byte, width int) (h batchHeader, ok bool) {
	word := binary.LittleEndian.Uint32
	h.stored, h.payload = word(b), word(b)
	if width == batchLen {
		h.payload = word(b[4:])
	}
	h.crc = word(b[width-8:])
	sum := width - 4
	return h, word(b[sum:]) == coding.CRC32C(b[:sum]) && h.stored > 0 && h.payload > 0
}

// zeros reports whether b has no other bytes.
func zeros(b []byte) bool { return len(bytes.TrimLeft(b, "\x00")) == 0 }
