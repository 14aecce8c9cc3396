package kv

import (
	"context"
	"iter"
	"slices"
	"time"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/mvcc"
)

// Bucket is an ordered set of keys, each with a value. It is safe for concurrent use.
//
// Its methods work without a transaction: each read sees the newest state, or the state that an
// option such as oribi.AsOf names, and each write is committed when it returns. Tx.Bucket returns
// the bucket in a transaction.
type Bucket struct {
	db *DB
	t  *oribi.Table
}

// Pair is a key and its value. The slices may be kept and must not be modified.
type Pair struct{ Key, Value []byte }

// Name returns the bucket's name.
func (b *Bucket) Name() string { return b.t.Name() }

// Table returns the bucket's table.
func (b *Bucket) Table() *oribi.Table { return b.t }

// The columns that scans choose. The options are made once, since each takes memory.
var (
	onlyKey   = oribi.Columns("key")
	bothParts = oribi.Columns("key", "value")
)

// Get returns the value of a key. It may be kept and must not be modified. Options are oribi.AsOf,
// At, and Latest. Errors: ErrNotFound if there is no such key; the errors of Table.Get.
func (b *Bucket) Get(ctx context.Context, key []byte, opts ...oribi.ReadOption) ([]byte, error) {
	return get(ctx, b.t, key, opts...)
}

// get reads the whole row, since rows are cached and single columns of them are not.
func get(ctx context.Context, t *oribi.Table, key []byte, opts ...oribi.ReadOption) ([]byte, error) {
	var few [columnCount][]byte
	cells, err := t.AppendCells(ctx, few[:0], notNil(key), opts...)
	if err != nil {
		return nil, err
	}
	return cells[valueColumn], nil
}

// Has reports whether there is a key. It does not read the value. Errors: the errors of Table.Has.
func (b *Bucket) Has(ctx context.Context, key []byte, opts ...oribi.ReadOption) (bool, error) {
	return b.t.Has(ctx, notNil(key), opts...)
}

// Count returns the number of keys, or of those that options such as oribi.Prefix select. It reads no
// values. Errors: the errors of Table.Count.
func (b *Bucket) Count(ctx context.Context, opts ...oribi.CountOption) (int64, error) {
	return b.t.Count(ctx, opts...)
}

// Rename renames the bucket, durably. Handles, running reads, and transactions stay valid, and so does the
// history. Errors: ErrBucketExists if another bucket or table has the name; the errors of Table.Rename.
func (b *Bucket) Rename(ctx context.Context, name string) error { return b.t.Rename(ctx, name) }

// Put sets the value of a key. Without oribi.NoSync, it is durable when Put returns. ts is the
// timestamp of the commit: a read with oribi.AsOf(ts) sees the value from then on. Errors: ErrRow
// for a key or value that is too long; the errors of Batch.Commit.
func (b *Bucket) Put(
	ctx context.Context, key, value []byte, opts ...oribi.CommitOption,
) (ts mvcc.Timestamp, err error) {
	return b.write(ctx, oribi.OpUpsert, [][]byte{notNil(key), notNil(value), nil}, nil, opts)
}

// Delete removes a key, if it exists. Durability and ts are as for Put. Errors: the errors of
// Batch.Commit.
func (b *Bucket) Delete(ctx context.Context, key []byte, opts ...oribi.CommitOption) (ts mvcc.Timestamp, err error) {
	return b.write(ctx, oribi.OpDeleteIgnore, [][]byte{notNil(key), nil, nil}, nil, opts)
}

// DeleteRange removes the keys that are not below from and below to, at one timestamp, and returns their
// number; nil is no bound. Unless keys of the bucket expire, it takes about the same time for any number
// of keys. Options are oribi.InPieces, PieceBytes, Confirm, NoSync, and Prefix. Errors: the errors of
// Table.DeleteRange.
func (b *Bucket) DeleteRange(ctx context.Context, from, to []byte, opts ...oribi.BulkOption) (oribi.BulkResult, error) {
	return b.t.DeleteRange(ctx, bound(from), bound(to), opts...)
}

// DeletePrefix removes the keys that begin with prefix, as DeleteRange does. Every key begins with an
// empty prefix.
func (b *Bucket) DeletePrefix(ctx context.Context, prefix []byte, opts ...oribi.BulkOption) (oribi.BulkResult, error) {
	return b.t.DeleteWhere(ctx, append([]oribi.BulkOption{oribi.Prefix(notNil(prefix))}, opts...)...)
}

// bound returns a bound of a key range as oribi.From and To take it.
func bound(key []byte) any {
	if key == nil {
		return nil
	}
	return key
}

// keptBytes is the size of the largest write whose batch is kept for the next one.
const keptBytes = 64 << 10

func (b *Bucket) write(
	ctx context.Context, op oribi.Op, cells [][]byte, set []bool, opts []oribi.CommitOption,
) (mvcc.Timestamp, error) {
	var few [2]oribi.CommitOption
	commit := few[:0]
	for _, o := range opts {
		commit = append(commit, o)
	}
	batch := b.db.batch()
	batch.Cells(op, b.t, cells, set)
	size := batch.Bytes()
	ts, err := batch.Commit(ctx, commit...)
	if size <= keptBytes {
		b.db.keep(batch)
	}
	return ts, err
}

// batch returns an empty write batch.
func (db *DB) batch() *oribi.Batch {
	if batch, ok := db.batches.Get().(*oribi.Batch); ok {
		return batch
	}
	return db.store.NewBatch()
}

// keep keeps a batch for the next write.
func (db *DB) keep(batch *oribi.Batch) {
	batch.Reset()
	db.batches.Put(batch)
}

// Scan reads keys and their values, in the order of keys unless oribi.Desc or AnyOrder is given. It
// takes the options of Table.Scan, of which Columns has no effect: From, To, and Prefix, with a
// []byte or a string; Desc; Limit; AsOf and At; Where, with the columns key and value; and others.
// All rows are of one state: the newest at the first step, whatever is written during the scan.
//
// An error comes as the last step. Errors: the errors of Table.Scan.
func (b *Bucket) Scan(ctx context.Context, opts ...oribi.ScanOption) iter.Seq2[Pair, error] {
	return pairs(b.scan(ctx, bothParts, opts))
}

// Keys is like Scan but reads only the keys.
func (b *Bucket) Keys(ctx context.Context, opts ...oribi.ScanOption) iter.Seq2[[]byte, error] {
	return keys(b.scan(ctx, onlyKey, opts))
}

func (b *Bucket) scan(ctx context.Context, columns oribi.ColumnsOption, opts []oribi.ScanOption) *oribi.Scan {
	return b.t.Scan(ctx, append(slices.Clip(opts), columns)...)
}

// pairs runs a scan of bothParts.
func pairs(sc *oribi.Scan) iter.Seq2[Pair, error] {
	return func(yield func(Pair, error) bool) {
		for cells, err := range sc.Cells() {
			var p Pair
			if err == nil {
				p = Pair{Key: cells[0], Value: cells[1]}
			}
			if !yield(p, err) {
				return
			}
		}
	}
}

// keys runs a scan of onlyKey.
func keys(sc *oribi.Scan) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		for cells, err := range sc.Cells() {
			var key []byte
			if err == nil {
				key = cells[0]
			}
			if !yield(key, err) {
				return
			}
		}
	}
}

// Version is one version of a key: its value from Timestamp on.
type Version struct {
	Timestamp mvcc.Timestamp // of the commit; 0 if the key was there before the history begins
	Deleted   bool           // the key was deleted
	Value     []byte         // nil if it was deleted. May be kept and must not be modified
	Expires   time.Time      // when it expires; the zero Time: never
}

// History reads the versions of a key, newest first, as Table.History does: one for each timestamp
// at which the value or the time of its expiry changed. A key that expires gets no version by that.
//
// An error comes as the only step: ErrNotFound if there is no version; the errors of Table.History.
func (b *Bucket) History(ctx context.Context, key []byte, opts ...oribi.ReadOption) iter.Seq2[Version, error] {
	all := []oribi.GetOption{oribi.Columns("value", "expires")}
	for _, o := range opts {
		all = append(all, o)
	}
	return withoutExpiry(func(yield func(Version, error) bool) {
		for row, err := range b.t.History(ctx, notNil(key), all...) {
			v := Version{Timestamp: row.Timestamp, Deleted: row.Kind == oribi.Deleted}
			if row.Cells != nil {
				v.Value = row.Cells[0]
				if expires, ok := row.Row()["expires"].(time.Time); ok {
					v.Expires = expires
				}
			}
			if !yield(v, err) {
				return
			}
		}
	})
}

// notNil returns a byte string as a cell, which is nil only for NULL.
func notNil(b []byte) []byte {
	if b == nil {
		return []byte{}
	}
	return b
}
