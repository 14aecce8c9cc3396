package cfile

import (
	"fmt"

	"github.com/oribi-db/oribi/internal/compress"
	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/schema"
)

// WriterOptions says what a file is and how it is laid out. The zero value of a field means its
// default.
type WriterOptions struct {
	Type        schema.Type
	Encoding    schema.Encoding    // Auto: the type's default
	Compression schema.Compression // default: LZ4 for byte strings, none for all else
	Nullable    bool
	Array       bool // cells are arrays whose elements are of Type; Nullable says whether a whole cell may be NULL

	BlockBytes      int // of the encoded values of a cblock, about; default 256 KiB, at least 512
	StringBytes     int // the same of a cblock of byte strings that stand for themselves, not as codes of a dictionary; default BlockBytes
	IndexBlockBytes int // of a node of an index, about; default 32 KiB
	RestartInterval int // values between restart points of prefix encoding; default 16

	PositionalIndex bool
	ValueIndex      bool // values must rise, be of a type that keys can have, and not be nullable

	// FullIndexKeys keeps the keys of the value index whole. Otherwise they are cut to what tells
	// neighbours apart.
	FullIndexKeys bool
	// IndexKey makes the key of a cblock from its first cell, which it may alias. nil stands for
	// the encoded cell.
	IndexKey func(cell []byte) []byte

	NoChecksums    bool
	HeaderMetadata []Pair

	// Exact gives the bytes of Kudu's writer and nothing else: no zone map, and cblocks that end
	// where Kudu ends them. One call of Append then counts as one batch of Kudu's, which some
	// encodings never split. Otherwise no cblock has more than 2^20 rows, and large appends are
	// taken 4096 rows at a time.
	Exact bool
}

// Defaults of WriterOptions. Source: cfile spec §11.5.
const (
	DefaultBlockBytes      = 256 << 10
	DefaultIndexBlockBytes = 32 << 10
	DefaultRestartInterval = 16

	minBlockBytes = 512
)

// resolve fills in defaults and checks the rest. Errors wrap ErrUnsupported.
func (o *WriterOptions) resolve() error {
	if !o.Type.Scalar() {
		return fault.Unsupportedf("cfile: data type %d", int32(o.Type))
	}
	o.Encoding, o.Compression = o.Encoding.Resolve(o.Type), o.Compression.Resolve(o.Type)
	if !o.Encoding.Allowed(o.Type) {
		return fault.Unsupportedf("cfile: encoding %v for type %v", o.Encoding, o.Type)
	}
	if _, err := compress.Lookup(int32(o.Compression)); err != nil {
		return fault.Unsupportedf("cfile: compression %d", int32(o.Compression))
	}
	if o.ValueIndex && o.Array {
		return fault.Unsupportedf("cfile: value index of a column of arrays")
	}
	if o.ValueIndex && (o.Nullable || o.IndexKey == nil && !o.Type.Keyable()) {
		return fault.Unsupportedf("cfile: value index of a column of %v, nullable is %v", o.Type, o.Nullable)
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
