package cfile

import (
	"bytes"
	"encoding/binary"
	"runtime"
	"testing"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/block"
	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/schema"
)

// A file of a few KiB whose values take far more memory is verified and read in parts, within
// little memory.
func TestCompactLongValuesAreReadInParts(t *testing.T) {
	const values, length = 600, 1 << 18
	for _, nullable := range []bool{false, true} {
		src := writeLong(t, values, length, nullable)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		r := must.Get(Open(src, ReaderOptions{}))(t)
		c, v := r.NewColumnReader(), &batch.Vector{Type: schema.Binary}
		row, largest := 0, 0
		for row < values {
			n, err := c.ReadVector(batch.Ordinal(row), batch.WindowRows, v)
			if err != nil || n < 1 || n > 40 || v.Len != n {
				t.Fatalf("row %d: %d cells, %v", row, n, err)
			}
			for i := range n {
				cell := v.Cell(i)
				if nullable && (row+i)%3 == 2 {
					if cell != nil {
						t.Fatalf("row %d is not NULL", row+i)
					}
				} else if len(cell) != length+4 || binary.BigEndian.Uint32(cell[length:]) != uint32(row+i) {
					t.Fatalf("row %d: cell of %d bytes", row+i, len(cell))
				}
			}
			if nulls := n - v.Present.Count(); v.Present != nil && nulls != (row+n)/3-row/3 {
				t.Fatalf("rows [%d,%d): %d NULLs", row, row+n, nulls)
			}
			largest = max(largest, n)
			row += n
		}
		must.Do(t, r.Verify())
		must.Fail(t, must.Err(cellsOf(r, 0)), fault.ErrUnsupported, "the cblock was read as a whole")
		runtime.ReadMemStats(&after)
		if largest < 10 {
			t.Errorf("at most %d cells at a time", largest)
		}
		if grown := int64(after.HeapSys) - int64(before.HeapSys); grown > 128<<20 {
			t.Errorf("nullable %v: the heap grew by %d bytes", nullable, grown)
		}
	}
}

// A single array whose few bytes expand to too much memory is an error. Shorter arrays are read a
// few at a time.
func TestCompactLongElementsAreRefused(t *testing.T) {
	const length = 1 << 18
	src := new(block.Memory)
	w := must.Get(NewWriter(src,
		WriterOptions{Type: schema.Binary, Encoding: schema.Prefix, Compression: schema.LZ4, Array: true,
			BlockBytes: 16 << 20, RestartInterval: 1 << 20, PositionalIndex: true, Exact: true}))(t)
	v := batch.NewArrays(schema.Binary)
	elements := make([][]byte, 300)
	for i := range elements {
		elements[i] = append(bytes.Repeat([]byte{'x'}, length), byte(i), byte(i>>8))
	}
	for at := 0; at < 100; at += 4 {
		v.AppendArray(elements[at : at+4])
	}
	v.AppendArray(elements[100:])
	must.Do(t, w.Append(v))
	must.Do(t, w.Finish())
	c, got := open(t, src, nil).NewColumnReader(), batch.NewArrays(schema.Binary)
	row := 0
	for row < 25 {
		n, err := c.ReadVector(batch.Ordinal(row), batch.WindowRows, got)
		if err != nil || n < 1 || n > 5 {
			t.Fatalf("row %d: %d cells, %v", row, n, err)
		}
		must.Equal(t, got.Elements.Cell(4*n-1), elements[4*(row+n)-1], row)
		row += n
	}
	must.Fail(t, must.Err(c.ReadVector(batch.Ordinal(row), 1, got)), fault.ErrUnsupported, len(elements), length)
}

// writeLong writes values that share all but their last bytes; if nullable, every third is NULL.
func writeLong(t *testing.T, values, length int, nullable bool) *block.Memory {
	t.Helper()
	src := new(block.Memory)
	w := must.Get(NewWriter(src,
		WriterOptions{Type: schema.Binary, Encoding: schema.Prefix, Compression: schema.LZ4, Nullable: nullable,
			BlockBytes: 16 << 20, RestartInterval: 1 << 20, PositionalIndex: true, Exact: true}))(t)
	cell := bytes.Repeat([]byte{'x'}, length+4)
	v := batch.NewVector(schema.Binary, 1)
	for i := range values {
		binary.BigEndian.PutUint32(cell[length:], uint32(i))
		if v.SetCell(0, cell); nullable && i%3 == 2 {
			v.SetCell(0, nil)
		}
		must.Do(t, w.Append(v))
	}
	must.Do(t, w.Finish())
	return src
}
