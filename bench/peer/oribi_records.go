package peer

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/schema"
)

// oribiRecords is a table with the key and ten columns of bytes. Several goroutines may write: each
// uses its own batch.
type oribiRecords struct {
	store   *oribi.Store
	table   *oribi.Table
	options []oribi.CommitOption
	writers sync.Pool
	value   []byte
}

// recordWriter is the memory of one writing goroutine.
type recordWriter struct {
	batch *oribi.Batch
	cells [][]byte
	set   []bool
}

// recordSchema returns the schema for blocks of a size in bytes; 0 = the default, 256 KiB.
func recordSchema(blockBytes int32) (*schema.Schema, error) {
	columns := []schema.Column{{Name: "k", Type: schema.Binary, BlockBytes: blockBytes}}
	for i := range Fields {
		columns = append(columns, schema.Column{Name: fmt.Sprintf("f%d", i),
			Type: schema.Binary, BlockBytes: blockBytes})
	}
	return schema.New(columns, 1)
}

func openOribiRecords(dir string, sync bool, blockBytes int32, options ...oribi.TableOption) (Records, error) {
	store, t, err := oribiTable(dir, "records", func() (*schema.Schema, error) {
		return recordSchema(blockBytes)
	}, options...)
	if err != nil {
		return nil, err
	}
	r := &oribiRecords{store: store, table: t}
	if !sync {
		r.options = []oribi.CommitOption{oribi.NoSync}
	}
	r.writers.New = func() any {
		return &recordWriter{store.NewBatch(), make([][]byte, 1+Fields), make([]bool, 1+Fields)}
	}
	return r, nil
}

func (r *oribiRecords) Close() error { return r.store.Close() }

func (r *oribiRecords) FinishWork() error { return r.table.Compact(context.Background()) }

func (r *oribiRecords) Put(keys, values [][]byte) error {
	w := r.writers.Get().(*recordWriter)
	defer r.writers.Put(w)
	for i := range keys {
		w.cells[0] = keys[i]
		for f := range Fields {
			w.cells[1+f] = values[i][f*FieldBytes : (f+1)*FieldBytes]
		}
		w.batch.Cells(oribi.OpUpsert, r.table, w.cells, nil)
	}
	_, err := w.batch.Commit(context.Background(), r.options...)
	return err
}

func (r *oribiRecords) Read(key []byte) ([]byte, error) {
	_, cells, err := r.table.GetCells(context.Background(), [][]byte{key})
	if errors.Is(err, oribi.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	r.value = r.value[:0]
	for _, c := range cells[1:] {
		r.value = append(r.value, c...)
	}
	return r.value, nil
}

func (r *oribiRecords) Update(key []byte, field int, value []byte) error {
	w := r.writers.Get().(*recordWriter)
	defer r.writers.Put(w)
	clear(w.set)
	w.set[0], w.set[1+field] = true, true
	w.cells[0], w.cells[1+field] = key, value
	w.batch.Cells(oribi.OpUpdate, r.table, w.cells, w.set)
	_, err := w.batch.Commit(context.Background(), r.options...)
	return err
}

func (r *oribiRecords) Scan(from []byte, n int, use func(key, value []byte)) error {
	for b, err := range r.table.Scan(context.Background(), oribi.From(from), oribi.Limit(int64(n))).Batches() {
		if err != nil {
			return err
		}
		for i := b.Selection.Next(0); i >= 0; i = b.Selection.Next(i + 1) {
			r.value = r.value[:0]
			for _, c := range b.Columns[1:] {
				r.value = append(r.value, c.Cell(i)...)
			}
			use(b.Columns[0].Cell(i), r.value)
		}
	}
	return nil
}
