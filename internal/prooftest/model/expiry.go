package model

import (
	"encoding/binary"
	"time"

	"github.com/oribi-db/oribi/internal/prooftest/script"
	"github.com/oribi-db/oribi/mvcc"
)

// rule says that rows expire from a timestamp on, age after the time in a column.
type rule struct {
	from   mvcc.Timestamp
	column int // −1: they do not
	age    time.Duration
}

// Expire makes rows of a new table expire.
func (t *Table) Expire(column int, age time.Duration) { t.rules = []rule{{mvcc.Min, column, age}} }

// Expires returns the column by which rows expire now; −1 if they do not.
func (t *Table) Expires() int {
	if len(t.rules) == 0 {
		return -1
	}
	return t.rules[len(t.rules)-1].column
}

// Dates returns for each of n columns whether rows expire by it, or did so.
func (t *Table) Dates(n int) []bool {
	out := make([]bool, n)
	for _, r := range t.rules {
		if r.column >= 0 {
			out[r.column] = true
		}
	}
	return out
}

// Now returns the present time of the store.
func (t *Table) Now() time.Time { return t.time(mvcc.Max).Time() }

// alive returns a new row unless it is expired as of ts; mvcc.Max is the present time.
func (t *Table) alive(cells [][]byte, ts mvcc.Timestamp) [][]byte {
	ts = t.time(ts)
	return t.aliveSince(version{ts, cells}, ts)
}

// time returns the present time for mvcc.Max, else ts.
func (t *Table) time(ts mvcc.Timestamp) mvcc.Timestamp {
	if ts == mvcc.Max {
		return max(t.model.Now, t.newest)
	}
	return ts
}

// aliveSince returns the row of a version unless it is expired as of ts. A rule may have expired it
// before the rule ended: then it has been absent since.
func (t *Table) aliveSince(v version, ts mvcc.Timestamp) [][]byte {
	for i, r := range t.rules {
		end := ts
		if i+1 < len(t.rules) {
			if end = min(end, t.rules[i+1].from); v.TS >= t.rules[i+1].from {
				continue
			}
		}
		if r.from > ts || r.column < 0 || v.cells == nil || v.cells[r.column] == nil {
			continue
		}
		us := int64(binary.LittleEndian.Uint64(v.cells[r.column]))
		if us <= end.Time().UnixMicro()-r.age.Microseconds() {
			return nil
		}
	}
	return v.cells
}

// digestAt returns the hash of the rows as of stored without those that are expired as of ts.
func (t *Table) digestAt(stored, ts mvcc.Timestamp) [16]byte {
	d := NewDigest()
	for _, r := range t.Order {
		if cells := t.aliveSince(r.stored(stored), ts); cells != nil {
			d.Row(cells)
		}
	}
	return d.Sum()
}

// expiries returns timestamps at which the row may have expired.
func (r *Row) expiries() (out []mvcc.Timestamp) {
	for _, in := range r.table.rules {
		out = append(out, in.from)
		for _, v := range r.Versions {
			if in.column >= 0 && v.cells != nil && v.cells[in.column] != nil {
				us := int64(binary.LittleEndian.Uint64(v.cells[in.column]))
				out = append(out, mvcc.FromTime(time.UnixMicro(us).Add(in.age)))
			}
		}
	}
	return out
}

// setRule changes the rule from a timestamp on.
func (t *Table) setRule(a *script.Alteration, from mvcc.Timestamp) {
	next := rule{from, a.Column - 1, a.Age}
	if t.Expires() != next.column || next.column >= 0 && t.rules[len(t.rules)-1].age != next.age {
		t.rules = append(t.rules, next)
	}
}
