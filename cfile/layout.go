package cfile

import (
	"cmp"
	"slices"

	"github.com/oribi-db/oribi/internal/compress"
	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/schema"
)

// CblockKind is the purpose of a cblock.
type CblockKind uint8

// Kinds of cblocks.
const (
	DataCblock CblockKind = iota
	OrdinalIndexCblock
	ValueIndexCblock
	DictionaryCblock
	ZoneMapCblock
)

var cblockKinds = [...]string{"data", "ordinal-index", "value-index", "dictionary", "zone-map"}

func (k CblockKind) String() string { return cblockKinds[k] }

// Cblock describes one cblock, without its values.
type Cblock struct {
	Kind     CblockKind
	Pointer  BlockPointer
	Payload  int             // bytes, uncompressed
	KeptRaw  bool            // stored uncompressed, since compression saved too little
	Encoding schema.Encoding // of data and dictionary; Plain for data written after the dictionary was full; else Auto
	First    int64           // row; of data
	Rows     int             // of data, NULLs included; 0 in a file of raw cblocks
	Nulls    int             // of these, NULL
	Entries  int             // of an index node, the dictionary (words) or the zone map
	Level    int             // of an index node: 1 = root

	at int // index among the cblocks of its kind, in the order of rows or of the tree's levels
}

// Cblocks reads all cblocks and passes each to use, in file order. The first error of use stops it
// and is returned. The cache is not used. Errors: ErrCorrupt, ErrUnsupported for a file without
// index; the errors of the source.
func (r *Reader) Cblocks(use func(c Cblock) error) error {
	all, err := r.ListCblocks()
	if err != nil {
		return err
	}
	return r.DescribeCblocks(all, use)
}

// DescribeCblocks reads some of the cblocks that ListCblocks has returned, and passes each with all
// fields to use. It returns the same errors as Cblocks.
func (r *Reader) DescribeCblocks(list []Cblock, use func(c Cblock) error) error {
	levels := map[CblockKind]func(i int) int{}
	for _, k := range [...]CblockKind{OrdinalIndexCblock, ValueIndexCblock} {
		var err error
		if levels[k], err = r.levels(k); err != nil {
			return err
		}
	}
	var s scratch
	for _, c := range list {
		if level := levels[c.Kind]; level != nil {
			c.Level = level(c.at)
		}
		if err := r.describe(&c, c.at, &s); err != nil {
			return err
		}
		if err := use(c); err != nil {
			return err
		}
	}
	return nil
}

// Ends returns the sizes of header and footer in bytes: everything that is not a cblock.
func (r *Reader) Ends() (header, footer int64) { return r.dataStart, r.size - r.dataEnd }

// Number returns the index of a data cblock among the data cblocks of the file, in the order of
// rows. Its entry in the zone map has the same index. Number returns −1 for other cblocks.
func (c *Cblock) Number() int {
	if c.Kind != DataCblock {
		return -1
	}
	return c.at
}

// ListCblocks lists all cblocks in file order with their Kind and Pointer only. It reads the
// indexes and no cblock with data. It returns the same errors as Cblocks.
func (r *Reader) ListCblocks() ([]Cblock, error) {
	var all []Cblock
	add := func(kind CblockKind, pointers ...BlockPointer) {
		for i, p := range pointers {
			if p.Size > 0 {
				all = append(all, Cblock{Kind: kind, Pointer: p, at: i})
			}
		}
	}
	bs, err := r.blocks()
	if err != nil {
		return nil, err
	}
	add(DataCblock, bs...)
	for _, k := range [...]CblockKind{OrdinalIndexCblock, ValueIndexCblock} {
		nodes, err := r.nodes(k)
		if err != nil {
			return nil, err
		}
		add(k, nodes...)
	}
	add(DictionaryCblock, r.dictPointer)
	add(ZoneMapCblock, r.zonePointer)
	slices.SortStableFunc(all, func(a, b Cblock) int { return cmp.Compare(a.Pointer.Offset, b.Pointer.Offset) })
	return all, nil
}

// nodes returns the nodes of one index, level by level from the root; none if the file does not
// have that index.
func (r *Reader) nodes(kind CblockKind) ([]BlockPointer, error) {
	if kind == OrdinalIndexCblock && r.info.PositionalIndex {
		x, err := r.ordinalIndex()
		if err != nil {
			return nil, err
		}
		return x.nodes, nil
	}
	if kind == ValueIndexCblock && r.info.ValueIndex {
		x, err := r.valueIndex()
		if err != nil {
			return nil, err
		}
		return x.nodes, nil
	}
	return nil, nil
}

// levels returns a function from the number of an index node to its level. The entries of one level
// are the nodes of the next.
func (r *Reader) levels(kind CblockKind) (level func(i int) int, err error) {
	nodes, err := r.nodes(kind)
	if err != nil {
		return nil, err
	}
	var ends []int // where each level ends among nodes
	var s scratch
	for at, end := 0, 1; at < len(nodes); {
		next := 0
		for ; at < min(end, len(nodes)); at++ {
			payload, _, err := r.readBlock(nodes[at], &s)
			if err != nil {
				return nil, err
			}
			n, err := parseNode(payload)
			if err != nil {
				return nil, r.at(nodes[at], err)
			}
			next += n.count
		}
		ends = append(ends, end)
		end += next
	}
	return func(i int) int {
		level, _ := slices.BinarySearch(ends, i+1)
		return level + 1
	}, nil
}

// describe reads a cblock and fills in c; at is its index among the cblocks of its kind.
func (r *Reader) describe(c *Cblock, at int, s *scratch) error {
	payload, crc, err := r.readBlock(c.Pointer, s)
	if err != nil {
		return err
	}
	c.Payload = len(payload)
	stored := int(c.Pointer.Size)
	if r.info.Checksums {
		stored -= checksumLen
	}
	c.KeptRaw = r.codec != compress.None && r.version != 1 && stored == frameLenV2+len(payload)
	switch c.Kind {
	case DataCblock:
		return r.describeData(c, at, payload, crc, s)
	case DictionaryCblock:
		d, err := r.dictionary()
		if err == nil {
			c.Encoding, c.Entries = schema.Plain, len(d.Words)
		}
		return err
	case ZoneMapCblock:
		z, err := r.ZoneMap()
		if err == nil && z != nil {
			c.Entries = len(z.Entries)
		}
		return err
	}
	n, err := parseNode(payload)
	if err != nil {
		return r.at(c.Pointer, err)
	}
	c.Entries = n.count
	return nil
}

func (r *Reader) describeData(c *Cblock, at int, payload []byte, crc uint32, s *scratch) error {
	if r.info.Rows == 0 {
		return nil // raw
	}
	if err := r.checkZone(at, c.Pointer, crc); err != nil {
		return err
	}
	b, err := r.parseData(payload, c.Pointer, s)
	if err != nil {
		return r.at(c.Pointer, err)
	}
	if b.first+int64(b.rows) > r.info.Rows || b.rows == 0 {
		return r.at(c.Pointer,
			fault.Corruptf("rows [%d,%d) in a file of %d rows", b.first, b.first+int64(b.rows), r.info.Rows))
	}
	c.First, c.Rows, c.Encoding = b.first, b.rows, r.info.Encoding
	if b.nullable {
		c.Nulls = b.rows - int(b.nulls.ones)
	}
	if r.info.Encoding == schema.Dictionary && b.codes == nil {
		c.Encoding = schema.Plain
	}
	return nil
}
