package blockmanager

import (
	"encoding/binary"
	"encoding/hex"

	"github.com/oribi-db/oribi/block"
	"github.com/oribi-db/oribi/internal/fault"
	"github.com/zeebo/xxh3"
)

// Keys of the metadata rows. The first byte is the kind. Numbers in keys are big-endian, so that
// rows of a kind sort by them; numbers in values are little-endian.
//
//	key                                     value
//	'b' id(8)                               block, blockValueLen
//	'c' container(16)                       container, containerValueLen
//	'd' container(16) offset(8)             length(8) of a dead block whose space is not freed yet
//	'f'                                     format, formatValueLen
//	'i'                                     id mark(8): every id handed out is below it
//	'l'                                     log_start(8): lowest LSN that replay on this state needs
//	'r'                                     root, rootValueLen; alone outside the set hash
//	'u' caller's key                        caller's value
//
// The id mark 1025:                        key 69, value 01 04 00 00 00 00 00 00
// 100 dead bytes at 8192 of container 0a0a…0a:
// key 64 0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a 00 00 00 00 00 00 20 00, value 64 00 00 00 00 00 00 00
const (
	kindBlock     = 'b' // file format: never change
	kindContainer = 'c' // file format: never change
	kindDead      = 'd' // file format: never change
	kindFormat    = 'f' // file format: never change
	kindMark      = 'i' // file format: never change
	kindLogStart  = 'l' // file format: never change
	kindRoot      = 'r' // file format: never change
	kindUser      = 'u' // file format: never change

	blockKeyLen     = 9  // file format: never change
	containerKeyLen = 17 // file format: never change
	deadKeyLen      = 25 // file format: never change
	numberValueLen  = 8  // file format: never change
)

// Value of a block row.
//
//	offset  width  field      meaning
//	0       16     container  container that holds the block
//	16      8      offset     first byte, a multiple of the block size, not below the header page
//	24      8      length     in bytes, may be 0
//	32      8      sum        xxh3-64 of all its bytes
//	40      8      identity   xxh3-64 of instance(16), id(8), container(16), offset(8), length(8) and
//	                          the last footerProbe bytes of the block, or all if it is shorter
//
// Block 7 (key 62 00 00 00 00 00 00 00 07) of the 5 bytes "oribi" at 8192 in container 0a0a…0a of
// instance 0101…01:
//
//	0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a 0020000000000000 0500000000000000
//	92a3ce29f2e5b444 4bd99af2aa8bf1d7
const (
	blockContainerOff = 0   // file format: never change
	blockOffsetOff    = 16  // file format: never change
	blockLengthOff    = 24  // file format: never change
	blockSumOff       = 32  // file format: never change
	blockIdentityOff  = 40  // file format: never change
	blockValueLen     = 48  // file format: never change
	footerProbe       = 512 // file format: never change
)

// Value of a container row.
//
//	offset  width  field  meaning
//	0       1      state  1 takes more blocks, 2 is full, 3 holds no block and will be unlinked
//	1       7             zero
//	8       8      next   end of its last committed block, rounded up to the block size; never falls
//
// A full container that ends at 1 GiB: 02 00 00 00 00 00 00 00 00 00 00 40 00 00 00 00
const (
	containerStateOff = 0  // file format: never change
	containerNextOff  = 8  // file format: never change
	containerValueLen = 16 // file format: never change

	containerOpen = 1 // file format: never change
	containerFull = 2 // file format: never change
	containerDead = 3 // file format: never change
)

// Value of the format row.
//
//	offset  width  field       meaning
//	0       2      version     formatVersion
//	2       2                  zero
//	4       4      must know   a reader refuses bits it does not know; none is defined
//	8       4      may ignore  none is defined
//	12      4      block size  of the file system, in bytes
//	16      16     instance    the store's
//
// Version 1, 4096, instance 0101…01:
// 0100 0000 00000000 00000000 00100000 01010101010101010101010101010101
const (
	formatVersionOff   = 0  // file format: never change
	formatMustOff      = 4  // file format: never change
	formatMayOff       = 8  // file format: never change
	formatBlockSizeOff = 12 // file format: never change
	formatInstanceOff  = 16 // file format: never change
	formatValueLen     = 32 // file format: never change

	formatVersion = 1
)

// Value of the root row, written by every commit.
//
//	offset  width  field  meaning
//	0       8      epoch  number of the commit, from 1; gaps are normal
//	8       16     hash   set hash of all other rows: low lane, high lane
//	24      8      check  xxh3-64 of the 24 bytes before
//
// Epoch 2 of an empty set: 0200000000000000 00000000000000000000000000000000 3d1eb085abc4290b
const (
	rootEpochOff = 0  // file format: never change
	rootHashOff  = 8  // file format: never change
	rootCheckOff = 24 // file format: never change
	rootValueLen = 32 // file format: never change
)

// Bounds that keep sums of offsets and ids from overflowing, far above the size of any disk.
const (
	maxContainer = 1 << 56
	maxMark      = 1 << 62
)

type containerID [16]byte

func (id containerID) String() string { return hex.EncodeToString(id[:]) }

type blockRow struct {
	container     containerID
	off, length   int64
	sum, identity uint64
}

type containerRow struct {
	state byte
	next  int64
}

// endsWell reports whether a container with blocks of such a size can end there.
func (r containerRow) endsWell(blockSize int64) bool {
	return r.next >= headerLen && r.next%blockSize == 0 && r.next <= maxContainer
}

// contains reports whether a block or a dead range can be there.
func (r containerRow) contains(off, length, blockSize int64) bool {
	return off >= alignUp(headerLen, blockSize) && off%blockSize == 0 && length >= 0 && off <= r.next &&
		length <= r.next-off
}

type formatRow struct {
	blockSize int64
	instance  [16]byte
}

// root is epoch and set hash of one metadata state.
type root struct {
	epoch uint64
	hash  setHash
}

func blockKey(id block.ID) []byte {
	return binary.BigEndian.AppendUint64([]byte{kindBlock}, uint64(id))
}

func containerKey(id containerID) []byte { return append([]byte{kindContainer}, id[:]...) }

func deadKey(id containerID, off int64) []byte {
	return binary.BigEndian.AppendUint64(append([]byte{kindDead}, id[:]...), uint64(off))
}

func userKey(key []byte) []byte { return append([]byte{kindUser}, key...) }

func numberValue(n uint64) []byte { return binary.LittleEndian.AppendUint64(nil, n) }

func (r *blockRow) value() []byte {
	v := append(make([]byte, 0, blockValueLen), r.container[:]...)
	v = binary.LittleEndian.AppendUint64(v, uint64(r.off))
	v = binary.LittleEndian.AppendUint64(v, uint64(r.length))
	v = binary.LittleEndian.AppendUint64(v, r.sum)
	return binary.LittleEndian.AppendUint64(v, r.identity)
}

func (r containerRow) value() []byte {
	v := make([]byte, containerValueLen)
	v[containerStateOff] = r.state
	binary.LittleEndian.PutUint64(v[containerNextOff:], uint64(r.next))
	return v
}

func (r formatRow) value() []byte {
	v := make([]byte, formatValueLen)
	binary.LittleEndian.PutUint16(v[formatVersionOff:], formatVersion)
	binary.LittleEndian.PutUint32(v[formatBlockSizeOff:], uint32(r.blockSize))
	copy(v[formatInstanceOff:], r.instance[:])
	return v
}

func (r root) value() []byte {
	v := binary.LittleEndian.AppendUint64(make([]byte, 0, rootValueLen), r.epoch)
	v = binary.LittleEndian.AppendUint64(v, r.hash.lo)
	v = binary.LittleEndian.AppendUint64(v, r.hash.hi)
	return binary.LittleEndian.AppendUint64(v, xxh3.Hash(v))
}

func decodeBlockKey(key []byte) block.ID { return block.ID(binary.BigEndian.Uint64(key[1:])) }

func decodeBlock(key, v []byte) (id block.ID, r blockRow, err error) {
	if len(key) != blockKeyLen || len(v) != blockValueLen {
		return 0, r, badRow(key, v)
	}
	id = decodeBlockKey(key)
	copy(r.container[:], v[blockContainerOff:])
	r.off = int64(binary.LittleEndian.Uint64(v[blockOffsetOff:]))
	r.length = int64(binary.LittleEndian.Uint64(v[blockLengthOff:]))
	r.sum = binary.LittleEndian.Uint64(v[blockSumOff:])
	r.identity = binary.LittleEndian.Uint64(v[blockIdentityOff:])
	return id, r, nil
}

func decodeContainer(key, v []byte) (id containerID, r containerRow, err error) {
	if len(key) != containerKeyLen || len(v) != containerValueLen {
		return id, r, badRow(key, v)
	}
	copy(id[:], key[1:])
	r.state = v[containerStateOff]
	r.next = int64(binary.LittleEndian.Uint64(v[containerNextOff:]))
	if r.state < containerOpen || r.state > containerDead || !allZero(v[1:containerNextOff]) {
		return id, r, badRow(key, v)
	}
	return id, r, nil
}

func decodeDead(key, v []byte) (id containerID, off, length int64, err error) {
	if len(key) != deadKeyLen || len(v) != numberValueLen {
		return id, 0, 0, badRow(key, v)
	}
	copy(id[:], key[1:])
	off = int64(binary.BigEndian.Uint64(key[containerKeyLen:]))
	return id, off, int64(binary.LittleEndian.Uint64(v)), nil
}

func decodeNumber(key, v []byte) (uint64, error) {
	if len(key) != 1 || len(v) != numberValueLen {
		return 0, badRow(key, v)
	}
	return binary.LittleEndian.Uint64(v), nil
}

func decodeFormat(key, v []byte) (r formatRow, err error) {
	if len(key) != 1 || len(v) != formatValueLen || v[2] != 0 || v[3] != 0 {
		return r, badRow(key, v)
	}
	if n := binary.LittleEndian.Uint16(v[formatVersionOff:]); n != formatVersion {
		return r, fault.Unsupportedf("metadata of version %d, known is %d", n, formatVersion)
	}
	if f := binary.LittleEndian.Uint32(v[formatMustOff:]); f != 0 {
		return r, fault.Unsupportedf("metadata needs features %#x", f)
	}
	r.blockSize = int64(binary.LittleEndian.Uint32(v[formatBlockSizeOff:]))
	copy(r.instance[:], v[formatInstanceOff:])
	if !validBlockSize(r.blockSize) {
		return r, fault.Corruptf("metadata: block size %d", r.blockSize)
	}
	return r, nil
}

func decodeRoot(key, v []byte) (r root, err error) {
	if len(key) != 1 || len(v) != rootValueLen ||
		binary.LittleEndian.Uint64(v[rootCheckOff:]) != xxh3.Hash(v[:rootCheckOff]) {
		return r, badRow(key, v)
	}
	r.epoch = binary.LittleEndian.Uint64(v[rootEpochOff:])
	r.hash.lo = binary.LittleEndian.Uint64(v[rootHashOff:])
	r.hash.hi = binary.LittleEndian.Uint64(v[rootHashOff+8:])
	if r.epoch == 0 || r.epoch >= maxEpoch {
		return r, badRow(key, v)
	}
	return r, nil
}

func badRow(key, v []byte) error {
	return fault.Corruptf("metadata row %x: value of %d bytes is not of its kind", clip(key), len(v))
}

// clip keeps keys in messages short.
func clip(key []byte) []byte { return key[:min(len(key), 40)] }

func allZero(b []byte) bool {
	for _, c := range b {
		if c != 0 {
			return false
		}
	}
	return true
}

// identity returns the value that distinguishes a block from every other, at the price of one short
// read.
func identity(instance [16]byte, id block.ID, r *blockRow, footer []byte) uint64 {
	buf := make([]byte, 0, 56+footerProbe)
	buf = append(buf, instance[:]...)
	buf = binary.LittleEndian.AppendUint64(buf, uint64(id))
	buf = append(buf, r.container[:]...)
	buf = binary.LittleEndian.AppendUint64(buf, uint64(r.off))
	buf = binary.LittleEndian.AppendUint64(buf, uint64(r.length))
	buf = append(buf, footer...)
	return xxh3.Hash(buf)
}

// alignUp rounds n up to a multiple of a power of two.
func alignUp(n, size int64) int64 { return (n + size - 1) &^ (size - 1) }
