package cfile

import (
	"bytes"
	"encoding/binary"
	"runtime"
	"testing"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/internal/block"
	"github.com/oribi-db/oribi/schema"
)

// A file of some KiB whose values together have far more: it is verified, and read in parts, in little memory.
func TestLongValuesOfFewBytesAreReadInParts(t *testing.T) {
	const values, length = 600, 1 << 18
	for _, nullable := range []bool{false, true} {
		src := writeLong(t, values, length, nullable)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		r, err := Open(src, ReaderOptions{})
		if err != nil {
			t.Fatal(err)
		}
		c, v := r.NewColumnReader(), &batch.Vector{Type: schema.Binary}
		row, largest := 0, 0
		for row < values {
			n, err := c.Fit(batch.Ordinal(row), batch.WindowRows, 1<<20)
			if err != nil || n < 1 || n > 16 {
				t.Fatalf("row %d: %d cells, %v", row, n, err)
			}
			largest = max(largest, n)
			row += n
			if _, err := c.ReadVector(batch.Ordinal(row-n), n, v); err != nil {
				t.Fatal(err)
			}
			for i := range n {
				if cell := v.Cell(i); cell != nil && len(cell) != length+4 {
					t.Fatalf("cell of %d bytes", len(cell))
				}
			}
		}
		if err := r.Verify(); err != nil {
			t.Error(err)
		}
		runtime.ReadMemStats(&after)
		if largest < 3 {
			t.Errorf("at most %d cells at a time", largest)
		}
		if grown := int64(after.HeapSys) - int64(before.HeapSys); grown > 128<<20 {
			t.Errorf("nullable %v: the heap grew by %d bytes", nullable, grown)
		}
	}
}

// writeLong writes values that share all but their last bytes; with nullable every third is NULL.
func writeLong(t *testing.T, values, length int, nullable bool) *block.Memory {
	t.Helper()
	src := new(block.Memory)
	w, err := NewWriter(src, WriterOptions{Type: schema.Binary, Encoding: schema.Prefix, Compression: schema.LZ4, Nullable: nullable,
		BlockBytes: 16 << 20, RestartInterval: 1 << 20, PositionalIndex: true, Exact: true})
	if err != nil {
		t.Fatal(err)
	}
	cell := bytes.Repeat([]byte{'x'}, length+4)
	v := batch.NewVector(schema.Binary, 1)
	for i := range values {
		binary.BigEndian.PutUint32(cell[length:], uint32(i))
		if v.SetCell(0, cell); nullable && i%3 == 2 {
			v.SetCell(0, nil)
		}
		if err := w.Append(v); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Finish(); err != nil {
		t.Fatal(err)
	}
	return src
}
