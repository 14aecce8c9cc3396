package peer

import (
	"context"
	"errors"
	"iter"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/bench/inputs"
	"github.com/oribi-db/oribi/schema"
)

// Oribi is the engine with its defaults.
var Oribi = Driver{Name: "oribi", Ours: true, Can: Load | Sorted | Write | Point | Query | KV | Shared,
	Lineitem: func(dir string) (Lineitem, error) {
		return openOribi(dir)
	},
	Records: func(dir string, sync bool) (Records, error) { return openOribiRecords(dir, sync, 0) }}

// OribiSmall is the engine with blocks of smallBlock bytes, which suit single-record reads of more
// data than fits in the cache: a read loads one block per column.
var OribiSmall = Driver{Name: "oribi-small", Ours: true, Can: KV | Shared,
	Records: func(dir string, sync bool) (Records, error) { return openOribiRecords(dir, sync, smallBlock) }}

const smallBlock = 4 << 10

// OribiRows is the engine with row files: a read by key reads one piece of one file.
var OribiRows = Driver{Name: "oribi-rows", Ours: true, Can: Sorted | Point | KV,
	Lineitem: func(dir string) (Lineitem, error) { return openOribi(dir, oribi.RowFile(schema.FullRowFile)) },
	Records: func(dir string, sync bool) (Records, error) {
		return openOribiRecords(dir, sync, 0, oribi.RowFile(schema.FullRowFile))
	}}

// OribiTwo is the engine with queries in two goroutines.
var OribiTwo = Driver{Name: "oribi-2", Ours: true, Lineitem: func(dir string) (Lineitem, error) {
	l, err := openOribi(dir)
	if err != nil {
		return nil, err
	}
	o := l.(*oribiLineitem)
	o.parallel = []oribi.AggregateOption{oribi.Workers(2)}
	return o, nil
}}

// oribiTable opens a store with one table. It creates both if they do not exist.
func oribiTable(
	dir, name string, columns func() (*schema.Schema, error), options ...oribi.TableOption,
) (*oribi.Store, *oribi.Table, error) {
	store, err := oribi.Open(dir, &oribi.Options{MemoryLimit: CacheBytes})
	if err != nil {
		return nil, nil, err
	}
	t, err := store.Table(name)
	if errors.Is(err, oribi.ErrNoTable) {
		var s *schema.Schema
		if s, err = columns(); err == nil {
			t, err = store.CreateTable(name, s, options...)
		}
	}
	if err != nil {
		store.Close()
	}
	return store, t, err
}

type oribiLineitem struct {
	store    *oribi.Store
	table    *oribi.Table
	batch    *oribi.Batch
	columns  []*batch.Vector
	key      [2][]byte
	keyCells any // key[:], converted once
	asked    []any
	set      []bool
	cells    [][]byte
	buf      []byte
	decoder  inputs.Decoder

	parallel []oribi.AggregateOption // of queries
}

func openOribi(dir string, options ...oribi.TableOption) (Lineitem, error) {
	store, t, err := oribiTable(dir, "lineitem", inputs.LineitemSchema, options...)
	if err != nil {
		return nil, err
	}
	n := len(t.Schema().Columns)
	return &oribiLineitem{store: store, table: t, batch: store.NewBatch(), columns: inputs.NewVectors(t.Schema()),
		set: make([]bool, n), cells: make([][]byte, n)}, nil
}

func (o *oribiLineitem) Close() error { return o.store.Close() }

// Load ingests rows in key order, and writes other rows as batches of vectors.
func (o *oribiLineitem) Load(rows iter.Seq2[*inputs.Item, error], rising bool) error {
	if !rising {
		return EachChunk(rows, Chunk, func(items []inputs.Item) error { return o.put(oribi.OpInsert, items) })
	}
	_, _, err := o.table.Ingest(context.Background(), func(yield func([]*batch.Vector, error) bool) {
		err := EachChunk(rows, batch.WindowRows, func(items []inputs.Item) error {
			inputs.FillVectors(o.columns, items)
			if !yield(o.columns, nil) {
				return errStopped
			}
			return nil
		})
		if err != nil && !errors.Is(err, errStopped) {
			yield(nil, err)
		}
	})
	return err
}

var errStopped = errors.New("stopped")

func (o *oribiLineitem) put(op oribi.Op, items []inputs.Item) error {
	inputs.FillVectors(o.columns, items)
	o.batch.Vectors(op, o.table, o.columns)
	_, err := o.batch.Commit(context.Background(), oribi.NoSync)
	return err
}

func (o *oribiLineitem) Upsert(items []inputs.Item) error { return o.put(oribi.OpUpsert, items) }

// taxColumn is the index of l_tax in the schema.
const taxColumn = 7

func (o *oribiLineitem) UpdateTax(keys []inputs.Key, tax int64) error {
	o.set[0], o.set[1], o.set[taxColumn] = true, true, true
	for _, k := range keys {
		o.buf = inputs.AppendLong(inputs.AppendCells(o.buf[:0], k), tax)
		o.cells[0], o.cells[1], o.cells[taxColumn] = o.buf[:8], o.buf[8:12], o.buf[12:]
		o.batch.Cells(oribi.OpUpdate, o.table, o.cells, o.set)
	}
	_, err := o.batch.Commit(context.Background(), oribi.NoSync)
	return err
}

func (o *oribiLineitem) Get(key inputs.Key, it *inputs.Item) (bool, error) {
	o.buf = inputs.AppendCells(o.buf[:0], key)
	o.key[0], o.key[1] = o.buf[:8], o.buf[8:12]
	if o.keyCells == nil {
		o.keyCells = o.key[:]
	}
	_, cells, err := o.table.GetCells(context.Background(), o.keyCells)
	if errors.Is(err, oribi.ErrNotFound) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	o.decoder.Cells(cells, it)
	return true, nil
}

// GetMany uses Table.GetManyCells.
func (o *oribiLineitem) GetMany(keys []inputs.Key, use func(it *inputs.Item)) error {
	o.asked, o.buf = o.asked[:0], o.buf[:0]
	cells := make([][]byte, 2*len(keys))
	for _, k := range keys {
		o.buf = inputs.AppendCells(o.buf, k)
	}
	for i := range keys {
		buf := o.buf[12*i:]
		cells[2*i], cells[2*i+1] = buf[:8], buf[8:12]
		o.asked = append(o.asked, cells[2*i:2*i+2])
	}
	_, rows, err := o.table.GetManyCells(context.Background(), o.asked)
	var it inputs.Item
	for _, row := range rows {
		if row != nil {
			o.decoder.Cells(row, &it)
			use(&it)
		}
	}
	return err
}

func (o *oribiLineitem) Range(from inputs.Key, n int, use func(it *inputs.Item)) error {
	for b, err := range o.table.Scan(context.Background(), oribi.From(oribi.Key{from.OrderKey, from.LineNumber}),
		oribi.Limit(int64(n))).Batches() {
		if err != nil {
			return err
		}
		o.decoder.Batch(b, use)
	}
	return nil
}

func (o *oribiLineitem) FinishWork() error { return o.table.Compact(context.Background()) }
