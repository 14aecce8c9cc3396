// Package wal is the log: numbered records in segment files. Records are appended, synced,
// replayed, and released.
//
// A record is a byte string with an LSN. LSNs begin at 1 and have no gaps. The log does not
// interpret the bytes. To open a log, call Replay, which writes nothing; a writer then calls Repair
// on the result and gets a Log:
//
//	tail, err := wal.Replay(o, logStart, func(lsn lsn.LSN, payload []byte) error { … })
//	log, err := tail.Repair(nil)
//	lsn, err := log.Append(payload) // survives a kill of the process (AppendLater: not yet)
//	err = log.Sync(lsn)             // survives a power failure
//	err = log.Release(before)       // removes segments that are no longer needed
//
// # On disk
//
// A directory contains segments 000000000001.wal, 000000000002.wal, …. Each is a header, frames,
// and, once it is sealed, a footer; only the newest may lack the footer, and the one before it
// until the next sync. All of these begin at multiples of 8.
//
//	segment = header { frame } [ footer ] [ zeros ]
//	frame   = frame header, payload, zeros up to a multiple of 8
//	record  = one frame, or several in a row with the same LSN and parts 0, 1, 2, …; incomplete
//	          without the last
//
// The byte tables are above headerLen, frameLen and footerLen. A record is in one segment. The
// newest segment may end in zeros while its writer has it open, for records that are synced one by
// one (see ahead) or copied (see mapped); Close removes them. A segment contains the number and
// length of its predecessor and the hash over its headers, so a missing, swapped or foreign segment
// is detected.
//
// # Order of writes, and what a crash leaves
//
//  1. Frames are written or copied, then synced. A crash before the sync leaves any part of the
//     frames that were not synced, for instance the third frame without the second: a torn tail,
//     which begins with the first frame that is not complete. It is removed, and the removal
//     synced, before the next frame is written.
//  2. When a record does not fit into the segment, the next file is created, and its header and the
//     record are written to it. Nothing is synced, so that Append does not wait.
//  3. The next sync first seals the full segment: it syncs that, writes the footer, cuts off the zeros
//     after it, and syncs both. Then it syncs the directory and the newest segment. No record of the
//     newest is durable before that. A crash may leave any part of the footer, and any part of the
//     newest segment or nothing of it. If frames of the full segment are missing, the log ends before
//     them, and the newest file is put away; so it is without a header.
//  4. Close seals the newest segment. A crash before the last sync leaves any part of the footer after
//     complete frames: a torn tail without a record, with or without the zeros. If the segment has room
//     when the log is opened again, the next frame overwrites the footer.
//
// Each frame contains the highest LSN that was durable when it was written, and a footer means that
// all records before it are durable. So the first bad frame of the newest segment is a torn tail,
// unless a later frame or the footer proves that it had been synced. In that case it is damaged,
// and the error is fault.ErrCorrupt. The same is true of the segment before the newest as long as
// no frame of the newest says that its own first record was durable, which it is only after step 3.
// In other segments every bad frame is damage. A log that was closed therefore never loses a record
// silently to a damaged byte: a bad frame is ErrCorrupt, a bad footer a torn tail without a record.
// Only after a kill is a bad last frame indistinguishable from a torn one.
//
// Frames that are not synced
//
//	LSN        5        6        7        8          durable in the frames: 4
//	page       │   n        │   n+1      │   n+2
//	disk       written        zeros        written   a power cut
//	replay     5              ▲ stops: LSN 6 is not complete, and no later frame says that 6 was durable
//	Repair     5        0 0 0 0 0 0 0 0 0 0 0 0      cut, then synced: 7 and 8 are gone for good
//	Append     5        6'                           of the same length as 6: only zeros follow
//
// Without the sync of the cut a second power cut could leave 6' and then the old 7, a frame with
// the right LSN at the right place. After a kill nothing is missing, since all of it is in the
// system's cache.
//
// A single flipped bit is repaired: the CRC gives its position and a hash confirms it (bitflip.go).
// Replay returns the record as it was written, Repair writes the bit back, Verify reports it.
//
// # Followers
//
// Follow and Tail.Continue read a log to which another process appends:
//
//	LSN        5        6        7                 8
//	Log        written  copied   half copied
//	follower   5        6        ▲ ends here       next time from 7 on
//
// A record is whole or it is not there: its frames have checksums. Frames are appended in order, so
// a follower never passes over one. Segments are sealed and removed while it reads, see Follow.
//
// # Concurrency
//
// Calls of Append and AppendLater must be serialized; callers have a critical section around them
// anyway, in which they assign timestamps. Sync, Durable, Next, Bytes, Release, Retain and Poisoned
// are safe for concurrent use at any time. Sync is a group commit: one caller writes the frames
// that AppendLater buffered and syncs for all waiters, and none of them blocks Append.
package wal
