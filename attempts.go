package oribi

import "github.com/oribi-db/oribi/mvcc"

// attempts are attempts to commit a batch of which rows expire. The first one decides as of the
// present time. If it takes too long, the next ones decide as of a time ahead, to which the clock
// is moved then, so that the rows that expire in between do not matter:
//
//	1  decided ────── e ──── commit        e: a row expires
//	2                        decided ────── e ──── commit
//	3                                              ├──────────── commit
//	                                               └ decided as of here
type attempts struct {
	last   mvcc.Timestamp // at which an attempt has failed
	margin mvcc.Timestamp
}

// next returns the time as of which the next attempt decides, after an attempt that has failed at ts.
func (a *attempts) next(ts mvcc.Timestamp) mvcc.Timestamp {
	if a.last != 0 {
		a.margin = min(2*max(a.margin, ts-a.last), mvcc.FromMicros(mvcc.MaxAhead.Microseconds()/2))
	}
	a.last = ts
	return ts + a.margin
}
