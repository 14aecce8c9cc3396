// Package oribi is an embedded tablet storage engine: typed tables with a primary key, stored by
// column in one directory, with a history that can be read at any time. There is no server; a Store
// is opened by one process at a time.
//
// # Use
//
//	store, err := oribi.Open("files.oribi", nil)         // makes the store if nothing is there
//	table, err := store.CreateTable("files", columns)    // columns: schema.New or SchemaOf
//	b := store.NewBatch()
//	b.Upsert(table, oribi.Row{"path": "a.txt", "size": 10})
//	ts, err := b.Commit(ctx)                             // all or nothing, at one timestamp, durable
//	row, err := table.Get(ctx, "a.txt", oribi.AsOf(ts))  // as it was then
//	for row, err := range table.Scan(ctx).Rows() { … }   // in key order
//	err = store.Close()
//
// The examples beside this page run. Three faces lead to the same rows: Row, a map, for small
// programs; TableOf, structs with tags, for real ones; Batch.Vectors, Batch.Cells and Scan.Batches,
// whole columns and bare cells, for bulk work. Table.Ingest takes rows that come in key order, more
// than memory holds, straight to files: all of them at one timestamp or none.
//
// Of one row Table.History tells all versions, of two timestamps Table.Diff the rows that differ. A
// Snapshot holds a state for as long as it is open, Table.Alter changes columns and settings while
// the table is used, Batch.If makes a write batch depend on a row.
//
// # What holds
//
//   - A write batch is carried out whole or not at all, over tables too, and has one timestamp.
//     Timestamps rise with the order of the batches, over reopenings too, whatever the machine's
//     clock does.
//   - When Commit returns, the batch is visible, and durable unless NoSync was given. NoSync
//     survives a kill of the process, not a power cut. Batches become visible in the order of their
//     timestamps, so a snapshot is one number.
//   - AsOf(ts) sees the batch that got ts and all before it, and gives the same answer each time.
//     Below the history that the table keeps it is ErrTooOld, never a wrong answer. A Snapshot
//     keeps what it holds readable until it is closed.
//   - Bytes on disk lie under checksums, which are checked when they are read. Damage is ErrCorrupt
//     and names the place.
//   - When a write to the log, to the metadata or to a block fails, the store is read-only from
//     then on: ErrPoisoned. Reads go on. A full disk, found before anything was changed, is
//     ErrNoSpace, and the call may be tried again. 16 MiB of the disk are kept free: with less,
//     write batches that add rows get ErrNoSpace, while deletes, drops and compactions still work.
//
// # Concurrency
//
// Store, Table and TableOf are safe for concurrent use. A Batch is for one goroutine at a time, as
// is what Scan returns. A scan sees one snapshot from its first step to its last; flushes and
// compactions meanwhile do not disturb it. Readers are never held. A table's writers are held by
// flushes and compactions while these are committed, by an ingest at its very end, by an Alter
// while it writes the last of memory. When memory is at its limit, writers wait for the flush of
// their table. Close waits for running calls; a scan that is between two steps gets ErrClosed at
// its next.
//
// Options.Listener is called when the locks of the event's table are free again: it may do with the
// store what it likes, save close it.
//
// # How long slices live
//
// What is put into a Batch is copied at once: the caller's rows, cells and vectors are free when
// the call returns. A batch.RecordBatch that Scan.Batches yields holds until the next step, with its
// vectors; the byte strings in it may be kept. Cells of GetCells and GetManyCells may be kept. None
// of these may be changed. Rows and structs belong to the caller.
//
// # On disk
//
//	DIR/LOCK        locked while the store is open: shared by readers, or by one writer alone
//	DIR/INSTANCE    identity and format number; locked in the same way
//	DIR/ANCHOR      which state of the metadata is the newest: package blockmanager
//	DIR/wal/        the log: package internal/wal
//	DIR/meta/       metadata: which blocks there are and what they mean
//	DIR/data/       containers of blocks; a block is one file of Apache Kudu's formats: packages cfile, bloom, delta
//
// Do not remove LOCK: it is no leftover, and an open store needs it. The locks are the operating
// system's and end with the process. A writer whose LOCK was removed or replaced refuses its next
// metadata commit with ErrPoisoned; no second writer gets in, since INSTANCE is locked too. A copy
// of a store may lack LOCK: a reader does without it, a writer creates it.
//
// A write goes to the log and then into memory; an ingest goes to rowsets and leaves only its
// timestamp in the log. Flush turns what memory holds of a table into rowsets, compaction turns
// rowsets into others that do not overlap; each becomes real by one metadata commit. Open reads the
// metadata and puts what the log holds beyond it back into memory.
//
// # Lock order
//
// Locks are taken in this order, and none while one further down is held:
//
//	tablet work          one flush or compaction of a table, or end of an ingest, at a time
//	tablet gate          shared from resolve to apply, exclusive when a flush or merging compaction begins, in its commit and that of a delta
//	                     compaction, in Alter, drop and the end of an ingest; of several tables in the order of their numbers
//	tablet row stripes   in rising order; of several tables in the order of their numbers
//	Store.metaMu         one metadata commit at a time, from the finding of log_start to publication in memory
//	Store.tablesMu       the map of tables
//	tablet mu            the pointer to a table's layout; no I/O under it
//	Store.appendMu       timestamp, LSN, log frame and place in the order of publication
//
// The locks of the log, the block manager, the publisher, the holds of history, the clock and the
// cache lie below all of these. Calls are counted in and out of the store, which is no lock: Close
// waits for those inside. A write batch waits for its turn to be published with no lock held. A
// flush waits for that of others with work held, an Alter and an ingest with the gate too: no write
// batch that has entered the log takes one of these, and an ingest that has holds its own. They
// still have to take metaMu: nobody waits for publication who holds that. Nobody takes a gate who
// holds metaMu: a batch that has one table's gate and waits for another's, held by somebody who
// waits for metaMu, would close a circle.
package oribi
