package cfile

import (
	"bytes"
	"math"
	"sync/atomic"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/internal/coding"
	"github.com/oribi-db/oribi/internal/compress"
	"github.com/oribi-db/oribi/internal/encoding"
	"github.com/oribi-db/oribi/internal/keyheads"
	"github.com/oribi-db/oribi/keyenc"
)

// A cblock serves scans: a read of one of its cells from the file reads and verifies up to 256 KiB. While
// the cache has room, the cblock stays there for the next cell. Once it has none, the cache keeps the
// marks of the cblock instead, a hundredth of its size, and the next cell is read with its part alone.

// chunkMarks says where the parts of a data cblock are in the file, and the CRC of each as it is stored.
// It is made from a cblock that was read and verified. Immutable but for the last fields.
type chunkMarks struct {
	first int64 // row
	rows  int
	nulls *presence // nil: no row is NULL
	at    int64     // offset in the file of the payload
	parts encoding.Parts
	crcs  []uint32       // by part
	keys  keyheads.Heads // of the first values of the parts; only if the file has a value index

	// asked has the last two parts that were read, 16 bits for each index after a 1, the newest in the
	// lowest bits; a lost update costs time only. kept is true once the cache was given a part.
	asked atomic.Uint32
	kept  atomic.Bool
	reads atomic.Uint32 // of cells, for marks
}

const (
	// leastMarked is the size of a stored cblock from which on it gets marks. It takes little longer to
	// read a smaller one than to read a part of it.
	leastMarked = 8 << 10
	// leastParts is the least number of parts of a cblock with marks.
	leastParts = 4
	// marksOfBlock bounds the memory of marks: they take at most one part in so many of the stored cblock.
	marksOfBlock = 8
)

// bytes returns the memory of m.
func (m *chunkMarks) bytes() int64 {
	n := int64(160+m.parts.Bytes()+4*cap(m.crcs)) + m.keys.Bytes()
	if m.nulls != nil {
		n += 128 + int64(cap(m.nulls.stream)) + m.nulls.footprint()
	}
	return n
}

// newMarks returns the marks of the cblock at p, which was read as b, from payload; nil if it has no
// parts that can be read alone, or none that are worth it.
func (r *Reader) newMarks(p BlockPointer, b *dataBlock, payload []byte) *chunkMarks {
	frame, end := 0, 0
	if r.codec != compress.None {
		frame = frameLenV2
	}
	if r.info.Checksums {
		end = checksumLen
	}
	if p.Size < leastMarked || b.arrays != nil || frame > 0 && r.version == 1 || int(p.Size) != frame+len(payload)+end {
		return nil // the last: it is compressed
	}
	parts, ok := encoding.PartsOf(b.values, payload)
	if !ok || parts.Len() < leastParts {
		return nil
	}
	m := &chunkMarks{first: b.first, rows: b.rows, at: p.Offset + int64(frame), parts: parts,
		crcs: make([]uint32, parts.Len())}
	for k := range m.crcs {
		from, to := parts.Begin[k], parts.Begin[k+1]
		m.crcs[k] = coding.CRC32C(payload[from:to])
		if parts.Strings != nil {
			m.crcs[k] = coding.UpdateCRC32C(m.crcs[k], payload[parts.Strings[k]:parts.Strings[k+1]])
		}
		if m.size(k) >= minLimited {
			return nil
		}
	}
	if b.nullable {
		nulls := b.nulls
		nulls.stream = bytes.Clone(nulls.stream)
		m.nulls = &nulls
	}
	if r.info.ValueIndex && !m.addKeys(r, b) || marksOfBlock*m.bytes() > int64(p.Size) {
		return nil
	}
	return m
}

// addKeys sets m.keys; false if a value cannot be read.
func (m *chunkMarks) addKeys(r *Reader, b *dataBlock) bool {
	keys := make([][]byte, m.parts.Len())
	for k := range keys {
		cell, err := b.values.Cell(k << m.parts.Shift)
		if err != nil {
			return false
		}
		keys[k] = r.probe(nil, cell)
	}
	m.keys = keyheads.Make(len(keys), func(i int) []byte { return keys[i] })
	m.keys.Detach()
	return true
}

// probe returns the bytes of a cell that sort as keys in the value index. It appends them to dst, or
// returns the cell itself.
func (r *Reader) probe(dst, cell []byte) []byte {
	if r.info.Type.Variable() {
		return cell
	}
	return keyenc.AppendKeyCell(dst, r.info.Type, cell, true)
}

// size returns the bytes of part k.
func (m *chunkMarks) size(k int) int {
	n := m.parts.Begin[k+1] - m.parts.Begin[k]
	if m.parts.Strings != nil {
		n += m.parts.Strings[k+1] - m.parts.Strings[k]
	}
	return int(n)
}

// Marked reports whether Cell would read a part of a cblock alone.
func (r *Reader) Marked(ord batch.Ordinal) bool {
	if r.info.Array || int64(ord) >= r.info.Rows || r.cache == nil || r.ordinalRoot.Size == 0 {
		return false
	}
	x := present(r, &r.ordinals, r.ordinalRoot, partOrdinals)
	if x == nil {
		return false
	}
	p := x.blocks[x.find(uint32(ord))]
	if _, whole := r.cache.Get(r.partKey(p, partWhole)); whole || r.cache.Room(int64(p.Size)) {
		return false
	}
	_, ok := r.cache.Get(r.partKey(p, partMarks))
	return ok
}

// askedReads is the number of reads by marks of a cblock after which the cache is asked to take it.
const askedReads = 32

// marks returns the marks of the cblock at p, which the cache does not have, if a cell is to be read by
// them: the cache has them, and not the cblock because that has no room. A cblock that is read often may
// displace others, which are not used any more.
func (r *Reader) marks(p BlockPointer) *chunkMarks {
	if p.Size < leastMarked || r.cache.Room(int64(p.Size)) {
		return nil
	}
	v, ok := r.cache.Get(r.partKey(p, partMarks))
	if !ok {
		return nil
	}
	m := v.(*chunkMarks)
	if m.reads.Add(1)%askedReads == 0 && r.cache.Yields(r.partKey(p, partWhole), int64(p.Size)) {
		return nil
	}
	return m
}

// visitPart calls visit with part k of the cblock at p. It comes from the cache, or from the file, and is
// valid during the call only. Errors: ErrCorrupt, also if the part differs from when m was made; visit's.
func (r *Reader) visitPart(p BlockPointer, m *chunkMarks, k int, visit func(part []byte) error) error {
	key := r.partKey(p, partStored+uint32(k))
	if m.kept.Load() {
		if v, ok := r.cache.Get(key); ok {
			return visit(v.([]byte))
		}
	}
	s := scratches.Get().(*scratch)
	defer s.release()
	part, err := r.readPart(m, k, s)
	if err != nil {
		return err
	}
	r.cache.NotePart()
	if m.again(k) && r.cache.Admits(key, int64(len(part))) {
		r.cache.Put(key, bytes.Clone(part), int64(len(part)))
		m.kept.Store(true)
	}
	if err = visit(part); err != nil {
		err = r.at(p, err)
	}
	return err
}

// again notes a read of part k and reports whether it was among the last two that were read: often the
// next read is of it, too.
func (m *chunkMarks) again(k int) bool {
	tag, last := uint32(k)&0x7fff|0x8000, m.asked.Load()
	m.asked.Store(last<<16 | tag)
	return last&0xffff == tag || last>>16 == tag
}

// readPart reads part k from the file and verifies it.
func (r *Reader) readPart(m *chunkMarks, k int, s *scratch) ([]byte, error) {
	at, n := m.at+int64(m.parts.Begin[k]), int(m.parts.Begin[k+1]-m.parts.Begin[k])
	part := sized(&s.stored, m.size(k))
	if _, err := r.readStored(part[:0:n], at, n); err != nil {
		return nil, err
	}
	if n < len(part) {
		if _, err := r.readStored(part[n:n:len(part)], m.at+int64(m.parts.Strings[k]), len(part)-n); err != nil {
			return nil, err
		}
	}
	return part, r.checkPiece(part, at, m.crcs[k])
}

// markedCell is Cell in data cblock i of x by its marks.
func (r *Reader) markedCell(x *ordinalIndex, i int, m *chunkMarks, ord batch.Ordinal) (cell []byte, err error) {
	if err := r.checkOrdinal(x, i, m.first, m.rows); err != nil {
		return nil, err
	}
	row := int(int64(ord) - m.first)
	if m.nulls != nil {
		present := false
		if row, present = m.nulls.find(row); !present {
			return nil, nil
		}
	}
	dict, err := r.dictionary()
	if err != nil {
		return nil, err
	}
	k := row >> m.parts.Shift
	err = r.visitPart(x.blocks[i], m, k, func(part []byte) error {
		cell, err = m.parts.Cell(k, part, row-k<<m.parts.Shift, dict)
		return err
	})
	return cell, err
}

// markedSeek is Block.Seek in the cblock at p by its marks. probe is the probe of key.
func (r *Reader) markedSeek(p BlockPointer, m *chunkMarks, key, probe []byte) (v int, exact bool, err error) {
	dict, err := r.dictionary()
	if err != nil {
		return 0, false, err
	}
	k, err := m.keys.Find(probe, func(i int) (before bool, err error) {
		if w := r.info.Type.Width(); 0 < w && w <= 8 {
			return true, nil // the head is all of the key
		}
		err = r.visitPart(p, m, i, func(part []byte) error {
			first, err := m.parts.Cell(i, part, 0, dict)
			before = err == nil && batch.Compare(r.info.Type, first, key) <= 0
			return err
		})
		return before, err
	})
	if err != nil {
		return 0, false, err
	}
	err = r.visitPart(p, m, k, func(part []byte) error {
		v, exact, err = m.parts.Seek(k, part, key, dict)
		return err
	})
	return v + k<<m.parts.Shift, exact, err
}

// visitAlone calls visit with data cblock i of bs, which the cache does not have and whose cells are not
// to be read by marks. The cache takes the cblock if there is room for it, or if marks says so; else marks
// of it; else, at the second call, the cblock, which then has no marks. If it does not take the cblock,
// that is valid during the call only.
func (r *Reader) visitAlone(bs []BlockPointer, i int, visit func(b *dataBlock) error) error {
	p := bs[i]
	key := r.partKey(p, partWhole)
	wanted := r.cache.Room(int64(p.Size))
	if !wanted {
		_, wanted = r.cache.Get(r.partKey(p, partMarks))
	}
	keep := wanted || r.cache.Admits(key, int64(p.Size))
	var s *scratch
	if !keep {
		s = scratches.Get().(*scratch)
		defer s.release()
	}
	payload, crc, err := r.readBlock(p, s)
	if err != nil {
		return err
	}
	b, err := r.parse(i, p, payload, crc, s)
	if err != nil {
		return err
	}
	if !wanted {
		if m := r.newMarks(p, b, payload); m != nil {
			keep = false
			r.cache.PutLasting(r.partKey(p, partMarks), m, m.bytes())
		}
	}
	if keep {
		r.cache.Put(key, b, b.bytes)
	} else {
		b.bytes = math.MaxInt64 // ownCell copies
	}
	return visit(b)
}
