package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"path/filepath"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/compress"
	"github.com/apache/arrow-go/v18/parquet/file"
	"github.com/apache/arrow-go/v18/parquet/pqarrow"

	"github.com/oribi-db/oribi/bench/inputs"
	"github.com/oribi-db/oribi/bench/peer"
)

// driver is a Parquet file of lineitem, written and read by arrow-go as Arrow record batches, with
// its defaults and Snappy.
var driver = peer.Driver{Name: "arrow-go", Lineitem: func(dir string) (peer.Lineitem, error) {
	return &table{name: filepath.Join(dir, "lineitem.parquet")}, nil
}}

type table struct {
	peer.File
	name string
}

// columns contains the Arrow columns of lineitem: decimals as integers of hundredths, dates as
// days.
var columns = arrow.NewSchema([]arrow.Field{
	{Name: "l_orderkey", Type: arrow.PrimitiveTypes.Int64}, {Name: "l_linenumber", Type: arrow.PrimitiveTypes.Int32},
	{Name: "l_partkey", Type: arrow.PrimitiveTypes.Int64}, {Name: "l_suppkey", Type: arrow.PrimitiveTypes.Int64},
	{Name: "l_quantity", Type: arrow.PrimitiveTypes.Int64}, {Name: "l_extendedprice", Type: arrow.PrimitiveTypes.Int64},
	{Name: "l_discount", Type: arrow.PrimitiveTypes.Int64}, {Name: "l_tax", Type: arrow.PrimitiveTypes.Int64},
	{Name: "l_returnflag", Type: arrow.BinaryTypes.String}, {Name: "l_linestatus", Type: arrow.BinaryTypes.String},
	{Name: "l_shipdate", Type: arrow.PrimitiveTypes.Int32}, {Name: "l_commitdate", Type: arrow.PrimitiveTypes.Int32},
	{Name: "l_receiptdate", Type: arrow.PrimitiveTypes.Int32}, {Name: "l_shipinstruct", Type: arrow.BinaryTypes.String},
	{Name: "l_shipmode", Type: arrow.BinaryTypes.String}, {Name: "l_comment", Type: arrow.BinaryTypes.String},
}, nil)

// batchRows is the number of rows in a record batch.
const batchRows = 4096

// Load writes record batches. arrow-go starts a new row group after a million rows.
func (t *table) Load(rows iter.Seq2[*inputs.Item, error], _ bool) error {
	f, err := os.Create(t.name)
	if err != nil {
		return err
	}
	props := parquet.NewWriterProperties(parquet.WithCompression(compress.Codecs.Snappy))
	w, err := pqarrow.NewFileWriter(columns, f, props, pqarrow.DefaultWriterProps())
	if err != nil {
		f.Close()
		return err
	}
	b := array.NewRecordBuilder(memory.DefaultAllocator, columns)
	defer b.Release()
	flush := func() error {
		r := b.NewRecord()
		defer r.Release()
		return w.WriteBuffered(r)
	}
	n := 0
	for it, err := range rows {
		if err == nil {
			appendItem(b, it)
			if n++; n%batchRows == 0 {
				err = flush()
			}
		}
		if err != nil {
			return errors.Join(err, w.Close())
		}
	}
	return errors.Join(flush(), w.Close(), syncFile(t.name))
}

// syncFile syncs what the writer has written. The writer closes its file itself.
func syncFile(name string) error {
	f, err := os.OpenFile(name, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

func appendItem(b *array.RecordBuilder, it *inputs.Item) {
	long := func(c int, v int64) { b.Field(c).(*array.Int64Builder).Append(v) }
	short := func(c int, v int32) { b.Field(c).(*array.Int32Builder).Append(v) }
	text := func(c int, v string) { b.Field(c).(*array.StringBuilder).Append(v) }
	long(0, it.OrderKey)
	short(1, it.LineNumber)
	long(2, it.PartKey)
	long(3, it.SuppKey)
	long(4, it.Quantity)
	long(5, it.ExtendedPrice)
	long(6, it.Discount)
	long(7, it.Tax)
	text(8, it.ReturnFlag)
	text(9, it.LineStatus)
	short(10, it.ShipDate)
	short(11, it.CommitDate)
	short(12, it.ReceiptDate)
	text(13, it.ShipInstruct)
	text(14, it.ShipMode)
	text(15, it.Comment)
}

// Query reads the columns of the query as record batches.
func (t *table) Query(q peer.Question) (*peer.Answer, error) {
	f, err := file.OpenParquetFile(t.name, false)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	r, err := pqarrow.NewFileReader(f, pqarrow.ArrowReadProperties{BatchSize: batchRows}, memory.DefaultAllocator)
	if err != nil {
		return nil, err
	}
	names := q.Needs()
	var leaves []int
	for _, name := range names {
		leaves = append(leaves, columns.FieldIndices(name)[0])
	}
	records, err := r.GetRecordReader(context.Background(), leaves, nil)
	if err != nil {
		return nil, err
	}
	defer records.Release()
	a := &peer.Answer{}
	w := peer.NewWindow()
	for records.Next() {
		if err := addRecord(a, q, records.Record(), w); err != nil {
			return nil, err
		}
	}
	if err := records.Err(); err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	return a, nil
}

func addRecord(a *peer.Answer, q peer.Question, r arrow.Record, w *peer.Window) error {
	n := int(r.NumRows())
	if n > peer.WindowRows {
		return fmt.Errorf("a record batch of %d rows", n)
	}
	c := w.Columns
	for i, f := range r.Schema().Fields() {
		switch col := r.Column(i).(type) {
		case *array.Int64:
			switch f.Name {
			case "l_partkey":
				c.PartKey = col.Int64Values()
			case "l_quantity":
				c.Quantity = col.Int64Values()
			case "l_extendedprice":
				c.Price = col.Int64Values()
			case "l_discount":
				c.Discount = col.Int64Values()
			case "l_tax":
				c.Tax = col.Int64Values()
			}
		case *array.Int32:
			c.ShipDate = col.Int32Values()
		case *array.String:
			text := w.Text(f.Name)
			offsets, bytes := col.ValueOffsets(), col.ValueBytes()
			base := offsets[0]
			for k := range n {
				text[k] = bytes[offsets[k]-base : offsets[k+1]-base]
			}
		default:
			return fmt.Errorf("column %s is a %T", f.Name, col)
		}
	}
	a.AddColumns(q, &c, n)
	return nil
}
