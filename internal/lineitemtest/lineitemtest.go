// Package lineitemtest loads TPC-H's lineitem from the corpus. It is for tests and benchmarks only.
package lineitemtest

import (
	"bytes"
	"encoding/binary"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/internal/corpustest"
	"github.com/oribi-db/oribi/schema"
)

// Rows is the number of rows that most benchmarks load.
const Rows = 600_000

// Column is a column of lineitem, with the type that a table has for it.
type Column struct {
	Name string
	Type schema.Type
}

// Columns are the columns in the order of the text file.
var Columns = []Column{
	{"l_orderkey", schema.Int64}, {"l_partkey", schema.Int64}, {"l_suppkey", schema.Int64},
	{"l_linenumber", schema.Int32},
	{"l_quantity", schema.Decimal64}, {"l_extendedprice", schema.Decimal64}, {"l_discount", schema.Decimal64},
	{"l_tax", schema.Decimal64},
	{"l_returnflag", schema.String}, {"l_linestatus", schema.String},
	{"l_shipdate", schema.Date}, {"l_commitdate", schema.Date}, {"l_receiptdate", schema.Date},
	{"l_shipinstruct", schema.String}, {"l_shipmode", schema.String}, {"l_comment", schema.String},
}

// Load returns the first rows, a vector for each of Columns. Without a corpus the test is skipped.
func Load(tb testing.TB, rows int) []*batch.Vector {
	tb.Helper()
	text := corpustest.Read(tb, filepath.Join(corpustest.Dir(tb), "data/lineitem-600k.tbl"))
	lines := bytes.Split(bytes.TrimSuffix(text, []byte{'\n'}), []byte{'\n'})
	lines = lines[:min(rows, len(lines))]
	columns := make([]*batch.Vector, len(Columns))
	for c, column := range Columns {
		columns[c] = batch.NewVector(column.Type, len(lines))
	}
	for i, line := range lines {
		fields := bytes.Split(line, []byte{'|'})
		if len(fields) < len(columns) {
			tb.Fatalf("line %d has %d fields", i+1, len(fields))
		}
		for c, v := range columns {
			v.SetCell(i, cell(tb, v.Type, fields[c]))
		}
	}
	return columns
}

// cell returns a field as a cell.
func cell(tb testing.TB, t schema.Type, field []byte) []byte {
	tb.Helper()
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

// KeyOrder lists Columns with the columns of the primary key first.
var KeyOrder = []int{0, 3, 1, 2, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}

// LoadTable returns the first rows for a table whose schema has the columns in KeyOrder. The rows
// ascend by key.
func LoadTable(tb testing.TB, rows int) (*schema.Schema, []*batch.Vector) {
	tb.Helper()
	loaded := Load(tb, rows)
	var columns []schema.Column
	var vectors []*batch.Vector
	for i, c := range KeyOrder {
		column := schema.Column{ID: schema.ColumnID(10 + i), Name: Columns[c].Name, Type: Columns[c].Type}
		if column.Type == schema.Decimal64 {
			column.Precision, column.Scale = 15, 2
		}
		columns, vectors = append(columns, column), append(vectors, loaded[c])
	}
	s, err := schema.New(columns, 2)
	if err != nil {
		tb.Fatal(err)
	}
	return s, vectors
}
