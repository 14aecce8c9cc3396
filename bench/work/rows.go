package work

import (
	"encoding/binary"
	"fmt"
	"time"

	"github.com/zeebo/xxh3"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/bench/harness"
	"github.com/oribi-db/oribi/bench/inputs"
)

// lineitemInputs makes the rows that a workload on lineitem reads.
func lineitemInputs(env *harness.Env) error {
	return inputs.WriteLineitem(env.Input(Lineitem), env.Corpus, env.Scale.Rows)
}

// appendKey makes the key of a row for a store of keys and values: it sorts as (orderkey, linenumber) does.
func appendKey(dst []byte, it *inputs.Item) []byte {
	dst = binary.BigEndian.AppendUint64(dst, uint64(it.OrderKey))
	return binary.BigEndian.AppendUint32(dst, uint32(it.LineNumber))
}

// appendValue makes the value of a row for a store of keys and values: fixed widths little-endian, texts with their lengths before.
func appendValue(dst []byte, it *inputs.Item) []byte {
	for _, v := range [...]int64{it.PartKey, it.SuppKey, it.Quantity, it.ExtendedPrice, it.Discount, it.Tax} {
		dst = binary.LittleEndian.AppendUint64(dst, uint64(v))
	}
	for _, v := range [...]int32{it.ShipDate, it.CommitDate, it.ReceiptDate} {
		dst = binary.LittleEndian.AppendUint32(dst, uint32(v))
	}
	for _, s := range [...]string{it.ReturnFlag, it.LineStatus, it.ShipInstruct, it.ShipMode, it.Comment} {
		dst = appendText(dst, s)
	}
	return dst
}

func appendText[T string | []byte](dst []byte, s T) []byte {
	return append(binary.AppendUvarint(dst, uint64(len(s))), s...)
}

// checksum is the same for the same set of keys and values, in any order.
type checksum struct {
	sum  uint64
	rows int64
}

func (c *checksum) add(key, value []byte) {
	c.sum += xxh3.HashSeed(value, xxh3.Hash(key))
	c.rows++
}

func (c *checksum) String() string { return fmt.Sprintf("%d rows %016x", c.rows, c.sum) }

// addBatch adds the rows of a batch of all columns of lineitem.
func (c *checksum) addBatch(b *batch.Batch) {
	var key, value []byte
	var it inputs.Item
	for i := b.Selection.Next(0); i >= 0; i = b.Selection.Next(i + 1) {
		itemOf(b, i, &it)
		key, value = appendKey(key[:0], &it), appendValue(value[:0], &it)
		c.add(key, value)
	}
}

// itemOf takes a row from a batch of all columns of lineitem.
func itemOf(b *batch.Batch, i int, it *inputs.Item) {
	long := func(col int) int64 { return batch.Values[int64](b.Columns[col])[i] }
	short := func(col int) int32 { return batch.Values[int32](b.Columns[col])[i] }
	text := func(col int) string { return string(b.Columns[col].Cell(i)) }
	*it = inputs.Item{OrderKey: long(0), LineNumber: short(1), PartKey: long(2), SuppKey: long(3), Quantity: long(4), ExtendedPrice: long(5),
		Discount: long(6), Tax: long(7), ReturnFlag: text(8), LineStatus: text(9), ShipDate: short(10), CommitDate: short(11),
		ReceiptDate: short(12), ShipInstruct: text(13), ShipMode: text(14), Comment: text(15)}
}

func day(days int32) time.Time { return time.Unix(int64(days)*86400, 0).UTC() }

// rowOf is a row for small programs.
func rowOf(it *inputs.Item) oribi.Row {
	return oribi.Row{"l_orderkey": it.OrderKey, "l_linenumber": it.LineNumber, "l_partkey": it.PartKey, "l_suppkey": it.SuppKey,
		"l_quantity": oribi.NewDecimal(it.Quantity, 2), "l_extendedprice": oribi.NewDecimal(it.ExtendedPrice, 2),
		"l_discount": oribi.NewDecimal(it.Discount, 2), "l_tax": oribi.NewDecimal(it.Tax, 2),
		"l_returnflag": it.ReturnFlag, "l_linestatus": it.LineStatus,
		"l_shipdate": day(it.ShipDate), "l_commitdate": day(it.CommitDate), "l_receiptdate": day(it.ReceiptDate),
		"l_shipinstruct": it.ShipInstruct, "l_shipmode": it.ShipMode, "l_comment": it.Comment}
}

// typedItem is a row for programs that know their table.
type typedItem struct {
	OrderKey      int64         `oribi:"l_orderkey,key"`
	LineNumber    int32         `oribi:"l_linenumber,key"`
	PartKey       int64         `oribi:"l_partkey"`
	SuppKey       int64         `oribi:"l_suppkey"`
	Quantity      oribi.Decimal `oribi:"l_quantity"`
	ExtendedPrice oribi.Decimal `oribi:"l_extendedprice"`
	Discount      oribi.Decimal `oribi:"l_discount"`
	Tax           oribi.Decimal `oribi:"l_tax"`
	ReturnFlag    string        `oribi:"l_returnflag"`
	LineStatus    string        `oribi:"l_linestatus"`
	ShipDate      time.Time     `oribi:"l_shipdate"`
	CommitDate    time.Time     `oribi:"l_commitdate"`
	ReceiptDate   time.Time     `oribi:"l_receiptdate"`
	ShipInstruct  string        `oribi:"l_shipinstruct"`
	ShipMode      string        `oribi:"l_shipmode"`
	Comment       string        `oribi:"l_comment"`
}

func typedOf(it *inputs.Item) typedItem {
	return typedItem{it.OrderKey, it.LineNumber, it.PartKey, it.SuppKey, oribi.NewDecimal(it.Quantity, 2), oribi.NewDecimal(it.ExtendedPrice, 2),
		oribi.NewDecimal(it.Discount, 2), oribi.NewDecimal(it.Tax, 2), it.ReturnFlag, it.LineStatus, day(it.ShipDate), day(it.CommitDate),
		day(it.ReceiptDate), it.ShipInstruct, it.ShipMode, it.Comment}
}

// vectorsOf makes the vectors of items, a column each.
func vectorsOf(columns []*batch.Vector, items []inputs.Item) {
	for _, v := range columns {
		v.Reset(len(items))
	}
	for i := range items {
		it := &items[i]
		for c, v := range [...]int64{0: it.OrderKey, 2: it.PartKey, 3: it.SuppKey, 4: it.Quantity, 5: it.ExtendedPrice, 6: it.Discount, 7: it.Tax} {
			if c != 1 {
				batch.Values[int64](columns[c])[i] = v
			}
		}
		batch.Values[int32](columns[1])[i] = it.LineNumber
		for c, v := range [...]int32{it.ShipDate, it.CommitDate, it.ReceiptDate} {
			batch.Values[int32](columns[10+c])[i] = v
		}
		columns[8].Bytes[i], columns[9].Bytes[i] = []byte(it.ReturnFlag), []byte(it.LineStatus)
		for c, s := range [...]string{it.ShipInstruct, it.ShipMode, it.Comment} {
			columns[13+c].Bytes[i] = []byte(s)
		}
	}
}

// appendCells makes the two key cells of a row, one after the other.
func appendCells(dst []byte, it *inputs.Item) []byte {
	dst = binary.LittleEndian.AppendUint64(dst, uint64(it.OrderKey))
	return binary.LittleEndian.AppendUint32(dst, uint32(it.LineNumber))
}

func littleInt64(b []byte) int64 { return int64(binary.LittleEndian.Uint64(b)) }
