package cfile

import (
	"bytes"
	"encoding/binary"
	"unsafe"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/keyenc"
	"github.com/oribi-db/oribi/schema"
)

// Payload of the zone map, the one kind of cblock that Kudu does not have: bounds of each data
// cblock. The footer pair "oribi.zonemap" has a BlockPointerPB to it. The zone map is framed like
// every cblock and stored after the dictionary. Files without checksums, and columns of arrays,
// have none.
//
//	offset  width  field     meaning
//	0       4      magic     "ORZM"
//	4       1      version   1
//	5       1      must      flags that a reader must know, or else ignore the zone map; none yet
//	6       1      may       flags that a reader may ignore; none yet
//	7       1      zero      0
//	8       4      count     entries: one for each data cblock, in the order of their rows
//	12      …      entries   back to back
//
// An entry:
//
//	offset  width  field     meaning
//	0       4      crc       CRC-32C of the stored cblock, equal to the checksum after it
//	4       4      rows      of the cblock, NULLs included
//	8       4      nulls     of these, NULL
//	12      1      flags     1: has min; 2: has max; 4: some value is NaN, which neither includes;
//	                         8: min is cut; 16: max is cut and rounded up, so that all values are below it
//	13      1      minLen    bytes of min, at most 32
//	14      1      maxLen    bytes of max, at most 32
//	15      1      zero      0
//	16      …      min       lowest value as bytes that sort as values do (keyenc.AppendComparable)
//	…       …      max       highest value likewise; absent if it had to be cut and is all ff
//
// One cblock with the INT8 values −1, NULL, 5, stored with CRC 01020304:
// 4f 52 5a 4d 01 00 00 00 01 00 00 00 04 03 02 01 03 00 00 00 01 00 00 00 03 01 01 00 7f 85
const (
	zoneMagic     = "ORZM" // file format: never change
	zoneVersion   = 1      // file format: never change
	zoneMustKnown = 0      // must flags that this program knows
	zoneHeaderLen = 12     // file format: never change
	zoneEntryLen  = 16     // without min and max; file format: never change
	zoneBoundLen  = 32     // longest bound; file format: never change

	zoneHasMin     = 1 << 0 // file format: never change
	zoneHasMax     = 1 << 1 // file format: never change
	zoneHasNaN     = 1 << 2 // file format: never change
	zoneMinCut     = 1 << 3 // file format: never change
	zoneMaxRounded = 1 << 4 // file format: never change
	zoneFlags      = 1<<5 - 1
)

// ZoneMap has the bounds of each data cblock of a file. Immutable.
type ZoneMap struct {
	Type    schema.Type
	Entries []ZoneEntry // one for each data cblock, in the order of rows
	File    ZoneEntry   // bounds of all
}

// ZoneEntry describes the values of some rows. Bounds are bytes that sort as the values do
// (keyenc.AppendComparable) and do not include NULLs and NaNs.
type ZoneEntry struct {
	FirstRow   int
	Rows       int
	Nulls      int
	HasNaN     bool
	Min        []byte // no value is below; nil if there is no value except NaN
	Max        []byte // no value is above; nil if there is no value except NaN, or no bound
	MinCut     bool   // Min is a prefix of the lowest value
	MaxRounded bool   // Max is above all values
	crc        uint32
}

// zones is the result of loading the zone map of a file.
type zones struct {
	m *ZoneMap // nil = none, or of an unknown version
}

// parseZoneMap parses a payload. It returns nil without an error for a later version.
func parseZoneMap(payload []byte, t schema.Type, blocks int, rows int64) (*ZoneMap, error) {
	if len(payload) < zoneHeaderLen || string(payload[:4]) != zoneMagic {
		return nil, fault.Corruptf("zone map: wrong magic in %d bytes", len(payload))
	}
	if payload[4] != zoneVersion || payload[5]&^zoneMustKnown != 0 {
		return nil, nil
	}
	if payload[7] != 0 {
		return nil, fault.Corruptf("zone map: byte 7 is %d", payload[7])
	}
	count := binary.LittleEndian.Uint32(payload[8:])
	b := payload[zoneHeaderLen:]
	if int64(count) != int64(blocks) || int64(count)*zoneEntryLen > int64(len(b)) {
		return nil, fault.Corruptf("zone map: %d entries in %d bytes, want %d entries", count, len(b), blocks)
	}
	z := &ZoneMap{Type: t, Entries: make([]ZoneEntry, count), File: ZoneEntry{Rows: int(rows)}}
	row := int64(0)
	for i := range z.Entries {
		e := &z.Entries[i]
		used, ok := e.parse(b, t)
		if !ok || row+int64(e.Rows) > rows {
			return nil, fault.Corruptf("zone map: entry %d is malformed", i)
		}
		e.FirstRow = int(row)
		row += int64(e.Rows)
		b = b[used:]
		z.File.merge(e)
	}
	if len(b) != 0 || row != rows {
		return nil, fault.Corruptf("zone map: %d trailing bytes, %d rows, want %d", len(b), row, rows)
	}
	return z, nil
}

// parse parses an entry at the front of b. The bounds alias b.
func (e *ZoneEntry) parse(b []byte, t schema.Type) (used int, ok bool) {
	if len(b) < zoneEntryLen {
		return 0, false
	}
	e.crc = binary.LittleEndian.Uint32(b)
	rows, nulls := binary.LittleEndian.Uint32(b[4:]), binary.LittleEndian.Uint32(b[8:])
	flags, minLen, maxLen := b[12], int(b[13]), int(b[14])
	used = zoneEntryLen + minLen + maxLen
	if flags&^zoneFlags != 0 || b[15] != 0 || nulls > rows || minLen > zoneBoundLen || maxLen > zoneBoundLen ||
		used > len(b) {
		return 0, false
	}
	e.Rows, e.Nulls, e.HasNaN = int(rows), int(nulls), flags&zoneHasNaN != 0
	e.MinCut, e.MaxRounded = flags&zoneMinCut != 0, flags&zoneMaxRounded != 0
	bound := func(has bool, from, n int) []byte {
		if !has {
			ok = ok && n == 0
			return nil
		}
		ok = ok && (t.Variable() || n == t.Width())
		return b[from : from+n : from+n]
	}
	ok = true
	e.Min = bound(flags&zoneHasMin != 0, zoneEntryLen, minLen)
	e.Max = bound(flags&zoneHasMax != 0, zoneEntryLen+minLen, maxLen)
	// Rows that are not NULL need bounds or a NaN; without such rows there is neither.
	known := e.Min != nil || e.HasNaN || e.Nulls == e.Rows
	return used, ok && known && !(e.Min == nil && e.Max != nil) &&
		!(e.Min != nil && e.Max != nil && bytes.Compare(e.Min, e.Max) > 0)
}

// merge extends e, which covers the preceding rows, to the values of o.
func (e *ZoneEntry) merge(o *ZoneEntry) {
	empty := e.Min == nil
	e.Nulls += o.Nulls
	e.HasNaN = e.HasNaN || o.HasNaN
	if o.Min == nil {
		return
	}
	if empty || bytes.Compare(o.Min, e.Min) < 0 {
		e.Min, e.MinCut = o.Min, o.MinCut
	}
	switch c := bytes.Compare(o.Max, e.Max); {
	case empty:
		e.Max, e.MaxRounded = o.Max, o.MaxRounded
	case e.Max == nil || o.Max == nil:
		e.Max, e.MaxRounded = nil, false
	case c > 0 || c == 0 && !o.MaxRounded:
		e.Max, e.MaxRounded = o.Max, o.MaxRounded
	}
}

// MayMatch reports whether some row of entry i may match p. If it returns false, none does.
func (z *ZoneMap) MayMatch(i int, p *batch.Predicate) bool { return z.Entries[i].mayMatch(z.Type, p) }

// FileMayMatch reports whether some row of the file may match p. If it returns false, none does.
func (z *ZoneMap) FileMayMatch(p *batch.Predicate) bool { return z.File.mayMatch(z.Type, p) }

func (e *ZoneEntry) mayMatch(t schema.Type, p *batch.Predicate) bool {
	switch p.Op {
	case batch.IsNull:
		return e.Nulls > 0
	case batch.NotNull:
		return e.Nulls < e.Rows
	}
	if e.Nulls == e.Rows {
		return false // NULL matches nothing else
	}
	if p.Op == batch.InFilter || p.Op == batch.Like {
		return true // bounds do not determine which values match
	}
	for _, v := range p.Values {
		if v != nil && e.mayCompare(t, p.Op, v) {
			return true
		}
	}
	return false
}

// mayCompare reports whether op may be true of some value of e and v.
func (e *ZoneEntry) mayCompare(t schema.Type, op batch.Operator, v []byte) bool {
	if op == batch.Ne && e.HasNaN || batch.IsNaN(t, v) {
		return op == batch.Ne // NaN differs from everything, and nothing else is true of it
	}
	if e.Min == nil {
		return false // NaNs only
	}
	var buf [16]byte
	if !t.Variable() {
		v = keyenc.AppendComparable(buf[:0], t, v)
	}
	low := bytes.Compare(e.Min, v) // > 0: all values are above v
	high := 1                      // < 0: all values are below v
	if e.Max != nil {
		if high = bytes.Compare(e.Max, v); high == 0 && e.MaxRounded {
			high = -1
		}
	}
	switch op {
	case batch.Eq, batch.In:
		return low <= 0 && high >= 0
	case batch.Ne:
		return !(low == 0 && high == 0 && !e.MinCut)
	case batch.Lt:
		return low < 0
	case batch.Le:
		return low <= 0
	case batch.Gt:
		return high > 0
	case batch.Ge:
		return high >= 0
	}
	return true
}

// ZoneMap returns the zone map, nil if the file has none, or one of a later version.
func (r *Reader) ZoneMap() (*ZoneMap, error) {
	z, err := r.loadedZones()
	if z == nil || err != nil {
		return nil, err
	}
	return z.m, nil
}

// loadedZones is ZoneMap, or nil if the file has none.
func (r *Reader) loadedZones() (*zones, error) {
	if !r.info.ZoneMap {
		return nil, nil
	}
	bs, err := r.blocks()
	if err != nil {
		return nil, err
	}
	return loaded(r, &r.zones, r.zonePointer, partZones, func() (*zones, int64, error) {
		payload, _, err := r.readBlock(r.zonePointer, nil)
		if err != nil {
			return nil, 0, err
		}
		m, err := parseZoneMap(payload, r.info.Type, len(bs), r.info.Rows)
		if err != nil {
			return nil, 0, r.at(r.zonePointer, err)
		}
		if m == nil {
			return &zones{}, 0, nil
		}
		return &zones{m}, int64(cap(payload)) + int64(len(m.Entries))*int64(unsafe.Sizeof(ZoneEntry{})), nil
	})
}

// zoneCRCs returns the CRCs of the data cblocks in the zone map, or nil if the file has no zone
// map. They are a twentieth of the zone map, and every read of a cblock needs one.
func (r *Reader) zoneCRCs() ([]uint32, error) {
	if !r.info.ZoneMap {
		return nil, nil
	}
	if crcs := present(r, &r.crcs, r.zonePointer, partCRCs); crcs != nil {
		return *crcs, nil
	}
	z, err := r.loadedZones()
	if z == nil || z.m == nil || err != nil {
		return nil, err
	}
	crcs, err := loaded(r, &r.crcs, r.zonePointer, partCRCs, func() (*[]uint32, int64, error) {
		crcs := make([]uint32, len(z.m.Entries))
		for i := range crcs {
			crcs[i] = z.m.Entries[i].crc
		}
		return &crcs, int64(4 * len(crcs)), nil
	})
	return *crcs, err
}

// checkZone compares the CRC of data cblock i, just verified, with the one in the zone map. This
// finds a valid cblock in the wrong place.
func (r *Reader) checkZone(i int, p BlockPointer, crc uint32) error {
	crcs, err := r.zoneCRCs()
	if err != nil || crcs == nil {
		return err
	}
	if i >= len(crcs) || crcs[i] != crc {
		return r.corruptf("cblock at byte %d: crc %08x differs from that in the zone map", p.Offset, crc)
	}
	return nil
}

// append appends the encoded entry to dst.
func (e *ZoneEntry) append(dst []byte) []byte {
	flags := byte(0)
	for _, f := range []struct {
		set bool
		bit byte
	}{
		{e.Min != nil, zoneHasMin}, {e.Max != nil, zoneHasMax}, {e.HasNaN, zoneHasNaN}, {e.MinCut, zoneMinCut},
		{e.MaxRounded, zoneMaxRounded},
	} {
		if f.set {
			flags |= f.bit
		}
	}
	dst = binary.LittleEndian.AppendUint32(dst, e.crc)
	dst = binary.LittleEndian.AppendUint32(dst, uint32(e.Rows))
	dst = binary.LittleEndian.AppendUint32(dst, uint32(e.Nulls))
	dst = append(dst, flags, byte(len(e.Min)), byte(len(e.Max)), 0)
	dst = append(dst, e.Min...)
	return append(dst, e.Max...)
}
