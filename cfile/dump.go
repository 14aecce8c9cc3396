package cfile

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/block"
	"github.com/oribi-db/oribi/internal/compress"
	"github.com/oribi-db/oribi/internal/dump"
	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/internal/kudupb"
)

// Dump prints a file byte by byte with the meaning of each field: header, cblocks in file order,
// footer. Encoded values are shown as bytes. Compressed cblocks are shown as stored, followed by
// their uncompressed payload. A damaged file is printed as far as it is readable.
func Dump(w io.Writer, data []byte) error { return dumpTo(dump.New(w), data) }

// DumpWhole is like Dump, but prints every byte; Dump abbreviates long fields.
func DumpWhole(w io.Writer, data []byte) error { return dumpTo(dump.NewWhole(w), data) }

// Part is a part of a file that Annotate prints: the header, a cblock, or the footer.
type Part struct {
	Header, Footer bool
	Cblock         BlockPointer // if neither
}

// Annotate is Dump of one part of a file: it passes its bytes with their meaning to use, one field
// at a time, and the headings and notes between them, which have no bytes and the offset −1. Bytes
// are valid during the call. depth is how deep a line is below headings. Annotate reads the part
// only, and an index to find out what a cblock is. The first error of use stops it and is returned.
//
// Errors: ErrNotFound if the file has no such cblock; ErrCorrupt; the errors of the source. A
// damaged cblock is passed to use with the damage as its meaning.
func (r *Reader) Annotate(part Part, use func(depth int, off int64, b []byte, meaning string) error) error {
	d := &dumper{r: r, Writer: dump.NewFunc(func(l dump.Line) error { return use(l.Depth, l.Offset, l.Bytes, l.Text) })}
	switch {
	case part.Header:
		if err := d.load(0, r.dataStart); err != nil {
			return err
		}
		d.header()
		return d.Err()
	case part.Footer:
		if err := d.load(r.dataEnd, r.size-r.dataEnd); err != nil {
			return err
		}
		d.footer()
		return d.Err()
	}
	all, err := d.cblocks()
	if err != nil {
		return err
	}
	for _, c := range all {
		if c.p == part.Cblock {
			if err := d.load(c.p.Offset, int64(c.p.Size)); err != nil {
				return err
			}
			d.cblock(c)
			return d.Err()
		}
	}
	return fmt.Errorf("cfile: block %v: no cblock at byte %d with %d bytes: %w", r.src.ID(), part.Cblock.Offset,
		part.Cblock.Size, fault.ErrNotFound)
}

// load reads bytes of the file.
func (d *dumper) load(off, n int64) error {
	d.from, d.data = off, make([]byte, n)
	if _, err := d.r.src.ReadAt(d.data, off); err != nil && err != io.EOF {
		return fmt.Errorf("cfile: block %v: %w", d.r.src.ID(), err)
	}
	return nil
}

func dumpTo(w *dump.Writer, data []byte) error {
	d := &dumper{Writer: w, data: data}
	r, err := Open(&block.Memory{Bytes: data}, ReaderOptions{Arrays: true})
	if err != nil {
		d.Field(0, data, "not a file: %v", err)
		return d.Err()
	}
	d.r = r
	d.header()
	cblocks, err := d.cblocks()
	if err != nil {
		d.Note("indexes: %v", err)
	}
	end := r.dataStart
	for _, c := range cblocks {
		if c.p.Offset > end {
			d.Field(end, data[end:c.p.Offset], "bytes of no cblock")
		}
		d.cblock(c)
		end = max(end, c.p.end())
	}
	if end < r.dataEnd {
		d.Field(end, data[end:r.dataEnd], "bytes of no cblock")
	}
	d.footer()
	return d.Err()
}

type dumper struct {
	*dump.Writer
	r    *Reader
	data []byte // of the file, from byte from on
	from int64
}

// dumpBlock is a cblock and how to print it.
type dumpBlock struct {
	p     BlockPointer
	name  string
	print func(off int64, payload []byte)
}

// field prints n bytes of the file and returns the offset after them.
func (d *dumper) field(off, n int64, meaning string, args ...any) int64 {
	d.Field(off, d.bytes(off, n), meaning, args...)
	return off + n
}

// bytes returns n bytes of the file.
func (d *dumper) bytes(off, n int64) []byte { return d.data[off-d.from : off-d.from+n] }

func (d *dumper) header() {
	d.Section("header")
	defer d.End()
	length := int64(binary.LittleEndian.Uint32(d.data[magicLen:]))
	off := d.field(0, magicLen, "magic, version %d", d.r.version)
	off = d.field(off, 4, "length of the message: %d", length)
	if length > 0 {
		d.message(off, d.bytes(off, length), new(kudupb.CFileHeaderPB))
		off += length
	}
	if d.r.info.Checksums {
		d.field(off, checksumLen, "crc")
	}
}

func (d *dumper) footer() {
	d.Section("footer")
	defer d.End()
	off, i := d.r.dataEnd, d.r.info
	if i.Checksums {
		off = d.field(off, checksumLen, "crc")
	}
	length := d.r.size - preludeLen - off
	d.message(off, d.bytes(off, length), new(kudupb.CFileFooterPB))
	off += length
	arrays := ""
	if i.Array {
		arrays = "arrays of "
	}
	d.Note("%s%v, %v, %v, nullable %v, %d rows", arrays, i.Type, i.Encoding, i.Compression, i.Nullable, i.Rows)
	off = d.field(off, magicLen, "magic, version %d", d.r.version)
	d.field(off, 4, "length of the message: %d", length)
}

// cblocks lists the cblocks that the indexes and the footer point to, by offset. After an error the
// list has those found so far.
func (d *dumper) cblocks() (all []dumpBlock, err error) {
	add := func(name string, print func(int64, []byte), pointers ...BlockPointer) {
		for _, p := range pointers {
			if p.Size > 0 {
				all = append(all, dumpBlock{p, name, print})
			}
		}
	}
	add("dictionary", d.payload, d.r.dictPointer)
	add("zone map", d.zoneMap, d.r.zonePointer)
	if d.r.info.PositionalIndex {
		var x *ordinalIndex
		if x, err = d.r.ordinalIndex(); err == nil {
			add("node of the ordinal index", d.node, x.nodes...)
			add("data", d.values, x.blocks...)
		}
	}
	if d.r.info.ValueIndex {
		x, lost := d.r.valueIndex()
		if err = cmp.Or(err, lost); lost == nil {
			add("node of the value index", d.node, x.nodes...)
			if !d.r.info.PositionalIndex {
				add("data", d.values, x.blocks...)
			}
		}
	}
	slices.SortStableFunc(all, func(a, b dumpBlock) int { return cmp.Compare(a.p.Offset, b.p.Offset) })
	return all, err
}

// cblock prints the frame of a cblock and its content.
func (d *dumper) cblock(c dumpBlock) {
	d.Section("cblock: %s, %v", c.name, c.p)
	defer d.End()
	payload, _, err := d.r.readBlock(c.p, nil)
	if err != nil {
		d.field(c.p.Offset, int64(c.p.Size), "damaged: %v", err)
		return
	}
	off, end := c.p.Offset, c.p.end()
	if d.r.info.Checksums {
		end -= checksumLen
	}
	if d.r.codec != compress.None {
		if d.r.version == 1 {
			off = d.field(off, frameLenV1-frameLenV2, "bytes of the stream: %d", end-off-frameLenV1)
		}
		off = d.field(off, frameLenV2, "bytes unpacked: %d", len(payload))
		if d.r.version == 1 || end-off < int64(len(payload)) {
			d.field(off, end-off, "%v", d.r.codec)
			d.Note("unpacked, offsets from its start:")
			off = 0
		}
	}
	c.print(off, payload)
	if d.r.info.Checksums {
		d.field(end, checksumLen, "crc")
	}
}

func (d *dumper) payload(off int64, payload []byte) { d.Field(off, payload, "payload") }

// node prints an index node.
func (d *dumper) node(off int64, payload []byte) {
	n, err := parseNode(payload)
	if err != nil {
		d.Field(off, payload, "%v", err)
		return
	}
	for i := range n.count {
		key, p, err := n.entry(i)
		if err != nil {
			d.Note("%v", err)
			return
		}
		from, to, _ := n.bounds(i)
		d.Field(off+int64(from), payload[from:to], "key %x: %v", key, p)
	}
	at := len(n.payload)
	d.Field(off+int64(at), n.offsets, "offsets of the entries")
	at += len(n.offsets)
	d.Field(off+int64(at), payload[at:len(payload)-indexTrailerLen], "trailer: %d entries, inner %v", n.count, n.inner)
	at = len(payload) - indexTrailerLen
	d.Field(off+int64(at), payload[at:], "length of the trailer")
}

// shownCells limits how many cells of a cblock, and elements of a cell, are printed as values.
const shownCells = 4

// values prints a data cblock: prologue, payload, and its first cells.
func (d *dumper) values(off int64, payload []byte) {
	if d.r.info.Rows == 0 {
		d.payload(off, payload)
		return
	}
	b, err := d.r.parseData(payload, BlockPointer{Offset: off}, nil)
	if err != nil {
		d.Field(off, payload, "%v", err)
		return
	}
	at := 0
	if b.arrays != nil {
		d.arrays(off, payload, b)
		return
	}
	if d.r.info.Nullable {
		_, stream, values, _ := splitPrologue(payload)
		at = len(payload) - len(values)
		d.Field(off, payload[:at-len(stream)], "rows: %d; bytes of the bitmap: %d", b.rows, len(stream))
		d.Field(off+int64(at-len(stream)), stream, "runs of presence: %d rows present", b.values.Len())
	}
	d.Field(off+int64(at), payload[at:], "values: %d from row %d on", b.values.Len(), b.first)
	v := batch.NewVector(d.r.info.Type, min(b.rows, shownCells))
	if err := b.decode(0, v.Len, v, 0); err != nil {
		d.Note("%v", err)
		return
	}
	for i := range v.Len {
		if cell := v.Cell(i); cell == nil {
			d.Note("row %d: NULL", b.first+int64(i))
		} else {
			d.Note("row %d: %x", b.first+int64(i), cell)
		}
	}
}

// arrays prints a data cblock of arrays, whose prologue is well-formed.
func (d *dumper) arrays(off int64, payload []byte, b *dataBlock) {
	p := prologueReader{rest: payload}
	at := 0
	print := func(meaning string, args ...any) {
		end := len(payload) - len(p.rest)
		d.Field(off+int64(at), payload[at:end], meaning, args...)
		at = end
	}
	p.number("elements")
	p.number("cells")
	print("elements: %d; cells: %d", b.arrays.elements.rows, b.rows)
	p.field("elements")
	print("bytes; runs of presence: %d elements present", b.arrays.elements.ones)
	p.field("counts")
	print("bytes; runs of counts of elements")
	p.field("cells")
	print("bytes; runs of presence: %d cells present", b.nulls.ones)
	d.Field(off+int64(at), p.rest, "values: %d, of cells from row %d on", b.values.Len(), b.first)
	v := batch.NewArrays(d.r.info.Type)
	n, err := b.decodeArrays(0, min(b.rows, shownCells), v)
	if err != nil {
		d.Note("%v", err)
		return
	}
	for i := range n {
		from, to := v.Array(i)
		if v.IsNull(i) {
			d.Note("row %d: NULL", b.first+int64(i))
			continue
		}
		var text []string
		for k := from; k < min(to, from+shownCells); k++ {
			if e := v.Elements.Cell(k); e == nil {
				text = append(text, "NULL")
			} else {
				text = append(text, fmt.Sprintf("%x", e))
			}
		}
		if to-from > shownCells {
			text = append(text, "…")
		}
		d.Note("row %d, %d elements: %s", b.first+int64(i), to-from, strings.Join(text, ", "))
	}
}

// zoneMap prints the zone map.
func (d *dumper) zoneMap(off int64, payload []byte) {
	z, err := d.r.ZoneMap()
	if err != nil || z == nil {
		d.Field(off, payload, "zone map of a later version, or damaged: %v", err)
		return
	}
	d.Field(off, payload[:4], "magic")
	d.Field(off+4, payload[4:8], "version %d, must-know flags, may-ignore flags, 0", payload[4])
	d.Field(off+8, payload[8:zoneHeaderLen], "entries: %d", len(z.Entries))
	at := zoneHeaderLen
	for _, e := range z.Entries {
		n := len(e.append(nil))
		d.Field(off+int64(at), payload[at:at+zoneEntryLen], "crc %08x, %d rows, %d NULL, flags %#x", e.crc,
			e.Rows, e.Nulls, payload[at+12])
		if len(e.Min) > 0 {
			d.Field(off+int64(at+zoneEntryLen), e.Min, "min")
		}
		if len(e.Max) > 0 {
			d.Field(off+int64(at+n-len(e.Max)), e.Max, "max")
		}
		at += n
	}
}
