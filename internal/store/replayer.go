package store

import (
	"runtime"

	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/internal/record"
	"github.com/oribi-db/oribi/internal/tablet"
	"github.com/oribi-db/oribi/lsn"
	"github.com/oribi-db/oribi/mvcc"
)

// Replayer applies the records of the log to the tables, in the order of Add. It applies those of a
// chunk in a goroutine of its own while the next records are read and checked: with two processors,
// a log is replayed in about two thirds of the time. The first ones, which are all that most
// refreshes of a follower read, are applied at once, since copies and a goroutine cost more.
type Replayer struct {
	tables    map[uint32]*tablet.Replayer
	nextTable uint32             // tables from here on were never made
	has       map[uint32]lsn.LSN // tables that have all operations up to an LSN

	atOnce  int // bytes of records that were applied at once
	filling *replayChunk
	work    chan *replayChunk // to the goroutine; nil while there is none
	free    chan *replayChunk // back from it
	ended   chan struct{}     // closed when it has ended
	// failed is the error of the first record that could not be applied. While there is a goroutine,
	// failed is its own: others read it after a chunk has come back, or after the goroutine's end.
	failed error
}

// replayChunk is records that are applied together.
type replayChunk struct {
	records []replayRecord
	bytes   []byte // of their payloads
	err     error  // of an application; the chunks after it are not applied
}

type replayRecord struct {
	lsn lsn.LSN
	ts  mvcc.Timestamp
	end int // in bytes
}

const (
	replayChunkBytes = 256 << 10 // of payloads, after which a chunk is applied
	replayChunks     = 3         // one is filled, one is applied, one waits
	replayAtOnce     = 1 << 20   // of payloads, about ten milliseconds
)

// NewReplayer returns a replayer for the tables, which are all tables with numbers below nextTable. has
// has the LSNs up to which tables have all operations; tables that are not in it have none.
func NewReplayer(tables []*tablet.Replayer, nextTable uint32, has map[uint32]lsn.LSN) *Replayer {
	r := &Replayer{tables: map[uint32]*tablet.Replayer{}, nextTable: nextTable, has: has, filling: new(replayChunk)}
	for _, t := range tables {
		r.tables[t.Table().Number] = t
	}
	return r
}

// Add applies a record, or will apply it before Close returns. It copies payload. An error may be
// about an earlier record.
func (r *Replayer) Add(lsn lsn.LSN, ts mvcc.Timestamp, payload []byte) error {
	if r.atOnce < replayAtOnce {
		r.atOnce += len(payload)
		if r.failed == nil {
			r.failed = r.apply(lsn, ts, payload)
		}
		return r.failed
	}
	c := r.filling
	if len(payload) > replayChunkBytes || runtime.GOMAXPROCS(0) == 1 {
		if err := r.Close(); err != nil {
			return err
		}
		return r.apply(lsn, ts, payload)
	}
	c.bytes = append(c.bytes, payload...)
	c.records = append(c.records, replayRecord{lsn, ts, len(c.bytes)})
	if len(c.bytes) < replayChunkBytes {
		return nil
	}
	if r.work == nil {
		r.start()
	}
	r.work <- c
	r.filling = <-r.free
	return r.filling.err
}

// start starts the goroutine.
func (r *Replayer) start() {
	r.work, r.free = make(chan *replayChunk, replayChunks), make(chan *replayChunk, replayChunks)
	r.ended = make(chan struct{})
	for range replayChunks - 1 {
		r.free <- new(replayChunk)
	}
	go func() {
		defer close(r.ended)
		for c := range r.work {
			if r.failed == nil {
				r.failed = r.applyChunk(c)
			}
			*c = replayChunk{records: c.records[:0], bytes: c.bytes[:0], err: r.failed}
			r.free <- c
		}
	}()
}

// Close applies all records that were added and ends the goroutine. Further ones may follow. It
// returns the error of the first record that could not be applied.
func (r *Replayer) Close() error {
	if r.work != nil {
		close(r.work)
		<-r.ended
		r.work = nil
	}
	if r.failed == nil {
		r.failed = r.applyChunk(r.filling)
	}
	r.filling = new(replayChunk)
	return r.failed
}

func (r *Replayer) applyChunk(c *replayChunk) error {
	start := 0
	for _, rec := range c.records {
		if err := r.apply(rec.lsn, rec.ts, c.bytes[start:rec.end:rec.end]); err != nil {
			return err
		}
		start = rec.end
	}
	return nil
}

// apply applies one record. It skips operations on tables that were dropped.
func (r *Replayer) apply(lsn lsn.LSN, ts mvcc.Timestamp, payload []byte) error {
	var current *tablet.Replayer // of the operations before
	_, err := record.Decode(payload, func(op record.Op) error {
		if lsn <= r.has[op.Table] {
			return nil
		}
		if t := r.tables[op.Table]; t != nil {
			if current != t && current != nil {
				current.Flush()
			}
			current = t
			return t.Apply(op, ts, lsn)
		}
		if op.Table >= r.nextTable {
			return fault.Corruptf("log: lsn %d: table %d was never made", lsn, op.Table)
		}
		return nil
	})
	if current != nil {
		current.Flush()
	}
	return err
}
