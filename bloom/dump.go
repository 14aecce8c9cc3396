package bloom

import (
	"encoding/binary"
	"fmt"
	"io"
	"math/bits"

	"github.com/oribi-db/oribi/block"
	"github.com/oribi-db/oribi/cfile"
	"github.com/oribi-db/oribi/internal/dump"
)

// Dump prints a bloom file to w byte by byte with the meaning of each field. Header, index and
// footer have the format that package cfile describes, and are printed as bytes. It returns the
// errors of Open, MayContain and w.
func Dump(w io.Writer, data []byte) error {
	src := &block.Memory{Bytes: data}
	r, err := Open(src, cfile.ReaderOptions{})
	if err != nil {
		return err
	}
	pointers, err := r.file.BlockPointers()
	if err != nil {
		return fmt.Errorf("bloom: %w", err)
	}
	d := dump.New(w)
	d.Section("bloom file: %d bytes, %d filters", len(data), len(pointers))
	end, between := int64(0), "header"
	for _, at := range pointers {
		if at.Offset > end {
			d.Field(end, data[end:at.Offset], "%s", between)
		}
		end, between = at.Offset+int64(at.Size), "index"
		f, err := readFilter(r.file, at)
		if err != nil {
			return err
		}
		dumpFilter(d, at.Offset, data[at.Offset:end], f)
	}
	if len(pointers) > 0 {
		between = "index, footer"
	} else {
		between = "header, index, footer"
	}
	d.Field(end, data[end:], "%s", between)
	d.End()
	return d.Err()
}

// Annotate passes the bytes of one filter with their meaning to use, like cfile.Reader.Annotate. at
// is one of the file's cblocks of data. Errors: ErrCorrupt; the errors of the source and of use.
func (r *Reader) Annotate(at cfile.BlockPointer, use func(depth int, off int64, b []byte, meaning string) error) error {
	f, err := readFilter(r.file, at)
	if err != nil {
		return err
	}
	data := make([]byte, at.Size)
	if _, err := r.src.ReadAt(data, at.Offset); err != nil && err != io.EOF {
		return fmt.Errorf("bloom: %w", err)
	}
	d := dump.NewFunc(func(l dump.Line) error { return use(l.Depth, l.Offset, l.Bytes, l.Text) })
	dumpFilter(d, at.Offset, data, f)
	return d.Err()
}

// dumpFilter prints the cblock b and its checksum; f is the filter parsed from it.
func dumpFilter(d *dump.Writer, off int64, b []byte, f *filter) {
	set := 0
	for _, c := range f.bitmap {
		set += bits.OnesCount8(c)
	}
	n := headerLenWidth + int(binary.LittleEndian.Uint32(b))
	end := n + len(f.bitmap)
	d.Section("filter")
	d.Field(off, b[:headerLenWidth], "length of the header: %d", n-headerLenWidth)
	d.Field(off+headerLenWidth, b[headerLenWidth:n], "header: %d hashes", f.hashes)
	d.Field(off+int64(n), b[n:end], "bitmap: %d of %d bits set", set, 8*len(f.bitmap))
	if end < len(b) {
		d.Field(off+int64(end), b[end:], "crc")
	}
	d.End()
}
