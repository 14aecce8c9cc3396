// Package expiry decides when rows expire: a table may name a timestamp column, and a row is absent
// from the time in that column on, plus an age that is the same for all rows.
//
// It is a rule of time. A row is absent as of T if it has expired by the rule that is in force at T,
// whether or not the row is still stored:
//
//	rule         none        │ seen + 7 d                             │ none
//	row          ────────────┼──────────────── expired ┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄│ deleted
//	time                     From                                     From of the next entry
//
// So the rules of a table have a history, as its rows have. A rule ends with a delete of the rows
// that have expired by it: no row comes back.
//
// This package is the only place that compares the time of a row with the time of a read.
package expiry

import (
	"encoding/binary"
	"math"
	"slices"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/mvcc"
	"github.com/oribi-db/oribi/schema"
)

// Rule says when a row expires: Age after the time in Column. A row with NULL there never does.
type Rule struct {
	Column schema.ColumnID // of type schema.Timestamp
	Age    int64           // microseconds, not negative
}

// Entry is the rule that is in force from a timestamp up to the next entry's.
type Entry struct {
	From mvcc.Timestamp
	None bool // rows do not expire; the fields below are not set
	Rule
	// Stopped, unless it is 0, is a timestamp at or below From after which no row expires: the rows
	// that have expired by then are absent, and no others. It is for the time between two write
	// batches at the end of a rule.
	Stopped mvcc.Timestamp
}

// Rules are the rules of a table over time, in ascending order of From. They are immutable. Without
// entries, rows do not expire.
type Rules []Entry

// Current returns the rule that is in force now.
func (r Rules) Current() (rule Rule, ok bool) {
	if len(r) == 0 || r[len(r)-1].None {
		return rule, false
	}
	return r[len(r)-1].Rule, true
}

// Final returns the test for rows that are expired as of every timestamp from floor on, if the table is
// not altered. ok is false if no row is known to be.
func (r Rules) Final(floor mvcc.Timestamp) (t Test, ok bool) {
	if n := len(r); n == 0 || r[n-1].From > floor {
		return t, false
	}
	return r.At(floor)
}

// at returns the index of the entry in force at ts; −1: none.
func (r Rules) at(ts mvcc.Timestamp) int {
	i := len(r) - 1
	for i >= 0 && r[i].From > ts {
		i--
	}
	return i
}

// At returns the test for rows that are expired as of ts. ok is false if no row expires then.
func (r Rules) At(ts mvcc.Timestamp) (t Test, ok bool) {
	i := r.at(ts)
	if i < 0 || r[i].None {
		return t, false
	}
	e := &r[i]
	if e.Stopped != 0 {
		ts = e.Stopped
	}
	return Test{Rule: e.Rule, Limit: ts.Micros() - e.Age, stopped: e.Stopped != 0}, true
}

// LastChange returns the highest timestamp above after and up to upTo at which a row with these
// cells may have expired, or may have come under another rule. If there is no such timestamp,
// LastChange returns after.
func (r Rules) LastChange(cell func(schema.ColumnID) []byte, after, upTo mvcc.Timestamp) mvcc.Timestamp {
	last := after
	see := func(ts, from, end mvcc.Timestamp) {
		if from <= ts && ts < end && ts <= upTo {
			last = max(last, ts)
		}
	}
	for i, e := range r {
		end := mvcc.Max
		if i+1 < len(r) {
			end = r[i+1].From
		}
		see(e.From, e.From, end)
		if !e.None && e.Stopped == 0 {
			see(e.Expiry(cell(e.Column)), e.From, end)
		}
	}
	return last
}

// After returns the rules after a change at ts, from which on rule is in force. If rule is nil, no
// rule is. Earlier entries must begin before ts.
func (r Rules) After(ts mvcc.Timestamp, rule *Rule) Rules {
	e := Entry{From: ts, None: rule == nil}
	if rule != nil {
		e.Rule = *rule
	}
	return append(slices.Clip(r), e)
}

// StoppedAt returns the rules after the current one was stopped at ts: from then on, no more rows
// expire, and those that have expired stay absent.
func (r Rules) StoppedAt(ts mvcc.Timestamp) Rules {
	e := r[len(r)-1]
	e.From, e.Stopped = ts, ts
	return append(slices.Clip(r), e)
}

// Since returns the rules that reads at floor or later need.
func (r Rules) Since(floor mvcc.Timestamp) Rules {
	r = r[max(0, r.at(floor)):]
	if len(r) == 1 && r[0].None {
		return nil
	}
	return r
}

// Names reports whether one of the rules names a column.
func (r Rules) Names(id schema.ColumnID) bool {
	return slices.ContainsFunc(r, func(e Entry) bool { return !e.None && e.Column == id })
}

// Expiry returns the first timestamp as of which a row with this cell in the rule's column is
// expired, mvcc.Max if it never is. A nil cell is NULL.
func (r Rule) Expiry(cell []byte) mvcc.Timestamp {
	if cell == nil {
		return mvcc.Max
	}
	at := micros(cell)
	if at > math.MaxInt64-r.Age {
		return mvcc.Max
	}
	return mvcc.FromMicros(at + r.Age)
}

func micros(cell []byte) int64 { return int64(binary.LittleEndian.Uint64(cell)) }

// Test tests whether rows are expired at one time.
type Test struct {
	Rule
	Limit   int64 // microseconds since 1970: a row is expired if its time is at or before it
	stopped bool  // no more rows expire
}

// Expiry returns the rule's expiry of the cell, unless the rule has stopped.
func (t Test) Expiry(cell []byte) mvcc.Timestamp {
	if t.stopped {
		return mvcc.Max
	}
	return t.Rule.Expiry(cell)
}

// Expired reports whether a row with this cell in the column is expired. A nil cell is NULL.
func (t Test) Expired(cell []byte) bool { return cell != nil && micros(cell) <= t.Limit }

// Gone returns a filter for the rows that are expired. c is the column.
func (t Test) Gone(c *schema.Column) batch.Filter { return t.filter(c, batch.Le) }

// GonePredicate is Gone as a predicate.
func (t Test) GonePredicate(c *schema.Column) batch.Predicate { return t.predicate(c, batch.Le) }

// Alive returns a filter for the rows that are not expired. c is the column.
func (t Test) Alive(c *schema.Column) batch.Filter {
	if c.Nullable {
		return batch.Not(t.filter(c, batch.Le)) // true for NULL
	}
	return t.filter(c, batch.Gt)
}

// NotGone returns predicates of which one is true for a row that is not expired. c is the column.
func (t Test) NotGone(c *schema.Column) []batch.Predicate {
	return []batch.Predicate{t.predicate(c, batch.Gt), {Column: c.Name, ID: c.ID, Type: c.Type, Op: batch.IsNull}}
}

func (t Test) filter(c *schema.Column, op batch.Operator) batch.Filter {
	return batch.Test(t.predicate(c, op))
}

func (t Test) predicate(c *schema.Column, op batch.Operator) batch.Predicate {
	p := batch.Predicate{Column: c.Name, ID: c.ID, Type: c.Type, Op: op,
		Values: [][]byte{binary.LittleEndian.AppendUint64(nil, uint64(t.Limit))}}
	if err := p.Prepare(); err != nil {
		panic("expiry: " + err.Error()) // the column is of type timestamp: the schema was checked
	}
	return p
}
