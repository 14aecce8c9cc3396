// Package wal is the log: numbered records in segments, appended, synced, replayed, dropped.
//
// A record is bytes and an LSN, 1 for the first, without gaps. The log does not know what the bytes
// mean. To open a store, call Replay, which writes nothing; a writer then calls Repair on the
// result and gets a Log:
//
//	tail, err := wal.Replay(o, logStart, func(lsn lsn.LSN, payload []byte) error { … })
//	log, err := tail.Repair(nil)
//	lsn, err := log.Append(payload) // survives a kill of the process; AppendLater not before the next Sync or Append
//	err = log.Sync(lsn)             // survives a power cut
//	err = log.Release(before)       // forgets
//
// # On disk
//
// A directory contains segments 000000000001.wal, 000000000002.wal, …, each a header, frames, and a
// footer once it is sealed; only the newest may lack the footer. All begin at multiples of 8.
//
//	segment = header { frame } [ footer ] [ zeros ]
//	frame   = frame header, payload, zeros up to a multiple of 8
//	record  = one frame, or several in a row with the same LSN and parts 0, 1, 2, …; it counts only with its last
//
// The byte tables are above headerLen, frameLen and footerLen. A record is in one segment. Only the
// newest segment ends in zeros, while its writer has it open and syncs record by record (see
// ahead); Close cuts them off. A segment contains the number of its predecessor, its length and the
// hash over its headers, so a missing, swapped or foreign segment is detected.
//
// # Order of writes, and what a crash leaves
//
//  1. Frames are written, then synced. A crash before leaves any part of what was not synced: a
//     torn tail, which is cut.
//  2. At the end of a segment, and at Close, the footer is written, once all frames are synced, and
//     synced too. A crash before leaves any part of the footer after complete frames: a torn tail
//     without a record, with or without the zeros that are cut off between footer and sync. If the
//     segment has room when the log is opened again, the next frame takes the footer's place.
//  3. When there is another record to write, the next file is created, its header written and
//     synced, the directory synced. A crash before leaves a file without a good header, and no
//     frame can be in it: it is removed.
//  4. Only now the next file takes its first frame.
//
// Each frame contains the highest LSN that was durable when it was written; a footer means that all
// records before it are durable. So the first bad frame of the newest segment is a torn tail,
// unless a later frame or the footer proves that it had been synced: then its bytes are damaged,
// and the error is fault.ErrCorrupt. In other segments every bad frame is damage. In a log that was
// closed, therefore, no damaged byte loses a record silently: a bad frame is ErrCorrupt, a bad
// footer a torn tail without a record. Only after a kill, a bad frame without a later frame cannot
// be distinguished from a torn one.
//
// A single flipped bit is repaired: the CRC gives its position and a hash confirms it (bitflip.go).
// Replay returns the record as it was written, Repair writes the bit back, Verify reports it.
//
// # Concurrency
//
// Calls of Append and AppendLater must be serialized; callers have a critical section around them
// anyway, in which they assign timestamps. Sync, Durable, Next, Bytes, Release and Poisoned are
// safe for concurrent use at any time. Sync is a group commit: one caller writes the frames that
// AppendLater buffered and syncs for all waiters, and none of them blocks Append.
package wal
