package cfile

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"
	"maps"
	"slices"
	"syscall"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/block"
	"github.com/oribi-db/oribi/internal/compress"
	"github.com/oribi-db/oribi/internal/encoding"
	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/schema"
)

// This file opens files whose footer, indexes, zone map or dictionary are damaged, by their
// cblocks.
//
// A cblock does not say how long it is, but its checksum follows it. So where one begins, it ends
// at the first place before which the checksum of its bytes is stored, provided that the bytes can
// be parsed as what a file has there. This finds the cblocks of a file from its front to the first
// damaged one, and from then on those that an index names.
//
// Without a footer, encoding and codec are those with which the most cblocks can be parsed. The
// right ones fit all, so if no others do, no value is wrong.

// Known has the properties of a file that a caller of OpenDamaged knows from the metadata.
type Known struct {
	Type     schema.Type // as stored
	Nullable bool
	Array    bool
	Rows     int64 // −1: unknown
}

const (
	// maxScan is the greatest length of a cblock that is searched for.
	maxScan = maxPayload + 1<<16
	// maxMatches is how many places with the right checksum are tried as the end of a cblock. One
	// in four billion other places has it by chance, but a file may be made so that all have.
	maxMatches = 16
)

// CheckParts reads the parts that reads of cells need besides their cblocks: indexes, dictionary,
// zone map.
func (r *Reader) CheckParts() error {
	_, err := r.blocks()
	if err == nil && r.info.ValueIndex {
		_, err = r.valueIndex()
	}
	if err == nil {
		_, err = r.dictionary()
	}
	if err == nil {
		_, err = r.ZoneMap()
	}
	return err
}

// OpenDamaged opens a file that is or may be damaged anywhere. The Reader's methods that read cells
// by ordinal and cblocks by number work. Its ordinal index also numbers the gaps between readable
// cblocks; a read of a gap returns ErrCorrupt. If the number of rows is unknown, Rows is too large
// and the last cblock is a gap, unless nothing is missing.
//
// Errors: ErrCorrupt if no cblock can be read, or if the meaning of their bytes is uncertain.
// Errors of the source that are not damage are returned as they are.
func OpenDamaged(src block.Source, o ReaderOptions, k Known) (*Reader, error) {
	start := func() *Reader { return &Reader{src: src, size: src.Size(), limit: o.Limit} }
	r := start()
	footer, err := r.openFooter()
	if err == nil && !r.info.Checksums { // a bit of the footer says whether it has one
		err = r.corruptf("footer without checksum")
	}
	if err == nil {
		err = r.takeFooter(footer)
	}
	if err == nil {
		r.dataStart = preludeLen
		for _, m := range footer.GetMetadata() {
			r.pairs = append(r.pairs, Pair{m.GetKey(), m.GetValue()})
		}
		err = r.takePointers(footer)
	}
	if err == nil {
		return r.withFooter(o, k)
	} else if !unreadable(err) || r.size <= preludeLen {
		return nil, err
	}
	var best *rebuilder
	tie := false
	for _, codec := range []schema.Compression{schema.NoCompression, schema.LZ4, schema.Snappy, schema.Zlib} {
		for _, e := range []schema.Encoding{schema.Plain, schema.RLE, schema.Bitshuffle, schema.Prefix,
			schema.Dictionary} {
			if !e.Allowed(k.Type) {
				continue
			}
			r := start()
			r.version, r.codec, r.dataEnd = 2, compress.Codec(codec), r.size
			r.info = Info{Type: k.Type, Encoding: e, Compression: codec, Nullable: k.Nullable, Array: k.Array,
				Rows: k.Rows, Checksums: true, Version: 2, Bytes: r.size}
			x := newRebuilder(r, k, false)
			if err := x.walk(); err != nil {
				return nil, err
			}
			switch {
			case len(x.data) == 0:
			case best == nil || x.found > best.found:
				best, tie = x, false
			case x.found == best.found:
				same, err := x.same(best)
				if err != nil {
					return nil, err
				}
				tie = tie || !same
			}
		}
	}
	switch {
	case best == nil:
		return nil, err
	case tie:
		return nil, fault.Corruptf("cfile: block %v: without its footer, its cblocks have two meanings", src.ID())
	}
	return best.finish(o)
}

// same reports whether two codecs give the same bytes, as they do for cblocks that are stored
// uncompressed.
func (x *rebuilder) same(o *rebuilder) (bool, error) {
	if x.r.info.Encoding != o.r.info.Encoding || len(x.data) != len(o.data) || !slices.Equal(x.dicts, o.dicts) {
		return false, nil
	}
	list := slices.Clone(x.dicts)
	for i := range x.data {
		if x.data[i] != o.data[i] {
			return false, nil
		}
		list = append(list, x.data[i].p)
	}
	for _, p := range list {
		a, _, err := x.r.readBlock(p, nil)
		if err != nil {
			return false, err
		}
		b, _, err := o.r.readBlock(p, nil)
		if err != nil || !bytes.Equal(a, b) {
			return false, err
		}
	}
	return true, nil
}

// unreadable reports whether err is about bytes that cannot be read, now or later.
func unreadable(err error) bool {
	for _, e := range []error{fault.ErrCorrupt, fault.ErrUnsupported, syscall.EIO, io.EOF, io.ErrUnexpectedEOF} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

// withFooter is OpenDamaged for a file with a valid footer.
func (r *Reader) withFooter(o ReaderOptions, k Known) (*Reader, error) {
	var err error
	if r.info.PositionalIndex {
		_, err = r.ordinalIndex()
	} else {
		_, err = r.blocks()
	}
	if err != nil && !unreadable(err) {
		return nil, err
	}
	if err == nil && r.info.PositionalIndex {
		if _, err := r.ZoneMap(); err != nil {
			if !unreadable(err) {
				return nil, err
			}
			r.info.ZoneMap = false
		}
		r.setCache(o)
		return r, r.replaceDictionary()
	}
	k.Rows = r.info.Rows
	x := newRebuilder(r, k, true)
	if err := x.walk(); err != nil {
		return nil, err
	}
	return x.finish(o)
}

// setCache begins the use of the cache.
func (r *Reader) setCache(o ReaderOptions) {
	if r.src.ID() != 0 {
		r.cache, r.indexes, r.id = o.Cache, cmp.Or(o.Cache, o.Indexes), uint64(r.src.ID())
	}
}

// replaceDictionary puts an empty dictionary in the place of a damaged one. Then cblocks of codes
// cannot be read, but cblocks of byte strings can.
func (r *Reader) replaceDictionary() error {
	_, err := r.dictionary()
	if err == nil || !unreadable(err) {
		return err
	}
	r.dict.Store(&part[batch.Dictionary]{value: new(batch.Dictionary), slot: &r.dict})
	return nil
}

// rebuilder finds the cblocks of a file.
type rebuilder struct {
	r      *Reader
	k      Known
	footer bool            // the Reader has the file's footer
	named  map[int64]int32 // places and sizes of cblocks, by footer and indexes
	places []int64         // of those, ascending
	taken  map[int64]int32 // of the cblocks that were found

	data   []foundBlock
	found  int64 // rows of data
	nodes  []BlockPointer
	dicts  []BlockPointer
	zone   []byte // payload of the zone map
	next   int64  // the row after the last of data
	broken bool   // some cblock was not found
	whole  bool   // all data cblocks were found
	buf    []byte
}

// foundBlock is a data cblock.
type foundBlock struct {
	p     BlockPointer
	crc   uint32
	first int64
	rows  int
}

func newRebuilder(r *Reader, k Known, footer bool) *rebuilder {
	x := &rebuilder{r: r, k: k, footer: footer, named: map[int64]int32{}, taken: map[int64]int32{}}
	x.findStart()
	if footer {
		for _, root := range []BlockPointer{r.ordinalRoot, r.valueRoot} {
			x.name(root)
		}
		for _, p := range []BlockPointer{r.dictPointer, r.zonePointer} {
			if p.Size > 0 {
				x.named[p.Offset] = p.Size
			}
		}
		x.places = slices.Sorted(maps.Keys(x.named))
	}
	if r.info.Rows < 0 {
		r.info.Rows = maxRows
	}
	r.info.ZoneMap = false
	if r.info.Encoding == schema.Dictionary { // codes are checked when they are decoded
		r.dict.Store(&part[batch.Dictionary]{value: new(batch.Dictionary), slot: &r.dict})
		if !footer {
			r.dictPointer = BlockPointer{Size: 1} // there is one
		}
	}
	return x
}

// findStart sets the place of the first cblock.
func (x *rebuilder) findStart() {
	r := x.r
	if _, err := r.openHeader(); err != nil {
		r.dataStart = preludeLen + checksumLen // Kudu and we write no pairs there
	}
}

// name notes the cblocks that can be reached from the root of an index.
func (x *rebuilder) name(root BlockPointer) {
	r := x.r
	level := []BlockPointer{root}
	for height := 0; len(level) > 0 && height < maxTreeHeight; height++ {
		var below []BlockPointer
		for _, at := range level {
			if _, again := x.named[at.Offset]; again || at.Size == 0 {
				continue
			}
			x.named[at.Offset] = at.Size
			payload, _, err := r.readBlock(at, nil)
			if err != nil {
				continue
			}
			n, err := parseNode(payload)
			for i := 0; err == nil && i < n.count; i++ {
				var p BlockPointer
				if _, p, err = n.entry(i); err != nil || p.Offset < r.dataStart || p.Size <= 0 ||
					int64(p.Size) > at.Offset-p.Offset {
					break
				}
				if n.inner {
					below = append(below, p)
				} else {
					x.named[p.Offset] = p.Size
				}
			}
		}
		level = below
	}
}

// walk finds all cblocks.
func (x *rebuilder) walk() error {
	r := x.r
	for off := r.dataStart; off < r.dataEnd; {
		i, _ := slices.BinarySearch(x.places, off+1)
		limit := min(r.dataEnd, off+maxScan)
		if i < len(x.places) {
			limit = min(limit, x.places[i])
		}
		size, ok := x.named[off]
		var err error
		if ok {
			ok, err = x.accept(BlockPointer{off, size})
		} else {
			size, ok, err = x.search(off, limit)
		}
		switch {
		case err != nil:
			return err
		case size > 0 && (ok || i == len(x.places) || x.places[i] >= off+int64(size)):
			x.broken = x.broken || !ok
			off += int64(size)
		case i < len(x.places):
			x.broken, off = true, x.places[i]
		default: // the footer, or damage
			return x.close()
		}
	}
	return x.close()
}

// search finds the cblock that begins at off and ends at limit at the latest. size is 0 if no
// cblock begins there.
func (x *rebuilder) search(off, limit int64) (size int32, ok bool, err error) {
	const chunk = 64 << 10
	crc, b, matches := ^uint32(0), x.buf[:0], 0
	defer func() { x.buf = b }()
	for n := 0; off+int64(n)+checksumLen <= limit && matches < maxMatches; n++ {
		if len(b) < n+checksumLen {
			at := len(b)
			b = slices.Grow(b, chunk)[:at+int(min(chunk, limit-off-int64(at)))]
			got, err := x.r.src.ReadAt(b[at:], off+int64(at))
			if got < len(b)-at {
				if err != nil && !unreadable(err) {
					return 0, false, err
				}
				b, limit = b[:at+got], off+int64(at+got)
				if len(b) < n+checksumLen {
					return 0, false, nil
				}
			}
		}
		if n > 0 && ^crc == binary.LittleEndian.Uint32(b[n:]) {
			matches++
			size = int32(n + checksumLen)
			if ok, err = x.accept(BlockPointer{off, size}); ok || err != nil {
				return size, ok, err
			}
		}
		crc = crcTable[byte(crc)^b[n]] ^ crc>>8
	}
	return 0, false, nil
}

// crcTable advances a CRC-32C by a byte.
var crcTable = crc32.MakeTable(crc32.Castagnoli)

// accept reports whether a cblock is at p, and notes what it is.
func (x *rebuilder) accept(p BlockPointer) (bool, error) {
	r := x.r
	payload, crc, err := r.readBlock(p, nil)
	if err != nil {
		if unreadable(err) {
			err = nil
		}
		return false, err
	}
	switch {
	case x.isNode(payload, p):
		x.nodes = append(x.nodes, p)
	case len(payload) >= zoneHeaderLen && string(payload[:len(zoneMagic)]) == zoneMagic:
		x.zone = payload
	case x.footer && p == r.dictPointer:
	case x.isData(payload, p, crc):
	case !x.footer && len(x.data) > 0 && r.info.Encoding == schema.Dictionary && x.isDictionary(payload, p):
		x.dicts = append(x.dicts, p)
	default:
		return false, nil
	}
	x.taken[p.Offset] = p.Size
	return true, nil
}

func (x *rebuilder) isDictionary(payload []byte, p BlockPointer) bool {
	err := x.r.checkWords(payload, p)
	if err == nil {
		_, err = encoding.ParseDictionary(payload)
	}
	return err == nil
}

// isData notes a data cblock. Without damage before, its rows follow those before.
func (x *rebuilder) isData(payload []byte, p BlockPointer, crc uint32) bool {
	b, err := x.r.parseData(payload, p, nil)
	if err != nil || b.rows == 0 || b.first < x.next || b.first > x.next && !x.broken ||
		b.first+int64(b.rows) > x.r.info.Rows {
		return false
	}
	x.data = append(x.data, foundBlock{p, crc, b.first, b.rows})
	x.next, x.found = b.first+int64(b.rows), x.found+int64(b.rows)
	return true
}

// isNode reports whether a payload is a node of an index of the cblocks before it.
func (x *rebuilder) isNode(payload []byte, at BlockPointer) bool {
	n, err := parseNode(payload)
	if err != nil || n.count == 0 {
		return false
	}
	end, known := x.r.dataStart, 0
	for i := range n.count {
		_, p, err := n.entry(i)
		if err != nil || p.Offset < end || p.Size <= 0 || int64(p.Size) > at.Offset-p.Offset {
			return false
		}
		if x.taken[p.Offset] == p.Size {
			known++
		}
		end = p.end()
	}
	return known == n.count || x.broken && known > 0
}

// close drops data cblocks that the zone map does not have, and finds out whether all were found.
func (x *rebuilder) close() error {
	r := x.r
	if x.zone != nil && x.k.Rows >= 0 && len(x.zone) >= zoneHeaderLen {
		z, err := parseZoneMap(x.zone, r.info.Type, int(binary.LittleEndian.Uint32(x.zone[8:])), r.info.Rows)
		if err == nil && z != nil {
			x.compare(z)
		}
	}
	if x.k.Rows >= 0 {
		x.whole = x.next == x.k.Rows
		return nil
	}
	if x.broken || len(x.nodes) == 0 || len(x.data) == 0 {
		return nil
	}
	root := x.nodes[len(x.nodes)-1]
	payload, _, err := r.readBlock(root, nil)
	if err != nil {
		return err
	}
	// A node that is not full was written at the end of the file. If it leads to all data cblocks,
	// no other was before it.
	leads := 0
	_, err = r.walkTree(root, func(_ int, _ []byte, p BlockPointer) error {
		if leads < len(x.data) && x.data[leads].p == p {
			leads++
		}
		return nil
	})
	x.whole = err == nil && leads == len(x.data) && root.Offset > x.data[leads-1].p.Offset &&
		len(payload) < DefaultIndexBlockBytes-2*indexOverhead
	return nil
}

// compare drops the data cblocks that differ from a zone map: each was written to this place.
func (x *rebuilder) compare(z *ZoneMap) {
	entries := make(map[int64]*ZoneEntry, len(z.Entries))
	for i := range z.Entries {
		entries[int64(z.Entries[i].FirstRow)] = &z.Entries[i]
	}
	x.found = 0
	x.data = slices.DeleteFunc(x.data, func(b foundBlock) bool {
		e := entries[b.first]
		if e == nil || e.Rows != b.rows || e.crc != b.crc {
			return true
		}
		x.found += int64(b.rows)
		return false
	})
}

// finish returns a Reader of the cblocks that were found.
func (x *rebuilder) finish(opts ReaderOptions) (*Reader, error) {
	r := x.r
	if len(x.data) == 0 {
		return nil, r.corruptf("no cblock can be read")
	}
	o := new(ordinalIndex)
	add := func(first int64, p BlockPointer) {
		o.first, o.blocks = append(o.first, uint32(first)), append(o.blocks, p)
	}
	next := int64(0)
	for _, b := range x.data {
		if b.first > next {
			add(next, BlockPointer{})
		}
		add(b.first, b.p)
		next = b.first + int64(b.rows)
	}
	switch {
	case x.whole && x.k.Rows < 0:
		r.info.Rows = next
	case next < r.info.Rows:
		add(next, BlockPointer{})
	}
	r.info.PositionalIndex, r.info.ValueIndex, r.info.Keyed = true, false, false
	r.ordinals.Store(&part[ordinalIndex]{value: o, slot: &r.ordinals})
	r.setCache(opts)
	if r.info.Encoding != schema.Dictionary {
		return r, nil
	}
	r.dict.Store(nil)
	if !x.footer {
		r.dictPointer = BlockPointer{}
		if len(x.dicts) == 1 {
			r.dictPointer = x.dicts[0]
		}
	}
	return r, r.replaceDictionary()
}
