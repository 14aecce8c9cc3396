package cfile

import (
	"fmt"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/internal/compress"
	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/schema"
)

// WriterOptions describes a file's content and layout. The zero value of a field selects its
// default.
type WriterOptions struct {
	Type     schema.Type
	Encoding schema.Encoding // Auto: the type's default
	// Compression is the codec; default: LZ4 for byte strings, none for all else. With LZ4HC and
	// Dense the codec is LZ4 or Zlib, and a better compression takes more time.
	Compression schema.Compression
	Nullable    bool
	Array       bool // cells are arrays whose elements have type Type; Nullable applies to whole cells

	BlockBytes      int // approximate size of a cblock's encoded values; default 256 KiB, at least 512
	StringBytes     int // the same for byte strings stored as such, not as dictionary codes; default BlockBytes
	IndexBlockBytes int // approximate size of an index node; default 32 KiB
	RestartInterval int // values between restart points of prefix encoding; default 16

	PositionalIndex bool
	ValueIndex      bool // write a value index; values must ascend, have a type allowed in keys, and not be nullable

	// FullIndexKeys stores complete keys in the value index. Otherwise each is cut to the shortest
	// prefix that separates it from the previous value.
	FullIndexKeys bool
	// IndexKey returns the key of a cblock given its first cell, which the key may alias. nil means
	// the encoded cell.
	IndexKey func(cell []byte) []byte

	// Keyed makes a value index of the keys with which the cells begin, see AppendKeyed. Type is
	// schema.Binary; the keys ascend.
	Keyed bool

	// NoWords writes a file in dictionary encoding as if its dictionary were full at once.
	NoWords bool
	// Words are the first words of the dictionary, used or not, if they fit; nil for none. Files
	// whose dictionaries begin with the same words can take codes from one another. They are ignored
	// if the file has a value index, whose dictionary is sorted like the values.
	Words *batch.Dictionary

	NoChecksums    bool
	HeaderMetadata []Pair

	// Exact writes exactly what Kudu's writer writes: no zone map, and cblocks that end where Kudu
	// ends them. One call of Append then corresponds to one batch in Kudu, which some encodings
	// never split. Otherwise no cblock has more than 2^20 rows, large appends are processed 4096
	// rows at a time, and bitshuffled values and dictionary codes, whose LZ4 streams have another
	// form, take up to 18 % more bytes and are read faster. Kudu reads both.
	Exact bool

	// Hasty makes an Exact file compress as others: after 8 cblocks in a row that did not get smaller,
	// the next ones are stored as they are, except each eighth, until one gets smaller. LZ4HC and
	// Dense compress each cblock.
	Hasty bool

	hard bool // Compression was LZ4HC or Dense
}

// Defaults of WriterOptions. Source: cfile spec §11.5.
const (
	DefaultBlockBytes      = 256 << 10
	DefaultIndexBlockBytes = 32 << 10
	DefaultRestartInterval = 16

	minBlockBytes = 512
)

// resolve fills in defaults and checks the other fields. Errors wrap ErrUnsupported.
func (o *WriterOptions) resolve() error {
	if !o.Type.Scalar() {
		return fault.Unsupportedf("cfile: data type %d", int32(o.Type))
	}
	o.Encoding, o.Compression = o.Encoding.Resolve(o.Type), o.Compression.Resolve(o.Type)
	if !o.Encoding.Allowed(o.Type) {
		return fault.Unsupportedf("cfile: encoding %v for type %v", o.Encoding, o.Type)
	}
	if codec := o.Compression.Codec(); codec != o.Compression {
		o.Compression, o.hard = codec, true
	}
	if _, err := compress.Lookup(int32(o.Compression)); err != nil {
		return fault.Unsupportedf("cfile: compression %d", int32(o.Compression))
	}
	if o.Keyed {
		if o.Type != schema.Binary || o.Nullable || o.Array {
			return fault.Unsupportedf("cfile: cells with keys in a column of %v (nullable: %v, arrays: %v)",
				o.Type, o.Nullable, o.Array)
		}
		o.ValueIndex, o.IndexKey = true, keyOf
	}
	if o.ValueIndex && o.Array {
		return fault.Unsupportedf("cfile: value index of a column of arrays")
	}
	if o.ValueIndex && (o.Nullable || o.IndexKey == nil && !o.Type.Keyable()) {
		return fault.Unsupportedf("cfile: value index of a column of %v (nullable: %v)", o.Type, o.Nullable)
	}
	if o.StringBytes == 0 {
		o.StringBytes = o.BlockBytes
	}
	for _, f := range []struct {
		field        *int
		name         string
		def, minimum int
	}{
		{&o.BlockBytes, "BlockBytes", DefaultBlockBytes, minBlockBytes},
		{&o.StringBytes, "StringBytes", DefaultBlockBytes, minBlockBytes},
		{&o.IndexBlockBytes, "IndexBlockBytes", DefaultIndexBlockBytes, 1},
		{&o.RestartInterval, "RestartInterval", DefaultRestartInterval, 1},
	} {
		if *f.field < 0 || int64(*f.field) > 1<<30 {
			return fmt.Errorf("cfile: %s is %d: %w", f.name, *f.field, fault.ErrUnsupported)
		}
		if *f.field == 0 {
			*f.field = f.def
		}
		*f.field = max(*f.field, f.minimum)
	}
	return nil
}
