package cfile

import (
	"bytes"
	"encoding/binary"
	"unsafe"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/keyenc"
	"github.com/oribi-db/oribi/schema"
)

// zoneBuilder builds the zone map of a file while the file is written.
type zoneBuilder struct {
	t       schema.Type
	entries []byte
	count   uint32

	// The cblock that is open.
	rows, nulls uint32
	nan         bool
	some        bool   // min and max are valid
	min, max    []byte // in sort order of the values; of byte strings at most one byte more than a bound

	words [][]byte // memory
}

// add adds cells [from, to) of v, none of them NULL.
func (z *zoneBuilder) add(v *batch.Vector, from, to int) {
	if from >= to {
		return
	}
	z.rows += uint32(to - from)
	if z.t.Variable() {
		z.addStrings(v, from, to)
		return
	}
	switch z.t.Physical() {
	case schema.Bool, schema.Uint8:
		addIntegers(z, batch.Values[uint8](v)[from:to])
	case schema.Int8:
		addIntegers(z, batch.Values[int8](v)[from:to])
	case schema.Uint16:
		addIntegers(z, batch.Values[uint16](v)[from:to])
	case schema.Int16:
		addIntegers(z, batch.Values[int16](v)[from:to])
	case schema.Uint32:
		addIntegers(z, batch.Values[uint32](v)[from:to])
	case schema.Int32:
		addIntegers(z, batch.Values[int32](v)[from:to])
	case schema.Uint64:
		addIntegers(z, batch.Values[uint64](v)[from:to])
	case schema.Int64:
		addIntegers(z, batch.Values[int64](v)[from:to])
	case schema.Int128:
		z.add128(batch.Values[batch.Int128](v)[from:to])
	case schema.Float:
		addFloats(z, batch.Values[float32](v)[from:to])
	case schema.Double:
		addFloats(z, batch.Values[float64](v)[from:to])
	}
}

// addWords adds byte strings whose rows are counted already.
func (z *zoneBuilder) addWords(words [][]byte) {
	if len(words) == 0 {
		return
	}
	lo, hi := extremeStrings(words)
	z.widen(lo)
	z.widen(hi)
}

// addRepeat adds n rows of one cell, which is neither NULL nor a float.
func (z *zoneBuilder) addRepeat(cell []byte, n int) {
	var buf [16]byte
	z.rows += uint32(n)
	z.widen(keyenc.AppendComparable(buf[:0], z.t, cell))
}

// addNulls adds n NULL rows.
func (z *zoneBuilder) addNulls(n int) {
	z.rows += uint32(n)
	z.nulls += uint32(n)
}

// widen extends the bounds to one value.
func (z *zoneBuilder) widen(v []byte) {
	if !z.some || bytes.Compare(v, z.min) < 0 {
		z.min = append(z.min[:0], v...)
	}
	if !z.some || bytes.Compare(v, z.max) > 0 {
		z.max = append(z.max[:0], v...)
	}
	if !z.some && z.min == nil {
		z.min = []byte{} // an empty byte string is a bound, nil is none
	}
	if !z.some && z.max == nil {
		z.max = []byte{}
	}
	z.some = true
}

// addStrings adds byte strings, at least one.
func (z *zoneBuilder) addStrings(v *batch.Vector, from, to int) {
	cells := v.Bytes
	if v.Dict != nil {
		for i := from; i < to; i++ {
			z.words = append(z.words, v.Dict.Words[v.Codes[i]])
		}
		cells, from, to = z.words, 0, len(z.words)
	}
	lo, hi := extremeStrings(cells[from:to])
	z.widen(lo)
	z.widen(hi)
	z.dropWords()
}

// dropWords empties the memory of words, which belong to others.
func (z *zoneBuilder) dropWords() {
	clear(z.words)
	z.words = z.words[:0]
}

// extremeStrings returns the least and the greatest of byte strings, at least one, cut to as many
// bytes as a bound has, and one more. Strings that agree in these need not be distinguished.
func extremeStrings(cells [][]byte) (lo, hi []byte) {
	clip := func(b []byte) []byte { return b[:min(len(b), zoneBoundLen+1)] }
	lo = clip(cells[0])
	hi = lo
	least, greatest := keyenc.Head(lo), keyenc.Head(hi)
	for _, cell := range cells[1:] {
		head := keyenc.Head(cell)
		if head > least && head < greatest {
			continue // nearly all
		}
		if b := clip(cell); string(b) < string(lo) {
			lo, least = b, head
		} else if string(b) > string(hi) {
			hi, greatest = b, head
		}
	}
	return lo, hi
}

// close finishes the open cblock, whose stored form has the given CRC.
func (z *zoneBuilder) close(crc uint32) {
	z.entries = z.appendEntry(z.entries, crc)
	z.count++
	z.reset()
}

func (z *zoneBuilder) reset() { z.rows, z.nulls, z.nan, z.some = 0, 0, false, false }

// addZone adds cells [from, to) of v, which were appended, to the zone map. Of dictionary codes it
// only counts the rows: the bounds are set when the cblock ends, to the least and greatest of its
// words.
func (w *Writer) addZone(v *batch.Vector, from, to int) {
	if w.words != nil && w.words.Coded() {
		w.zone.rows += uint32(to - from)
		return
	}
	w.zone.add(v, from, to)
}

// closeZone adds the open cblock, whose stored form has the given CRC.
func (w *Writer) closeZone(crc uint32) {
	z := w.zone
	if w.words != nil && w.words.Coded() {
		z.words = w.words.AppendUsed(z.words[:0])
		z.addWords(z.words)
		z.dropWords()
	}
	z.close(crc)
}

// appendEntry appends the entry of the open cblock.
func (z *zoneBuilder) appendEntry(dst []byte, crc uint32) []byte {
	e := ZoneEntry{Rows: int(z.rows), Nulls: int(z.nulls), HasNaN: z.nan, crc: crc}
	if z.some {
		e.Min = z.min[:min(len(z.min), zoneBoundLen)]
		e.MinCut = len(e.Min) < len(z.min)
		if len(z.max) <= zoneBoundLen {
			e.Max = z.max
		} else if e.Max = keyenc.PrefixEnd(z.max[:zoneBoundLen]); e.Max != nil {
			e.MaxRounded = true
		}
	}
	return e.append(dst)
}

// finish appends the payload.
func (z *zoneBuilder) finish(dst []byte) []byte {
	dst = append(dst, zoneMagic...)
	dst = append(dst, zoneVersion, 0, 0, 0)
	dst = binary.LittleEndian.AppendUint32(dst, z.count)
	return append(dst, z.entries...)
}

// widenBoth extends the bounds to a lowest and a highest value.
func widenBoth[T batch.Fixed](z *zoneBuilder, low, high T) {
	var buf [16]byte
	for _, x := range [2]T{low, high} {
		cell := unsafe.Slice((*byte)(unsafe.Pointer(&x)), unsafe.Sizeof(x))
		z.widen(keyenc.AppendComparable(buf[:0], z.t, cell))
	}
}

// addIntegers adds cells, at least one. The loop has no branches.
func addIntegers[T uint8 | int8 | uint16 | int16 | uint32 | int32 | uint64 | int64](z *zoneBuilder, cells []T) {
	low, high := cells[0], cells[0]
	for _, c := range cells {
		low, high = min(low, c), max(high, c)
	}
	widenBoth(z, low, high)
}

func (z *zoneBuilder) add128(cells []batch.Int128) {
	less := func(a, b batch.Int128) bool { return a.Hi < b.Hi || a.Hi == b.Hi && a.Lo < b.Lo }
	low, high := cells[0], cells[0]
	for _, c := range cells {
		if less(c, low) {
			low = c
		} else if less(high, c) {
			high = c
		}
	}
	widenBoth(z, low, high)
}

// addFloats adds cells, at least one. NaNs are recorded but not included in the bounds.
func addFloats[T float32 | float64](z *zoneBuilder, cells []T) {
	some := false
	var low, high T
	for _, c := range cells {
		switch {
		case c != c:
			z.nan = true
		case !some:
			some, low, high = true, c, c
		case c < low:
			low = c
		case c > high:
			high = c
		}
	}
	if some {
		widenBoth(z, low, high)
	}
}
