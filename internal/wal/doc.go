// Package wal is the log: numbered records in segments, appended, synced, replayed, dropped.
//
// A record is bytes and an LSN, 1 for the first, without gaps. The log knows nothing of what the
// bytes mean. A store that opens calls Replay, which writes nothing; a writer then calls Repair on
// what Replay returned and gets a Log:
//
//	tail, err := wal.Replay(o, logStart, func(lsn lsn.LSN, payload []byte) error { … })
//	log, err := tail.Repair(nil)
//	lsn, err := log.Append(payload) // survives a kill of the process; AppendLater not before the next Sync or Append
//	err = log.Sync(lsn)             // survives a power cut
//	err = log.Release(before)       // forgets
//
// # On disk
//
// A directory holds segments 000000000001.wal, 000000000002.wal, …, each a header, frames, and a
// footer once it is sealed; only the newest may lack the footer. All begin at multiples of 8.
//
//	segment = header { frame } [ footer ] [ zeros ]
//	frame   = frame header, payload, zeros up to a multiple of 8
//	record  = one frame, or several in a row with the same LSN and parts 0, 1, 2, …; it counts only with its last
//
// Tables of the bytes stand above headerLen, frameLen and footerLen. A record lies in one segment.
// Zeros are behind the end of the newest segment alone, while its writer has it open and syncs
// record by record, see ahead; Close cuts them off. A segment names its predecessor, with its
// length and the hash over its headers, so a segment that is missing, swapped or from elsewhere is
// noticed.
//
// # Order of writes, and what a crash leaves
//
//  1. Frames are written, then synced. A crash before leaves any part of what was not synced: a
//     torn tail, which is cut.
//  2. At the end of a segment, and at Close, the footer is written, once all frames are synced, and
//     synced too. A crash before leaves any part of the footer behind whole frames: a torn tail
//     that holds no record, with or without the zeros that are cut off between footer and sync. If
//     the segment has room when the log is opened again, the next frame takes the footer's place.
//  3. When there is another record to write, the next file is created, its header written and
//     synced, the directory synced. A crash before leaves a file without a good header, and no
//     frame can be in it: it is removed.
//  4. Only now the next file takes its first frame.
//
// Each frame tells the highest LSN that was durable when it was written, a footer that all before
// it are. So the first bad frame of the newest segment is a torn tail, unless a later frame or the
// footer proves that it had been synced: then bytes rotted or were changed, and that is
// fault.ErrCorrupt. In other segments every bad frame is. In a log that was closed, therefore, no
// damaged byte costs a record unnoticed: a bad frame is ErrCorrupt, a bad footer a torn tail
// without a record. Only after a kill a bad frame with nothing behind it to prove anything cannot
// be told from a torn one.
//
// A single flipped bit is no damage: its place follows from the CRC and a hash confirms it
// (mend.go). Replay gives the record as it was written, Repair writes the bit back, Verify tells
// it.
//
// # Concurrency
//
// Calls of Append and AppendLater must follow one another; the caller has a critical section around
// them anyway, since it gives out timestamps there. Sync, Durable, Next, Bytes, Release and
// Poisoned may be called by any goroutine at any time. Sync is a group commit: one caller writes
// what AppendLater held back and syncs for all that wait, and none of them holds up Append.
package wal
