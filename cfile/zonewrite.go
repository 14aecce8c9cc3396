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

func (z *zoneBuilder) addStrings(v *batch.Vector, from, to int) {
	cell := func(i int) []byte {
		if v.Dict != nil {
			return v.Dict.Words[v.Codes[i]]
		}
		return v.Bytes[i]
	}
	// Only as many bytes as a bound has, and one more, matter: byte strings that agree in these
	// need not be distinguished.
	clip := func(b []byte) []byte { return b[:min(len(b), zoneBoundLen+1)] }
	lo := clip(cell(from))
	hi := lo
	for i := from + 1; i < to; i++ {
		if b := clip(cell(i)); string(b) < string(lo) {
			lo = b
		} else if string(b) > string(hi) {
			hi = b
		}
	}
	z.widen(lo)
	z.widen(hi)
}

// close finishes the open cblock, whose stored form has the given CRC.
func (z *zoneBuilder) close(crc uint32) {
	z.entries = z.appendEntry(z.entries, crc)
	z.count++
	z.reset()
}

func (z *zoneBuilder) reset() { z.rows, z.nulls, z.nan, z.some = 0, 0, false, false }

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
