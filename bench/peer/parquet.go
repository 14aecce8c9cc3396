package peer

import (
	"errors"
	"io"
	"iter"
	"os"
	"path/filepath"

	"github.com/parquet-go/parquet-go"

	"github.com/oribi-db/oribi/bench/inputs"
)

// Parquet is a file written and read by parquet-go, with its defaults and Snappy.
var Parquet = Driver{Name: "parquet-go", Can: Sorted | Query, Lineitem: openParquet}

// ErrCannot is the error of an operation that a store supports, but a file does not.
var ErrCannot = errors.New("not supported by files")

// File implements the methods of Lineitem that a peer of a single file does not support.
type File struct{}

func (File) Upsert([]inputs.Item) error                         { return ErrCannot }
func (File) UpdateTax([]inputs.Key, int64) error                { return ErrCannot }
func (File) Get(inputs.Key, *inputs.Item) (bool, error)         { return false, ErrCannot }
func (File) GetMany([]inputs.Key, func(it *inputs.Item)) error  { return ErrCannot }
func (File) Range(inputs.Key, int, func(it *inputs.Item)) error { return ErrCannot }
func (File) FinishWork() error                                  { return nil }
func (File) Close() error                                       { return nil }

// parquetRow is a row as parquet-go writes it.
type parquetRow struct {
	OrderKey      int64  `parquet:"l_orderkey,delta"`
	LineNumber    int32  `parquet:"l_linenumber"`
	PartKey       int64  `parquet:"l_partkey"`
	SuppKey       int64  `parquet:"l_suppkey"`
	Quantity      int64  `parquet:"l_quantity,dict"`
	ExtendedPrice int64  `parquet:"l_extendedprice"`
	Discount      int64  `parquet:"l_discount,dict"`
	Tax           int64  `parquet:"l_tax,dict"`
	ReturnFlag    string `parquet:"l_returnflag,dict"`
	LineStatus    string `parquet:"l_linestatus,dict"`
	ShipDate      int32  `parquet:"l_shipdate,dict"`
	CommitDate    int32  `parquet:"l_commitdate,dict"`
	ReceiptDate   int32  `parquet:"l_receiptdate,dict"`
	ShipInstruct  string `parquet:"l_shipinstruct,dict"`
	ShipMode      string `parquet:"l_shipmode,dict"`
	Comment       string `parquet:"l_comment"`
}

type parquetFile struct {
	File
	name string
}

func openParquet(dir string) (Lineitem, error) {
	return &parquetFile{name: filepath.Join(dir, "lineitem.parquet")}, nil
}

// parquetGroup is the number of rows in a row group; parquet-go has no default.
const parquetGroup = 1 << 18

func (p *parquetFile) Load(rows iter.Seq2[*inputs.Item, error], _ bool) error {
	f, err := os.Create(p.name)
	if err != nil {
		return err
	}
	defer f.Close()
	w := parquet.NewGenericWriter[parquetRow](f, parquet.Compression(&parquet.Snappy),
		parquet.MaxRowsPerRowGroup(parquetGroup))
	out := make([]parquetRow, 0, Chunk)
	err = EachChunk(rows, Chunk, func(items []inputs.Item) error {
		out = out[:0]
		for _, it := range items {
			out = append(out, parquetRow{it.OrderKey, it.LineNumber, it.PartKey, it.SuppKey, it.Quantity,
				it.ExtendedPrice, it.Discount, it.Tax,
				it.ReturnFlag, it.LineStatus, it.ShipDate, it.CommitDate, it.ReceiptDate,
				it.ShipInstruct, it.ShipMode, it.Comment})
		}
		_, err := w.Write(out)
		return err
	})
	if err != nil {
		return err
	}
	return errors.Join(w.Close(), f.Sync())
}

// Query reads the pages of the columns that the query needs, one window at a time.
func (p *parquetFile) Query(q Question) (*Answer, error) {
	f, err := os.Open(p.name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	file, err := parquet.OpenFile(f, info.Size(), parquet.SkipBloomFilters(true))
	if err != nil {
		return nil, err
	}
	a := &Answer{}
	for _, g := range file.RowGroups() {
		if err := addRowGroup(a, q, file.Schema(), g); err != nil {
			return nil, err
		}
	}
	return a, nil
}

func addRowGroup(a *Answer, q Question, s *parquet.Schema, g parquet.RowGroup) error {
	w := NewWindow()
	names := q.Needs()
	readers := make([]parquetColumn, len(names))
	for i, name := range names {
		leaf, _ := s.Lookup(name)
		readers[i].pages = g.ColumnChunks()[leaf.ColumnIndex].Pages()
		defer readers[i].close()
	}
	for rows := g.NumRows(); rows > 0; {
		n := int(min(rows, WindowRows))
		for i, name := range names {
			if err := readers[i].read(w, name, n); err != nil {
				return err
			}
		}
		a.AddColumns(q, &w.Columns, n)
		rows -= int64(n)
	}
	return nil
}

// parquetColumn reads one column of a row group, page by page.
type parquetColumn struct {
	pages  parquet.Pages
	page   parquet.Page
	reader parquet.ValueReader
	values [512]parquet.Value
}

func (c *parquetColumn) close() {
	if c.page != nil {
		parquet.Release(c.page)
	}
	c.pages.Close()
}

// read reads n rows of the column named name into w.
func (c *parquetColumn) read(w *Window, name string, n int) error {
	for at := 0; at < n; {
		if c.reader == nil {
			page, err := c.pages.ReadPage()
			if err != nil {
				return err
			}
			c.page, c.reader = page, page.Values()
		}
		got, err := c.reader.ReadValues(c.values[:min(n-at, len(c.values))])
		w.setValues(name, at, c.values[:got])
		at += got
		if errors.Is(err, io.EOF) {
			if at < n {
				parquet.Release(c.page)
				c.page, c.reader = nil, nil
			}
			continue
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// setValues copies values into the window's column.
func (w *Window) setValues(name string, at int, values []parquet.Value) {
	if long := w.Long(name); long != nil {
		for i, v := range values {
			long[at+i] = v.Int64()
		}
		return
	}
	if name == "l_shipdate" {
		for i, v := range values {
			w.ShipDate[at+i] = v.Int32()
		}
		return
	}
	text := w.Text(name)
	for i, v := range values {
		text[at+i] = append(text[at+i][:0], v.ByteArray()...)
	}
}
