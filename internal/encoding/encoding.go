// Package encoding reads and writes the values inside a data cblock.
//
// Its input is the payload: the cblock without checksum, codec and prologue, all of which cfile
// removes. A payload contains the present values of some rows, back to back; the prologue
// (AppendNullPrologue, ArrayPrologue) contains NULLs and the borders of arrays.
//
//	encoding     types            payload
//	PLAIN        fixed width      count, ordinal, cells
//	PLAIN        bool             count, ordinal, bits
//	PLAIN        byte strings     ordinal, count, bytes, offsets
//	RLE          bool, integers   count, ordinal, runs
//	BIT_SHUFFLE  fixed width      ordinal, count, bit rows in LZ4 chunks of 8 KiB
//	PREFIX       byte strings     what each shares with the one before, restart points
//	DICT         byte strings     BIT_SHUFFLE of codes, or PLAIN once the dictionary is full
//
// Each format is described in full above the constants of its file. Use: Parse a payload into a
// Block and read values from it, or fill a Builder from vectors and Finish it.
//
// A Block checks its structure when it is parsed, and what only decoding can show (LZ4 streams,
// codes) when it is decoded: bytes that are not what a writer makes give an error that wraps
// fault.ErrCorrupt, never a panic, and nothing is allocated on the word of a count alone. Blocks
// never change after Parse: many goroutines may share one. Builders are for one goroutine.
//
// Returned slices alias the payload, which must not be reused while they are in use.
//
// Simpler than Kudu: there are no cursors inside a block; every call names its range. The cost is a
// short search where a range begins (in RLE and PREFIX), and one chunk kept by bitshuffle blocks so
// that a chunk which two ranges share is decoded once. No arrays.
package encoding

import (
	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/schema"
)

// Block is one parsed payload. Values are counted from 0; ranges outside [0, Len()) are a fault of
// the program and panic. All methods may be called by many goroutines at once.
type Block interface {
	// Ordinal is the row of the first row of the cblock, NULL or not.
	Ordinal() batch.Ordinal
	// Len is the number of encoded values: the rows that are not NULL.
	Len() int
	// Decode puts values [from, from+n) into cells [at, at+n) of dst, which is of the block's type,
	// not in dictionary form, and has at least at+n cells. Presence is left as it is. Byte strings
	// alias the payload, the dictionary, or memory of their own; they are valid as long as the
	// payload is.
	Decode(from, n int, dst *batch.Vector, at int) error
	// Cell is value i: Width bytes little-endian, or the byte string. Not to be changed.
	Cell(i int) ([]byte, error)
	// Seek finds the first value ≥ target, a cell; i is Len() when there is none, exact reports
	// equality. The values must be sorted. Floats and bools have no order here: ErrUnsupported.
	Seek(target []byte) (i int, exact bool, err error)
	// Select clears those of the bits [at, at+n) of sel whose values in [from, from+n) do not pass
	// p, working on the encoded form. When handled is false sel is unchanged and the caller
	// decodes.
	Select(p *batch.Predicate, from, n int, sel batch.Bitmap, at int) (handled bool, err error)
	// Footprint returns the memory of the block besides the payload, in bytes, for a cache that
	// keeps it.
	Footprint() int
}

// CodeBlock is a block of dictionary codes, so that a whole vector can be read in dictionary form.
// A DICT block in plain mode is none.
type CodeBlock interface {
	Block
	// Codes puts the codes of values [from, from+n) into dst, of n. All are below
	// len(Dict().Words).
	Codes(from, n int, dst []uint32) error
	// Dict is the file's dictionary.
	Dict() *batch.Dictionary
}

// RunBlock is a block whose values are stored in runs, so that sums and counts need not visit each
// value.
type RunBlock interface {
	Block
	// Runs calls f for the runs of values [from, from+n), in order, until it returns an error: k
	// values, each of them cell, or, where cell is nil, values that differ.
	Runs(from, n int, f func(k int, cell []byte) error) error
}

// Chunks keeps decoded chunks of one cblock's bitshuffle payload, by index, for point reads:
// whoever gives one answers for its size. Chunks that are put belong to the cache and never change.
// If the block is shared, Chunks must be safe for concurrent use.
type Chunks interface {
	Get(i int) []byte // nil when it is not there
	Put(i int, decoded []byte)
}

// Params is what Parse needs to know of a payload.
type Params struct {
	Type     schema.Type
	Encoding schema.Encoding   // Auto is the default of Type
	Payload  []byte            // aliased by the block
	Dict     *batch.Dictionary // DICT only; nil refuses blocks of codes
	Chunks   Chunks            // nil: decoded chunks are not kept

	// Limit is how much memory, in bytes, a block of PLAIN byte strings may take for their offsets
	// beside the payload: a few bytes of a codec's stream may represent millions of them. One that
	// needs more works from the payload, slower. 0 is no limit.
	Limit int
}

// Parse checks a payload and makes a block of it. Errors: ErrCorrupt for a bad payload,
// ErrUnsupported for an encoding that the type cannot have. Source: cfile spec §6, §12.3.
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
		return parsePlainBinary(p.Payload, p.Limit)
	}
	return parsePlain(p.Payload, p.Type)
}

// maxRows is one more than the highest ordinal that a file can have.
const maxRows = 1 << 32

// checkRange refuses values beyond the last possible ordinal.
func checkRange(name string, ordinal, count uint32) error {
	if uint64(ordinal)+uint64(count) > maxRows {
		return fault.Corruptf("encoding: %s: %d values from ordinal %d: beyond 2^32 rows", name, count, ordinal)
	}
	return nil
}

// selectAll answers the tests that look at no value: all values of a payload are present.
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

// searchCells finds the first of n sorted cells that is not below target, and reports whether it
// equals target.
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

// checkTarget refuses to seek where there is no order, and targets that are no cells.
func checkTarget(t schema.Type, target []byte) error {
	if !t.Keyable() {
		return fault.Unsupportedf("encoding: %s values cannot be searched", t)
	}
	if !t.Variable() && len(target) != t.Width() {
		return fault.Unsupportedf("encoding: a target of %d bytes is no %s", len(target), t)
	}
	return nil
}

// boolCells are the cells false and true.
var boolCells = [2][]byte{{0}, {1}}
