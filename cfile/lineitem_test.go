package cfile

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/block"
	"github.com/oribi-db/oribi/internal/coding"
	"github.com/oribi-db/oribi/internal/corpustest"
	"github.com/oribi-db/oribi/schema"
)

// lineitemColumns are the columns of TPC-H's lineitem in the order of its text file, with the types
// of a table.
var lineitemColumns = []struct {
	name string
	typ  schema.Type
}{
	{"l_orderkey", schema.Int64}, {"l_partkey", schema.Int64}, {"l_suppkey", schema.Int64}, {"l_linenumber", schema.Int32},
	{"l_quantity", schema.Decimal64}, {"l_extendedprice", schema.Decimal64}, {"l_discount", schema.Decimal64}, {"l_tax", schema.Decimal64},
	{"l_returnflag", schema.String}, {"l_linestatus", schema.String},
	{"l_shipdate", schema.Date}, {"l_commitdate", schema.Date}, {"l_receiptdate", schema.Date},
	{"l_shipinstruct", schema.String}, {"l_shipmode", schema.String}, {"l_comment", schema.String},
}

// lineitemRows is the number of rows of lineitem to load.
const lineitemRows = 600_000

// loadLineitem loads the columns of lineitem.
func loadLineitem(tb testing.TB, rows int) []*batch.Vector {
	tb.Helper()
	text := corpustest.Read(tb, filepath.Join(corpustest.Dir(tb), "data/lineitem-600k.tbl"))
	lines := bytes.Split(bytes.TrimSuffix(text, []byte{'\n'}), []byte{'\n'})
	lines = lines[:min(rows, len(lines))]
	columns := make([]*batch.Vector, len(lineitemColumns))
	for c, column := range lineitemColumns {
		columns[c] = batch.NewVector(column.typ, len(lines))
	}
	for i, line := range lines {
		fields := bytes.Split(line, []byte{'|'})
		if len(fields) < len(columns) {
			tb.Fatalf("line %d has %d fields", i+1, len(fields))
		}
		for c, v := range columns {
			v.SetCell(i, lineitemCell(tb, v.Type, fields[c]))
		}
	}
	return columns
}

func lineitemCell(tb testing.TB, t schema.Type, field []byte) []byte {
	switch t {
	case schema.String:
		return field
	case schema.Date:
		day, err := time.Parse(time.DateOnly, string(field))
		if err != nil {
			tb.Fatal(err)
		}
		return binary.LittleEndian.AppendUint32(nil, uint32(day.Unix()/86400))
	case schema.Decimal64:
		whole, cents, _ := bytes.Cut(field, []byte{'.'})
		field = append(append(bytes.Clone(whole), cents...), "00"[len(cents):]...)
	}
	v, err := strconv.ParseInt(string(field), 10, 64)
	if err != nil {
		tb.Fatal(err)
	}
	return binary.LittleEndian.AppendUint64(nil, uint64(v))[:t.Width()]
}

// BenchmarkLineitem writes each column of lineitem as a table does, numbers also compressed. It
// then reads the whole file in windows: decoded, as dictionary codes, and materialized. It uses one
// core, a file in memory, and no cache.
func BenchmarkLineitem(b *testing.B) {
	columns := loadLineitem(b, lineitemRows)
	for c, v := range columns {
		o := WriterOptions{Type: v.Type, PositionalIndex: true}
		codecs := []schema.Compression{schema.NoCompression, schema.LZ4}
		if v.Type.Variable() {
			codecs = []schema.Compression{schema.LZ4} // the default of strings
		}
		for _, o.Compression = range codecs {
			b.Run(fmt.Sprintf("column=%s/type=%v/codec=%v", lineitemColumns[c].name, v.Type, o.Compression), func(b *testing.B) {
				benchColumn(b, o, v)
			})
		}
	}
	for _, name := range []int{3, 10} { // l_linenumber, l_shipdate
		v := columns[name]
		o := WriterOptions{Type: v.Type, Encoding: schema.RLE, PositionalIndex: true}
		b.Run(fmt.Sprintf("column=%s/type=%v/enc=rle", lineitemColumns[name].name, v.Type), func(b *testing.B) { benchColumn(b, o, v) })
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
			n, err := cr.ReadVector(batch.Ordinal(at), batch.WindowRows, got)
			if err != nil {
				b.Fatal(err)
			}
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
