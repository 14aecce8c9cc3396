package cfile

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/block"
	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/internal/seedtest"
	"github.com/oribi-db/oribi/schema"
)

// Pieces have the byte strings of their rows, in every kind of cblock that is stored as it is, also
// in cblocks that were taken from another file.
func TestPiecesHaveTheStringsOfTheirRows(t *testing.T) {
	r := seedtest.Rand(t)
	stored, packed := 0, 0
	for range 60 {
		o := WriterOptions{Type: schema.String, Nullable: r.IntN(2) == 0, BlockBytes: 2048, PositionalIndex: true,
			Encoding:    []schema.Encoding{schema.Plain, schema.Dictionary, schema.Prefix}[r.IntN(3)],
			Compression: []schema.Compression{schema.NoCompression, schema.LZ4}[r.IntN(2)], NoWords: r.IntN(2) == 0}
		v := batch.NewVector(schema.String, 3000)
		noise := r.IntN(2) == 0
		for i := range v.Len {
			switch {
			case o.Nullable && r.IntN(4) == 0:
				v.SetCell(i, nil)
			case noise:
				v.Bytes[i] = fmt.Appendf(nil, "%016x%016x", r.Uint64(), r.Uint64())[:r.IntN(33)]
			default:
				v.Bytes[i] = bytes.Repeat([]byte("ab"), r.IntN(9))
			}
		}
		src := writeAll(t, o, v)
		if f := open(t, src, nil); o.Encoding != schema.Prefix && r.IntN(2) == 0 {
			sink := &block.Memory{Number: 2}
			w := must.Get(NewWriter(sink, o))(t)
			checkPieces(t, w, sink, v, func() {
				for i := range must.Get(f.blocks())(t) {
					c := must.Get(f.Stored(i))(t)
					if !must.Get(w.AppendStored(c))(t) {
						must.Do(t, w.appendRange(v, int(c.b.first), int(c.b.first)+c.b.rows))
					}
					c.Release()
				}
			}, &stored, &packed)
			continue
		}
		sink := &block.Memory{Number: 1}
		w := must.Get(NewWriter(sink, o))(t)
		checkPieces(t, w, sink, v, func() { must.Do(t, w.Append(v)) }, &stored, &packed)
	}
	if stored < 200 || packed < 200 {
		t.Errorf("%d pieces are stored as they are, %d are not", stored, packed)
	}
}

// checkPieces calls write, finishes the file, and compares the pieces of its cblocks with cells.
func checkPieces(t *testing.T, w *Writer, sink *block.Memory, cells *batch.Vector, write func(), stored, packed *int) {
	t.Helper()
	type piece struct {
		from, to  int
		offset, n int64
		crc       uint32
	}
	var pieces []piece
	next := int64(0)
	w.OnStrings(func(s *WrittenStrings) {
		must.Equal(t, s.First, next, "a cblock begins at row")
		next += int64(s.Rows)
		for from := 0; from < s.Rows; {
			to := min(s.Rows, from+7)
			if offset, n, crc, ok := s.Piece(from, to); ok {
				pieces = append(pieces, piece{int(s.First) + from, int(s.First) + to, offset, n, crc})
				*stored++
			} else {
				*packed++
			}
			from = to
		}
	})
	write()
	must.Do(t, w.Finish())
	must.Equal(t, next, int64(cells.Len))
	f := open(t, sink, nil)
	for _, p := range pieces {
		var want []byte
		for i := p.from; i < p.to; i++ {
			want = append(want, cells.Cell(i)...)
		}
		must.Equal(t, must.Get(f.ReadPiece(nil, p.offset, int(p.n), p.crc))(t), want)
		if p.n > 0 {
			sink.Bytes[p.offset] ^= 1
			must.Fail(t, must.Err(f.ReadPiece(nil, p.offset, int(p.n), p.crc)), fault.ErrCorrupt)
			sink.Bytes[p.offset] ^= 1
		}
	}
	for _, bad := range []struct {
		offset int64
		n      int
	}{{0, 4}, {sink.Size() - 4, 8}, {100, 1 << 40}, {100, -1}, {1 << 62, 1}} {
		must.Fail(t, must.Err(f.ReadPiece(nil, bad.offset, bad.n, 0)), fault.ErrCorrupt)
	}
}
