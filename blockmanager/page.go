package blockmanager

import (
	"encoding/binary"

	"github.com/oribi-db/oribi/internal/coding"
	"github.com/oribi-db/oribi/internal/fault"
)

// What the slots of ANCHOR and the header pages of containers have in common.
//
//	offset  width  field       meaning
//	0       8      magic
//	8       2      version
//	12      4      must know   a reader refuses bits it does not know; none is defined
//	16      4      may ignore  none is defined
//	20      16     instance    the store's
//	4092    4      crc         CRC-32C of the 4092 bytes before
const (
	pageVersionOff  = 8    // file format: never change
	pageMustOff     = 12   // file format: never change
	pageMayOff      = 16   // file format: never change
	pageInstanceOff = 20   // file format: never change
	pageInstanceEnd = 36   // file format: never change
	pageCRCOff      = 4092 // file format: never change
	pageLen         = 4096 // file format: never change
)

// newPage returns a page that lacks its own fields and the checksum.
func newPage(magic string, version uint16, instance [16]byte) []byte {
	p := make([]byte, pageLen)
	copy(p, magic)
	binary.LittleEndian.PutUint16(p[pageVersionOff:], version)
	copy(p[pageInstanceOff:], instance[:])
	return p
}

// sealPage sets the checksum of a page.
func sealPage(p []byte) []byte {
	binary.LittleEndian.PutUint32(p[pageCRCOff:], coding.CRC32C(p[:pageCRCOff]))
	return p
}

// checkPage verifies what pages have in common. p has pageLen bytes.
func checkPage(p []byte, magic string, version uint16, instance [16]byte) error {
	if crc, want := coding.CRC32C(p[:pageCRCOff]), binary.LittleEndian.Uint32(p[pageCRCOff:]); crc != want {
		return fault.Corruptf("crc %08x, want %08x", crc, want)
	}
	if string(p[:len(magic)]) != magic {
		return fault.Corruptf("wrong magic")
	}
	if v := binary.LittleEndian.Uint16(p[pageVersionOff:]); v != version {
		return fault.Unsupportedf("version %d, known is %d", v, version)
	}
	if f := binary.LittleEndian.Uint32(p[pageMustOff:]); f != 0 {
		return fault.Unsupportedf("needs features %#x", f)
	}
	if id := [16]byte(p[pageInstanceOff:]); id != instance {
		return fault.Corruptf("belongs to store %x, not %x", id, instance)
	}
	return nil
}
