package aggregate

import (
	"bytes"
	"encoding/binary"
	"math"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/schema"
)

// Cells of fixed width up to 64 bits are compared, and grouped, by keys: integers that are in the
// order of the values. −0 is below +0, and all NaNs are one value above +Inf.

// keyOf returns the key of a float.
func keyOf(f float64) int64 {
	if f != f {
		f = math.NaN()
	}
	b := int64(math.Float64bits(f))
	return b ^ int64(uint64(b>>63)>>1) // of a negative number, larger bits are smaller numbers
}

// floatOf returns the float with a key.
func floatOf(key int64) float64 { return math.Float64frombits(uint64(key ^ int64(uint64(key>>63)>>1))) }

// signBit, added to integers, changes the order of unsigned integers to the order of signed ones.
const signBit = math.MinInt64

// loadKeys returns the keys of the selected cells of v in dst's memory if that is large enough. The
// keys of NULLs are undefined.
func loadKeys(dst []int64, v *batch.Vector, r *rows) []int64 {
	switch v.Type.Physical() {
	case schema.Int8:
		return gather(dst, batch.Raw[int8](v), nil, r)
	case schema.Uint8, schema.Bool:
		return gather(dst, batch.Raw[uint8](v), nil, r)
	case schema.Int16:
		return gather(dst, batch.Raw[int16](v), nil, r)
	case schema.Uint16:
		return gather(dst, batch.Raw[uint16](v), nil, r)
	case schema.Int32:
		return gather(dst, batch.Raw[int32](v), nil, r)
	case schema.Uint32:
		return gather(dst, batch.Raw[uint32](v), nil, r)
	case schema.Int64:
		return gather(dst, batch.Raw[int64](v), nil, r)
	case schema.Uint64:
		dst = gather(dst, batch.Raw[uint64](v), nil, r)
		for j := range dst {
			dst[j] ^= signBit
		}
		return dst
	}
	dst = grown(dst, r.n)
	for j := range dst {
		i := r.row(j)
		if v.Type == schema.Float {
			dst[j] = keyOf(float64(batch.Raw[float32](v)[i]))
		} else {
			dst[j] = keyOf(batch.Raw[float64](v)[i])
		}
	}
	return dst
}

// cellOf returns the cell of a type with a key.
func cellOf(t schema.Type, key int64) []byte {
	u := uint64(key)
	switch t.Physical() {
	case schema.Uint64:
		u ^= 1 << 63
	case schema.Float:
		u = uint64(math.Float32bits(float32(floatOf(key))))
	case schema.Double:
		u = math.Float64bits(floatOf(key))
	}
	return binary.LittleEndian.AppendUint64(nil, u)[:t.Width()]
}

// extreme is a minimum or maximum, for each group.
type extreme struct {
	column int
	typ    schema.Type
	max    bool

	seen  []bool // by group: there is a value
	keys  []int64
	wide  []batch.Int128
	bytes [][]byte
	size  int64 // bytes of the byte strings

	buf []int64
}

// reserve makes room for n groups.
func (e *extreme) reserve(n int) {
	e.seen = extended(e.seen, n)
	switch {
	case e.typ.Variable():
		e.bytes = extended(e.bytes, n)
	case e.typ.Width() == 16:
		e.wide = extended(e.wide, n)
	default:
		e.keys = extended(e.keys, n)
	}
}

// extended returns s with zero values appended to a length of n.
func extended[T any](s []T, n int) []T {
	if len(s) >= n {
		return s
	}
	return append(s, make([]T, n-len(s))...)
}

// add takes the selected cells of v. Cell j belongs to group groups[j], or to group 0 if groups is
// nil.
func (e *extreme) add(v *batch.Vector, valid []uint8, r *rows, groups []uint32) {
	switch {
	case e.typ.Variable():
		e.addBytes(v, valid, r, groups)
	case e.typ.Width() == 16:
		e.addWide(batch.Raw[batch.Int128](v), valid, r, groups)
	default:
		e.buf = loadKeys(e.buf, v, r)
		e.addKeys(valid, groups)
	}
}

func (e *extreme) addKeys(valid []uint8, groups []uint32) {
	if groups == nil && valid == nil {
		best := e.buf[0]
		if e.max {
			for _, x := range e.buf {
				best = max(best, x)
			}
		} else {
			for _, x := range e.buf {
				best = min(best, x)
			}
		}
		e.offer(0, best)
		return
	}
	for j, x := range e.buf {
		if valid != nil && valid[j] == 0 {
			continue
		}
		g := uint32(0)
		if groups != nil {
			g = groups[j]
		}
		e.offer(g, x)
	}
}

func (e *extreme) offer(g uint32, x int64) {
	if best := e.keys[g]; !e.seen[g] || e.max && x > best || !e.max && x < best {
		e.keys[g], e.seen[g] = x, true
	}
}

func (e *extreme) addWide(cells []batch.Int128, valid []uint8, r *rows, groups []uint32) {
	for j := range r.n {
		if valid != nil && valid[j] == 0 {
			continue
		}
		x, g := cells[r.row(j)], uint32(0)
		if groups != nil {
			g = groups[j]
		}
		if order := x.Cmp(e.wide[g]); !e.seen[g] || e.max && order > 0 || !e.max && order < 0 {
			e.wide[g], e.seen[g] = x, true
		}
	}
}

func (e *extreme) addBytes(v *batch.Vector, valid []uint8, r *rows, groups []uint32) {
	last, lastGroup := uint32(0), -1 // a code that was offered to a group
	for j := range r.n {
		if valid != nil && valid[j] == 0 {
			continue
		}
		i, g := r.row(j), uint32(0)
		if groups != nil {
			g = groups[j]
		}
		var x []byte
		if v.Dict != nil {
			code := v.Codes[i]
			if code == last && int(g) == lastGroup {
				continue
			}
			x, last, lastGroup = v.Dict.Words[code], code, int(g)
		} else {
			x = v.Bytes[i]
		}
		if e.seen[g] {
			if order := bytes.Compare(x, e.bytes[g]); order == 0 || (order > 0) != e.max {
				continue
			}
		}
		e.size += int64(len(x) - len(e.bytes[g]))
		e.bytes[g], e.seen[g] = append([]byte(nil), x...), true
	}
}

// cell returns the minimum or maximum of a group, nil if it has no value.
func (e *extreme) cell(g int) []byte {
	switch {
	case !e.seen[g]:
		return nil
	case e.typ.Variable():
		return append([]byte{}, e.bytes[g]...)
	case e.typ.Width() == 16:
		return wideCell(e.wide[g])
	}
	return cellOf(e.typ, e.keys[g])
}

func wideCell(v batch.Int128) []byte {
	return binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint64(nil, v.Lo), uint64(v.Hi))
}
