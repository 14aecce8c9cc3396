package store

import (
	"fmt"

	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/internal/meta"
	"github.com/oribi-db/oribi/internal/record"
	"github.com/oribi-db/oribi/internal/tablet"
	"github.com/oribi-db/oribi/internal/wal"
	"github.com/oribi-db/oribi/lsn"
	"github.com/oribi-db/oribi/mvcc"
)

// Replay applies the log's write batches to memory, in LSN order from where the metadata needs
// them. It writes nothing. It skips operations on tables that were dropped.
func (c *Core) Replay() (*wal.Tail, error) {
	p := logPass{core: c, read: wal.Replay, stored: &c.stored, tables: c.replayers()}
	if c.Options.Follow {
		p.read = wal.Follow
	}
	if err := p.run(c.Blocks.LogStart(), nil); err != nil {
		return nil, err
	}
	c.Recovery.Batches = p.batches
	r := p.tail.Report()
	c.Recovery.Clean, c.Recovery.Frames, c.Recovery.TornBytes = r.Clean, r.Frames, r.TornBytes
	c.Recovery.RepairedBits = r.RepairedBits
	c.InDoubt = p.inDoubt
	c.Tail.Store(p.tail)
	c.Begin(p.newest, p.tail.Last(), p.seen)
	return p.tail, nil
}

// replayers returns the replayers of all tables, ordered by name.
func (c *Core) replayers() (out []*tablet.Replayer) {
	for _, t := range c.sorted() {
		out = append(out, t.Replayer())
	}
	return out
}

// logPass is a pass over the log that applies its records to tables.
type logPass struct {
	core   *Core
	read   func(o wal.Options, from lsn.LSN, fn func(lsn lsn.LSN, payload []byte) error) (*wal.Tail, error)
	stored *meta.Store
	tables []*tablet.Replayer // of all tables of the metadata
	has    map[uint32]lsn.LSN
	after  mvcc.Timestamp // all records have timestamps above it

	logCheck
	tail    *wal.Tail
	batches int64
	newest  mvcc.Timestamp // of all batches, and those that later ones will be above
	seen    mvcc.Timestamp // see Timeline.Reached
}

// run reads the log from an LSN on. applied, if it is not nil, is called before the first record is
// applied.
func (p *logPass) run(from lsn.LSN, applied func()) error {
	c := p.core
	to := NewReplayer(p.tables, p.stored.NextTable, p.has)
	p.logCheck = logCheck{core: c, stored: p.stored, tables: p.tables, last: p.after, epoch: c.Blocks.Epoch()}
	p.newest = max(p.stored.ClockHigh, p.after)
	for _, t := range p.tables {
		p.newest = max(p.newest, t.MaxTimestamp())
	}
	final := mvcc.Min
	if c.Options.Follow {
		final = c.Dir.FinalUpTo(c.PhysicalTime())
	}
	var err error
	p.tail, err = p.read(c.LogOptions(), from, func(lsn lsn.LSN, payload []byte) error {
		h, err := p.record(lsn, payload)
		if err != nil {
			return err
		}
		if p.batches++; p.batches == 1 && applied != nil {
			applied()
		}
		return to.Add(lsn, h.Timestamp, payload)
	})
	if first := to.Close(); first != nil { // it is of an earlier record than err
		err = first
	}
	if err == nil {
		err = p.end(p.tail)
	}
	if err != nil {
		return err
	}
	if p.newest = max(p.newest, p.last); p.newest > mvcc.Last {
		return fault.Corruptf("timestamp %d is out of range", uint64(p.newest))
	}
	if !p.tail.Stopped() { // else the log has batches that the follower does not see yet
		p.seen = final
	}
	return nil
}

// logCheck checks the records of the log, in their order, against one another and the metadata. A
// follower ends the log where its metadata does.
type logCheck struct {
	core   *Core
	stored *meta.Store
	tables []*tablet.Replayer
	last   mvcc.Timestamp
	epoch  uint64 // of the metadata

	inDoubt   bool    // a change was announced that is not in the metadata, and may have been in flight
	abortedTo lsn.LSN // of a follower: a later record aborts announcements before it
	needs     uint64  // of a follower: the epoch that the first record needs which it does not see; 0 = none
}

// record checks a record. With wal.ErrStop, the log ends before it:
//
//   - It needs metadata of a later epoch. The writer has committed that after the follower has read the
//     metadata, so all that comes before the record was in the log by then, or is concurrent.
//   - It announces a change whose metadata commit has not come, and may come. Until then the writer
//     shows neither the change nor any later batch.
func (c *logCheck) record(at lsn.LSN, payload []byte) (record.Head, error) {
	h, err := record.DecodeHead(payload)
	follow := c.core.Options.Follow
	switch {
	case err != nil:
	case h.Epoch > c.epoch && follow:
		c.needs = h.Epoch
		return h, wal.ErrStop
	case h.Epoch > c.epoch:
		err = fault.Corruptf("metadata is at epoch %d, but reached epoch %d before", c.epoch, h.Epoch)
	case h.Timestamp <= c.last:
		err = fault.Corruptf("timestamp %d after %d", uint64(h.Timestamp), uint64(c.last))
	case h.Aborts():
		c.inDoubt = false
	case h.Announces() && !c.decided(h.Timestamp):
		c.inDoubt = true
		if follow && at > c.abortedTo {
			if c.abortedTo, err = c.core.findAbort(at + 1); err == nil && at > c.abortedTo {
				return h, wal.ErrStop
			}
		}
	}
	if err != nil {
		return h, fmt.Errorf("log: lsn %d: %w", at, err)
	}
	c.last = h.Timestamp
	return h, nil
}

// end checks the end of the log.
func (c *logCheck) end(tail *wal.Tail) error {
	if c.needs > 0 {
		newest, err := c.core.Blocks.AnchorEpoch()
		if err != nil {
			return err
		}
		if newest < c.needs {
			return fault.Corruptf("log: metadata is at epoch %d, but reached epoch %d before", c.epoch, c.needs)
		}
	}
	if end := c.stored.LogEnd; tail.Last() < end && !tail.Stopped() {
		return fault.Corruptf("log ends with LSN %d, but reached LSN %d before", tail.Last(), end)
	}
	return nil
}

// decided reports whether the metadata has the change to which a record of the log gave its
// timestamp, or shows that it will never come.
//
// A commit of the metadata contains the newest visible timestamp, and an announced change becomes
// visible when it has been committed or has failed. The commit of the change itself comes before;
// it names the timestamp, which merges keep until a later commit.
func (c *logCheck) decided(ts mvcc.Timestamp) bool {
	if ts <= c.stored.ClockHigh {
		return true
	}
	for _, t := range c.tables {
		for _, e := range t.Table().Expiry {
			if e.From == ts || e.Stopped == ts {
				return true
			}
		}
		for _, m := range t.RowSets() {
			for _, b := range m.Births {
				if b.TS == ts {
					return true
				}
			}
		}
	}
	return false
}

// findAbort returns the LSN of the first record from an LSN on that aborts the changes announced
// before, 0 if there is none.
func (c *Core) findAbort(from lsn.LSN) (found lsn.LSN, err error) {
	_, err = wal.Follow(c.LogOptions(), from, func(at lsn.LSN, payload []byte) error {
		h, err := record.DecodeHead(payload)
		if err == nil && h.Aborts() {
			found, err = at, wal.ErrStop
		}
		return err
	})
	return found, err
}
