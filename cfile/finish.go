package cfile

import (
	"fmt"

	"google.golang.org/protobuf/proto"

	"github.com/oribi-db/oribi/block"
	"github.com/oribi-db/oribi/internal/compress"
	"github.com/oribi-db/oribi/internal/kudupb"
	"github.com/oribi-db/oribi/schema"
)

// newFooter returns the footer of a file without its pointers. All fields that Kudu writes are set,
// including defaults. Like Kudu, it sets the array field for arrays only. Source: cfile spec §2.4.
func newFooter(o *WriterOptions, rows int64) *kudupb.CFileFooterPB {
	dataType, encoding, codec := int32(o.Type), int32(o.Encoding), int32(o.Compression)
	features := uint32(0)
	if !o.NoChecksums {
		features |= featureChecksum
	}
	footer := &kudupb.CFileFooterPB{
		DataType: &dataType, Encoding: &encoding, NumValues: &rows, Compression: &codec,
		IsTypeNullable: &o.Nullable, IncompatibleFeatures: &features,
	}
	if o.Array {
		features |= featureArray
		footer.IsTypeArray = &o.Array
	}
	return footer
}

// finishZone writes the zone map and adds the pair that points to it.
func (w *Writer) finishZone() error {
	if w.zone == nil {
		return nil
	}
	p, _, err := w.out.writeBlock(w.zone.finish(nil))
	if err != nil {
		return err
	}
	value, err := proto.Marshal(p.message())
	if err != nil {
		return fmt.Errorf("cfile: zone map: %w", err)
	}
	w.AddMetadata(zoneMapKey, value)
	return nil
}

// finish writes the footer.
func (f *framer) finish(footer *kudupb.CFileFooterPB) error {
	b, err := appendFooter(nil, footer, f.checksums)
	if err != nil {
		return err
	}
	return f.write(b)
}

// RawWriter writes a file of cblocks with payloads made by the caller, and a value index. A
// BloomFile is such a file. Not safe for concurrent use. After an error it must not be used again.
// Source: cfile spec §9.
type RawWriter struct {
	o    WriterOptions
	out  framer
	keys *treeBuilder
	buf  []byte
	err  error
}

// NewRawWriter starts a file by writing the header. It uses only these fields of o: Compression
// (default: none), IndexBlockBytes, FullIndexKeys, NoChecksums and HeaderMetadata. The footer lists
// type BINARY, encoding PLAIN and no values.
func NewRawWriter(sink block.Sink, o WriterOptions) (*RawWriter, error) {
	if o.Compression == schema.DefaultCompression {
		o.Compression = schema.NoCompression
	}
	o.Type, o.Encoding, o.Nullable, o.Array, o.ValueIndex = schema.Binary, schema.Plain, false, false, true
	if err := o.resolve(); err != nil {
		return nil, err
	}
	w := &RawWriter{o: o}
	w.out = framer{sink: sink, codec: compress.Codec(o.Compression), checksums: !o.NoChecksums}
	w.keys = newTreeBuilder(&w.out, o.IndexBlockBytes)
	header, err := appendHeader(nil, o.HeaderMetadata, !o.NoChecksums)
	if err != nil {
		return nil, err
	}
	return w, w.out.write(header)
}

// AppendBlock writes the concatenation of parts as one cblock. Its key is the shortest prefix of
// firstKey that separates it from prevLastKey, the last key of the cblock before (empty for the
// first). The arguments are not retained.
func (w *RawWriter) AppendBlock(parts [][]byte, firstKey, prevLastKey []byte) error {
	if w.err != nil {
		return w.err
	}
	w.buf = w.buf[:0]
	for _, part := range parts {
		w.buf = append(w.buf, part...)
	}
	p, _, err := w.out.writeBlock(w.buf)
	if err == nil {
		if !w.o.FullIndexKeys {
			firstKey = Separator(prevLastKey, firstKey)
		}
		err = w.keys.add(0, firstKey, p)
	}
	w.err = err
	return err
}

// Bytes returns the number of bytes written.
func (w *RawWriter) Bytes() int64 { return w.out.offset }

// Finish writes the remaining index nodes and the footer. Nothing can be appended afterwards.
func (w *RawWriter) Finish() error {
	if w.err != nil {
		return w.err
	}
	w.err = errFinished
	root, err := w.keys.finish()
	if err != nil {
		w.err = err
		return err
	}
	footer := newFooter(&w.o, 0)
	footer.ValidxInfo = &kudupb.BTreeInfoPB{RootBlock: root.message()}
	if err := w.out.finish(footer); err != nil {
		w.err = err
		return err
	}
	return nil
}
