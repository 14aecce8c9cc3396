// Package encoding reads and writes the values inside a data cblock.
//
// Its input is the payload: the cblock without checksum, codec and prologue, all of which cfile
// removes. A payload contains the non-NULL values of a range of rows, back to back. The prologue
// (AppendNullPrologue, ArrayPrologue) records which rows are NULL and how long each array is.
//
//	encoding     types            payload
//	PLAIN        fixed width      count, ordinal, cells
//	PLAIN        bool             count, ordinal, bits
//	PLAIN        byte strings     ordinal, count, bytes, offsets
//	RLE          bool, integers   count, ordinal, runs
//	BIT_SHUFFLE  fixed width      ordinal, count, bit rows (planes) in LZ4 chunks of 8 KiB
//	PREFIX       byte strings     shared prefix length and suffix of each value, restart points
//	DICT         byte strings     BIT_SHUFFLE of codes, or PLAIN
//
// Each format is specified above the constants in its file. To read, Parse a payload into a Block.
// To write, fill a Builder from vectors and call Finish.
//
// Parse checks the structure of a payload. LZ4 streams and dictionary codes are checked when they
// are decoded. Malformed bytes return an error that wraps fault.ErrCorrupt and never panic. No
// allocation depends on a count in the payload alone. A Block is immutable and safe for concurrent
// use; a Builder is not.
//
// BIT_SHUFFLE values and dictionary codes are tested, added up, and searched for extremes on their
// bit planes, without decoding them (Block.Select, NumberBlock). Byte strings are tested in the
// payload: in PLAIN mostly by their length or their first eight bytes, in PREFIX by the bytes that
// an entry adds to the value before it.
//
// Returned slices alias the payload, which must not be reused while they are in use.
//
// Simpler than Kudu: a block has no cursor; every call names its range. The cost is a short search
// for the beginning of a range (in RLE and PREFIX). A bitshuffle block keeps one decoded chunk, so
// that a chunk shared by two adjacent ranges is decoded once. Only the elements of arrays are
// encoded here; cfile assembles the arrays.
package encoding

import (
	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/schema"
)

// Block is one parsed payload. Value indexes are 0-based. A range outside [0, Len()) panics. A
// Block is safe for concurrent use.
type Block interface {
	// Ordinal returns the ordinal of the cblock's first row, whether or not that row is NULL.
	Ordinal() batch.Ordinal
	// Len returns the number of encoded values, that is, of rows that are not NULL.
	Len() int
	// Decode writes values [from, from+n) to cells [at, at+n) of dst. dst has the block's type, is
	// not in dictionary form, and has at least at+n cells; its null bitmap does not change. Byte
	// strings alias the payload, the dictionary, or separate memory. They are valid as long as the
	// payload is.
	Decode(from, n int, dst *batch.Vector, at int) error
	// Cell returns value i: Width bytes little-endian, or the byte string. The caller must not
	// change it.
	Cell(i int) ([]byte, error)
	// Seek returns the index of the first value ≥ target, or Len() if all are less, and reports
	// whether the two are equal. The values must be sorted. Types without key encoding, such as
	// floats and bools, return ErrUnsupported.
	Seek(target []byte) (i int, exact bool, err error)
	// Select evaluates p on the encoded values [from, from+n). It clears the bits in [at, at+n) of
	// sel whose values do not pass. If handled is false, sel is unchanged, and the caller must
	// decode and test the values.
	Select(p *batch.Predicate, from, n int, sel batch.Bitmap, at int) (handled bool, err error)
	// Footprint returns the memory of the block in bytes, without the payload, for a cache that
	// keeps it.
	Footprint() int
}

// CountingBlock is a Block that reports which values its Select need not look at.
type CountingBlock interface {
	Block
	// SelectCounted does what Select does. It also adds the selected values that the dictionary or
	// constant planes decide to c.Dictionary and c.Planes.
	SelectCounted(p *batch.Predicate, from, n int, sel batch.Bitmap, at int,
		c *batch.TestCounts) (handled bool, err error)
}

// BackwardBlock is a Block that decodes values in descending order as fast as in ascending order.
// Others are decoded, then reversed.
type BackwardBlock interface {
	Block

	// DecodeBackward decodes values [from, from+n) into cells [at, at+n) of dst, the last one
	// first.
	DecodeBackward(from, n int, dst *batch.Vector, at int)
}

// SparseBlock is a Block of byte strings that decodes some values faster than all.
type SparseBlock interface {
	Block

	// DecodeSelected decodes the values in [from, from+n) whose bits in [selAt, selAt+n) of sel are
	// 1 into cells [at, at+n) of dst. The cells of the other values do not change.
	DecodeSelected(from, n int, sel batch.Bitmap, selAt int, dst *batch.Vector, at int)
}

// CodeBlock is a block of dictionary codes. A reader can take a vector from it in dictionary form.
// A DICT block in plain mode is not a CodeBlock.
type CodeBlock interface {
	Block
	// Codes writes the codes of values [from, from+n) to dst, which has n elements. All are below
	// len(Dict().Words).
	Codes(from, n int, dst []uint32) error
	// Dict returns the file's dictionary.
	Dict() *batch.Dictionary
}

// RunBlock is a block that stores its values in runs, so that sums and counts need not visit each
// value.
type RunBlock interface {
	Block
	// Runs calls f for the runs of values [from, from+n), in order, and stops at its first error. A
	// run has k values that all equal cell. If cell is nil, the k values differ.
	Runs(from, n int, f func(k int, cell []byte) error) error
}

// Chunks caches decoded chunks of one cblock's bitshuffle payload, by index, for point reads. The
// caller who provides it bounds its size. A chunk passed to Put belongs to the cache and never
// changes. If the block is shared, Chunks must be safe for concurrent use.
type Chunks interface {
	Get(i int) []byte // nil if the chunk is not in the cache
	Put(i int, decoded []byte)
}

// Params are the arguments of Parse.
type Params struct {
	Type     schema.Type
	Encoding schema.Encoding   // Auto is the default of Type
	Payload  []byte            // aliased by the block
	Dict     *batch.Dictionary // DICT only; nil refuses blocks of codes
	Chunks   Chunks            // nil disables the cache

	// Limit is the maximum memory, in bytes, for the decoded offsets of PLAIN byte strings: a short
	// compressed stream may represent millions of offsets. A block that would need more reads the
	// offsets from the payload on demand, which is slower. 0 means no limit.
	Limit int
	// Offsets is memory for these offsets, which Parse replaces if it is too small. The block uses
	// it, so it may be reused when the block is not needed any more. nil allocates new memory.
	Offsets *[]uint32
}

// Parse checks a payload and returns it as a Block. Errors: ErrCorrupt for a malformed payload,
// ErrUnsupported for an encoding that the type does not allow. Source: cfile spec §6, §12.3.
func Parse(p Params) (Block, error) {
	if !p.Type.Scalar() || !p.Encoding.Allowed(p.Type) {
		return nil, fault.Unsupportedf("encoding: %s does not fit %s", p.Encoding, p.Type)
	}
	switch p.Encoding.Resolve(p.Type) {
	case schema.RLE:
		return parseRLE(p)
	case schema.Bitshuffle:
		return parseBitshuffle(p.Payload, p.Type, p.Chunks)
	case schema.Prefix:
		return parsePrefix(p.Payload)
	case schema.Dictionary:
		return parseDict(p)
	}
	switch p.Type.Physical() {
	case schema.Bool:
		return parsePlainBool(p.Payload)
	case schema.Binary:
		return parsePlainBinary(p.Payload, p.Limit, p.Offsets)
	}
	return parsePlain(p.Payload, p.Type)
}

// maxRows is one more than the highest ordinal that a file can have.
const maxRows = 1 << 32

// checkRange returns an error if the last value has no valid ordinal.
func checkRange(name string, ordinal, count uint32) error {
	if uint64(ordinal)+uint64(count) > maxRows {
		return fault.Corruptf("encoding: %s: %d values from ordinal %d: beyond 2^32 rows", name, count, ordinal)
	}
	return nil
}

// selectAll evaluates the predicates that depend on no value: no value of a payload is NULL.
func selectAll(p *batch.Predicate, n int, sel batch.Bitmap, at int) (handled bool) {
	switch p.Op {
	case batch.IsNull:
		sel.ClearRange(at, at+n)
		return true
	case batch.NotNull:
		return true
	}
	return false
}

// searchCells returns the index of the first of n sorted cells that is not below target, and
// reports whether that cell equals target.
func searchCells(t schema.Type, n int, cell func(i int) []byte, target []byte) (i int, exact bool) {
	lo, hi := 0, n
	for lo < hi {
		mid := int(uint(lo+hi) >> 1)
		if batch.Compare(t, cell(mid), target) < 0 {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	return lo, lo < n && batch.Compare(t, cell(lo), target) == 0
}

// checkTarget returns an error if the type has no key order or if target is not a cell of the type.
func checkTarget(t schema.Type, target []byte) error {
	if !t.Keyable() {
		return fault.Unsupportedf("encoding: %s values cannot be searched", t)
	}
	if !t.Variable() && len(target) != t.Width() {
		return fault.Unsupportedf("encoding: a target of %d bytes is no %s", len(target), t)
	}
	return nil
}

// boolCells has the cells of false and true.
var boolCells = [2][]byte{{0}, {1}}
