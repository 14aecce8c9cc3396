package hfile

import (
	"errors"
	"fmt"
	"math"
	"time"
)

// System is the writer whose files a Writer makes.
type System uint8

const (
	// HBase writes the bytes of HBase 2.6.
	HBase System = iota

	// Hudi writes key–value pairs as Hudi's native writer does, in the form that both Hudi and
	// HBase read and seek in: the newest one, with sorted meta blocks and file info, and no last
	// key in a file without entries. Source: hfile spec §12.
	Hudi

	// Hudi120 writes the bytes of hudi-io 1.2.0, for comparisons. HBase scans such files but cannot
	// seek in them, and opens none without entries. Source: hfile spec §13.
	Hudi120

	// Hudi111 writes the bytes of hudi-io 1.1.1, for comparisons. With rows of 126 bytes and more
	// neither HBase nor Hudi opens such files.
	Hudi111
)

func (s System) String() string {
	switch s {
	case HBase:
		return "HBase"
	case Hudi:
		return "Hudi"
	case Hudi120:
		return "Hudi 1.2.0"
	case Hudi111:
		return "Hudi 1.1.1"
	}
	return fmt.Sprintf("system %d", uint8(s))
}

// Choice is an option of type T. Its zero value is the default, which may differ from the zero
// value of T: the zero value of Checksum is ChecksumNull, not the default ChecksumCRC32C.
type Choice[T any] struct {
	value T
	set   bool
}

// Use chooses a value other than the default.
func Use[T any](value T) Choice[T] { return Choice[T]{value, true} }

func (c Choice[T]) or(fallback T) T {
	if c.set {
		return c.value
	}
	return fallback
}

// WriterOptions are the format and the limits of a Writer's file. The zero value writes HBase's
// format with its defaults.
type WriterOptions struct {
	Like System // whose files to write; default HBase

	Codec    Codec    // default None; Hudi: None or GZ
	Encoding Encoding // of keys in data blocks; default EncodingNone, the only one of Hudi

	// CodecBuffer is the size in bytes of Hadoop's buffer for the codecs Snappy, LZ4, and Zstd: a
	// block is compressed in members of about five sixths of it. Default 256 KiB.
	CodecBuffer int

	// BlockBytes is the size at which a data block ends: HBase's blocks are larger by up to one
	// cell, Hudi's do not reach it. Cells with equal keys share a block. Default 64 KiB, Hudi 1
	// MiB.
	BlockBytes int

	// Checksum is the type of checksums. Default: ChecksumCRC32C, Hudi ChecksumNull.
	Checksum Choice[Checksum]

	// BytesPerChecksum is how many bytes one checksum covers, at least 33. Default: 16384; Hudi
	// with blocks above 64 KiB: the whole block, because Hudi up to 1.2.0 does not find records at
	// the end of a block that has many checksums (hfile spec §5.1). Hudi120 and Hudi111: 16384.
	BytesPerChecksum int

	// OmitSequences leaves out sequence IDs, which takes a byte and more per cell. Cells must have
	// sequence ID 0 then, as they must with Hudi.
	OmitSequences bool

	// Tags stores tags, which takes a byte and more per cell. Without it cells must have none.
	Tags bool

	// CompressTags stores repeated tags once per block, with EncodingPrefix, EncodingDiff, and
	// EncodingFastDiff. It needs Tags.
	CompressTags bool

	// IndexBlockBytes is the size at which an index block ends. Default 128 KiB; with Hudi there is
	// one level by default, of any size.
	IndexBlockBytes int

	// IndexMinEntries is how many entries the root index has before it is split, at least 2.
	// Default 16.
	IndexMinEntries int

	// StoreFile adds what HBase's store file writer adds, as for a bulk load: the range of
	// timestamps, the earliest put, the number of deletes of families, and, unless Bloom is
	// BloomRowCol, a Bloom filter of their rows. Bloom implies it. HBase only.
	StoreFile bool

	Bloom           BloomKind         // kind of the Bloom filter; default BloomNone; HBase only
	BloomHash       Choice[BloomHash] // default Murmur
	BloomBlockBytes int               // size of a part of the filter; default 128 KiB
	PrefixBytes     int               // bytes of the row in a filter of kind BloomRowPrefix

	CreationTime time.Time // stored in file info, to the millisecond; default: now

	// Comparator is the name of the Java class that sorts the keys: one of HBase's that sort as
	// Key.Compare does, or one of Hudi's. Default: the name that HBase or Hudi writes. HBase opens
	// files with Hudi's name only where it finds Hudi's class.
	Comparator string

	RefuseEqualKeys bool // refuse an entry whose key equals the one before; default: accept it

	// MajorVersion is the version of the format: 3, or 2 with a short trailer. Default 3.
	MajorVersion int
}

const (
	hbaseBlockBytes      = 64 << 10
	hudiBlockBytes       = 1 << 20
	hudiSafeBlockBytes   = 64 << 10 // blocks that Hudi up to 1.2.0 reads with defaultPerChecksum
	defaultPerChecksum   = 16 << 10
	defaultIndexBytes    = 128 << 10
	defaultIndexEntries  = 16
	defaultCodecBuffer   = 256 << 10
	minCodecBuffer       = 64 // below, Hadoop's members would have no byte
	maxOptionBytes       = 1 << 30
	unlimitedIndexBlocks = math.MaxInt
	maxComparatorLen     = 100 // the trailer of version 2 has little more space
)

// resolve returns the options with all defaults filled in, or all faults of o.
func (o WriterOptions) resolve() (WriterOptions, error) {
	var faults []error
	faultf := func(format string, args ...any) {
		faults = append(faults, fmt.Errorf("hfile: "+format, args...))
	}
	if o.Like > Hudi111 {
		faultf("unknown %v", o.Like)
	}
	hudi := o.Like != HBase
	if o.Codec == 0 {
		o.Codec = None
	}
	switch o.Codec {
	case None, GZ:
	case Snappy, LZ4, Zstd:
		if hudi {
			faultf("codec %v: Hudi reads NONE and GZ", o.Codec)
		}
	default:
		faultf("cannot write %v", o.Codec)
	}
	switch o.Encoding {
	case EncodingNone:
	case EncodingPrefix, EncodingDiff, EncodingFastDiff, EncodingRowIndexV1:
		if hudi {
			faultf("encoding %v: Hudi reads NONE", o.Encoding)
		}
	default:
		faultf("cannot write %v", o.Encoding)
	}
	if c := o.Checksum.or(ChecksumNull); c > ChecksumCRC32C {
		faultf("cannot write %v", c)
	}
	if h := o.BloomHash.or(Murmur); h > Murmur3 {
		faultf("cannot write %v", h)
	}
	sizes := func(name string, v *int, fallback, least int) {
		if *v == 0 {
			*v = fallback
		}
		if *v < least || *v > maxOptionBytes && *v != fallback {
			faultf("%s is %d, want %d to %d", name, *v, least, maxOptionBytes)
		}
	}
	if hudi {
		sizes("BlockBytes", &o.BlockBytes, hudiBlockBytes, 1)
		if o.Like != Hudi && (o.IndexBlockBytes != 0 || o.IndexMinEntries != 0) {
			faultf("%v writes one level of index blocks", o.Like)
		}
		sizes("IndexBlockBytes", &o.IndexBlockBytes, unlimitedIndexBlocks, 1)
		if o.Tags || o.StoreFile || o.Bloom != BloomNone {
			faultf("%v has no tags, store file entries, or HBase Bloom filter", o.Like)
		}
		if o.MajorVersion == 2 {
			faultf("%v writes version 3", o.Like)
		}
		if o.OmitSequences {
			faultf("%v stores sequence IDs, all 0", o.Like)
		}
	} else {
		sizes("BlockBytes", &o.BlockBytes, hbaseBlockBytes, 1)
		sizes("IndexBlockBytes", &o.IndexBlockBytes, defaultIndexBytes, 1)
	}
	sizes("IndexMinEntries", &o.IndexMinEntries, defaultIndexEntries, 2)
	sizes("CodecBuffer", &o.CodecBuffer, defaultCodecBuffer, minCodecBuffer)
	if o.BytesPerChecksum != 0 {
		sizes("BytesPerChecksum", &o.BytesPerChecksum, 0, headerLen)
	}
	if o.CompressTags && !o.Tags {
		faultf("CompressTags needs Tags")
	}
	if o.Bloom > BloomRowPrefix {
		faultf("cannot write %v", o.Bloom)
	}
	if o.Bloom != BloomNone {
		o.StoreFile = true
	}
	if o.CreationTime.IsZero() {
		o.CreationTime = time.Now()
	}
	if o.Comparator == "" {
		o.Comparator = comparatorHBase
		if hudi {
			o.Comparator = comparatorHudi
		}
	}
	if !knownComparator(o.Comparator) {
		faultf("comparator %q is not known to sort as this package does", o.Comparator)
	}
	if len(o.Comparator) > maxComparatorLen {
		faultf("comparator name of %d bytes, want at most %d", len(o.Comparator), maxComparatorLen)
	}
	switch o.MajorVersion {
	case 0:
		o.MajorVersion = 3
	case 2, 3:
	default:
		faultf("cannot write version %d, want 2 or 3", o.MajorVersion)
	}
	return o, errors.Join(faults...)
}

// checksum returns the type of checksums of resolved options.
func (o *WriterOptions) checksum() Checksum {
	if o.Like == HBase {
		return o.Checksum.or(ChecksumCRC32C)
	}
	return o.Checksum.or(ChecksumNull)
}

// perChecksum returns how many bytes a checksum covers in a block with the given size on disk
// without checksums, its header included.
func (o *WriterOptions) perChecksum(onDisk int) int {
	switch {
	case o.BytesPerChecksum != 0:
		return o.BytesPerChecksum
	case o.Like == Hudi && max(o.BlockBytes, onDisk) > hudiSafeBlockBytes:
		// A block can be larger than BlockBytes: by a large record, or by many with equal keys.
		return max(o.BlockBytes, onDisk)
	}
	return defaultPerChecksum
}
