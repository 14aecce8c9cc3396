// Package keydir implements the key directory of a rowset: a hash table from encoded keys to rows.
//
//	d := keydir.New(rows, keydir.MaxGroups)
//	for row, hash := range hashes {
//		ok := d.Add(hash, int64(row))
//	}
//	for s := d.Search(hash); ; {
//		group, ok := s.Next() // compare the keys of its rows
//	}
//
// The table has buckets of 16 slots, one cache line each. A slot has 12 bits of the key's hash and
// the position of the key: its row, or a group of 2^k consecutive rows in a rowset with more rows
// than there are positions. A key is in the bucket that its hash selects or, if that is full, in
// one of the next ones. So an absent key is usually recognized in one cache line, and a search
// returns only candidates: the caller compares keys.
//
// A Directory is safe for concurrent use once all keys were added. It takes 5.7 bytes for each key.
package keydir

import (
	"encoding/binary"
	"math/bits"
	"sync/atomic"
)

// Eager makes rowsets read or build their directories at the first lookup instead of when it pays.
// Results are the same. It is for tests.
var Eager atomic.Bool

const (
	// MaxGroups is the maximum number of positions.
	MaxGroups = 1 << positionBits

	maxShift = 31 // of at most 2^31 − 1 rows

	// Ten of 16 slots in use, 11.2 on average: 6 % of the buckets are full and have keys elsewhere.
	fill, of = 7, 10
)

// Directory maps hashes of keys to rows.
type Directory struct {
	rows    int64
	shift   uint
	buckets uint64
	block   []byte // the stored form, without its checksum
	slots   []byte // the buckets in block
}

// New returns a directory for that many rows, at least 1, with at most that many groups of rows.
func New(rows, groups int64) *Directory {
	d := &Directory{rows: rows, buckets: bucketsOf(rows)}
	for (rows-1)>>d.shift >= groups {
		d.shift++
	}
	d.block = make([]byte, headerLen+int64(d.buckets)*bucketLen, headerLen+int64(d.buckets)*bucketLen+checksumLen)
	d.slots = d.block[headerLen:]
	return d
}

// bucketsOf returns the number of buckets for rows.
func bucketsOf(rows int64) uint64 {
	const perBucket = bucketSlots * fill
	return (uint64(rows)*of + perBucket - 1) / perBucket
}

// Size returns the number of bytes that a directory of that many rows takes.
func Size(rows int64) int64 { return headerLen + int64(bucketsOf(rows))*bucketLen + checksumLen }

// Size returns the number of bytes that d takes.
func (d *Directory) Size() int64 { return int64(cap(d.block)) }

// Shift returns k: a group is 2^k rows.
func (d *Directory) Shift() uint { return d.shift }

// home returns the first bucket of a hash, and the tag: the bits that its slot has above the
// position. The bucket depends on the high bits, the tag on the low ones; 0 would be an empty slot.
func (d *Directory) home(hash uint64) (bucket uint64, tag uint32) {
	bucket, _ = bits.Mul64(hash, d.buckets)
	if tag = uint32(hash) << positionBits; tag == 0 {
		tag = 1 << positionBits
	}
	return bucket, tag
}

// after returns the bucket after one.
func (d *Directory) after(bucket uint64) uint64 {
	if bucket++; bucket == d.buckets {
		return 0
	}
	return bucket
}

func (d *Directory) bucket(i uint64) *[bucketLen]byte {
	return (*[bucketLen]byte)(d.slots[i*bucketLen:])
}

// Add adds the hash of the key of a row. It reports whether it could: it cannot if very many keys
// have hashes that select the same buckets, which does not happen by chance. Then d is of no use.
func (d *Directory) Add(hash uint64, row int64) bool {
	at, tag := d.home(hash)
	slot := tag | uint32(row>>d.shift)
	for range min(d.buckets, maxProbes) {
		b := d.bucket(at)
		for i := 0; i < bucketLen; i += slotLen {
			switch binary.LittleEndian.Uint32(b[i:]) {
			case slot:
				return true // another row of the group
			case 0:
				binary.LittleEndian.PutUint32(b[i:], slot)
				if i == bucketLen-slotLen {
					setOverflowed(b, false)
				}
				return true
			}
		}
		setOverflowed(b, true)
		at = d.after(at)
	}
	return false
}

// overflowed reports whether keys that select the bucket may be in later ones. The order of the
// last two slots says so: they are falling. They are never equal.
func overflowed(b *[bucketLen]byte) bool {
	last := binary.LittleEndian.Uint32(b[bucketLen-slotLen:])
	return last != 0 && last < binary.LittleEndian.Uint32(b[bucketLen-2*slotLen:])
}

// setOverflowed sets the order of the last two slots of a full bucket.
func setOverflowed(b *[bucketLen]byte, to bool) {
	if overflowed(b) != to {
		last := b[bucketLen-slotLen:]
		x, y := binary.LittleEndian.Uint32(last), binary.LittleEndian.Uint32(b[bucketLen-2*slotLen:])
		binary.LittleEndian.PutUint32(last, y)
		binary.LittleEndian.PutUint32(b[bucketLen-2*slotLen:], x)
	}
}

// Excludes reports whether no key with the hash was added, as far as one bucket shows. A caller that
// searches anyway saves that for most absent keys.
func (d *Directory) Excludes(hash uint64) bool {
	bucket, tag := d.home(hash)
	b := d.bucket(bucket)
	return !hasTag(b, tag) && !overflowed(b)
}

// Search is a search for the rows that a key may be in.
type Search struct {
	d      *Directory
	bucket uint64
	tag    uint32
	slot   uint8 // of the bucket, in bytes
	probes uint8
}

// Search begins the search for a key with a hash.
func (d *Directory) Search(hash uint64) Search {
	bucket, tag := d.home(hash)
	return Search{d: d, bucket: bucket, tag: tag}
}

// Next returns the next group that may have the key; ok is false if no further group may. With
// Shift 0, a group is a row. A group may be returned twice.
func (s *Search) Next() (group int64, ok bool) {
	for {
		b := s.d.bucket(s.bucket)
		if s.slot > 0 || hasTag(b, s.tag) {
			for i := int(s.slot); i < bucketLen; i += slotLen {
				if x := binary.LittleEndian.Uint32(b[i:]) ^ s.tag; x < 1<<positionBits {
					s.slot = uint8(i + slotLen)
					return int64(x), true
				}
			}
		}
		s.slot = 0
		s.probes++
		if !overflowed(b) || uint64(s.probes) >= min(s.d.buckets, maxProbes) {
			s.slot = bucketLen // for the next call
			s.probes--
			return 0, false
		}
		s.bucket = s.d.after(s.bucket)
	}
}

// hasTag reports whether a slot has the tag. It tests two slots at a time and has no branches,
// since it is unpredictable which slot matches.
func hasTag(b *[bucketLen]byte, tag uint32) bool {
	le, want := binary.LittleEndian, uint64(tag)<<32|uint64(tag)
	found := zeros(le.Uint64(b[0:])^want) | zeros(le.Uint64(b[8:])^want) | zeros(le.Uint64(b[16:])^want) |
		zeros(le.Uint64(b[24:])^want) |
		zeros(le.Uint64(b[32:])^want) | zeros(le.Uint64(b[40:])^want) | zeros(le.Uint64(b[48:])^want) |
		zeros(le.Uint64(b[56:])^want)
	return found != 0
}

// zeros is not 0 if the tag of a half of x, two slots, is 0.
func zeros(x uint64) uint64 {
	const ones = 1<<32 | 1
	x &^= positionMask * ones
	return (x - ones) &^ x & (ones << 31)
}

// Contains reports whether a search for the hash returns the group of a row.
func (d *Directory) Contains(hash uint64, row int64) bool {
	for s := d.Search(hash); ; {
		group, ok := s.Next()
		if !ok || group == row>>d.shift {
			return ok
		}
	}
}
