// Package conflict finds out whether what a transaction has read was changed before it commits.
//
// A Log remembers the keys that the newest write batches have changed, while there are
// transactions. A ReadSet lists what one transaction has read: keys, and ranges of keys. The
// transaction is in conflict if a key in its read set was changed after its snapshot:
//
//	read by the transaction   {k}  [p, q)
//	its snapshot              ts 10
//	Log                       7 k   12 a   14 pear   15 z
//	in conflict               no    no     yes       no
package conflict

import (
	"sort"

	"github.com/oribi-db/oribi/mvcc"
)

// Log remembers which keys the newest write batches have changed. It has no lock of its own: the
// caller calls its methods in the critical section that assigns timestamps. The Changes that Since
// returns may be used outside of the critical section.
type Log struct {
	limit int64 // bytes

	on     bool
	open   int // transactions that have begun and not ended
	since  mvcc.Timestamp
	chunks []*chunk
	bytes  int64
}

// NewLog returns a Log that takes at most about limit bytes.
func NewLog(limit int64) *Log { return &Log{limit: limit} }

// Change is a change at a timestamp.
type Change struct {
	Timestamp mvcc.Timestamp
	Table     uint32
	Key       []byte // encoded, never nil; unless Unknown is set
	Unknown   bool   // any keys of the table may have changed
}

// chunk is a part of the log, in the order of timestamps. Since gives out slices of changes, so
// these are only appended to, within their capacity.
type chunk struct {
	changes []Change
	keys    []byte // of the changes; never moved
}

// Sizes of chunks. The log forgets whole chunks.
const (
	chunkChanges = 1 << 10
	chunkKeys    = 32 << 10
	changeBytes  = 48
	// idleBytes is how large the log becomes without transactions before it stops recording. Until
	// then, the next transaction begins without waiting for the write batches in flight.
	idleBytes = 256 << 10
	// mostChanges is the number of changes of a batch from which on its keys are not listed: listing
	// them would keep other writers waiting.
	mostChanges = 16 << 10
)

// Begin registers a transaction, which calls End when it ends, and returns the timestamp above which
// the log is complete: the transaction's snapshot must not be below it. now returns a timestamp
// above all that were assigned; Begin calls it if the log has not been recording.
func (l *Log) Begin(now func() (mvcc.Timestamp, error)) (mvcc.Timestamp, error) {
	if !l.on {
		ts, err := now()
		if err != nil {
			return 0, err
		}
		l.on, l.since = true, ts
	}
	l.open++
	return l.since, nil
}

// End ends a transaction.
func (l *Log) End() { l.open-- }

// Recording reports whether the log wants to know of changes.
func (l *Log) Recording() bool { return l.on }

// Add records that the write batch with a timestamp changes a key, of which Add makes a copy.
// Timestamps ascend.
func (l *Log) Add(ts mvcc.Timestamp, table uint32, key []byte) {
	c := l.room(len(key))
	at := len(c.keys)
	c.keys = append(c.keys, key...)
	c.changes = append(c.changes, Change{Timestamp: ts, Table: table, Key: c.keys[at:len(c.keys):len(c.keys)]})
}

// AddUnknown records that the batch with a timestamp changes keys of a table that nobody has listed.
func (l *Log) AddUnknown(ts mvcc.Timestamp, table uint32) {
	c := l.room(0)
	c.changes = append(c.changes, Change{Timestamp: ts, Table: table, Unknown: true})
}

// room returns the newest chunk, with room for one more change.
func (l *Log) room(key int) *chunk {
	if n := len(l.chunks); n > 0 {
		if c := l.chunks[n-1]; len(c.changes) < cap(c.changes) && cap(c.keys)-len(c.keys) >= key {
			return c
		}
	}
	c := &chunk{changes: make([]Change, 0, chunkChanges), keys: make([]byte, 0, max(key, chunkKeys))}
	l.chunks = append(l.chunks, c)
	l.bytes += c.size()
	for l.bytes > l.limit && len(l.chunks) > 1 {
		l.forget()
	}
	return c
}

func (c *chunk) size() int64 { return int64(cap(c.changes))*changeBytes + int64(cap(c.keys)) }

// forget removes the oldest chunk.
func (l *Log) forget() {
	c := l.chunks[0]
	l.since = c.changes[len(c.changes)-1].Timestamp
	l.chunks[0] = nil
	l.chunks = l.chunks[1:]
	l.bytes -= c.size()
}

// Room reports whether the keys of a batch of n changes should be added. If not, the caller adds its
// tables as unknown. Without transactions, the log stops recording after a while.
func (l *Log) Room(n int) bool {
	if l.open == 0 && l.bytes+int64(n)*changeBytes > idleBytes {
		*l = Log{limit: l.limit}
	}
	return n <= mostChanges
}

// Changes are the changes of a Log after a timestamp. They are not modified by later changes.
type Changes struct {
	Complete mvcc.Timestamp // the log is complete above it
	parts    [][]Change
}

// Since returns the changes after a timestamp. If Complete of the result is above that timestamp,
// the log has forgotten some.
func (l *Log) Since(ts mvcc.Timestamp) Changes {
	out := Changes{Complete: l.since}
	for i := len(l.chunks) - 1; i >= 0; i-- {
		part := l.chunks[i].changes
		first := sort.Search(len(part), func(i int) bool { return part[i].Timestamp > ts })
		if first < len(part) {
			out.parts = append(out.parts, part[first:len(part):len(part)])
		}
		if first > 0 {
			break
		}
	}
	return out
}

// All yields the changes, in the order of timestamps.
func (c Changes) All(yield func(Change) bool) {
	for i := len(c.parts) - 1; i >= 0; i-- {
		for _, ch := range c.parts[i] {
			if !yield(ch) {
				return
			}
		}
	}
}

// Len returns the number of changes.
func (c Changes) Len() int {
	n := 0
	for _, part := range c.parts {
		n += len(part)
	}
	return n
}

// Newest returns the timestamp of the newest of the changes, or ts if c is empty.
func (c Changes) Newest(ts mvcc.Timestamp) mvcc.Timestamp {
	if len(c.parts) == 0 {
		return ts
	}
	newest := c.parts[0]
	return newest[len(newest)-1].Timestamp
}

// In returns a change of a key that is in a read set, and reports whether there is one. It passes
// over unknown changes.
func (c Changes) In(r *ReadSet) (Change, bool) {
	for _, part := range c.parts {
		for i := range part {
			if ch := &part[i]; !ch.Unknown && r.Contains(ch.Table, ch.Key) {
				return *ch, true
			}
		}
	}
	return Change{}, false
}

// Unknown returns the timestamp of the newest unknown change of each table of a read set.
func (c Changes) Unknown(r *ReadSet) map[uint32]mvcc.Timestamp {
	var out map[uint32]mvcc.Timestamp
	for _, part := range c.parts {
		for i := range part {
			if ch := &part[i]; ch.Unknown && r.tables[ch.Table] != nil {
				if out == nil {
					out = map[uint32]mvcc.Timestamp{}
				}
				out[ch.Table] = max(out[ch.Table], ch.Timestamp)
			}
		}
	}
	return out
}
