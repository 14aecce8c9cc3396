package kv

import (
	"context"
	"iter"
	"slices"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/mvcc"
)

// Tx is a transaction: reads of one state of all buckets, and writes that are committed as one. It
// must be used by one goroutine at a time.
//
// A transaction that writes reads the state of its beginning with its own writes applied. It is
// serializable, and holds no locks: Commit fails with ErrConflict if another writer has changed a
// key that the transaction has read, or a key in a range that it has scanned. See oribi.Tx.
type Tx struct {
	db       *DB
	ctx      context.Context
	rows     *oribi.Tx        // nil: the transaction only reads
	snapshot *oribi.Snapshot  // of a transaction that only reads
	at       oribi.ReadOption // of snapshot
	cursors  []*Cursor        // open ones of a transaction that only reads
	ended    bool             // of a transaction that only reads
}

// Update runs fn in a transaction and commits it. If the commit conflicts, Update runs fn again, in
// a new transaction, until ctx is canceled; after three conflicts, with other writers of the buckets
// that it reads held off, as Store.Update says. fn must not have effects that a second run would
// repeat. If fn returns an error or panics, nothing is changed.
//
// Errors: the error that fn returns; the errors of Begin and Tx.Commit, except ErrConflict.
func (db *DB) Update(ctx context.Context, fn func(*Tx) error, opts ...oribi.UpdateOption) error {
	return db.store.Update(ctx, func(rows *oribi.Tx) error { return fn(&Tx{db: db, ctx: ctx, rows: rows}) }, opts...)
}

// Batch is Update, under the name that bbolt has for updates from many goroutines at once. Here the
// commits of concurrent updates share their syncs anyway.
func (db *DB) Batch(ctx context.Context, fn func(*Tx) error, opts ...oribi.UpdateOption) error {
	return db.Update(ctx, fn, opts...)
}

// View runs fn in a transaction that only reads. Errors: the error that fn returns; the errors of
// Begin.
func (db *DB) View(ctx context.Context, fn func(*Tx) error) error {
	tx, err := db.Begin(ctx, false)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	return fn(tx)
}

// ViewAt is View of the state at a timestamp: with all commits up to ts. Errors: the error that fn
// returns; the errors of Store.SnapshotAt.
func (db *DB) ViewAt(ctx context.Context, ts mvcc.Timestamp, fn func(*Tx) error) error {
	snapshot, err := db.store.SnapshotAt(ctx, ts)
	if err != nil {
		return err
	}
	tx := db.reader(ctx, snapshot)
	defer tx.Rollback()
	return fn(tx)
}

// reader returns a transaction that only reads. It closes the snapshot when it ends.
func (db *DB) reader(ctx context.Context, snapshot *oribi.Snapshot) *Tx {
	return &Tx{db: db, ctx: ctx, snapshot: snapshot, at: oribi.At(snapshot)}
}

// Begin starts a transaction, which ends with Commit or Rollback. A transaction that is not
// writable takes no memory for the rows that it reads, and sees one state however long it runs. ctx
// applies to all its reads and to Commit.
//
// Errors: ErrClosed; ctx.Err().
func (db *DB) Begin(ctx context.Context, writable bool) (*Tx, error) {
	if writable {
		rows, err := db.store.Begin(ctx)
		if err != nil {
			return nil, err
		}
		return &Tx{db: db, ctx: ctx, rows: rows}, nil
	}
	snapshot, err := db.store.Snapshot(ctx)
	if err != nil {
		return nil, err
	}
	return db.reader(ctx, snapshot), nil
}

// Writable reports whether the transaction can write.
func (tx *Tx) Writable() bool { return tx.rows != nil }

// Timestamp returns the timestamp of the state that the transaction reads.
func (tx *Tx) Timestamp() mvcc.Timestamp {
	if tx.rows == nil {
		return tx.snapshot.Timestamp()
	}
	return tx.rows.Timestamp()
}

// Tables returns the transaction below, for rows of other tables of the store, which are read and
// committed with the rows of buckets; nil if the transaction only reads.
func (tx *Tx) Tables() *oribi.Tx { return tx.rows }

// Commit ends the transaction and makes its writes visible at one timestamp, which it returns.
// Without oribi.NoSync, they are durable then. A transaction that only reads ends; its timestamp is
// the timestamp of the state that it has read. Errors: ErrConflict; ErrTxEnded; the errors of
// oribi.Tx.Commit.
func (tx *Tx) Commit(opts ...oribi.CommitOption) (mvcc.Timestamp, error) {
	if tx.rows != nil {
		return tx.rows.Commit(opts...)
	}
	if tx.ended {
		return 0, errEnded
	}
	tx.Rollback()
	return tx.Timestamp(), nil
}

// Rollback ends the transaction without an effect. After Commit or Rollback it does nothing.
func (tx *Tx) Rollback() {
	if tx.rows != nil {
		tx.rows.Rollback()
		return
	}
	tx.ended = true
	for _, c := range tx.cursors {
		c.rows.Close()
	}
	tx.cursors = nil
	tx.snapshot.Close()
}

// Savepoint returns a savepoint: RollbackTo undoes the writes that come after it. Errors:
// ErrTxNotWritable; the errors of oribi.Tx.Savepoint.
func (tx *Tx) Savepoint() (*oribi.Savepoint, error) {
	if tx.rows == nil {
		return nil, errNotWritable
	}
	return tx.rows.Savepoint()
}

// RollbackTo undoes all writes since a savepoint, as oribi.Tx.RollbackTo does. Errors:
// ErrTxNotWritable; the errors of that.
func (tx *Tx) RollbackTo(sp *oribi.Savepoint) error {
	if tx.rows == nil {
		return errNotWritable
	}
	return tx.rows.RollbackTo(sp)
}

// TxBucket is a bucket in a transaction. It is valid until the transaction ends.
type TxBucket struct {
	tx  *Tx
	t   *oribi.Table
	err error // of Tx.Bucket
}

// Bucket returns a bucket as the transaction sees it. If there is no such bucket, all methods of
// the result return the error: ErrBucketNotFound or ErrNotBucket.
func (tx *Tx) Bucket(name string) TxBucket {
	b, err := tx.db.Bucket(name)
	if err != nil {
		return TxBucket{tx: tx, err: err}
	}
	return TxBucket{tx: tx, t: b.t}
}

// ready returns an error if nothing can be read in the bucket.
func (b TxBucket) ready() error {
	if b.err == nil && b.tx.ended {
		return errEnded
	}
	return b.err
}

// writable returns an error if nothing can be written to the bucket.
func (b TxBucket) writable() error {
	if err := b.ready(); err != nil {
		return err
	}
	if b.tx.rows == nil {
		return errNotWritable
	}
	return nil
}

// Get returns the value of a key. It may be kept and must not be modified. Errors: ErrNotFound if
// there is no such key; ErrTxEnded; the errors of oribi.Tx.Get.
func (b TxBucket) Get(key []byte) ([]byte, error) {
	if err := b.ready(); err != nil {
		return nil, err
	}
	if b.tx.rows == nil {
		return get(b.tx.ctx, b.t, key, b.tx.at)
	}
	_, cells, err := b.tx.rows.GetCells(b.t, notNil(key))
	if err != nil {
		return nil, err
	}
	return cells[valueColumn], nil
}

// Has reports whether there is a key. A transaction that writes has then read the key. Errors: the
// errors of Get, except that a missing key is no error.
func (b TxBucket) Has(key []byte) (bool, error) {
	if err := b.ready(); err != nil {
		return false, err
	}
	if b.tx.rows == nil {
		return b.t.Has(b.tx.ctx, notNil(key), b.tx.at)
	}
	return b.tx.rows.Has(b.t, notNil(key))
}

// Put sets the value of a key. Errors: ErrTxNotWritable; ErrRow for a key or value that is too
// long; the errors of oribi.Tx.Row. The transaction may go on after an error.
func (b TxBucket) Put(key, value []byte) error {
	return b.write(oribi.OpUpsert, [][]byte{notNil(key), notNil(value), nil})
}

// Delete removes a key, if it exists. Errors: the errors of Put.
func (b TxBucket) Delete(key []byte) error {
	return b.write(oribi.OpDeleteIgnore, [][]byte{notNil(key), nil, nil})
}

// DeleteRange removes the keys that are not below from and below to, as oribi.Tx.DeleteRange does; nil is
// no bound. Errors: the errors of that.
func (b TxBucket) DeleteRange(from, to []byte) error {
	if err := b.writable(); err != nil {
		return err
	}
	return b.tx.rows.DeleteRange(b.t, bound(from), bound(to))
}

func (b TxBucket) write(op oribi.Op, cells [][]byte) error {
	if err := b.writable(); err != nil {
		return err
	}
	return b.tx.rows.Cells(op, b.t, cells, nil)
}

// Scan reads keys and their values, in the order of keys. It takes the options of oribi.Tx.Scan
// except Columns: From, To, and Prefix, with a []byte or a string; Desc; Limit; and Where. Writes
// of the transaction that come after the beginning of a scan may or may not appear in it. An error
// comes as the last step. Errors: the errors of oribi.Tx.Scan.
func (b TxBucket) Scan(opts ...oribi.RowsOption) iter.Seq2[Pair, error] {
	sc, err := b.scan(bothParts, opts)
	if err != nil {
		return func(yield func(Pair, error) bool) { yield(Pair{}, err) }
	}
	return pairs(sc)
}

// Keys is like Scan but reads only the keys.
func (b TxBucket) Keys(opts ...oribi.RowsOption) iter.Seq2[[]byte, error] {
	sc, err := b.scan(onlyKey, opts)
	if err != nil {
		return func(yield func([]byte, error) bool) { yield(nil, err) }
	}
	return keys(sc)
}

func (b TxBucket) scan(columns oribi.ColumnsOption, opts []oribi.RowsOption) (*oribi.Scan, error) {
	if err := b.ready(); err != nil {
		return nil, err
	}
	if b.tx.rows != nil {
		return b.tx.rows.Scan(b.t, append(slices.Clip(opts), oribi.RowsOption(columns))...), nil
	}
	all := make([]oribi.ScanOption, 0, len(opts)+2)
	for _, o := range opts {
		all = append(all, o)
	}
	return b.t.Scan(b.tx.ctx, append(all, columns, b.tx.at)...), nil
}
