package cfile

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/block"
	"github.com/oribi-db/oribi/internal/coding"
	"github.com/oribi-db/oribi/internal/lineitemtest"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/schema"
)

// BenchmarkLineitem writes each column of lineitem as a table does, numbers also compressed. It
// then reads the whole file in windows: decoded, as dictionary codes, and materialized. It uses one
// core, a file in memory, and no cache.
func BenchmarkLineitem(b *testing.B) {
	columns := lineitemtest.Load(b, lineitemtest.Rows)
	for c, v := range columns {
		o := WriterOptions{Type: v.Type, PositionalIndex: true}
		codecs := []schema.Compression{schema.NoCompression, schema.LZ4}
		if v.Type.Variable() {
			codecs = []schema.Compression{schema.LZ4} // the default of strings
		}
		for _, o.Compression = range codecs {
			b.Run(fmt.Sprintf("column=%s/type=%v/codec=%v", lineitemtest.Columns[c].Name, v.Type,
				o.Compression), func(b *testing.B) {
				benchColumn(b, o, v)
			})
		}
	}
	for _, name := range []int{3, 10} { // l_linenumber, l_shipdate
		v := columns[name]
		o := WriterOptions{Type: v.Type, Encoding: schema.RLE, PositionalIndex: true}
		b.Run(fmt.Sprintf("column=%s/type=%v/enc=rle", lineitemtest.Columns[name].Name, v.Type), func(b *testing.B) {
			benchColumn(b, o, v)
		})
	}
}

func benchColumn(b *testing.B, o WriterOptions, v *batch.Vector) {
	src := writeAll(b, o, v)
	b.Run("op=encode", func(b *testing.B) {
		out := &block.Memory{Number: 17, Bytes: make([]byte, 0, len(src.Bytes))}
		for b.Loop() {
			out.Bytes = out.Bytes[:0]
			writeTo(b, out, o, v)
		}
		reportValues(b, v.Len)
		b.ReportMetric(float64(len(src.Bytes))/float64(v.Len), "bytes/value")
	})
	r := open(b, src, nil)
	b.Run("op=decode", func(b *testing.B) { benchWindows(b, r, v, func(*batch.Vector) {}) })
	if v.Type.Variable() {
		b.Run("op=materialise", func(b *testing.B) { benchWindows(b, r, v, (*batch.Vector).Materialize) })
	}
}

// benchWindows reads a column in windows and compares the last cell of each with the cell written.
func benchWindows(b *testing.B, r *Reader, want *batch.Vector, use func(*batch.Vector)) {
	got := &batch.Vector{Type: want.Type}
	for b.Loop() {
		cr := r.NewColumnReader()
		for at := 0; at < want.Len; at += batch.WindowRows {
			n := must.Get(cr.ReadVector(batch.Ordinal(at), batch.WindowRows, got))(b)
			use(got)
			if !bytes.Equal(got.Cell(n-1), want.Cell(at+n-1)) {
				b.Fatalf("row %d is %x, want %x", at+n-1, got.Cell(n-1), want.Cell(at+n-1))
			}
		}
	}
	reportValues(b, want.Len)
}

func reportValues(b *testing.B, n int) {
	b.ReportMetric(float64(b.N)*float64(n)/b.Elapsed().Seconds()/1e6, "Mvalues/s")
}

// BenchmarkChecksum computes the CRC of a cblock of 256 KiB.
func BenchmarkChecksum(b *testing.B) {
	data := bytes.Repeat([]byte("oribi"), 256<<10/5)
	b.SetBytes(int64(len(data)))
	var sum uint32
	for b.Loop() {
		sum ^= coding.CRC32C(data)
	}
	_ = sum
}
