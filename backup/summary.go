package backup

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/oribi-db/oribi/internal/coding"
	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/mvcc"
)

// The object "format".
//
//	offset  width  field    meaning
//	0       8      magic    "oribirep"
//	8       4      version  1
//	12      4      crc      CRC-32C of all before
//
// Version 1: 6f 72 69 62 69 72 65 70 01 00 00 00 d4 8d ee 1c
const (
	formatMagic   = "oribirep" // file format: never change
	formatVersion = 1          // file format
	formatLen     = 16         // file format: never change
)

// The object of a backup in "backups/", and the summary that Backups lists.
//
//	offset  width  field      meaning
//	0       8      magic      "oribibak"
//	8       4      version    1
//	12      4                 zero
//	16      8      number     of the backup, as in the object's name
//	24      8      time       when it began, microseconds since 1970
//	32      8      timestamp  the backup has all write batches up to it
//	40      16     uuid       of the store
//	56      8      bytes      of its blocks and its manifest
//	64      8      new bytes  of the objects that were added for it, the manifest included
//	72      8      length     of the manifest, bytes
//	80      32     hash       SHA-256 of the manifest
//	112     4      crc        CRC-32C of all before
//
// Every version begins with the magic and the version, and ends with such a CRC.
//
// Backup 3 of store 00…0f, begun at 1700000000000000, timestamp 5, 1000 bytes, 100 of them new,
// with a manifest of 60 bytes and hash 01 00…00:
//
//	6f7269626962616b 01000000 00000000 0300000000000000 00401e18240a0600 0500000000000000
//	000102030405060708090a0b0c0d0e0f e803000000000000 6400000000000000 3c00000000000000
//	01, 31 times 00, 5a05be24
const (
	summaryMagic   = "oribibak" // file format: never change
	summaryVersion = 1          // file format
	summaryLen     = 116        // file format: never change
)

const (
	formatName      = "format"
	objectsPrefix   = "objects/"
	manifestsPrefix = "manifests/"
	backupsPrefix   = "backups/"
	numberDigits    = 10
)

// hash is a SHA-256.
type hash [32]byte

func objectName(h hash) string {
	digits := hex.EncodeToString(h[:])
	return objectsPrefix + digits[:2] + "/" + digits
}

// parseObject returns the hash in the name of an object in "objects/".
func parseObject(name string) (h hash, ok bool) {
	digits := name[max(0, len(name)-2*len(h)):]
	_, err := hex.Decode(h[:], []byte(digits))
	return h, err == nil && objectName(h) == name
}

func numbered(prefix string, n uint64) string { return fmt.Sprintf("%s%0*d", prefix, numberDigits, n) }

// parseNumber returns the number in the name of a backup or manifest.
func parseNumber(prefix, name string) (n uint64, ok bool) {
	digits := strings.TrimPrefix(name, prefix)
	n, err := strconv.ParseUint(digits, 10, 64)
	return n, err == nil && n > 0 && numbered(prefix, n) == name
}

func encodeFormat() []byte {
	b := binary.LittleEndian.AppendUint32([]byte(formatMagic), formatVersion)
	return binary.LittleEndian.AppendUint32(b, coding.CRC32C(b))
}

func checkFormat(b []byte) error {
	switch {
	case len(b) < formatLen || string(b[:8]) != formatMagic:
		return fault.Corruptf("%s: not the format of a repository", formatName)
	case coding.CRC32C(b[:formatLen-4]) != binary.LittleEndian.Uint32(b[formatLen-4:]) || len(b) != formatLen:
		return fault.Corruptf("%s: checksum", formatName)
	}
	if v := binary.LittleEndian.Uint32(b[8:]); v != formatVersion {
		return fault.Unsupportedf("%s: version %d, this program knows %d", formatName, v, formatVersion)
	}
	return nil
}

// Backup describes a backup.
type Backup struct {
	Number    uint64         // from 1, never used again in its repository
	Time      time.Time      // when it began, in UTC
	Timestamp mvcc.Timestamp // it has all write batches up to it, and no later one
	Store     string         // UUID of the store, 32 hex digits
	Bytes     int64          // of its blocks, and of its metadata and log
	NewBytes  int64          // of Bytes, what was added to the repository for it

	manifestBytes int64
	manifest      hash
}

func (s *Backup) encode() ([]byte, error) {
	uuid, err := parseUUID(s.Store)
	if err != nil {
		return nil, err
	}
	le := binary.LittleEndian
	b := append([]byte(summaryMagic), summaryVersion, 0, 0, 0, 0, 0, 0, 0)
	b = le.AppendUint64(b, s.Number)
	b = le.AppendUint64(b, uint64(s.Time.UnixMicro()))
	b = le.AppendUint64(b, uint64(s.Timestamp))
	b = append(b, uuid[:]...)
	for _, n := range []int64{s.Bytes, s.NewBytes, s.manifestBytes} {
		b = le.AppendUint64(b, uint64(n))
	}
	b = append(b, s.manifest[:]...)
	return le.AppendUint32(b, coding.CRC32C(b)), nil
}

func parseUUID(digits string) (uuid [16]byte, err error) {
	if len(digits) != 2*len(uuid) {
		return uuid, fault.Corruptf("uuid %.40q", digits)
	}
	_, err = hex.Decode(uuid[:], []byte(digits))
	return uuid, err
}

func decodeSummary(name string, b []byte) (s Backup, err error) {
	le := binary.LittleEndian
	switch {
	case len(b) < summaryLen || string(b[:8]) != summaryMagic:
		return s, fault.Corruptf("%s: not a backup", name)
	case coding.CRC32C(b[:len(b)-4]) != le.Uint32(b[len(b)-4:]): // in all versions
		return s, fault.Corruptf("%s: checksum", name)
	case le.Uint32(b[8:]) != summaryVersion:
		return s, fault.Unsupportedf("%s: version %d, this program knows %d", name, le.Uint32(b[8:]), summaryVersion)
	case len(b) != summaryLen || le.Uint32(b[12:]) != 0:
		return s, fault.Corruptf("%s: %d bytes, want %d", name, len(b), summaryLen)
	}
	s = Backup{Number: le.Uint64(b[16:]), Time: time.UnixMicro(int64(le.Uint64(b[24:]))).UTC(),
		Timestamp: mvcc.Timestamp(le.Uint64(b[32:])),
		Store:     hex.EncodeToString(b[40:56]), Bytes: int64(le.Uint64(b[56:])), NewBytes: int64(le.Uint64(b[64:])),
		manifestBytes: int64(le.Uint64(b[72:])),
		manifest:      hash(b[80:112])}
	if numbered(backupsPrefix, s.Number) != name {
		return s, fault.Corruptf("%s: is backup %d", name, s.Number)
	}
	return s, nil
}
