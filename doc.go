// Package oribi is an embedded tablet storage engine: typed tables with a primary key, stored by
// column in one directory, with a history that can be read at any past time. There is no server.
// One process at a time opens a store for writing.
//
// # Use
//
//	store, err := oribi.Open("files.oribi", nil)        // creates the store if the directory is empty
//	table, err := store.CreateTable("files", columns)   // columns: schema.New or SchemaOf
//	b := store.NewBatch()
//	b.Upsert(table, oribi.Row{"path": "a.txt", "size": 10})
//	ts, err := b.Commit(ctx)                            // all or nothing, at one timestamp, durable
//	row, err := table.Get(ctx, "a.txt", oribi.AsOf(ts)) // the row as of ts
//	for row, err := range table.Scan(ctx, oribi.Where(oribi.Gt("size", 5))).Rows() { … }
//	err = store.Close()
//
// There are three ways to write and read rows:
//
//   - Row, a map, suits small programs.
//   - TableOf binds a table to a struct type. OpenTable finds or creates the table; GetAs, ScanAs
//     and Patch use structs that have only some of the columns.
//   - Batch.Vectors, Batch.Cells, and Scan.Batches pass whole columns and encoded cells, for bulk
//     work. Table.Ingest writes rows that arrive in key order directly to files, any number of
//     them at one timestamp.
//
// Where selects rows with predicates such as Eq, Between, In, HasPrefix, And, Or, and Not. A
// predicate names columns, not a table, and is bound when the read begins. UpdateWhere,
// DeleteWhere, DeleteRange, Truncate, and RestoreTo change many rows in one call.
//
// Table.Aggregate computes counts, exact sums, sums of products, averages, minima, and maxima, for
// all rows or, with GroupBy, for groups of them.
//
// Table.History returns all versions of a row, and Table.Diff the rows that differ between two
// timestamps. A Snapshot keeps a state readable while it is open. Table.Alter changes columns and
// settings while the table is in use. Batch.If makes a write batch depend on the state of a row.
//
// # Guarantees
//
//   - A write batch is atomic, also across tables, and has one timestamp. Timestamps rise in the
//     order of the batches, also across reopenings, whatever the machine's clock does.
//   - When Commit returns, the batch is visible. It is also durable unless NoSync was given: a
//     NoSync batch survives a kill of the process, but not a power failure. Batches become visible
//     in the order of their timestamps, so a snapshot is one number.
//   - A Commit that fails changes nothing, and the batch keeps its rows for another attempt. A
//     second Commit of a committed batch is ErrCommitted.
//   - AsOf(ts) sees the batch with timestamp ts and every batch before it, and returns the same
//     answer each time. Below the table's history it is ErrTooOld, never a wrong answer. Ahead of
//     both the clock and the newest batch it is ErrFuture.
//   - Every byte on disk is covered by a checksum, which is verified when the byte is read. Damage
//     is ErrCorrupt, with the position.
//   - When a write to the log, the metadata, or a block fails, the store becomes read-only, and
//     writes return ErrPoisoned. Reads continue. A full disk that is detected before anything has
//     changed is ErrNoSpace, and the call can be repeated. The store keeps 16 MiB of the disk free:
//     with less, write batches that add rows return ErrNoSpace, while deletes, drops, and
//     compactions still work.
//
// # Errors
//
// Errors begin with "oribi: " and name the table, the column, or the key. Test for the sentinels
// with errors.Is: ErrNotFound is a missing row, ErrNoTable a missing table, ErrNoColumn a missing
// column. A row that a write batch refuses is a *RowError, for errors.As.
//
// # Concurrency
//
// Store, Table, and TableOf are safe for concurrent use. A Batch is used by one goroutine at a
// time, and so is the result of a Scan. A scan sees one snapshot from its first row to its last,
// whatever is flushed or compacted in between. Readers never wait for writers.
//
// A table's writers wait for the commit of a delta compaction of the table, for the end of an
// ingest, for an Alter while it writes the last of the memory, and, when memory is at its limit,
// for the next flush. Close waits for running calls; an open scan returns ErrClosed at its next
// step.
//
// # Watching a store
//
// Store.Metrics returns what the store has done and what it uses, and Metrics.WriteTo writes it as
// Prometheus text. Options.Listener is called when flushes, compactions and ingests begin and end,
// and when writers wait for memory; it may use the store, within the limits that are documented
// there. compaction.NewEventLog is a listener that writes a log.
//
// # Lifetime of slices
//
// A Batch copies what it is given: the caller may reuse rows, cells, and vectors when the call
// returns. A batch.RecordBatch from Scan.Batches, with its vectors, is valid until the next step;
// the byte strings in it may be kept. Cells of GetCells and GetManyCells may be kept. None of these
// may be modified. Rows and structs belong to the caller.
//
// # On disk
//
//	DIR/LOCK        locked while the store is open: shared by readers, or exclusive to one writer;
//	                followers (Options.Follow) do not hold it. Its text names the writer
//	DIR/INSTANCE    identity and format number; locked in the same way
//	DIR/ANCHOR      the newest state of the metadata; see package blockmanager
//	DIR/wal/        the log
//	DIR/meta/       metadata: which blocks exist and what they mean
//	DIR/data/       containers of blocks; a block is one file in a format of Apache Kudu
//	DIR/readers/    what followers read: the writer keeps it for them; gone when there are none
//
// Do not remove LOCK, even when no process runs: an open store needs it. The locks are the
// operating system's and end with the process. A writer whose LOCK was removed or replaced refuses
// its next metadata commit with ErrPoisoned. No second writer can open the store in that state,
// since INSTANCE is locked too. A copy of a store may lack LOCK: a reader does without it, and a
// writer creates it.
//
// A write is appended to the log and then applied in memory. An ingest writes rowsets and leaves
// only its timestamp in the log. A flush writes the rows in memory to rowsets, and a compaction
// rewrites rowsets so that they do not overlap; each takes effect with one metadata commit. Open
// reads the metadata and replays the log from there.
//
// # Lock order
//
// Locks are acquired in this order, top to bottom:
//
//	store.Background.mu  what the scheduler knows; of tablet work it only looks whether it is free
//	tablet work          one flush or compaction of a table, or end of an ingest, at a time
//	store.Core.merges    one merge at a time that finds out how much memory it will take
//	tablet gate          shared from resolve to apply; exclusive at the cutover point of a flush or
//	                     merge and after its metadata commit, in the commit of a delta compaction, in
//	                     Alter and Drop, and at the end of an ingest; for several tables in the order
//	                     of their numbers
//	tablet row locks     those of a batch at once; for several tables in the order of their numbers
//	store.Gate           from the append of an ingest, or of an Alter of an expiry rule, to its
//	                     publication; excludes the beginning of an Image
//	store.Follower.mu    one Refresh of a follower at a time, and the beginning of its Image
//	store.Core.metaMu    one metadata commit at a time, from computing log_start on
//	store.Core.tablesMu  the map of tables
//	tablet mu            the pointer to a table's state; no I/O while it is held
//	store.Timeline.mu    timestamp, LSN, log frame, and position in the order of publication
//
// The locks of the log, the block manager, the publisher, the pins of history, the clock, and the
// cache are below all of these. Calls into the store are counted, which is not a lock: Close waits
// until the count is zero.
//
// Waiting for publication counts as a lock as well. A write batch waits for its own publication
// with no lock held. A flush waits for that of other batches while it holds work, and an Alter and
// an ingest while they hold work and gate. This cannot deadlock: a batch that is in the log
// acquires neither of these, and an ingest that is in the log holds them itself. Both may still
// have to acquire metaMu, so a goroutine that holds metaMu never waits for publication. For the
// same reason it never acquires a gate: a batch that holds one table's gate and waits for
// another's, held by a goroutine that waits for metaMu, would complete a cycle.
package oribi
