package kv

import (
	"errors"
	"fmt"
	"sync"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/schema"
)

// Limits of keys and values, in bytes.
const (
	MaxKeyBytes   = schema.MaxKeyBytes // 16 KiB
	MaxValueBytes = 4 << 20
)

// DB is the buckets of a store. It is safe for concurrent use.
type DB struct {
	store   *oribi.Store
	owned   bool      // Close closes the store
	batches sync.Pool // empty *oribi.Batch, for single writes

	sequences sync.Map // *oribi.Table → *sequence
}

// Open opens the store in dir, or creates one, as oribi.Open does. If o leaves CellLimit open,
// values may have up to MaxValueBytes. Errors: the errors of oribi.Open.
func Open(dir string, o *oribi.Options) (*DB, error) {
	var filled oribi.Options
	if o != nil {
		filled = *o
	}
	if filled.CellLimit == 0 {
		filled.CellLimit = MaxValueBytes
	}
	store, err := oribi.Open(dir, &filled)
	if err != nil {
		return nil, err
	}
	return &DB{store: store, owned: true}, nil
}

// In returns the buckets of an open store.
func In(store *oribi.Store) *DB { return &DB{store: store} }

// Store returns the store with the buckets.
func (db *DB) Store() *oribi.Store { return db.store }

// Close closes the store if Open has opened it, as Store.Close does. The store of In stays open.
func (db *DB) Close() error {
	if !db.owned {
		return nil
	}
	return db.store.Close()
}

// valueBlockBytes is the size of a cblock of values. A Get beyond the cache reads one, a scan reads
// several at once: with cblocks of 8 KiB instead of 32, reads of single values of 1 KiB take half
// the time, and the files 1 % more.
const valueBlockBytes = 8 << 10

// Columns returns the columns of a bucket's table.
func Columns() *schema.Schema { return columns }

var columns = mustSchema([]schema.Column{
	{Name: "key", Type: schema.Binary, Key: true},
	{Name: "value", Type: schema.Binary, BlockBytes: valueBlockBytes},
	{Name: "expires", Type: schema.Timestamp, Nullable: true},
})

func mustSchema(columns []schema.Column) *schema.Schema {
	s, err := schema.New(columns)
	if err != nil {
		panic(err) // unreachable: the schema is valid
	}
	return s
}

// The columns of a bucket's table, by index.
const (
	keyColumn = iota
	valueColumn
	expiresColumn
	columnCount
)

// isBucket reports whether a table has the columns of a bucket.
func isBucket(t *oribi.Table) bool { return hasColumns(t, columns) }

// hasColumns reports whether a table has columns like others. How they are stored does not matter.
func hasColumns(t *oribi.Table, like *schema.Schema) bool {
	s := t.Schema()
	if s.Keys != like.Keys || len(s.Columns) != len(like.Columns) {
		return false
	}
	for i, want := range like.Columns {
		c := &s.Columns[i]
		if c.Name != want.Name || c.Type != want.Type || c.Nullable != want.Nullable || c.Immutable {
			return false
		}
	}
	return true
}

// Bucket returns a bucket. Errors: ErrBucketNotFound; ErrNotBucket if another table has the name;
// ErrClosed.
func (db *DB) Bucket(name string) (*Bucket, error) {
	t, err := db.store.Table(name)
	if errors.Is(err, ErrBucketNotFound) {
		return nil, db.noBucket(name, err)
	}
	if err != nil {
		return nil, err
	}
	if !isBucket(t) {
		return nil, notBucket(t)
	}
	return &Bucket{db, t}, nil
}

// CreateBucket creates a bucket, durably. Options are options of tables, such as oribi.History. The
// creation is not part of any transaction.
//
// Errors: ErrBucketExists, also if another table has the name; the errors of Store.CreateTable,
// such as ErrSchema for an empty name.
func (db *DB) CreateBucket(name string, opts ...oribi.TableOption) (*Bucket, error) {
	if err := schema.CheckName(name); err != nil {
		return nil, fmt.Errorf("kv: create bucket %q: %w", name, err)
	}
	t, err := db.store.CreateTable(name, columns, opts...)
	if errors.Is(err, ErrBucketExists) {
		return nil, &bucketError{fmt.Sprintf("kv: create bucket %q: exists already", name), err}
	}
	if err != nil {
		return nil, err
	}
	return &Bucket{db, t}, nil
}

// CreateBuckets creates buckets, durably: all or none, in one metadata commit, so that hundreds of buckets
// take little longer than one. The result has them in the order of the names. Errors: as for
// CreateBucket; ErrBucketExists also for a name that is given twice.
func (db *DB) CreateBuckets(names []string, opts ...oribi.TableOption) ([]*Bucket, error) {
	tables := make([]oribi.NewTable, len(names))
	for i, name := range names {
		tables[i] = oribi.NewTable{Name: name, Columns: columns, Options: opts}
	}
	made, err := db.store.CreateTables(tables...)
	if err != nil {
		return nil, fmt.Errorf("kv: create buckets: %w", err)
	}
	buckets := make([]*Bucket, len(made))
	for i, t := range made {
		buckets[i] = &Bucket{db, t}
	}
	return buckets, nil
}

// CreateBucketIfNotExists returns the bucket with the given name. If it does not exist, it is
// created as by CreateBucket. A bucket that exists keeps its settings. Errors: ErrNotBucket if
// another table has the name; the errors of Store.CreateTable.
func (db *DB) CreateBucketIfNotExists(name string, opts ...oribi.TableOption) (*Bucket, error) {
	b, err := db.Bucket(name)
	if !errors.Is(err, ErrBucketNotFound) {
		return b, err
	}
	b, err = db.CreateBucket(name, opts...)
	if errors.Is(err, ErrBucketExists) {
		return db.Bucket(name) // another goroutine has created it
	}
	return b, err
}

// DeleteBucket removes a bucket with all its keys and their history, durably, as Store.DropTable
// does. Errors: the errors of Bucket and Store.DropTable.
func (db *DB) DeleteBucket(name string) error {
	b, err := db.Bucket(name)
	if err != nil {
		return err
	}
	id := b.t.Properties().ID
	if err := db.store.DropTable(name); err != nil {
		return err
	}
	db.endSequences(id)
	return nil
}

// DeleteBuckets removes buckets as DeleteBucket does: all or none, in one metadata commit. Errors: as for
// DeleteBucket; ErrBucketNotFound also for a name that is given twice.
func (db *DB) DeleteBuckets(names ...string) error {
	var ids []any
	for _, name := range names {
		b, err := db.Bucket(name)
		if err != nil {
			return err
		}
		ids = append(ids, b.t.Properties().ID)
	}
	if err := db.store.DropTables(names...); err != nil {
		return fmt.Errorf("kv: delete buckets: %w", err)
	}
	db.endSequences(ids...)
	return nil
}

// Buckets returns all buckets, ordered by name. Other tables of the store are not among them.
func (db *DB) Buckets() []*Bucket {
	var buckets []*Bucket
	for _, t := range db.store.Tables() {
		if isBucket(t) {
			buckets = append(buckets, &Bucket{db, t})
		}
	}
	return buckets
}
