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
		order[i], part[i], supp[i], quantity[i], price[i], discount[i], tax[i] = it.OrderKey, it.PartKey, it.SuppKey,
			it.Quantity, it.ExtendedPrice, it.Discount, it.Tax
		line[i], ship[i], commit[i], receipt[i] = it.LineNumber, it.ShipDate, it.CommitDate, it.ReceiptDate
		columns[8].Bytes[i], columns[9].Bytes[i] = []byte(it.ReturnFlag), []byte(it.LineStatus)
		columns[13].Bytes[i], columns[14].Bytes[i], columns[15].Bytes[i] = []byte(it.ShipInstruct),
			[]byte(it.ShipMode), []byte(it.Comment)
	}
}

// Batch calls use with each selected row of a batch with all columns of lineitem.
func (d *Decoder) Batch(b *batch.RecordBatch, use func(it *Item)) {
	var long [8][]int64
	for i, col := range [...]int{0, 2, 3, 4, 5, 6, 7} {
		long[i] = batch.Values[int64](b.Columns[col])
	}
	var short [4][]int32
	for i, col := range [...]int{1, 10, 11, 12} {
		short[i] = batch.Values[int32](b.Columns[col])
	}
	var words [4]words
	for i, col := range [...]int{8, 9, 13, 14} {
		words[i] = d.wordsOf(b.Columns[col])
	}
	comments := b.Columns[15]
	var it Item
	for i := b.Selection.Next(0); i >= 0; i = b.Selection.Next(i + 1) {
		it.OrderKey, it.PartKey, it.SuppKey, it.Quantity = long[0][i], long[1][i], long[2][i], long[3][i]
		it.ExtendedPrice, it.Discount, it.Tax = long[4][i], long[5][i], long[6][i]
		it.LineNumber, it.ShipDate, it.CommitDate, it.ReceiptDate = short[0][i], short[1][i], short[2][i], short[3][i]
		it.ReturnFlag, it.LineStatus, it.ShipInstruct, it.ShipMode = words[0].at(i), words[1].at(i),
			words[2].at(i), words[3].at(i)
		it.Comment = string(comments.Cell(i))
		use(&it)
	}
}

// words are the interned strings of a vector.
type words struct {
	d     *Decoder
	v     *batch.Vector
	known []string // of the words of v's dictionary; nil if it has none
}

func (d *Decoder) wordsOf(v *batch.Vector) words {
	if v.Dict == nil {
		return words{d: d, v: v}
	}
	known, ok := d.dictionaries[v.Dict]
	if !ok {
		if d.dictionaries == nil {
			d.dictionaries = map[*batch.Dictionary][]string{}
		}
		for _, w := range v.Dict.Words {
			known = append(known, d.Word(w))
		}
		d.dictionaries[v.Dict] = known
	}
	return words{v: v, known: known}
}

func (w *words) at(i int) string {
	if w.known != nil {
		return w.known[w.v.Codes[i]]
	}
	return w.d.Word(w.v.Cell(i))
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
	*it = Item{OrderKey: long(0), LineNumber: short(1), PartKey: long(2), SuppKey: long(3),
		Quantity: long(4), ExtendedPrice: long(5),
		Discount: long(6), Tax: long(7), ReturnFlag: d.Word(cells[8]), LineStatus: d.Word(cells[9]),
		ShipDate: short(10), CommitDate: short(11),
		ReceiptDate: short(12), ShipInstruct: d.Word(cells[13]),
		ShipMode: d.Word(cells[14]), Comment: string(cells[15])}
}

// Day returns the date that is the given number of days after 1970-01-01.
func Day(days int32) time.Time { return time.Unix(int64(days)*86400, 0).UTC() }

// Row returns the item as an oribi.Row.
func (it *Item) Row() oribi.Row {
	return oribi.Row{"l_orderkey": it.OrderKey, "l_linenumber": it.LineNumber,
		"l_partkey": it.PartKey, "l_suppkey": it.SuppKey,
		"l_quantity": oribi.NewDecimal(it.Quantity, 2), "l_extendedprice": oribi.NewDecimal(it.ExtendedPrice, 2),
		"l_discount": oribi.NewDecimal(it.Discount, 2), "l_tax": oribi.NewDecimal(it.Tax, 2),
		"l_returnflag": it.ReturnFlag, "l_linestatus": it.LineStatus,
		"l_shipdate": Day(it.ShipDate), "l_commitdate": Day(it.CommitDate), "l_receiptdate": Day(it.ReceiptDate),
		"l_shipinstruct": it.ShipInstruct, "l_shipmode": it.ShipMode, "l_comment": it.Comment}
}
