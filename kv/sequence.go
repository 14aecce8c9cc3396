package kv

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/schema"
)

// sequencesName is the name of the table that has the sequences of all buckets. It is created by the first
// NextSequence in a store.
const sequencesName = "kv.sequences"

// sequences are the columns of the table: the ID of a bucket's table, the name that the bucket had at the
// last lease, and the highest number that is leased.
var sequences = mustSchema([]schema.Column{
	{Name: "table", Type: schema.String, Key: true},
	{Name: "bucket", Type: schema.String},
	{Name: "last", Type: schema.Uint64},
})

// maxLease is the largest number of numbers that are leased at a time.
const maxLease = 1024

// sequence is the lease of a bucket: the numbers after last, up to end, may be given out.
type sequence struct {
	mu        sync.Mutex
	last, end uint64
	lease     uint64 // the size of the last lease
}

// NextSequence returns the next number of the bucket's sequence, which begins with 1. No number is ever
// returned twice, not by other goroutines, after a kill, or after a power failure. The numbers of one DB
// ascend. The sequence stays with the bucket when it is renamed, and ends with DeleteBucket.
//
// Numbers are leased in advance, durably, in a commit of its own: one number first, then twice as many each
// time, up to 1024. So most calls write nothing, and when the store is closed or the process dies, at most
// as many numbers are skipped as were used since Open. In a transaction, too, NextSequence conflicts with
// nothing, and a transaction that is rolled back leaves a gap.
//
// The leases of all buckets are in the table kv.sequences. Errors: ErrBucketNotFound if the bucket was
// deleted; ErrNotBucket if there is another table of that name; the errors of Store.Update.
func (b *Bucket) NextSequence(ctx context.Context) (uint64, error) {
	kept, _ := b.db.sequences.LoadOrStore(b.t, &sequence{})
	s := kept.(*sequence)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.last == s.end {
		if err := b.lease(ctx, s); err != nil {
			return 0, fmt.Errorf("kv: sequence of bucket %q: %w", b.Name(), err)
		}
	}
	s.last++
	return s.last, nil
}

// NextSequence returns the next number of the bucket's sequence, as Bucket.NextSequence does. Errors:
// ErrTxNotWritable; the errors of that.
func (b TxBucket) NextSequence() (uint64, error) {
	if err := b.writable(); err != nil {
		return 0, err
	}
	bucket := Bucket{b.tx.db, b.t}
	return bucket.NextSequence(b.tx.ctx)
}

// lease leases the next numbers.
func (b *Bucket) lease(ctx context.Context, s *sequence) error {
	if t, err := b.db.store.Table(b.Name()); err != nil {
		return err
	} else if t != b.t {
		return ErrBucketNotFound // it was deleted, and another one has its name
	}
	t, err := b.db.sequenceTable()
	if err != nil {
		return err
	}
	n, last := min(max(2*s.lease, 1), maxLease), uint64(0)
	err = b.db.store.Update(ctx, func(tx *oribi.Tx) error {
		var err error
		if last, err = b.leased(tx, t); err != nil {
			return err
		}
		if last > math.MaxUint64-n {
			return errors.New("all numbers are used up")
		}
		return tx.Row(oribi.OpUpsert, t, oribi.Row{"table": b.t.Properties().ID, "bucket": b.Name(), "last": last + n})
	})
	if err == nil {
		s.last, s.end, s.lease = last, last+n, n
	}
	return err
}

// leased returns the highest number that was leased to the bucket.
//
// If the bucket's table was dropped without DeleteBucket and made again, as by an import, it has another ID.
// Its old row then has the bucket's name, and the ID of no table.
func (b *Bucket) leased(tx *oribi.Tx, t *oribi.Table) (last uint64, err error) {
	row, err := tx.Get(t, b.t.Properties().ID)
	if err == nil {
		return row["last"].(uint64), nil
	}
	if !errors.Is(err, ErrNotFound) {
		return 0, err
	}
	tables := map[any]bool{}
	for _, t := range b.db.store.Tables() {
		tables[t.Properties().ID] = true
	}
	for row, err := range tx.Scan(t, oribi.Where(oribi.Eq("bucket", b.Name()))).Rows() {
		if err != nil {
			return 0, err
		}
		if !tables[row["table"]] {
			last = max(last, row["last"].(uint64))
		}
	}
	return last, nil
}

// sequenceTable returns the table of the sequences, which it creates when it is missing.
func (db *DB) sequenceTable() (*oribi.Table, error) {
	t, err := db.store.Table(sequencesName)
	if errors.Is(err, ErrBucketNotFound) {
		t, err = db.store.CreateTable(sequencesName, sequences, oribi.Comment("the sequences of buckets, see kv.Bucket.NextSequence"))
		if errors.Is(err, ErrBucketExists) {
			t, err = db.store.Table(sequencesName) // another goroutine has created it
		}
	}
	if err == nil && !hasColumns(t, sequences) {
		err = notBucket(t)
	}
	return t, err
}

// endSequences removes the sequences of tables that are dropped, by their IDs. A sequence that stays, since
// the store is being closed, is only a row too many.
func (db *DB) endSequences(ids ...any) {
	t, err := db.store.Table(sequencesName)
	if err != nil || !hasColumns(t, sequences) {
		return
	}
	b := db.store.NewBatch()
	for _, id := range ids {
		b.DeleteIgnore(t, oribi.Row{"table": id})
	}
	b.Commit(context.Background(), oribi.NoSync)
}
