package oribi

import (
	"fmt"

	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/internal/record"
	"github.com/oribi-db/oribi/internal/wal"
	"github.com/oribi-db/oribi/lsn"
	"github.com/oribi-db/oribi/mvcc"
)

// replay applies the log's write batches to memory, in LSN order from where the metadata needs
// them. It writes nothing. It skips operations on tables that were dropped.
func (s *Store) replay() (*wal.Tail, error) {
	newest := s.stored.ClockHigh
	for _, t := range s.tables {
		newest = max(newest, t.tab.MaxTimestamp())
	}
	to := newReplayer(s)
	last := mvcc.Min
	epoch := s.blocks.Epoch()
	tail, err := wal.Replay(s.logOptions(), s.blocks.LogStart(), func(lsn lsn.LSN, payload []byte) error {
		h, err := record.DecodeHead(payload)
		ts := h.Timestamp
		switch {
		case err != nil:
		case h.Epoch > epoch:
			err = fault.Corruptf("metadata is at epoch %d, but reached epoch %d before", epoch, h.Epoch)
		case ts <= last:
			err = fault.Corruptf("timestamp %d after %d", uint64(ts), uint64(last))
		}
		if err != nil {
			return fmt.Errorf("log: lsn %d: %w", lsn, err)
		}
		last = ts
		s.recovery.Batches++
		return to.add(lsn, ts, payload)
	})
	if first := to.close(); first != nil { // it is of an earlier record than err
		err = first
	}
	if err != nil {
		return nil, err
	}
	if end := s.stored.LogEnd; tail.Last() < end {
		return nil, fault.Corruptf("log ends with LSN %d, but reached LSN %d before", tail.Last(), end)
	}
	r := tail.Report()
	s.recovery.Clean, s.recovery.Frames, s.recovery.TornBytes = r.Clean, r.Frames, r.TornBytes
	s.recovery.RepairedBits = r.RepairedBits
	s.logTail = tail
	newest = max(newest, last)
	if newest > mvcc.Last {
		return nil, fault.Corruptf("timestamp %d is out of range", uint64(newest))
	}
	s.clock.Restore(newest)
	s.lastLSN.Store(tail.Last())
	s.pub = mvcc.NewPublisher(newest, tail.Last())
	return tail, nil
}

// Recovery describes what Open found in the log, and what a writer repaired.
type Recovery struct {
	Clean        bool   // the log ended as Close leaves it
	Frames       int64  // log frames read
	Batches      int64  // write batches replayed
	TornBytes    int64  // bytes of an unfinished write at the end of the log
	TornFile     string // where a writer kept them, within the store's directory; empty for a reader
	RepairedBits int64  // single bits repaired

	// What a writer removed: blocks that no commit names or that a commit dropped. Zero for a
	// reader.
	StrayContainers int   // files that were removed
	CutBytes        int64 // after the last named block of a container
	Reclaimed       int   // dropped blocks whose space was reclaimed
}

// Recovery returns what Open found when it opened the store.
func (s *Store) Recovery() Recovery { return s.recovery }
