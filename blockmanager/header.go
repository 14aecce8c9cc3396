package blockmanager

import (
	"encoding/binary"

	"github.com/oribi-db/oribi/internal/coding"
	"github.com/oribi-db/oribi/internal/fault"
)

// Header page of a container, the first headerLen bytes of the file.
//
//	offset  width  field       meaning
//	0       8      magic       "oribicnt"
//	8       2      version     headerVersion
//	10      2                  zero
//	12      4      must know   a reader refuses bits it does not know; none is defined
//	16      4      may ignore  none is defined
//	20      16     instance    the store's
//	36      16     container   its id; the file is named by it
//	52      4040               zero
//	4092    4      crc         CRC-32C of the 4092 bytes before
//
// Container 0a0a…0a of instance 0101…01:
//
//	6f72696269636e74 0100 0000 00000000 00000000 01010101010101010101010101010101
//	0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a, 4040 times 00, 80d1b61a
//
// If the block size is above headerLen, zeros follow up to the first block.
const (
	headerMagic        = "oribicnt" // file format: never change
	headerVersionOff   = 8          // file format: never change
	headerMustOff      = 12         // file format: never change
	headerMayOff       = 16         // file format: never change
	headerInstanceOff  = 20         // file format: never change
	headerContainerOff = 36         // file format: never change
	headerZeroOff      = 52         // file format: never change
	headerCRCOff       = 4092       // file format: never change
	headerLen          = 4096       // file format: never change

	headerVersion = 1
)

func encodeHeader(instance [16]byte, id containerID) []byte {
	p := make([]byte, headerLen)
	copy(p, headerMagic)
	binary.LittleEndian.PutUint16(p[headerVersionOff:], headerVersion)
	copy(p[headerInstanceOff:], instance[:])
	copy(p[headerContainerOff:], id[:])
	binary.LittleEndian.PutUint32(p[headerCRCOff:], coding.CRC32C(p[:headerCRCOff]))
	return p
}

// checkHeader verifies a page of headerLen bytes.
func checkHeader(p []byte, instance [16]byte, id containerID) error {
	if crc, want := coding.CRC32C(p[:headerCRCOff]), binary.LittleEndian.Uint32(p[headerCRCOff:]); crc != want {
		return fault.Corruptf("header page: crc %08x, want %08x", crc, want)
	}
	if string(p[:len(headerMagic)]) != headerMagic {
		return fault.Corruptf("header page: wrong magic")
	}
	if v := binary.LittleEndian.Uint16(p[headerVersionOff:]); v != headerVersion {
		return fault.Unsupportedf("header page: version %d, known is %d", v, headerVersion)
	}
	if f := binary.LittleEndian.Uint32(p[headerMustOff:]); f != 0 {
		return fault.Unsupportedf("header page: needs features %#x", f)
	}
	if [16]byte(p[headerInstanceOff:]) != instance {
		return fault.Corruptf("header page: belongs to store %x, not %x", p[headerInstanceOff:headerInstanceOff+16], instance)
	}
	if containerID(p[headerContainerOff:headerZeroOff]) != id {
		return fault.Corruptf("header page: belongs to container %x", p[headerContainerOff:headerZeroOff])
	}
	if !allZero(p[headerZeroOff:headerCRCOff]) {
		return fault.Corruptf("header page: unused bytes are not zero")
	}
	return nil
}
