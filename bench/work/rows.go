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

func appendText[T string | []byte](dst []byte, s T) []byte {
	return append(binary.AppendUvarint(dst, uint64(len(s))), s...)
}

// checksum is independent of the order of keys and values.
type checksum struct {
	sum     uint64
	rows    int64
	decoder inputs.Decoder
	key     []byte // memory of addItem
	value   []byte
}

func (c *checksum) add(key, value []byte) {
	c.sum += xxh3.HashSeed(value, xxh3.Hash(key))
	c.rows++
}

func (c *checksum) String() string { return fmt.Sprintf("%d rows %016x", c.rows, c.sum) }

// addBatch adds the rows of a batch with all columns of lineitem.
func (c *checksum) addBatch(b *batch.RecordBatch) {
	c.decoder.Batch(b, c.addItem)
}

// addItem adds a row.
func (c *checksum) addItem(it *inputs.Item) {
	c.key, c.value = it.AppendKey(c.key[:0]), it.AppendValue(c.value[:0])
	c.add(c.key, c.value)
}

// typedItem is a row for TableOf.
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
	return typedItem{it.OrderKey, it.LineNumber, it.PartKey, it.SuppKey, oribi.NewDecimal(it.Quantity, 2),
		oribi.NewDecimal(it.ExtendedPrice, 2),
		oribi.NewDecimal(it.Discount, 2), oribi.NewDecimal(it.Tax, 2), it.ReturnFlag, it.LineStatus,
		inputs.Day(it.ShipDate), inputs.Day(it.CommitDate),
		inputs.Day(it.ReceiptDate), it.ShipInstruct, it.ShipMode, it.Comment}
}

// vectorsOf returns the vectors of items, one per column.
func vectorsOf(columns []*batch.Vector, items []inputs.Item) { inputs.FillVectors(columns, items) }

func littleInt64(b []byte) int64 { return int64(binary.LittleEndian.Uint64(b)) }
