package hfile

import (
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"strings"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/oribi-db/oribi/block"
	"github.com/oribi-db/oribi/internal/fault"
)

// Trailer: the last bytes of a file, 4096 of them in version 3 and 212 in version 2. It is neither
// compressed nor covered by a checksum. Source: hfile spec §9.
//
//	offset  width   field    meaning
//	0       8       magic    TRABLK"$
//	8       varint  length   of the message, as in protobuf; at least 1
//	…       length  message  FileTrailerProto, fields as below
//	…       …       zeros    up to the last four bytes
//	-4      1       minor    version
//	-3      3       major    version, big-endian
//
// Fields of the message; all numbers are varints:
//
//	1   offset of the block FILEINF2          7   number of cells
//	2   offset of the root index              8   index levels
//	3   bytes of all index blocks             9   offset of the first data block
//	4   bytes of all blocks                   10  offset of the last data block
//	5   entries of the root index             11  comparator, a Java class
//	6   entries of the meta index             12  codec; NONE if absent
//	                                          13  encryption key
//
// Three cells in one block, as Hudi writes them:
//
//	54 52 41 42 4c 4b 22 24  4a  08 e9 01  10 82 01  18 5d  28 01  30 00  38 03  40 01  48 00  50 00
//	5a 32 "org.apache.hudi.io.storage.HoodieHBaseKVComparator"  60 02  00 …  00 00 00 03
const (
	trailerLen3 = 4096 // file format: never change
	trailerLen2 = 212  // file format: never change
	trailerLen1 = 60   // file format: never change; of version 1, which is not read
	versionLen  = 4    // file format: never change
	magicLen    = 8    // file format: never change
	minMinorOf2 = 3    // file format: never change; older minor versions do not use protobuf
	// in files that this package reads; each level has a block of at least two entries
	maxIndexLevels  = 64
	trailerInfoOff  = 1  // file format: never change
	trailerLoadOff  = 2  // file format: never change
	trailerIndexLen = 3  // file format: never change
	trailerBytes    = 4  // file format: never change
	trailerIndexN   = 5  // file format: never change
	trailerMetaN    = 6  // file format: never change
	trailerCells    = 7  // file format: never change
	trailerLevels   = 8  // file format: never change
	trailerFirst    = 9  // file format: never change
	trailerLast     = 10 // file format: never change
	trailerOrder    = 11 // file format: never change
	trailerCodec    = 12 // file format: never change
	trailerKey      = 13 // file format: never change
)

// Trailer describes a file: its version, where its sections are, and its counts and codec.
//
// Offsets are in bytes from the start of the file. In a file without cells HBase stores -1 for both
// data blocks, Hudi -1 and 0.
type Trailer struct {
	Major, Minor     int
	FileInfoOffset   int64
	LoadOnOpenOffset int64 // of the root index: the first block that Open reads
	// of all index blocks, uncompressed; Hudi counts the bytes of its data blocks here
	IndexBytes        int64
	UncompressedBytes int64  // of all blocks; 0 from Hudi
	DataIndexCount    int    // entries of the root index
	MetaIndexCount    int    // meta blocks
	EntryCount        int64  // cells
	IndexLevels       int    // 1 if the root index names the data blocks
	FirstDataBlock    int64  // offset
	LastDataBlock     int64  // offset
	Comparator        string // as in the file: a Java class; "" for HBase's default
	Codec             Codec
}

// readTrailer reads and checks the trailer of src. It returns its offset, where the blocks end.
func readTrailer(src block.Source) (t Trailer, at int64, err error) {
	size := src.Size()
	tail := make([]byte, min(size, trailerLen3))
	if _, err := src.ReadAt(tail, size-int64(len(tail))); err != nil && err != io.EOF {
		return t, 0, fmt.Errorf("hfile: trailer: %w", err)
	}
	n := trailerLen3
	if !hasTrailer(tail, n) {
		if n = trailerLen2; !hasTrailer(tail, n) {
			if hasTrailer(tail, trailerLen1) {
				return t, 0, fault.Unsupportedf("hfile: version 1")
			}
			return t, 0, fault.Corruptf("hfile: no trailer in a file of %d bytes", size)
		}
	}
	tail = tail[len(tail)-n:]
	at = size - int64(n)
	t.Minor = int(tail[n-versionLen])
	t.Major = int(binary.BigEndian.Uint32(tail[n-versionLen:]) & 0xffffff)
	switch {
	case t.Major == 3 && n == trailerLen3:
	case t.Major == 2 && n == trailerLen2 && t.Minor >= minMinorOf2:
	default:
		return t, 0, fault.Unsupportedf("hfile: version %d.%d with a trailer of %d bytes", t.Major, t.Minor, n)
	}
	if err := t.parse(tail[magicLen:n-versionLen], at); err != nil {
		return t, 0, fmt.Errorf("hfile: trailer at byte %d: %w", at, err)
	}
	return t, at, nil
}

// hasTrailer reports whether a trailer of n bytes begins n bytes before the end of tail.
func hasTrailer(tail []byte, n int) bool {
	return len(tail) >= n && string(tail[len(tail)-n:][:magicLen]) == magicTrailer
}

// parse reads the message in b, which begins with its length. limit is the offset of the trailer.
func (t *Trailer) parse(b []byte, limit int64) error {
	length, n := protowire.ConsumeVarint(b)
	if n < 0 || length == 0 || length > uint64(len(b)-n) {
		return fault.Corruptf("message of %d bytes, the trailer has room for %d", length, len(b))
	}
	message := b[n : n+int(length)]
	var (
		numbers [trailerCodec + 1]uint64
		seen    [trailerKey + 1]bool
	)
	for len(message) > 0 {
		field, wire, n := protowire.ConsumeTag(message)
		if n < 0 {
			return fault.Corruptf("field: %v", protowire.ParseError(n))
		}
		message = message[n:]
		if field > trailerKey { // of a newer writer
			if n = protowire.ConsumeFieldValue(field, wire, message); n < 0 {
				return fault.Corruptf("field %d: %v", field, protowire.ParseError(n))
			}
			message = message[n:]
			continue
		}
		want := protowire.VarintType
		if field == trailerOrder || field == trailerKey {
			want = protowire.BytesType
		}
		if wire != want || seen[field] {
			return fault.Corruptf("field %d has type %d or occurs twice", field, wire)
		}
		seen[field] = true
		var bytes []byte
		if want == protowire.VarintType {
			numbers[field], n = protowire.ConsumeVarint(message)
		} else {
			bytes, n = protowire.ConsumeBytes(message)
		}
		if n < 0 {
			return fault.Corruptf("field %d: %v", field, protowire.ParseError(n))
		}
		message = message[n:]
		switch {
		case field == trailerOrder:
			t.Comparator = string(bytes)
		case field == trailerKey && len(bytes) > 0:
			return fault.Unsupportedf("encryption, with a key of %d bytes", len(bytes))
		}
	}
	if !seen[trailerInfoOff] || !seen[trailerLoadOff] {
		return fault.Corruptf("no offset of file info or root index")
	}
	if !seen[trailerCodec] {
		numbers[trailerCodec] = uint64(None)
	}
	return t.set(&numbers, limit)
}

// set checks the numbers of the message, by field, and copies them to t.
func (t *Trailer) set(numbers *[trailerCodec + 1]uint64, limit int64) error {
	load, info := numbers[trailerLoadOff], numbers[trailerInfoOff]
	if load > info || info >= uint64(limit) {
		return fault.Corruptf("root index at byte %d, file info at byte %d, trailer at byte %d", load, info, limit)
	}
	for _, field := range []int{trailerIndexN, trailerMetaN} { // each entry takes some bytes
		if numbers[field] > math.MaxInt32 {
			return fault.Corruptf("field %d: %d entries", field, numbers[field])
		}
	}
	for _, field := range []int{trailerIndexLen, trailerBytes, trailerCells} {
		if numbers[field] > math.MaxInt64 {
			return fault.Corruptf("field %d: %d", field, int64(numbers[field]))
		}
	}
	for _, field := range []int{trailerFirst, trailerLast} {
		if at := int64(numbers[field]); at < -1 || at >= limit {
			return fault.Corruptf("field %d: data block at byte %d, trailer at byte %d", field, at, limit)
		}
	}
	levels := numbers[trailerLevels]
	if levels == 0 && numbers[trailerIndexN] == 0 {
		levels = 1
	}
	if levels < 1 || levels > maxIndexLevels {
		return fault.Corruptf("an index of %d levels, 1 to %d are possible", levels, maxIndexLevels)
	}
	switch c := numbers[trailerCodec]; c {
	case uint64(GZ), uint64(None), uint64(Snappy), uint64(LZ4), uint64(Zstd):
		t.Codec = Codec(c)
	default:
		return fault.Unsupportedf("codec %s", codecName(c))
	}
	if !knownComparator(t.Comparator) {
		return fault.Unsupportedf("comparator %.200q", t.Comparator)
	}
	t.FileInfoOffset = int64(info)
	t.LoadOnOpenOffset = int64(load)
	t.IndexBytes = int64(numbers[trailerIndexLen])
	t.UncompressedBytes = int64(numbers[trailerBytes])
	t.DataIndexCount = int(numbers[trailerIndexN])
	t.MetaIndexCount = int(numbers[trailerMetaN])
	t.EntryCount = int64(numbers[trailerCells])
	t.IndexLevels = int(levels)
	t.FirstDataBlock = int64(numbers[trailerFirst])
	t.LastDataBlock = int64(numbers[trailerLast])
	return nil
}

// codecName returns the name that HBase gives a codec which this package does not read.
func codecName(c uint64) string {
	names := map[uint64]string{0: "LZO", 5: "BZIP2", 7: "LZMA", 8: "BROTLI"}
	if name, ok := names[c]; ok {
		return name
	}
	return fmt.Sprint(c)
}

// knownComparator reports whether cells in a file with this comparator are in the order of
// Key.Compare. HBase and Hudi gave that order several names. The order of hbase:meta is another.
// Source: hfile spec §9.
func knownComparator(name string) bool {
	switch name {
	case "",
		comparatorHBase,
		"org.apache.hadoop.hbase.KeyValue$KeyComparator",
		"org.apache.hadoop.hbase.CellComparator",
		"org.apache.hadoop.hbase.CellComparatorImpl",
		"org.apache.hadoop.hbase.InnerStoreCellComparator",
		"org.apache.hadoop.hbase.KeyValue$RawBytesComparator",
		"org.apache.hadoop.hbase.util.Bytes$ByteArrayComparator":
		return true
	}
	return isHudiComparator(name)
}

// isHudiComparator reports whether Hudi wrote the file: itself, or through HBase as releases before
// 1.1 do, under a name of their own for the bootstrap index.
func isHudiComparator(name string) bool {
	return strings.HasPrefix(name, "org.apache.hudi.")
}
