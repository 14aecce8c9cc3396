package cfile

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/keyenc"
)

// Verify reads the whole file and checks more than an ordinary read: that cblocks do not overlap
// and leave no gaps, that both indexes list the same cblocks, that values ascend and each key of
// the value index is between the values on both sides, and that the zone map agrees with the
// values. The first error is returned.
//
// It reads all bytes again and uses neither what r has loaded nor the cache. Source: cfile spec
// §12.4.
func (r *Reader) Verify() error {
	fresh, err := Open(r.src, ReaderOptions{Arrays: r.info.Array})
	if err != nil {
		return err
	}
	fresh.keyLimitForTest = r.keyLimitForTest
	return fresh.verify()
}

func (r *Reader) verify() error {
	if !r.info.PositionalIndex && !r.info.ValueIndex {
		return fault.Unsupportedf("cfile: block %v: the file has no index", r.src.ID())
	}
	bs, err := r.blocks()
	if err != nil {
		return err
	}
	if err := r.verifyIndexes(bs); err != nil {
		return err
	}
	if err := r.verifyLayout(bs); err != nil {
		return err
	}
	if r.info.Rows == 0 && len(bs) > 0 {
		return r.verifyRaw(bs)
	}
	if err := r.verifyDictionary(); err != nil {
		return err
	}
	return r.verifyValues(bs)
}

// verifyDictionary checks that the words ascend if the file has a value index: Seek searches both.
func (r *Reader) verifyDictionary() error {
	d, err := r.dictionary()
	if err != nil || d == nil || !r.ascends() {
		return err
	}
	for i := 1; i < len(d.Words); i++ {
		if bytes.Compare(d.Words[i-1], d.Words[i]) >= 0 {
			return r.at(r.dictPointer, fault.Corruptf("word %d, %x, follows %x in a file with a value index", i,
				d.Words[i], d.Words[i-1]))
		}
	}
	return nil
}

// ascends reports whether the values must ascend: in a file with a value index they do, except in
// delta files, whose index has the keys of changes.
func (r *Reader) ascends() bool {
	_, unsorted := r.Metadata(DeltaStatsKey)
	return r.info.ValueIndex && !unsorted
}

// verifyIndexes checks that both trees list the same cblocks.
func (r *Reader) verifyIndexes(bs []BlockPointer) error {
	if !r.info.ValueIndex {
		return nil
	}
	x, err := r.valueIndex()
	if err != nil {
		return err
	}
	if !slices.Equal(x.blocks, bs) {
		return r.corruptf("value index of %d cblocks differs from ordinal index of %d", len(x.blocks), len(bs))
	}
	return nil
}

// verifyLayout checks that the cblocks fill the file between header and footer.
func (r *Reader) verifyLayout(bs []BlockPointer) error {
	all := slices.Clone(bs)
	if r.info.PositionalIndex {
		x, err := r.ordinalIndex()
		if err != nil {
			return err
		}
		all = append(all, x.nodes...)
	}
	if r.info.ValueIndex {
		x, err := r.valueIndex()
		if err != nil {
			return err
		}
		all = append(all, x.nodes...)
	}
	for _, p := range []BlockPointer{r.dictPointer, r.zonePointer} {
		if p.Size > 0 {
			all = append(all, p)
		}
	}
	slices.SortFunc(all, func(a, b BlockPointer) int { return cmp.Compare(a.Offset, b.Offset) })
	end := r.dataStart
	for _, p := range all {
		if p.Offset != end {
			return r.corruptf("bytes [%d,%d) belong to no cblock, or to two", min(end, p.Offset), max(end, p.Offset))
		}
		end = p.end()
	}
	if end != r.dataEnd {
		return r.corruptf("bytes [%d,%d) belong to no cblock", end, r.dataEnd)
	}
	return nil
}

// verifyRaw reads cblocks whose payload this package cannot interpret.
func (r *Reader) verifyRaw(bs []BlockPointer) error {
	var s scratch
	for _, p := range bs {
		if _, _, err := r.readBlock(p, &s); err != nil {
			return err
		}
	}
	return nil
}

// verifier walks the values of a file.
type verifier struct {
	r        *Reader
	keys     *valueIndex // nil = no ascending value index
	keyed    bool        // cells begin with their keys
	zone     *zoneBuilder
	row      int64
	prev     []byte // encoded previous value
	some     bool   // prev is set
	key      []byte
	v        batch.Vector
	s        scratch
	ordinals *ordinalIndex
}

// verifyValues decodes all cblocks.
func (r *Reader) verifyValues(bs []BlockPointer) error {
	f := &verifier{r: r, keyed: r.info.Keyed, v: batch.Vector{Type: r.info.Type}}
	if r.ascends() {
		x, err := r.valueIndex()
		if err != nil {
			return err
		}
		f.keys = x
	}
	if r.info.PositionalIndex {
		x, err := r.ordinalIndex()
		if err != nil {
			return err
		}
		f.ordinals = x
	}
	z, err := r.ZoneMap()
	if err != nil {
		return err
	}
	if z != nil {
		f.zone = &zoneBuilder{t: r.info.Type}
	}
	for i, p := range bs {
		if err := f.block(i, p, z); err != nil {
			return err
		}
	}
	if f.row != r.info.Rows {
		return r.corruptf("cblocks have %d rows, the footer has %d", f.row, r.info.Rows)
	}
	return nil
}

// block decodes cblock i in windows, since a cblock may have up to 2^31 rows.
func (f *verifier) block(i int, p BlockPointer, z *ZoneMap) error {
	s := &f.s
	if f.r.info.Type.Variable() {
		s = nil
	}
	b, err := f.r.readData(i, p, s)
	if err != nil {
		return err
	}
	if b.first != f.row {
		return f.r.at(p, fault.Corruptf("begins with row %d, want %d", b.first, f.row))
	}
	if f.ordinals != nil {
		if err := f.r.checkOrdinal(f.ordinals, b.index, b.first, b.rows); err != nil {
			return err
		}
	}
	if err := f.values(b, i); err != nil {
		return f.r.at(p, err)
	}
	f.row += int64(b.rows)
	if f.zone == nil {
		return nil
	}
	want := f.zone.appendEntry(nil, z.Entries[i].crc)
	f.zone.reset()
	if got := z.Entries[i].append(nil); !bytes.Equal(got, want) {
		return f.r.at(p, fault.Corruptf("zone map entry %x, want %x", got, want))
	}
	return nil
}

// values decodes the cells of b, cblock i.
func (f *verifier) values(b *dataBlock, i int) error {
	if b.arrays == nil {
		first := true
		return b.eachRun(0, b.rows, &f.v, func(r Run) error {
			defer func() { first = false }()
			if r.Cells == nil {
				return f.repeat(i, first, r)
			}
			return f.window(i, first)
		})
	}
	for from := 0; from < b.rows; from += f.v.Len {
		n, _ := b.fit(from, min(b.rows-from, batch.WindowRows), maxReadCopyBytes)
		f.v.ResetArrays(0)
		if _, err := b.decodeArrays(from, n, &f.v); err != nil {
			return err
		}
	}
	return nil
}

// repeat checks rows of one cell; first is set if they begin cblock i.
func (f *verifier) repeat(i int, first bool, r Run) error {
	switch {
	case f.zone == nil:
	case r.Cell == nil:
		f.zone.addNulls(r.Rows)
	default:
		f.zone.addRepeat(r.Cell, r.Rows)
	}
	if f.keys == nil || !f.r.info.Type.Keyable() {
		return nil
	}
	return f.checkKey(i, first, r.Cell)
}

// window checks the decoded cells of f.v; first is set if they begin cblock i.
func (f *verifier) window(i int, first bool) error {
	if f.zone != nil {
		for from := 0; from < f.v.Len; {
			end, present := f.v.Len, true
			if f.v.Present != nil {
				end, present = runEnd(f.v.Present, from, f.v.Len)
			}
			if present {
				f.zone.add(&f.v, from, end)
			} else {
				f.zone.addNulls(end - from)
			}
			from = end
		}
	}
	if f.keys == nil || !f.r.info.Type.Keyable() {
		return nil
	}
	for k := range f.v.Len {
		if err := f.checkKey(i, first && k == 0, f.v.Cell(k)); err != nil {
			return err
		}
	}
	return nil
}

// checkKey checks that a cell is not below the one before; first is set if it begins cblock i.
func (f *verifier) checkKey(i int, first bool, cell []byte) error {
	most := 0 // values may be equal, keys of cells may not
	if f.keyed {
		key, _, err := SplitKeyed(cell)
		if err != nil {
			return err
		}
		f.key, most = append(f.key[:0], key...), -1
	} else {
		f.key = keyenc.AppendKeyCell(f.key[:0], f.r.info.Type, cell, true)
	}
	if f.some && bytes.Compare(f.prev, f.key) > most {
		return fault.Corruptf("value %x follows %x in a file with a value index", f.key, f.prev)
	}
	if first {
		if err := f.indexKey(i); err != nil {
			return err
		}
	}
	f.prev, f.key, f.some = f.key, f.prev, true
	return nil
}

// indexKey checks the key of cblock i, whose first value is f.key and follows f.prev. Source: cfile
// spec §8.4.
func (f *verifier) indexKey(i int) error {
	key, err := f.r.key(f.keys, i)
	if err != nil {
		return err
	}
	if bytes.Compare(key, f.key) > 0 || f.some && bytes.Compare(key, f.prev) < 0 {
		return fmt.Errorf("value index: key %x is not between values %x and %x: %w", key, f.prev, f.key,
			fault.ErrCorrupt)
	}
	return nil
}
