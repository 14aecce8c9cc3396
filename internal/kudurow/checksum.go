package kudurow

import (
	"encoding/binary"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/internal/coding"
)

// Summer computes the checksum that servers compute over rows. It does not depend on their order: it is
// the sum, modulo 2^64, of the CRC-32C of each row. The bytes of a row are its cells:
//
//	4  the number of the column, from 0
//	1  of a nullable column, 1 if the cell is not NULL
//	n  the cell, if it is not NULL, without a length
//
// Different rows may have the same sum. A Summer is not safe for concurrent use.
type Summer struct {
	Sum  uint64
	Rows int64
	buf  []byte
}

// Add adds the selected rows of b, whose columns are the columns of the projection.
func (s *Summer) Add(b *batch.RecordBatch) {
	for row := range b.Rows() {
		buf := s.buf[:0]
		for i, v := range b.Columns {
			buf = binary.LittleEndian.AppendUint32(buf, uint32(i))
			null := v.IsNull(row)
			switch {
			case !b.Schema[i].Nullable:
			case null:
				buf = append(buf, 0)
			default:
				buf = append(buf, 1)
			}
			if !null {
				buf = append(buf, v.Cell(row)...)
			}
		}
		s.Sum += uint64(coding.CRC32C(buf))
		s.Rows++
		s.buf = buf
	}
}
