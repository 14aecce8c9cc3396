// Package mvcc orders write batches in time and determines what readers see.
//
// It has three parts: Timestamp; Clock, which assigns timestamps; and Publisher, which makes write
// batches visible strictly in the order in which they entered the log:
//
//	ts, err := clock.Now()           // in the critical section that also gives the LSN
//	op := publisher.Start(lsn, ts)   // still in it
//	…                                // apply, and make durable if asked
//	op.Ready()                       // visible once every batch before it is ready too
//	op.Applied()                     // or: ready when publisher.Durable, which the log calls, has come to its LSN
//
//	snap := mvcc.AsOf(publisher.Visible()) // a reader: sees the changes for whose timestamps snap.Sees is true
//
// Everything here is safe for concurrent use, except that Start must be called in the order of the
// log.
//
// Source: tablet spec §4. Simpler than Kudu: batches are published in order, so a snapshot has no
// set of exceptions ("applied out of order") and no separate clean time. The cost: a batch that
// need not be durable waits for earlier batches that must be.
package mvcc
