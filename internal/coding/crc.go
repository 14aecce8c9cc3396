package coding

import "hash/crc32"

// castagnoli is CRC-32C: polynomial 82F63B78 reflected, register all ones at the start, inverted
// at the end. hash/crc32 uses the processor's instruction for it.
var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// CRC32C returns the CRC-32C of b, not masked. "123456789" gives e3069283. Source: cfile spec §2.3.
func CRC32C(b []byte) uint32 { return crc32.Update(0, castagnoli, b) }

// UpdateCRC32C continues crc, the CRC-32C of earlier bytes, with b; 0 is the CRC-32C of no bytes:
// UpdateCRC32C(CRC32C(a), b) is the CRC of a followed by b.
func UpdateCRC32C(crc uint32, b []byte) uint32 { return crc32.Update(crc, castagnoli, b) }
