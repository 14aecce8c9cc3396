package storedir

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"strconv"
	"time"

	"github.com/oribi-db/oribi/internal/coding"
	"github.com/oribi-db/oribi/mvcc"
	"github.com/oribi-db/oribi/vfs"
)

// A clock mark is a timestamp in the second line of LOCK: no write batch up to it will come that is
// not in the log. While there are followers, the writer writes one four times a second.
//
//	pid 4711 since 2026-11-28T02:00:00Z
//	clock 7353474760878567423 1f2e3d4c
//
// The last field is the CRC-32C of the line before it. A follower answers reads as of timestamps up
// to the mark that it has read before the log:
//
//	writer     timestamp 7   7 is in the log     timestamp 9: no batch has it   7 is published   mark 9
//	follower                                                                     mark 9   log: 7   reads as of 8
//
// The time alone would not do. A writer that is stopped after it has given a batch its timestamp, or
// whose disk is slow, writes the record as late as it likes:
//
//	writer     timestamp 7, stopped                                       record of 7
//	follower                    a minute later: log   reads as of 8: wrong
//
// A writer starts its clock above the mark that it finds in LOCK, in case the machine's clock has
// gone back.
const (
	MarkEvery    = 250 * time.Millisecond
	MarkPatience = time.Second // how long a read of a follower waits for a mark

	markTries = 3   // to read a mark: LOCK is empty for a moment while it is written
	lockMax   = 256 // bytes that are read of LOCK
)

var markPrefix = []byte("clock ")

// appendMark appends the line of a mark; none if ts is 0.
func appendMark(b []byte, ts mvcc.Timestamp) []byte {
	if ts == 0 {
		return b
	}
	at := len(b)
	b = fmt.Appendf(b, "%s%d ", markPrefix, uint64(ts))
	return fmt.Appendf(b, "%08x\n", coding.CRC32C(b[at:]))
}

// decodeMark returns the mark in the content of LOCK, or 0 if the content has no mark.
func decodeMark(b []byte) mvcc.Timestamp {
	_, line, _ := bytes.Cut(b, []byte{'\n'})
	line, _, whole := bytes.Cut(line, []byte{'\n'})
	end := bytes.LastIndexByte(line, ' ') + 1
	if !whole || !bytes.HasPrefix(line, markPrefix) || end <= len(markPrefix) ||
		string(line[end:]) != fmt.Sprintf("%08x", coding.CRC32C(line[:end])) {
		return 0
	}
	ts, err := strconv.ParseUint(string(line[len(markPrefix):end-1]), 10, 64)
	if err != nil || mvcc.Timestamp(ts) > mvcc.Last {
		return 0
	}
	return mvcc.Timestamp(ts)
}

// FinalUpTo returns a timestamp up to which the log, if it is read now, has all write batches that
// will ever come; 0 if none is known. present is the time of the store's clock, 0 if the clock is
// not a physical one. Without a writer the timestamp is the present: later writers take their
// timestamps from the machine's clock, or above.
func (d Dir) FinalUpTo(present mvcc.Timestamp) mvcc.Timestamp {
	if lock, err := d.FS.Lock(d.File(InstanceName), vfs.LockShared); err == nil {
		lock.Close()
		if present > 0 {
			return max(mvcc.FromTime(present.Time()), 1) - 1
		}
	}
	for range markTries {
		b, err := d.read(LockName, lockMax)
		if err == nil && len(b) > 0 || errors.Is(err, fs.ErrNotExist) {
			return decodeMark(b)
		}
	}
	return 0
}
