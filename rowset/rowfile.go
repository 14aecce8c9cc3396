package rowset

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/block"
	"github.com/oribi-db/oribi/cfile"
	"github.com/oribi-db/oribi/change"
	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/schema"
)

// A row file repeats the base data of a rowset row by row, so that a read of one row reads one
// cblock instead of one for each column. It is a CFile of type BINARY, plain and not compressed,
// with cblocks of about 4 KiB and a positional index, whose cell i has the encoded key and the
// image of row i (cfile.AppendKeyed, change.RowFormat). The row with INT32 key 7 and STRING "hi":
//
//	04 80 00 00 07 07 00 00 00 02 00 00 00 68 69
//
// The footer's pair oribi.rows describes the images. Readers compare it with the rowset's metadata:
// the file answers only for the very files that it repeats.
//
//	offset  width  field    meaning
//	0       1      version  1
//	1       1      flags    features that a reader must know; none yet
//	2       14 n   columns  of the images, in their order:
//	+0      4      ID       of the column
//	+4      1      type     Kudu's number; 21 = array
//	+5      1      null     1: the column is nullable
//	+6      8      block    of the column's base data, or 0 if all cells are the default and have no file
//
// INT32 column 10 in block 1, nullable STRING column 11 in block 2:
// 01 00 0a 00 00 00 05 00 01 00 00 00 00 00 00 00 0b 00 00 00 08 01 02 00 00 00 00 00 00 00
const (
	rowFilePair    = "oribi.rows" // file format: never change
	rowFileVersion = 1            // file format: never change
	rowFileHeader  = 2            // file format: never change
	rowFileColumn  = 14           // file format: never change

	rowFileBlockBytes = 4 << 10
	rowFileIndexBytes = 1 << 20 // of an index node: each index is one node, read at once
)

// appendRowColumns appends the pair that describes the images: columns of s, in the blocks.
func appendRowColumns(dst []byte, s *schema.Schema, blocks []ColumnBlock) []byte {
	dst = append(dst, rowFileVersion, 0)
	for i := range s.Columns {
		c := &s.Columns[i]
		dst = binary.LittleEndian.AppendUint32(dst, uint32(c.ID))
		null := byte(0)
		if c.Nullable {
			null = 1
		}
		dst = append(dst, byte(c.Type), null)
		dst = binary.LittleEndian.AppendUint64(dst, uint64(blockOf(blocks, c.ID)))
	}
	return dst
}

// blockOf returns the block of a column, or 0 if blocks does not have the column.
func blockOf(blocks []ColumnBlock, id schema.ColumnID) block.ID {
	for _, b := range blocks {
		if b.ID == id {
			return b.Block
		}
	}
	return 0
}

// parseRowColumns parses the pair that describes the images. The schema has only what matters for
// them. Errors: ErrCorrupt; ErrUnsupported for a newer version.
func parseRowColumns(value []byte) (columns []schema.Column, blocks []block.ID, err error) {
	switch n := len(value) - rowFileHeader; {
	case n < 0 || n%rowFileColumn != 0 || n/rowFileColumn > schema.MaxColumns:
		return nil, nil, fault.Corruptf("row file: pair %s of %d bytes", rowFilePair, len(value))
	case value[0] != rowFileVersion || value[1] != 0:
		return nil, nil, fault.Unsupportedf("row file: version %d, flags %#x", value[0], value[1])
	}
	le := binary.LittleEndian
	for b := value[rowFileHeader:]; len(b) > 0; b = b[rowFileColumn:] {
		c := schema.Column{ID: schema.ColumnID(le.Uint32(b)), Type: schema.Type(b[4]), Nullable: b[5] == 1}
		if !c.Type.Valid() || b[5] > 1 {
			return nil, nil, fault.Corruptf("row file: column %d of type %d, nullable %d", c.ID, b[4], b[5])
		}
		columns, blocks = append(columns, c), append(blocks, block.ID(le.Uint64(b[6:])))
	}
	return columns, blocks, nil
}

// rowFileWriter writes a row file.
type rowFileWriter struct {
	file   *cfile.Writer
	format *change.RowFormat
	images []byte
	cells  []byte
	ends   []int
	vector batch.Vector
}

// newRowFile starts the row file of a rowset with columns in the given blocks.
func newRowFile(c Creation, s *schema.Schema, f *change.RowFormat,
	blocks []ColumnBlock) (output[*rowFileWriter], error) {
	return newOutput(c, func(sink block.Sink) (*rowFileWriter, error) {
		file, err := cfile.NewWriter(sink,
			cfile.WriterOptions{Type: schema.Binary, Encoding: schema.Plain, Compression: schema.NoCompression,
				BlockBytes: rowFileBlockBytes, IndexBlockBytes: rowFileIndexBytes, PositionalIndex: true,
				Keyed: true, Exact: true})
		if err != nil {
			return nil, err
		}
		file.AddMetadata(rowFilePair, appendRowColumns(nil, s, blocks))
		return &rowFileWriter{file: file, format: f, vector: batch.Vector{Type: schema.Binary}}, nil
	})
}

// rowsAtOnce bounds the memory of append.
const rowsAtOnce = 256

// append adds rows. There is a vector for each column of the schema, in its order. Errors:
// ErrSchema for vectors that the writers of the columns refuse too.
func (w *rowFileWriter) append(keys [][]byte, vectors []*batch.Vector) error {
	for i, v := range vectors {
		if err := w.check(&w.format.Schema().Columns[i], v); err != nil {
			return err
		}
	}
	for from := 0; from < len(keys); from += rowsAtOnce {
		to := min(from+rowsAtOnce, len(keys))
		w.images, w.ends = w.format.AppendVectorRows(w.images[:0], w.ends[:0], vectors, from, to)
		w.cells = w.cells[:0]
		start := 0
		for i, end := range w.ends {
			w.cells = cfile.AppendKeyed(w.cells, keys[from+i], w.images[start:end])
			start, w.ends[i] = end, len(w.cells)
		}
		w.vector.Reset(to - from)
		start = 0
		for i, end := range w.ends {
			w.vector.Bytes[i], start = w.cells[start:end:end], end
		}
		if err := w.file.Append(&w.vector); err != nil {
			return err
		}
	}
	return nil
}

// check returns an error for a vector from which no image can be made.
func (w *rowFileWriter) check(c *schema.Column, v *batch.Vector) error {
	err := v.Validate()
	switch {
	case err != nil:
	case v.Type.Physical() != c.Type.Physical() || v.Elements != nil:
		err = fmt.Errorf("vector of %s", v.Type)
	case !c.Nullable && v.Present != nil && v.Present.CountRange(0, v.Len) < v.Len:
		err = errors.New("NULL in a column that is not nullable")
	default:
		return nil
	}
	return fmt.Errorf("row file: column %q: %w: %w", c.Name, err, fault.ErrSchema)
}
