package wal

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/lsn"
)

// Header of a segment, at byte 0.
//
//	offset  width  field     meaning
//	0       8      magic     "oribiwal"
//	8       4      version   1
//	12      4      must      flags a reader must know or refuse; none yet
//	16      4      may       flags a reader may ignore; none yet
//	20      16     instance  the store's
//	36      8      number    of this segment, as in its file's name; 1 is the first
//	44      8      first     LSN of its first frame, or of the next record if it has no frames
//	52      8      prev      number of the predecessor; 0 = none
//	60      8      length    of the predecessor, footer included, bytes
//	68      8      chain     hash of the predecessor, as in its footer
//	76      4      crc       CRC32C of bytes 0–75
//
// Segment 2 of instance 00 01 … 0f, from LSN 8, after a segment of 4,096 bytes with chain hash
// 1122334455667788:
//
//	6f 72 69 62 69 77 61 6c  01 00 00 00 00 00 00 00  00 00 00 00
//	00 01 02 03 04 05 06 07  08 09 0a 0b 0c 0d 0e 0f
//	02 00 00 00 00 00 00 00  08 00 00 00 00 00 00 00
//	01 00 00 00 00 00 00 00  00 10 00 00 00 00 00 00  88 77 66 55 44 33 22 11
//	ca e7 86 bd
const (
	headerMagic       = "oribiwal" // file format: never change
	headerVersion     = 1
	headerVersionOff  = 8
	headerMustOff     = 12
	headerMayOff      = 16
	headerInstanceOff = 20
	headerNumberOff   = 36
	headerFirstOff    = 44
	headerPrevOff     = 52
	headerLengthOff   = 60
	headerChainOff    = 68
	headerCRCOff      = 76
	headerLen         = 80 // file format: never change
)

// header is a segment's header.
type header struct {
	instance [16]byte
	number   uint64
	first    lsn.LSN
	prev     link
}

// link has the fields of a segment header that describe the predecessor.
type link struct {
	number uint64
	length int64
	chain  uint64
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func crc32c(b []byte) uint32 { return crc32.Checksum(b, castagnoli) }

func (h header) encode() []byte {
	le := binary.LittleEndian
	b := make([]byte, headerLen)
	copy(b, headerMagic)
	le.PutUint32(b[headerVersionOff:], headerVersion)
	copy(b[headerInstanceOff:], h.instance[:])
	le.PutUint64(b[headerNumberOff:], h.number)
	le.PutUint64(b[headerFirstOff:], uint64(h.first))
	le.PutUint64(b[headerPrevOff:], h.prev.number)
	le.PutUint64(b[headerLengthOff:], uint64(h.prev.length))
	le.PutUint64(b[headerChainOff:], h.prev.chain)
	le.PutUint32(b[headerCRCOff:], crc32c(b[:headerCRCOff]))
	return b
}

// parseHeader parses the header in b. problem says why there is none, which a crash during the
// creation of a segment may cause. An error means a good header that this program or this log
// cannot use.
func parseHeader(b []byte) (h header, problem string, err error) {
	le := binary.LittleEndian
	switch {
	case len(b) < headerLen:
		return h, fmt.Sprintf("%d bytes, too short for a segment header", len(b)), nil
	case string(b[:headerVersionOff]) != headerMagic:
		return h, fmt.Sprintf("magic % x", b[:headerVersionOff]), nil
	case le.Uint32(b[headerCRCOff:]) != crc32c(b[:headerCRCOff]):
		return h, fmt.Sprintf("header crc %08x, want %08x", le.Uint32(b[headerCRCOff:]), crc32c(b[:headerCRCOff])), nil
	}
	if v := le.Uint32(b[headerVersionOff:]); v != headerVersion {
		return h, "", fault.Unsupportedf("version %d of the log format", v)
	}
	if f := le.Uint32(b[headerMustOff:]); f != 0 {
		return h, "", fault.Unsupportedf("log flags %#x", f)
	}
	copy(h.instance[:], b[headerInstanceOff:])
	h.number = le.Uint64(b[headerNumberOff:])
	h.first = lsn.LSN(le.Uint64(b[headerFirstOff:]))
	h.prev = link{le.Uint64(b[headerPrevOff:]), int64(le.Uint64(b[headerLengthOff:])), le.Uint64(b[headerChainOff:])}
	if h.number == 0 || h.number > maxNumber || h.prev.number != h.number-1 || h.first == 0 {
		return h, "", fault.Corruptf("header of segment %d: first LSN %d, predecessor %d", h.number,
			h.first, h.prev.number)
	}
	return h, "", nil
}

const (
	segmentSuffix = ".wal"
	tornSuffix    = ".torn"
	numberDigits  = 12
)

func segmentName(number uint64) string {
	return fmt.Sprintf("%0*d%s", numberDigits, number, segmentSuffix)
}

func tornName(number uint64) string {
	return fmt.Sprintf("%0*d%s", numberDigits, number, tornSuffix)
}

// TornName is the name of the file in which Repair keeps the torn tail of a segment.
func TornName(segment string) string { return strings.TrimSuffix(segment, segmentSuffix) + tornSuffix }

// parseName returns the number of a segment's file; ok is false for other names.
func parseName(name string) (number uint64, ok bool) {
	digits, ok := strings.CutSuffix(name, segmentSuffix)
	if !ok || len(digits) != numberDigits || strings.Trim(digits, "0123456789") != "" {
		return 0, false
	}
	number, err := strconv.ParseUint(digits, 10, 64)
	return number, err == nil && number > 0
}

// IsName reports whether a file of a log may have this name.
func IsName(name string) bool {
	if digits, ok := strings.CutSuffix(name, tornSuffix); ok {
		name = digits + segmentSuffix
	}
	_, ok := parseName(name)
	return ok
}

func (o *Options) path(name string) string { return filepath.Join(o.Dir, name) }
