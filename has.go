package oribi

import (
	"context"
	"fmt"
	"sync"

	"github.com/oribi-db/oribi/mvcc"
)

// keyRead is the memory of a read of one row: the buffer of the encoded key and the options escape.
type keyRead struct {
	o   readOptions
	key []byte
}

// maxKeptKey is the size of the largest buffer that a keyRead keeps.
const maxKeptKey = 4 << 10

var keyReads = sync.Pool{New: func() any { return &keyRead{key: make([]byte, 0, 128)} }}

func (k *keyRead) release() {
	if k.o = (readOptions{}); cap(k.key) <= maxKeptKey {
		keyReads.Put(k)
	}
}

// Has reports whether there is a row with a key, which is given as in Get. It reads no columns
// other than those of the key, and allocates nothing if there is no such row.
//
// Errors: as for Get, except that a missing row is no error.
func (t *Table) Has(ctx context.Context, key any, opts ...ReadOption) (bool, error) {
	for tries := 0; ; tries++ {
		found, err := t.has(ctx, key, opts)
		if err == nil || !restarts(ctx, t, opts, err, tries) {
			return found, err
		}
	}
}

func (t *Table) has(ctx context.Context, key any, opts []ReadOption) (bool, error) {
	k := keyReads.Get().(*keyRead)
	defer k.release()
	collectInto(&k.o, opts)
	var v view
	err := t.read(ctx, &k.o, &v)
	if err != nil {
		return false, err
	}
	defer t.done(&v)
	encoded, err := t.appendKey(k.key[:0], v.TableSchema, key, false)
	if err != nil {
		return false, err
	}
	k.key = encoded
	found, err := v.Has(encoded)
	if err != nil {
		return false, fmt.Errorf("oribi: %w", err)
	}
	return found, nil
}

// Has reports whether there is a row with a key, as Table.Has does.
func (t *TableOf[T]) Has(ctx context.Context, key any, opts ...ReadOption) (bool, error) {
	return t.Table.Has(ctx, key, opts...)
}

// Has reports whether there is a row with a key, as Table.Has does. The transaction has then read
// the row, whether it exists or not: see Tx. Errors: as for Tx.Get, except that a missing row is
// no error.
func (tx *Tx) Has(t *Table, key any) (bool, error) {
	if err := tx.ready(t); err != nil {
		return false, err
	}
	o := readOptions{}
	At(tx.snapshot).apply(&o)
	var v view
	err := t.read(tx.ctx, &o, &v)
	if err != nil {
		return false, err
	}
	defer t.done(&v)
	encoded, err := t.appendKey(nil, v.TableSchema, key, false)
	if err != nil {
		return false, err
	}
	tx.reads.AddKey(t.tab.Number, encoded)
	if tx.wrote(t, encoded) {
		cells, err := tx.row(t, &v, encoded)
		return cells != nil, err
	}
	found := false
	if v.Clock() < 0 {
		found, err = v.Has(encoded)
	} else {
		var until mvcc.Timestamp
		_, until, found, err = v.GetUntil(encoded, nil, nil)
		tx.until = min(tx.until, until)
	}
	if err != nil {
		return false, fmt.Errorf("oribi: %w", err)
	}
	return found, nil
}

// Has reports whether there is a row with a key, as Tx.Has does.
func (t TxOf[T]) Has(key any) (bool, error) { return t.tx.Has(t.table.Table, key) }
