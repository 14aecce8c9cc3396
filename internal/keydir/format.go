package keydir

import (
	"encoding/binary"
	"fmt"
	"io"

	"github.com/zeebo/xxh3"

	"github.com/oribi-db/oribi/block"
	"github.com/oribi-db/oribi/internal/dump"
	"github.com/oribi-db/oribi/internal/fault"
)

// A key directory as a block. n is the number of buckets.
//
//	offset  width  field     meaning
//	0       8      magic     "oribikey"
//	8       4      version   1
//	12      4      must      flags a reader must know or refuse; none yet
//	16      4      may       flags a reader may ignore; none yet
//	20      1      hash      1 = CityHash64 of the encoded key
//	21      1      shift     k: a group is 2^k rows
//	22      2      –         0
//	24      8      rows      of the rowset, at least 1
//	32      8      bloom     block of the rowset's bloom file, which it keeps for life
//	40      8      buckets   n
//	48      16     –         0
//	64      64 n   slots     16 of 4 bytes in each bucket
//	64+64n  8      checksum  xxh3-64 of all bytes before
//
// A slot is 0 if it is empty; the empty slots of a bucket are its last. Otherwise its high 12 bits
// are the tag and its low 20 bits the group. The tag of a key with hash H is the low 12 bits of H,
// or 1 if they are 0. Its slot is in bucket ⌊H·n / 2^64⌋, or in one of the 31 after it, of which the
// first follows the last, if each bucket before is full and the last two of its slots fall.
//
// One row with hash 8000000000000abc and the bloom file in block 7:
//
//	6f 72 69 62 69 6b 65 79  01 00 00 00 00 00 00 00  00 00 00 00 01 00 00 00
//	01 00 00 00 00 00 00 00  07 00 00 00 00 00 00 00  01 00 00 00 00 00 00 00
//	00 (16 times)  00 00 c0 ab  00 (60 times)  d5 55 4b 59 31 68 bb fd
const (
	magic      = "oribikey" // file format: never change
	version    = 1
	versionOff = 8
	mustOff    = 12
	mayOff     = 16
	hashOff    = 20
	hashCity   = 1 // file format: never change
	shiftOff   = 21
	rowsOff    = 24
	bloomOff   = 32
	bucketsOff = 40
	zeroOff    = 48
	headerLen  = 64 // file format: never change

	slotLen      = 4                     // file format: never change
	bucketSlots  = 16                    // file format: never change
	bucketLen    = bucketSlots * slotLen // file format: never change
	positionBits = 20                    // file format: never change
	positionMask = 1<<positionBits - 1
	maxProbes    = 32 // file format: never change
	checksumLen  = 8
)

// Write writes the directory of a rowset whose bloom file is in a block.
func (d *Directory) Write(sink io.Writer, bloom block.ID) error {
	le, b := binary.LittleEndian, d.block
	copy(b, magic)
	le.PutUint32(b[versionOff:], version)
	b[hashOff], b[shiftOff] = hashCity, byte(d.shift)
	le.PutUint64(b[rowsOff:], uint64(d.rows))
	le.PutUint64(b[bloomOff:], uint64(bloom))
	le.PutUint64(b[bucketsOff:], d.buckets)
	_, err := sink.Write(le.AppendUint64(b, xxh3.Hash(b)))
	return err
}

// Read reads the directory of a rowset with that many rows, whose bloom file is in a block, with at
// most one read of src, and checks all of it. It allocates at most 72 bytes and 64 for each row.
// Errors: ErrCorrupt; ErrUnsupported for a newer version; the errors of src.
func Read(src block.Source, rows int64, bloom block.ID) (*Directory, error) {
	d, err := read(src, rows, bloom)
	if err != nil {
		return nil, fmt.Errorf("key directory: block %d: %w", src.ID(), err)
	}
	return d, nil
}

func read(src block.Source, rows int64, bloom block.ID) (*Directory, error) {
	size, smallest, largest := src.Size(), int64(headerLen+bucketLen+checksumLen), headerLen+bucketLen*rows+checksumLen
	if size < smallest || size > largest || (size-smallest)%bucketLen != 0 {
		return nil, fault.Corruptf("%d bytes for %d rows", size, rows)
	}
	b, err := whole(src)
	if err != nil {
		return nil, err
	}
	d, has, err := parse(b)
	switch {
	case err != nil:
		return nil, err
	case d.rows != rows || has != bloom:
		return nil, fault.Corruptf("of %d rows with their bloom file in block %d, want %d in block %d", d.rows,
			has, rows, bloom)
	}
	return d, nil
}

// whole returns the bytes of src, without another read if they are those that opening it has read.
func whole(src block.Source) ([]byte, error) {
	if t, ok := src.(block.Tailed); ok {
		if b := t.TakeTail(); int64(len(b)) == src.Size() {
			return b, nil
		}
	}
	b := make([]byte, src.Size())
	if _, err := src.ReadAt(b, 0); err != nil && err != io.EOF {
		return nil, err
	}
	return b, nil
}

// parse checks a block and returns the directory, which aliases it, and the block of the bloom file.
func parse(b []byte) (*Directory, block.ID, error) {
	if len(b) < headerLen+bucketLen+checksumLen {
		return nil, 0, fault.Corruptf("%d bytes", len(b))
	}
	le, end := binary.LittleEndian, len(b)-checksumLen
	if got, want := xxh3.Hash(b[:end]), le.Uint64(b[end:]); got != want {
		return nil, 0, fault.Corruptf("checksum %016x, want %016x", got, want)
	}
	d := &Directory{rows: int64(le.Uint64(b[rowsOff:])), shift: uint(b[shiftOff]),
		buckets: le.Uint64(b[bucketsOff:]), block: b[:end], slots: b[headerLen:end]}
	switch v, must := le.Uint32(b[versionOff:]), le.Uint32(b[mustOff:]); {
	case string(b[:versionOff]) != magic:
		return nil, 0, fault.Corruptf("magic % x", b[:versionOff])
	case v != version || must != 0 || b[hashOff] != hashCity:
		return nil, 0, fault.Unsupportedf("version %d, flags %#x, hash %d", v, must, b[hashOff])
	case d.rows < 1 || d.shift > maxShift || (d.rows-1)>>d.shift >= MaxGroups:
		return nil, 0, fault.Corruptf("groups of 2^%d of %d rows", d.shift, d.rows)
	case len(d.slots)%bucketLen != 0 || d.buckets != uint64(len(d.slots)/bucketLen):
		return nil, 0, fault.Corruptf("%d buckets in %d bytes", d.buckets, len(b))
	}
	used, err := d.checkSlots()
	if err == nil && (used > d.rows || d.shift == 0 && used < d.rows) {
		err = fault.Corruptf("%d slots for %d rows", used, d.rows)
	}
	return d, block.ID(le.Uint64(b[bloomOff:])), err
}

// checkSlots checks all slots and returns how many are in use.
func (d *Directory) checkSlots() (used int64, err error) {
	last := uint32((d.rows - 1) >> d.shift)
	for i := range d.buckets {
		b := d.bucket(i)
		n := 0
		for k := 0; k < bucketSlots; k++ {
			slot := binary.LittleEndian.Uint32(b[k*slotLen:])
			if slot == 0 {
				continue
			}
			if n != k || slot>>positionBits == 0 || slot&positionMask > last {
				return 0, fault.Corruptf("bucket %d: slot %d is %08x, groups end with %d", i, k, slot, last)
			}
			n++
		}
		used += int64(n)
	}
	return used, nil
}

// Dump prints the block of a key directory to w byte by byte with the meaning of each field.
// Errors: ErrCorrupt, ErrUnsupported; the errors of w.
func Dump(w io.Writer, data []byte) error {
	d, bloom, err := parse(data)
	if err != nil {
		return fmt.Errorf("key directory: %w", err)
	}
	return d.dump(dump.New(w), data, bloom, 0, d.buckets)
}

// Annotate is Dump of a part: it passes to use the lines of the header, of the checksum, and of the
// buckets [from, to) that the directory has. buckets is the number of all buckets. Errors:
// ErrCorrupt, ErrUnsupported; the errors of use.
func Annotate(data []byte, from, to uint64, use func(dump.Line) error) (buckets uint64, err error) {
	d, bloom, err := parse(data)
	if err != nil {
		return 0, fmt.Errorf("key directory: %w", err)
	}
	to = min(to, d.buckets)
	return d.buckets, d.dump(dump.NewFunc(use), data, bloom, min(from, to), to)
}

// dump prints the block of a directory, with the buckets in [first, last) only.
func (d *Directory) dump(p *dump.Writer, data []byte, bloom block.ID, first, last uint64) error {
	field := func(from, to int64, meaning string, args ...any) { p.Field(from, data[from:to], meaning, args...) }
	p.Section("key directory: %d bytes, %d buckets", len(data), d.buckets)
	field(0, versionOff, "magic")
	field(versionOff, mustOff, "version")
	field(mustOff, mayOff, "must-know flags")
	field(mayOff, hashOff, "may-ignore flags")
	field(hashOff, shiftOff, "hash: CityHash64")
	field(shiftOff, shiftOff+1, "rows in a group: %d", 1<<d.shift)
	field(shiftOff+1, rowsOff, "zeros")
	field(rowsOff, bloomOff, "rows: %d", d.rows)
	field(bloomOff, bucketsOff, "block of the bloom file: %d", bloom)
	field(bucketsOff, zeroOff, "buckets: %d", d.buckets)
	field(zeroOff, headerLen, "zeros")
	for i := first; i < last; i++ {
		d.dumpBucket(p, i)
	}
	end := int64(len(data)) - checksumLen
	field(end, end+checksumLen, "checksum")
	p.End()
	return p.Err()
}

func (d *Directory) dumpBucket(p *dump.Writer, i uint64) {
	b, off := d.bucket(i), int64(headerLen+i*bucketLen)
	p.Section("bucket %d", i)
	at := 0
	for ; at < bucketLen; at += slotLen {
		slot := binary.LittleEndian.Uint32(b[at:])
		if slot == 0 {
			break
		}
		p.Field(off+int64(at), b[at:at+slotLen], "tag %03x, group %d", slot>>positionBits, slot&positionMask)
	}
	switch {
	case at < bucketLen:
		p.Field(off+int64(at), b[at:], "empty")
	case overflowed(b):
		p.Field(off+bucketLen, nil, "more in the next bucket")
	}
	p.End()
}
