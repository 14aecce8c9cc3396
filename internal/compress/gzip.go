package compress

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"

	"github.com/oribi-db/oribi/internal/fault"
)

// Gzip member. Integers are little-endian. Source: RFC 1952.
//
//	width  field    meaning
//	2      magic    1f 8b
//	1      method   8
//	1      flags    which of the optional fields exist
//	6      …        time, hint of the compressor, system
//	2, …   extra    optional: length and bytes
//	…, 1   name     optional: text and a zero
//	…, 1   comment  optional: text and a zero
//	2      crc      optional: low half of the CRC-32 of all before it
//	…      stream   DEFLATE
//	4      crc      CRC-32 of the unpacked bytes
//	4      length   of the unpacked bytes, modulo 2^32
//
// No bytes at all: 1f 8b 08 00  00 00 00 00 00 00  03 00  00 00 00 00  00 00 00 00
const (
	gzipHeaderLen  = 10
	gzipTrailerLen = 8
)

// Gunzip unpacks the gzip member src into dst, which must have the exact length of the result and
// not overlap src. No bytes may follow the member. On an error, fault.ErrCorrupt, dst contains
// anything. Safe for concurrent use.
func Gunzip(dst, src []byte) error {
	stream, err := gzipStream(src)
	if err != nil {
		return err
	}
	rest, err := inflate(dst, stream)
	switch {
	case err != nil:
		return err
	case len(rest) < gzipTrailerLen:
		return errGzipShort
	case len(rest) > gzipTrailerLen:
		return fault.Corruptf("compress: gzip: %d bytes after the member", len(rest)-gzipTrailerLen)
	}
	if crc, want := crc32.ChecksumIEEE(dst), binary.LittleEndian.Uint32(rest); crc != want {
		return fault.Corruptf("compress: gzip: crc %08x, want %08x", crc, want)
	}
	if n := binary.LittleEndian.Uint32(rest[4:]); n != uint32(len(dst)) {
		return fault.Corruptf("compress: gzip: %d bytes, its trailer says %d", len(dst), n)
	}
	return nil
}

var errGzipShort = fault.Corruptf("compress: gzip: the member is cut off")

// gzipStream returns what follows the header of a member.
func gzipStream(src []byte) ([]byte, error) {
	const hasCRC, hasExtra, hasName, hasComment = 1 << 1, 1 << 2, 1 << 3, 1 << 4
	if len(src) < gzipHeaderLen {
		return nil, errGzipShort
	}
	if src[0] != 0x1f || src[1] != 0x8b || src[2] != 8 {
		return nil, fault.Corruptf("compress: gzip: a member cannot begin with % x", src[:3])
	}
	flags, rest := src[3], src[gzipHeaderLen:]
	if flags&hasExtra != 0 {
		if len(rest) < 2 {
			return nil, errGzipShort
		}
		n := 2 + int(binary.LittleEndian.Uint16(rest))
		if len(rest) < n {
			return nil, errGzipShort
		}
		rest = rest[n:]
	}
	for _, flag := range [...]byte{hasName, hasComment} {
		if flags&flag != 0 {
			n := bytes.IndexByte(rest, 0)
			if n < 0 {
				return nil, errGzipShort
			}
			rest = rest[n+1:]
		}
	}
	if flags&hasCRC != 0 {
		if len(rest) < 2 {
			return nil, errGzipShort
		}
		if crc := uint16(crc32.ChecksumIEEE(src[:len(src)-len(rest)])); crc != binary.LittleEndian.Uint16(rest) {
			return nil, fault.Corruptf("compress: gzip: the checksum of the header is wrong")
		}
		rest = rest[2:]
	}
	return rest, nil
}
