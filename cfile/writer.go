package cfile

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/bits"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/block"
	"github.com/oribi-db/oribi/internal/compress"
	"github.com/oribi-db/oribi/internal/encoding"
	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/internal/invariant"
	"github.com/oribi-db/oribi/internal/kudupb"
	"github.com/oribi-db/oribi/keyenc"
)

const (
	// maxBlockRows limits a cblock's rows where the format leaves the choice to us: long runs and
	// NULLs take almost no bytes, and a zone map is useless if one cblock contains all rows.
	maxBlockRows = 1 << 20
	// appendRows is the number of rows of a large append that are processed at a time.
	appendRows = batch.WindowRows

	maxRows = math.MaxUint32
)

var errFinished = errors.New("cfile: the file is finished")

// Writer writes one file. Not safe for concurrent use. After an error the Writer must not be used
// again, and the sink does not contain a valid file.
type Writer struct {
	o      WriterOptions
	out    framer
	values encoding.Builder
	words  encoding.DictionaryBuilder // the same as values if it builds a dictionary, otherwise nil
	coded  int64                      // values in cblocks of codes

	// Parts of the file besides data cblocks. They grow with the number of cblocks, not of rows.
	ordinals, keys *treeBuilder            // nil = not requested
	zone           *zoneBuilder            // nil = none
	arrays         *encoding.ArrayPrologue // of the open cblock; nil if the column has no arrays
	pairs          []Pair                  // for the footer

	// The open cblock: values of rows that were appended and not yet written.
	first     int64        // row of the open cblock's first row
	rows      int          // of the open cblock
	present   batch.Bitmap // of the open cblock; only if one of its rows is NULL
	hasNulls  bool
	prevKey   []byte // value index: encoded last value of the cblock before
	key, last []byte // memory of keys
	err       error

	onStrings func(*WrittenStrings) // see OnStrings
	offsets   []uint32              // memory of reportStrings
}

// NewWriter starts a file at the sink's end by writing the header. Errors: ErrUnsupported for
// invalid or incompatible options; the errors of the sink.
func NewWriter(sink block.Sink, o WriterOptions) (*Writer, error) {
	if err := o.resolve(); err != nil {
		return nil, err
	}
	values, err := encoding.NewBuilder(encoding.BuilderOptions{Type: o.Type, Encoding: o.Encoding,
		BlockBytes: o.BlockBytes, StringBytes: o.StringBytes, RestartInterval: o.RestartInterval,
		Exact: o.Exact, NoWords: o.NoWords})
	if err != nil {
		return nil, fmt.Errorf("cfile: %w", err)
	}
	w := &Writer{o: o, values: values}
	if w.words, _ = values.(encoding.DictionaryBuilder); w.words != nil && o.Words != nil && !o.ValueIndex {
		w.words.Share(o.Words)
	}
	w.out = framer{sink: sink, codec: compress.Codec(o.Compression), hard: o.hard,
		hasty: (o.Hasty || !o.Exact) && !o.hard, checksums: !o.NoChecksums}
	if o.PositionalIndex {
		w.ordinals = newTreeBuilder(&w.out, o.IndexBlockBytes)
	}
	if o.ValueIndex {
		w.keys = newTreeBuilder(&w.out, o.IndexBlockBytes)
	}
	if o.Keyed {
		w.keys.nodeBytes, w.keys.late = min(o.IndexBlockBytes, keyedNodeBytes), maxLateLeaves
	}
	if o.Array {
		w.arrays = new(encoding.ArrayPrologue)
		w.arrays.Reset()
	} else if !o.Exact && !o.NoChecksums && (o.PositionalIndex || o.ValueIndex) {
		w.zone = &zoneBuilder{t: o.Type}
	}
	if o.Keyed {
		w.AddMetadata(keyedPair, []byte{keyedVersion})
	}
	header, err := appendHeader(nil, o.HeaderMetadata, !o.NoChecksums)
	if err != nil {
		return nil, err
	}
	return w, w.out.write(header)
}

// Rows returns the number of cells appended, NULLs included.
func (w *Writer) Rows() int64 { return w.first + int64(w.rows) }

// Bytes returns the number of bytes written, without the open cblock.
func (w *Writer) Bytes() int64 { return w.out.offset }

// Closed returns the rows of the cblocks that were written, and their bytes.
func (w *Writer) Closed() (rows, bytes int64) { return w.first, w.out.offset }

// AddMetadata adds a pair to the footer.
func (w *Writer) AddMetadata(key string, value []byte) {
	w.pairs = append(w.pairs, Pair{key, value})
}

// Append appends all cells of v, which has the physical type of the file, in any form (in array
// form if, and only if, the column is one of arrays). It does not retain v. Errors: ErrSchema for a
// vector that Vector.Validate refuses, of another type or form, or with NULLs if the file is not
// nullable; the errors of the sink.
func (w *Writer) Append(v *batch.Vector) error {
	if w.err != nil {
		return w.err
	}
	if err := v.Validate(); err != nil {
		return w.fail(fmt.Errorf("cfile: block %v: %w: %w", w.out.sink.ID(), err, fault.ErrSchema))
	}
	if v.Type.Physical() != w.o.Type.Physical() {
		return w.fail(fmt.Errorf("cfile: block %v: vector of %s, file of %s: %w", w.out.sink.ID(), v.Type,
			w.o.Type, fault.ErrSchema))
	}
	return w.appendRange(v, 0, v.Len)
}

// appendRange appends cells [from, to) of v, which is well-formed. Source: cfile spec §11.3.
func (w *Writer) appendRange(v *batch.Vector, from, to int) error {
	if w.err != nil {
		return w.err
	}
	if w.o.Array != (v.Elements != nil) {
		return w.fail(fmt.Errorf("cfile: block %v: vector of arrays: %v, column of arrays: %v: %w",
			w.out.sink.ID(), v.Elements != nil, w.o.Array, fault.ErrSchema))
	}
	if w.Rows()+int64(to-from) > maxRows {
		return w.fail(fmt.Errorf("cfile: block %v: more than %d rows", w.out.sink.ID(), int64(maxRows)))
	}
	for from < to {
		end := to
		if !w.o.Exact {
			end = min(to, from+appendRows)
		}
		if err := w.appendPart(v, from, end); err != nil {
			return w.fail(err)
		}
		from = end
		if !w.o.Exact && w.rows >= maxBlockRows {
			if err := w.finishBlock(); err != nil {
				return w.fail(err)
			}
		}
	}
	return nil
}

// fail keeps the first error.
func (w *Writer) fail(err error) error {
	if w.err == nil {
		w.err = err
	}
	return err
}

// appendPart appends cells [from, to) in runs of NULLs and of present cells.
func (w *Writer) appendPart(v *batch.Vector, from, to int) error {
	if w.arrays != nil {
		return w.appendArrays(v, from, to)
	}
	if v.Present == nil {
		return w.appendPresent(v, from, to)
	}
	for from < to {
		end, present := runEnd(v.Present, from, to)
		if present {
			if err := w.appendPresent(v, from, end); err != nil {
				return err
			}
		} else if err := w.appendNulls(end - from); err != nil {
			return err
		}
		from = end
	}
	return nil
}

// runEnd returns the end of the run of equal bits at i, at most end, and their value.
func runEnd(b batch.Bitmap, i, end int) (int, bool) {
	one := b.Get(i)
	flip := uint64(0)
	if one {
		flip = ^flip
	}
	for i < end {
		if x := (b[i>>6] ^ flip) >> (uint(i) & 63); x != 0 {
			return min(i+bits.TrailingZeros64(x), end), one
		}
		i = i&^63 + 64
	}
	return end, one
}

// appendPresent appends cells [from, to), none of them NULL. It writes a cblock whenever one is
// full.
func (w *Writer) appendPresent(v *batch.Vector, from, to int) error {
	for from < to {
		n := w.values.Append(v, from, to)
		if w.zone != nil {
			w.addZone(v, from, from+n)
		}
		w.addPresence(n, true)
		from += n
		if w.values.Full() {
			if err := w.finishBlock(); err != nil {
				return err
			}
		} else if n <= 0 {
			panic(fmt.Sprintf("cfile: %d cells rejected by a builder that is not full", to-from))
		}
	}
	return nil
}

// appendNulls appends n NULLs. They never fill a cblock.
func (w *Writer) appendNulls(n int) error {
	if !w.o.Nullable {
		return w.errNull()
	}
	if w.zone != nil {
		w.zone.addNulls(n)
	}
	w.addPresence(n, false)
	return nil
}

func (w *Writer) errNull() error {
	return fmt.Errorf("cfile: block %v: row %d is NULL in a column that is not nullable: %w", w.out.sink.ID(),
		w.Rows(), fault.ErrSchema)
}

// addPresence adds n rows to the open cblock. The bitmap is created at the first NULL.
func (w *Writer) addPresence(n int, present bool) {
	from, to := w.rows, w.rows+n
	w.rows = to
	if !w.hasNulls {
		if present {
			return
		}
		w.hasNulls = true
		w.present = w.present.Resize(to)
		w.present.SetRange(0, from)
		return
	}
	for len(w.present) < (to+63)/64 {
		w.present = append(w.present, 0)
	}
	if present {
		w.present.SetRange(from, to)
	}
}

// finishBlock writes the open cblock, if it has rows, and its index entries. Source: cfile spec
// §11.1.
func (w *Writer) finishBlock() error {
	if w.rows == 0 {
		w.values.Reset() // AppendStored may have filled the dictionary
		return nil
	}
	memory := buffers.Get().(*[]byte)
	buf := *memory
	defer func() { reuse(memory, buf) }()
	if w.arrays != nil {
		buf = w.arrays.Finish(buf)
		w.arrays.Reset()
	} else if w.o.Nullable {
		var present batch.Bitmap
		if w.hasNulls {
			present = w.present
		}
		buf = encoding.AppendNullPrologue(buf, w.rows, present)
	}
	if w.words != nil && w.words.Coded() {
		w.coded += int64(w.words.Len())
	}
	buf = w.values.Finish(buf, batch.Ordinal(w.first))
	p, crc, err := w.out.writeBlock(buf)
	if err != nil {
		return err
	}
	if w.zone != nil {
		w.closeZone(crc)
	}
	if err := w.index(p, w.rows, w.end); err != nil {
		return err
	}
	if w.onStrings != nil {
		if err := w.reportStrings(p, buf, w.rows, w.rank); err != nil {
			return err
		}
	}
	w.values.Reset()
	w.first += int64(w.rows)
	w.rows, w.hasNulls = 0, false
	return nil
}

// end returns the first value of the open cblock for 0, the last one for any other value.
func (w *Writer) end(i int) ([]byte, error) {
	if i == 0 {
		return w.values.First(), nil
	}
	return w.values.Last(), nil
}

// index adds the cblock at p, which has the next rows, to the indexes. cell returns its first cell,
// or its last one.
func (w *Writer) index(p BlockPointer, rows int, cell func(i int) ([]byte, error)) error {
	if w.ordinals != nil {
		var key [ordinalKeyLen]byte
		binary.BigEndian.PutUint32(key[:], uint32(w.first))
		if err := w.ordinals.add(0, key[:], p); err != nil {
			return err
		}
	}
	if w.keys == nil {
		return nil
	}
	first, err := cell(0)
	if err != nil {
		return err
	}
	w.key = w.appendKey(w.key[:0], first)
	key := w.key
	if invariant.Enabled && w.o.IndexKey == nil && bytes.Compare(w.prevKey, key) > 0 {
		panic(fmt.Sprintf("cfile: value %x follows %x in a file with a value index", key, w.prevKey))
	}
	if !w.o.FullIndexKeys {
		last, err := cell(rows - 1)
		if err != nil {
			return err
		}
		key = Separator(w.prevKey, key)
		w.last = w.appendKey(w.last[:0], last)
		w.prevKey, w.last = w.last, w.prevKey
	}
	return w.keys.add(0, key, p)
}

func (w *Writer) appendKey(dst, cell []byte) []byte {
	if w.o.IndexKey != nil {
		return append(dst, w.o.IndexKey(cell)...)
	}
	return keyenc.AppendKeyCell(dst, w.o.Type, cell, true)
}

// Finish writes all that remains: the open cblock, index nodes up to the roots, dictionary, zone
// map and footer. Nothing can be appended afterwards. Source: cfile spec §11.1.
func (w *Writer) Finish() error {
	if w.err != nil {
		return w.err
	}
	if err := w.finish(); err != nil {
		return w.fail(err)
	}
	w.err = errFinished
	return nil
}

func (w *Writer) finish() error {
	if err := w.finishBlock(); err != nil {
		return err
	}
	footer := newFooter(&w.o, w.first)
	if w.ordinals != nil {
		root, err := w.ordinals.finish()
		if err != nil {
			return err
		}
		footer.PosidxInfo = &kudupb.BTreeInfoPB{RootBlock: root.message()}
	}
	if w.keys != nil {
		root, err := w.keys.finish()
		if err != nil {
			return err
		}
		footer.ValidxInfo = &kudupb.BTreeInfoPB{RootBlock: root.message()}
	}
	if w.words != nil {
		p, _, err := w.out.writeBlock(w.words.FinishDictionary(nil))
		if err != nil {
			return err
		}
		footer.DictBlockPtr = p.message()
	}
	if err := w.finishZone(); err != nil {
		return err
	}
	footer.Metadata = pairMessages(w.pairs)
	return w.out.finish(footer)
}
