package carbondata

import (
	"encoding/binary"
	"fmt"
	"maps"
	"math"

	"github.com/oribi-db/oribi/block"
	"github.com/oribi-db/oribi/carbondata/internal/thrift"
	"github.com/oribi-db/oribi/internal/fault"
)

// File reads one data file. It is safe for concurrent use if its source is.
type File struct {
	src        block.Source
	columns    []Column // in the order of the file
	chunks     int      // columns with all their children
	dimensions int      // how many of the chunks are dimensions
	rows       int64
	blocklets  []blocklet
	sorted     bool
	hasSorted  bool // the footer says whether it is sorted
	extra      map[string]string
	segment    segmentInfo
	headerEnd  int64
	footer     int64
	strict     bool // pages of Snappy are checked for copies from offset 0
}

// FileInfo describes a data file.
type FileInfo struct {
	Name      string // without its directory; empty if File does not know it
	Rows      int64
	Blocklets int
	Sorted    bool   // the rows are sorted by the sort columns
	Writer    string // version of the writer; empty before SDK 1.6

	Properties map[string]string // entries of the footer, the writer's version among them
}

// OpenFile reads header and footer of the data file in src. Errors: ErrCorrupt, ErrUnsupported,
// errors of src. Source: carbondata spec §3.
func OpenFile(src block.Source) (*File, error) {
	f := &File{src: src}
	if err := f.open(); err != nil {
		return nil, fmt.Errorf("carbondata: %w", err)
	}
	return f, nil
}

func (f *File) open() error {
	footer, err := f.frame()
	if err != nil {
		return err
	}
	end, err := f.readHeader(footer)
	if err != nil {
		return inside(err, "header")
	}
	f.headerEnd, f.footer = end, footer
	return inside(f.readFooter(end, footer, f.src.Size()-pointerLen), "footer at byte %d", footer)
}

// Schema returns the columns in the user's order. The caller may change the slice, but not the
// columns' children and defaults.
func (f *File) Schema() []Column { return userOrder(f.columns) }

// Info returns what the footer says about the file.
func (f *File) Info() FileInfo {
	return FileInfo{Rows: f.rows, Blocklets: len(f.blocklets), Sorted: f.sorted, Writer: f.extra["version"],
		Properties: maps.Clone(f.extra)}
}

// readChunk reads the header of column i in b.
func (f *File) readChunk(b *blocklet, i int, m *memory) (chunk, error) {
	if err := m.take(b.lengths[i] + b.pages*pageHeaderBytes); err != nil {
		return chunk{}, err
	}
	head, err := readAt(f.src, b.offsets[i], b.lengths[i])
	if err != nil {
		return chunk{}, err
	}
	c, err := parseChunk(head, b.offsets[i]+int64(len(head)), b.end(i, f.dimensions), b.pages)
	if err == nil && len(c.pages) != b.pages {
		err = fault.Corruptf("%d pages, want %d", len(c.pages), b.pages)
	}
	return c, err
}

// readHeader reads the FileHeader, which ends before limit. It returns where.
func (f *File) readHeader(limit int64) (end int64, err error) {
	const first = 64 << 10
	for n := min(first, limit); ; n = min(4*n, limit) {
		b, err := readAt(f.src, 0, int(n))
		if err != nil {
			return 0, err
		}
		r := thrift.Reader{In: b}
		var flat []flatColumn
		version, footer := 0, true
		r.Fields("FileHeader", func(id int, typ byte) {
			switch id {
			case headerVersion:
				version = r.I32(typ)
			case headerColumns:
				flat = readColumns(&r, typ)
			case headerFooter:
				footer = r.Bool(typ)
			default:
				r.Skip(typ)
			}
		}, headerVersion, headerColumns)
		switch {
		case r.Short && n < limit:
			continue
		case r.Err != nil:
			return 0, r.Err
		case version != version3:
			return 0, fault.Unsupportedf("version %d", version)
		case !footer:
			return 0, fault.Unsupportedf("a streaming file")
		case len(flat) == 0:
			return 0, fault.Corruptf("no columns")
		}
		f.chunks = len(flat)
		f.columns, f.dimensions, err = columnTree(flat)
		return int64(r.At), err
	}
}

// readFooter reads the FileFooter3 in [start, end). The blocklets are before it, from byte from.
func (f *File) readFooter(from, start, end int64) error {
	if end-start > math.MaxInt32 {
		return fault.Corruptf("%d bytes", end-start)
	}
	b, err := readAt(f.src, start, int(end-start))
	if err != nil {
		return err
	}
	r := thrift.Reader{In: b}
	const blockletBytes = 1500 // of memory, without what depends on columns and pages
	most := memoryFor(int64(len(b))) / blockletBytes
	var indexes []bounds
	r.Fields("FileFooter3", func(id int, typ byte) {
		switch id {
		case footerRows:
			f.rows = r.I64(typ)
		case footerSegment:
			f.segment = readSegmentInfo(&r, typ)
		case footerIndexes:
			r.List(typ, func(typ byte) {
				if fewer(&r, len(indexes), most, "indexes") {
					indexes = append(indexes, readBlockletIndex(&r, typ, f.chunks))
				}
			})
		case footerBlocklets:
			r.List(typ, func(typ byte) {
				if r.Want(typ, thrift.Struct) && fewer(&r, len(f.blocklets), most, "blocklets") {
					f.blocklets = append(f.blocklets, readBlocklet(&r))
				}
			})
		case footerSorted:
			f.sorted, f.hasSorted = r.Bool(typ), true
		case footerExtra:
			f.extra = r.Properties(typ)
		default:
			r.Skip(typ)
		}
	}, footerRows, footerSegment, footerIndexes, footerBlocklets)
	if r.Err != nil {
		return r.Err
	}
	if len(indexes) != len(f.blocklets) {
		return fault.Corruptf("indexes of %d blocklets, want %d", len(indexes), len(f.blocklets))
	}
	rows := int64(0)
	for i := range f.blocklets {
		bl := &f.blocklets[i]
		bl.bounds = indexes[i]
		err := bl.check(f.chunks, f.dimensions, from, start)
		if err == nil {
			err = bl.bounds.check(f.chunks)
		}
		if err != nil {
			return inside(err, "blocklet %d", i)
		}
		// Not bl.measures: without measures it can be before the end, and a footer could then list
		// the same bytes in any number of blocklets, which would take a time without limit.
		from = bl.end(f.chunks-1, f.dimensions)
		rows += int64(bl.rows)
	}
	if rows != f.rows {
		return fault.Corruptf("%d rows, its blocklets have %d", f.rows, rows)
	}
	return nil
}

// frame checks the ends of the file and returns the position of the footer.
func (f *File) frame() (int64, error) {
	size := f.src.Size()
	if size < minFile {
		return 0, fault.Corruptf("%d bytes are too short for a data file", size)
	}
	start, err := readAt(f.src, 0, int(min(size, int64(len(oldMagic)))))
	if err != nil {
		return 0, err
	}
	if start[0] != 0x15 || start[1] != version3<<1 {
		return 0, notV3(start)
	}
	b, err := readAt(f.src, size-pointerLen, pointerLen)
	if err != nil {
		return 0, err
	}
	at := int64(binary.BigEndian.Uint64(b))
	if at <= 0 || at >= size-pointerLen {
		return 0, fault.Corruptf("footer at byte %d in a file of %d", at, size)
	}
	return at, nil
}

// memoryLimit returns the limit for a file.
func (f *File) memoryLimit() int { return memoryFor(f.src.Size()) }

// newWork returns the limit for a file.
func (f *File) newWork() *work {
	w := new(work)
	w.left.Store(int64(min(minWork+workRatio*float64(f.src.Size()), math.MaxInt64/2)))
	return w
}
