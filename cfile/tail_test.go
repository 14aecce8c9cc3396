package cfile

import (
	"bytes"
	"testing"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/block"
	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/internal/seedtest"
	"github.com/oribi-db/oribi/schema"
)

// tailed is a block.Tailed with a tail of n bytes. It counts reads.
type tailed struct {
	*block.Memory
	n     int
	reads int
}

func (s *tailed) TakeTail() []byte {
	n := min(s.n, len(s.Bytes))
	s.n = 0
	if n == 0 {
		return nil
	}
	return bytes.Clone(s.Bytes[len(s.Bytes)-n:])
}

func (s *tailed) ReadAt(p []byte, off int64) (int, error) {
	s.reads++
	return s.Memory.ReadAt(p, off)
}

// Whatever part of a file is in its tail, all cells are the same. With all indexes in the tail, the
// first cell takes one read.
func TestTailOfAnyLength(t *testing.T) {
	r := seedtest.Rand(t)
	for _, enc := range []schema.Encoding{schema.Plain, schema.Dictionary, schema.Prefix} {
		cells := randomCells(r, schema.String, 2000, 0.1)
		o := WriterOptions{Type: schema.String, Encoding: enc, Nullable: true, PositionalIndex: true, BlockBytes: 1024}
		file := writeAll(t, o, vectorOf(schema.String, cells))
		file.Number = 7
		for _, n := range []int{1, preludeLen, 100, 512, 1000, 4000, 1 << 14, len(file.Bytes) - 1, len(file.Bytes)} {
			src := &tailed{Memory: file, n: n}
			f, err := Open(src, ReaderOptions{NoHeader: true})
			must.Do(t, err, enc, n)
			if src.TakeTail() != nil || f.tail != nil {
				t.Errorf("%v: tail of %d bytes is kept", enc, n)
			}
			opened := src.reads
			for _, i := range []int{0, len(cells) / 2, len(cells) - 1} {
				got, err := f.Cell(batch.Ordinal(i))
				if err != nil || !bytes.Equal(got, cells[i]) || (got == nil) != (cells[i] == nil) {
					t.Fatalf("%v: tail of %d bytes: cell %d is %q, %v, want %q", enc, n, i, got, err, cells[i])
				}
				if x := f.ordinals.Load(); i == 0 && x.value.nodes[0].Offset >= file.Size()-int64(n) &&
					src.reads > opened+1 {
					t.Errorf("%v: tail of %d bytes: %d reads to open, and %d for the first cell", enc, n,
						opened, src.reads-opened)
				}
			}
		}
	}
}

// The header is not read, but verified.
func TestOpenWithoutHeader(t *testing.T) {
	cells := randomCells(seedtest.Rand(t), schema.String, 300, 0)
	o := WriterOptions{Type: schema.String, Encoding: schema.Plain, PositionalIndex: true,
		HeaderMetadata: []Pair{{"a", []byte("b")}}}
	file := writeAll(t, o, vectorOf(schema.String, cells))
	src := &tailed{Memory: file, n: len(file.Bytes) / 2}
	r := must.Get(Open(src, ReaderOptions{NoHeader: true}))(t)
	must.Equal(t, src.reads, 0)
	if _, ok := r.Metadata("a"); ok {
		t.Error("there is a pair of the header")
	}
	must.Do(t, r.Verify())
	file.Bytes[preludeLen]++
	must.Get(r.Cell(5))(t)
	must.Fail(t, r.Verify(), fault.ErrCorrupt, "Verify with a damaged header")
}
