package blockmanager

import (
	"fmt"

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
	headerMagic        = "oribicnt"      // file format: never change
	headerContainerOff = pageInstanceEnd // file format: never change
	headerZeroOff      = 52              // file format: never change
	headerLen          = pageLen         // file format: never change

	headerVersion = 1
)

func encodeHeader(instance [16]byte, id containerID) []byte {
	p := newPage(headerMagic, headerVersion, instance)
	copy(p[headerContainerOff:], id[:])
	return sealPage(p)
}

// checkHeader verifies a page of headerLen bytes.
func checkHeader(p []byte, instance [16]byte, id containerID) error {
	if err := checkPage(p, headerMagic, headerVersion, instance); err != nil {
		return fmt.Errorf("header page: %w", err)
	}
	if containerID(p[headerContainerOff:headerZeroOff]) != id {
		return fault.Corruptf("header page: belongs to container %x", p[headerContainerOff:headerZeroOff])
	}
	if !allZero(p[headerZeroOff:pageCRCOff]) {
		return fault.Corruptf("header page: unused bytes are not zero")
	}
	return nil
}
