package inputs

import (
	"encoding/binary"
	"time"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/schema"
)

// NewVectors returns a vector for each column of s.
func NewVectors(s *schema.Schema) []*batch.Vector {
	out := make([]*batch.Vector, len(s.Columns))
	for i := range out {
		out[i] = &batch.Vector{Type: s.Columns[i].Type}
	}
	return out
}

// FillVectors fills the vectors of lineitem's columns with the values of items.
func FillVectors(columns []*batch.Vector, items []Item) {
	for _, v := range columns {
		v.Reset(len(items))
	}
	long := func(c int) []int64 { return batch.Values[int64](columns[c]) }
	short := func(c int) []int32 { return batch.Values[int32](columns[c]) }
	order, part, supp, quantity, price, discount, tax := long(0), long(2), long(3), long(4), long(5), long(6), long(7)
	line, ship, commit, receipt := short(1), short(10), short(11), short(12)
	for i := range items {
		it := &items[i]
		order[i], part[i], supp[i], quantity[i], price[i], discount[i], tax[i] = it.OrderKey, it.PartKey, it.SuppKey, it.Quantity, it.ExtendedPrice, it.Discount, it.Tax
		line[i], ship[i], commit[i], receipt[i] = it.LineNumber, it.ShipDate, it.CommitDate, it.ReceiptDate
		columns[8].Bytes[i], columns[9].Bytes[i] = []byte(it.ReturnFlag), []byte(it.LineStatus)
		columns[13].Bytes[i], columns[14].Bytes[i], columns[15].Bytes[i] = []byte(it.ShipInstruct), []byte(it.ShipMode), []byte(it.Comment)
	}
}

// Batch sets the item to a row of a batch with all columns of lineitem.
func (d *Decoder) Batch(b *batch.RecordBatch, i int, it *Item) {
	long := func(col int) int64 { return batch.Values[int64](b.Columns[col])[i] }
	short := func(col int) int32 { return batch.Values[int32](b.Columns[col])[i] }
	word := func(col int) string { return d.Word(b.Columns[col].Cell(i)) }
	*it = Item{OrderKey: long(0), LineNumber: short(1), PartKey: long(2), SuppKey: long(3), Quantity: long(4), ExtendedPrice: long(5),
		Discount: long(6), Tax: long(7), ReturnFlag: word(8), LineStatus: word(9), ShipDate: short(10), CommitDate: short(11),
		ReceiptDate: short(12), ShipInstruct: word(13), ShipMode: word(14), Comment: string(b.Columns[15].Cell(i))}
}

// AppendCells appends the two key cells of a row, one after the other: 8 and 4 bytes.
func AppendCells(dst []byte, k Key) []byte {
	dst = binary.LittleEndian.AppendUint64(dst, uint64(k.OrderKey))
	return binary.LittleEndian.AppendUint32(dst, uint32(k.LineNumber))
}

// AppendLong appends the cell of an int64 or a decimal.
func AppendLong(dst []byte, v int64) []byte { return binary.LittleEndian.AppendUint64(dst, uint64(v)) }

// Cells sets the item to the row with the given cells of all columns of lineitem.
func (d *Decoder) Cells(cells [][]byte, it *Item) {
	long := func(col int) int64 { return int64(binary.LittleEndian.Uint64(cells[col])) }
	short := func(col int) int32 { return int32(binary.LittleEndian.Uint32(cells[col])) }
	*it = Item{OrderKey: long(0), LineNumber: short(1), PartKey: long(2), SuppKey: long(3), Quantity: long(4), ExtendedPrice: long(5),
		Discount: long(6), Tax: long(7), ReturnFlag: d.Word(cells[8]), LineStatus: d.Word(cells[9]), ShipDate: short(10), CommitDate: short(11),
		ReceiptDate: short(12), ShipInstruct: d.Word(cells[13]), ShipMode: d.Word(cells[14]), Comment: string(cells[15])}
}

// Day returns the date that is the given number of days after 1970-01-01.
func Day(days int32) time.Time { return time.Unix(int64(days)*86400, 0).UTC() }

// Row returns the item as an oribi.Row.
func (it *Item) Row() oribi.Row {
	return oribi.Row{"l_orderkey": it.OrderKey, "l_linenumber": it.LineNumber, "l_partkey": it.PartKey, "l_suppkey": it.SuppKey,
		"l_quantity": oribi.NewDecimal(it.Quantity, 2), "l_extendedprice": oribi.NewDecimal(it.ExtendedPrice, 2),
		"l_discount": oribi.NewDecimal(it.Discount, 2), "l_tax": oribi.NewDecimal(it.Tax, 2),
		"l_returnflag": it.ReturnFlag, "l_linestatus": it.LineStatus,
		"l_shipdate": Day(it.ShipDate), "l_commitdate": Day(it.CommitDate), "l_receiptdate": Day(it.ReceiptDate),
		"l_shipinstruct": it.ShipInstruct, "l_shipmode": it.ShipMode, "l_comment": it.Comment}
}
