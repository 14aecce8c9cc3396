// Package kv stores keys and values, both byte strings, in buckets of an Oribi store.
//
// A bucket is an ordered set of keys, each with a value. Keys are in the order of their bytes. Values that
// were overwritten, deleted, or have expired stay readable for seven days, and take space until then:
// the option oribi.History of CreateBucket chooses another time, at least a second, or oribi.HistoryForever.
//
//	db, err := kv.Open("sessions.oribi", nil)              // creates the store if it does not exist
//	sessions, err := db.CreateBucketIfNotExists("sessions")
//	ts, err := sessions.Put(ctx, token, data)              // durable
//	data, err = sessions.Get(ctx, token)                   // ErrNotFound if there is no such key
//	for p, err := range sessions.Scan(ctx, oribi.Prefix("user/"), oribi.Desc(), oribi.Limit(10)) { … }
//	err = db.Update(ctx, func(tx *kv.Tx) error {           // serializable; runs again after a conflict
//		b := tx.Bucket("sessions")
//		data, err := b.Get(token)
//		…
//		return b.Put(token, data)
//	})
//	err = db.Close()
//
// Each bucket is a table with three columns: key and value, both binary, and expires, a nullable
// timestamp. It has the name of the bucket. So a store may have buckets next to other tables, one
// transaction or write batch may change both, and all that tables offer is there for buckets:
// history, snapshots, metrics, and the commands. In returns the buckets of an open store, and
// Bucket.Table the table of a bucket.
//
// # Coming from bbolt and Badger
//
// docs/coming-from.md lists all of their calls. Methods have the names that they have there if they mean the same.
//
//	bbolt                             Badger                    here
//	db.Update, View, Begin            db.Update, View, …        the same, with a context
//	db.Batch                          –                         DB.Batch
//	tx.CreateBucket, DeleteBucket     –                         DB.CreateBucket, DB.DeleteBucket; CreateBuckets,
//	                                                            DeleteBuckets for many
//	tx.Bucket(name)                   –                         Tx.Bucket
//	b.Get, Put, Delete                txn.Get, Set, Delete      TxBucket.Get, Put, Delete; without a transaction Bucket.Get, …
//	b.ForEach                         –                         Scan
//	c.Seek, then c.Next               it.Seek, then it.Next     Cursor; Scan with oribi.From, To, Prefix
//	c.Last, then c.Prev               IteratorOptions.Reverse   Cursor; Scan with oribi.Desc
//	c.Delete                          txn.Delete                TxBucket.Delete of Cursor.Key, also during a Scan
//	b.NextSequence                    GetSequence               NextSequence
//	b.Stats().KeyN                    –                         Bucket.Count
//	–                                 db.DropPrefix             Bucket.DeletePrefix, DeleteRange; TxBucket.DeleteRange
//	–                                 PrefetchValues = false    Keys
//	–                                 db.NewWriteBatch          DB.NewBatch
//	–                                 db.NewStreamWriter        Bucket.Load
//	–                                 GetMergeOperator          Bucket.Add, Batch.Add, TxBucket.Add, for counters
//	–                                 Entry.WithTTL             PutTTL, PutExpires, Touch
//	–                                 item.ExpiresAt            ExpiresAt
//	–                                 AllVersions               Bucket.History
//	–                                 NewTransactionAt(ts)      DB.ViewAt; oribi.AsOf for a single read.
//	                                                            For a time: mvcc.EndOf(t), oribi.AsOfTime(t)
//	NoSync                            SyncWrites = false        oribi.NoSync, for each commit
//
// These differ:
//
//   - Get returns ErrNotFound for a key that does not exist, as in Badger. A value that is empty is
//     not nil.
//   - What Get and scans return may be kept after the transaction. It must not be modified.
//   - Writers do not wait for one another. A transaction that has read what another one has changed
//     meanwhile is refused with ErrConflict, as in Badger. Update then runs its function again; after
//     three conflicts, other writers wait for it.
//   - The empty key is a key like any other.
//   - Buckets are not nested, and no transaction creates or deletes them.
//
// # Limits
//
// A key has up to MaxKeyBytes, a value up to MaxValueBytes, or as much as Options.CellLimit says.
// Open sets CellLimit to MaxValueBytes if it is 0. The store of In keeps its own limit, which is
// 64 KiB by default. Names of buckets are names of tables: 1 to 256 bytes of UTF-8.
//
// # Concurrency and lifetime of slices
//
// DB and Bucket are safe for concurrent use. A Tx, with its buckets, and a Batch are used by one
// goroutine at a time. The caller may reuse keys and values that it has passed when the call
// returns. Returned slices may be kept and must not be modified. A slice that is kept may keep the
// memory of its neighbors alive, some ten KiB: copy what is kept for long.
package kv
