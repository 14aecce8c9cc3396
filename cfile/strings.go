package cfile

import (
	"github.com/oribi-db/oribi/internal/coding"
	"github.com/oribi-db/oribi/internal/compress"
	"github.com/oribi-db/oribi/internal/encoding"
)

// WrittenStrings are the byte strings of a cblock that a Writer has just written.
type WrittenStrings struct {
	First int64 // row
	Rows  int

	offset  int64    // in the file, of payload; −1 if it is not stored as it is
	payload []byte   // the values
	offsets []uint32 // of the values in payload, then of their end
	rank    func(row int) int
}

// Piece returns where the byte strings of rows [from, to) of the cblock are in the file, back to
// back, how many bytes they have, and their CRC-32C. ok is false if they are not stored as they are:
// compressed, as codes, or in prefix encoding.
func (s *WrittenStrings) Piece(from, to int) (offset, n int64, crc uint32, ok bool) {
	if s.offset < 0 {
		return 0, 0, 0, false
	}
	low, high := s.offsets[s.rank(from)], s.offsets[s.rank(to)]
	return s.offset + int64(low), int64(high - low), coding.CRC32C(s.payload[low:high]), true
}

// OnStrings makes w call f for each data cblock of byte strings that it writes. The argument is
// valid during the call only.
func (w *Writer) OnStrings(f func(*WrittenStrings)) { w.onStrings = f }

// reportStrings calls onStrings for the cblock at p, which has the next rows. rank returns the number
// of values of the first rows of the cblock.
func (w *Writer) reportStrings(p BlockPointer, payload []byte, rows int, rank func(row int) int) error {
	s := WrittenStrings{First: w.first, Rows: rows, offset: -1, rank: rank}
	values, frame := payload, 0
	if w.o.Nullable {
		var err error
		if _, _, values, err = splitPrologue(payload); err != nil {
			return err
		}
	}
	if w.out.codec != compress.None {
		frame += frameLenV2
	}
	end := frame
	if w.out.checksums {
		end += checksumLen
	}
	if int(p.Size) == len(payload)+end { // stored as it is
		if at, offsets, ok := encoding.PlainOffsets(values, w.o.Encoding, &w.offsets); ok {
			s.payload, s.offsets = values[at:], offsets
			s.offset = p.Offset + int64(frame+len(payload)-len(values)+at)
		}
	}
	w.onStrings(&s)
	return nil
}

// rank returns the number of values of the first rows of the open cblock.
func (w *Writer) rank(row int) int {
	if !w.hasNulls {
		return row
	}
	return w.present.CountRange(0, row)
}

// rank returns the number of values of the first rows of the cblock.
func (b *dataBlock) rank(row int) int {
	n, _ := b.span(row, 0)
	return n
}

// Piece is where some byte strings of a file are, back to back; see WrittenStrings.
type Piece struct {
	Offset int64
	Size   int
	CRC    uint32
}

// ReadPieces fills dst with pieces, whose sizes make up its size. Pieces that are back to back in
// the file, too, are read at once. Errors: those of ReadPiece.
func (r *Reader) ReadPieces(dst []byte, pieces []Piece) error {
	for len(pieces) > 0 {
		n, size := 0, 0
		for n < len(pieces) && pieces[n].Offset == pieces[0].Offset+int64(size) {
			size += pieces[n].Size
			n++
		}
		if _, err := r.readStored(dst[:0:size], pieces[0].Offset, size); err != nil {
			return err
		}
		for _, p := range pieces[:n] {
			if err := r.checkPiece(dst[:p.Size], p.Offset, p.CRC); err != nil {
				return err
			}
			dst = dst[p.Size:]
		}
		pieces = pieces[n:]
	}
	return nil
}

// ReadPiece returns n bytes at offset, which are a piece of WrittenStrings with the given CRC. They
// are in dst if that is large enough. Errors: ErrCorrupt for other bytes, and for a piece that is
// not in the file.
func (r *Reader) ReadPiece(dst []byte, offset int64, n int, crc uint32) ([]byte, error) {
	b, err := r.readStored(dst, offset, n)
	if err == nil {
		err = r.checkPiece(b, offset, crc)
	}
	if err != nil {
		return nil, err
	}
	return b, nil
}

// readStored reads n bytes at offset, into dst if that is large enough.
func (r *Reader) readStored(dst []byte, offset int64, n int) ([]byte, error) {
	if offset < r.dataStart || n < 0 || int64(n) > r.dataEnd-offset {
		return nil, r.corruptf("%d bytes at byte %d: want bytes within [%d,%d)", n, offset, r.dataStart, r.dataEnd)
	}
	b := sized(&dst, n)
	return b, r.readAt(b, offset)
}

// checkPiece compares the CRC of a piece at offset.
func (r *Reader) checkPiece(b []byte, offset int64, crc uint32) error {
	if got := coding.CRC32C(b); got != crc {
		return r.corruptf("%d bytes at byte %d: crc %08x, want %08x", len(b), offset, got, crc)
	}
	return nil
}
