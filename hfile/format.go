package hfile

import "fmt"

// Codec is the compression of all blocks of a file: the number in the trailer.
// Source: hfile spec §3.3.
type Codec uint8

// Codecs that this package reads and writes. LZO (0), BZIP2 (5), and newer numbers are unsupported.
const (
	GZ     Codec = 1 // one gzip member a block
	None   Codec = 2 // plain bytes
	Snappy Codec = 3 // Hadoop's block framing around raw Snappy
	LZ4    Codec = 4 // Hadoop's block framing around raw LZ4 blocks
	Zstd   Codec = 6 // Hadoop's block framing around Zstandard frames
)

// Encoding is how the keys of a data block are stored: the number at the start of the block.
// Source: hfile spec §5.6.
type Encoding uint16

// Encodings of data blocks.
const (
	EncodingNone       Encoding = 0
	EncodingPrefix     Encoding = 2
	EncodingDiff       Encoding = 3
	EncodingFastDiff   Encoding = 4
	EncodingRowIndexV1 Encoding = 7
)

// Checksum is the type of the checksums after each block. Source: hfile spec §3.2.
type Checksum uint8

// Types of checksums.
const (
	ChecksumNull   Checksum = 0 // zeros; nothing can be verified
	ChecksumCRC32  Checksum = 1 // IEEE polynomial
	ChecksumCRC32C Checksum = 2 // Castagnoli polynomial
)

// BloomKind says which part of each key a Bloom filter contains. Source: hfile spec §7.3.
type BloomKind uint8

// Kinds of HBase's Bloom filters.
const (
	BloomNone      BloomKind = iota
	BloomRow                 // rows
	BloomRowCol              // rows with qualifier
	BloomRowPrefix           // the first bytes of rows: ROWPREFIX_FIXED_LENGTH
)

// BloomHash is the hash function of a Bloom filter: the number in its metadata.
// Source: hfile spec §7.3.
type BloomHash uint8

// Hash functions.
const (
	Jenkins BloomHash = 0
	Murmur  BloomHash = 1
	Murmur3 BloomHash = 2
)

func (c Codec) String() string {
	switch c {
	case GZ:
		return "GZ"
	case None:
		return "NONE"
	case Snappy:
		return "SNAPPY"
	case LZ4:
		return "LZ4"
	case Zstd:
		return "ZSTD"
	}
	return fmt.Sprintf("codec %d", uint8(c))
}

func (e Encoding) String() string {
	switch e {
	case EncodingNone:
		return "NONE"
	case EncodingPrefix:
		return "PREFIX"
	case EncodingDiff:
		return "DIFF"
	case EncodingFastDiff:
		return "FAST_DIFF"
	case EncodingRowIndexV1:
		return "ROW_INDEX_V1"
	}
	return fmt.Sprintf("encoding %d", uint16(e))
}

func (c Checksum) String() string {
	switch c {
	case ChecksumNull:
		return "NULL"
	case ChecksumCRC32:
		return "CRC32"
	case ChecksumCRC32C:
		return "CRC32C"
	}
	return fmt.Sprintf("checksum type %d", uint8(c))
}

func (k BloomKind) String() string {
	switch k {
	case BloomNone:
		return "NONE"
	case BloomRow:
		return "ROW"
	case BloomRowCol:
		return "ROWCOL"
	case BloomRowPrefix:
		return "ROWPREFIX_FIXED_LENGTH"
	}
	return fmt.Sprintf("Bloom kind %d", uint8(k))
}

func (h BloomHash) String() string {
	switch h {
	case Jenkins:
		return "jenkins"
	case Murmur:
		return "murmur"
	case Murmur3:
		return "murmur3"
	}
	return fmt.Sprintf("hash %d", uint8(h))
}

// Block types: the first eight bytes of a block. Source: hfile spec §4.
const (
	magicData         = "DATABLK*"  // file format: never change
	magicEncodedData  = "DATABLKE"  // file format: never change
	magicLeafIndex    = "IDXLEAF2"  // file format: never change
	magicInnerIndex   = "IDXINTE2"  // file format: never change
	magicRootIndex    = "IDXROOT2"  // file format: never change
	magicMeta         = "METABLKc"  // file format: never change
	magicFileInfo     = "FILEINF2"  // file format: never change
	magicBloomChunk   = "BLMFBLK2"  // file format: never change
	magicBloomMeta    = "BLMFMET2"  // file format: never change
	magicDeleteFamily = "DFBLMET2"  // file format: never change
	magicTrailer      = "TRABLK\"$" // file format: never change
)

// Keys of file info that the format gives a meaning. Source: hfile spec §8.
const (
	infoLastKey           = "hfile.LASTKEY"
	infoAvgKeyLen         = "hfile.AVG_KEY_LEN"
	infoAvgValueLen       = "hfile.AVG_VALUE_LEN"
	infoCreateTime        = "hfile.CREATE_TIME_TS"
	infoComparator        = "hfile.COMPARATOR"
	infoMaxTagsLen        = "hfile.MAX_TAGS_LEN"
	infoTagsCompressed    = "hfile.TAGS_COMPRESSED"
	infoBiggestCellKey    = "hfile.KEY_OF_BIGGEST_CELL"
	infoBiggestCellLen    = "hfile.LEN_OF_BIGGEST_CELL"
	infoKeyValueVersion   = "KEY_VALUE_VERSION"
	infoMaxMemstoreTS     = "MAX_MEMSTORE_TS_KEY"
	infoDataEncoding      = "DATA_BLOCK_ENCODING"
	infoIndexEncoding     = "INDEX_BLOCK_ENCODING"
	infoBloomKind         = "BLOOM_FILTER_TYPE"
	infoBloomParam        = "BLOOM_FILTER_PARAM"
	infoLastBloomKey      = "LAST_BLOOM_KEY"
	infoDeleteFamilyCount = "DELETE_FAMILY_COUNT"
	infoEarliestPut       = "EARLIEST_PUT_TS"
	infoTimeRange         = "TIMERANGE"
	infoHudiBloomType     = "bloomFilterTypeCode"
)

// infoReservedPrefix is the prefix of the format's keys, which users cannot set.
const infoReservedPrefix = "hfile."

// hudiBloomMeta is the name of the meta block with Hudi's Bloom filter.
const hudiBloomMeta = "bloomFilter"

// Comparator names in the trailer. Source: hfile spec §9.
const (
	comparatorHBase = "org.apache.hadoop.hbase.KeyValue$KVComparator"
	comparatorHudi  = "org.apache.hudi.io.storage.HoodieHBaseKVComparator"
)
